"""Every code block of docs/constants.md, docs/coming.md, docs/kernels.md and docs/words.md runs, in order."""

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


def test_coming() -> None:
    """The figures of R on the page, to the digits that it shows."""
    text = (Path(__file__).parents[2] / "docs" / "coming.md").read_text(encoding="utf-8")
    blocks: list[str] = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    names: dict[str, Any] = {}
    assert len(blocks) == 7
    for i, block in enumerate(blocks):
        exec(compile(block, "coming.md", "exec"), names)
        if i == 0:  # mgcv's; later blocks use its names again
            np.testing.assert_allclose(names["at"].estimate, [1.3310322, -0.3021978], atol=1e-6)
            np.testing.assert_allclose(names["at"].se, [0.07916010, 0.07894773], atol=1e-6)
            np.testing.assert_allclose(list(names["m"].edf.values()), [6.567288, 2.957808], atol=1e-4)
    np.testing.assert_allclose(names["ranking"].estimate, [0.9574328, 3.8233658], atol=1e-6)  # survival's
    np.testing.assert_allclose(names["ranking"].se, [0.3533176, 1.0389209], atol=1e-6)
    np.testing.assert_allclose(names["fit"].estimate, [2.18, -0.02], atol=0.006)
    assert names["draws"].shape == (100, 200)
    assert names["mcmle"].converged


def test_words() -> None:
    blocks, names = run("words.md")
    assert blocks == 2
    assert names["fit"].theta["out"].shape == (50, 8)
