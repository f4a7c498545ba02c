"""Options of models, comparisons and samplers that are True or False refuse anything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import InputError

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), un.Interval(-1, 1))
WALK = un.transitions(un.datasets.toy_chain(80, 0.5, 5.0, rng=1))
SPECS = {"few": {"objective": un.Logistic(per_point=2), "normaliser": un.Smooth("s(y_prev, k=4)")}}
PARTS: dict[str, Callable[..., Any]] = {
    "y_down": lambda **option: un.Additive("step", un.Box((0, 1), (0, 1)), **option),
    "share_references": lambda **option: un.compare(TOY, WALK, SPECS, rng=1, **option),
    "diagonal of Gaussian": lambda **option: un.Gaussian(diagonal=option["diagonal of Gaussian"]),
    "loglik of MonteCarloML": lambda **option: un.MonteCarloML(loglik=option["loglik of MonteCarloML"]),
    "check of Custom": lambda **option: un.Custom(lambda *_: 0.0, lambda *_: 0.0, check=option["check of Custom"]),
    "reference_error of Smoothing": lambda **option: un.Smoothing(reference_error=next(iter(option.values()))),
    "mean": lambda **option: un.directions.chain(**option),
    "progress": un.SGD,
    "control": un.Langevin,
    "precondition": un.Langevin,
}


@pytest.mark.parametrize("option", PARTS)
def test_options(option: str) -> None:
    for odd in ("no", 0, None):
        with pytest.raises(InputError, match=rf"^{option} must be True or False; got {odd!r}\.$"):
            PARTS[option](**{option: odd})
    for said in (True, np.bool_(False)):
        PARTS[option](**{option: said})


def test_those_of_numpy_become_python_s_which_files_hold() -> None:
    numpy: Any = np.bool_(True)
    kept = (un.Langevin(control=numpy), un.Gaussian(diagonal=numpy), un.MonteCarloML(loglik=numpy))
    for one in kept:
        assert json.dumps(one.to_dict())
    assert un.SGD(precondition=numpy).precondition is True
    assert un.directions.chain(mean=numpy).to_dict()["mean"] is True
    with pytest.raises(InputError, match=r"^precondition must be True or False; got 'no'\.$"):
        un.SGD(precondition="no")  # pyright: ignore[reportArgumentType]
    assert un.Additive("step", un.Box((0, 1), (0, 1)), y_down=numpy).y_down is True
