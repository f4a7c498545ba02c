"""The inhomogeneous Poisson process on Ω (Section 2.1): log-likelihood, expected count, simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, final

import numpy as np

from .._base import numerics
from .._base.lattices import kronecker
from .._base.numerics import Rng, generator, point_text
from ..errors import EstimationError, InputError, OutsideError, warn
from . import Domain, quadrature_error
from .base import outcomes

_BLOCK = 2**16  # points evaluated at once, so that memory is bounded and at most 7 shapes are compiled
_MOST_PROPOSALS = 10**9
_SEARCH = 2**13  # lattice points on which the bound of thinning is sought
_ROUNDS, _STARTS, _TRIALS = 12, 8, 128
_MARGIN = np.log(1.05)  # the estimated bound lies 5 % above the largest intensity found


@final
class PoissonProcess:
    """Points on Ω with intensity λ(y) with respect to Ω's base measure.

    `log_intensity` is log λ(y), written for one point in JAX-traceable code: y is a scalar where the domain is scalar,
    else an array of shape (d,). `log_bound` is an upper bound of log λ for thinning; None estimates one, and every draw
    is checked against it.

    On a finite domain with base measure w the count at y is Poisson with mean w(y) λ(y), so a point may occur there
    several times.

    >>> from unnorm.domains import Interval
    >>> import jax.numpy as jnp
    >>> process = PoissonProcess(lambda y: 3.0 + jnp.sin(y), Interval(0, 10))
    >>> points = process.simulate(rng=1)
    >>> points.shape[1], bool(abs(len(points) - process.mean_count()) < 6 * process.mean_count() ** 0.5)
    (1, True)
    """

    def __init__(self, log_intensity: Callable[[Any], Any], domain: Domain, log_bound: float | None = None) -> None:
        if not callable(log_intensity):
            raise InputError(f"log_intensity must be a function of one point y; got {log_intensity!r}.")
        if log_bound is not None and np.isnan(log_bound):
            raise InputError("log_bound must be a number, or None to have it estimated; got nan.")
        self._f, self._domain = log_intensity, domain
        self._log_bound = None if log_bound is None else float(log_bound)
        self._mean: dict[int | None, float] = {}

    @property
    def domain(self) -> Domain:
        """Ω."""
        return self._domain

    def log_intensity(self, y: np.ndarray) -> np.ndarray:
        """log λ at (n, d) points, shape (n,)."""
        y = outcomes(y, self._domain)
        values = np.concatenate([self._block(block) for block in _blocks(y)]) if len(y) else np.empty(0)
        bad = np.isnan(values) | (values == np.inf)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"log_intensity must be finite or −inf on {self._domain!r}; it is {values[row]} at "
                f"{int(bad.sum()):,} of {len(y):,} points, the first y = {point_text(y[row])}."
            )
        return values

    def mean_count(self, order: int | None = None) -> float:
        """∫ λ dμ, by quadrature of the given order or by enumeration: the expected number of points.

        Warns when a finer rule moves it by more than a hundredth of its own size and of the count's standard deviation.
        """
        if order not in self._mean:
            rule = self._domain.quadrature(order)
            total = float(rule.weights @ self._intensity(rule.points))
            error = 0.0 if rule.exact else float(quadrature_error(self._domain, self._intensity, order))
            if error > 0.01 * min(total, np.sqrt(total)):
                warn(
                    f"The integral of the intensity over {self._domain!r} is uncertain: {total:.6g}, and a finer rule "
                    f"moves it by {error:.2g}. Pass a larger order (this one: {order or self._domain.default_order}).",
                    stacklevel=2,
                )
            self._mean[order] = total
        return self._mean[order]

    def loglik(self, points: np.ndarray, order: int | None = None) -> float:
        """Σ log λ(y_i) − ∫ λ dμ (eq. 2.1).

        The density is with respect to the base measure μ, for labelled points. On a finite domain with counts n(y) and
        weights w(y) it is therefore the product of the Poisson probabilities of the counts up to Σ_y log n(y)! −
        n(y) log w(y), which does not depend on λ; the same point may occur several times.
        """
        points = outcomes(points, self._domain)
        outside = ~self._domain.contains(points)
        if outside.any():
            row = int(np.flatnonzero(outside)[0])
            raise OutsideError(
                f"{int(outside.sum()):,} of {len(points):,} points are outside {self._domain!r}, the first "
                f"in row {row}: {point_text(points[row])}. Drop them, points[domain.contains(points)], or enlarge Ω."
            )
        return float(self.log_intensity(points).sum()) - self.mean_count(order)

    def simulate(self, rng: Rng = None) -> np.ndarray:
        """One realisation, shape (N, d): counts at every state of a finite domain, thinning elsewhere.

        Thinning (Lewis & Shedler 1979) draws uniform points at rate exp(bound) and keeps y with probability
        λ(y)/exp(bound); a draw where log λ is above the bound raises.
        """
        rng = generator(rng)
        if self._domain.finite:
            rule = self._domain.quadrature()
            return np.repeat(rule.points, rng.poisson(rule.weights * self._intensity(rule.points)), axis=0)
        bound = self.log_bound
        expected = float(np.exp(bound + self._domain.log_volume))
        if not expected <= _MOST_PROPOSALS:
            raise InputError(
                f"Thinning would propose about {expected:.2g} points, |Ω| exp(log_bound) with log_bound = {bound:.6g}, "
                f"more than {_MOST_PROPOSALS:.0e}. Give a tighter log_bound, or split Ω where the intensity is peaked."
            )
        kept, left = [np.empty((0, self._domain.dim))], int(rng.poisson(expected))
        while left:
            n = min(left, _BLOCK)
            y = self._domain.uniform(n, rng)
            log_lambda = self.log_intensity(y)
            self._check_bound(y, log_lambda, bound)
            kept.append(y[np.log1p(-rng.random(n)) < log_lambda - bound])
            left -= n
        return np.concatenate(kept)

    @cached_property
    def log_bound(self) -> float:
        """The bound given, or the largest log λ found by a search over Ω plus log 1.05 (the same at every call)."""
        return self._largest() + _MARGIN if self._log_bound is None else self._log_bound

    def _check_bound(self, y: np.ndarray, log_lambda: np.ndarray, bound: float) -> None:
        top = int(np.argmax(log_lambda))
        if log_lambda[top] <= bound + 1e-9:  # a bound that is the maximum itself may be passed by a rounding error
            return
        found = f"log λ = {log_lambda[top]:.6g} at y = {point_text(y[top])}"
        remedy = f"Pass a log_bound that log λ nowhere passes, at least {log_lambda[top]:.6g}."
        if self._log_bound is None:
            raise EstimationError(f"The estimated bound of log λ, {bound:.6g}, is too low: {found}. {remedy}")
        raise InputError(f"log_bound = {bound:.6g} is not a bound of log λ: {found}. {remedy}")

    def _largest(self) -> float:
        """The largest log λ over a lattice in the unit cube, then over shrinking neighbourhoods of the best points."""
        k = self._domain.cube_dim
        rng = np.random.default_rng(0)  # a search, not a simulation: its own stream, so that it never varies
        u = (0.5 + np.outer(np.arange(1, _SEARCH + 1), kronecker(k))) % 1.0
        value = self.log_intensity(self._domain.from_unit(u))
        for step in 2.0 * _SEARCH ** (-1.0 / k) * 0.5 ** np.arange(_ROUNDS):
            best = np.argsort(-value, kind="stable")[:_STARTS]
            u, value = u[best], value[best]
            trials = np.repeat(u, _TRIALS, axis=0)
            trials = np.clip(trials + step * rng.uniform(-1.0, 1.0, trials.shape), 0.0, 1.0)
            u = np.concatenate([u, trials])
            value = np.concatenate([value, self.log_intensity(self._domain.from_unit(trials))])
        return float(value.max())

    def _intensity(self, y: np.ndarray) -> np.ndarray:
        return np.exp(self.log_intensity(y))

    def _block(self, y: np.ndarray) -> np.ndarray:
        """log λ on one block, padded to a power of two so that few shapes are compiled."""
        padded = np.concatenate([y, np.repeat(y[:1], _padding(len(y)), axis=0)])
        with numerics.x64():
            return np.asarray(self._compiled(padded), dtype=np.float64)[: len(y)]

    @cached_property
    def _compiled(self) -> Callable[[np.ndarray], Any]:
        import jax
        import jax.numpy as jnp

        def one(y: Any) -> Any:
            value = jnp.asarray(self._f(y[0] if self._domain.scalar else y), dtype=float)
            if value.shape != ():
                raise InputError(
                    f"log_intensity must return one number for one point; it returned shape {value.shape}."
                )
            return value

        every = jax.jit(jax.vmap(one))

        def evaluate(y: np.ndarray) -> Any:
            try:
                return every(y)
            except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
                first = str(error).splitlines()[0]
                raise InputError(
                    "log_intensity must be JAX-traceable: use jax.numpy in place of numpy, and jnp.where in place of "
                    f"if. JAX says: {first}"
                ) from error

        return evaluate

    def __repr__(self) -> str:
        name = getattr(self._f, "__name__", type(self._f).__name__)
        return f"PoissonProcess({name}, {self._domain!r})"


def _blocks(y: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(y), _BLOCK):
        yield y[start : start + _BLOCK]


def _padding(n: int) -> int:
    return (1 << max(n - 1, _BLOCK // 64 - 1).bit_length()) - n
