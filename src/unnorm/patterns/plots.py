"""Pictures of a fitted pattern."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.numerics import Rng
from ..errors import EstimationError, InputError
from .places import Places
from .where import grid

if TYPE_CHECKING:
    from .result import PatternFit


def intensity_cells(fit: PatternFit, across: int = 96, mark: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, y and the fitted intensity (of a Gibbs model, its trend) of cells over the window, NaN outside it."""
    xy, inside, (ny, nx) = grid(fit.pattern, 0, across)
    z = np.full(len(xy), np.nan)
    z[inside] = np.exp(fit.process().log_trend(Places.of(xy[inside], mark)))
    return np.unique(xy[:, 0]), np.unique(xy[:, 1]), z.reshape(ny, nx)


def intensity_map(fit: PatternFit, ax: Any, across: int = 96, mark: int = 0) -> Any:
    """The fitted intensity (of a Gibbs model, its trend) with the points on it."""
    pattern = fit.pattern
    drawn = ax.pcolormesh(*intensity_cells(fit, across, mark), shading="nearest", cmap="viridis", rasterized=True)
    shown = pattern.xy[pattern.places.mark == mark]
    ax.plot(shown[:, 0], shown[:, 1], ".", ms=2, color="white", alpha=0.7)
    label = "" if pattern.mark_name is None else f" of {pattern.mark_levels[mark]}"
    ax.set(
        title=("intensity" if fit.poisson else "trend") + label,
        aspect="equal",
        xlabel=pattern.names[0],
        ylabel=pattern.names[1],
    )
    return drawn


def overview(fit: PatternFit, n: int, rng: Rng) -> Any:
    """Intensity, residuals, and L with its envelope."""
    import matplotlib.pyplot as plt

    if fit.pattern.replicates > 1:
        raise InputError("fit.plot() shows one window: fit one replicate, pattern.only(0).")
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    figure.colorbar(intensity_map(fit, axes[0]), ax=axes[0], shrink=0.8)
    fit.residuals().plot(axes[1])
    try:
        fit.envelope("L", n, rng=rng).plot(axes[2])
    except (InputError, EstimationError) as error:  # nothing can be simulated: the other two stand
        axes[2].text(0.5, 0.5, fill(str(error), 40), ha="center", va="center", transform=axes[2].transAxes)
        axes[2].set_axis_off()
    return figure, axes
