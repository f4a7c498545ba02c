"""Turns with the interpreter are short while several threads are at work, and as they were afterwards.

In a process of its own: threads that other tests have left may be at work here.
"""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
from unnorm._base.threads import TURN, quick_turns, run_tasks

def near(a, b):
    return abs(a - b) < 2e-6

before = sys.getswitchinterval()
assert before > TURN
with quick_turns():
    with quick_turns():
        assert near(sys.getswitchinterval(), TURN)
    assert near(sys.getswitchinterval(), TURN)
assert near(sys.getswitchinterval(), before)
inside = run_tasks(lambda _: sys.getswitchinterval(), [(0,), (1,), (2,)], 2)
assert all(near(one, TURN) for one in inside), inside
try:
    with quick_turns():
        raise ValueError
except ValueError:
    pass
assert near(sys.getswitchinterval(), before)
sys.setswitchinterval(5e-5)
with quick_turns():
    assert near(sys.getswitchinterval(), 5e-5)
print("as expected")
"""


def test_turns_are_short_inside_and_as_before_outside():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "as expected", done.stderr
