"""θ of a negative binomial response, Var y = μ + μ²/θ: the minimum of REML or ML over log θ, as mgcv's `nb()`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .smoothed import Smoothed

BOUNDS = (-9.0, 16.0)  # log θ, for counts of up to a thousand
_ABOVE = 9.0  # larger counts: the upper end is their logarithm and so much, since Var y = μ (1 + μ/θ)
_POISSON = (1e5, 1e3)  # θ beyond which the counts are Poisson's: at least, and in units of the largest count
ENOUGH = 1e-3  # nats
_AGAIN, _FAR = 6, 0.5  # parabolas, and how far one may lead
NEAR = 0.03  # of log θ, whose standard error is seldom smaller: steps over which REML is a parabola


def choose(fit: Callable[[float, Smoothed | None], Smoothed], y: np.ndarray) -> tuple[float, Smoothed]:
    """θ̂ and the fit there. `fit(θ, start)` fits at a given θ; starts at the moments' θ = m²/(v − m)."""
    from scipy.optimize import minimize_scalar

    bounds = (BOUNDS[0], max(BOUNDS[1], float(np.log(max(np.max(y), 1.0))) + _ABOVE))
    mean, variance = float(np.mean(y)), float(np.var(y))
    at = float(np.clip(np.log(2.0 * mean**2 / (variance - mean)), -3.0, 5.0)) if variance > mean else 5.0
    made: dict[float, Smoothed] = {}
    latest: list[Smoothed] = []

    def score(log_theta: float) -> float:
        bounded = float(np.clip(log_theta, *bounds))
        if bounded not in made:
            made[bounded] = fit(float(np.exp(bounded)), latest[-1] if latest else None)
            latest[:] = [made[bounded]]
        return made[bounded].score + 1e-6 * abs(log_theta - bounded)

    minimize_scalar(score, bracket=(at, at + 0.5), method="brent", options={"xtol": NEAR})
    was = best = min(made, key=lambda log_theta: made[log_theta].score)
    for _ in range(_AGAIN):  # Brent's tolerance is relative: its last place may be .4 away where log θ is 13
        was = best
        low, middle, high = (score(best + step) for step in (-NEAR, 0.0, NEAR))
        bend = low - 2.0 * middle + high
        if bend > 0.0:
            best = float(np.clip(best + np.clip(0.5 * NEAR * (low - high) / bend, -_FAR, _FAR), *bounds))
            score(best)
        if made[was].score - made[best].score < ENOUGH or abs(best - was) < 1.9 * NEAR:
            break
    best = min(best, was, key=lambda log_theta: made[log_theta].score)
    return float(np.exp(best)), made[best]


def is_poisson(theta: float, y: np.ndarray) -> bool:
    """Whether Var y = μ (1 + μ/θ) is μ in effect, for the largest counts too."""
    return theta > max(_POISSON[0], _POISSON[1] * float(np.max(y)))
