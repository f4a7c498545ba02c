"""Bands over repeated data sets: the population's from the joint fit, the subjects' own, and the plain mean's.

Each data set: 14 subjects from the random-effects law of unnorm.studies.eye, 600 to 2,000 fixations each, the paper's
model. Coverage is the share of observed covariate values at which the 95 % band holds the true curve (Marra & Wood
2012), each curve centred as the fit centres it: to mean zero over the fitted rows.

Run by hand, `python tests/slow/test_group_coverage.py 200` prints the table; progress goes to stderr.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

import unnorm as un
from unnorm.groups import FitGroup, fit_each
from unnorm.studies.eye import LABELS, EyeCurves, draw_subjects, population_curve, simulate_eye

pytestmark = pytest.mark.filterwarnings("ignore:The constants of:unnorm.errors.UnnormWarning")
TERMS = "s(step, k=10) + s(dcenter, k=40) + s(angle, bs='cc', k=20)"
SETS = 200


def one_group(seed: int) -> tuple[FitGroup, un.Observations, tuple[EyeCurves, ...]]:
    rng = np.random.default_rng([7, seed])
    curves = draw_subjects(14, rng)
    table = simulate_eye(rng, curves=curves)
    obs = un.transitions(table, y=("x", "y"), order="fix", group=("subject", "image"))
    model = un.Additive(TERMS, un.Box((0, 800), (0, 600)), y_down=True)
    return fit_each(model, obs, "subject", normaliser=un.Smooth("s(x_prev, y_prev, k=40)"), rng=seed), obs, curves


def covered(each: FitGroup, obs: un.Observations, curves: tuple[EyeCurves, ...], seed: int) -> dict[str, np.ndarray]:
    """which → share covered for each term."""
    rng = np.random.default_rng(seed)
    known = each.model.covariates(obs).values(("step", "dcenter", "angle"), obs)
    columns = {level: fit.smooths.gam.columns for level, fit in each.fits.items()}
    out: dict[str, list[float]] = {"group": [], "mean": [], "subjects": []}
    for label in LABELS:
        name = label[2:-1]
        at = {name: rng.choice(known[name], 400)}
        pooled = np.concatenate([c[name] for c in columns.values()])
        truth = population_curve(label, at[name]) - population_curve(label, pooled).mean()
        for which in ("group", "mean"):
            e = each._effect(label, which, at)
            out[which].append(np.mean((e["lower"] <= truth) & (truth <= e["upper"])))
        own = []
        for s, level in enumerate(each.fits):
            mine = obs.group["subject"] == int(level)
            here = {name: rng.choice(known[name][mine], 200)}
            e = each._effect(label, level, here)
            truth_s = curves[s].curve(label, here[name]) - curves[s].curve(label, columns[level][name]).mean()
            own.append(np.mean((e["lower"] <= truth_s) & (truth_s <= e["upper"])))
        out["subjects"].append(np.mean(own))
    return {which: np.array(values) for which, values in out.items()}


def study(sets: int, first: int = 0) -> dict[str, np.ndarray]:
    """which → (sets, terms) coverage."""
    found: dict[str, list[np.ndarray]] = {"group": [], "mean": [], "subjects": []}
    for seed in range(first, first + sets):
        each, obs, curves = one_group(seed)
        assert not each.failures, each.failures
        assert each.group is not None, each.notes
        for which, values in covered(each, obs, curves, seed).items():
            found[which].append(values)
        so_far = {w: np.round(np.mean(v, axis=0), 3).tolist() for w, v in found.items()}
        print(seed, so_far, file=sys.stderr, flush=True)
    return {which: np.array(values) for which, values in found.items()}


@pytest.mark.slow
def test_bands_cover_the_population_and_the_subjects():
    found = study(SETS)
    assert 0.92 <= found["group"].mean() <= 0.98
    assert 0.92 <= found["subjects"].mean() <= 0.98
    assert found["mean"].mean() < found["group"].mean()  # what the joint fit is for


if __name__ == "__main__":
    sets, begin = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    table = study(sets, begin)
    print(f"coverage of 95 % bands over {sets} data sets: {', '.join(LABELS)}; mean (Monte Carlo se)")
    for which, values in table.items():
        se = values.mean(axis=1).std(ddof=1) / np.sqrt(sets)
        print(f"{which:<9} {np.round(values.mean(axis=0), 3).tolist()}  {values.mean():.3f} ({se:.3f})")
