"""95 % intervals of every other family cover 93 to 97 %: wrapped and generalised laws, axes, torus, Kent, Bingham,
Watson, Fisher–Bingham, regressions.

UNNORM_REPS sets the number of simulated sets of each kind: 400 unless told.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

import unnorm as un
from directions.direction_laws import E1, E2, E3, FRAME, Law, by_density, laws

pytestmark = pytest.mark.slow
d = un.directions
FITS = int(os.environ.get("UNNORM_REPS", "400"))


def held(fit: un.DirectionFit, numbers: dict[str, float], directions: dict[str, np.ndarray]) -> dict[str, bool]:
    """Whether each interval holds its number, each angle's its angle, each cone its direction or axis."""
    rows = {row.name: row for row in fit.rows()}
    out = {name: rows[name].lower <= value <= rows[name].upper for name, value in numbers.items()}
    for name, value in directions.items():
        quantity = next(one for one in fit.family.quantities if one.name == name)
        if len(value) == 2:
            period = getattr(quantity, "period", 2 * np.pi)
            angle = np.arctan2(*value[::-1]) * period / (2 * np.pi)
            row = rows[name]
            out[name] = row.note is not None or (angle - row.lower) % period <= (row.upper - row.lower) % period
            continue
        cone = fit.cone(name)
        if cone is None:
            out[name] = True
            continue
        v = value * (np.sign(value @ cone.centre) if getattr(quantity, "axial", False) else 1.0)
        along = v - (v @ cone.centre) * cone.centre
        angle = np.arctan2(np.linalg.norm(along), v @ cone.centre)
        u = along / max(np.linalg.norm(along), 1e-300) * angle
        out[name] = bool(np.sum(((cone.axes @ u) / cone.angles) ** 2) <= 1.0)
    return out


def check(what: str, counts: dict[str, int]) -> None:
    found = {name: count / FITS for name, count in counts.items()}
    print(f"{what}: {found}")
    slack = 2.5 * np.sqrt(0.95 * 0.05 / FITS)
    assert all(0.93 - slack <= share <= 0.97 + slack for share in found.values()), found


def run(what: str, law: Law, n: int, seed: int) -> None:
    rng, counts = np.random.default_rng(seed), dict.fromkeys((*law.numbers, *law.directions), 0)
    for _ in range(FITS):
        fit = un.fit_direction(law.family, un.iid(law.draw(n, rng), unit="radians"))
        for name, inside in held(fit, law.numbers, law.directions).items():
            counts[name] += inside
    check(what, counts)


PLANE = ("axes", "fourfold", "wrapped Cauchy", "wrapped normal", "sine model")
SPACE = ("Watson, poles", "Watson, girdle", "Bingham", "Kent")


@pytest.mark.parametrize(("name", "kappa"), [(name, kappa) for name in (*PLANE, *SPACE) for kappa in (2.0, 100.0)])
def test_family(name: str, kappa: float) -> None:
    run(f"{name}, κ = {kappa:g}", laws(kappa)[name], 400 if kappa < 10 else 150, 31)


def test_generalised() -> None:
    law = Law(
        d.generalised_von_mises((1, 2)),
        lambda n, r: by_density(lambda y: np.cos(y - 0.3) + 0.8 * np.cos(2 * (y - 0.7)), n, r),
        {"kappa1": 1.0, "kappa2": 0.8},
        {"mean1": np.array([np.cos(0.3), np.sin(0.3)]), "mean2": np.array([np.cos(1.4), np.sin(1.4)])},
    )
    run("generalised, κ = 1, 0.8", law, 400, 32)


def test_fisher_bingham() -> None:
    from unnorm.directions.sampling import draws

    B = FRAME @ np.diag([-6.0, -2.5, 0.0]) @ FRAME.T
    law = Law(
        d.fisher_bingham(),
        lambda n, r: draws(1.5 * E2, B, n, r),
        {"kappa": 1.5, "kappa1": -6.0, "kappa2": -2.5},
        {"mean": E2, "axis": E3, "pole": E1},
    )
    run("Fisher–Bingham", law, 600, 33)


def regressed(what: str, family: d.Family, draw: Callable, truth: dict[str, float], n: int, seed: int) -> None:
    rng, counts = np.random.default_rng(seed), dict.fromkeys(truth, 0)
    for _ in range(FITS):
        x = rng.normal(size=n)
        obs = un.conditional(draw(x, rng), x={"x": x}, unit="radians" if not family.domain.sphere else None)
        for name, inside in held(un.fit_direction(family, obs), truth, {}).items():
            counts[name] += inside
    check(what, counts)


@pytest.mark.parametrize("kappa", [1.0, 50.0])
def test_regression(kappa: float) -> None:
    regressed(
        f"Fisher–Lee, κ = {kappa:g}",
        d.regression("x", dispersion="x"),
        lambda x, r: 1.0 + 2 * np.arctan(0.6 * x) + r.vonmises(0.0, kappa * np.exp(0.2 * x)),
        {"mean": 1.0, "kappa": kappa, "x": 0.6, "log kappa: x": 0.2},
        200,
        34,
    )


def test_spherical_regression() -> None:
    m, east, north = np.array([0.6, 0.0, 0.8]), np.array([0.0, 1.0, 0.0]), np.array([-0.8, 0.0, 0.6])

    def draw(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        u = np.outer(x, [0.5, 0.3])
        s = (u**2).sum(axis=1, keepdims=True)
        mu = ((1 - s) * m + 2 * (u[:, :1] * east + u[:, 1:] * north)) / (1 + s)
        about = stats.vonmises_fisher(np.array([0.0, 0.0, 1.0]), 8.0).rvs(len(x), random_state=rng)
        e = np.cross(mu, [0.3, -0.5, 0.8])
        e /= np.linalg.norm(e, axis=1, keepdims=True)
        return about[:, :1] * e + about[:, 1:2] * np.cross(mu, e) + about[:, 2:] * mu

    regressed(
        "regression on the sphere",
        d.regression("x", domain=un.Sphere()),
        draw,
        {"kappa": 8.0, "x east": 0.5, "x north": 0.3},
        200,
        35,
    )
