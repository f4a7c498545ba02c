"""A second real set of tracks, beside the deer: Atlantic storms since 2008 (dplyr::storms), against survival::clogit.

The data come with R's dplyr and are not kept here: without it the test is skipped. Figures of one run are in
tests/oracles/survival/storms.csv, so that what R said can be read.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import hush

SCRIPT = Path(__file__).parent / "survival" / "storms.R"
TERMS = {"tilted": "north + east", "integrated": "north + east + north:wind + step + log_step + cos_turn"}
EARTH = 6_371.0  # km


@cache
def has_dplyr() -> bool:
    if shutil.which("Rscript") is None:
        return False
    asked = ["Rscript", "-e", "quit(status = !all(c('dplyr', 'survival') %in% rownames(installed.packages())))"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def table(path: Path) -> dict[str, np.ndarray]:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    out = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {
        name: column if name in ("model", "term", "storm") else column.astype(float) for name, column in out.items()
    }


def projected(lon: np.ndarray, lat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Azimuthal equidistant about 60° W 25° N on a sphere, in km."""
    a, b, b0 = np.radians(lon + 60.0), np.radians(lat), np.radians(25.0)
    cos_c = np.sin(b0) * np.sin(b) + np.cos(b0) * np.cos(b) * np.cos(a)
    c = np.arccos(np.clip(cos_c, -1.0, 1.0))
    k = EARTH * np.where(c > 1e-9, c / np.maximum(np.sin(c), 1e-9), 1.0)
    return k * np.cos(b) * np.sin(a), k * (np.cos(b0) * np.sin(b) - np.sin(b0) * np.cos(b) * np.cos(a))


def storms(path: Path) -> un.Track:
    """Bursts of fixes six hours apart; storms that stand still for six hours are joined, and the notes count them."""
    fixes = table(path)
    fixes["x"], fixes["y"] = projected(fixes["lon"], fixes["lat"])
    fixes["wind"] = (fixes["wind"] - 50.0) / 25.0
    return un.track(
        fixes, time="time", x="x", y="y", animal="storm", columns=("wind",), max_gap="7h", repeated="first",
        order="sort", zero_steps="join",
    )  # fmt: skip


@pytest.mark.skipif(not has_dplyr(), reason="R with dplyr and survival is not installed")
def test_storms_by_clogit(tmp_path: Path) -> None:
    subprocess.run(["Rscript", str(SCRIPT), "tracks", str(tmp_path / "tracks.csv")], check=True, capture_output=True)
    track = storms(tmp_path / "tracks.csv")
    units = (un.Expression("north", "y / 1000"), un.Expression("east", "x / 1000"))
    fits = {
        name: un.fit_steps(track, terms, covariates=units, per_point=10, rng=1) for name, terms in TERMS.items()
    }  # the same seed, the same points
    rows = fits["integrated"].rows()
    columns = ("case", "stratum", "north", "east", "wind", "step", "log_step", "cos_turn")
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(rows[name].tolist() for name in columns)))
    asked = ["Rscript", str(SCRIPT), "clogit", str(tmp_path / "rows.csv"), str(tmp_path / "fits.csv")]
    subprocess.run(asked, check=True, capture_output=True)
    r = table(tmp_path / "fits.csv")
    for name, fit in fits.items():
        mine = r["model"] == name
        theirs = dict(zip(r["term"][mine], zip(r["estimate"][mine], r["se"][mine])))
        assert set(fit.fit.names) == set(theirs)
        for term, estimate, se in zip(fit.fit.names, fit.fit.estimate, fit.fit.se):
            assert estimate == pytest.approx(theirs[term][0], rel=1e-6, abs=1e-6 * theirs[term][1]), term
            assert se == pytest.approx(theirs[term][1], rel=1e-4), term
    with hush():  # storms turn from west to east on their way north: f does not fit alike everywhere, and it says so
        logistic = un.fit_steps(track, TERMS["tilted"], covariates=units, objective="logistic", per_point=60, rng=2).fit
    estimate, se = by_quadrature(fits["tilted"])
    np.testing.assert_array_less(np.abs(logistic.estimate - estimate) / se, 0.2)
    np.testing.assert_array_less(np.abs(fits["tilted"].fit.estimate - estimate) / se, 1.0)  # ten points each


def by_quadrature(fit: un.StepFit) -> tuple[np.ndarray, np.ndarray]:
    """Maximum likelihood of north and east, constants by the kernel's own rule."""
    obs, law = fit.fit.obs, fit.fit.model.base.law
    y, w, of = law.rule(obs, 14)
    z, seen, beta = y[:, ::-1] / 1000.0, obs.outcome[:, ::-1] / 1000.0, np.zeros(2)
    for _ in range(6):
        p = w * np.exp((z - seen[of]) @ beta)
        p /= np.bincount(of, p)[of]
        mean = np.stack([np.bincount(of, p * z[:, j]) for j in (0, 1)], axis=1)
        away = z - mean[of]
        H = away.T @ (p[:, None] * away)
        beta = beta + np.linalg.solve(H, (seen - mean).sum(axis=0))
    return beta, np.sqrt(np.diag(np.linalg.inv(H)))
