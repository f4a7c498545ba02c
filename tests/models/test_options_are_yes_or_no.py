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
    assert json.loads(json.dumps(un.Langevin(control=numpy, precondition=numpy).to_dict()))["control"] is True
    assert un.Additive("step", un.Box((0, 1), (0, 1)), y_down=numpy).y_down is True
