"""paper/: the table of README.md has every claim with the verdict that its script expects."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAPER = Path(__file__).parents[1] / "paper"
NAMED = ("Theorem 1", "Theorem 2", "Corollary 3", "Proposition 4", "Remark 5", "Corollary 6", "Theorem 7", "Theorem 8",
         "Lemma 9", "Lemma 10", "Figure 4.1", "Figure 4.2", "Figure 4.3", "Figure 4.4", "Figure C.1", "Appendix A",
         "Appendix B.1", "Appendix B.2")  # fmt: skip


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.syspath_prepend(str(PAPER))
    monkeypatch.delitem(sys.modules, "run", raising=False)  # tests/mutants has one, too
    module = importlib.import_module("run")
    for script in module.SCRIPTS:
        importlib.import_module(script)
    yield module
    for script in ("run", "claims", *module.SCRIPTS):
        sys.modules.pop(script, None)


def test_the_table_has_every_claim(run) -> None:  # type: ignore[no-untyped-def]
    text = (PAPER / "README.md").read_text(encoding="utf-8").partition(run.BEGIN)[2].partition(run.END)[0]
    rows = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in text.strip().splitlines()[2:]]
    told = {row[0]: (row[1].strip("`"), row[4].partition(".")[0]) for row in rows}
    assert told == {claim.where: (claim.script, claim.expected) for claim in run.CLAIMS}
    assert all(any(name in where for where in told) for name in NAMED)


def test_part_of_a_run_is_not_written() -> None:
    done = subprocess.run(
        [sys.executable, str(PAPER / "run.py"), "--only", "Theorem 1", "--write"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "leave --only" in done.stderr
