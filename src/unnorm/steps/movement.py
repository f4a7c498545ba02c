"""The movement kernel that a fit implies: k tilted by f's terms in the statistics of the step and the turn.

With log k = η·T + … and f = β·T + habitat, the kernel of movement in a uniform landscape has η + β (Avgar et al. 2016).
k is held, and β̂ takes up whatever k has wrong, so that the error of η + β̂ is that of β̂; errors of the parameters follow
by the delta method.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.intervals import quantile
from ..errors import InputError, listing
from ..references.laws import WRITTEN, Tiltable
from ..references.step_kernel import StepKernel
from ..results.contrasts import f_design, given, middle, terms_of
from ..results.fit import Fit

MOVES = ("step", "turn", "angle")
SIGNED = ("mu", "mean")  # parameters of laws that may be negative


def movement_columns(fit: Fit, at: Any, level: float) -> dict[str, np.ndarray]:
    """A row for each parameter: part, law, parameter, tentative, estimate, se, lower, upper."""
    kernel = kernel_of(fit)
    names, beta, V = slopes(fit, at, kernel)
    z = quantile(level, None)
    rows: list[tuple[Any, ...]] = []
    for part, law in (("step", kernel.step), ("turn", kernel.turn)):
        wide = law.wider(names)
        own = {name: float(b) for name, b in zip(names, beta) if name in wide.statistics}
        new = wide.tilted(own)
        slope = new.slopes()
        for name, value in _numbers(new).items():
            d = np.array([slope.get(name, {}).get(one, 0.0) for one in names])
            known = name not in slope or _fixed(name, new, own)
            se = 0.0 if known or not own else float(np.sqrt(max(d @ V @ d, 0.0)))
            before = _numbers(law).get(name, np.nan)
            least = -np.inf if name in SIGNED else 0.0
            lower, upper = max(value - z * se, least), value + z * se
            rows.append((part, new.called, name, before, value, se, lower, upper))
    columns = ("part", "law", "parameter", "tentative", "estimate", "se", "lower", "upper")
    return {name: np.array(values) for name, values in zip(columns, zip(*rows))}


def kernel_of(fit: Fit) -> Any:
    """k, with the parameters that were fitted to the observed steps."""
    assert fit.model is not None
    assert fit.model.base is not None
    return fit.model.base.kernel


def updated(fit: Fit, at: Any = None) -> StepKernel:
    """The kernel itself, with updated laws."""
    kernel = kernel_of(fit)
    names, beta, _ = slopes(fit, at, kernel)
    own = dict(zip(names, beta.tolist()))
    step, turn = (
        wide.tilted({name: b for name, b in own.items() if name in wide.statistics})
        for wide in (kernel.step.wider(names), kernel.turn.wider(names))
    )
    return StepKernel(step, turn)


def slopes(fit: Fit, at: Any, kernel: StepKernel) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """∂f/∂T for each statistic T that f reads, at given values of the other covariates, and their covariance."""
    part = terms_of(fit)
    read = dict.fromkeys(name for label in part.model_labels for name in part.term(label).covariates)
    every = dict.fromkeys((*WRITTEN, *kernel.step.statistics, *kernel.turn.statistics))
    names = tuple(name for name in every if name in read)
    allowed = {*kernel.step.wider(names).statistics, *kernel.turn.wider(names).statistics}
    strange = [name for name in names if name not in allowed]
    strange += [name for name in read if name in MOVES and name not in names]
    if strange:
        raise InputError(
            f"f reads {listing(strange)}, and {kernel.step.describe()} with {kernel.turn.describe()} stays in its "
            f"family only when tilted by {listing(sorted(allowed))}. Write these in the terms, or take another law."
        )
    for label in part.model_labels:
        met = [name for name in part.term(label).covariates if name in names]
        if len(met) > 1:
            raise InputError(
                f"{label} makes the effect of {met[0]} depend on {met[1]}, so that the updated kernel is no product of "
                "a law of steps and one of turns, and has no name: fit.contrast(…) gives its density relative to the "
                "tentative one, fit.simulate(…) its steps. Or leave the interaction out."
            )
    held = {} if at is None else {name: values[:1] for name, values in given(at, "at").items()}
    still = {name: np.ones(1) for name in names}  # each statistic moves alone
    C = np.array([_slope(fit, {**still, **held}, name) for name in names]).reshape(len(names), part.beta.size)
    return names, C @ part.beta, C @ part.errors.total @ C.T


def _slope(fit: Fit, held: dict[str, np.ndarray], name: str) -> np.ndarray:
    """(p,) X at one more of T less X at T, the other statistics held; T must enter in a straight line."""
    part = terms_of(fit)
    typical = max(abs(float(middle(fit, name))), 1e-3) if fit.obs is not None else 1.0
    values = typical * np.array([0.0, 1.0, 2.0])
    X = f_design(fit, part, {**{k: np.repeat(v, 3) for k, v in held.items()}, name: values}, 3)
    first, second = (X[1] - X[0]) / typical, (X[2] - X[1]) / typical
    if not np.allclose(first, second, rtol=1e-6, atol=1e-9 / typical):
        raise InputError(
            f"f is not a straight line in {name}, so that the updated kernel has no name: fit.effect(…) gives the "
            f"curve. Or write {name} as a linear term."
        )
    return first


def _numbers(law: Tiltable) -> dict[str, float]:
    return {name: float(value) for name, value in vars(law).items() if isinstance(value, int | float)}


def _fixed(name: str, law: Tiltable, own: dict[str, float]) -> bool:
    """Whether a parameter cannot move: a mean of 0 or π, where only the cosine tilts it."""
    return name == "mean" and not any(one.startswith("sin_") for one in own)
