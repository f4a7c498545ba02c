"""The likelihood of rows under JAX: A(η) of likelihood.py, with A', A'' and A''' as its derivatives.

Differentiating the formula of A instead would give a curvature of zero at η = 0, since log(1 + e^η) is written with
|η|.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from .likelihood import LOGISTIC, POISSON, Cumulant


@cache
def traced(cumulant: Cumulant) -> Callable[[Any], Any]:
    """η ↦ A(η), to be differentiated three times by JAX, in either mode."""
    import jax
    import jax.numpy as jnp

    @jax.custom_jvp
    def value(eta: Any) -> Any:
        return cumulant.value(eta, jnp)

    @jax.custom_jvp
    def mean(eta: Any) -> Any:
        return cumulant.mean(eta, jnp)

    @jax.custom_jvp
    def variance(eta: Any) -> Any:
        return cumulant.variance(eta, jnp)

    value.defjvp(lambda at, move: (value(at[0]), mean(at[0]) * move[0]))
    mean.defjvp(lambda at, move: (mean(at[0]), variance(at[0]) * move[0]))
    variance.defjvp(lambda at, move: (variance(at[0]), cumulant.skew(at[0], jnp) * move[0]))
    return value


def poisson(eta: Any) -> Any:
    """e^η: minus the likelihood of a reference row, and the row's share of ∫ exp(f + χ)."""
    return traced(POISSON)(eta)


def logistic(eta: Any) -> Any:
    """log(1 + e^η): minus the likelihood of a reference row, −log σ(−η).

    That of a data row, η − A(η), is −A(−η) = −`logistic`(−η), which does not cancel where η is large.
    """
    return traced(LOGISTIC)(eta)
