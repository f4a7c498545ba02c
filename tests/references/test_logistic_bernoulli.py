"""Bits in turn by logistic regressions: the fit, the law's nearness, and what it does for NCE."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import unnorm as un
from unnorm.errors import InputError


def _coupled(d: int, n: int, seed: int, spread: float = 1.0) -> tuple[un.Ising, np.ndarray, np.ndarray]:
    model, rng = un.Ising(d), np.random.default_rng(seed)
    J = np.triu(rng.normal(0, spread / np.sqrt(d), (d, d)), 1)
    truth = model.from_parts(rng.normal(-0.5, 0.5, d), J + J.T)
    return model, truth, model.sampler(truth, ()).sweep(rng.integers(0, 2, (n, d)), 60, rng)


@pytest.mark.parametrize("chained", [True, False])
def test_the_coefficients_are_penalised_regressions(chained: bool) -> None:
    """Each bit against SciPy's maximum, the context standardised; steps stop within a hundredth of it."""
    rng = np.random.default_rng(0)
    y = (rng.random((500, 3)) < 0.3).astype(float)
    y[1:, 2] = np.where(rng.random(499) < 0.5, y[:-1, 0], y[1:, 2])
    obs = un.transitions(y, weight=rng.integers(1, 3, 500).astype(float))
    B = np.asarray(un.LogisticBernoulli(chained, ridge=2.0).bind(un.BinaryVectors(3), obs).to_dict()["coefficients"])
    X, Y, w = obs.previous(), obs.outcome, obs.weights
    for i in range(3):
        D = np.column_stack([np.ones(len(Y)), (X - X.mean(axis=0)) / X.std(axis=0), Y[:, : i if chained else 0]])

        def loss(b, D=D, i=i):
            return -np.sum(w * (Y[:, i] * (D @ b) - np.logaddexp(0, D @ b))) + np.sum(b[1:] ** 2)

        best = minimize(loss, np.zeros(D.shape[1]), tol=1e-12).x
        C = B[i, 1:4]
        mine = np.concatenate([[B[i, 0] + C @ X.mean(axis=0)], C * X.std(axis=0), B[i, 4 : 4 + D.shape[1] - 4]])
        assert mine == pytest.approx(best, abs=0.02)
        assert np.all(B[i, 4 + (i if chained else 0) :] == 0)


def test_nearer_than_a_tree() -> None:
    _, _, y = _coupled(15, 4000, 1, 1.5)
    obs, new = un.iid(y[:2000]), y[2000:]
    product, tree, chain = (
        q.bind(un.BinaryVectors(15), obs).log_density(new, un.iid(new), np.arange(2000)).mean()
        for q in (un.ProductBernoulli(), un.BernoulliTree(), un.LogisticBernoulli())
    )
    assert chain - 0.04 > tree > product + 0.02


def test_nce_is_nearly_as_good_as_pseudo_likelihood() -> None:
    """d = 16, n = 4,000, k = 4, two data sets: root mean square error of the couplings at most 1.2 of the
    pseudo-likelihood's, and less than against independent bits. (1.135 at d = 100, n = 10⁵: benchmarks/discrete.py.)"""
    squares = np.zeros(3)
    for seed in (3, 4):
        model, truth, y = _coupled(16, 4000, seed, 2.0)
        obs = un.iid(y)
        nce = [un.Logistic(q, total=16_000, points=un.IID()) for q in (un.LogisticBernoulli(), un.ProductBernoulli())]
        fits = [un.fit(model, obs, one, rng=3) for one in (un.ConditionalNCE(un.BitFlip(every=True)), *nce)]
        squares += [np.sum((fit.estimate - truth)[16:] ** 2) for fit in fits]
    flips, chain, product = np.sqrt(squares)
    assert chain < 1.2 * flips
    assert chain < 0.95 * product


def test_few_observations_leave_few_freedoms() -> None:
    """60 bits without couplings, 300 observations: in-sample and new log densities differ by little; with ridge=1 the
    law follows the data."""
    rng = np.random.default_rng(5)
    y, new = rng.integers(0, 2, (300, 60)).astype(float), rng.integers(0, 2, (300, 60)).astype(float)

    def gap(q: un.LogisticBernoulli) -> float:
        bound = q.bind(un.BinaryVectors(60), un.iid(y))
        seen, fresh = (bound.log_density(part, un.iid(part), np.arange(300)).mean() for part in (y, new))
        return float(seen - fresh)

    assert gap(un.LogisticBernoulli()) < 0.3
    assert gap(un.LogisticBernoulli(ridge=1.0)) > 3.0


def test_the_whole_previous_vector_counts() -> None:
    """Bit 1 copies bit 2 of the step before: with `chained=False` the law knows, ProductBernoulli(around) does not."""
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, (2000, 3)).astype(float)
    for t in range(1, 2000):
        y[t, 0] = y[t - 1, 1] if rng.random() < 0.9 else y[t, 0]
    obs, t = un.transitions(y), np.arange(1999)
    own, whole = (
        q.bind(un.BinaryVectors(3), obs).log_density(obs.outcome, obs, t).mean()
        for q in (un.ProductBernoulli(around="context"), un.LogisticBernoulli(chained=False))
    )
    assert whole > own + 0.3
    fit = un.fit(un.Ising(3, lag=1), obs, un.Ranking(un.LogisticBernoulli(chained=False), per_point=10), rng=7)
    assert fit.converged
    assert fit.estimate[fit.names.index("K[1,2]")] > 2.0


def test_fixed_ties_stay_fixed() -> None:
    mask = np.zeros((4, 4), dtype=bool)
    mask[0, 1] = True
    omega = un.Graphs(4, directed=True, fixed=mask)
    y = np.random.default_rng(8).integers(0, 2, (100, 12)).astype(float) * omega.free
    bound = un.LogisticBernoulli().bind(omega, un.iid(y))
    points = bound.sample(un.iid(y), np.zeros(200, dtype=int), np.random.default_rng(9))
    assert omega.contains(points).all()
    states = np.array([[bit >> k & 1 for k in range(11)] for bit in range(2**11)], dtype=float)
    every = np.insert(states, int(np.flatnonzero(~omega.free)[0]), 0.0, axis=1)
    q = np.exp(bound.log_density(every, un.iid(y), np.zeros(len(every), dtype=int)))
    assert q.sum() == pytest.approx(1.0)


def test_words() -> None:
    with pytest.raises(InputError, match="positive number"):
        un.LogisticBernoulli(ridge=0.0)
    with pytest.raises(InputError, match="True or False"):
        un.LogisticBernoulli(chained="yes")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="3 rows of 4"):
        un.LogisticBernoulli(coefficients=((0.0,),)).bind(un.BinaryVectors(3), un.iid(np.zeros((4, 3))))
