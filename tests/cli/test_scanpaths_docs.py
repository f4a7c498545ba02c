"""docs/scanpaths.md: its Python runs, and its commands are understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "scanpaths.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", TEXT, re.S)


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
def test_python_runs(capsys):
    scope: dict = {}
    for block in blocks("python"):
        exec(compile(block, "docs/scanpaths.md", "exec"), scope)
    scores = scope["scores"]
    assert scores["information gain over uniform"][0] > scores["information gain over centre bias"][0] > 0
    assert set(scope["paths"]) >= {"chain", "step", "x", "y", "image"}
    assert "information gain over centre bias" in capsys.readouterr().out


def test_commands_are_understood(unnorm, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks("sh") for line in block.replace("\\\n", " ").splitlines()]
    assert len(lines) == 2
    for line in lines:
        ran = unnorm(*shlex.split(line)[1:])
        assert ran.code == 2
        assert re.search("no file", ran.err), ran.err
