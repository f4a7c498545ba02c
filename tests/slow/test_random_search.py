"""Five hundred formulas and data sets at random: what is reported as converged is the lowest minimum that is found.

Others than those that the engine was mended on: UNNORM_FIRST=20000 UNNORM_COUNT=1000.
"""

import os
import warnings

import numpy as np
import pytest
from random_fits import case, fitted, restarts

from unnorm.errors import UnnormWarning

FIRST, COUNT, BATCH = int(os.environ.get("UNNORM_FIRST", "0")), int(os.environ.get("UNNORM_COUNT", "500")), 50


def nats(score: float, method: str, family: str, n: int) -> float:
    """The criterion on the scale of a log-likelihood."""
    if method != "GCV":
        return score
    return 0.5 * n * (np.log(score) if family == "gaussian" else score)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, BATCH))
def test_no_restart_is_better(first):
    worse = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(first, first + BATCH):
            one = case(number)
            fit = fitted(one)
            if isinstance(fit, str) or not fit.converged:  # refused with a reason, or said so
                continue
            n = len(one.table["y"])
            best = min((other.score for other in restarts(one, fit) if other.converged), default=np.inf)
            gain = nats(fit.score, one.method, one.family, n) - nats(best, one.method, one.family, n)
            if gain > 0.01:
                worse.append((number, one.formula, one.family, one.method, gain))
    assert not worse


def test_the_same_number_is_the_same_case():
    assert case(3).formula == case(3).formula
    assert case(3).formula != case(4).formula


# .03, 69, .39 and .05 nats: two penalties of one term (beside many other coefficients, and near each other), steep
# data; 1.5: a curve beyond whose last counts η is −300
@pytest.mark.parametrize("number", [7102, 7148, 20867, 40872, 52])
def test_minima_that_no_single_parameter_shows(number):
    one = case(number)
    fit = fitted(one)
    assert not isinstance(fit, str)
    assert fit.converged
    assert fit.score < min(other.score for other in restarts(one, fit) if other.converged) + 0.01


# 80 rows: UBRE of 68 coefficients (binomial) and 50 (Poisson), and REML of 38, nearly separated
@pytest.mark.parametrize("number", [20727, 20055, pytest.param(20409, marks=pytest.mark.slow)])
def test_a_fit_that_less_smoothing_of_all_terms_beats_says_so(number):
    with pytest.warns(UnnormWarning, match="goes to zero"):
        fit = fitted(case(number))
    assert not isinstance(fit, str)
    assert not fit.converged
