"""log Z = log ∫ exp f_θ(y) dy at a given θ, on fresh points, with its standard error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np

from ..._base.numerics import Rng, generator
from ...data.observations import Observations
from ...domains.base import whole
from ...errors import CombinationError, InputError, warn
from ...models.base import Model
from ...references.base import BoundReference, Reference
from ...references.points import PointScheme
from ...references.uniform import Uniform

FEW = 100  # effective points below which the delta method's error is not to be trusted


@final
@dataclass(frozen=True)
class LogZ:
    """An estimate of log Z: `value` ± `se`, from `n` points that are worth `ess` draws from the model itself."""

    value: float
    se: float
    ess: float
    n: int

    def __str__(self) -> str:
        return f"log Z = {self.value:.6g} (se {self.se:.2g}; {self.n:,} points worth {self.ess:,.0f})"


def log_z(
    model: Model | Fitted,
    theta: Any = None,
    reference: Reference | BoundReference | None = None,
    n: int = 100_000,
    *,
    points: PointScheme | None = None,
    randomisations: int = 32,
    rng: Rng = None,
) -> LogZ:
    """log ∫ exp f_θ(y) dy by importance sampling on fresh points; for models without a context.

        log Ẑ = log (1/n) Σ_i w_i,   w_i = exp f_θ(r_i)/q(r_i);      se = sd(Ẑ)/Ẑ  (delta method).

    The points are independent of those that θ was fitted on, as the formula needs. An energy f + c has log Z + c: a
    network's output bias and ν trade off, only f − log Z is identified, and that is what `log_z` restores.

    Args:
        model: a model, or a `Fit`, whose model and θ̂ are then used.
        theta: the parameters as the model knows them.
        reference: q; default Uniform. A bound reference (as left by SGD) is used as it is.
        n: number of points.
        points: IID (default), or a low-discrepancy scheme, whose error comes from `randomisations` independent sets.
        rng: seed or generator.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(-1, 1))
        >>> z = log_z(toy, {"a": 2.0}, n=20_000, rng=1)
        >>> abs(z.value - 1.2885) < 4 * z.se  # log(sinh 2)
        True
    """
    model, theta = _at(model, theta)
    if model.context_arity:
        raise CombinationError(
            "log_z is for models without a context; with one there is a constant for each x. Compare Fit.nu, or use "
            "Fit.log_density, which normalises at every context."
        )
    n = whole(n, "n", 2)
    random = generator(rng)
    nothing = Observations("iid", np.zeros((1, model.domain.dim)), tuple(f"y{j}" for j in range(model.domain.dim)))
    if isinstance(reference, BoundReference):
        bound = reference
    else:
        bound = (Uniform() if reference is None else reference).bind(model.domain, nothing)
    if points is None or points.iid:
        sets = [bound.sample(nothing, np.zeros(n, dtype=np.intp), random)]
    else:
        sets = _even_sets(bound, nothing, points, n, whole(randomisations, "randomisations", 2), random)
    w, top = _weights(model, model.flatten(theta), bound, nothing, np.concatenate(sets))
    means = w if len(sets) == 1 else w.reshape(len(sets), -1).mean(axis=1)
    mean, se = float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))
    ess = float(w.sum() ** 2 / np.sum(w**2))
    if ess < FEW:
        warn(
            f"log Z rests on {ess:.3g} effective points of {len(w):,}: its standard error {se / mean:.2g} is itself "
            "uncertain. Use a reference nearer to the model (un.GaussianMixture()), or more points.",
            stacklevel=2,
        )
    return LogZ(top + float(np.log(mean)), se / mean, ess, len(w))


@runtime_checkable
class Fitted(Protocol):
    """What `log_z` reads of a `Fit`."""

    @property
    def model(self) -> Any: ...

    @property
    def estimate(self) -> np.ndarray: ...


def _at(model: Model | Fitted, theta: Any) -> tuple[Model, Any]:
    """The model and its θ."""
    if isinstance(model, Fitted):
        if model.model is None:
            raise InputError("log_z needs the function f, which a saved fit does not hold: un.load(path, model=...).")
        return model.model, model.estimate if theta is None else theta
    if theta is None:
        raise InputError("log_z needs theta= (or a Fit, which brings its own).")
    return model, theta


def _even_sets(
    bound: BoundReference,
    nothing: Observations,
    points: PointScheme,
    n: int,
    randomisations: int,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Independent randomisations of evenly spread points, about n in all."""
    size, d = n // randomisations, bound.cube_dim
    if d is None or size < 1:
        raise CombinationError(
            "These points need a map from the unit cube and more points than randomisations; use IID()."
        )
    sets = []
    for _ in range(randomisations):
        u = np.clip(points.unit(None, size, d, bound.periodic, rng).reshape(size, d), 2.0**-53, 1 - 2.0**-53)
        sets.append(bound.from_unit(u, nothing, np.zeros(size, dtype=np.intp)))
    return sets


def _weights(
    model: Model, theta: np.ndarray, bound: BoundReference, nothing: Observations, y: np.ndarray
) -> tuple[np.ndarray, float]:
    """exp f/q up to the factor e^top."""
    log_w = model.log_f(theta, y, ()) - bound.log_density(y, nothing, np.zeros(len(y), dtype=np.intp))
    if np.isnan(log_w).any() or np.isposinf(log_w).any():
        raise InputError("f is not finite at some points of Ω; log Z does not exist there.")
    top = float(log_w.max())
    return np.exp(log_w - top), top
