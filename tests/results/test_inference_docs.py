"""Every code block of docs/inference.md runs, in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "inference.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert len(blocks) == 12
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/inference.md", "exec"), names)  # the documentation's own text, not a user's
    said = capsys.readouterr().out
    for word in ("of which: data", "To bring that below 5 %", "share their reference points", "bits each"):
        assert word in said
