"""Every code block of docs/constants.md, docs/kernels.md and docs/words.md runs, in order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def run(page: str) -> tuple[int, dict[str, Any]]:
    """How many blocks, and what they defined."""
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    blocks, names = re.findall(r"```python\n(.*?)```", text, flags=re.S), {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)  # the documentation's own text, not a user's
    return len(blocks), names


def test_constants() -> None:
    blocks, names = run("constants.md")
    assert blocks == 3
    assert names["fit"].settings["normaliser"] == {"normaliser": "Anchored"}


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # a penalised χ is said to be off
def test_kernels() -> None:
    blocks, names = run("kernels.md")
    path, ml, many = names["path"], names["ml"], names["many"]
    assert blocks == 4
    assert path.converged
    assert np.all(np.abs(path.fit.estimate - ml.estimate) < 0.045 * ml.se)
    assert np.all(np.abs(many.estimate - [2.0, 1.0]) < 3 * many.se)


def test_words() -> None:
    blocks, names = run("words.md")
    assert blocks == 2
    assert names["fit"].theta["out"].shape == (50, 8)
