"""Two angles at once: bivariate von Mises laws on the torus.

    sine      f = κ₁ cos(y₁ − μ₁) + κ₂ cos(y₂ − μ₂) + λ sin(y₁ − μ₁) sin(y₂ − μ₂)
    cosine    f = κ₁ cos(y₁ − μ₁) + κ₂ cos(y₂ − μ₂) + λ cos(y₁ − μ₁ − y₂ + μ₂)

(Singh, Hnizdo & Demchuk 2002; Mardia, Taylor & Subramaniam 2007, whose κ₃ is −λ.)
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
from ..references.directional import concentration_circle
from .bessel import norm
from .family import Chart, Family, named
from .quantities import Angle, Number, Size
from .rules import focused_torus

_CELLS = 2**16  # of the first angle's distribution function


@named
def bivariate_von_mises(model: Literal["sine", "cosine"] = "sine") -> Family:
    """The sine or cosine model of two dependent angles; λ is the dependence, 0 where they are independent.

    Args:
        model: "sine" or "cosine".

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
    def f(theta: Any, y: Any) -> Any:
        import jax.numpy as jnp

        along, across = [], []
        for j, v in enumerate((theta["v1"], theta["v2"])):
            c, s = jnp.cos(y[j]), jnp.sin(y[j])
            along.append(v[0] * c + v[1] * s)
            across.append((v[0] * s - v[1] * c) / norm(v))
        together = across[0] * across[1]
        if model == "cosine":
            together = together + along[0] * along[1] / (norm(theta["v1"]) * norm(theta["v2"]))
        return along[0] + along[1] + theta["lambda"] * together

    def usual(theta: Any) -> tuple[Any, ...]:
        return theta["v1"], norm(theta["v1"]), theta["v2"], norm(theta["v2"]), theta["lambda"]

    law = Energy(f, {"lambda": 0.0, "v1": np.ones(2), "v2": np.ones(2)}, Torus())

    def make(obs: Observations) -> tuple[Chart, ...]:
        y, w = obs.outcome, obs.weights / obs.weights.sum()
        z = w @ np.exp(1j * y)
        start: dict[str, Any] = {"lambda": 0.0}
        for j in range(2):
            length = max(concentration_circle(float(abs(z[j]))), 1e-2)
            start[f"v{j + 1}"] = length * np.array([np.cos(np.angle(z[j])), np.sin(np.angle(z[j]))])
        return (Chart(anew(law, theta0=start, rule=focused_torus(y, obs.weights)), usual),)

    def draw(values: list[np.ndarray], n: int, rng: np.random.Generator) -> np.ndarray:
        """y₁ from its marginal law, exp(κ₁ cos y₁) I₀(|z(y₁)|), then y₂ given y₁, von Mises about z(y₁)."""
        from scipy.special import i0e

        kappa1, kappa2, lam = (float(values[j][0]) for j in (1, 3, 4))

        def z(y: np.ndarray) -> np.ndarray:
            return kappa2 + lam * (1j * np.sin(y) if model == "sine" else np.exp(1j * y))

        step = 2.0 * np.pi / _CELLS
        grid = -np.pi + step * (np.arange(_CELLS) + 0.5)
        log_p = kappa1 * np.cos(grid) + np.abs(z(grid)) + np.log(i0e(np.abs(z(grid))))
        mass = np.cumsum(np.exp(log_p - log_p.max()))
        cell = np.minimum(np.searchsorted(mass / mass[-1], rng.random(n)), _CELLS - 1)
        first = grid[cell] + step * (rng.random(n) - 0.5)
        second = rng.vonmises(np.angle(z(first)), np.abs(z(first)))
        return np.column_stack([first, second]) + [np.arctan2(*values[j][::-1]) for j in (0, 2)]

    quantities = (Angle("mean1"), Size("kappa1"), Angle("mean2"), Size("kappa2"), Number("lambda"))
    return Family(f"bivariate von Mises ({model} model)", Torus(), quantities, make, draw=draw)
