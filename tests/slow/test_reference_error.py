"""se_reference is the spread of the estimates over redraws of the reference points, the data held fixed.

Unpenalised and cancelled constants first; then penalised ones, whose smoothing is selected again at every redraw, so
that the spread contains what moving the smoothing parameters does; then stochastic runs, whose own Monte Carlo error is
their reference error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from calibration import Case, Report, claims, reference_report, suited
from recipes import SMOOTHING

import unnorm as un

pytestmark = pytest.mark.slow

PLAIN = [
    Case(law, recipe)
    for law, recipe in (
        ("interval", "logistic iid"),
        ("interval", "logistic stratified"),
        ("interval", "logistic lattice"),
        ("interval", "importance iid"),
        ("interval", "importance lattice"),
        ("interval", "cnce flips"),
        ("ising", "logistic sobol"),
        ("walk", "logistic iid"),
        ("walk", "logistic stratified"),
        ("walk", "logistic lattice"),
        ("walk", "logistic sobol"),
        ("walk", "logistic lattice ×4"),
        ("walk", "logistic iid k=1"),
        ("walk", "logistic per context"),
        ("walk", "ranking"),
        ("walk", "ranking k=1"),
        ("circle", "logistic lattice"),
        ("circle", "importance iid"),
        ("regression", "logistic stratified"),
        ("regression", "cnce"),
        ("box", "logistic lattice"),
        ("words", "ranking"),
        ("words", "importance iid"),
    )
]
WEIGHTED = [
    Case(law, recipe, "weighted")
    for law, recipe in (
        ("ising", "logistic iid"),
        ("ising", "importance lattice"),
        ("words", "logistic lattice"),
        ("words", "ranking"),
        ("grid walk", "importance iid"),
        ("table", "cnce"),
    )
]


# --- smoothing selected again -----------------------------------------------------------------------------------------

POINTS = {"iid": un.IID(), "lattice": un.Lattice()}
CHI = {"walk": "s(y_prev, k=10)", "circle": "s(y_prev, bs='cc', k=10)"}
CURVE = un.Additive("y + s(gap, k=8)", un.Interval(-1, 1), covariates=[un.Expression("gap", "abs(y - y_prev)")])
GAPS = np.linspace(0.05, 1.2, 12)


def with_smooth_chi(case: Case, obs: un.Observations, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """θ of the law's own model, χ penalised; the recipe names the points."""
    objective = un.Logistic(case.known.reference, per_point=case.known.points, points=POINTS[case.recipe])
    chi = un.Smooth(CHI[case.law])
    return claims(un.fit(case.known.model, obs, objective, chi, smoothing=SMOOTHING, rng=rng), False)


def with_smooth_f(case: Case, obs: un.Observations, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A curve of f, and χ, penalised: the curve on a grid."""
    objective = un.Logistic(un.Uniform(), per_point=case.known.points, points=POINTS[case.recipe])
    fit = un.fit(CURVE, obs, objective, un.Smooth(CHI["walk"]), smoothing=SMOOTHING, rng=rng)
    curve = fit.effect("s(gap)", at={"gap": GAPS}, centre="observations")
    return {name: np.array(curve[name], dtype=float)[None] for name in ("estimate", "se_reference")}


# --- stochastic runs --------------------------------------------------------------------------------------------------

SGD_REPS = 400  # of 50 ms each
CHI_BASIS = un.Features(lambda x: (1.0, x, x**2, x**3, x**4, x**5))


@cache
def solver(recipe: str) -> Any:
    """One object each, so that its compiled loop is found again."""
    if recipe == "preconditioned":
        return un.SGD(steps=300, batch=80, points=un.IID())
    import optax

    return un.SGD(optax.adam(0.1), steps=600, batch=80, points=un.IID())


def stochastic(case: Case, obs: un.Observations, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """𝓜 for IID data, 𝓡 with a basis for χ for chains; the recipe names the steps."""
    law = case.known
    objective = un.Poisson() if law.kind == "iid" else un.Logistic(law.reference, per_point=law.points)
    chi = None if law.kind == "iid" else CHI_BASIS
    return claims(un.fit(law.model, obs, objective, chi, solver=solver(case.recipe), rng=rng), False)


def _stochastic_report(name: str, case: Case) -> Callable[[int | None], Report]:
    return lambda reps: _report(name, case, stochastic)(min(SGD_REPS, reps or SGD_REPS))


def _report(name: str, case: Case, *how: Any) -> Callable[[int | None], Report]:
    return lambda reps: replace(reference_report(case, reps, *how), case=f"{name}, redraws")


WORKS: dict[str, tuple[Any, ...]] = {str(case): (case,) for case in suited([*PLAIN, *WEIGHTED])}
WORKS |= {f"{law}, {points}, smooth χ": (Case(law, points), with_smooth_chi) for law in CHI for points in POINTS}
WORKS |= {f"walk, {points}, smooth f and χ": (Case("walk", points), with_smooth_f, ("s(gap)",)) for points in POINTS}
REPORTS = {name: _report(name, *work) for name, work in WORKS.items()}
REPORTS |= {
    f"{law}, SGD, {steps}": _stochastic_report(f"{law}, SGD, {steps}", Case(law, steps))
    for law, steps in (("interval", "preconditioned"), ("walk", "preconditioned"), ("walk", "adam"))
}


@pytest.mark.parametrize("name", REPORTS)
def test_reference_part_is_the_spread_over_redraws(name: str) -> None:
    if "SGD" in name:
        pytest.importorskip("optax")
    report = REPORTS[name](None)
    print(f"\n{report}")
    assert not report.wrong
