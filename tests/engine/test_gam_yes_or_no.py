"""Options that are True or False refuse anything else: "no" would count as true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm._base.numerics import flag
from unnorm.errors import InputError

X = np.linspace(0.0, 1.0, 120)
FIT = un.gam("y ~ s(x, k=5) + s(z, k=5)", {"x": X, "z": np.cos(40 * X), "y": np.sin(6 * X) + 0.1 * np.cos(99 * X)})
PARTS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "predict": (FIT.predict, ("se", "unconditional")),
    "predict terms": (lambda **option: FIT.predict(kind="terms", **option), ("se", "unconditional")),
    "predict matrix": (lambda **option: FIT.predict(kind="matrix", **option), ("se", "unconditional")),
    "vcov": (FIT.vcov, ("unconditional",)),
    "draws": (lambda **option: FIT.draws(2, **option), ("unconditional",)),
    "effect": (lambda **option: FIT.effect("s(x)", [0.5], **option), ("unconditional", "simultaneous")),
    "derivative": (lambda **option: FIT.derivative("s(x)", [0.5], **option), ("unconditional", "simultaneous")),
    "concurvity": (FIT.concurvity, ("pairwise",)),
    "plot": (lambda **option: FIT.plot("s(x)", **option), ("unconditional", "simultaneous", "rug")),
}


@pytest.mark.parametrize(("part", "option"), [(part, option) for part, (_, some) in PARTS.items() for option in some])
def test_options(part: str, option: str) -> None:
    asked = PARTS[part][0]
    for odd in ("yes", 1, None):
        with pytest.raises(InputError, match=rf"^{option} must be True or False; got {odd!r}\.$"):
            asked(**{option: odd})
    asked(**{option: np.bool_(False)})
    asked(**{option: True})


def test_differences_of_levels() -> None:
    g = np.array(["a", "b"] * 60)
    fit = un.gam("y ~ g + s(x, by=g, k=5)", {"x": X, "g": g, "y": np.sin(6 * X) + 0.1 * np.cos(99 * X)})
    for option in ("simultaneous", "unconditional"):
        with pytest.raises(InputError, match=rf"^{option} must be True or False; got 'yes'\.$"):
            fit.difference("s(x):ga", "s(x):gb", **{option: "yes"})


def test_what_numpy_says_becomes_python_s() -> None:
    assert flag(np.bool_(True), "it") is True
    assert flag(np.bool_(False), "it") is False


def test_draws_leave_out_what_other_methods_do_not_have() -> None:
    fit = un.gam("y ~ s(x, k=5)", {"x": X, "y": np.sin(6 * X)}, method="GCV")
    np.testing.assert_array_equal(fit.draws(3), fit.draws(3, unconditional=False))
