"""Step selection against survival::clogit and mgcv's Cox model with strata, on the same rows.

The rows and R's answers are in tests/oracles/survival (made by steps_rows.py and steps.R there). Where the deer of
../shared/data and Rscript are present, the same is tried on the real track.
"""

import csv
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from oracles.survival.steps_rows import TERMS, fitted
from oracles.survival.surface_rows import fitted as surface

HERE = Path(__file__).parent / "survival"
SHARED = Path(__file__).parents[3] / "shared" / "data"
SMOOTH = "s(forest, bs='cr', k=6) + log_step"


def table(path: Path) -> dict[str, np.ndarray]:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    out = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {name: column if name in ("model", "term", "time") else column.astype(float) for name, column in out.items()}


@cache
def theirs(model: str) -> dict[str, tuple[float, float]]:
    found = table(HERE / "steps.csv")
    mine = found["model"] == model
    return dict(zip(found["term"][mine], zip(found["estimate"][mine], found["se"][mine])))


def ours(fit: un.Fit) -> dict[str, tuple[float, float]]:
    return dict(zip(fit.names, zip(fit.estimate, fit.se)))


def test_the_rows_are_those_that_r_was_given() -> None:
    mine, given = fitted().rows(), table(HERE / "steps_rows.csv")
    for name, column in given.items():
        np.testing.assert_allclose(mine[name], column, rtol=1e-9, atol=1e-9, err_msg=name)
    assert not np.any(mine["offset"])  # q = k: nothing to correct


@pytest.mark.parametrize(("model", "terms"), [("tilted", "forest"), ("integrated", TERMS)])
def test_ranking_relative_to_the_kernel_is_clogit(model: str, terms: str) -> None:
    mine, r = ours(fitted(terms).fit), theirs(model)
    assert set(mine) == set(r)
    for name, (estimate, se) in r.items():
        assert mine[name][0] == pytest.approx(estimate, rel=1e-6, abs=1e-6 * se), name
        assert mine[name][1] == pytest.approx(se, rel=1e-5), name


@pytest.mark.parametrize(("model", "terms"), [("tilted", "forest"), ("integrated", TERMS)])
def test_logistic_with_anchored_constants_is_close(model: str, terms: str) -> None:
    """With many points each: the terms are wrong here (the track likes the edge), which few points weigh otherwise."""
    first = fitted()
    same = {"maps": first.maps, "kernel": first.kernel}
    many = un.fit_steps(first.fit.obs, terms, per_point=200, rng=5, **same).fit
    logistic = un.fit_steps(first.fit.obs, terms, objective="logistic", per_point=60, rng=6, **same).fit
    assert logistic.anchored
    np.testing.assert_array_less(np.abs(logistic.estimate - many.estimate) / many.se, 0.2)


def test_a_smooth_of_habitat_is_mgcvs() -> None:
    knots = {"forest": np.linspace(0.05, 0.95, 6)}
    first = fitted()
    model = un.Additive(
        SMOOTH, first.fit.model.domain, covariates=first.fit.model.covariate_objects, base=first.fit.model.base,
        knots=knots,
    )  # fmt: skip
    fit = un.fit(model, first.fit.obs, un.Ranking(first.kernel, per_point=8), rng=3)
    r = table(HERE / "steps_smooth.csv")
    mine = fit.contrast({"forest": r["forest"]}, {"forest": 0.5})
    assert fit.edf["s(forest)"] == pytest.approx(r["edf"][0], abs=0.05)
    away = r["se"] > 0
    np.testing.assert_allclose(mine["log_rss"][away], r["estimate"][away], atol=0.05 * r["se"].max())
    np.testing.assert_allclose(mine["se"][away], r["se"][away], rtol=0.05)


LIVE = """
rows <- read.csv(commandArgs(TRUE)[1]); suppressMessages(library(survival))
tight <- coxph.control(eps = 1e-12, toler.chol = 1e-14, toler.inf = 1e-6)
one <- function(name, fit) data.frame(model = name, term = names(coef(fit)), estimate = sprintf("%.15g", coef(fit)),
                                      se = sqrt(diag(vcov(fit))))
write.csv(rbind(
  one("tilted", clogit(case ~ forest + strata(stratum), rows, method = "exact", control = tight)),
  one("integrated", clogit(case ~ forest + forest:night + step + log_step + cos_turn + strata(stratum), rows,
                           method = "exact", control = tight))), commandArgs(TRUE)[2], row.names = FALSE)
"""


@pytest.mark.skipif(not (SHARED / "animal_deer_track.csv").exists(), reason="the deer of ../shared/data is not here")
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_the_deer(tmp_path: Path) -> None:
    fixes = table(SHARED / "animal_deer_track.csv")
    hour = np.array([int(time[11:13]) for time in fixes["time"]])
    fixes["night"] = ((hour < 6) | (hour >= 18)).astype(float)
    track = un.track(fixes, time="time", x="x", y="y", burst="burst", columns=("night",))
    grid = table(SHARED / "animal_deer_forest_grid.csv")
    forest = un.Map.from_table(grid, value="frac_forest", name="forest", interpolate="nearest")
    fits = {
        name: un.fit_steps(track, terms, maps=forest, per_point=10, rng=1)
        for name, terms in (("tilted", "forest"), ("integrated", TERMS))
    }
    rows = fits["integrated"].rows()
    names = ("case", "stratum", "forest", "night", "step", "log_step", "cos_turn")
    np.savetxt(
        tmp_path / "rows.csv", np.column_stack([rows[name] for name in names]), delimiter=",", header=",".join(names),
        comments="", fmt="%.17g",
    )  # fmt: skip
    (tmp_path / "live.R").write_text(LIVE)
    command = ["Rscript", str(tmp_path / "live.R"), str(tmp_path / "rows.csv"), str(tmp_path / "fits.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "there is no package called" in done.stderr:
        pytest.skip("survival is not installed")
    assert done.returncode == 0, done.stderr
    found = table(tmp_path / "fits.csv")
    for model, term, estimate, se in zip(*(found[name] for name in ("model", "term", "estimate", "se"))):
        assert abs(ours(fits[model].fit)[term][0] - estimate) < 1e-6 * se, (model, term)
    assert 0.6 < ours(fits["tilted"].fit)["forest"][0] < 1.1  # .81 by survival::clogit with amt's random steps
    logistic = un.fit_steps(track, TERMS, maps=forest, objective="logistic", per_point=20, rng=2).fit
    many = un.fit_steps(track, TERMS, maps=forest, per_point=100, rng=3).fit
    np.testing.assert_array_less(np.abs(logistic.estimate - many.estimate) / many.se, 0.2)


def test_a_surface_over_what_is_constant_within_a_choice() -> None:
    """te(y, hour): functions of the hour alone are not seen, and integrated out, as mgcv does; held at zero in the
    coefficients' own coordinates they cost .07 standard errors."""
    fit, r = surface(), table(HERE / "surface.csv")
    np.testing.assert_allclose(fit.rows()["y"], table(HERE / "surface_rows.csv")["y"], rtol=1e-9)
    mine = fit.contrast({"y": r["y"], "hour": r["hour"]}, {"y": np.full(20, 2.0), "hour": r["hour"]})
    away = (mine["log_rss"] - r["estimate"]) / r["conditional_se"]
    assert np.sqrt(np.mean(away**2)) < 0.005
    assert fit.edf["te(y,hour)"] == pytest.approx(r["edf"][0], abs=0.02)
    np.testing.assert_allclose(list(fit.smooths.sp.values()), [r["sp1"][0], r["sp2"][0]], rtol=0.03)
    assert np.all(mine["se"] > 0.99 * r["conditional_se"])
    assert np.all(mine["se"] < 1.4 * r["conditional_se"])  # λ is not known, and the points are drawn


def test_a_surface_has_no_level_at_each_hour() -> None:
    """Bands of te(y, hour) say how f varies with y: its level at an hour is the constant's."""
    shown = surface().effect("te(y,hour)")
    hours, back = np.unique(shown["hour"], return_inverse=True)
    np.testing.assert_allclose(
        np.bincount(back, shown["estimate"]) / np.bincount(back), np.zeros(hours.size), atol=1e-9
    )
    assert np.median(shown["se"]) < 0.5
    some = slice(3, 1600, 97)
    at = {name: shown[name][some] for name in ("y", "hour")}
    again = surface().effect("te(y,hour)", at)
    np.testing.assert_allclose(again["estimate"], shown["estimate"][some], atol=1e-9)
    np.testing.assert_allclose(again["se"], shown["se"][some], rtol=1e-9)
