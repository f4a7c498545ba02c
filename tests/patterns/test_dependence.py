"""Robust errors by their definition; weights of pairs by sampling the window; degrees of freedom of few cells."""

import numpy as np
import pytest

import unnorm as un
from unnorm.inference.clusters import nearest_psd
from unnorm.patterns.dependence import cells, dependence, touching
from unnorm.patterns.edge_weights import isotropic, overlap, translation, weights
from unnorm.patterns.scores import PatternScores

SQUARE = un.Box((0, 1), (0, 1))
BENT = un.Window([(0, 0), (4, 0), (4, 3), (2, 1.5), (0, 3)], holes=[[(1, 0.5), (2, 0.5), (2, 1), (1, 1)]])


def poisson(seed: int, n: float = 200.0, window: un.Box = SQUARE) -> un.Pattern:
    rng = np.random.default_rng(seed)
    return un.pattern(window.uniform(rng.poisson(n), rng), y=("x", "y"), window=window)


def test_touching() -> None:
    """Sums over cells at most one step away along each axis, none across replicates."""
    shape = (2, 4, 3)
    values = np.random.default_rng(1).normal(size=(24, 2))
    at = np.array([(r, i, j) for r in range(2) for i in range(4) for j in range(3)])
    near = np.all(np.abs(at[:, None] - at[None]) <= (0, 1, 1), axis=2)
    np.testing.assert_allclose(touching(values, shape), near @ values, rtol=1e-12)


@pytest.mark.parametrize("box", [SQUARE, un.Box((0, 4), (0, 1))])
def test_definition(box: un.Box) -> None:
    """M, E0 and the degrees of freedom from every cell of the rows, written out."""
    fit = un.fit_pattern(poisson(2, window=box), "x", dummies=1500, rng=3)
    fitted, scores = fit.fitted, PatternScores(fit.fitted)
    H = scores.information
    V = np.linalg.inv(H)
    label, (_, nx, ny) = cells(fitted)
    assert (nx, ny) == ((10, 10) if box is SQUARE else (20, 5))
    X = np.concatenate([chunk for _, chunk in fitted.gam.design_chunks()])
    count = nx * ny
    g = np.array([(fitted.data - fitted.p)[label == c] @ X[label == c] for c in range(count)])
    h = np.array([(X[label == c].T * (fitted.p * (1 - fitted.p))[label == c]) @ X[label == c] for c in range(count)])
    i, j = np.divmod(np.arange(count), ny)
    w = (np.abs(i[:, None] - i) <= 1) & (np.abs(j[:, None] - j) <= 1)
    low = (fitted.places.xy - box.lower) / (box.upper - box.lower) * (nx, ny)
    np.testing.assert_array_equal(label, low.astype(int)[:, 0] * ny + low.astype(int)[:, 1])
    M = g.T @ w @ g
    E0 = H - sum(h[c] @ V @ h[d] for c, d in zip(*np.nonzero(w)))
    L = np.linalg.cholesky(H)
    values, Q = np.linalg.eigh(np.linalg.solve(L, np.linalg.solve(L, E0).T))
    A = (Q / np.sqrt(values)) @ Q.T
    found = dependence(fitted, H, V)
    want = L @ A @ np.linalg.solve(L, np.linalg.solve(L, M).T) @ A @ L.T
    # another root of H turns A: only what does not depend on the root
    np.testing.assert_allclose(np.trace(V @ found.M), np.trace(V @ want), rtol=0.02)
    share = np.einsum("cab,ba->c", h, V) / 2
    assert found.df == pytest.approx(values.mean() / (share @ w @ share), rel=1e-6)
    assert 5 < found.df < 20
    np.testing.assert_allclose(
        fit.covariance_robust,
        V @ (nearest_psd(found.M - scores.measured_spread(), H) + scores.measured_spread()) @ V,
        rtol=1e-8,
    )
    table, plain = fit.tidy(robust=True), fit.tidy()
    from scipy.stats import t

    half = (table["upper"] - table["lower"]) / 2
    np.testing.assert_allclose(half, t.ppf(0.975, found.df) * table["se"], rtol=1e-10)
    np.testing.assert_allclose((plain["upper"] - plain["lower"]) / 2, 1.959963985 * plain["se"], rtol=1e-6)


def test_one_number() -> None:
    """With an intercept alone everything is a number: M/E0 · H."""
    fit = un.fit_pattern(poisson(4), dummies=1500, rng=3)
    fitted, scores = fit.fitted, PatternScores(fit.fitted)
    H = scores.information
    label, shape = cells(fitted)
    g = np.bincount(label, fitted.data - fitted.p, 100)
    h = np.bincount(label, fitted.p * (1 - fitted.p), 100)
    M, lost = g @ touching(g[:, None], shape)[:, 0], h @ touching(h[:, None], shape)[:, 0] / H[0, 0]
    found = dependence(fitted, H, np.linalg.inv(H))
    assert found.M[0, 0] == pytest.approx(M * H[0, 0] / (H[0, 0] - lost), rel=1e-9)


def test_robust_is_right_where_the_model_is() -> None:
    """On average, over Poisson patterns."""
    fits = [un.fit_pattern(poisson(100 + k), "x", dummies=1000, rng=k) for k in range(60)]
    robust = np.mean([np.diag(fit.covariance_robust) for fit in fits], axis=0)
    plain = np.mean([np.diag(fit.covariance) for fit in fits], axis=0)
    np.testing.assert_allclose(robust / plain, 1.0, atol=0.2)


def test_many_replicates_are_cells() -> None:
    rng = np.random.default_rng(5)
    xy = rng.random((400, 2))
    table = {"x": xy[:, 0], "y": xy[:, 1], "plot": rng.integers(0, 20, 400)}
    fit = un.fit_pattern(un.pattern(table, ("x", "y"), window=SQUARE, replicate="plot"), dummies=2000, rng=1)
    label, shape = cells(fit.fitted)
    assert shape == (20, 1, 1)
    np.testing.assert_array_equal(label, fit.fitted.places.replicate)
    assert fit.errors.robust is not None
    assert fit.errors.robust.df == pytest.approx(19, abs=0.5)


def test_isotropic_weights() -> None:
    """1 over the share of the circle in the window, by points on it."""
    rng = np.random.default_rng(6)
    angle = np.linspace(0, 2 * np.pi, 20_001)[:-1]
    for window, far in ((SQUARE, 0.9), (BENT, 1.5)):
        xy, d = window.uniform(25, rng), far * rng.random(25)
        ring = xy[:, None] + d[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        share = window.contains(ring.reshape(-1, 2)).reshape(25, -1).mean(axis=1)
        np.testing.assert_allclose(isotropic(xy, d, window), 1 / np.maximum(share, 0.01), rtol=2e-3)


def test_translation_weights() -> None:
    """|W|/|W ∩ (W + v)|, by points of the window."""
    rng = np.random.default_rng(7)
    inside = BENT.uniform(40_000, rng)
    step = np.array([[0.0, 0.0], [0.5, 0.1], [-1.0, 0.6], [0.0, 1.2], [3.9, 0.0]])
    share = np.array([BENT.contains(inside - v).mean() for v in step])
    np.testing.assert_allclose(overlap(step, BENT) / BENT.volume, share, atol=0.01)
    np.testing.assert_allclose(translation(step, BENT), 1 / np.maximum(overlap(step, BENT) / BENT.volume, 0.01))
    np.testing.assert_allclose(
        translation(np.array([[0.25, -0.5]]), un.Box((0, 1), (0, 2))), [1 / (0.75 * 0.75)], rtol=1e-12
    )


@pytest.mark.parametrize("how", ["isotropic", "translate"])
def test_each_replicate_has_its_window(how: str) -> None:
    large = un.Box((0, 2), (0, 1))
    xy, step, d = np.array([[0.9, 0.5]] * 2), np.array([[0.2, 0.0]] * 2), np.array([0.2, 0.2])
    found = weights(how, xy, step, d, np.array([0, 1]), (SQUARE, large))
    for k, window in enumerate((SQUARE, large)):
        one = isotropic(xy[:1], d[:1], window) if how == "isotropic" else translation(step[:1], window)
        assert found[k] == one[0]
    assert found[0] > found[1]
