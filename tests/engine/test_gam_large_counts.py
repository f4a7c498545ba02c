"""Counts of millions: weights of rows span many orders of magnitude, and penalties are 10⁻⁹ of the information."""

import csv
import json
from fractions import Fraction
from math import log
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm.engine.arrow import Arrow
from unnorm.engine.core import build_design, smooth_fit
from unnorm.engine.criteria import Working, solve
from unnorm.errors import NotIdentifiedError, UnnormWarning
from unnorm.terms.parser import parse

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
FITS = json.loads((HERE / "counts.json").read_text())["fits"]


def table(number):
    with (HERE / "counts_rows.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == str(number)]
    return {
        "x": np.array([float(row["x"]) for row in rows]),
        "g": np.array([row["g"] for row in rows]),
        "count": np.array([float(row["count"]) for row in rows]),
    }


def counted(seed, n, levels, noise):
    """Counts of up to 4 million: a level and a curve for each group, and noise that is lognormal."""
    rng = np.random.default_rng(seed)
    x, g = rng.uniform(size=n), rng.integers(0, levels, n)
    eta = 3 * rng.normal(size=levels)[g] + np.sin(6 * x + rng.uniform(0, 6, levels)[g]) + noise * rng.normal(size=n)
    y = rng.poisson(np.exp(eta - eta.max() + np.log(4e6)))
    return {"x": x, "g": np.array([f"l{i:02d}" for i in g]), "y": y.astype(float)}


@pytest.mark.parametrize("f", FITS, ids=lambda f: f"{f['table']}: {f['formula']}")
def test_same_fit(f):
    fit = un.gam(f["formula"], table(f["table"]), family="poisson")
    at = np.array(f["rows"])
    eta, se = fit.predict()
    assert fit.converged
    assert fit.score == pytest.approx(f["score"], abs=1e-3)
    assert np.sqrt(np.mean(((eta[at] - f["eta"]) / f["se"]) ** 2)) < 0.001
    assert np.sqrt(np.mean((se[at] / f["se"] - 1.0) ** 2)) < 0.001
    assert fit.edf_total == pytest.approx(f["edf_total"], rel=1e-5)


# refused as not identified, or not converged, as β̂ itself was known to .05 nats only
@pytest.mark.parametrize(
    ("formula", "case"),
    [
        ("y ~ s(x, g, bs='fs', m=1)", (1, 200, 20, 1.5)),
        ("y ~ s(x, g, bs='fs', m=1)", (2, 200, 20, 1.5)),
        ("y ~ s(x) + s(x, g, bs='fs', m=1)", (1, 120, 10, 1.5)),
        ("y ~ s(g, bs='re') + s(x, g, bs='fs', m=1)", (0, 60, 5, 0.0)),
        ("y ~ s(g, bs='re') + s(x, g, bs='fs', m=1)", (1, 400, 20, 0.1)),
    ],
)
def test_converges(formula, case):
    assert un.gam(formula, counted(*case), family="poisson").converged


def test_the_remedies_that_are_named_work():
    """Noise that Poisson counts do not have, followed row by row: hardly a fit to be had, but by what is named."""
    formula, data = "y ~ s(x, g, bs='fs', m=1)", counted(3, 200, 20, 1.5)
    (term,) = parse(formula.split("~")[1]).build(data)
    with pytest.warns(UnnormWarning, match=r"take family='nb'.*a smaller k.*fix larger smoothing parameters"):
        rough = smooth_fit(build_design([term], data), data["y"], "poisson", max_outer=12)
    assert un.gam(formula, data, family="nb").converged
    assert un.gam("y ~ s(x, g, bs='fs', m=1, k=4)", data, family="poisson").converged
    assert un.gam(formula, data, family="poisson", sp=1e4 * np.exp(rough.rho)).converged


def test_a_step_of_nothing_is_nothing():
    """β(ρ) at the fit's own ρ is β̂ to rounding: it is β_k and a step, not P r, whose rounding is all of r's."""
    data = counted(1, 400, 20, 0.1)
    terms = parse("s(x, g, bs='fs', m=1)").build(data)
    fit = smooth_fit(build_design(terms, data), data["y"], "poisson")
    design, lam = fit.design, np.exp(fit.rho)
    beta = design.to_flat(fit.beta)
    score = design.penalties.columns(beta) @ lam  # that of β̂, exactly
    working = Working(beta, 0.0, score, fit.cross, 0.0, fit.rows, True, np.zeros(design.size))
    step = solve(working, design.penalties, fit.rho).beta - beta
    assert float(step @ fit.cross.dot(step)) < 1e-16


def test_levels_and_a_factor_are_still_refused():
    data = counted(1, 400, 8, 0.1)
    with pytest.raises(NotIdentifiedError, match="'twice'"):
        un.gam("y ~ x + twice + s(x, g, bs='fs', m=1)", {**data, "twice": 2 * data["x"]}, family="poisson")


def _log_determinant(matrix):
    """Of a matrix of numbers, exactly, by elimination."""
    a, out = [[Fraction(float(x)) for x in row] for row in matrix], 0.0
    for i in range(len(a)):
        out += log(a[i][i].numerator) - log(a[i][i].denominator)
        for j in range(i + 1, len(a)):
            if ratio := a[j][i] / a[i][i]:
                a[j] = [x - ratio * y for x, y in zip(a[j], a[i])]
    return out


@pytest.mark.parametrize("sizes", [(4,) * 8, (4, 5, 4, 3)], ids=["alike", "not alike"])
def test_what_levels_leave_of_an_intercept(sizes):
    """The intercept is a column of each level, and only a ridge tells them apart: little of the information is left."""
    rng = np.random.default_rng(1)
    own, cross, total = [], [], 0.0
    for k in sizes:
        X = np.stack([np.linspace(0, 1, 12) ** j for j in range(k)], axis=1)
        w = 10.0 ** rng.uniform(0, 6.5, len(X))
        own.append(X.T @ (w[:, None] * X) + 1e-2 * np.eye(k))
        cross.append((X.T @ w)[:, None])
        total += w.sum()
    arrow = Arrow(np.array([[total]]), tuple(own), tuple(cross))
    inverse, dense = arrow.invert(), arrow.dense()
    assert inverse.logdet == pytest.approx(_log_determinant(dense), abs=1e-6)
    left = np.exp(_log_determinant(dense) - sum(_log_determinant(block) for block in own))
    assert left < 1e-7 * total
    assert inverse.sigma[0, 0] == pytest.approx(1.0 / left, rel=1e-6)
