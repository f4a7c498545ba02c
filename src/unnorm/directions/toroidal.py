"""Two angles at once: bivariate von Mises laws on the torus.

    sine      f = κ₁ cos(y₁ − μ₁) + κ₂ cos(y₂ − μ₂) + λ sin(y₁ − μ₁) sin(y₂ − μ₂)
    cosine    f = κ₁ cos(y₁ − μ₁) + κ₂ cos(y₂ − μ₂) + λ cos(y₁ − μ₁ − y₂ + μ₂)

(Singh, Hnizdo & Demchuk 2002; Mardia, Taylor & Subramaniam 2007, whose κ₃ is −λ.)

θ is (κ₁, κ₂, λ, μ₁, μ₂) itself, κ with a sign: where κ₂ = 0 the dependence still tells μ₂, and (κ₂, μ₂) as a vector
κ₂(cos μ₂, sin μ₂) would lose it. `torus_reading.py` has the signs, and what is known of μ₁ and μ₂.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np

from ..data.observations import Observations
from ..domains import Torus
from ..errors import InputError, unknown
from ..models.anew import anew
from ..models.energy import Energy
from .family import Chart, Family, Reading, named
from .rules import focused_torus
from .torus_reading import NAMES, QUANTITIES, lost, reading
from .torus_start import ORDER, started

_CELLS = 2**16  # of the first angle's distribution function


@named
def bivariate_von_mises(model: Literal["sine", "cosine"] = "sine") -> Family:
    """The sine or cosine model of two dependent angles; λ is the dependence, 0 where they are independent.

    (κ₂, μ₂, λ) and (−κ₂, μ₂ + π, −λ) are the same law. Estimates have κ₁, κ₂ ≥ 0; but where the data do not tell a κ
    from 0, its sign is not known either: then λ ≥ 0, that κ has the sign, and a note says so.

    >>> import unnorm as un
    >>> [one.name for one in un.directions.bivariate_von_mises().quantities]
    ['mean1', 'kappa1', 'mean2', 'kappa2', 'lambda']
    """
    if model not in ("sine", "cosine"):
        raise InputError(unknown("model", model, ("sine", "cosine")))
    return _bivariate(model)


# long: f, its start and its draws share the model's name
@lru_cache(maxsize=2)
def _bivariate(model: str) -> Family:
    sine = model == "sine"

    def f(theta: Any, y: Any) -> Any:  # less κ₁ + κ₂ (+ λ), so that no large numbers cancel
        import jax.numpy as jnp

        d1, d2 = y[0] - theta["mean1"], y[1] - theta["mean2"]
        own = -2.0 * (theta["kappa1"] * jnp.sin(d1 / 2.0) ** 2 + theta["kappa2"] * jnp.sin(d2 / 2.0) ** 2)
        together = jnp.sin(d1) * jnp.sin(d2) if sine else -2.0 * jnp.sin((d1 - d2) / 2.0) ** 2
        return own + theta["lambda"] * together

    def usual(theta: Any) -> tuple[Any, ...]:
        import jax.numpy as jnp

        u1, u2 = (jnp.stack([jnp.cos(theta[name]), jnp.sin(theta[name])]) for name in ("mean1", "mean2"))
        return u1, theta["kappa1"], u2, theta["kappa2"], theta["lambda"]

    law = Energy(f, dict.fromkeys(NAMES, 0.0), Torus())

    def make(obs: Observations) -> tuple[Chart, ...]:
        rule = focused_torus(obs.outcome, obs.weights)
        starts = started(obs.outcome, obs.weights, rule(ORDER), sine=sine)
        return tuple(Chart(anew(law, theta0=start, rule=rule), usual) for start in starts)

    def read(values: np.ndarray, V: np.ndarray) -> Reading:
        return reading(values, V, sine=sine)

    def draw(values: list[np.ndarray], n: int, rng: np.random.Generator) -> np.ndarray:
        """y₁ from its marginal law, exp(κ₁ cos y₁) I₀(|z(y₁)|), then y₂ given y₁, von Mises about z(y₁)."""
        from scipy.special import i0e

        kappa1, kappa2, lam = (float(values[j][0]) for j in (1, 3, 4))

        def z(y: np.ndarray) -> np.ndarray:
            return kappa2 + lam * (1j * np.sin(y) if sine else np.exp(1j * y))

        step = 2.0 * np.pi / _CELLS
        grid = -np.pi + step * (np.arange(_CELLS) + 0.5)
        log_p = kappa1 * np.cos(grid) + np.abs(z(grid)) + np.log(i0e(np.abs(z(grid))))
        mass = np.cumsum(np.exp(log_p - log_p.max()))
        cell = np.minimum(np.searchsorted(mass / mass[-1], rng.random(n)), _CELLS - 1)
        first = grid[cell] + step * (rng.random(n) - 0.5)
        second = rng.vonmises(np.angle(z(first)), np.abs(z(first)))
        return np.column_stack([first, second]) + [np.arctan2(*values[j][::-1]) for j in (0, 2)]

    return Family(
        f"bivariate von Mises ({model} model)", Torus(), QUANTITIES, make, draw=draw, read=read,
        lost=lambda obs: lost(obs.outcome, obs.weights, sine=sine),
    )  # fmt: skip
