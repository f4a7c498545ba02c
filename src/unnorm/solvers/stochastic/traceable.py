"""References that JAX can draw from inside a compiled loop; others are drawn on the host, a block at a time.

A `Law` says how to draw and has no numbers in it, so that equal laws share what was compiled for them; the numbers
travel beside it, as arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, final

import numpy as np

from ...data.observations import Observations
from ...references.around import KernelReference, centres
from ...references.base import BoundReference
from ...references.discrete import BoundBitFlip
from ...references.gaussian_mixture import BoundGaussianMixture
from ...references.kernels import LOG_2PI, BoxNormal
from ...references.mixture import BoundMixture
from ...references.space import space
from ...references.uniform import BoundUniform


class Law(ABC):
    """q(·|x) in JAX. u is (b, k, cube_dim), y is (b, k, d), densities are (b, k); equal laws compile once."""

    @abstractmethod
    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        """Points of the unit cube → outcomes."""

    @abstractmethod
    def log_density(self, params: Any, rows: Any, y: Any) -> Any:
        """log q(y|x)."""

    def log_density_back(self, params: Any, rows: Any, y: Any, back: Any) -> Any:
        """log q(y|back) of (b, 1, d) outcomes y, had the step started at `back` (b, k, d): for conditional NCE."""
        return self.log_density(params, rows, y)


@dataclass(frozen=True)
class Traceable:
    """A law with its numbers: `params` (replaced when q is refreshed) and `rows` (first axis n, gathered by batch)."""

    cube_dim: int
    params: Any
    rows: Any
    law: Law


@singledispatch
def traceable(bound: BoundReference, obs: Observations) -> Traceable | None:
    """The reference in JAX, or None where it has to be drawn on the host."""
    own = getattr(bound, "traceable", None)
    return None if own is None else own(obs)


# --- uniform points
# ----------------------------------------------------------------------------------------------------


class _Flat(Law):
    """The same density everywhere."""

    def log_density(self, params: Any, rows: Any, y: Any) -> Any:
        import jax.numpy as jnp

        return jnp.broadcast_to(params["log_q"].astype(y.dtype), y.shape[:-1])


@final
@dataclass(frozen=True)
class UniformBox(_Flat):
    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        return params["low"] + params["width"] * u


@final
@dataclass(frozen=True)
class UniformSet(_Flat):
    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        import jax.numpy as jnp

        return params["values"][jnp.searchsorted(params["edges"], u[..., 0], side="right")]


@final
@dataclass(frozen=True)
class UniformBits(_Flat):
    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        return (u >= 0.5).astype(u.dtype)


@traceable.register
def _(bound: BoundUniform, obs: Observations) -> Traceable | None:
    domain = bound.domain
    log_q = np.asarray(-domain.log_volume)
    shape = space(domain)
    if shape.period is not None:
        low, width = np.array([-0.5 * shape.period]), np.array([shape.period])
        if not np.allclose(domain.from_unit(np.array([[0.25]])), low + 0.25 * width):
            return None
    elif shape.sides is not None:
        low, width = shape.sides[0], shape.sides[1] - shape.sides[0]
    elif shape.finite and domain.cube_dim == 1:
        rule = domain.quadrature()
        edges = np.cumsum(rule.weights)
        return Traceable(1, {"values": rule.points, "edges": edges[:-1] / edges[-1], "log_q": log_q}, (), UniformSet())
    elif shape.bits:
        return Traceable(domain.dim, {"log_q": log_q}, (), UniformBits())
    else:
        return None
    return Traceable(domain.cube_dim, {"low": low, "width": width, "log_q": log_q}, (), UniformBox())


# --- independent normals truncated to a box
# ----------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class BoxNormals(Law):
    """N(c, diag sd²) truncated to a box; c is one point, or each row's own."""

    moved: bool

    def _centre(self, params: Any, rows: Any) -> Any:
        return rows[:, None] if self.moved else params["centre"]

    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        p = params
        return box_normal_draw(u, self._centre(p, rows), p["sd"], p["low"], p["high"])

    def log_density(self, params: Any, rows: Any, y: Any) -> Any:
        p = params
        return box_normal_log_density(y, self._centre(p, rows), p["sd"], p["low"], p["high"])

    def log_density_back(self, params: Any, rows: Any, y: Any, back: Any) -> Any:
        p = params
        return box_normal_log_density(y, back + p["centre"], p["sd"], p["low"], p["high"])


@traceable.register
def _(bound: KernelReference, obs: Observations) -> Traceable | None:
    kernel = bound.kernel
    if not isinstance(kernel, BoxNormal):
        return None
    moved = bound.around is not None
    rows = centres(bound.around, obs) + bound.drift if moved else ()
    params = {
        "centre": np.broadcast_to(bound.drift, (len(kernel.sd),)).astype(np.float64),
        "sd": kernel.sd,
        "low": kernel.lower,
        "high": kernel.upper,
    }
    return Traceable(kernel.cube_dim, params, rows, BoxNormals(moved))


def _tails(c: Any, sd: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """Sign and the two Φ's, in the tail where they do not cancel (as in references.kernels.BoxNormal)."""
    import jax.numpy as jnp
    from jax.scipy.special import ndtr

    a, b = (low - c) / sd, (high - c) / sd
    right = a > 0.0
    return right, ndtr(jnp.where(right, -b, a)), ndtr(jnp.where(right, -a, b))


def box_normal_draw(u: Any, c: Any, sd: Any, low: Any, high: Any) -> Any:
    """Inverse-CDF draws of N(c, sd²) truncated to [low, high], coordinate by coordinate."""
    import jax.numpy as jnp
    from jax.scipy.special import ndtri

    right, first, last = _tails(c, sd, low, high)
    least = jnp.finfo(u.dtype).tiny
    z = ndtri(jnp.clip(first + jnp.where(right, 1.0 - u, u) * (last - first), least, 1.0 - jnp.finfo(u.dtype).epsneg))
    return jnp.clip(c + sd * jnp.where(right, -z, z), low, high)


def box_normal_log_density(y: Any, c: Any, sd: Any, low: Any, high: Any) -> Any:
    """log density of the same, summed over coordinates."""
    import jax.numpy as jnp

    _, first, last = _tails(c, sd, low, high)
    each = -0.5 * ((y - c) / sd) ** 2 - jnp.log(sd) - 0.5 * LOG_2PI - jnp.log(last - first)
    return jnp.sum(each, axis=-1)


# --- one flipped bit, and mixtures
# -------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class OneFlip(_Flat):
    """The row's own vector with one bit flipped; as probable as the way back."""

    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        import jax.numpy as jnp

        d = rows.shape[-1]
        flipped = jnp.arange(d) == jnp.minimum((u * d).astype(jnp.int32), d - 1)
        return jnp.where(flipped, 1.0 - rows[:, None], rows[:, None])


@traceable.register
def _(bound: BoundBitFlip, obs: Observations) -> Traceable | None:
    return Traceable(1, {"log_q": np.asarray(-np.log(bound.domain.dim))}, obs.outcome, OneFlip())


@final
@dataclass(frozen=True)
class MixtureLaw(Law):
    parts: tuple[Law, ...]
    dims: tuple[int, ...]

    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        import jax.numpy as jnp

        which = jnp.searchsorted(params["edges"], u[..., 0], side="right")
        drawn = [
            law.from_unit(own, row, u[..., 1 : 1 + d])
            for law, d, own, row in zip(self.parts, self.dims, params["parts"], rows)
        ]
        return sum(jnp.where((which == j)[..., None], y, 0.0) for j, y in enumerate(drawn))

    def log_density(self, params: Any, rows: Any, y: Any) -> Any:
        return self._sum(params, [law.log_density(p, r, y) for law, p, r in zip(self.parts, params["parts"], rows)])

    def log_density_back(self, params: Any, rows: Any, y: Any, back: Any) -> Any:
        each = [law.log_density_back(p, r, y, back) for law, p, r in zip(self.parts, params["parts"], rows)]
        return self._sum(params, each)

    @staticmethod
    def _sum(params: Any, each: list[Any]) -> Any:
        import jax.numpy as jnp
        from jax.scipy.special import logsumexp

        return logsumexp(jnp.stack(jnp.broadcast_arrays(*each)) + params["log_w"][:, None, None], axis=0)


@traceable.register
def _(bound: BoundMixture, obs: Observations) -> Traceable | None:
    parts = [traceable(part, obs) for part in bound.parts]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    weights = np.asarray(bound.weights)
    params = {"log_w": np.log(weights), "edges": np.cumsum(weights)[:-1], "parts": [part.params for part in known]}
    dims = tuple(part.cube_dim for part in known)
    law = MixtureLaw(tuple(part.law for part in known), dims)
    return Traceable(1 + max(dims), params, [part.rows for part in known], law)


# --- mixtures of truncated normals
# -------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class GaussianMixtureLaw(Law):
    """Truncated normals and uniform points; which component, and where the box lies in it, is in the numbers."""

    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        import jax.numpy as jnp
        from jax.scipy.special import ndtri

        p, limit = params, jnp.finfo(u.dtype)
        which = jnp.searchsorted(p["edges"], u[..., 0], side="right")
        c = jnp.maximum(which - 1, 0)
        v = jnp.clip(p["first"][c] + p["span"][c] * u[..., 1:], limit.tiny, 1.0 - limit.epsneg)
        y = jnp.clip(p["m"][c] + p["s"][c] * ndtri(v), p["low"], p["high"])
        return jnp.where((which == 0)[..., None], p["low"] + u[..., 1:] * (p["high"] - p["low"]), y)

    def log_density(self, params: Any, rows: Any, y: Any) -> Any:
        import jax.numpy as jnp
        from jax.scipy.special import logsumexp

        p = params
        parts = [
            p["log_norm"][c] - 0.5 * jnp.sum(((y - p["m"][c]) / p["s"][c]) ** 2, axis=-1) for c in range(len(p["m"]))
        ]
        return logsumexp(jnp.stack([jnp.broadcast_to(p["log_uniform"], y.shape[:-1]), *parts]), axis=0)


@traceable.register
def _(bound: BoundGaussianMixture, obs: Observations) -> Traceable | None:
    right, first, last = box_normal_tails(bound.m, bound.s, bound.low, bound.high)  # (C, d): once, not at every point
    log_norm = np.log1p(-bound.defensive) + np.log(bound.w) - np.sum(np.log(bound.s) + np.log(last - first), axis=1)
    params = {
        "edges": bound.edges,
        "m": bound.m,
        "s": np.where(right, -bound.s, bound.s),
        "first": np.where(right, last, first),
        "span": np.where(right, first - last, last - first),
        "log_norm": log_norm - 0.5 * bound.domain.dim * LOG_2PI,
        "log_uniform": np.asarray(np.log(bound.defensive) - bound.domain.log_volume),
        "low": bound.low,
        "high": bound.high,
    }
    return Traceable(1 + bound.domain.dim, params, (), GaussianMixtureLaw())


def box_normal_tails(m: np.ndarray, s: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, ...]:
    """Whether the box lies right of the mean, and Φ at its two ends in the tail where they do not cancel."""
    from scipy.special import ndtr

    a, b = (low - m) / s, (high - m) / s
    right = a > 0.0
    return right, ndtr(np.where(right, -b, a)), ndtr(np.where(right, -a, b))
