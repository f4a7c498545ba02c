"""`Terms.build(ends=)`: what comes before the ends of a domain, and that smooths which share a basis have them too."""

from __future__ import annotations

import numpy as np
import pytest

from unnorm.terms import parse

ROWS = {name: np.random.default_rng(i).uniform(0.5, 1.5, 60) for i, name in enumerate("xz")}


def closing(text: str, **options: object) -> list[list[float]]:
    built = parse(text).build(ROWS, ends=lambda name: (0.0, 2.0, True), **options)  # pyright: ignore[reportArgumentType]
    return [[float(term.breaks[0]), float(term.breaks[-1])] for term in built if term.breaks is not None]


@pytest.mark.parametrize("bs", ["cc", "cp"])
def test_knots_come_first_then_periods_then_ends(bs: str) -> None:
    term = f"s(x, bs='{bs}', k=5)"
    assert closing(term) == [[0.0, 2.0]]
    assert closing(term, periods={"x": (0.0, 4.0)}) == [[0.0, 4.0]]
    assert closing(term, periods={"x": (0.0, 4.0)}, knots={"x": (0.0, 3.0)}) == [[0.0, 3.0]]


def test_smooths_that_share_a_basis() -> None:
    text = "s(x, bs='cc', k=5, id=1) + s(z, bs='cc', k=5, id=1)"
    assert closing(text, links=True) == [[0.0, 2.0], [0.0, 2.0]]
