"""Effects that change with a column of the table, in a chain whose constants must follow: te and by, at both ends."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un

# an integral for each context is what interactions take
pytestmark = pytest.mark.filterwarnings("ignore:Anchored constants need an integral:unnorm.errors.UnnormWarning")
BOX = un.Box((0, 1), (0, 1))
SIDE = (np.arange(40) + 0.5) / 40
CELLS = np.array([(a, b) for a in SIDE for b in SIDE])


def slope(trial: np.ndarray | float) -> np.ndarray | float:
    """Steps become shorter with the trial: the truth is f = −slope(trial) · step."""
    return 1.0 + 6.0 * trial


@pytest.fixture(scope="module")
def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    out: dict[str, list] = {"chain": [], "t": [], "x": [], "y": [], "trial": [], "cond": []}
    for chain in range(60):
        trial = chain / 59
        y = rng.random(2)
        for t in range(16):
            for name, value in zip(out, (chain, t, *y, trial, "late" if trial > 0.5 else "early")):
                out[name].append(value)
            mass = np.exp(-slope(trial) * np.hypot(*(CELLS - y).T))
            y = CELLS[rng.choice(len(CELLS), p=mass / mass.sum())] + rng.uniform(-0.0125, 0.0125, 2)
    return {name: np.array(values) for name, values in out.items()}


@pytest.fixture(scope="module")
def obs(table: dict[str, np.ndarray]) -> un.Observations:
    return un.transitions(table, y=("x", "y"), order="t", group="chain", extra=("trial", "cond"))


def fitted(terms: str, obs: un.Observations) -> un.Fit:
    return un.fit(un.Additive(terms, BOX), obs, un.Logistic(un.Uniform(), per_point=6), rng=1)


def drop(fit: un.Fit, label: str, **at: object) -> tuple[float, float]:
    """f at a step of .1 less f at .6, with its standard error from the term's own covariance."""
    part = fit.smooths
    assert part is not None
    term = part.term(label)
    rows = {"step": np.array([0.1, 0.6]), **{name: np.full(2, value) for name, value in at.items()}}
    C = term.design({name: rows[name] for name in term.covariates})
    L, span = C[0] - C[1], part.slices[term.label]
    return float(L @ part.beta[span]), float(np.sqrt(L @ part.errors.total[span, span] @ L))


@pytest.mark.parametrize("trial", [0.1, 0.9])
@pytest.mark.parametrize(
    ("terms", "label"), [("te(step, trial, k=4)", "te(step,trial)"), ("s(step, by=cond, k=5)", "")]
)
def test_the_curve_changes_as_it_should(terms: str, label: str, trial: float, obs: un.Observations) -> None:
    fit = fitted(terms, obs)
    assert fit.anchored
    assert not fit.constants_failed
    if label:
        found, se = drop(fit, label, trial=trial)
        assert abs(found - 0.5 * slope(trial)) < 3 * se + 0.25
    else:
        cond = "late" if trial > 0.5 else "early"
        found, se = drop(fit, f"s(step):cond{cond}", cond=cond)
        middle = 0.75 if trial > 0.5 else 0.25  # a curve for the mean of its trials
        assert abs(found - 0.5 * slope(middle)) < 3 * se + 0.25


def test_a_curve_times_a_number(obs: un.Observations) -> None:
    fit = fitted("s(step, k=5) + s(step, by=trial, k=5)", obs)
    assert not fit.constants_failed
    plain, first = drop(fit, "s(step)")
    times, second = drop(fit, "s(step):trial", trial=1.0)
    assert abs(plain - 0.5) < 3 * first + 0.25
    assert abs(times - 3.0) < 3 * second + 0.25


@pytest.mark.parametrize("terms", ["te(step, trial, k=4)", "s(step, by=trial, k=5)", "s(step, by=cond, k=5)"])
def test_the_density_of_every_step_is_normalised(terms: str, obs: un.Observations) -> None:
    fit = fitted(terms, obs)
    fine = (np.arange(24) + 0.5) / 24
    points = np.array([(a, b) for a in fine for b in fine])
    one = obs.take(np.full(len(points), obs.n // 2))
    here = un.Observations(
        one.kind, points, one.outcome_names, one.context, one.lags, one.extra, one.group, np.arange(len(points))
    )
    assert np.mean(np.exp(fit.held_out(here).log_density)) == pytest.approx(1.0, abs=0.02)
