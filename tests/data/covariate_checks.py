"""What every covariate promises. Each check takes one covariate; the generic tests run them over the registry."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.data.covariates import Covariate, CovariateSet, from_dict
from unnorm.errors import InputError


def observations() -> un.Observations:
    """Planar transitions in [0, 1]², as `Covariate.examples` promises."""
    rng = np.random.default_rng(8)
    n = 60
    data = {"x": rng.random(n), "y": rng.random(n), "image": np.repeat([0, 1], n // 2), "wait": rng.random(n)}
    return un.transitions(data, y=("x", "y"), group="image", extra="wait", lags=2)


OBS = observations()
CENTRE = (0.5, 0.5)


def own(covariate: Covariate) -> CovariateSet:
    """The covariates with this one among them; a built-in is there already."""
    known = CovariateSet(OBS, centre=CENTRE)
    return known if covariate.name in known else CovariateSet(OBS, [covariate], centre=CENTRE)


def values_are_one_for_each_row(covariate: Covariate) -> None:
    """Whatever the rows that are asked for together."""
    known = own(covariate)
    rng = np.random.default_rng(1)
    t, y = rng.integers(0, OBS.n, 200), rng.random((200, 2))
    together = known.values(covariate.name, OBS, y, t)[covariate.name]
    assert together.shape == (200,)
    assert np.isfinite(together.astype(float)).all()
    for i in range(5):
        assert known.values(covariate.name, OBS, y[[i]], t[[i]])[covariate.name][0] == together[i]
    at_data = known.values(covariate.name, OBS)[covariate.name]
    every = np.arange(OBS.n)
    assert np.array_equal(known.values(covariate.name, OBS, OBS.outcome, every)[covariate.name], at_data)


def dependence_is_as_stated(covariate: Covariate) -> None:
    """`context_only`: the values do not move with y; otherwise they do."""
    known = own(covariate)
    rng = np.random.default_rng(2)
    t = np.arange(OBS.n)
    first, second = (known.values(covariate.name, OBS, rng.random((OBS.n, 2)), t)[covariate.name] for _ in range(2))
    assert np.array_equal(first, second) == known.context_only(covariate.name)
    if covariate.period is not None:
        assert np.ptp(first) <= covariate.period


def names_are_known(covariate: Covariate) -> None:
    known = own(covariate)
    assert covariate.name.isidentifier()
    assert covariate.name in known
    assert covariate.available
    assert "\n" not in repr(covariate)
    assert len(repr(covariate)) < 200


def saved_and_read_back(covariate: Covariate) -> None:
    description = covariate.to_dict()
    if description is None:
        with pytest.raises(InputError, match=r"is not saved: make it again"):
            type(covariate).from_dict({})
        return
    again = from_dict(description)
    known = own(covariate).values(covariate.name, OBS)[covariate.name]
    assert np.array_equal(own(again).values(again.name, OBS)[again.name], known)


CHECKS = (values_are_one_for_each_row, dependence_is_as_stated, names_are_known, saved_and_read_back)
