"""References that JAX can draw from inside a compiled loop; others are drawn on the host, a block at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from ..data import Observations
from ..references.around import KernelReference, centres
from ..references.base import BoundReference
from ..references.kernels import LOG_2PI, BoxNormal
from ..references.mixture import BoundMixture
from ..references.space import space
from ..references.uniform import BoundUniform


@dataclass(frozen=True)
class Traceable:
    """q(·|x) in JAX: `params` (replaced when the reference is refreshed), `rows` (first axis n, gathered by batch).

    `from_unit(params, rows, u)` takes u of shape (b, k, cube_dim) and gives (b, k, d); `log_density(params, rows, y)`
    gives (b, k).
    """

    cube_dim: int
    params: Any
    rows: Any
    from_unit: Any
    log_density: Any


@singledispatch
def traceable(bound: BoundReference, obs: Observations) -> Traceable | None:
    """The reference in JAX, or None where it has to be drawn on the host."""
    own = getattr(bound, "traceable", None)
    return None if own is None else own(obs)


@traceable.register
def _(bound: BoundUniform, obs: Observations) -> Traceable | None:
    import jax.numpy as jnp

    domain, log_q = bound.domain, -bound.domain.log_volume
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
        params = {"values": rule.points, "edges": edges[:-1] / edges[-1]}
        return Traceable(
            1,
            params,
            (),
            lambda p, rows, u: p["values"][jnp.searchsorted(p["edges"], u[..., 0], side="right")],
            lambda p, rows, y: jnp.full(y.shape[:-1], log_q, dtype=y.dtype),
        )
    elif shape.bits:
        return Traceable(
            domain.dim,
            (),
            (),
            lambda p, rows, u: (u >= 0.5).astype(u.dtype),
            lambda p, rows, y: jnp.full(y.shape[:-1], log_q, dtype=y.dtype),
        )
    else:
        return None
    return Traceable(
        domain.cube_dim,
        {"low": low, "width": width},
        (),
        lambda p, rows, u: p["low"] + p["width"] * u,
        lambda p, rows, y: jnp.full(y.shape[:-1], log_q, dtype=y.dtype),
    )


@traceable.register
def _(bound: KernelReference, obs: Observations) -> Traceable | None:
    kernel = bound.kernel
    if not isinstance(kernel, BoxNormal):
        return None
    moved = bound.around is not None
    rows = centres(bound.around, obs) + bound.drift if moved else ()
    params = {"centre": bound.drift, "sd": kernel.sd, "low": kernel.lower, "high": kernel.upper}

    def centre(p: Any, rows: Any) -> Any:
        return rows[:, None] if moved else p["centre"]

    return Traceable(
        kernel.cube_dim,
        params,
        rows,
        lambda p, rows, u: box_normal_draw(u, centre(p, rows), p["sd"], p["low"], p["high"]),
        lambda p, rows, y: box_normal_log_density(y, centre(p, rows), p["sd"], p["low"], p["high"]),
    )


@traceable.register
def _(bound: BoundMixture, obs: Observations) -> Traceable | None:
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    parts = [traceable(part, obs) for part in bound.parts]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    weights = np.asarray(bound.weights)
    params = {"log_w": np.log(weights), "edges": np.cumsum(weights)[:-1], "parts": [part.params for part in known]}

    def from_unit(p: Any, rows: Any, u: Any) -> Any:
        which = jnp.searchsorted(p["edges"], u[..., 0], side="right")
        drawn = [
            part.from_unit(own, row, u[..., 1 : 1 + part.cube_dim]) for part, own, row in zip(known, p["parts"], rows)
        ]
        return sum(jnp.where((which == j)[..., None], y, 0.0) for j, y in enumerate(drawn))

    def log_density(p: Any, rows: Any, y: Any) -> Any:
        each = [part.log_density(own, row, y) for part, own, row in zip(known, p["parts"], rows)]
        return logsumexp(jnp.stack(each) + p["log_w"][:, None, None], axis=0)

    size = 1 + max(part.cube_dim for part in known)
    return Traceable(size, params, [part.rows for part in known], from_unit, log_density)


# --- independent normals truncated to a box
# ----------------------------------------------------------------------------


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
