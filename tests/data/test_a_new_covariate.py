"""A covariate is one file and one line: new ones pass every generic check once registered."""

from __future__ import annotations

from pathlib import Path
from typing import final

import covariate_checks
import numpy as np
import pytest

import unnorm as un
from parts_in_contributing import example, registry_line
from unnorm.data import covariates
from unnorm.data.covariates import BUILT_INS, REGISTRY, Covariate, CovariateSet
from unnorm.data.covariates.base import Setting


@final
class Ring(Covariate):
    """1 within `radius` of the previous point, else 0."""

    needs = ("step",)

    def __init__(self, name, radius):
        self.name, self.radius = name, radius

    def values(self, rows):
        return (rows["step"] < self.radius).astype(float)

    def to_dict(self):
        return {"covariate": "Ring", "name": self.name, "radius": self.radius}

    @classmethod
    def from_dict(cls, description):
        return cls(description["name"], description["radius"])

    @classmethod
    def examples(cls):
        return (cls("near", 0.4),)


Rightward = example("A covariate")["Rightward"]


def test_a_kind_that_users_make() -> None:
    with REGISTRY.including(Ring):
        assert un.Ring is Ring
        assert Ring in map(type, REGISTRY.examples())
        for check in covariate_checks.CHECKS:
            check(Ring.examples()[0])
    with pytest.raises(un.errors.InputError, match="got 'Ring'"):
        covariates.from_dict(Ring("near", 0.4).to_dict())


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # χ does not read what f reads
def test_a_built_in() -> None:
    obs = covariate_checks.OBS
    with BUILT_INS.including(Rightward):
        assert "rightward" in CovariateSet(obs)
        (one,) = Rightward.built_in(Setting(obs))
        for check in covariate_checks.CHECKS:
            check(one)
        values = CovariateSet(obs).values("rightward", obs)["rightward"]
        assert np.array_equal(values, obs.outcome[:, 0] - obs.previous()[:, 0])
        model = un.Additive("rightward + s(step, k=5)", un.Box((0, 1), (0, 1)))
        fit = un.fit(model, obs, un.Logistic(un.Uniform(), per_point=10), un.Smooth("s(x_prev, k=5)"), rng=1)
        assert fit.converged
    assert "rightward" not in CovariateSet(obs)


def test_the_line_in_the_registry() -> None:
    assert registry_line("A covariate") == "from .rightward import Rightward as Rightward"
    folder = Path(covariates.__file__).parent
    for registry, file in ((REGISTRY, "registry.py"), (BUILT_INS, "built_ins.py")):
        source = (folder / file).read_text(encoding="utf-8")
        for name, cls in registry.items():
            assert source.count(f"from .{cls.__module__.rsplit('.', 1)[1]} import {name} as {name}\n") == 1
