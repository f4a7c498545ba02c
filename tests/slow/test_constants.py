"""With all defaults, estimates are those of exact maximum likelihood: their shift from it, and their rmse beside its."""

from __future__ import annotations

import numpy as np
import pytest
from calibration import BLOCK, REPS, SEED, Case, Runs, collected, spread_out
from recipes import RECIPES

import unnorm as un

pytestmark = pytest.mark.slow

SHIFT, WORSE = 0.1, 1.12  # mean shift in standard errors; rmse over that of maximum likelihood
LAWS = ("walk", "steep", "circle", "regression", "box", "words", "grid steep", "table")


def pairs(case: Case, block: int, size: int) -> Runs:
    """The default and the exact fit of each data set."""
    law = case.known

    def both(obs: un.Observations, seed: list[int]) -> dict[str, np.ndarray]:
        exact = un.fit(law.model, obs, **RECIPES["exact"](law, "plain"))
        given = RECIPES[case.recipe](law, "plain")
        fit = un.fit(law.model, obs, rng=np.random.default_rng(seed), **given)
        se = np.array(exact.tidy()["se"], dtype=float)
        return {
            "shift": (fit.estimate - exact.estimate) / se,
            "away": fit.estimate - law.truth,
            "exact": exact.estimate - law.truth,
        }

    data = case.data(block)[:size]
    return collected((lambda obs=obs, i=i: both(obs, [SEED, block, i])) for i, obs in enumerate(data))


def compared(case: Case, reps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean shift and its error, ratio of rmse and its error, by parameter."""
    starts = range(0, reps, BLOCK)
    sizes = [min(BLOCK, reps - start) for start in starts]
    runs = spread_out(pairs, [case] * len(sizes), [start // BLOCK for start in starts], sizes)
    assert not runs.failures, runs.failures[0]
    shift, away, exact = (runs.numbers[name] for name in ("shift", "away", "exact"))
    root = np.sqrt(len(shift))
    worse = np.sqrt(np.mean(away**2, axis=0) / np.mean(exact**2, axis=0))
    noise = np.std(away**2 - worse**2 * exact**2, axis=0) / root / (2 * worse * np.mean(exact**2, axis=0))
    return shift.mean(axis=0), shift.std(axis=0) / root, worse, noise


@pytest.mark.parametrize("recipe", ["anchored", "anchored iid"])
@pytest.mark.parametrize("law", LAWS)
def test_defaults_are_maximum_likelihood(law: str, recipe: str) -> None:
    case = Case(law, recipe)
    shift, noise, worse, worse_noise = compared(case, REPS)
    for name, *row in zip(case.known.names, shift, noise, worse, worse_noise):
        print(f"\n{case}, {name}: shift {row[0]:+.3f} ± {3 * row[1]:.3f} se (3 errors, band ±{SHIFT}), "
              f"rmse {row[2]:.3f} ± {3 * row[3]:.3f} of ML's (at most {WORSE})")  # fmt: skip
    assert np.all(np.abs(shift) <= SHIFT + 3 * noise * (REPS < 1000))
    assert np.all(worse <= WORSE + 3 * worse_noise * (REPS < 1000))
