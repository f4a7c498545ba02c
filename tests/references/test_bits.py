"""References and points on bits: Chow–Liu trees, and pairs of bits that coincide as often as they should."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import CombinationError, InputError


def _chain_of_bits(n: int, d: int, seed: int, copies: float = 0.75) -> np.ndarray:
    """Each bit copies its left neighbour three times in four, or `copies`: a tree that is a path."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, (n, d))
    for i in range(1, d):
        y[:, i] = np.where(rng.random(n) < copies, y[:, i - 1], rng.random(n) < 0.3)
    return y.astype(float)


def test_the_tree_is_the_maximum_likelihood_tree() -> None:
    """Of all 16 trees on four bits (Cayley), none has a higher likelihood; on a path it is the path."""
    y = _chain_of_bits(2000, 4, 1)
    obs = un.iid(y)
    omega = un.BinaryVectors(4)
    bound = un.BernoulliTree().bind(omega, obs)
    parents = bound.to_dict()["parents"]
    assert parents == [-1, 0, 1, 2]
    best = bound.log_density(y, obs, np.arange(obs.n)).sum()

    def likelihood(edges: tuple[tuple[int, int], ...]) -> float:
        total, seen = 0.0, {0}
        p = np.mean(y[:, 0])
        total += np.sum(np.log(np.where(y[:, 0] == 1, p, 1 - p)))
        left = list(edges)
        while left:
            i, j = next(e for e in left if (e[0] in seen) != (e[1] in seen))
            left.remove((i, j))
            i, j = (i, j) if j in seen else (j, i)
            for before in (0, 1):
                rows = y[y[:, j] == before, i]
                total += np.sum(np.log(np.where(rows == 1, rows.mean(), 1 - rows.mean())))
            seen.add(i)
        return float(total)

    trees = []
    for edges in combinations(list(combinations(range(4), 2)), 3):
        reach = {0}
        for _ in range(3):
            reach |= {v for e in edges for v in e if set(e) & reach}
        if reach == {0, 1, 2, 3}:
            trees.append(likelihood(edges))
    assert len(trees) == 16
    assert best == pytest.approx(max(trees), abs=1.0)


def test_points_of_a_tree_have_its_law() -> None:
    y = _chain_of_bits(500, 5, 2)
    obs, omega = un.iid(y), un.BinaryVectors(5)
    bound = un.BernoulliTree(add=3.0).bind(omega, obs)
    states = omega.quadrature().points
    q = np.exp(bound.log_density(states, obs, np.zeros(32, dtype=int)))
    assert q.sum() == pytest.approx(1.0)
    points = bound.sample(obs, np.zeros(60_000, dtype=int), np.random.default_rng(3))
    counts = np.bincount((points @ 2 ** np.arange(4, -1, -1)).astype(int), minlength=32)
    assert np.sum((counts - 60_000 * q) ** 2 / (60_000 * q)) < 31 + 5 * np.sqrt(62)


def test_a_tree_serves_where_independent_bits_are_far_from_the_data() -> None:
    y = _chain_of_bits(3000, 10, 4, copies=0.9)
    model = un.ExponentialFamily(lambda y: (y.sum(), (y[1:] * y[:-1]).sum()), ("h", "J"), un.BinaryVectors(10))
    product, tree = (
        un.fit(model, un.iid(y), un.Logistic(q, total=6000, points=un.IID()), rng=1).se
        for q in (un.ProductBernoulli(), un.BernoulliTree())
    )
    assert np.all(tree < 0.9 * product)


def test_mixtures_of_laws_on_bits_are_laws() -> None:
    """They sum to one over the 32 states, and their points have that law."""
    obs, omega = un.iid(_chain_of_bits(500, 5, 6)), un.BinaryVectors(5)
    mixed = un.Mixture((0.3, un.ProductBernoulli()), (0.4, un.BernoulliTree()), (0.3, un.LogisticBernoulli()))
    bound, states = mixed.bind(omega, obs), omega.quadrature().points
    q = np.exp(bound.log_density(states, obs, np.zeros(32, dtype=int)))
    assert q.sum() == pytest.approx(1.0)
    points = bound.sample(obs, np.zeros(40_000, dtype=int), np.random.default_rng(7))
    counts = np.bincount((points @ 2 ** np.arange(4, -1, -1)).astype(int), minlength=32)
    assert np.sum((counts - 40_000 * q) ** 2 / (40_000 * q)) < 31 + 5 * np.sqrt(62)


def test_pairs_of_bits_coincide_as_they_should() -> None:
    """P(1) = 0.1, 14 bits: Sobol's pairs coincide within 15 %; a lattice's are far off, and it is refused."""
    d, m = 14, 4096
    obs = un.iid(np.random.default_rng(0).integers(0, 2, (50, d)).astype(float))
    rare = un.ProductBernoulli(0.1).bind(un.BinaryVectors(d), obs)
    pairs = np.triu_indices(d, 1)
    points = un.Sobol().draw(rare, obs, total=m, rng=1).outcome
    assert np.abs((points.T @ points / m)[pairs] / 0.01 - 1).max() < 0.15
    with pytest.raises(CombinationError, match=r"some pairs of coordinates.*un\.Sobol"):
        un.Lattice().draw(rare, obs, total=m, rng=1)
    u = (un.Lattice().unit(None, m, d, False, np.random.default_rng(1))[0] >= 0.9).astype(float)
    assert np.abs((u.T @ u / m)[pairs] / 0.01 - 1).max() > 1.0


def test_the_default_on_bits_is_a_sobol_net() -> None:
    obs = un.iid(np.random.default_rng(0).integers(0, 2, (300, 6)).astype(float))
    fit = un.fit(un.Ising(6), obs, un.Logistic(un.ProductBernoulli(), total=2000), rng=1)
    assert "Sobol" in fit.diagnostics["points"]


def test_words() -> None:
    with pytest.raises(InputError, match="positive number"):
        un.BernoulliTree(add=0)
    with pytest.raises(CombinationError, match="binary vectors and graphs"):
        un.BernoulliTree().bind(un.Interval(0, 1), un.iid([0.5]))
