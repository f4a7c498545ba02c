"""A domain is one file and one line: two that unnorm has never seen pass every generic check once registered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

import jax.numpy as jnp
import numpy as np
import pytest
from domain_checks import CHECKS

import unnorm as un
from parts_in_contributing import example, registry_line
from unnorm.domains import REGISTRY, Domain, Quadrature
from unnorm.domains.base import outcomes, unit_points
from unnorm.errors import InputError


@final
@dataclass(frozen=True)
class Ranks(Domain):
    """{1, …, k} with counting measure."""

    k: int
    dim = 1
    scalar = True
    finite = True

    @property
    def volume(self) -> float:
        return float(self.k)

    def contains(self, y: np.ndarray) -> np.ndarray:
        y = outcomes(y, self)[:, 0]
        return (y >= 1) & (y <= self.k) & (y == np.round(y))

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        return 1.0 + np.minimum(np.floor(unit_points(u, self) * self.k), self.k - 1)

    def quadrature(self, order: int | None = None) -> Quadrature:
        return Quadrature(np.arange(1.0, self.k + 1)[:, None], np.ones(self.k), True, f"enumeration of {self.k} ranks")

    @classmethod
    def examples(cls) -> tuple[Domain, ...]:
        return (cls(5),)


Scale = example("A domain")["Scale"]


@pytest.mark.parametrize("cls", [Ranks, Scale])
def test_a_registered_domain_passes_every_check(cls: type[Domain]) -> None:
    with REGISTRY.including(cls):
        assert getattr(un, cls.__name__) is cls
        assert cls.__name__ in un.__all__
        for domain in cls.examples():
            assert domain in REGISTRY.examples()
            for check in CHECKS:
                check(domain)
    assert not hasattr(un, cls.__name__)
    with pytest.raises(InputError, match=f"got '{cls.__name__}'"):
        un.domains.from_dict(cls.examples()[0].to_dict())


@pytest.mark.parametrize("cls", [Ranks, Scale])
def test_a_uniform_reference_lives_on_it(cls: type[Domain]) -> None:
    with REGISTRY.including(cls):
        assert cls in {type(one.domain) for one in un.Uniform.examples()}
    domain = cls.examples()[0]
    q = un.Uniform().bind(domain, un.iid(domain.uniform(10, 0)))
    assert np.exp(q.log_density(domain.uniform(3, 1), un.iid([1.0]), np.zeros(3, int))) == pytest.approx(
        1 / domain.volume
    )


def test_a_model_is_fitted_on_it() -> None:
    """p(y) ∝ y^θ with respect to dy/y: log y is a truncated exponential law, whose likelihood is written out here."""
    from scipy.optimize import minimize_scalar

    omega = Scale(1.0, 10.0)
    model = un.ExponentialFamily(lambda y: (jnp.log(y),), ("theta",), omega)
    y = np.exp(np.random.default_rng(1).random(400) ** 0.6 * np.log(10.0))

    def minus(theta: float) -> float:
        return np.log((10.0**theta - 1.0) / theta) - theta * np.log(y).mean()

    best = minimize_scalar(minus, (0.5, 1.0)).x
    exact = un.fit(model, un.iid(y))
    assert exact.estimate == pytest.approx([best], abs=1e-5)
    contrast = un.fit(model, un.iid(y), un.Logistic(un.Uniform(), total=40_000), rng=1)
    assert abs(contrast.estimate[0] - best) < 0.2 * exact.se[0]


def test_the_line_in_the_registry() -> None:
    assert registry_line("A domain") == "from .scale import Scale as Scale"
    source = Path(un.domains.__file__).with_name("registry.py").read_text(encoding="utf-8")
    for name, cls in REGISTRY.items():
        assert source.count(f"from .{cls.__module__.rsplit('.', 1)[1]} import {name} as {name}\n") == 1
