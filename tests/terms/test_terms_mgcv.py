"""Every basis against mgcv's: the same functions, penalties, scale of the smoothing parameters, and extrapolation."""

from __future__ import annotations

import csv
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from unnorm.errors import UnnormWarning
from unnorm.terms import parse

ORACLES = Path(__file__).parents[1] / "oracles" / "mgcv"
CASES = json.loads((ORACLES / "terms.json").read_text())
FITS = json.loads((ORACLES / "fits.json").read_text())["fits"]


def read(name: str) -> dict[str, np.ndarray]:
    with open(ORACLES / name, newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {}
    for key in rows[0]:
        values = [row[key] for row in rows]
        columns[key] = np.array(values) if key == "g" else np.array(values, dtype=float)
    if "successes" in columns:
        columns["prop"] = columns["successes"] / columns["trials"]
    return columns


DATA = {"rows": read("fits_rows.csv"), "chain": read("fits_chain.csv")}
NEW = {name: np.array(values) for name, values in CASES["new"].items()}


def close(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-6) -> None:
    """Equal to `tolerance` relative to the largest entry."""
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(np.abs(b).max(), 1e-300))


@pytest.mark.parametrize("case", CASES["cases"], ids=[f"{i}-{c['term']}" for i, c in enumerate(CASES["cases"])])
def test_basis_and_penalties_are_mgcvs(case):
    built = parse(case["term"]).build(DATA["rows"], knots=case["knots"])
    assert len(built) == case["count"]
    for position, theirs in zip(case["kept"], case["smooths"]):
        ours = built[position]
        assert ours.label == theirs["label"]
        assert ours.null_dim == theirs["null_dim"]
        columns = np.array(theirs["new"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnnormWarning)  # some new rows are meant to be far outside
            design = ours.design(NEW)[: len(columns)]
        assert design.shape == columns.shape
        A, _, rank, _ = np.linalg.lstsq(design, columns, rcond=1e-13)
        close(design @ A, columns)  # the same functions, inside the data and outside
        assert rank == ours.size
        probes = np.cos(np.outer(np.arange(1, ours.size + 1), [1, 2, 3]))
        X = ours.design(DATA["rows"])
        close(A.T @ (X.T @ X) @ A @ probes, np.array(theirs["XtX"]))
        matrices = [A.T @ penalty.matrix @ A @ probes for penalty in ours.penalties]
        expected = [np.array(S) for S in theirs["S"]]
        assert len(matrices) == len(expected)
        if len(expected) == 3 and "fs" in case["term"]:  # mgcv's rounding rotates the null space, and so sets the scale
            matrices, expected = [matrices[0], sum(matrices[1:])], [expected[0], sum(expected[1:])]
            matrices, expected = ([S / np.abs(S).max() for S in both] for both in (matrices, expected))
        for S, R in zip(matrices, expected):
            close(S, R)
        for penalty in ours.penalties:
            eigenvalues = np.linalg.eigvalsh(penalty.matrix)
            assert np.sum(eigenvalues > 1e-9 * eigenvalues[-1]) == penalty.rank
            assert eigenvalues[0] > -1e-9 * eigenvalues[-1]


def logistic(eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mu = 1 / (1 + np.exp(-eta))
    return mu, mu * (1 - mu)


FAMILIES = {  # start of the linear predictor from y; mean and variance function
    "gaussian": (lambda y: y, lambda eta: (eta, np.ones_like(eta))),
    "binomial": (lambda y: np.log((y + 0.5) / (1.5 - y)), logistic),
    "poisson": (lambda y: np.log(y + 0.1), lambda eta: (np.exp(eta), np.exp(eta))),
}


@pytest.mark.parametrize("fit", FITS, ids=[fit["name"] for fit in FITS])
def test_fits_at_mgcvs_smoothing_parameters(fit):
    """Penalised likelihood with our columns and penalties at mgcv's sp gives its predictor, standard errors and edf."""
    columns = DATA[fit["data"]]
    terms = parse(fit["formula"])
    built = terms.build(columns, knots=fit["knots"])
    y = columns[terms.response]
    n = len(y)
    weight = columns[fit["weights"]] if fit["weights"] else np.ones(n)
    offset = columns[fit["offset"]] if fit["offset"] else np.zeros(n)
    blocks = [np.ones((n, 1))] if terms.intercept else []
    sp, placed, p = list(fit["sp"]), [], len(blocks)
    for term in built:
        blocks.append(term.design(columns))
        for penalty, fixed in zip(term.penalties, term.fixed_sp):
            placed.append((p, penalty.matrix, sp.pop(0) if fixed is None else fixed))
        p += term.size
    assert not sp
    X, S = np.hstack(blocks), np.zeros((p, p))
    for at, matrix, parameter in placed:
        S[at : at + len(matrix), at : at + len(matrix)] += parameter * matrix
    start, moments = FAMILIES[fit["family"]]
    eta = start(y)
    for _ in range(60):
        mu, variance = moments(eta)
        W = weight * variance
        H = X.T @ (W[:, None] * X)
        beta = np.linalg.solve(H + S, X.T @ (W * (eta - offset + (y - mu) / variance)))
        change, eta = np.abs(X @ beta + offset - eta).max(), X @ beta + offset
        if change < 1e-9:
            break
    V = np.linalg.inv(H + S)
    se = np.sqrt(fit["scale"] * np.einsum("ij,jk,ik->i", X, V, X))[fit["rows"]]
    rms = np.sqrt(np.mean((((eta - offset)[fit["rows"]] - fit["eta"]) / np.array(fit["se"])) ** 2))
    loose = fit["name"].startswith("fs-")  # m = 2: mgcv's null-space rotation is rounding (see the oracle's README)
    assert rms < (0.02 if loose else 1e-5)
    np.testing.assert_allclose(se, fit["se"], rtol=0.02 if loose else 1e-5)
    edf = np.sum(V * H)
    assert abs(edf - fit["edf_total"]) < (0.1 if loose else 1e-4)
    smooth = [term for term in built if not term.parametric]
    assert [term.label for term in smooth] == [s["label"] for s in fit["smooth"]]
    assert [term.size for term in smooth] == [s["size"] for s in fit["smooth"]]
