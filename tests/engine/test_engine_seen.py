"""Penalties on the directions that a likelihood sees: the criterion is that of the model written without the others."""

import numpy as np
import pytest

from unnorm.engine.seen import seen_penalties
from unnorm.terms.parser import parse


def within(X, context):
    """Columns less their context's mean: what a likelihood with one constant a context sees."""
    means = np.array([X[context == c].mean(axis=0) for c in np.unique(context)])
    return X - means[context]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    context = np.repeat(np.arange(40), 8)
    return context, {"x": rng.random(320), "z": rng.random(320), "g": np.array(list("abcd"))[context % 4]}


def logdet(matrix):
    value, sign = np.linalg.slogdet(matrix)[::-1]
    assert sign == 1
    return value


def test_levels_of_curves_are_not_seen(rows):
    context, columns = rows
    terms = parse("s(z, k=6) + s(x, g, bs='fs', k=5)").build(columns)
    X = within(np.concatenate([term.design(columns) for term in terms], axis=1), context)
    H = X.T @ X
    seen = seen_penalties(terms, H)
    assert seen.Q.shape == (25, 21)  # four levels of the fs curves
    assert seen.alive.tolist() == [True, True, True, False]  # s(z); fs: wiggliness, slopes, and levels
    assert seen.null_dim == 1  # the straight line of s(z)
    # the same model without the columns of the levels and without their penalty
    keep = np.concatenate([np.arange(5), *(5 + 5 * level + np.arange(4) for level in range(4))])
    lam = np.array([0.7, 0.2, 3.0, 50.0])
    S = np.zeros((25, 25))
    S[:5, :5] = lam[0] * terms[0].penalties[0].matrix
    for weight, penalty in zip(lam[1:], terms[1].penalties):
        S[5:, 5:] += weight * penalty.matrix
    kept = np.ix_(keep, keep)
    eigenvalues = np.linalg.eigvalsh(S[kept])
    expected = logdet((H + S)[kept]) - np.sum(np.log(eigenvalues[1:]))
    Q = seen.Q
    ours = logdet(Q.T @ (H + S) @ Q) - seen.logdet(np.log(lam))[0]
    assert ours == pytest.approx(expected, abs=1e-8)
    # the smoothing parameter of the levels is nobody's business
    moved = seen.logdet(np.log(lam * [1, 1, 1, 100.0]))
    assert moved[0] == seen.logdet(np.log(lam))[0]
    assert moved[1][3] == 0.0


def test_everything_is_seen_where_constants_are(rows):
    _, columns = rows
    terms = parse("s(z, k=6) + s(x, g, bs='fs', k=5)").build(columns)
    X = np.concatenate([term.design(columns) for term in terms], axis=1)
    seen = seen_penalties(terms, X.T @ X)
    assert seen.Q.shape == (25, 25)
    assert seen.alive.all()


def test_gradient(rows):
    context, columns = rows
    terms = parse("te(x, z, k=4) + s(x, g, bs='fs', k=5)").build(columns)
    X = within(np.concatenate([term.design(columns) for term in terms], axis=1), context)
    seen = seen_penalties(terms, X.T @ X)
    rho = np.array([0.3, -1.0, 0.5, 2.0, 0.0])
    step = 1e-6
    numeric = [
        (seen.logdet(rho + step * unit)[0] - seen.logdet(rho - step * unit)[0]) / (2 * step) for unit in np.eye(5)
    ]
    np.testing.assert_allclose(seen.logdet(rho)[1], numeric, atol=1e-5)


def test_numeric_by_that_is_constant_within_contexts(rows):
    context, columns = rows
    columns = {**columns, "w": np.random.default_rng(1).random(40)[context]}
    terms = parse("s(x, by=w, k=6)").build(columns)
    X = within(terms[0].design(columns), context)
    assert seen_penalties(terms, X.T @ X).Q.shape == (6, 5)
