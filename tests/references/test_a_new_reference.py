"""A reference, or a point scheme, is one file and one line: new ones pass every generic check once registered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

import jax.numpy as jnp
import numpy as np
import pytest
import reference_checks
import scheme_checks

import unnorm as un
from parts_in_contributing import example, registry_line
from unnorm.errors import CombinationError
from unnorm.references import REGISTRY, SCHEMES, BoundReference, Example, Reference


@final
@dataclass(frozen=True)
class Nearby(Reference):
    """Uniform within a tenth of a turn of the previous angle."""

    lives_on: ClassVar[str] = "a circle"

    @classmethod
    def takes(cls, domain):
        return domain.period is not None

    def bind(self, domain, obs):
        self.check_domain(domain)
        return BoundNearby(domain, self)

    @classmethod
    def examples(cls):
        return (Example(cls(), un.Circle(), order=5000, tolerance=1e-3),)


@final
class BoundNearby(BoundReference):
    @property
    def given(self):
        return "context"

    @property
    def cube_dim(self):
        return 1

    def from_unit(self, u, obs, t):
        return self.domain.wrap(obs.previous()[t] + 0.2 * self.domain.period * (u - 0.5))

    def log_density(self, y, obs, t):
        away = np.abs(self.domain.wrap(y - obs.previous()[t]))[:, 0]
        return np.where(away <= 0.1 * self.domain.period, -np.log(0.2 * self.domain.period), -np.inf)

    def describe(self):
        return "uniform within a tenth of a turn"


Ramp = example("A reference")["Ramp"]
Antithetic = example("A point scheme")["Antithetic"]


@pytest.mark.parametrize("cls", [Nearby, Ramp])
def test_a_registered_reference_passes_every_check(cls) -> None:
    with REGISTRY.including(cls):
        assert getattr(un, cls.__name__) is cls
        for one in cls.examples():
            assert one in REGISTRY.examples()
            for check in reference_checks.CHECKS:
                check(one)
        with pytest.raises(CombinationError, match=rf"Marginal does not work .*{cls.__name__}\(\)"):
            un.Marginal().bind(cls.examples()[0].domain, un.iid([0.1]))
    with pytest.raises(CombinationError, match=rf"{cls.__name__} does not work .*it lives on {cls.lives_on}"):
        cls().bind(un.Sphere(), un.iid(un.Sphere().uniform(5, 1)))


def test_a_new_reference_gives_the_same_estimates() -> None:
    model = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-1, 1))
    obs = un.iid(np.random.default_rng(2).beta(3, 2, 300) * 2 - 1)
    exact = un.fit(model, obs)
    fit = un.fit(model, obs, un.Logistic(Ramp(), total=60_000), rng=1)
    assert (np.abs(fit.estimate - exact.estimate) < 0.2 * exact.se).all()
    chain = un.transitions(np.random.default_rng(3).normal(0, 0.4, 200).cumsum() % (2 * np.pi))
    turns = un.ExponentialFamily(lambda y, x: (jnp.cos(y - x),), ("kappa",), un.Circle())
    with pytest.raises(un.errors.OutsideError, match=r"the reference has no .*density at them"):
        un.fit(turns, chain, un.Logistic(Nearby(), per_point=5), un.PerContext(), rng=1)
    mixed = un.Mixture((1, un.Uniform()), (1, Nearby()))
    ranking = un.fit(turns, chain, un.Ranking(mixed, per_point=200), rng=1)
    assert abs(ranking.estimate[0] - un.fit(turns, chain).estimate[0]) < 0.3 * ranking.se[0]


def test_a_registered_scheme_passes_every_check() -> None:
    with SCHEMES.including(Antithetic):
        assert un.Antithetic is Antithetic
        for scheme in Antithetic.examples():
            assert scheme in SCHEMES.examples()
            for check in scheme_checks.CHECKS:
                check(scheme)
    u = Antithetic().unit(None, 10, 2, False, np.random.default_rng(0))[0]
    assert u.mean(axis=0) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("heading", ["A reference", "A point scheme"])
def test_the_line_in_the_registry(heading: str) -> None:
    assert registry_line(heading) in (
        "from .ramp import Ramp as Ramp",
        "from .antithetic import Antithetic as Antithetic",
    )
    source = Path(un.references.__file__).with_name("registry.py").read_text(encoding="utf-8")
    for registry in (REGISTRY, SCHEMES):
        for name, cls in registry.items():
            assert source.count(f"from .{cls.__module__.rsplit('.', 1)[1]} import {name} as {name}\n") == 1
