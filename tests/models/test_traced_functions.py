"""A user's function that JAX cannot trace gets a sentence that says what to write."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import unnorm as un
from unnorm.errors import InputError

LINE = un.Interval(0, 1)
OBS = un.transitions(np.random.default_rng(1).uniform(size=40))
WRONG = {
    "numpy": lambda y, x: (np.sin(y),),
    "math": lambda y, x: (math.sin(y),),
    "if": lambda y, x: (y if y > 0.5 else 0.0,),
}


@pytest.mark.parametrize("name", WRONG)
def test_statistics_that_are_not_jax(name: str) -> None:
    with pytest.raises(InputError, match=r"statistics must be written with JAX.*jnp\.sin\(y\) for np\.sin\(y\)"):
        un.fit(un.ExponentialFamily(WRONG[name], ("a",), LINE), OBS)


def test_the_remedy_works() -> None:
    fit = un.fit(un.ExponentialFamily(lambda y, x: (jnp.where(y > 0.5, jnp.sin(y), 0.0),), ("a",), LINE), OBS)
    assert np.isfinite(fit.estimate).all()


def test_energies_and_keys_that_are_missing() -> None:
    def wrong(t: Any, y: Any, x: Any) -> Any:
        return t["a"] * math.exp(y)

    with pytest.raises(InputError, match="f must be written with JAX"):
        un.fit(un.Energy(wrong, {"a": 1.0}, LINE), OBS)
    with pytest.raises(InputError, match="f asks for 'b', which is neither among its parameters nor in the context"):
        un.fit(un.Energy(lambda t, y, x: t["b"] * y, {"a": 1.0}, LINE), OBS)
