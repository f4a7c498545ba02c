"""Models whose log Z_θ(x) is known in closed form: its derivatives in θ are the integrals that objectives need.

∂ log Z = E[∂f], and ∂² log Z + E[∂f] E[∂f]ᵀ = E[∂²f + ∂f ∂fᵀ], whatever f is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .base import Kernels


def closed_kernels(one: Callable[..., Any]) -> Kernels:
    """`Kernels` of log Z_θ(x) = one(θ, *x), in JAX for one context; the nodes that they are handed are not read."""
    import jax
    import jax.numpy as jnp

    def over(function: Callable[..., Any], theta: Any, arguments: Any) -> Any:
        if not arguments:
            return function(theta)[None]
        return jax.vmap(function, in_axes=(None, *[0] * len(arguments)))(theta, *arguments)

    def log_z(theta: Any, nodes: Any, log_w: Any, arguments: Any) -> Any:
        return over(one, theta, arguments)

    def moments(theta: Any, nodes: Any, log_w: Any, arguments: Any, log_a: Any, tilt: Any) -> Any:
        values = over(one, theta, arguments)
        mean = over(jax.grad(one), theta, arguments)
        curve = over(jax.hessian(one), theta, arguments)
        a = jnp.exp(log_a + jnp.where(tilt, values, 0.0))
        return values, mean, jnp.einsum("c,cij->ij", a, curve) + (a[:, None] * mean).T @ mean

    return Kernels(jax.jit(log_z), jax.jit(moments))
