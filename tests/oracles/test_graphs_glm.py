"""Pseudo-likelihood of s50 and Knecht against glm on change statistics by brute force in R (graphs/fits.R)."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm.models.graphs import STATISTICS

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
FITS = Path(__file__).parent / "graphs" / "fits.csv"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the real data are not here (../shared/data)")


def read(name: str) -> dict[str, np.ndarray]:
    with open(SHARED / name, newline="") as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) if row[key] else np.nan for row in rows]) for key in rows[0]}


def expected(name: str) -> tuple[str, np.ndarray, np.ndarray, int]:
    """Formula, estimates, glm's errors and rows."""
    with open(FITS, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["fit"] == name]
    terms = list(dict.fromkeys(row["term"].split("[")[0] for row in rows))
    estimate, se = (np.array([float(row[key]) for row in rows]) for key in ("estimate", "se"))
    return " + ".join(terms), estimate, se, int(rows[0]["rows"])


def s50() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    edges, actors = read("net_s50_edges.csv"), read("net_s50_actors.csv")
    A = np.zeros((3, 50, 50))
    A[tuple(edges[key].astype(int) - 1 for key in ("wave", "from", "to"))] = 1
    nodes = {name: np.stack([actors[f"{name}_w{t}"] for t in (1, 2, 3)]) for name in ("alcohol", "smoking")}
    return A, nodes


def knecht() -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]:
    dyads, pupils, primary = (read(f"net_knecht_{name}.csv") for name in ("dyads", "pupils", "primary_edges"))
    A, D = np.zeros((4, 26, 26)), np.zeros((26, 26))
    A[tuple(dyads[key].astype(int) - 1 for key in ("wave", "from", "to"))] = dyads["tie"]
    D[tuple(primary[key].astype(int) - 1 for key in ("from", "to"))] = 1
    present = (A == 10).sum(axis=2) < 25  # one who left has structural zeros to everybody
    delinquency = np.stack([pupils[f"delinquency_w{t}"] for t in (1, 2, 3, 4)])
    return (
        np.where(A == 10, 0, A),
        present,
        {"sex": pupils["sex"].astype(int), "delinquency": delinquency},
        {"primary": D},
    )


def agrees(name: str, model: un.GraphStatistics, obs: un.Observations) -> un.Fit:
    _, estimate, se, rows = expected(name)
    fit = un.fit(model, obs, un.PseudoLikelihood(draws=20), rng=1)
    np.testing.assert_allclose(fit.estimate, estimate, atol=1e-6)
    assert fit.solution is not None
    assert fit.solution.scores is not None
    np.testing.assert_allclose(np.sqrt(np.diag(np.linalg.inv(fit.solution.scores.information))), se, rtol=1e-6)
    free = model.free_bits(obs, np.arange(obs.n))
    assert rows == (obs.outcome.size if free is None else np.broadcast_to(free, obs.outcome.shape).sum())
    return fit


def test_s50_wave_1() -> None:
    """Also ergm's figures: estimates (−4.8134, 4.0072, .9354), errors (.22, .30, .09)."""
    A, _ = s50()
    omega = un.Graphs(50, directed=True)
    model = un.GraphStatistics(expected("s50 wave 1")[0], omega)
    with pytest.warns(match="has no standard errors"):  # ttriple is degenerate here
        fit = agrees("s50 wave 1", model, un.networks(A[0], omega))
    assert any("degenerate at the estimate" in note for note in fit.notes)
    np.testing.assert_allclose(fit.estimate, [-4.8134, 4.0072, 0.9354], atol=5e-5)


def test_s50_as_a_sequence() -> None:
    A, nodes = s50()
    omega = un.Graphs(50, directed=True)
    agrees("s50", un.GraphStatistics(expected("s50")[0], omega, nodes), un.networks(A, omega))


def test_s50_undirected() -> None:
    A, nodes = s50()
    omega = un.Graphs(50)
    model = un.GraphStatistics(expected("s50 undirected")[0], omega, {"smoking": nodes["smoking"][0].astype(int)})
    agrees("s50 undirected", model, un.networks(np.maximum(A[0], A[0].T), omega))


def test_knecht() -> None:
    """Missing ties, and a pupil who left."""
    A, present, nodes, dyads = knecht()
    omega = un.Graphs(26, directed=True)
    model = un.GraphStatistics(expected("knecht")[0], omega, nodes, dyads)
    agrees("knecht", model, un.networks(A, omega, present=present, missing="skip"))


def test_most_statistics_meet_r() -> None:
    names = {
        name.split("(")[0]
        for one in ("s50 wave 1", "s50", "s50 undirected", "knecht")
        for name in expected(one)[0].split(" + ")
    }
    assert names <= set(STATISTICS)
    assert len(names) >= 18
