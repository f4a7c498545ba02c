"""Kernels of numbers: Gaussian, Matérn, periodic and linear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, final

import numpy as np

from ...errors import TermError
from ..base import Columns
from .base import KernelFunction, for_columns, numbers, one_or_each

Scale = float | tuple[float, ...] | None


def _spread(columns: Columns, names: Sequence[str], what: str) -> np.ndarray:
    """(d,) standard deviations; a column that does not vary is refused."""
    spread = numbers(columns, names, what).std(axis=0)
    if still := [name for name, sd in zip(names, spread) if not sd > 0]:
        raise TermError(
            f"{what}: column {still[0]!r} is constant, so nothing can be estimated from it. "
            "Leave it out, or give scale=."
        )
    return spread


@dataclass(frozen=True)
class _Stationary(KernelFunction):
    """k(x, x') = g(r), r² = Σ_j (x_j − x'_j)²/scale_j²."""

    takes: ClassVar[str] = "numbers"
    scale: Scale = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", one_or_each(type(self).__name__, "scale", self.scale))

    def resolved(self, columns: Columns, names: Sequence[str], periods: Mapping[str, Any], what: str) -> Self:
        """By default scale_j = √d sd_j: r² is then about 2 for two contexts drawn at random, whatever d."""
        if self.scale is None:
            scale = tuple(float(v) for v in np.sqrt(len(names)) * _spread(columns, names, what))
        else:
            scale = for_columns(self.scale, names, what, "scale")
        return replace(self, scale=scale)

    def read(self, columns: Columns, names: Sequence[str], what: str) -> np.ndarray:
        assert self.scale is not None
        return numbers(columns, names, what) / np.asarray(self.scale)


@final
@dataclass(frozen=True)
class Gaussian(_Stationary):
    """k(x, x') = exp(−r²/2), r the distance in units of `scale`: very smooth functions.

    Args:
        scale: a number, or one for each column; default the columns' standard deviations times √d.

    Example:
        >>> import unnorm as un
        >>> un.kernels.Gaussian(scale=0.5)
        Gaussian(scale=0.5)
    """

    name = "gaussian"

    def gram(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        from scipy.spatial.distance import cdist

        return np.exp(-0.5 * cdist(a, b, "sqeuclidean"))


@final
@dataclass(frozen=True)
class Matern(_Stationary):
    """Matérn: functions that are continuous (nu = 1/2), once (3/2) or twice (5/2) differentiable.

    Args:
        scale: as in `Gaussian`.
        nu: 0.5, 1.5 or 2.5.

    Example:
        >>> import unnorm as un
        >>> un.kernels.Matern(nu=2.5)
        Matern(scale=None, nu=2.5)
    """

    name = "matern"
    nu: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu not in (0.5, 1.5, 2.5):
            raise TermError(f"kernels.Matern: nu must be 0.5, 1.5 or 2.5; got {self.nu!r}.")

    def gram(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        from scipy.spatial.distance import cdist

        r = np.sqrt(2 * self.nu) * cdist(a, b)
        polynomial = {0.5: lambda: 1.0, 1.5: lambda: 1 + r, 2.5: lambda: 1 + r + r * r / 3}[self.nu]()
        return polynomial * np.exp(-r)


@final
@dataclass(frozen=True)
class Periodic(KernelFunction):
    """k(x, x') = exp(−2 Σ_j sin²(π (x_j − x'_j)/period_j)/scale_j²): functions on circles.

    Args:
        period: a number, or one for each column; default the period that the domain declares for the column.
        scale: small for functions that turn quickly; a number, or one for each column.

    Example:
        >>> import numpy as np, unnorm as un
        >>> k = un.kernels.Periodic(period=24.0)
        >>> bool(np.isclose(k.gram(np.array([[1.0]]), np.array([[25.0]]))[0, 0], 1.0))
        True
    """

    name = "periodic"
    takes = "numbers with a period"
    period: float | tuple[float, ...] | None = None
    scale: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "period", one_or_each("Periodic", "period", self.period))
        object.__setattr__(self, "scale", one_or_each("Periodic", "scale", self.scale))

    def resolved(self, columns: Columns, names: Sequence[str], periods: Mapping[str, Any], what: str) -> Self:
        period = self.period
        if period is None:
            if unknown := [name for name in names if periods.get(name) is None]:
                raise TermError(f"{what}: column {unknown[0]!r} declares no period. Give period=, e.g. period=24.")
            ends = [np.asarray(periods[name], dtype=np.float64) for name in names]
            period = tuple(float(end) if end.ndim == 0 else float(end[1] - end[0]) for end in ends)
        return replace(
            self,
            period=for_columns(period, names, what, "period"),
            scale=for_columns(self.scale, names, what, "scale"),
        )

    def read(self, columns: Columns, names: Sequence[str], what: str) -> np.ndarray:
        return numbers(columns, names, what)

    def gram(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        assert self.period is not None
        d = a.shape[1]
        period, scale = np.broadcast_to(self.period, d), np.broadcast_to(self.scale, d)
        total = np.zeros((len(a), len(b)))
        for j in range(d):
            total += (np.sin(np.pi / period[j] * np.subtract.outer(a[:, j], b[:, j])) / scale[j]) ** 2
        return np.exp(-2 * total)


@final
@dataclass(frozen=True)
class Linear(KernelFunction):
    """k(x, x') = Σ_j z_j z'_j, z the standardised columns: straight lines, with a ridge on their slopes.

    Args:
        scale: what one unit of z is; default each column's standard deviation.
        centre: what is taken off each column; default its mean.

    Example:
        >>> import unnorm as un
        >>> un.Kernel(un.kernels.Linear(), ("age", "dose"))
        Kernel("kernel(age, dose, k='linear')")
    """

    name = "linear"
    takes = "numbers"
    scale: Scale = None
    centre: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", one_or_each("Linear", "scale", self.scale))

    def resolved(self, columns: Columns, names: Sequence[str], periods: Mapping[str, Any], what: str) -> Self:
        centre = self.centre
        if centre is None:
            centre = tuple(float(v) for v in numbers(columns, names, what).mean(axis=0))
        if self.scale is None:
            scale = tuple(float(v) for v in _spread(columns, names, what))
        else:
            scale = for_columns(self.scale, names, what, "scale")
        return replace(self, scale=scale, centre=centre)

    def read(self, columns: Columns, names: Sequence[str], what: str) -> np.ndarray:
        assert self.scale is not None
        assert self.centre is not None
        return (numbers(columns, names, what) - np.asarray(self.centre)) / np.asarray(self.scale)

    def gram(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a @ b.T

    def diagonal(self, a: np.ndarray) -> np.ndarray:
        return np.sum(a * a, axis=1)
