"""Degrees, distances and triads against other ways of counting."""

from __future__ import annotations

import itertools

import numpy as np

from unnorm.models.graphs.counts import TRIADS, census, counts, distances


def test_triads_of_every_class_by_hand() -> None:
    ties = {
        "003": [], "012": ["01"], "102": ["01", "10"], "021D": ["01", "02"], "021U": ["10", "20"], "021C": ["01", "12"],
        "111D": ["01", "10", "21"], "111U": ["01", "10", "12"], "030T": ["01", "02", "12"], "030C": ["01", "12", "20"],
        "201": ["01", "10", "12", "21"], "120D": ["01", "10", "20", "21"], "120U": ["01", "10", "02", "12"],
        "120C": ["01", "10", "02", "21"], "210": ["01", "10", "02", "12", "21"],
        "300": ["01", "10", "02", "20", "12", "21"],
    }  # fmt: skip
    for name, each in ties.items():
        for order in itertools.permutations(range(3)):
            A = np.zeros((3, 3))
            for tie in each:
                A[order[int(tie[0])], order[int(tie[1])]] = 1
            assert [TRIADS[k] for k in np.flatnonzero(census(A))] == [name]


def test_numbers_of_triads_by_class() -> None:
    """Of the 64 labelled graphs of three actors: Wasserman & Faust's multiplicities."""
    total = np.zeros(16, dtype=int)
    for bits in itertools.product([0, 1], repeat=6):
        A = np.zeros((3, 3))
        A[~np.eye(3, dtype=bool)] = bits
        total += census(A)
    assert total.tolist() == [1, 6, 3, 3, 3, 6, 6, 6, 6, 2, 3, 3, 3, 6, 6, 1]


def test_distances_against_scipy() -> None:
    from scipy.sparse.csgraph import shortest_path

    A = (np.random.default_rng(1).random((20, 20)) < 0.08) & ~np.eye(20, dtype=bool)
    d = shortest_path(A.astype(float), unweighted=True)[~np.eye(20, dtype=bool)]
    expected = [int(np.sum(d == k)) for k in range(20)] + [int(np.sum(np.isinf(d)))]
    assert distances(A.astype(float)).tolist() == expected


def test_undirected_pairs_count_once() -> None:
    A = np.zeros((4, 4))
    for i, j in [(0, 1), (1, 2), (0, 2)]:
        A[i, j] = A[j, i] = 1
    found = {name: count(A).tolist() for name, (_, count) in counts(False, 4).items()}
    assert found["degree"] == [1, 0, 3, 0]
    assert found["shared partners"] == [0, 3, 0]
    assert found["distance"] == [3, 0, 0, 3]
    assert found["triads"] == [0, 3, 0, 1]
