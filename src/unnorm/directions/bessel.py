"""Functions of κ = |v| that stay smooth and exact at κ = 0 and for κ in the millions, in JAX."""

from __future__ import annotations

from typing import Any

_SMALL = 1e-3  # of κ²: below it series are exact to rounding


def norm(v: Any) -> Any:
    """|v|; at 0, where every direction is as good, its derivative is that along the first axis: the error of a κ of 0
    is that of a part of κμ, as it is where κ is hardly more."""
    import jax.numpy as jnp

    square = jnp.sum(v * v)
    return jnp.where(square > 0.0, jnp.sqrt(jnp.where(square > 0.0, square, 1.0)), v[0])


def log_bessel0(square: Any) -> Any:
    """log I₀(κ) from κ²."""
    import jax.numpy as jnp
    from jax.scipy.special import i0e

    small = square < _SMALL
    kappa = jnp.sqrt(jnp.where(small, 1.0, square))
    series = square / 4.0 - square**2 / 64.0 + square**3 / 576.0
    return jnp.where(small, series, jnp.log(i0e(kappa)) + kappa)


def log_sinch(square: Any) -> Any:
    """log(sinh κ / κ) from κ²."""
    import jax.numpy as jnp

    small = square < _SMALL
    kappa = jnp.sqrt(jnp.where(small, 1.0, square))
    series = square / 6.0 - square**2 / 180.0 + square**3 / 2835.0
    return jnp.where(small, series, kappa + jnp.log1p(-jnp.exp(-2.0 * kappa)) - jnp.log(2.0 * kappa))
