"""docs/eye.md: its Python runs, and its commands are understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "eye.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", TEXT, re.S)


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
def test_python_runs():
    scope: dict = {}
    for block in blocks("python"):
        exec(compile(block, "docs/eye.md", "exec"), scope)
    assert set(scope["paths"]) >= {"chain", "step", "x", "y"}


def test_commands_are_understood(unnorm, monkeypatch, tmp_path):
    """Every command is parsed: what is missing here is only the data."""
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks("sh") for line in block.replace("\\\n", " ").splitlines()]
    assert len(lines) == 7
    for line in lines[:-1]:
        ran = unnorm(*shlex.split(line)[1:])
        assert ran.code == 2
        assert re.search("no file|no folder", ran.err), ran.err
