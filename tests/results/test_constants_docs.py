"""Every code block of docs/constants.md runs, in order."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_page_runs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "constants.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert len(blocks) == 3
    names: dict = {}
    for block in blocks:
        exec(compile(block, "docs/constants.md", "exec"), names)  # the documentation's own text, not a user's
    assert names["fit"].settings["normaliser"] == {"normaliser": "Anchored"}
