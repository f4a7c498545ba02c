"""Change statistics against values recomputed from the definitions, on every graph of up to four actors and more."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import unnorm as un
from unnorm.models.graphs import STATISTICS

KINDS = [False, True]


def terms(directed: bool) -> list[str]:
    kind = "directed" if directed else "undirected"
    return [term for part in STATISTICS.values() if kind in part.on for term in part.examples()]


def setting(n: int, seed: int = 3) -> dict[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    D, T = rng.normal(size=(n, n)), rng.normal(size=(3, n, n))
    return {
        "nodes": {
            "age": rng.normal(size=n),
            "sex": rng.integers(2, size=n),
            "club": np.array(["a", "b", "c", "a", "b", "c", "a", "c", "c", "b", "a", "b"])[:n],
        },
        "dyads": {"dist": D + D.T, "trend": T + np.swapaxes(T, 1, 2)},
    }


def recomputed(model: un.GraphStatistics, y: np.ndarray, before: np.ndarray, wave: int) -> np.ndarray:
    A, B = model.domain.adjacency(y), model.domain.adjacency(before)
    return np.array(list(model.statistics(A, B, wave).values()))


def context(model: un.GraphStatistics, before: np.ndarray, wave: int, N: int) -> tuple[dict[str, np.ndarray], ...]:
    x = {}
    if model.reads_before:
        x["before"] = np.repeat(before[None], N, axis=0)
    if model.varies:
        x["wave"] = np.full(N, wave)
    return (x,) if x else ()


def agree(model: un.GraphStatistics, y: np.ndarray, before: np.ndarray, wave: int) -> None:
    """Statistics and changes of the rows of y equal recomputation, toggle by toggle."""
    x = context(model, before, wave, len(y))
    s = np.stack([recomputed(model, row, before, wave) for row in y])
    np.testing.assert_allclose(model.statistics_at(y, x), s, atol=1e-10)
    changes = model.changes(y, x)
    for t, row in enumerate(y):
        for i in range(model.domain.dim):
            other = row.copy()
            other[i] = 1 - other[i]
            np.testing.assert_allclose(changes[t, i], recomputed(model, other, before, wave) - s[t], atol=1e-10)


@pytest.mark.parametrize("directed", KINDS)
@pytest.mark.parametrize("n", [2, 3])
def test_every_graph_and_toggle(n: int, directed: bool) -> None:
    omega = un.Graphs(n, directed)
    model = (
        un.GraphStatistics(" + ".join(terms(directed)), omega, **setting(n))
        if n > 2
        else un.GraphStatistics(" + ".join(t for t in terms(directed) if "club" not in t), omega, **setting(n))
    )
    before = omega.uniform(1, rng=5)[0]
    agree(model, omega.quadrature().points, before, wave=2)


def test_every_undirected_graph_of_four() -> None:
    omega = un.Graphs(4)
    model = un.GraphStatistics(" + ".join(terms(False)), omega, **setting(4))
    agree(model, omega.quadrature().points, omega.uniform(1, rng=5)[0], wave=1)


def test_every_directed_graph_of_four() -> None:
    """4,096 graphs of 12 dyads: the changes against differences of the statistics, those against the definitions."""
    omega = un.Graphs(4, directed=True)
    model = un.GraphStatistics(" + ".join(terms(True)), omega, **setting(4))
    y, before = omega.quadrature().points, omega.uniform(1, rng=5)[0]
    x = context(model, before, 1, len(y))
    s = model.statistics_at(y, x)
    some = np.random.default_rng(8).choice(len(y), 300, replace=False)
    for t in some:
        np.testing.assert_allclose(s[t], recomputed(model, y[t], before, 1), atol=1e-10)
    place = (2 ** np.arange(omega.dim)[::-1]).astype(int)
    flipped = np.arange(len(y))[:, None] ^ place
    np.testing.assert_allclose(model.changes(y, x), s[flipped] - s[:, None], atol=1e-10)


@pytest.mark.parametrize("directed", KINDS)
@pytest.mark.parametrize("density", [0.1, 0.4, 0.8])
def test_random_graphs_of_twelve(directed: bool, density: float) -> None:
    omega = un.Graphs(12, directed)
    model = un.GraphStatistics(" + ".join(terms(directed)), omega, **setting(12))
    rng = np.random.default_rng(int(10 * density))
    y, before = (rng.random((2, omega.dim)) < density).astype(float), omega.uniform(1, rng=6)[0]
    agree(model, y, before, wave=2)


def test_definitions_by_hand() -> None:
    """Five actors, counted on paper: 0→1, 1→0, 0→2, 1→2, 2→3, 3→0; actor 4 alone."""
    A = np.zeros((5, 5))
    for i, j in [(0, 1), (1, 0), (0, 2), (1, 2), (2, 3), (3, 0)]:
        A[i, j] = 1
    omega = un.Graphs(5, directed=True)
    formula = "edges+mutual+ttriple+ctriple+triangle+istar(2)+ostar(2)+isolates+idegree(2)+odegree(0)+esp(1)+dsp(1)"
    s = un.GraphStatistics(formula, omega).statistics(A)
    assert s["edges"] == 6
    assert s["mutual"] == 1
    assert s["isolates"] == 1
    assert s["ttriple"] == 2  # 0→1→2 with 0→2, 1→0→2 with 1→2
    assert s["ctriple"] == 1  # 0→2→3→0
    assert s["triangle"] == 3
    assert s["istar(2)"] == 2  # into 0 and into 2
    assert s["ostar(2)"] == 2  # from 0 and from 1
    assert s["idegree(2)"] == 2
    assert s["odegree(0)"] == 1
    assert s["esp(1)"] == 2  # 0→2 by way of 1, 1→2 by way of 0
    # two-paths i→j→k by pair: 02 (1), 12 (0), 03 (2), 13 (2), 20 (3), 31 (0), 32 (0); all single
    assert s["dsp(1)"] == 7


def test_undirected_definitions_by_hand() -> None:
    """A triangle 0-1-2 with a tail 2-3."""
    A = np.zeros((5, 5))
    for i, j in [(0, 1), (1, 2), (0, 2), (2, 3)]:
        A[i, j] = A[j, i] = 1
    a = 0.5
    model = un.GraphStatistics(
        "edges+triangle+kstar(2)+gwesp(0.5)+gwdsp(0.5)+gwdegree(0.5)+degree(2)+isolates", un.Graphs(5)
    )
    s = model.statistics(A)
    assert (s["edges"], s["triangle"], s["kstar(2)"], s["degree(2)"], s["isolates"]) == (4, 1, 5, 2, 1)
    assert s["gwesp(0.5)"] == pytest.approx(3.0)  # three ties with one partner, each counting 1
    assert s["gwdsp(0.5)"] == pytest.approx(5.0)  # 01, 02, 12, and 03, 13 by way of 2
    h = [np.exp(a) * (1 - (1 - np.exp(-a)) ** d) for d in range(4)]
    assert s["gwdegree(0.5)"] == pytest.approx(2 * h[2] + h[3] + h[1])


def test_previous_graphs_and_covariates() -> None:
    omega = un.Graphs(3, directed=True)
    A = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]])
    B = np.array([[0, 1, 0], [1, 0, 0], [1, 0, 0]])
    D = np.array([[0, 2.0, 3.0], [4.0, 0, 5.0], [6.0, 7.0, 0]])
    formula = (
        "memory + memory(autoregression) + memory(innovation) + memory(loss) + stability + delrecip + edgecov(d) "
        "+ nodecov(x) + nodeocov(x) + nodeicov(x) + absdiff(x) + nodefactor(g) + nodeofactor(g) + nodeifactor(g)"
    )
    s = un.GraphStatistics(formula, omega, {"x": [1.0, 2.0, 4.0], "g": ["u", "v", "v"]}, {"d": D}).statistics(A, B)
    assert s["memory(autoregression)"] == 2
    assert s["memory(innovation)"] == 1
    assert s["memory(loss)"] == -2
    assert s["memory"] == 1
    assert s["stability"] == 4
    assert s["delrecip"] == 2  # 0→1 answers 1→0, 0→2 answers 2→0
    assert s["edgecov(d)"] == 2 + 3 + 6
    assert s["nodecov(x)"] == 3 + 5 + 5
    assert s["nodeocov(x)"] == 1 + 1 + 4
    assert s["nodeicov(x)"] == 2 + 4 + 1
    assert s["absdiff(x)"] == 1 + 3 + 3
    assert s["nodefactor(g)[v]"] == 3
    assert s["nodeofactor(g)[v]"] == 1
    assert s["nodeifactor(g)[v]"] == 2


def test_lagged_covariates_are_those_of_the_graph_before() -> None:
    omega = un.Graphs(3)
    D = np.zeros((2, 3, 3))
    D[0], D[1] = 1 - np.eye(3), 10 * (1 - np.eye(3))
    A = 1 - np.eye(3)
    s = un.GraphStatistics("edgecov(d) + edgecov(d, lag=1)", omega, dyads={"d": D}).statistics(A, wave=1)
    assert s == {"edgecov(d)": 30.0, "edgecov(d, lag=1)": 3.0}


def test_labels_are_unique_and_public() -> None:
    for directed, n in itertools.product(KINDS, [12]):
        model = un.GraphStatistics(" + ".join(terms(directed)), un.Graphs(n, directed), **setting(n))
        assert len(set(model.names)) == model.size


def test_degrees_of_directed_graphs_are_in_and_out_together() -> None:
    """One formula with mutual and gwdegree; degrees of 0 → 1, 1 → 0, 0 → 2: 3, 2, 1, 0."""
    omega = un.Graphs(4, directed=True)
    A = np.zeros((4, 4))
    A[[0, 1, 0], [1, 0, 2]] = 1
    formula = "edges + mutual + gwesp(0.25) + gwdegree(0.5) + nodematch(sex) + edgecov(dist) + memory + delrecip"
    model = un.GraphStatistics(formula, omega, {"sex": ["f", "m", "f", "m"]}, {"dist": np.ones((4, 4))})
    obs = un.networks([np.zeros((4, 4)), A], omega)
    s = dict(zip(model.names, model.jacobian(model.start, obs.outcome, model.arguments(obs, np.arange(1)))[0]))
    h = [np.exp(0.5) * (1 - (1 - np.exp(-0.5)) ** d) for d in range(4)]
    assert s["gwdegree(0.5)"] == pytest.approx(h[3] + h[2] + h[1])
    few = un.GraphStatistics("kstar(2) + degree(1)", omega)
    assert few.jacobian(few.start, obs.outcome, ())[0].tolist() == [3 + 1, 1]
