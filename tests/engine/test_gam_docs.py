"""Every code block of the tutorial runs, in order."""

import re
from pathlib import Path

import pytest


def test_the_tutorial_runs(capsys):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    text = (Path(__file__).parents[2] / "docs" / "gam.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert len(blocks) > 6
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/gam.md", "exec"), names)  # the documentation's own text, not a user's
    said = capsys.readouterr().out
    assert "Deviance explained" in said
    assert "k-index" in said
    matplotlib.pyplot.close("all")
