"""Terms of several covariates as products of B-splines: the passes against dense NumPy, and the error of surfaces."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from unnorm.engine import forms, products
from unnorm.engine.core import build_design, smooth_fit
from unnorm.engine.families import FAMILIES
from unnorm.engine.segment import ResponseRows
from unnorm.terms.parser import parse

N = 7_000


@cache
def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    who = np.repeat(np.arange(N // 10), 10)
    px, py = rng.random(N // 10), rng.normal(size=N // 10)
    data = {name: rng.random(N) for name in "abc"}
    data |= {"angle": rng.uniform(-np.pi, np.pi, N), "v": rng.normal(size=N), "px": px[who], "py": py[who]}
    data["h"] = np.array([f"h{k}" for k in rng.integers(0, 7, N)])
    return data


FORMULAS = {
    "surface": "s(a, b, k=40)",
    "tensor": "te(a, b, k=6) + s(c, k=8, bs='cr')",
    "three": "te(a, b, c, k=5)",
    "cyclic": "te(a, angle, bs=('cr', 'cc'), k=(7, 6)) + s(h, bs='re') + linear(v)",
    "by": "te(a, b, k=6, by=v) + s(a, k=6, bs='cr')",
    "contexts": "te(a, b, k=6) + s(px, py, k=12) + s(c, k=8, bs='cr')",
}


@cache
def prepared(name: str):
    data = table()
    terms = parse(FORMULAS[name]).build(data)
    design = build_design(terms, data)
    X = np.concatenate([np.ones((N, 1)), *(term.design(data) for term in terms)], axis=1)
    return terms, design, X


def rows_of(X: np.ndarray, seed: int) -> tuple[np.ndarray, ResponseRows]:
    rng = np.random.default_rng(seed)
    beta = 0.3 * rng.normal(size=X.shape[1]) / np.sqrt(np.mean(X**2, axis=0)) / np.sqrt(X.shape[1])
    y = (rng.random(N) < 1 / (1 + np.exp(-X @ beta))).astype(float)
    return beta, ResponseRows(y, rng.uniform(0.5, 2.0, N), 0.1 * rng.normal(size=N))


def flat(design, matrix: np.ndarray) -> np.ndarray:
    """A matrix in the terms' coefficients → the engine's."""
    return design.to_flat(design.to_flat(matrix).T).T


def sorted_rows(design, rows: ResponseRows) -> ResponseRows:
    return ResponseRows(*(np.ascontiguousarray(design.sort(part)) for part in (rows.y, rows.weights, rows.offset)))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", FORMULAS)
def test_the_pass_is_that_of_dense_columns(name, threads):
    _, design, X = prepared(name)
    assert "product" in design.kinds.values()
    beta, rows = rows_of(X, 1)
    loglik, score, cross = design.sweep(sorted_rows(design, rows), FAMILIES["binomial"], design.to_flat(beta), threads)
    eta = X @ beta + rows.offset
    mu = 1 / (1 + np.exp(-eta))
    w = rows.weights * mu * (1 - mu)
    near = 1e-3 if name == "surface" else 1e-9
    assert loglik == pytest.approx(rows.weights @ (rows.y * eta - np.logaddexp(0, eta)), rel=near)
    g = design.to_flat(X.T @ (rows.weights * (rows.y - mu)))
    size = np.sqrt(np.diag(flat(design, (X.T * w) @ X)))
    assert np.abs((score - g) / size).max() < 300 * near
    assert np.abs((cross.shared - flat(design, (X.T * w) @ X)) / np.outer(size, size)).max() < 10 * near
    assert np.abs(X @ beta).max() <= design.most(design.to_flat(beta)) * (1 + near)


@pytest.mark.parametrize("name", ["tensor", "three", "cyclic", "by"])
def test_leverages_predictions_and_sums_are_those_of_dense_columns(name):
    _, design, X = prepared(name)
    beta, rows = rows_of(X, 2)
    inner = sorted_rows(design, rows)
    eta = X @ beta + rows.offset
    mu = 1 / (1 + np.exp(-eta))
    w = rows.weights * mu * (1 - mu)
    P = np.linalg.inv((X.T * w) @ X + np.diag(np.mean(X**2, axis=0)) + 1e-3 * np.eye(X.shape[1]))
    hats = np.empty(N)
    P_flat = flat(design, P)
    pull = design.leverage(inner, FAMILIES["binomial"], design.to_flat(beta), lambda level: P_flat, 2, hats)
    h = np.einsum("ij,jk,ik->i", X, P, X)
    assert design.unsort(hats) == pytest.approx(h, rel=1e-8)
    right = design.to_flat(X.T @ (w * (1 - 2 * mu) * h))
    assert np.abs(pull - right).max() < 1e-8 * np.abs(right).max()
    assert design.unsort(design.predict(design.to_flat(beta), 2)) == pytest.approx(X @ beta, rel=1e-8, abs=1e-8)
    label = np.zeros(N, np.int64)
    assert design.sums(eta, label, 1, 2)[0] == pytest.approx(X.T @ eta, rel=1e-9, abs=1e-8)


def test_fits_of_some_rows_and_of_all_agree_with_dense_columns(monkeypatch):
    data = table()
    rng = np.random.default_rng(5)
    y = (rng.random(N) < 1 / (1 + np.exp(-3 * np.sin(5 * data["a"]) * data["b"]))).astype(float)
    terms = parse("te(a, b, k=6) + s(c)").build(data)
    found = smooth_fit(build_design(terms, data), y)
    monkeypatch.setattr(forms, "worth", lambda *_: False)
    plain = smooth_fit(build_design(terms, data), y)
    assert "dense" in plain.design.kinds.values()
    assert found.score == pytest.approx(plain.score, abs=1e-6)
    assert found.beta == pytest.approx(plain.beta, abs=1e-5)


def test_a_surface_is_within_its_error_of_the_thin_plate():
    _, design, X = prepared("surface")
    beta = np.zeros(X.shape[1])
    beta[1:] = np.random.default_rng(3).normal(size=X.shape[1] - 1)
    apart = design.unsort(design.predict(design.to_flat(beta))) - X @ beta
    assert 0.0 < design.errors["s(a,b)"] <= products.SURFACE_ERROR
    assert np.sqrt(np.mean(apart**2)) < 2 * products.SURFACE_ERROR * np.sqrt(np.mean((X @ beta) ** 2))


def test_a_surface_that_the_grid_cannot_hold_stays_dense():
    rng = np.random.default_rng(4)
    data = {"a": np.exp(2 * rng.normal(size=N)), "b": np.exp(2 * rng.normal(size=N))}
    terms = parse("s(a, b, k=60)").build(data)
    assert build_design(terms, data).kinds["s(a,b)"] == "dense"


def test_the_band_holds_every_pair_once():
    _, design, _ = prepared("three")
    basis = design.segments[0].product.basis
    offsets, near = basis.band
    apart = basis.steps[None] - basis.steps[:, None]
    above = np.triu_indices(64)
    assert (offsets[near[above]] == apart[above]).all()
    assert (offsets >= 0).all()
    assert np.unique(offsets).size == offsets.size
