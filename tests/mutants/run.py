"""Plant each fault of `mutants.py` in a copy of the source, run the tests nearest to it, and report those that live.

    python tests/mutants/run.py [--workers 2] [--only TEXT]

Exit status 1 where any survives. Each worker has a copy of src/ in a temporary folder, in which one module at a time is
changed and changed back; pytest stops at the first failure.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from nearest import NEAREST

from mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0  # seconds for the tests of one mutant; a fault that hangs them is found
FAILED = 1  # pytest's status where a test failed; others say that the tests did not run


class Outcome(NamedTuple):
    mutant: Mutant
    status: int  # pytest's; FAILED is what a mutant deserves
    seconds: float
    text: str  # the test that found it, or the end of pytest's output

    @property
    def killed(self) -> bool:
        return self.status == FAILED


class Copy:
    """The source in a folder of its own, to be spoiled and mended."""

    def __init__(self, folder: Path) -> None:
        self.src = folder / "src"
        shutil.copytree(ROOT / "src", self.src)

    def _pytest(self, tests: Sequence[str]) -> tuple[int, str]:
        env = {**os.environ, "PYTHONPATH": str(self.src), "PYTHONDONTWRITEBYTECODE": "1"}
        for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
            env[threads] = "1"
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        try:
            done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return FAILED, f"no end after {PATIENCE:.0f} s"
        found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        return done.returncode, found.group(1) if found else (done.stdout + done.stderr)[-2000:]

    def sound(self, tests: Sequence[str]) -> None:
        """The tests must pass before a fault is planted."""
        status, text = self._pytest(tests)
        if status:
            raise SystemExit(f"The tests fail without a mutant: {text}")

    def tried(self, mutant: Mutant) -> Outcome:
        path = self.src / "unnorm" / mutant.module
        source, stat = path.read_text(encoding="utf-8"), path.stat()
        began = time.perf_counter()
        try:
            path.write_text(mutant.planted(source), encoding="utf-8")
            os.utime(path, (stat.st_atime, stat.st_mtime + 60))  # no bytecode of the sound module passes for it
            status, text = self._pytest(NEAREST[mutant.module])
        finally:
            path.write_text(source, encoding="utf-8")
            os.utime(path, (stat.st_atime, stat.st_mtime))
        return Outcome(mutant, status, time.perf_counter() - began, text)


def run(mutants: Sequence[Mutant], workers: int) -> list[Outcome]:
    """Each mutant against the tests of its module, as they come."""
    with tempfile.TemporaryDirectory() as folder:
        copies: queue.Queue[Copy] = queue.Queue()
        for w in range(workers):
            copies.put(Copy(Path(folder, str(w))))

        def one(mutant: Mutant) -> Outcome:
            copy = copies.get()
            try:
                outcome = copy.tried(mutant)
            finally:
                copies.put(copy)
            word = "killed" if outcome.killed else "SURVIVED" if outcome.status == 0 else "BROKEN"
            print(f"{outcome.seconds:6.1f} s  {word:8}  {mutant}  {outcome.text if outcome.status else ''}", flush=True)
            return outcome

        first = copies.get()
        first.sound(sorted({test for mutant in mutants for test in NEAREST[mutant.module]}))
        copies.put(first)
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(one, mutants))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="mutants whose module, text or description contains this")
    given = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if given.only in " ".join(mutant)]
    began = time.perf_counter()
    outcomes = run(chosen, given.workers)
    alive = [outcome for outcome in outcomes if not outcome.killed]
    killed, seconds = len(outcomes) - len(alive), time.perf_counter() - began
    print(f"{len(outcomes)} mutants, {killed} killed, {len(alive)} alive, {seconds:.0f} s with {given.workers} workers")
    for outcome in alive:
        print(f"  {outcome.mutant}\n    {outcome.text[-300:]}")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
