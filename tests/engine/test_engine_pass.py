"""The row pass and the leverage pass against dense NumPy, for every form a term can take."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from unnorm.engine import forms
from unnorm.engine.core import build_design
from unnorm.engine.criteria import InverseLever
from unnorm.engine.families import FAMILIES
from unnorm.engine.segment import ResponseRows
from unnorm.terms.parser import parse

N = 1500


def table(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    contexts = 150
    who = rng.permutation(np.repeat(np.arange(contexts), N // contexts))
    px, py = rng.uniform(0, 1, contexts), rng.uniform(0, 1, contexts)
    return {
        "a": rng.uniform(-1, 2, N),
        "b": rng.gamma(2.0, 1.0, N),
        "angle": rng.uniform(-np.pi, np.pi, N),
        "px": px[who],
        "py": py[who],
        "v": rng.normal(size=N),
        "g": np.array(["u", "v", "w"])[(who % 3)],
        "h": np.array([f"h{k}" for k in rng.integers(0, 7, N)]),
        "who": who,
    }


FORMULAS = {
    "local": "s(a, k=8) + s(b, k=9, bs='cr') + s(angle, bs='cc', k=7)",
    "context": "s(a, k=8) + s(px, py, k=12) + s(angle, bs='cc', k=7)",
    "context line": "s(a, k=8) + s(px, py, k=12) + s(px, k=5, bs='cr')",
    "by number": "s(a, k=8, by=v) + s(b, k=6)",
    "dense": "s(a, k=6) + s(a, b, k=15) + linear(v)",
    "tensor": "te(a, b, k=4) + s(angle, bs='cp', k=8)",
    "random": "s(a, k=6) + s(h, bs='re') + linear(v)",
    "two factors": "s(a, k=6) + s(h, bs='re') + factor(g)",
    "levels": "s(a, k=6) + s(b, k=5, by=g) + s(px, py, k=10, by=g) + factor(g)",
    "two kinds of levels": "s(a, k=5, by=h) + s(b, k=5, by=g)",
    "factor smooths": "s(a, k=6) + s(b, g, bs='fs', k=5) + s(g, bs='re')",
    "dense and context": "s(a, b, k=10) + s(px, py, k=10) + s(angle, bs='cc', k=6) + s(h, bs='re')",
    "ps": "s(a, bs='ps', k=9) + s(v, bs='ps', k=12)",
}


@cache
def prepared(name: str):
    """The table, its terms, their compact design and the dense matrix."""
    data = table()
    terms = built(FORMULAS[name], data)
    return data, terms, build_design(terms, data), dense(terms, data)


def built(formula: str, data: dict[str, np.ndarray]):
    return parse(formula).build(data, knots={"angle": (-np.pi, np.pi)} if "angle" in formula else {})


def dense(terms, data) -> np.ndarray:
    return np.column_stack([np.ones(N), *(term.design(data) for term in terms)])


def response(family: str, rng: np.random.Generator) -> np.ndarray:
    return {
        "binomial": rng.integers(0, 2, N).astype(float),
        "poisson": rng.poisson(1.0, N).astype(float),
        "gaussian": rng.normal(size=N),
    }[family]


def moments(family: str, y, eta, w):
    """ℓ, dℓ/dη, −d²ℓ/dη² and its derivative, written plainly."""
    if family == "binomial":
        mu = 1 / (1 + np.exp(-eta))
        return (
            np.sum(w * (y * eta - np.logaddexp(0, eta))),
            w * (y - mu),
            w * mu * (1 - mu),
            w * mu * (1 - mu) * (1 - 2 * mu),
        )
    if family == "poisson":
        mu = np.exp(eta)
        return np.sum(w * (y * eta - mu)), w * (y - mu), w * mu, w * mu
    return -0.5 * np.sum(w * (y - eta) ** 2), w * (y - eta), w, 0 * w


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize(
    ("family", "extras"), [("binomial", False), ("binomial", True), ("poisson", True), ("gaussian", True)]
)
def test_pass_is_the_dense_pass(name, family, extras):
    _, _, design, X = prepared(name)
    rng = np.random.default_rng(1)
    y = response(family, rng)
    weights = rng.uniform(0.2, 3.0, N) if extras else np.ones(N)
    weights[:5] = 0.0 if extras else 1.0
    offset = rng.normal(size=N) * 0.3 if extras else np.zeros(N)
    beta = rng.normal(size=X.shape[1]) * 0.05
    eta = X @ beta + offset
    loglik, residual, w, dw = moments(family, y, eta, weights)
    rows = ResponseRows(
        design.sort(y), design.sort(weights) if extras else np.empty(0), design.sort(offset) if extras else np.empty(0)
    )
    flat = design.to_flat(beta)
    scale = max(design.errors.values(), default=0.0) * 10 + 1e-11  # thin plates in their local form: a stated error
    np.testing.assert_allclose(design.unsort(design.predict(flat)) + offset, eta, atol=scale * 10, rtol=scale)
    got, score, cross = design.sweep(rows, FAMILIES[family], flat, 1)
    expected = X.T @ (w[:, None] * X)
    np.testing.assert_allclose(got, loglik, rtol=scale)
    np.testing.assert_allclose(design.to_user(score), X.T @ residual, atol=scale * np.abs(X).max() * N)
    both = design.to_user(design.to_user(cross.dense()).T).T
    np.testing.assert_allclose(both, expected, atol=scale * np.abs(expected).max())
    # two threads, the same numbers
    again = design.sweep(rows, FAMILIES[family], flat, 2)
    np.testing.assert_allclose(again[0], got, rtol=1e-12)
    np.testing.assert_allclose(again[2].dense(), cross.dense(), atol=1e-10 * np.abs(expected).max())
    # and without XᵀWX
    for threads in (1, 2):
        value, alone = design.scores(rows, FAMILIES[family], flat, threads)
        np.testing.assert_allclose(value, got, rtol=1e-12)
        np.testing.assert_allclose(alone, score, rtol=1e-11, atol=1e-11 * np.abs(score).max())
    # leverages of the penalised hat matrix
    inverse = (
        cross.plus(design.penalties.blocks(np.ones(design.penalties.count)))
        .plus([1e-3 * np.eye(b - a) for a, b in zip(design.penalties.starts[:-1], design.penalties.starts[1:])])
        .invert()
    )
    P = design.to_user(design.to_user(inverse.dense()).T).T
    h = np.einsum("ij,jk,ik->i", X, P, X)
    hats = np.empty(N)
    lever = design.leverage(rows, FAMILIES[family], flat, InverseLever(inverse), 1, hats)
    np.testing.assert_allclose(design.unsort(hats), h, atol=100 * scale * h.max())
    np.testing.assert_allclose(
        design.to_user(lever), X.T @ (dw * h), atol=100 * scale * np.abs(X.T @ (dw * h)).max() + 1e-9
    )


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("local", {"local"}),
        ("context", {"local", "context"}),
        ("context line", {"local", "context"}),
        ("dense", {"local", "dense"}),
        ("random", {"local", "factor", "dense"}),
        ("levels", {"local", "context"}),
        ("factor smooths", {"local", "level"}),
    ],
)
def test_terms_take_the_form_they_should(name, kinds):
    assert set(prepared(name)[2].kinds.values()) == kinds


def test_contexts_given_found_or_absent_give_the_same_cross_product():
    data = table()
    terms = built(FORMULAS["context"], data)
    rng = np.random.default_rng(2)
    y = response("binomial", rng)
    found = []
    for context in (None, data["who"], 2 * data["who"] + np.arange(N) % 2):
        design = build_design(terms, data, context=context)
        rows = ResponseRows(design.sort(y), np.empty(0), np.empty(0))
        found.append(design.sweep(rows, 0, np.zeros(design.size), 1)[2].dense())
    np.testing.assert_allclose(found[0], found[1], atol=1e-10)
    np.testing.assert_allclose(found[0], found[2], atol=1e-10)


def test_dense_columns_that_are_not_stored_give_the_same_pass(monkeypatch):
    data = table()
    terms = built(FORMULAS["dense and context"], data)
    rng = np.random.default_rng(3)
    y, beta = response("binomial", rng), None
    found = []
    for store in (forms.STORE, 0):
        monkeypatch.setattr(forms, "STORE", store)
        monkeypatch.setattr("unnorm.engine.segment._CHUNK", 200)
        design = build_design(terms, data)
        beta = rng.normal(size=design.size) * 0.05 if beta is None else beta
        rows = ResponseRows(design.sort(y), np.empty(0), np.empty(0))
        loglik, score, cross = design.sweep(rows, 0, beta, 1)
        inverse = cross.plus([np.eye(len(cross.shared))]).invert()
        tilt = design.leverage(rows, 0, beta, InverseLever(inverse), 1)
        found.append((loglik, score, cross.dense(), tilt, design.predict(beta)))
    assert design.segments[0].x.size == 0
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_a_part_of_the_runs_is_the_design_of_those_rows():
    data = table()
    terms = built(FORMULAS["dense and context"], data)
    design = build_design(terms, data)
    part, taken = design.take(lambda k, segment: np.arange(0, segment.runs, 3))
    beta = np.random.default_rng(4).normal(size=design.size)
    np.testing.assert_allclose(part.predict(beta), design.predict(beta)[taken], atol=1e-12)


def test_no_shape_compiles_anything_new():
    from unnorm.engine import arrange_kernels, gather, kernels, matrix_kernels

    compiled = [kernels.cross_products, kernels.leverages, kernels.predictor]
    compiled += [arrange_kernels.locate_from, matrix_kernels.cholesky_inverse, gather.gather_blocks]
    counts, before = [], [len(kernel.signatures) for kernel in compiled]  # of other tests in this process
    shapes = ((900, "s(a, k=8)"), (900, FORMULAS["dense and context"]))  # the two that are compiled: see kernels.py
    shapes += ((700, "s(a, k=9)"), (1200, "s(a, k=5) + s(px, py, k=9) + s(b, k=20)"), (N, FORMULAS["levels"]))
    for n, formula in shapes:
        data = {name: column[:n] for name, column in table().items()}
        terms = built(formula, data)
        design = build_design(terms, data)
        rows = ResponseRows(design.sort(np.ones(n)), np.empty(0), np.empty(0))
        _loglik, _score, cross = design.sweep(rows, 0, np.zeros(design.size), 2)
        inverse = cross.plus([np.eye(b - a) for a, b in zip(cross.starts[:-1], cross.starts[1:])]).invert()
        design.leverage(rows, 0, np.zeros(design.size), InverseLever(inverse), 1)
        design.predict(np.zeros(design.size))
        counts.append([len(kernel.signatures) for kernel in compiled])
    assert counts[1] == counts[2] == counts[3] == counts[4]
    assert max(now - known for now, known in zip(counts[1], before)) <= 2


@pytest.mark.parametrize("columns", [1, 2])
def test_contexts_that_come_back_are_joined_as_if_rows_were_numbered(columns):
    from unnorm.engine.arrange import arrange, number
    from unnorm.engine.runs import consecutive

    rng = np.random.default_rng(7)
    of = rng.integers(0, 40, 300)
    rows = np.repeat(of, rng.integers(2, 9, of.size))
    values = [rng.normal(size=40)[rows], np.round(rng.normal(size=40))[rows]][:columns]
    ids, count = number(values)
    assert count < np.count_nonzero(np.diff(rows)) + 1  # some come back
    found, plain = consecutive(values, rows.size // 2, 1), arrange(rows.size, None, 0, ids)
    assert found is not None
    assert found.contexts
    for name in ("order", "starts", "level", "first"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
    assert found.order is not None
    assert found.order.dtype == np.int32  # the kernels are compiled for it


def test_even_breaks_have_the_functions_of_cells_of_length_one():
    from unnorm.engine.splines import _interpolate

    breaks = np.linspace(-3.0, 11.0, 30)

    def design(x):
        return np.stack([np.sin(x), x**2, np.exp(-x)], axis=1)

    for found, plain in zip(_interpolate(breaks, design, even=True), _interpolate(breaks, design)):
        np.testing.assert_allclose(found, plain, rtol=1e-9, atol=1e-10)


def test_rows_within_the_period_and_beyond_it_lie_in_the_same_cells():
    from unnorm.engine.arrange_kernels import locate

    rng = np.random.default_rng(8)
    breaks = np.sort(np.concatenate([[-np.pi, np.pi], rng.uniform(-np.pi, np.pi, 9)]))
    x = np.concatenate([[-np.pi, np.pi], breaks[1:-1] + 1e-9, rng.uniform(-np.pi, np.pi, 200)])
    at = []
    for turns in (0, 1, -2):
        out = np.empty((x.size, 1))
        assert locate(x + 2 * np.pi * turns, np.empty(0, np.int32), breaks, 2 * np.pi, out, 0) == 0
        at.append(out[:, 0])
    assert at[0][0] == at[0][1] == 0.0  # the two ends are one place
    cell = np.searchsorted(breaks, x[2:], side="right") - 1
    np.testing.assert_allclose(at[0][2:], cell + (x[2:] - breaks[cell]) / np.diff(breaks)[cell], atol=1e-12)
    for other in at[1:]:
        np.testing.assert_allclose(other[2:], at[0][2:], atol=1e-8)
