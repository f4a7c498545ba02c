"""Laws and points in JAX, drawn inside a compiled loop; references without such a form are drawn by NumPy.

A `JaxLaw` says how to draw and a `JaxPoints` how points of the unit cube are made; neither holds numbers, so that equal
ones share what was compiled for them. The numbers travel beside them, as arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any


class JaxLaw(ABC):
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


class ConstantDensity(JaxLaw):
    """A law with the same density, params["log_q"], at every point that it draws."""

    def log_density(self, params: Any, rows: Any, y: Any) -> Any:
        import jax.numpy as jnp

        return jnp.broadcast_to(params["log_q"].astype(y.dtype), y.shape[:-1])


@dataclass(frozen=True)
class Traceable:
    """A law with its numbers: `params` (replaced when q is refreshed) and `rows` (first axis n, gathered by batch)."""

    cube_dim: int
    params: Any
    rows: Any
    law: JaxLaw


class JaxPoints(ABC):
    """`need` uniform numbers and some fixed arrays → (b, k, d) points in [0, 1); equal ones compile once."""

    @abstractmethod
    def __call__(self, v: Any, fixed: Any) -> Any: ...


@dataclass(frozen=True)
class FreshPoints:
    """Points of one step: how they are made, how many uniform numbers that takes, and the arrays it needs."""

    fixed: Any
    need: int
    make: JaxPoints
