"""Normal references: one law for all points, or a step kernel centred on the previous point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from .._base.numerics import flag, floats
from ..domains import Box, Circle, Interval, Window
from ..errors import InputError
from .around import Around, KernelReference, centres, check_around
from .base import BoundReference, Example, Reference, is_number, numbers, plain
from .normal_kernel import has_normal_kernel, normal_kernel

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain


@final
@dataclass(frozen=True, repr=False)
class Gaussian(Reference):
    """N(mean, cov) truncated to Ω, or with `around="context"` N(x + mean, cov): a step from the previous point x.

    What is left None is fitted to the data (weighted moments of the outcomes, or of the steps, before truncation), with
    the fitted standard deviations multiplied by `scale`: a reference somewhat wider than the data is safer.
    `cov` is a variance, d variances or a (d, d) matrix; `diagonal=True` fits variances only, `cov` None and
    `diagonal=False` the whole matrix. Constants are exact: by Φ on intervals and boxes, by Owen's T on polygons and for
    correlated normals in a rectangle; by quadrature with a stated error for correlated normals in boxes of three or
    more dimensions. On the circle the law is wrapped. `around="outcome"` centres on y_t itself, for conditional NCE; a
    tuple names columns of the context.

    Args:
        mean: of y, or with `around` of the step; fitted where None.
        cov: a variance, d variances or a (d, d) matrix; fitted where None.
        around: None; "context", the previous point; "outcome", y_t itself; or a tuple of columns of the context.
        scale: what fitted standard deviations are multiplied by.
        diagonal: whether variances alone are fitted, and not the whole matrix.

    >>> import unnorm as un
    >>> from unnorm.references import Gaussian
    >>> step = Gaussian(mean=0.0, cov=0.25, around="context")
    """

    lives_on: ClassVar[str] = "an interval, a box, a window or a circle"

    mean: Any = None
    cov: Any = None
    around: Around = None
    scale: float = 1.0
    diagonal: bool = True

    def __post_init__(self) -> None:
        check_around(self.around)
        object.__setattr__(self, "diagonal", flag(self.diagonal, "diagonal of Gaussian"))
        if not is_number(self.scale, 0.0, strict=True):
            raise InputError(f"scale must be a positive number; got {self.scale!r}.")
        for name in ("mean", "cov"):
            value = getattr(self, name)
            if value is not None:
                array = floats(value, f"{name} of Gaussian")
                if not np.isfinite(array).all():
                    raise InputError(f"{name} of Gaussian must be finite; got {value!r}.")
                object.__setattr__(self, name, _tuples(array))

    @classmethod
    def takes(cls, domain: Domain) -> bool:
        return has_normal_kernel(domain)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        line, screen, star, circle = Interval(-1, 1), Box((0, 8), (0, 6)), Window.examples()[1], Circle()
        space = Box((-1, 1), (0, 1), (2, 5))
        tilted = ((2.0, 1.0), (1.0, 1.5))
        return (
            Example(cls(), line),
            Example(cls(mean=-4.0, cov=0.5), line),
            Example(cls(mean=-4.0, cov=0.1), line),
            Example(cls(around="context"), line),
            Example(cls(around="outcome", cov=0.04), line),
            Example(cls(mean=0.1, cov=0.04, around="outcome"), line),
            Example(cls(scale=1.5), screen, 60),
            Example(cls(around="context"), screen, 60),
            Example(cls(around="context", cov=tilted), screen, 80),
            Example(cls(cov=((50.0, 10.0), (10.0, 40.0))), screen, 60),
            Example(cls(around="context", mean=0.0), space, 30),
            Example(cls(mean=(0.2, 0.4, 3.0), diagonal=False, scale=1.2), space, 30, 1e-5),
            Example(cls(), star, 80),
            Example(cls(around="context", cov=0.5), star, 80),
            Example(cls(cov=9.0), star, 60),
            Example(cls(), circle),
            Example(cls(around="context", cov=0.3), circle),
        )

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        self.check_domain(domain)
        d = domain.dim
        centre = None if self.around is None else centres(self.around, obs)
        if domain.period is not None:
            mean, cov = self._circular(obs, centre, domain.period)
        else:
            mean, cov = self._moments(obs, centre)
        mean = mean if self.mean is None else _vector(self.mean, d, "mean")
        cov = cov if self.cov is None else _matrix(self.cov, d)
        filled = replace(self, mean=_tuples(mean), cov=_tuples(cov), scale=1.0)
        text = f"Gaussian with mean {numbers(mean)} and sd {numbers(np.sqrt(np.diag(cov)))}"
        return KernelReference(domain, filled, normal_kernel(domain, cov), self.around, mean, text)

    def _moments(self, obs: Observations, centre: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Weighted moments of the outcomes or the steps."""
        step = obs.outcome if centre is None else obs.outcome - centre
        if self.around == "outcome":  # no step is observed: a tenth of the outcomes' sd
            cov = np.cov(obs.outcome, rowvar=False, aweights=obs.weights).reshape(obs.dim, obs.dim)
            return np.zeros(obs.dim), self._shaped(0.01 * cov)
        mean = np.average(step, axis=0, weights=obs.weights)
        if self.cov is not None:
            return mean, np.empty((0, 0))
        off = step - (mean if self.mean is None else _vector(self.mean, obs.dim, "mean"))
        cov = (obs.weights[:, None] * off).T @ off / obs.weights.sum()
        return mean, self._shaped(cov)

    def _shaped(self, cov: np.ndarray) -> np.ndarray:
        cov = cov * self.scale**2
        return np.diag(np.diag(cov)) if self.diagonal else cov

    def _circular(self, obs: Observations, centre: np.ndarray | None, period: float) -> tuple[np.ndarray, np.ndarray]:
        """Mean direction, and the variance −2 log R̄ of the wrapped normal with that mean resultant length R̄."""
        turn = 2.0 * np.pi / period
        step = obs.outcome if centre is None or self.around == "outcome" else obs.outcome - centre
        resultant = np.average(np.exp(1j * turn * step[:, 0]), weights=obs.weights)
        length = min(max(abs(resultant), 1e-8), 1.0 - 1e-12)
        variance = -2.0 * np.log(length) / turn**2 * self.scale**2
        if self.around == "outcome":
            return np.zeros(1), np.array([[0.01 * variance]])
        return np.array([np.angle(resultant) / turn]), np.array([[variance]])


def _tuples(value: Any) -> Any:
    listed = plain(np.asarray(value, dtype=np.float64))
    return tuple(_tuples(item) for item in listed) if isinstance(listed, list) else listed


def _vector(value: Any, d: int, what: str) -> np.ndarray:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != d):
        raise InputError(f"{what} of Gaussian must be a number or {d} numbers on this Ω; got shape {array.shape}.")
    return np.broadcast_to(array, (d,)).copy()


def _matrix(value: Any, d: int) -> np.ndarray:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim <= 1:
        array = np.diag(_vector(array, d, "cov"))
    if array.shape != (d, d) or not np.allclose(array, array.T):
        raise InputError(
            f"cov of Gaussian must be a variance, {d} variances or a symmetric ({d}, {d}) matrix; "
            f"got shape {array.shape}."
        )
    if not (np.diag(array) > 0.0).all():
        raise InputError(f"The variances in cov of Gaussian must be positive; got {np.diag(array).tolist()}.")
    return array
