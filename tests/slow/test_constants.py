"""With all defaults, estimates are those of maximum likelihood: shift from it, rmse beside its, coverage."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from against import compared, judge
from calibration import BLOCK, MORE, REPS, SEED, Case, Runs, collected, spread_out
from recipes import RECIPES

import unnorm as un

pytestmark = pytest.mark.slow

LAWS = ("walk", "steep", "circle", "regression", "box", "words", "grid steep", "table")


def pairs(case: Case, block: int, size: int) -> Runs:
    """The default and the exact fit of each data set."""
    law = case.known

    def both(obs: un.Observations, seed: list[int]) -> dict[str, np.ndarray]:
        exact = un.fit(law.model, obs, **RECIPES["exact"](law, "plain"))
        fit = un.fit(law.model, obs, rng=np.random.default_rng(seed), **RECIPES[case.recipe](law, "plain"))
        return compared(fit, exact, law.truth)

    data = case.data(block)[:size]
    return collected((lambda obs=obs, i=i: both(obs, [SEED, block, i])) for i, obs in enumerate(data))


@pytest.mark.parametrize("recipe", ["anchored", "anchored iid"])
@pytest.mark.parametrize("law", LAWS)
def test_defaults_are_maximum_likelihood(law: str, recipe: str) -> None:
    case = Case(law, recipe)
    assert any(judge(str(case), case.known.names, numbers(case, reps)) for reps in (REPS, MORE * REPS))


def numbers(case: Case, reps: int) -> Mapping[str, np.ndarray]:
    starts = range(0, reps, BLOCK)
    sizes = [min(BLOCK, reps - start) for start in starts]
    runs = spread_out(pairs, [case] * len(sizes), [start // BLOCK for start in starts], sizes)
    assert not runs.failures, runs.failures[0]
    return runs.numbers
