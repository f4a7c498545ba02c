"""Penalties whose eigenvalues span many orders of magnitude: ranks are known, never estimated (tests/oracles/mgcv)."""

import csv
import itertools
import json
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm.engine.core import build_design
from unnorm.terms import Terms, s, te

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
FITS = {fit["formula"]: fit for fit in json.loads((HERE / "ranks.json").read_text())["fits"]}
SAME = [name for name, fit in FITS.items() if not fit["dropped"]]
# mgcv takes one eigenvalue, 1e-11 of the largest, for zero (eps^.66 in totalPenaltySpace); `test_log_determinant`
# shows that it is not
DROPPED = [name for name, fit in FITS.items() if fit["dropped"]]


@cache
def data(name):
    with (HERE / f"ranks_{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


@pytest.mark.parametrize("name", SAME)
def test_same_fit(name):
    f = FITS[name]
    fit = un.gam(name, data(f["data"]), family=f["family"])
    rows = np.array(f["rows"])
    eta, se = fit.predict()
    assert fit.score == pytest.approx(f["score"], abs=1e-3)
    assert np.sqrt(np.mean(((eta[rows] - f["eta"]) / f["se"]) ** 2)) < 0.005
    assert np.sqrt(np.mean((se[rows] / f["se"] - 1.0) ** 2)) < 0.005
    assert fit.edf_total == pytest.approx(f["edf_total"], rel=1e-3)


@pytest.mark.parametrize("cells", [1023, 1024, 5000, 100_000])
def test_the_last_row_stays_in_the_last_cell(cells):
    """cell + t is one number, and must not round up: the cell beyond the last is not there to be written to."""
    from unnorm.engine.arrange_kernels import locate

    breaks, u = np.linspace(0.0, 1.0, cells + 1), np.empty((3, 1))
    assert locate(np.array([0.0, 0.5, 1.0]), np.empty(0, np.int32), breaks, 0.0, u, 0) == 0
    assert u[2, 0] < cells
    assert u[2, 0] == pytest.approx(cells, abs=1e-8)


def test_mcycle_does_not_depend_on_k():
    scores = [un.gam(f"accel ~ s(times, k={k})", data("mcycle")).score for k in (30, 60, 90)]
    np.testing.assert_allclose(scores, 618.103, atol=1e-3)


@pytest.mark.parametrize("name", DROPPED)
def test_where_mgcv_drops_an_eigenvalue(name):
    f = FITS[name]
    fit = un.gam(name, data(f["data"]), family=f["family"])
    free = un.gam(name, data(f["data"]), family=f["family"], sp=f["sp"])
    assert fit.score < free.score  # the criterion with all eigenvalues has its minimum elsewhere
    assert abs(fit.score - f["score"]) > 5.0


def _determinant(matrix):
    """Of a matrix of fractions, by elimination."""
    a, out = [list(row) for row in matrix], Fraction(1)
    for i in range(len(a)):
        out *= a[i][i]  # positive definite: no pivot is zero
        for j in range(i + 1, len(a)):
            ratio = a[j][i] / a[i][i]
            a[j] = [x - ratio * y for x, y in zip(a[j], a[i])]
    return out


def _log(x):
    from math import log

    return log(x.numerator) - log(x.denominator)


def _exact_log_determinant(knots, Q):
    """log|EQQᵀEᵀ| for E = L⁻¹D, B = LLᵀ: log|D QQᵀ Dᵀ| − log|B|, in fractions (Q as given, exactly)."""
    x = [Fraction(float(v)) for v in knots]
    h = [b - a for a, b in itertools.pairwise(x)]
    k = len(x)
    D = [[Fraction(0)] * k for _ in range(k - 2)]
    B = [[Fraction(0)] * (k - 2) for _ in range(k - 2)]
    for j in range(k - 2):
        D[j][j], D[j][j + 1], D[j][j + 2] = 1 / h[j], -1 / h[j] - 1 / h[j + 1], 1 / h[j + 1]
        B[j][j] = (h[j] + h[j + 1]) / 3
        if j + 1 < k - 2:
            B[j][j + 1] = B[j + 1][j] = h[j + 1] / 6
    exact = [[Fraction(float(v)) for v in row] for row in Q]
    DQ = [[sum(d * exact[i][c] for i, d in enumerate(row) if d) for c in range(len(exact[0]))] for row in D]
    gram = [[sum(a * b for a, b in zip(r1, r2)) for r2 in DQ] for r1 in DQ]
    return _log(_determinant(gram)) - _log(_determinant(B))


def test_log_determinant():
    """log|S|₊ of `cr` on knots over six orders of magnitude, against exact arithmetic: S itself has lost it by then."""
    knots = np.round(np.exp(np.linspace(-4, 10, 14)), 6)
    x = np.concatenate([knots, np.exp(np.linspace(-4, 10, 100)).clip(knots[0], knots[-1])])
    (term,) = Terms((s("x", bs="cr", k=14, knots=knots),)).build({"x": x})
    (penalty,) = term.penalties
    values = np.linalg.eigvalsh(penalty.matrix)
    assert np.sum(values > 1e-8 * values[-1]) < penalty.rank == 12  # what a tolerance would have said
    ours = build_design([term], {"x": x}).penalties.logdet(np.zeros(1))[0]
    # Z is the constraint, in exact arithmetic as it came out: the scale of S and ½log|ZZᵀ| are the same on both sides
    Z = term.basis.values
    unit = np.abs(penalty.root).max() / np.abs(_root(knots) @ Z).max()
    assert ours == pytest.approx(_exact_log_determinant(knots, Z) + 24 * np.log(unit), abs=1e-6)


def _root(knots):
    from unnorm.terms.cubic import _bending_root

    return _bending_root(knots)


def test_tensor_log_determinant_at_extreme_ratios():
    """log|λ₁S₁ + λ₂S₂|₊ is additive in log λ in the limits: S₁'s rank and the rest."""
    rng = np.random.default_rng(0)
    columns = {"x": rng.random(300), "z": np.exp(rng.normal(size=300))}
    (term,) = Terms((te("x", "z", k=(5, 6)),)).build(columns)
    penalties = build_design([term], columns).penalties
    first, second = term.penalties[0].rank, term.size - term.null_dim - term.penalties[0].rank
    a, b = penalties.logdet(np.array([40.0, -40.0])), penalties.logdet(np.array([41.0, -40.0]))
    np.testing.assert_allclose(a[1], [first, second], atol=1e-6)
    assert b[0] - a[0] == pytest.approx(first, abs=1e-8)
    step = 1e-5
    for j in range(2):
        move = step * np.eye(2)[j]
        up, down = penalties.logdet(move), penalties.logdet(-move)
        np.testing.assert_allclose((up[0] - down[0]) / (2 * step), penalties.logdet(np.zeros(2))[1][j], rtol=1e-6)
        np.testing.assert_allclose((up[1] - down[1]) / (2 * step), penalties.logdet(np.zeros(2))[2][j], atol=1e-6)


def test_spectrum_of_a_tensor_product_is_its_determinant():
    """The sum over the spectrum and the QR of the roots agree at every ρ, with the constraint and without."""
    rng = np.random.default_rng(0)
    columns = {"x": rng.random(300), "z": np.exp(rng.normal(size=300)), "a": rng.uniform(-3, 3, 300)}
    for text in ("te(x, z, k=(5, 6))", "ti(x, z, k=5)", "te(x, z, a, bs=('cr', 'ps', 'cc'), k=(4, 5, 5))"):
        from unnorm.terms.parser import parse

        terms = parse(text).build(columns)
        (group,) = build_design(terms, columns).penalties.groups
        if terms[0].spectrum is None:
            continue
        for rho in rng.normal(scale=4.0, size=(5, len(group.which))):
            for ours, theirs in zip(group.logdet(rho), group._by_roots(rho)):
                np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert parse("te(x, z, k=(5, 6))").build(columns)[0].spectrum is not None
