"""Smooth kernels K(·|c) on Ω, truncated to it and normalised: what `Gaussian`, `VonMises`… and `Empirical` are made of.

Every method takes the distinct centres c (n, d) and, for each of N points, the index `i` (N,) of its centre, so that a
constant is computed once per centre and not once per point.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import final

import numpy as np

from .._base.lattices import kronecker
from ..domains.base import Domain
from ..errors import InputError
from . import polygon, rejection
from .quantiles import LOG_2PI, Quantile, circular_quantile
from .tracing import Traceable


class Kernel(ABC):
    """K(·|c) on Ω."""

    cube_dim: int
    constant: str  # how the normalising constant is computed, for people
    periodic: bool = False

    @abstractmethod
    def from_unit(self, u: np.ndarray, c: np.ndarray, i: np.ndarray) -> np.ndarray:
        """(N, cube_dim) unit points → (N, d) draws."""

    @abstractmethod
    def log_pairs(self, y: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Unnormalised log K(y|c), rows broadcast against each other; `log_constant` is still to be subtracted."""

    def whitened(self, y: np.ndarray) -> np.ndarray | None:
        """Coordinates in which `log_pairs` is −½|y − c|² + const; None where it is not of that form."""
        return None

    @abstractmethod
    def log_constant(self, c: np.ndarray) -> np.ndarray:
        """log ∫_Ω exp(log_pairs(y, c)) dy, shape (n,)."""

    def log_density(self, y: np.ndarray, c: np.ndarray, i: np.ndarray) -> np.ndarray:
        """log K(y_j | c_i[j]), shape (N,)."""
        return self.log_pairs(y, c[i]) - self.log_constant(c)[i]

    def traceable(self, shift: np.ndarray, centres: np.ndarray | None) -> Traceable | None:
        """The kernel in JAX around each row's own centre, or around the point `shift` where `centres` is None."""
        return None


@final
class PolygonNormal(Kernel):
    """A normal law with any covariance, truncated to a polygon: constant by Owen's T, draws by rejection."""

    constant = "exact, by Owen's T over the edges of the polygon"

    def __init__(self, domain: Domain, cov: np.ndarray) -> None:
        assert domain.edges is not None
        self.domain = domain
        self.L = cholesky(cov)
        self.W = np.linalg.inv(self.L)  # whitening: W (y − c) is standard normal
        self._memo = rejection.Memo()
        self.edges = domain.edges @ self.W.T
        # Where the kernel's peak is below the uniform density, uniform proposals are kept more often than normal ones.
        self.wide = self.domain.volume < 2.0 * np.pi * np.prod(np.diag(self.L))
        self.cube_dim = 3 if self.wide else 2

    def from_unit(self, u: np.ndarray, c: np.ndarray, i: np.ndarray) -> np.ndarray:
        from scipy.special import ndtri

        rejection.check_mass(self._mass(c))

        def normal(v: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            y = c[i[rows]] + ndtri(v) @ self.L.T
            return y, self.domain.contains_interior(y)

        def uniform(v: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            y = self.domain.from_unit(v[:, :2])
            return y, v[:, 2] < np.exp(-0.5 * np.sum(((y - c[i[rows]]) @ self.W.T) ** 2, axis=1))

        return rejection.fill(u, uniform if self.wide else normal, 2)

    def log_pairs(self, y: np.ndarray, c: np.ndarray) -> np.ndarray:
        return -0.5 * np.sum(((y - c) @ self.W.T) ** 2, axis=-1) - np.sum(np.log(np.diag(self.L))) - LOG_2PI

    def whitened(self, y: np.ndarray) -> np.ndarray:
        return y @ self.W.T

    def _mass(self, c: np.ndarray) -> np.ndarray:
        return self._memo(lambda: polygon.normal_mass(self.edges, c @ self.W.T), c)

    def log_constant(self, c: np.ndarray) -> np.ndarray:
        return np.log(rejection.check_mass(self._mass(c)))


@final
class CorrelatedBoxNormal(Kernel):
    """A normal law with full covariance on a box in three or more dimensions: constant by Genz's transform."""

    def __init__(self, domain: Domain, cov: np.ndarray) -> None:
        assert domain.sides is not None
        self.domain = domain
        self.lower, self.upper = domain.sides
        self._memo = rejection.Memo()
        self.L = cholesky(cov)
        self.W = np.linalg.inv(self.L)
        self.cube_dim = d = len(cov)
        if d <= 3:
            x, w = np.polynomial.legendre.leggauss(24)
            grid = np.stack(np.meshgrid(*[0.5 * (x + 1.0)] * (d - 1), indexing="ij"), axis=-1)
            self.nodes = grid.reshape(-1, d - 1)
            weight = np.ones(1)
            for _ in range(d - 1):
                weight = np.outer(weight, 0.5 * w).ravel()
            self.weight = weight
        else:
            v = (0.5 + np.arange(4096)[:, None] * kronecker(d - 1)) % 1.0
            self.nodes = 1.0 - np.abs(2.0 * v - 1.0)
            self.weight = np.full(4096, 1.0 / 4096)

    @property
    def constant(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        rule = "24 Gauss–Legendre nodes per axis" if self.cube_dim <= 3 else "4,096 lattice points"
        return f"by quadrature (Genz 1992, {rule}); relative error about {self.error:.0e}"

    @cached_property
    def error(self) -> float:
        """Relative error of the constant at some centres: the rule against itself with the axes in reverse order."""
        some = self.lower + np.array([[0.5], [0.25], [0.75]]) * (self.upper - self.lower)
        L_reversed = cholesky((self.L @ self.L.T)[::-1, ::-1])
        forth = self._mass(some, self.L, self.lower, self.upper)
        back = self._mass(some[:, ::-1], L_reversed, self.lower[::-1], self.upper[::-1])
        return float(np.max(np.abs(forth / back - 1.0)))

    def _mass(self, c: np.ndarray, L: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        from scipy.special import ndtr, ndtri

        mass = np.empty(len(c))
        step = max(1, polygon.CHUNK // len(self.nodes))
        for start in range(0, len(c), step):
            centre = c[start : start + step, None]
            z: list[np.ndarray] = []
            product = np.ones((centre.shape[0], len(self.nodes)))
            for j in range(self.cube_dim):
                shift = sum((L[j, k] * z[k] for k in range(j)), start=np.zeros((1, 1)))
                low = ndtr((lower[j] - centre[..., j] - shift) / L[j, j])
                high = ndtr((upper[j] - centre[..., j] - shift) / L[j, j])
                product = product * (high - low)
                if j < self.cube_dim - 1:
                    inner = np.clip(low + self.nodes[:, j] * (high - low), 1e-300, 1.0 - 1e-16)
                    z.append(ndtri(inner))
            mass[start : start + step] = product @ self.weight
        return mass

    def from_unit(self, u: np.ndarray, c: np.ndarray, i: np.ndarray) -> np.ndarray:
        from scipy.special import ndtri

        self.log_constant(c)

        def normal(v: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            y = c[i[rows]] + ndtri(v) @ self.L.T
            return y, self.domain.contains(y)

        return rejection.fill(u, normal, self.cube_dim)

    def log_pairs(self, y: np.ndarray, c: np.ndarray) -> np.ndarray:
        log_det = np.sum(np.log(np.diag(self.L)))
        return -0.5 * np.sum(((y - c) @ self.W.T) ** 2, axis=-1) - log_det - 0.5 * self.cube_dim * LOG_2PI

    def whitened(self, y: np.ndarray) -> np.ndarray:
        return y @ self.W.T

    def log_constant(self, c: np.ndarray) -> np.ndarray:
        mass = self._memo(lambda: self._mass(c, self.L, self.lower, self.upper), c)
        return np.log(rejection.check_mass(mass))


@final
class WrappedNormal(Kernel):
    """A normal law wrapped around a circle: exact."""

    constant = "exact (wrapped)"
    cube_dim = 1

    def __init__(self, domain: Domain, sd: float) -> None:
        assert domain.period is not None
        self.domain, self.period, self.sd = domain, domain.period, sd

    def from_unit(self, u: np.ndarray, c: np.ndarray, i: np.ndarray) -> np.ndarray:
        from scipy.special import ndtri

        return self.domain.wrap(c[i] + self.sd * ndtri(u))

    def log_pairs(self, y: np.ndarray, c: np.ndarray) -> np.ndarray:
        turn = 2.0 * np.pi / self.period
        angle, sd = turn * (y - c)[..., 0], turn * self.sd
        angle = np.mod(angle + np.pi, 2.0 * np.pi) - np.pi
        if sd > 1.5:  # the Fourier series: its terms fall as exp(−j² sd²/2), below 1e-17 from j = 6
            series = sum(np.exp(-0.5 * (j * sd) ** 2) * np.cos(j * angle) for j in range(1, 7))
            return np.log1p(2.0 * series) - np.log(self.period)
        z = angle[..., None] + 2.0 * np.pi * np.arange(-3, 4)  # the next winding is 12 sd away
        z = -0.5 * (z / sd) ** 2
        top = z.max(axis=-1)
        return top + np.log(np.sum(np.exp(z - top[..., None]), axis=-1)) - np.log(self.sd) - 0.5 * LOG_2PI

    def log_constant(self, c: np.ndarray) -> np.ndarray:
        return np.zeros(len(c))


@final
class CircleVonMises(Kernel):
    """exp(κ cos(y − c)) / 2π I₀(κ) on the circle."""

    constant = "exact, 2π I₀(κ)"
    cube_dim = 1
    periodic = True

    def __init__(self, domain: Domain, kappa: float) -> None:
        assert domain.period is not None
        self.domain, self.turn, self.kappa = domain, 2.0 * np.pi / domain.period, kappa

    @cached_property
    def _quantile(self) -> Quantile:
        return circular_quantile(self.kappa)

    def from_unit(self, u: np.ndarray, c: np.ndarray, i: np.ndarray) -> np.ndarray:
        return self.domain.wrap(c[i] + self._quantile(u) / self.turn)

    def log_pairs(self, y: np.ndarray, c: np.ndarray) -> np.ndarray:
        half = 0.5 * self.turn * (y - c)[..., 0]
        return -2.0 * self.kappa * np.sin(half) ** 2 - log_bessel0(self.kappa) - LOG_2PI + np.log(self.turn)

    def log_constant(self, c: np.ndarray) -> np.ndarray:
        return np.zeros(len(c))


@final
class SphereFisher(Kernel):
    """κ exp(κ c·y) / 4π sinh κ on the unit sphere (von Mises–Fisher)."""

    constant = "exact, 4π sinh(κ)/κ"
    cube_dim = 2

    def __init__(self, kappa: float) -> None:
        self.kappa = kappa

    def from_unit(self, u: np.ndarray, c: np.ndarray, i: np.ndarray) -> np.ndarray:
        fall = -np.expm1(-2.0 * self.kappa)
        drop = -np.log1p(-u[:, 0] * fall) / self.kappa  # 1 − c·y, by the inverse of its truncated exponential law
        drop = np.minimum(drop, 2.0)
        r = np.sqrt(drop * (2.0 - drop))
        phi = 2.0 * np.pi * u[:, 1]
        local = np.column_stack([r * np.cos(phi), r * np.sin(phi), 1.0 - drop])
        # Householder: the reflection that exchanges the pole on c's side with c; the law is symmetric about its axis.
        side = np.where(c[:, 2] >= 0.0, 1.0, -1.0)
        v = c.copy()
        v[:, 2] += side
        v = (v / np.linalg.norm(v, axis=1, keepdims=True))[i]
        y = 2.0 * v * np.sum(v * local, axis=1, keepdims=True) - local
        return y * side[i][:, None]

    def log_pairs(self, y: np.ndarray, c: np.ndarray) -> np.ndarray:
        k = self.kappa
        # c·y − 1 = −|y − c|²/2 without cancellation
        return -0.5 * k * np.sum((y - c) ** 2, axis=-1) + np.log(k) - LOG_2PI - np.log(-np.expm1(-2.0 * k))

    def whitened(self, y: np.ndarray) -> np.ndarray:
        return y * np.sqrt(self.kappa)

    def log_constant(self, c: np.ndarray) -> np.ndarray:
        return np.zeros(len(c))


def cholesky(cov: np.ndarray) -> np.ndarray:
    """The lower factor of a covariance, or an error that says what is wrong with it."""
    try:
        return np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        raise InputError(
            f"The covariance of a reference must be positive definite; got {np.asarray(cov).tolist()}. If it was "
            "fitted, the outcomes lie on a line: give cov= yourself."
        ) from None


def log_bessel0(kappa: float) -> float:
    """log I₀(κ) − κ."""
    from scipy.special import i0e

    return float(np.log(i0e(kappa)))
