"""Tensor products of thin plates on skewed covariates: the coordinates must not lose the digits of XᵀWX."""

import csv
import json
from functools import cache
from math import lgamma
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import NotIdentifiedError
from unnorm.terms import build_smooths, tensor

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
FITS = {fit["formula"]: fit for fit in json.loads((HERE / "margins.json").read_text())["fits"]}
RIVAL = "count ~ te(v, z, k = (8, 6), bs = ('tp', 'ps'))"  # mgcv stops at a minimum .5 higher
Extended = np.longdouble


@cache
def rows():
    with (HERE / "margins_rows.csv").open() as file:
        read = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in read]) for key in read[0]}


def skewed(seed, n, w=1.5):
    rng = np.random.default_rng(seed)
    v, z = np.exp(1.5 * rng.normal(size=(2, n)))
    w = np.exp(w * rng.normal(size=n))
    return {"v": v, "z": z, "w": w, "y": rng.poisson(np.exp(0.5 + np.tanh(w) * np.sin(np.log(v)))).astype(float)}


def by_value(margin):
    return tensor.Margin(margin.setup, margin.setup, np.eye(margin.setup.basis.size))


@pytest.mark.parametrize("name", [name for name in FITS if name != RIVAL])
def test_same_fit(name):
    f = FITS[name]
    fit = un.gam(name, rows(), family=f["family"])
    at = np.array(f["rows"])
    eta, se = fit.predict()
    assert not f["dropped"]
    assert fit.score == pytest.approx(f["score"], abs=1e-3)
    assert np.sqrt(np.mean(((eta[at] - f["eta"]) / f["se"]) ** 2)) < 0.005
    assert np.sqrt(np.mean((se[at] / f["se"] - 1.0) ** 2)) < 0.005
    assert fit.edf_total == pytest.approx(f["edf_total"], rel=1e-3)


def test_a_lower_minimum_of_the_same_criterion():
    f = FITS[RIVAL]
    assert un.gam(RIVAL, rows(), family=f["family"]).score < f["score"] - 0.4
    assert un.gam(RIVAL, rows(), family=f["family"], sp=f["sp"]).score == pytest.approx(f["score"], abs=1e-3)


@pytest.mark.parametrize("name", list(FITS))
def test_coordinates_change_nothing_else(name, monkeypatch):
    """Where columns by value still have their digits: the same criterion, constant included."""
    f = FITS[name]
    seen = un.gam(name, rows(), family=f["family"], sp=f["sp"])
    ready = build_smooths.margin_setup
    monkeypatch.setattr(build_smooths, "margin_setup", lambda *given: by_value(ready(*given)))
    plain = un.gam(name, rows(), family=f["family"], sp=f["sp"])
    assert seen.score == pytest.approx(plain.score, abs=1e-4)
    assert seen.edf_total == pytest.approx(plain.edf_total, rel=1e-4)
    assert np.abs(seen.linear_predictor - plain.linear_predictor).max() < 1e-3


# each was refused as not identified: XᵀWX has lost all digits of the smaller directions in columns by value
@pytest.mark.parametrize("by", ["", ", by=w"])
@pytest.mark.parametrize(("seed", "n", "k"), [(0, 400, 8), (0, 200, 8), (7, 2000, 10)])
def test_skewed_covariates_are_identified(seed, n, k, by):
    fit = un.gam(f"y ~ te(v, z, k={k}, bs='tp'{by})", skewed(seed, n), family="poisson")
    assert fit.converged
    assert np.isfinite(fit.predict()[1]).all()


def test_what_is_not_identified_is_still_refused():
    data = skewed(5, 500)
    with pytest.raises(NotIdentifiedError, match=r"'te\(v,z\):w'"):
        un.gam("y ~ w + te(v, z, by=w, k=8, bs='tp')", data, family="poisson")
    with pytest.raises(NotIdentifiedError, match=r"'twice'"):
        un.gam("y ~ w + twice + te(v, z, k=8, bs='tp')", {**data, "twice": 2 * data["w"]}, family="poisson")


def _triangle(A):
    """R of A = QR by Householder's reflections, in extended precision."""
    A = A.astype(Extended)
    for j in range(A.shape[1]):
        v = A[j:, j].copy()
        v[0] += np.copysign(np.sqrt(v @ v), v[0])
        A[j:, j:] -= np.outer(v, (2 / (v @ v)) * (v @ A[j:, j:]))
    return A[: A.shape[1]]


def _back(R, b):
    x = b.astype(Extended)
    for i in range(len(R) - 1, -1, -1):
        x[i] = (x[i] - R[i, i + 1 :] @ x[i + 1 :]) / R[i, i]
    return x


def _inverted(V):
    n = len(V)
    A = np.concatenate([V.astype(Extended), np.eye(n, dtype=Extended)], axis=1)
    for i in range(n):
        k = i + int(np.argmax(np.abs(A[i:, i])))
        A[[i, k]] = A[[k, i]]
        A[i] /= A[i, i]
        others = np.arange(n) != i
        A[others] -= np.outer(A[others, i], A[i])
    return A[:, n:]


def _exact(y, X, E, null):
    """REML of a Poisson fit and η, by QR of (√W X; E): no XᵀWX is formed. `null`: orthonormal, what E does not see."""
    beta = np.zeros(X.shape[1], Extended)
    beta[0] = np.log(y.mean())

    def objective(beta):
        return float((np.exp(X @ beta) - y * (X @ beta)).sum() + 0.5 * ((E @ beta) ** 2).sum())

    for _ in range(60):
        eta = X @ beta
        mu = np.exp(eta)
        A = np.concatenate([np.sqrt(mu)[:, None] * X, E])
        b = np.concatenate([np.sqrt(mu) * (eta + (y - mu) / mu), np.zeros(len(E), Extended)])
        R = _triangle(np.concatenate([A, b[:, None]], axis=1))
        step, old = _back(R[:-1, :-1], R[:-1, -1]) - beta, objective(beta)
        while objective(beta + step) > old + 1e-9:
            step = step / 2
        beta = beta + step
        if np.abs(X @ step).max() < 1e-11:
            break
    constant = sum(lgamma(v + 1) for v in y)
    half_h = np.log(np.abs(np.diag(R[:-1, :-1]))).sum()
    half_s = np.log(np.abs(np.diag(_triangle(np.concatenate([E, null]))))).sum()
    return float(objective(beta) + constant + half_h - half_s - 0.5 * len(null) * np.log(2 * np.pi)), X @ beta


@pytest.mark.skipif(np.finfo(Extended).eps > 1e-18, reason="no extended precision here")
@pytest.mark.parametrize(("seed", "n", "k"), [(0, 200, 8), (0, 250, 6)])
def test_the_criterion_is_that_of_columns_by_value(seed, n, k, monkeypatch):
    """In 64 bits, with QR of the rows, columns by value do have the digits: the same score and linear predictor."""
    met = []
    ready = build_smooths.product_as_seen

    def keep(margins, sample):
        met.append((margins, ready(margins, sample)))
        return met[-1][1]

    monkeypatch.setattr(build_smooths, "product_as_seen", keep)
    data = skewed(seed, n)
    fit = un.gam(f"y ~ te(v, z, by=w, k={k}, bs='tp')", data, family="poisson")
    margins, setup = met[0]
    assert setup.scales is not None
    P = [_inverted(margin.values) for margin in margins]
    first, second = (m.seen.basis.evaluate(data[x][:, None]) @ p for m, x, p in zip(margins, "vz", P))
    X = (first[:, :, None] * second[:, None, :]).reshape(n, -1) * data["w"].astype(Extended)[:, None]
    E = [m.seen.roots[0] @ p for m, p in zip(margins, P)]
    roots = [np.kron(E[0], np.eye(k)), np.kron(np.eye(k), E[1])]
    scaled = [np.sqrt(Extended(sp)) * scale * root for sp, scale, root in zip(fit.sp.values(), setup.scales, roots)]
    null = np.kron(*(np.linalg.svd(m.setup.roots[0])[2][-2:] for m in margins))

    def beside_one(A):
        return np.concatenate([np.zeros((len(A), 1), Extended), A], axis=1)

    one = np.eye(1, 1 + k * k)
    score, eta = _exact(
        data["y"],
        np.concatenate([np.ones((n, 1), Extended), X], axis=1),
        beside_one(np.concatenate(scaled)),
        np.concatenate([one, beside_one(null)]),
    )
    assert fit.score == pytest.approx(score, abs=1e-3)
    own, se = fit.predict()
    assert np.sqrt(np.mean(((own - eta.astype(float)) / se) ** 2)) < 1e-3
