"""Draws from every family with known parameters, by ways of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

import unnorm as un
from unnorm.directions.sampling import draws

d = un.directions
FRAME = np.linalg.qr(np.random.default_rng(7).normal(size=(3, 3)))[0]
E1, E2, E3 = FRAME.T


@dataclass(frozen=True)
class Law:
    """A family, how it is drawn, and its true numbers and directions, all for one κ."""

    family: d.Family
    draw: Callable[[int, np.random.Generator], np.ndarray]
    numbers: dict[str, float]
    directions: dict[str, np.ndarray]  # up to sign where they are axes; of length 1, or κμ where that is to be compared


def by_density(log_f: Callable[[np.ndarray], np.ndarray], n: int, rng: np.random.Generator) -> np.ndarray:
    """Inverse of the distribution function on 400,000 angles, spread evenly within a cell."""
    grid = np.linspace(-np.pi, np.pi, 400_001)[:-1]
    f = log_f(grid)
    p = np.exp(f - f.max())
    cell = np.searchsorted(np.cumsum(p) / p.sum(), rng.random(n))
    return grid[np.minimum(cell, len(grid) - 1)] + (rng.random(n) - 0.5) * (grid[1] - grid[0])


def unit(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle)])


def _sine(kappa: float, lam: float) -> Callable[[int, np.random.Generator], np.ndarray]:
    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        def strength(y: np.ndarray) -> np.ndarray:
            return np.hypot(kappa, lam * np.sin(y))

        first = by_density(lambda y: np.log(special.i0e(strength(y))) + strength(y) + kappa * np.cos(y), n, rng)
        second = rng.vonmises(np.arctan2(lam * np.sin(first), kappa), strength(first))
        return np.column_stack([first + 1.0, second + 3.0])

    return draw


def laws(kappa: float) -> dict[str, Law]:
    """One law of each family."""
    rho = float(special.i1e(kappa) / special.i0e(kappa))
    sigma = np.sqrt(-2 * np.log(rho))
    oval = 0.25 * kappa * (np.outer(E2, E2) - np.outer(E3, E3))
    none = np.zeros(3)

    def vmf(n: int, rng: np.random.Generator) -> np.ndarray:
        return stats.vonmises_fisher(E1, kappa).rvs(n, random_state=rng)

    return {
        "von Mises": Law(d.von_mises(), lambda n, r: r.vonmises(3.0, kappa, n), {"kappa": kappa}, {"mean": unit(3.0)}),
        "axes": Law(
            d.von_mises(un.Axis()), lambda n, r: r.vonmises(2.0, kappa, n) / 2, {"kappa": kappa}, {"mean": unit(2.0)}
        ),
        "generalised": Law(
            d.generalised_von_mises((1, 2)),
            lambda n, r: by_density(lambda y: 0.5 * np.cos(y - 0.3) + kappa * np.cos(2 * (y - 0.7)), n, r),
            {"kappa1": 0.5, "kappa2": kappa},
            {"mean1": 0.5 * unit(0.3), "mean2": unit(1.4)},
        ),
        "fourfold": Law(
            d.generalised_von_mises((4,)),
            lambda n, r: (r.vonmises(1.0, kappa, n) + 2 * np.pi * r.integers(0, 4, n)) / 4,
            {"kappa4": kappa},
            {"mean4": unit(1.0)},
        ),
        "wrapped Cauchy": Law(
            d.wrapped_cauchy(), lambda n, r: 1.0 - np.log(rho) * r.standard_cauchy(n), {"rho": rho}, {"mean": unit(1.0)}
        ),
        "wrapped normal": Law(
            d.wrapped_normal(),
            lambda n, r: r.normal(1.0, sigma, n),
            {"rho": rho, "sigma": sigma},
            {"mean": unit(1.0)},
        ),
        "von Mises–Fisher": Law(d.von_mises_fisher(), vmf, {"kappa": kappa}, {"mean": E1}),
        "Watson, poles": Law(
            d.watson(), lambda n, r: draws(none, kappa * np.outer(E1, E1), n, r), {"kappa": kappa}, {"axis": E1}
        ),
        "Watson, girdle": Law(
            d.watson(un.Axis(3)),
            lambda n, r: draws(none, -kappa * np.outer(E1, E1), n, r),
            {"kappa": -kappa},
            {"axis": E1},
        ),
        "Bingham": Law(
            d.bingham(un.Axis(3)),
            lambda n, r: draws(none, FRAME @ np.diag([-kappa, -0.4 * kappa, 0.0]) @ FRAME.T, n, r),
            {"kappa1": -kappa, "kappa2": -0.4 * kappa},
            {"axis": E3, "pole": E1},
        ),
        "Kent": Law(
            d.kent(),
            lambda n, r: draws(kappa * E1, oval, n, r),
            {"kappa": kappa, "beta": 0.25 * kappa},
            {"mean": E1, "major": E2},
        ),
        "Fisher–Bingham": Law(
            d.fisher_bingham(),
            lambda n, r: draws(2.0 * E3, FRAME @ np.diag([-kappa, -0.4 * kappa, 0.0]) @ FRAME.T, n, r),
            {"kappa": 2.0, "kappa1": -kappa, "kappa2": -0.4 * kappa},
            {"mean": E3, "axis": E3, "pole": E1},
        ),
        "sine model": Law(
            d.bivariate_von_mises(),
            _sine(kappa, 0.4 * kappa),
            {"kappa1": kappa, "kappa2": kappa, "lambda": 0.4 * kappa},
            {"mean1": unit(1.0), "mean2": unit(3.0)},
        ),
    }  # fmt: skip
