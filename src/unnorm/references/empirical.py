"""The smoothed bootstrap: draws from the data, with the density of the kernel estimate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from .._base.numerics import floats, whole
from ..domains import Box, Circle, Interval, Sphere, Window
from ..errors import InputError
from .base import BoundReference, Example, Reference, is_number, numbers, plain
from .directional import concentration_sphere
from .kernels import Kernel, SphereFisher
from .normal_kernel import has_normal_kernel, normal_kernel
from .ordering import order

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain


@final
@dataclass(frozen=True, repr=False)
class Empirical(Reference):
    """q(y) = Σ_c K_h(y|c)/C: a kernel estimate of the outcomes' density, each kernel truncated to Ω and normalised.

    K is normal on intervals, boxes and windows, wrapped normal on the circle and von Mises–Fisher on the sphere, with
    standard deviation `bandwidth` (a number, or one per coordinate; None for Scott's rule, times `scale`). At most
    `centres` outcomes are used, evenly thinned along their order (sorted, or a Hilbert curve): each density evaluates C
    kernels.

    Args:
        bandwidth: a number, or one for each coordinate; None for Scott's rule, times `scale`.
        centres: how many outcomes are used at most.
        scale: what Scott's rule is multiplied by.
        points: the centres, (C, d); taken from the outcomes where None.

    >>> from unnorm.references import Empirical
    >>> Empirical(bandwidth=0.2).bandwidth
    0.2
    """

    lives_on: ClassVar[str] = "an interval, a box, a window, a circle or the unit sphere"

    bandwidth: Any = None
    centres: int = 250
    scale: float = 1.0
    points: Any = None  # the centres used, once bound; or your own, (C, d)

    def __post_init__(self) -> None:
        whole(self.centres, "centres", 1)
        if not is_number(self.scale, 0.0, strict=True):
            raise InputError(f"scale must be a positive number; got {self.scale!r}.")
        if self.bandwidth is not None:
            h = floats(self.bandwidth, "bandwidth")
            if h.ndim > 1 or not (np.isfinite(h) & (h > 0.0)).all():
                raise InputError(f"bandwidth must be a positive number, or one per coordinate; got {self.bandwidth!r}.")
            object.__setattr__(self, "bandwidth", float(h) if h.ndim == 0 else tuple(h.tolist()))
        if self.points is not None:
            points = np.atleast_2d(floats(self.points, "points").T).T
            object.__setattr__(self, "points", tuple(tuple(row) for row in points.tolist()))

    @classmethod
    def takes(cls, domain: Domain) -> bool:
        return domain.sphere or has_normal_kernel(domain)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example(cls(), Interval(-1, 1)),
            Example(cls(centres=30), Box((0, 8), (0, 6)), 60),
            Example(cls(bandwidth=(0.4, 0.6)), Window.examples()[1], 80),
            Example(cls(), Circle()),
            Example(cls(bandwidth=0.4), Sphere()),
        )

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        self.check_domain(domain)
        c = (
            np.asarray(self.points)
            if self.points is not None
            else _thinned(domain.wrap(obs.outcome), obs.weights, self.centres)
        )
        h = self._bandwidth(domain, c)
        if domain.sphere:
            kernel: Kernel = SphereFisher(1.0 / float(h[0]) ** 2)
        else:
            kernel = normal_kernel(domain, np.diag(h**2))
        filled = replace(self, bandwidth=tuple(h.tolist()), scale=1.0, points=tuple(tuple(row) for row in plain(c)))
        return BoundEmpirical(domain, filled, kernel, c)

    def _bandwidth(self, domain: Domain, c: np.ndarray) -> np.ndarray:
        size = 1 if domain.sphere else domain.dim
        if self.bandwidth is not None:
            h = np.asarray(self.bandwidth, dtype=np.float64)
            if h.ndim == 1 and len(h) != size:
                raise InputError(f"bandwidth must be a number or {size} numbers on this Ω; got {self.bandwidth!r}.")
            return np.broadcast_to(h, (size,)).copy()
        if domain.sphere:
            sd = np.array([1.0 / np.sqrt(max(concentration_sphere(float(np.linalg.norm(c.mean(axis=0)))), 1.0))])
        elif domain.period is not None:
            turn = 2.0 * np.pi / domain.period
            length = np.clip(np.abs(np.mean(np.exp(1j * turn * c))), 0.05, 1.0 - 1e-12)
            sd = np.array([np.sqrt(-2.0 * np.log(length)) / turn])
        else:
            sd = np.std(c, axis=0)
        if not (sd > 0.0).all():
            raise InputError(
                "The outcomes do not vary in some coordinate, so Empirical has no bandwidth: give bandwidth=."
            )
        d = 2 if domain.sphere else size
        return self.scale * sd * len(c) ** (-1.0 / (d + 4.0))  # Scott (1992), Section 6.3


def _thinned(y: np.ndarray, weight: np.ndarray, most: int) -> np.ndarray:
    """At most `most` outcomes by systematic sampling (in proportion to their weights) along their order."""
    y = y[order(y)] if len(y) <= most and np.ptp(weight) == 0.0 else _systematic(y, weight, most)
    return np.ascontiguousarray(y)


def _systematic(y: np.ndarray, weight: np.ndarray, most: int) -> np.ndarray:
    along = order(y)
    edges = np.cumsum(weight[along])
    target = (np.arange(most) + 0.5) / most * edges[-1]
    return y[along[np.searchsorted(edges, target)]]


@final
class BoundEmpirical(BoundReference):
    """An equal mixture of one kernel around C centres."""

    def __init__(self, domain: Domain, reference: Empirical, kernel: Kernel, c: np.ndarray) -> None:
        self.domain, self.reference, self.kernel, self.c = domain, reference, kernel, c
        self._bandwidth = reference.bandwidth
        self._log_constant = kernel.log_constant(c)
        white = kernel.whitened(c)
        if white is not None:
            self._middle = white.mean(axis=0)
            self._white = white - self._middle
            peak = kernel.log_pairs(c[:1], c[:1])
            self._bias = peak - self._log_constant - 0.5 * np.sum(self._white**2, axis=1)

    @property
    def cube_dim(self) -> int:
        return 1 + self.kernel.cube_dim

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        which = np.minimum((u[:, 0] * len(self.c)).astype(np.intp), len(self.c) - 1)
        return self.kernel.from_unit(u[:, 1:], self.c, which)

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        value = np.empty(len(y))
        step = max(1, 200_000 // len(self.c))  # pairs of one block: they fit into the cache
        for start in range(0, len(y), step):
            value[start : start + step] = self._block(y[start : start + step])
        return value - np.log(len(self.c))

    def _block(self, y: np.ndarray) -> np.ndarray:
        """log Σ_c K(y|c)."""
        white = self.kernel.whitened(y)
        if white is None:
            return self._far(y)
        # |y − c|² = |y|² − 2 y·c + |c|², by one matrix product
        white = white - self._middle
        pairs = white @ (self._white.T)
        pairs -= 0.5 * np.sum(white**2, axis=1)[:, None]
        pairs += self._bias
        np.exp(pairs, out=pairs)
        total = pairs.sum(axis=1)
        value = np.log(total, where=total > 0.0, out=np.full(len(y), -np.inf))
        far = total < 1e-280  # hundreds of bandwidths from all centres
        if far.any():
            value[far] = self._far(y[far])
        return value

    def _far(self, y: np.ndarray) -> np.ndarray:
        """The same without underflow."""
        from scipy.special import logsumexp

        return np.asarray(logsumexp(self.kernel.log_pairs(y[:, None], self.c[None]) - self._log_constant, axis=1))

    def describe(self) -> str:
        return (
            f"smoothed bootstrap of {len(self.c)} outcomes with bandwidth {numbers(self._bandwidth)}; "
            f"kernels truncated to Ω, constant {self.kernel.constant}"
        )
