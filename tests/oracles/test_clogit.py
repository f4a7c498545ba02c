"""Ranking against survival::clogit, and the estimators of Section 4.1 against glm and mgcv, on the same rows.

The rows and R's answers are in tests/oracles/survival (made by rows.py and fits.R there); where Rscript is installed
the answers are also made afresh, on rows of the toy experiment itself.
"""

import csv
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm._base.numerics import stream
from unnorm.references import IID, Custom
from unnorm.studies.reproduce_toy import model, reference_seed, specifications, truth_and_chain

HERE = Path(__file__).parent / "survival"
SPECIFICATIONS = {
    "clogit": lambda q, k: {"objective": un.Ranking(q, per_point=k)},
    "parametric": lambda q, k: {
        "objective": un.Logistic(q, per_point=k, points=IID()),
        "normaliser": un.PerContext(),
    },
    "ignored": lambda q, k: {"objective": un.Logistic(q, per_point=k, points=IID()), "normaliser": un.Constant()},
    "semiparametric GCV.Cp": lambda q, k: {
        "objective": un.Logistic(q, per_point=k, points=IID()),
        "normaliser": un.Smooth("s(y_prev, k=10)", smoothing="reml"),
        "smoothing": "gcv",
    },
    "semiparametric REML": lambda q, k: {
        "objective": un.Logistic(q, per_point=k, points=IID()),
        "normaliser": un.Smooth("s(y_prev, k=10)", smoothing="reml"),
        "smoothing": "reml",
    },
}


def read(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@cache
def rows() -> dict[str, np.ndarray]:
    table = read(HERE / "rows.csv")
    return {name: np.array([float(row[name]) for row in table]) for name in table[0]}


@cache
def theirs(path: Path = HERE / "fits.csv") -> dict[str, dict[str, float]]:
    return {row["model"]: {key: float(row[key]) for key in row if key != "model"} for row in read(path)}


def given_points(y: np.ndarray) -> Custom:
    """A uniform reference on [−1, 1] that hands out these points instead of drawing."""
    log_half = -np.log(2.0)
    return Custom(lambda rng, n, x: y[:n], lambda y, x: np.full(len(y), log_half), "rows from a file", check=False)


def our_fit(name: str) -> un.Fit:
    table = rows()
    real = table["z"] == 1
    points = table["y"][~real]
    chain = np.append(table["y_prev"][real], table["y"][real][-1])
    spec = SPECIFICATIONS[name](given_points(points), len(points) // int(real.sum()))
    return un.fit(model(), un.transitions(chain), rng=1, **spec)


def test_ranking_is_clogit() -> None:
    r, fit = theirs()["clogit"], our_fit("clogit")
    np.testing.assert_allclose(fit.estimate, [r["theta1"], r["theta2"]], rtol=1e-6)
    np.testing.assert_allclose(fit.se, [r["se1"], r["se2"]], rtol=1e-6)
    assert fit.value == pytest.approx(r["loglik"], rel=1e-9)


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # constants ignored on purpose
@pytest.mark.parametrize("name", ["parametric", "ignored"])
def test_logistic_is_glm(name: str) -> None:
    """One intercept for each transition, or one for all. Standard errors differ: ours count how IID points vary."""
    r, fit = theirs()[name], our_fit(name)
    np.testing.assert_allclose(fit.estimate, [r["theta1"], r["theta2"]], rtol=1e-6)
    assert fit.value == pytest.approx(r["loglik"], rel=1e-9)


@pytest.mark.parametrize("method", ["GCV.Cp", "REML"])
def test_semiparametric_is_mgcv(method: str) -> None:
    r, fit = theirs()[f"semiparametric {method}"], our_fit(f"semiparametric {method}")
    difference = (fit.estimate - [r["theta1"], r["theta2"]]) / [r["se1"], r["se2"]]
    assert np.max(np.abs(difference)) < 0.005
    np.testing.assert_allclose(fit.se, [r["se1"], r["se2"]], rtol=0.01)


LIVE = """
rows <- read.csv(commandArgs(TRUE)[1]); out <- commandArgs(TRUE)[2]
rows$d <- -0.5 * (rows$y - rows$y_prev)^2
suppressMessages(library(mgcv))
one <- function(name, fit, at) data.frame(model = name, theta1 = coef(fit)[at[1]], theta2 = coef(fit)[at[2]],
  se1 = sqrt(vcov(fit)[at[1], at[1]]), se2 = sqrt(vcov(fit)[at[2], at[2]]))
found <- rbind(
  one("semiparametric UBRE", gam(z ~ y + d + s(y_prev, k = 10), binomial, rows, method = "GCV.Cp"), 2:3),
  one("semiparametric REML", gam(z ~ y + d + s(y_prev, k = 10), binomial, rows, method = "REML"), 2:3),
  one("ignored", glm(z ~ y + d, binomial, rows), 2:3))
write.csv(found, out, row.names = FALSE)
"""


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
@pytest.mark.parametrize(("setting", "rep"), [("random", 0), ("random", 1), ("fixed", 0), ("fixed", 1)])
def test_the_toy_experiment_with_mgcv(setting: str, rep: int, tmp_path: Path) -> None:
    """Repetitions of `unnorm reproduce toy`, IID points, n = 200, k = 10: mgcv on the very rows gives the same."""
    n, k = 200, 10
    _, chain, points = truth_and_chain(setting, n, rep, seed=1)
    obs = un.transitions(chain)
    rng = reference_seed(points, k, "iid")
    specs = specifications(k, "iid")
    drawn = specs["ignored"]["objective"].draw(model(), obs, None, stream(rng))
    y, x = drawn.outcome[:, 0], obs.previous()[drawn.at, 0]
    np.savetxt(
        tmp_path / "rows.csv",
        np.column_stack([drawn.z, y, x]),
        delimiter=",",
        header="z,y,y_prev",
        comments="",
        fmt="%.17g",
    )
    (tmp_path / "live.R").write_text(LIVE)
    command = ["Rscript", str(tmp_path / "live.R"), str(tmp_path / "rows.csv"), str(tmp_path / "fits.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "there is no package called" in done.stderr:
        pytest.skip("mgcv is not installed")
    assert done.returncode == 0, done.stderr
    for name, r in theirs(tmp_path / "fits.csv").items():
        fit = un.fit(model(), obs, rng=rng, **specs[name])
        difference = (fit.estimate - [r["theta1"], r["theta2"]]) / [r["se1"], r["se2"]]
        assert np.max(np.abs(difference)) < (1e-5 if name == "ignored" else 0.02), name
