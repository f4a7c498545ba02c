"""An additive model whose curves lie in the span of its bases: with all defaults, curves, bands and edf are those of
exact penalised maximum likelihood (REML).

f = g(y) + h(|y − x|) on [0, 1], g and h natural cubic splines on the knots of their terms.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from against import SHIFT, WORSE
from calibration import REPS, SEED
from scipy.interpolate import CubicSpline

import unnorm as un

pytestmark = pytest.mark.slow

MOST, PLACES = 200, 20  # repetitions; observed values at which the shift is looked at
BANDS, LEAST, EDF = 0.02, 0.92, 0.1  # cover of bands beside ML's, least cover, relative difference of mean edf
LINE, KNOTS = un.Interval(0, 1), np.linspace(0, 1, 8)
G = CubicSpline(KNOTS, [0.0, 0.9, 1.2, 0.5, -0.4, -0.6, 0.1, 0.5], bc_type="natural")
H = CubicSpline(KNOTS, [0.0, -1.2, -2.0, -1.6, -1.9, -3.0, -3.8, -4.5], bc_type="natural")
GAP = un.Expression("gap", "abs(y - y_prev)")
MODEL = un.Additive(
    "s(y, bs='cr', k=8) + s(gap, bs='cr', k=8)", LINE, covariates=[GAP], knots={"y": KNOTS, "gap": KNOTS}
)
TRUE = {"s(y)": ("y", G), "s(gap)": ("gap", H)}


def chain(rng: np.random.Generator, n: int = 400) -> un.Observations:
    grid = np.linspace(0, 1, 1001)
    own, y = G(grid), [0.5]
    for u in rng.random(n):
        p = np.exp(own + H(np.abs(grid - y[-1])))
        total = np.concatenate([[0.0], np.cumsum(p[1:] + p[:-1])])
        y.append(float(np.interp(u * total[-1], total, grid)))
    return un.transitions(np.array(y))


def observed(obs: un.Observations, label: str) -> np.ndarray:
    """The values of the term's covariate in the data, in order."""
    y = obs.outcome[:, 0]
    return np.sort(y if TRUE[label][0] == "y" else np.abs(y - obs.previous()[:, 0]))


def curve(fit: un.Fit, obs: un.Observations, label: str) -> tuple[np.ndarray, np.ndarray, float, float, float]:
    """At the observed values, centred over them: the curve and its se; mean square error, cover of the band, edf."""
    at = observed(obs, label)
    table = fit.effect(label, at=at, centre="observations")
    truth = TRUE[label][1](at)
    truth = truth - truth.mean()
    estimate, se, lower, upper = (np.asarray(table[what]) for what in ("estimate", "se", "lower", "upper"))
    cover = np.mean((lower <= truth) & (truth <= upper))
    return estimate, se, float(np.mean((estimate - truth) ** 2)), float(cover), float(fit.edf[label])


def one(i: int) -> dict[str, np.ndarray]:
    """(curves, PLACES) shifts in se; (curves, 2) mean squares, covers and edf of the default and of exact ML."""
    obs = chain(np.random.default_rng([SEED, 3, i]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The normalising integrals are off by up to 0.00", un.errors.UnnormWarning)
        exact = un.fit(MODEL, obs, un.Exact(order=200))
    fit = un.fit(MODEL, obs, un.Logistic(per_point=20), rng=np.random.default_rng([SEED, 4, i]))
    assert fit.converged
    assert exact.converged
    found: dict[str, list[object]] = {"shift": [], "square": [], "cover": [], "edf": []}
    some = np.linspace(0, obs.n - 1, PLACES).astype(int)
    for label in TRUE:
        (a, _, *mine), (b, se, *its) = curve(fit, obs, label), curve(exact, obs, label)
        found["shift"].append(((a - b) / se)[some])
        for name, pair in zip(("square", "cover", "edf"), zip(mine, its)):
            found[name].append(pair)
    return {name: np.array(values) for name, values in found.items()}


def test_curves_are_those_of_exact_penalised_likelihood() -> None:
    runs = [one(i) for i in range(min(REPS, MOST))]
    R = len(runs)
    found = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    for j, label in enumerate(TRUE):
        shift = found["shift"][:, j]
        worst = np.argmax(np.abs(shift.mean(axis=0)))
        mean, error = shift.mean(axis=0)[worst], 3 * shift.std(axis=0)[worst] / np.sqrt(R)
        mine, its = found["square"][:, j].T
        worse = np.sqrt(mine.mean() / its.mean())
        noise = 3 * np.std(mine - worse**2 * its) / np.sqrt(R) / (2 * worse * its.mean())
        cover, cover_ml = found["cover"][:, j].T
        gap, least = (3 * np.std(values) / np.sqrt(R) for values in (cover - cover_ml, cover))
        edf, edf_ml = found["edf"][:, j].mean(axis=0)
        print(f"\n{label}: largest mean shift {mean:+.3f} ± {error:.3f} se (band ±{SHIFT}), rmse {worse:.3f} ± "
              f"{noise:.3f} of ML's (at most {WORSE}), cover of the band {cover.mean():.3f} ± {least:.3f} (at least "
              f"{LEAST}; ML's {cover_ml.mean():.3f}, the difference ± {gap:.3f}), edf {edf:.2f} (ML's {edf_ml:.2f}), "
              f"{R} data sets")  # fmt: skip
        assert abs(mean) <= SHIFT + error
        assert worse <= WORSE + noise
        assert abs(cover.mean() - cover_ml.mean()) <= BANDS + gap
        assert cover.mean() >= LEAST - least
        assert abs(edf / edf_ml - 1) <= EDF
