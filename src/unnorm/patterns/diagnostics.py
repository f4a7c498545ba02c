"""Checks of a fitted pattern: residuals as a map, along a covariate and by quadrats (Baddeley et al. 2005).

The residual of a region B is n(B) − ∫_B λ(u | x) du, zero on average under the model. The integral is Σ λ/ρ over the
dummy points in B: residuals are sums of 1 over data points and −λ/ρ over dummy points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from .._base.frames import to_native
from .._base.numerics import whole
from ..errors import DataError, InputError, warn
from ..inference.tests import NestedTest
from .places import Places
from .where import grid

if TYPE_CHECKING:
    from .result import PatternFit

FINE = 16  # cells across a quadrat, at least
FEW = 5.0  # expected points in a quadrat below which χ² is a poor guide


@final
@dataclass(frozen=True, eq=False)
class ResidualMap:
    """Smoothed residuals on a grid: (ny, nx) values, nan outside the window."""

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    bandwidth: float

    def plot(self, ax: Any = None) -> Any:
        """The map, white where the model fits."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        top = float(np.nanmax(np.abs(self.z))) or 1.0
        ax.pcolormesh(self.x, self.y, self.z, cmap="RdBu_r", vmin=-top, vmax=top, shading="nearest", rasterized=True)
        ax.set(title="smoothed residuals", aspect="equal")
        return ax


def residuals(fit: PatternFit) -> np.ndarray:
    """(N,) what each row adds to a residual."""
    fitted = fit.fitted
    return np.where(fitted.data, 1.0, -fitted.intensity / np.exp(fitted.log_rho))


def residual_map(fit: PatternFit, across: int = 64, bandwidth: float | None = None) -> ResidualMap:
    """Residuals smoothed by a Gaussian kernel, edge-corrected: more points than the model expects where positive."""
    pattern, fitted = fit.pattern, fit.fitted
    if pattern.replicates > 1:
        raise InputError("A residual map is of one window: fit the replicates one by one, pattern.only(0).")
    _, inside, (ny, nx) = grid(pattern, 0, across)
    box = pattern.windows[0].enclosing_box
    assert box is not None
    low, high = box
    h = float((high - low).min()) / 8.0 if bandwidth is None else float(bandwidth)
    if not 0.0 < h < np.inf:
        raise InputError(f"bandwidth must be a positive distance; got {bandwidth!r}.")
    side = (high - low) / (nx, ny)
    cell = np.clip(((fitted.places.xy - low) / side).astype(int), 0, (nx - 1, ny - 1))
    raw = np.bincount(cell[:, 1] * nx + cell[:, 0], residuals(fit), nx * ny).reshape(ny, nx)
    z = (
        _smooth(raw, h / side)
        / np.maximum(_smooth(inside.reshape(ny, nx).astype(float), h / side), 1e-12)
        / side.prod()
    )
    centres = [low[k] + (np.arange(count) + 0.5) * side[k] for k, count in ((0, nx), (1, ny))]
    return ResidualMap(centres[0], centres[1], np.where(inside.reshape(ny, nx), z, np.nan), h)


def _smooth(z: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    from scipy.ndimage import gaussian_filter

    return gaussian_filter(z, sigma=(float(sigma[1]), float(sigma[0])), mode="constant", truncate=6.0)


@final
@dataclass(frozen=True, eq=False)
class Lurking:
    """Cumulative residuals along a covariate, with limits of ±2 standard errors under a Poisson model."""

    name: str
    value: np.ndarray
    residual: np.ndarray
    limit: np.ndarray
    backend: Any = None

    def table(self) -> Any:
        return to_native({self.name: self.value, "residual": self.residual, "limit": self.limit}, self.backend)

    def plot(self, ax: Any = None) -> Any:
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        ax.fill_between(self.value, -self.limit, self.limit, color="0.85")
        ax.plot(self.value, self.residual, color="#c05621")
        ax.axhline(0.0, color="0.5", lw=0.8)
        ax.set(xlabel=self.name, ylabel="cumulative residual")
        return ax


def lurking(fit: PatternFit, covariate: Any, points: int = 200) -> Lurking:
    """n − ∫λ over places where a covariate is at most v, for v over its range: a curve that leaves its limits shows an
    effect of the covariate that the model lacks.

    Args:
        fit: the fit.
        covariate: a name that the model's terms read, "x" or "y", or a `un.Map` or other covariate.
        points: of the curve.
    """
    fitted, pattern = fit.fitted, fit.pattern
    name, values = _values(fit, covariate)
    v = np.quantile(values, np.linspace(0.0, 1.0, whole(points, "points", 10)))
    order = np.argsort(values, kind="stable")
    one = residuals(fit)[order]
    at = np.searchsorted(values[order], v, side="right")
    # the variance, ∫_B λ, less what fitting takes off: its projection on the scores
    mean = np.where(one > 0.0, 0.0, -one)
    X = np.concatenate([chunk for _, chunk in fitted.gam.design_chunks()])[order]
    running = np.concatenate([np.zeros((1, X.shape[1])), np.cumsum(mean[:, None] * X, axis=0)])[at]
    total, spread = (np.concatenate([[0.0], np.cumsum(column)])[at] for column in (one, mean))
    taken = np.einsum("ij,jk,ik->i", running, fit.errors.sampling, running)
    limit = 2.0 * np.sqrt(np.maximum(spread - taken, 0.0))
    return Lurking(name, v, total, limit, pattern.backend)


def _values(fit: PatternFit, covariate: Any) -> tuple[str, np.ndarray]:
    from ..data.covariates import Covariate, CovariateSet

    fitted, pattern = fit.fitted, fit.pattern
    extra = (covariate,) if isinstance(covariate, Covariate) else ()
    name = extra[0].name if extra else str(covariate)
    obs = pattern.rows(fitted.places)
    own = [one for one in fitted.model.covariates if one.name != name]
    if not extra:
        own = list(fitted.model.covariates)
    known = CovariateSet(obs, [*own, *extra], centre=pattern.windows[0].centre)
    values = np.asarray(known.values([name], obs)[name])
    if values.dtype.kind not in "fiu":
        raise InputError(f"{name!r} is not a number; a lurking-variable plot needs one.")
    return name, values.astype(float)


def quadrat_test(fit: PatternFit, nx: int = 5, ny: int | None = None) -> NestedTest:
    """Pearson's χ² of the counts in nx × ny quadrats of a Poisson fit; df: quadrats less coefficients."""
    from scipy.special import chdtrc

    if not fit.poisson:
        raise InputError("The quadrat test is for Poisson models, whose counts are independent: see fit.envelope(…).")
    pattern = fit.pattern
    nx, ny = whole(nx, "nx", 1), whole(nx if ny is None else ny, "ny", 1)
    counts = [_quadrats(fit, code, nx, ny) for code in range(pattern.replicates)]
    observed, expected = (np.concatenate(part) for part in zip(*counts))
    used = expected > 0
    df = int(used.sum()) - round(float(sum(fit.edf.values())) + len(fit.parametric))
    if df < 1:
        raise DataError(f"{int(used.sum())} quadrats are too few for {len(fit.names)} coefficients: take more, nx=….")
    if np.any(expected[used] < FEW):
        warn(
            f"{int(np.sum(expected[used] < FEW))} of {int(used.sum())} quadrats expect fewer than {FEW:g} points: the "
            "χ² law is a poor guide. Take fewer quadrats.",
            stacklevel=3,
        )
    statistic = float(np.sum((observed - expected)[used] ** 2 / expected[used]))
    return NestedTest("quadrat χ²", statistic, df, float(chdtrc(df, statistic)))


def _quadrats(fit: PatternFit, code: int, nx: int, ny: int) -> tuple[np.ndarray, np.ndarray]:
    """Points seen and expected in each quadrat of one window, ∫λ by a fine grid in each."""
    pattern, window = fit.pattern, fit.pattern.windows[code]
    assert window.enclosing_box is not None
    low, high = window.enclosing_box
    fine = max(FINE, -(-128 // max(nx, ny)))

    def label(xy: np.ndarray) -> np.ndarray:
        cell = np.clip(((xy - low) / (high - low) * (nx, ny)).astype(int), 0, (nx - 1, ny - 1))
        return cell[:, 1] * nx + cell[:, 0]

    u = np.stack(
        np.meshgrid((np.arange(nx * fine) + 0.5) / (nx * fine), (np.arange(ny * fine) + 0.5) / (ny * fine)), axis=-1
    )
    xy = low + u.reshape(-1, 2) * (high - low)
    xy = xy[window.contains(xy)]
    trend = sum(np.exp(fit.process().log_trend(Places.of(xy, mark, code))) for mark in range(pattern.types))
    cell = float((high - low).prod()) / (nx * ny * fine**2)
    expected = np.bincount(label(xy), trend * cell, nx * ny)
    here = pattern.places.replicate == code
    return np.bincount(label(pattern.xy[here]), minlength=nx * ny), expected
