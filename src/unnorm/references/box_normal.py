"""Independent normals truncated to a box, in NumPy and in JAX: everything exact, by Φ and its inverse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from . import rejection
from .kernels import Kernel
from .quantiles import LOG_2PI
from .tracing import JaxLaw, Traceable


def box_normal_tails(
    c: np.ndarray, sd: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether the box lies right of the centre c, and Φ at its two ends in the tail where they do not cancel."""
    from scipy.special import ndtr

    a, b = (lower - c) / sd, (upper - c) / sd
    right = a > 0.0
    return right, ndtr(np.where(right, -b, a)), ndtr(np.where(right, -a, b))


@final
class BoxNormal(Kernel):
    """N(c, diag sd²) truncated to the box between `lower` and `upper`."""

    constant = "exact, by differences of Φ"

    def __init__(self, lower: np.ndarray, upper: np.ndarray, sd: np.ndarray) -> None:
        self.lower, self.upper, self.sd = lower, upper, sd
        self.cube_dim = len(sd)

    def from_unit(self, u: np.ndarray, c: np.ndarray, i: np.ndarray) -> np.ndarray:
        from scipy.special import ndtri

        right, low, high = box_normal_tails(c, self.sd, self.lower, self.upper)
        backwards = right[i]
        z = ndtri(low[i] + np.where(backwards, 1.0 - u, u) * (high - low)[i])
        return np.clip(c[i] + self.sd * np.where(backwards, -z, z), self.lower, self.upper)

    def log_pairs(self, y: np.ndarray, c: np.ndarray) -> np.ndarray:
        d = len(self.sd)
        return -0.5 * np.sum(((y - c) / self.sd) ** 2, axis=-1) - np.sum(np.log(self.sd)) - 0.5 * d * LOG_2PI

    def whitened(self, y: np.ndarray) -> np.ndarray:
        return y / self.sd

    def log_constant(self, c: np.ndarray) -> np.ndarray:
        _, low, high = box_normal_tails(c, self.sd, self.lower, self.upper)
        mass = np.prod(high - low, axis=-1)
        return np.log(rejection.check_mass(mass, least=1e-200))

    def traceable(self, shift: np.ndarray, centres: np.ndarray | None) -> Traceable:
        params = {
            "centre": np.broadcast_to(shift, (len(self.sd),)).astype(np.float64),
            "sd": self.sd,
            "low": self.lower,
            "high": self.upper,
        }
        moved = centres is not None
        return Traceable(self.cube_dim, params, centres if moved else (), BoxNormalLaw(moved))


@final
@dataclass(frozen=True)
class BoxNormalLaw(JaxLaw):
    """`BoxNormal` in JAX; c is one point, or each row's own where `moved`."""

    moved: bool

    def _centre(self, params: Any, rows: Any) -> Any:
        return rows[:, None] if self.moved else params["centre"]

    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        import jax.numpy as jnp
        from jax.scipy.special import ndtri

        c, sd, low, high = self._centre(params, rows), params["sd"], params["low"], params["high"]
        right, first, last = _jax_tails(c, sd, low, high)
        limit = jnp.finfo(u.dtype)
        v = jnp.clip(first + jnp.where(right, 1.0 - u, u) * (last - first), limit.tiny, 1.0 - limit.epsneg)
        z = ndtri(v)
        return jnp.clip(c + sd * jnp.where(right, -z, z), low, high)

    def log_density(self, params: Any, rows: Any, y: Any) -> Any:
        return _jax_log_density(params, self._centre(params, rows), y)

    def log_density_back(self, params: Any, rows: Any, y: Any, back: Any) -> Any:
        return _jax_log_density(params, back + params["centre"], y)


def _jax_tails(c: Any, sd: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """`box_normal_tails` in JAX."""
    import jax.numpy as jnp
    from jax.scipy.special import ndtr

    a, b = (low - c) / sd, (high - c) / sd
    right = a > 0.0
    return right, ndtr(jnp.where(right, -b, a)), ndtr(jnp.where(right, -a, b))


def _jax_log_density(params: Any, c: Any, y: Any) -> Any:
    """log density of N(c, diag sd²) truncated to the box, summed over coordinates."""
    import jax.numpy as jnp

    sd = params["sd"]
    _, first, last = _jax_tails(c, sd, params["low"], params["high"])
    each = -0.5 * ((y - c) / sd) ** 2 - jnp.log(sd) - 0.5 * LOG_2PI - jnp.log(last - first)
    return jnp.sum(each, axis=-1)
