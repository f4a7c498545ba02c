import itertools

import numpy as np
import pytest

from unnorm._base.numerics import x64
from unnorm.domains import Graphs
from unnorm.errors import InputError


@pytest.mark.parametrize("directed", [False, True])
def test_columns_are_the_pairs_in_order(directed: bool) -> None:
    omega = Graphs(4, directed)
    expected = list(itertools.permutations(range(4), 2)) if directed else list(itertools.combinations(range(4), 2))
    assert list(map(tuple, omega.pairs)) == expected
    assert omega.dim == len(expected)
    for column, (i, j) in enumerate(expected):
        A = omega.adjacency(np.eye(omega.dim)[column])
        wanted = {(i, j)} if directed else {(i, j), (j, i)}
        assert set(map(tuple, np.argwhere(A))) == wanted


@pytest.mark.parametrize("directed", [False, True])
def test_adjacency_and_back(directed: bool) -> None:
    omega = Graphs(7, directed)
    y = omega.uniform(100, rng=1)
    A = omega.adjacency(y)
    assert A.shape == (100, 7, 7)
    assert not np.diagonal(A, axis1=1, axis2=2).any()
    np.testing.assert_array_equal(omega.edges_from_adjacency(A), y)
    np.testing.assert_array_equal(omega.edges_from_adjacency(A[3]), y[3])


def test_statistics_inside_traced_code() -> None:
    import jax

    omega = Graphs(4)

    def triangles(y):
        A = omega.adjacency(y)
        return (A @ A @ A).trace() / 6

    y = omega.quadrature().points
    by_hand = [
        sum(
            all(omega.adjacency(row)[a, b] for a, b in itertools.combinations(t, 2))
            for t in itertools.combinations(range(4), 3)
        )
        for row in y
    ]
    with x64():
        got = jax.jit(jax.vmap(triangles))(y)
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, by_hand, atol=1e-12)
        # one edge of a full graph on four nodes is in two triangles
        np.testing.assert_allclose(jax.grad(triangles)(np.ones(6)), 2.0)


def test_enumeration_and_its_limit() -> None:
    assert len(Graphs(4).quadrature().weights) == 64
    assert len(Graphs(3, directed=True).quadrature().weights) == 64
    assert len(Graphs(5, directed=True).quadrature().weights) == 2**20
    with pytest.raises(InputError, match=r"Graphs\(7, directed=False\) has 2\*\*21 = 2,097,152 states"):
        Graphs(7).quadrature()
    assert Graphs(100).log_volume == pytest.approx(4950 * np.log(2))


def test_bad_adjacency_matrices() -> None:
    omega = Graphs(3)
    with pytest.raises(InputError, match=r"shape \(…, 3, 3\)"):
        omega.edges_from_adjacency(np.zeros((4, 4)))
    with pytest.raises(InputError, match="0 and 1 only"):
        omega.edges_from_adjacency(np.full((3, 3), 0.5))
    with pytest.raises(InputError, match="no loops"):
        omega.edges_from_adjacency(np.eye(3))
    with pytest.raises(InputError, match=r"must be symmetric; the first, \(0, 1\).*Use Graphs\(3, directed=True\)"):
        omega.edges_from_adjacency(np.triu(np.ones((3, 3)), 1))
    assert Graphs(3, directed=True).edges_from_adjacency(np.triu(np.ones((3, 3)), 1)).tolist() == [1, 1, 0, 1, 0, 0]
    with pytest.raises(InputError, match=r"edge indicators of shape \(…, 3\)"):
        omega.adjacency(np.zeros(4))


def test_bad_graphs() -> None:
    with pytest.raises(InputError, match="nodes of Graphs must be a whole number of at least 2; got 1"):
        Graphs(1)
    with pytest.raises(InputError, match="True or False"):
        Graphs(3, directed="yes")  # pyright: ignore[reportArgumentType]
