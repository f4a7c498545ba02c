"""Chains of directions: y_t given y_{t−1}, von Mises or von Mises–Fisher about a compromise of persistence and a mean.

    circle    f = κ_turn cos(y − x − τ) + κ_mean cos(y − μ)        (τ: the mean turn)
    sphere    f = κ_turn x·y + κ_mean μ·y

Both are linear in θ, and log Z_θ(x) is log I₀ or log sinh of the length of the sum of the two vectors.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .._base.numerics import flag
from ..domains import Circle, Domain, Sphere
from ..errors import InputError
from ..models.exponential_family import ExponentialFamily
from .bessel import log_bessel0, log_sinch, norm
from .family import Chart, Family, named
from .quantities import Angle, Direction, Number, Size


@named
def chain(domain: Domain | None = None, *, mean: bool = True) -> Family:
    """A Markov chain of directions: persistence `kappa turn` about a mean `turn`, and a pull `kappa` to a `mean`.

    Args:
        domain: `un.Circle()` (default), `un.Axis()` or `un.Sphere()` (where turns have no sense, and `kappa turn` < 0
            means turning away).
        mean: whether there is a pull to a mean direction.

    >>> import unnorm as un
    >>> [one.name for one in un.directions.chain().quantities]
    ['turn', 'kappa turn', 'mean', 'kappa']
    """
    domain, mean = Circle() if domain is None else domain, flag(mean, "mean")
    if domain.sphere:
        return _on_sphere(mean)
    if domain.period is None:
        raise InputError(f"Chains of directions live on un.Circle(), un.Axis() or un.Sphere(); got {domain!r}.")
    return _on_circle(domain, mean)


@lru_cache(maxsize=8)  # so that the model is compiled once
def _on_circle(domain: Domain, mean: bool) -> Family:
    assert domain.period is not None
    turn, log_volume = 2.0 * np.pi / domain.period, domain.log_volume
    names = ("cos turn", "sin turn", *(("cos", "sin") if mean else ()))

    def statistics(y: Any, x: Any) -> Any:
        import jax.numpy as jnp

        step = turn * (y - x)
        own = (jnp.cos(turn * y), jnp.sin(turn * y)) if mean else ()
        return jnp.cos(step), jnp.sin(step), *own

    def partition(theta: Any, x: Any) -> Any:
        import jax.numpy as jnp

        c, s = jnp.cos(turn * x), jnp.sin(turn * x)
        w1, w2 = theta["cos turn"], theta["sin turn"]
        v1, v2 = w1 * c - w2 * s, w1 * s + w2 * c
        if mean:
            v1, v2 = v1 + theta["cos"], v2 + theta["sin"]
        return log_volume + log_bessel0(v1**2 + v2**2)

    def usual(theta: Any) -> tuple[Any, ...]:
        import jax.numpy as jnp

        vectors = [
            jnp.stack([theta[f"cos{end}"], theta[f"sin{end}"]]) for end in ((" turn", "") if mean else (" turn",))
        ]
        return tuple(part for v in vectors for part in (v, norm(v)))

    model = ExponentialFamily(statistics, names, domain, log_partition=partition)
    pull = (Angle("mean", domain.period), Size("kappa")) if mean else ()
    quantities = (Angle("turn", domain.period, relative=True), Size("kappa turn"), *pull)
    return Family("von Mises chain", domain, quantities, lambda obs: (Chart(model, usual),), "transitions")


@lru_cache(maxsize=2)
def _on_sphere(mean: bool) -> Family:
    own = ("y1", "y2", "y3") if mean else ()

    def statistics(y: Any, x: Any) -> Any:
        return x @ y, *((y[0], y[1], y[2]) if mean else ())

    def partition(theta: Any, x: Any) -> Any:
        import jax.numpy as jnp

        v = theta["turn"] * x
        if mean:
            v = v + jnp.stack([theta[name] for name in own])
        return np.log(4.0 * np.pi) + log_sinch(v @ v)

    def usual(theta: Any) -> tuple[Any, ...]:
        import jax.numpy as jnp

        if not mean:
            return (theta["turn"],)
        v = jnp.stack([theta[name] for name in own])
        return theta["turn"], v, norm(v)

    model = ExponentialFamily(statistics, ("turn", *own), Sphere(), log_partition=partition)
    quantities = (Number("kappa turn"), *((Direction("mean"), Size("kappa", 3)) if mean else ()))
    return Family("von Mises–Fisher chain", Sphere(), quantities, lambda obs: (Chart(model, usual),), "transitions")
