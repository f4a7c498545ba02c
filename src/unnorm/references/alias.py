"""Draws from many listed states in constant time (Walker's alias method, tables by Vose 1991), inside a compiled loop.

State i is kept with probability cut_i, else its alias is taken; all states are equally likely to be looked at. Two
uniform numbers make a draw: one alone would not resolve the rarest states in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .tracing import JaxLaw


def alias_table(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(cut, alias) with p_i = {cut_i + Σ_{j: alias_j = i} (1 − cut_j)}/V.

    >>> alias_table(np.array([0.5, 0.25, 0.25]))[0].tolist()
    [1.0, 0.75, 0.75]
    """
    count = len(p)
    share = np.asarray(p, dtype=np.float64) * count
    cut, alias = np.ones(count), np.arange(count)
    poor, rich = [int(i) for i in np.flatnonzero(share < 1.0)], [int(i) for i in np.flatnonzero(share >= 1.0)]
    while poor and rich:
        i, j = poor.pop(), rich[-1]
        cut[i], alias[i] = share[i], j
        share[j] -= 1.0 - share[i]
        if share[j] < 1.0:
            poor.append(rich.pop())
    return cut, alias


@final
@dataclass(frozen=True)
class AliasLaw(JaxLaw):
    """States numbered as the domain lists them, which is how outcomes of such a law are known."""

    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        import jax.numpy as jnp

        count = len(params["cut"])
        at = jnp.minimum((u[..., 0] * count).astype(jnp.int32), count - 1)
        at = jnp.where(u[..., 1] < params["cut"][at], at, params["alias"][at])
        return params["points"][at]

    def log_density(self, params: Any, rows: Any, y: Any) -> Any:
        import jax.numpy as jnp

        return params["log_q"][y[..., 0].astype(jnp.int32)]
