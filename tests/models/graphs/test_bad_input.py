# ruff: noqa: E501  (one case for each line)
"""Each bad input gets a sentence with the first offender and the remedy; nothing is turned into a zero."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import DataError, InputError, NotIdentifiedError, TermError, UnnormError

U, D = un.Graphs(4), un.Graphs(4, directed=True)
A = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=float)


def at(value: float, i: int, j: int, both: bool = False) -> np.ndarray:
    B = A.copy()
    B[i, j] = value
    if both:
        B[j, i] = value
    return B


def model(formula: str, omega: un.Graphs = D, **more: Any) -> un.GraphStatistics:
    return un.GraphStatistics(formula, omega, **more)


NAN = np.nan
CASES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    # matrices
    (lambda: un.networks(at(2, 0, 3), D), InputError, "0 and 1 only; the first, (0, 3) of graph 0 (from 0) is 2"),
    (lambda: un.networks(at(1, 2, 2), D), InputError, "no loops; the first, (2, 2) of graph 0 (from 0) is 1. Set the"),
    (lambda: un.networks(at(1, 0, 3), U), InputError, "must be symmetric; the first, (0, 3) of graph 0"),
    (lambda: un.networks(at(NAN, 1, 3), D), DataError, "1 ties are missing, the first (1, 3) of graph 0 (from 0)"),
    (lambda: un.networks(at(NAN, 1, 3), U, missing="skip"), DataError, "(1, 3) of graph 0 (from 0) is missing and (3, 1)"),
    (lambda: D.edges_from_adjacency(at(NAN, 1, 3)), InputError, "1 missing ties, the first, (1, 3) (from 0)"),
    (lambda: un.networks([A, A[:3, :3]], D), DataError, "graph 0 has shape (4, 4), graph 1 (3, 3)"),
    (lambda: un.networks(A[:3, :3], D), DataError, "must have shape (4, 4), or (T, 4, 4)"),
    (lambda: un.networks(A, D, sequence=True), DataError, "two graphs or more"),
    (lambda: un.networks(A, D, missing="zero"), InputError, "missing must be one of 'error', 'skip'; got 'zero'"),  # pyright: ignore
    (lambda: un.networks(A, un.BinaryVectors(12)), InputError, "domain must be un.Graphs(n, directed=…)"),  # pyright: ignore
    (lambda: un.networks(A, D, present=[[1, 1, 1, 0]]), DataError, "present must be 1 × 4 booleans"),
    (lambda: un.networks(A, D, present=np.array([[False, True, True, True]])), DataError, "Graph 0 has a tie (0, 1), and present says"),
    # fixed dyads
    (lambda: un.Graphs(4, fixed=np.zeros((3, 3), bool)), InputError, "4 × 4 booleans"),
    (lambda: un.Graphs(4, fixed=A), InputError, "got float64 of shape (4, 4). Of numbers, pass mask == 1"),
    (lambda: un.Graphs(4, fixed=np.triu(np.ones((4, 4)), 1) > 0), InputError, "fixed must be symmetric"),
    (lambda: un.Graphs(4, fixed=np.ones((4, 4)) > 0), InputError, "marks every dyad"),
    (lambda: un.networks(A, un.Graphs(4, fixed=A > 0)), InputError, "The dyad (0, 1) (from 0) is fixed at no tie"),
    # formulas
    (lambda: model("edges + gwespp(0.25)"), TermError, "A statistic of graphs must be one of 'absdiff', 'delrecip'"),
    (lambda: model(""), TermError, "a formula such as 'edges + mutual + gwesp(0.25)'; got ''"),
    (lambda: model("edges + "), TermError, "is not a term"),
    (lambda: model("edges * mutual"), TermError, "'edges * mutual' in 'edges * mutual' is not a term"),
    (lambda: model("edges + edges"), TermError, "'edges' occurs more than once"),
    (lambda: model("mutual", U), TermError, "mutual is not defined for undirected graphs."),
    (lambda: model("gwidegree(0.5)", U), TermError, "gwidegree(0.5) is not defined for undirected graphs. Use gwdegree."),
    (lambda: model("gwesp"), TermError, "gwesp is written gwesp(0.25); got gwesp."),
    (lambda: model("gwesp(-1)"), TermError, "The decay must be a number of at least 0, as in gwesp(0.25); got '-1'"),
    (lambda: model("istar(1.5)"), TermError, "k must be a whole number of at least 2, as in istar(2); got '1.5'"),
    (lambda: model("edges(2)"), TermError, "edges is written edges; got edges(2)."),
    (lambda: model("memory(inertia)"), TermError, "The kind of memory must be one of 'stability', 'autoregression'"),
    (lambda: model("edges(lag=1)"), TermError, "edges takes no options; got lag= in edges(lag=1)"),
    (lambda: model("nodecov(x, lag=2)", nodes={"x": [1, 2, 3, 4]}), TermError, "lag must be 0 or 1; got lag=2"),
    # attributes
    (lambda: model("nodematch(sex)"), TermError, "reads the attribute 'sex', and the model has no nodes: pass nodes=dict(sex=…)"),
    (lambda: model("nodematch(sex)", nodes={"age": [1, 2, 3, 4]}), TermError, "The attribute of nodematch(sex) must be one of 'age'; got 'sex'"),
    (lambda: model("edgecov(dist)"), TermError, "the model has no dyads"),
    (lambda: model("nodecov(x)", nodes={"x": [1, NAN, 3, 4]}), DataError, "nodes['x'] is missing for 1 of 4 values, first actor 1 (from 0)"),
    (lambda: model("nodematch(x)", nodes={"x": ["a", None, "b", "a"]}), DataError, "first actor 1"),
    (lambda: model("nodecov(x)", nodes={"x": [1, 2, 3]}), DataError, "one value for each of 4 actors"),
    (lambda: model("nodecov(x)", nodes={"x": ["a", "b", "a", "b"]}), TermError, "nodecov(x) needs numbers, and 'x' is text"),
    (lambda: model("nodecov(x)", nodes={"x": [1, np.inf, 2, 3]}), DataError, "must be finite"),
    (lambda: model("nodefactor(x)", nodes={"x": ["a"] * 4}), TermError, "'x' is 'a' for every actor"),
    (lambda: model("edgecov(d)", dyads={"d": at(NAN, 2, 0)}), DataError, "missing or infinite for 1 dyads, first (2, 0) (from 0)"),
    (lambda: model("edgecov(d)", dyads={"d": np.ones((3, 3))}), DataError, "dyads['d'] must have shape (4, 4)"),
    (lambda: model("edgecov(d)", U, dyads={"d": at(3, 0, 2)}), TermError, "entries (0, 2) and (2, 0) differ"),
    # models that meet data
    (lambda: un.fit(model("edges + memory"), un.networks(A, D), un.PseudoLikelihood()), InputError, "'memory' compares a graph with the one before it"),
    (
        lambda: un.fit(model("edgecov(d)", dyads={"d": np.ones((2, 4, 4))}), un.networks([A, A, A], D), un.PseudoLikelihood()),
        DataError,
        "covariate with values for 2 graphs, and graph 2 (from 0) needs number 2",
    ),
    (
        lambda: un.fit(model("edgecov(d)", dyads={"d": np.ones((2, 4, 4))}), un.networks(A, D), un.PseudoLikelihood()),
        InputError,
        "reads a covariate that varies in time",
    ),
    (
        lambda: un.fit(model("edges + nodematch(x)", nodes={"x": [1, 1, 1, 1]}), un.networks(A, D), un.PseudoLikelihood()),
        NotIdentifiedError,
        "'edges', 'nodematch(x)' cannot be told apart",
    ),
    (
        lambda: un.fit(model("edges + edgecov(z)", dyads={"z": np.zeros((4, 4))}), un.networks(A, D), un.MonteCarloML()),
        UnnormError,
        "edgecov(z)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "kind", "sentence"), CASES, ids=[str(k) for k in range(len(CASES))])
def test_a_sentence(bad: Callable[[], Any], kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=re.escape(sentence)):
        bad()
