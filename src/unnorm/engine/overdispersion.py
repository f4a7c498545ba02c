"""θ of a negative binomial response, Var y = μ + μ²/θ: the minimum of REML or ML over log θ, as mgcv's `nb()`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .smoothed import Smoothed

BOUNDS = (-9.0, 16.0)  # log θ; e¹⁶ is Poisson for any count below a million
POISSON = 1e5  # θ beyond which the counts are Poisson's
ENOUGH = 1e-3  # nats
_AGAIN = 4  # parabolas
NEAR = 0.03  # of log θ, whose standard error is seldom smaller: steps over which REML is a parabola


def choose(fit: Callable[[float, Smoothed | None], Smoothed], y: np.ndarray) -> tuple[float, Smoothed]:
    """θ̂ and the fit there. `fit(θ, start)` fits at a given θ; starts at the moments' θ = m²/(v − m)."""
    from scipy.optimize import minimize_scalar

    mean, variance = float(np.mean(y)), float(np.var(y))
    at = float(np.clip(np.log(2.0 * mean**2 / (variance - mean)), -3.0, 5.0)) if variance > mean else 5.0
    made: dict[float, Smoothed] = {}
    latest: list[Smoothed] = []

    def score(log_theta: float) -> float:
        bounded = float(np.clip(log_theta, *BOUNDS))
        if bounded not in made:
            made[bounded] = fit(float(np.exp(bounded)), latest[-1] if latest else None)
            latest[:] = [made[bounded]]
        return made[bounded].score + 1e-6 * abs(log_theta - bounded)

    minimize_scalar(score, bracket=(at, at + 0.5), method="brent", options={"xtol": NEAR})
    best = min(made, key=lambda log_theta: made[log_theta].score)
    for _ in range(_AGAIN):  # Brent's last place may be a few steps away
        was = best
        low, middle, high = (score(best + step) for step in (-NEAR, 0.0, NEAR))
        bend = low - 2.0 * middle + high
        if bend > 0.0:
            best = float(np.clip(best + np.clip(0.5 * (low - high) / bend, -2.0, 2.0) * NEAR, *BOUNDS))
            score(best)
        if made[was].score - made[best].score < ENOUGH or abs(best - was) < 1.9 * NEAR:
            break
    return float(np.exp(best)), made[best]
