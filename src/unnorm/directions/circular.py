"""Families on the circle, and of axes in the plane.

With ϕ = 2πy/P on a domain of period P (2π, or π for axes) and u(ϕ) = (cos ϕ, sin ϕ):

    von Mises              f = v·u(ϕ),                     κ = |v|, mean direction that of v
    generalised            f = Σ_k v_k·u(kϕ),              κ_k = |v_k|  (Gatto & Jammalamadaka 2007)
    wrapped Cauchy         f = −log(1 − c(v)·u(ϕ)),        |c| = tanh |v|, ρ = tanh(|v|/2)
    wrapped normal         f = log(1 + 2 Σ_p ρ^{p²} cos p(ϕ − μ)),     ρ = tanh(|v|/2) = exp(−σ²/2)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .._base.numerics import whole
from ..data.observations import Observations
from ..domains import Circle, Domain, Quadrature
from ..errors import InputError
from ..models.anew import anew
from ..models.energy import Energy
from ..models.exponential_family import ExponentialFamily
from .bessel import log_bessel0, norm
from .family import Chart, Family, named
from .quantities import Angle, Length, Size

_TERMS = 8  # of the wrapped normal's series, where ρ^{64} < 1e-20
_WIDE = 1.06  # |v| beyond which, σ below 1.2, images and not harmonics are summed
_FLAT = 1e-3  # |v| below which functions of it are their series


def _on(domain: Domain | None) -> tuple[Domain, float]:
    """Ω and its period."""
    domain = Circle() if domain is None else domain
    if domain.period is None or domain.dim != 1:
        raise InputError(f"This family lives on un.Circle() or, for axes, on un.Axis(); got {domain!r}.")
    return domain, domain.period


@named
def von_mises(domain: Domain | None = None) -> Family:
    """exp(κ cos(y − μ)) / 2πI₀(κ); on `un.Axis()` of the doubled angle.

    Args:
        domain: `un.Circle()` (the default) or `un.Axis()`.

    >>> import numpy as np, unnorm as un
    >>> angles = np.random.default_rng(1).vonmises(1.0, 4.0, 400)
    >>> fit = un.fit_direction(un.directions.von_mises(), un.iid(angles))
    >>> sorted(fit.parameters)
    ['kappa', 'mean']
    """
    return _von_mises(_on(domain)[0])


@lru_cache(maxsize=8)  # so that the model is compiled once
def _von_mises(domain: Domain) -> Family:
    domain, period = _on(domain)
    turn, log_volume = 2.0 * np.pi / period, domain.log_volume

    def statistics(y: Any) -> Any:
        import jax.numpy as jnp

        return jnp.cos(turn * y), jnp.sin(turn * y)

    def partition(theta: Any) -> Any:
        return log_volume + log_bessel0(theta["cos"] ** 2 + theta["sin"] ** 2)

    def usual(theta: Any) -> tuple[Any, ...]:
        import jax.numpy as jnp

        v = jnp.stack([theta["cos"], theta["sin"]])
        return v, norm(v)

    model = ExponentialFamily(statistics, ("cos", "sin"), domain, log_partition=partition)
    return Family("von Mises", domain, (Angle("mean", period), Size("kappa")), lambda obs: (Chart(model, usual),))


@named
def generalised_von_mises(folds: Sequence[int] | int = (1, 2), domain: Domain | None = None) -> Family:
    """exp Σ_k κ_k cos k(y − μ_k) over the folds k; (1, 2) is the generalised von Mises law, (4,) has four equal modes.

    Args:
        folds: the k's of the sum.
        domain: `un.Circle()` (the default) or `un.Axis()`.

    >>> import unnorm as un
    >>> [one.name for one in un.directions.generalised_von_mises((1, 2)).quantities]
    ['mean1', 'kappa1', 'mean2', 'kappa2']
    """
    orders = [whole(k, "Each of the folds", 1) for k in (folds if isinstance(folds, Sequence) else (folds,))]
    if not orders or len(set(orders)) < len(orders):
        raise InputError(f"folds must be distinct whole numbers such as (1, 2); got {folds!r}.")
    return _generalised(tuple(orders), _on(domain)[0])


@lru_cache(maxsize=8)
def _generalised(orders: tuple[int, ...], domain: Domain) -> Family:
    domain, period = _on(domain)
    turn = 2.0 * np.pi / period
    names = tuple(f"{function}{k}" for k in orders for function in ("cos", "sin"))

    def statistics(y: Any) -> Any:
        import jax.numpy as jnp

        return tuple(function(k * turn * y) for k in orders for function in (jnp.cos, jnp.sin))

    def usual(theta: Any) -> tuple[Any, ...]:
        import jax.numpy as jnp

        vectors = [jnp.stack([theta[f"cos{k}"], theta[f"sin{k}"]]) for k in orders]
        return tuple(part for v in vectors for part in (v, norm(v)))

    repeats = int(np.gcd.reduce(orders))  # f has so many equal periods, of which a rule needs one

    def rule(order: int | None) -> Quadrature:
        whole_turn = domain.quadrature(order)
        words = whole_turn.rule if repeats == 1 else f"{whole_turn.rule}; of one of {repeats} equal periods"
        return Quadrature(whole_turn.points / repeats, whole_turn.weights, exact=False, rule=words)

    model = ExponentialFamily(statistics, names, domain, rule)
    quantities = [part for k in orders for part in (Angle(f"mean{k}", period / k), Size(f"kappa{k}"))]
    return Family("generalised von Mises", domain, tuple(quantities), lambda obs: (Chart(model, usual),))


def _resultant(obs: Observations, turn: float) -> np.ndarray:
    """The mean of (cos ϕ, sin ϕ)."""
    z = np.average(np.exp(1j * turn * obs.outcome[:, 0]), weights=obs.weights)
    return np.array([z.real, z.imag])


def _started(obs: Observations, turn: float) -> np.ndarray:
    """v with tanh(|v|/2) = R̄, the moment estimate of the wrapped laws."""
    mean = _resultant(obs, turn)
    length = float(np.clip(np.hypot(*mean), 1e-6, 1.0 - 1e-12))
    return mean / max(np.hypot(*mean), 1e-300) * 2.0 * np.arctanh(length)


@named
def wrapped_cauchy(domain: Domain | None = None) -> Family:
    """(1 − ρ²) / 2π(1 + ρ² − 2ρ cos(y − μ)), by its mean direction and its mean resultant length ρ.

    Args:
        domain: `un.Circle()` (the default) or `un.Axis()`.

    >>> import unnorm as un
    >>> un.directions.wrapped_cauchy()
    wrapped Cauchy on Circle()
    """
    return _wrapped_cauchy(_on(domain)[0])


@lru_cache(maxsize=8)
def _wrapped_cauchy(domain: Domain) -> Family:
    domain, period = _on(domain)
    turn, log_volume = 2.0 * np.pi / period, domain.log_volume

    def f(theta: Any, y: Any) -> Any:
        import jax.numpy as jnp

        r, u, along = _polar(theta["v"], turn * y)
        cosine, sine = _relative(u, turn * y)
        # 1 − tanh r cos δ = (1 − tanh r) + tanh r (1 − cos δ), without cancellation where ρ → 1
        versine = jnp.where(cosine > 0, sine**2 / jnp.where(cosine > 0, 1.0 + cosine, 1.0), 1.0 - cosine)
        sharp = -jnp.log(2.0 / (jnp.exp(2.0 * r) + 1.0) + jnp.tanh(r) * versine)
        low = r < _FLAT
        share = jnp.where(low, 1.0 - r**2 / 3.0, jnp.tanh(r) / jnp.where(low, 1.0, r))
        return jnp.where(low, -jnp.log1p(-share * jnp.where(low, along, 0.0)), sharp)

    def partition(theta: Any) -> Any:
        import jax.numpy as jnp

        r = norm(theta["v"])
        return log_volume + r + jnp.log1p(jnp.exp(-2.0 * r)) - jnp.log(2.0)

    return _wrapped("wrapped Cauchy", domain, f, partition)


@named
def wrapped_normal(domain: Domain | None = None) -> Family:
    """A normal law of standard deviation σ wrapped round the circle: mean direction, ρ = exp(−σ²/2) and σ.

    Args:
        domain: `un.Circle()` (the default) or `un.Axis()`.

    >>> import unnorm as un
    >>> [one.name for one in un.directions.wrapped_normal().quantities]
    ['mean', 'rho', 'sigma']
    """
    return _wrapped_normal(_on(domain)[0])


@lru_cache(maxsize=8)
def _wrapped_normal(domain: Domain) -> Family:
    domain, period = _on(domain)
    turn, log_volume = 2.0 * np.pi / period, domain.log_volume

    def f(theta: Any, y: Any) -> Any:
        import jax.numpy as jnp

        r, u, along = _polar(theta["v"], turn * y)
        cosine, sine = _relative(u, turn * y)
        delta = jnp.arctan2(sine, cosine)  # in (−π, π]
        wide = r < _WIDE
        rho, low = jnp.tanh(0.5 * jnp.where(wide, r, 0.5)), r < _FLAT
        first = jnp.where(low, 0.5 - r**2 / 24.0, rho / jnp.where(low, 1.0, r)) * along  # ρ cos δ
        p = np.arange(2, _TERMS + 1)
        series = 1.0 + 2.0 * (jnp.where(wide, first, 0.0) + jnp.sum(rho ** (p**2) * jnp.cos(p * delta)))
        near = _variance(jnp.where(wide, 2.0, r))
        k = 2.0 * jnp.pi * jnp.arange(-2, 3)
        images = jnp.log(jnp.sum(jnp.exp(-0.5 * ((delta + k) ** 2 - delta**2) / near)))
        narrow = images - 0.5 * delta**2 / near + 0.5 * jnp.log(2.0 * jnp.pi / near)
        return jnp.where(wide, jnp.log(series), narrow)

    return _wrapped("wrapped normal", domain, f, lambda theta: log_volume + 0.0 * theta["v"][0], sigma=True)


def _polar(v: Any, angle: Any) -> tuple[Any, Any, Any]:
    """|v|, the unit vector along v (the first axis where v is 0) and v·u(angle), all with derivatives."""
    import jax.numpy as jnp

    r = norm(v)
    u = jnp.where(r > 0.0, v / jnp.where(r > 0.0, r, 1.0), jnp.array([1.0, 0.0]))
    return r, u, v[0] * jnp.cos(angle) + v[1] * jnp.sin(angle)


def _relative(u: Any, angle: Any) -> tuple[Any, Any]:
    """cos δ and sin δ of δ = angle − that of the unit vector u."""
    import jax.numpy as jnp

    c, s = jnp.cos(angle), jnp.sin(angle)
    return u[0] * c + u[1] * s, u[0] * s - u[1] * c


def _variance(r: Any) -> Any:
    """σ² = −2 log tanh(r/2), without cancellation where r is large."""
    import jax.numpy as jnp

    e = jnp.exp(-r)
    return 2.0 * (jnp.log1p(e) - jnp.log1p(-e))


def _wrapped(name: str, domain: Domain, f: Any, partition: Any, sigma: bool = False) -> Family:
    assert domain.period is not None
    turn = 2.0 * np.pi / domain.period
    model = Energy(f, {"v": np.zeros(2)}, domain, log_partition=partition)

    def make(obs: Observations) -> tuple[Chart, ...]:
        return (Chart(anew(model, theta0={"v": _started(obs, turn)}), usual),)

    def usual(theta: Any) -> tuple[Any, ...]:
        import jax.numpy as jnp

        r = norm(theta["v"])
        rest = (jnp.sqrt(_variance(r)) / turn,) if sigma else ()
        return theta["v"], jnp.tanh(r / 2.0), *rest

    quantities = (Angle("mean", domain.period), Length("rho"), *((Size("sigma", 1),) if sigma else ()))
    return Family(name, domain, quantities, make, sharpest=np.inf)
