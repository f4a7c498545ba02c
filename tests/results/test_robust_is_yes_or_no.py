"""robust= is True or False: any text, "no" too, would count as true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import InputError, hush

WALK = un.transitions(un.datasets.toy_chain(150, 0.5, 5.0, rng=1))
TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), un.Interval(-1, 1))
UNIT = un.Box((0, 1), (0, 1))
PLAIN = un.fit(TOY, WALK, un.Logistic(per_point=2), rng=1)
with hush():
    CURVE = un.fit(un.Additive("s(y, k=5)", un.Interval(-1, 1)), WALK, un.Logistic(per_point=2), rng=1)
    POINTS = un.pattern(np.random.default_rng(1).random((60, 2)), window=UNIT)
    PLACES = un.fit_pattern(POINTS, "x", dummies=400, rng=1)
TURNS = un.fit_direction(un.directions.von_mises(un.Circle()), un.iid(WALK.outcome[:, 0]))
PARTS: dict[str, Callable[..., Any]] = {
    "Fit.tidy": PLAIN.tidy,
    "Fit.wald": lambda robust: PLAIN.wald("a", robust=robust),
    "Fit.effect": lambda robust: CURVE.effect("s(y)", [0.0], robust=robust),
    "Fit.effect over observations": lambda robust: CURVE.effect("s(y)", [0.0], centre="observations", robust=robust),
    "Fit.contrast": lambda robust: CURVE.contrast({"y": 0.0}, {"y": 0.5}, robust=robust),
    "PatternFit.tidy": PLACES.tidy,
    "PatternFit.wald": lambda robust: PLACES.wald("x", robust=robust),
    "PatternFit.trend": lambda robust: PLACES.trend(4, robust=robust),
    "PatternFit.effect": lambda robust: PLACES.effect("x", 4, robust=robust),
    "DirectionFit.tidy": lambda robust: TURNS.tidy(robust=robust),
}


@pytest.mark.parametrize("part", PARTS)
def test_robust(part: str) -> None:
    asked = PARTS[part]
    for odd in ("no", 0, None):
        with pytest.raises(InputError, match=rf"^robust must be True or False; got {odd!r}\.$"):
            asked(robust=odd)
    for said in (True, np.bool_(False)):
        asked(robust=said)
