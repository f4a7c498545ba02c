"""Pictures of step selection: the map of utilisation, calibration, laws of steps, tracks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .calibration import Calibration
    from .utilisation import Utilisation

BLUE, GREY, ORANGE = "#1f5fa8", "#9a9a9a", "#c2571a"


def axes(ax: Any) -> Any:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def coordinates(ax: Any) -> None:
    """Places as they are, 4312000 and not 4.312 with 1e6 in a corner, and few enough to stand side by side."""
    ax.ticklabel_format(style="plain", useOffset=False)
    ax.locator_params(nbins=4)
    ax.set_aspect("equal")


def utilisation(found: Utilisation, ax: Any = None) -> Any:
    """Cells by their probability."""
    ax = axes(ax)
    shown = np.where(found.probability > 0.0, found.probability, np.nan)
    image = ax.pcolormesh(found.x, found.y, shown, cmap="viridis", shading="nearest", rasterized=True)
    ax.figure.colorbar(image, ax=ax, label="share of time", shrink=0.8)
    coordinates(ax)
    ax.set(xlabel="x", ylabel="y")
    return ax


def calibration(found: Calibration, ax: Any = None) -> Any:
    """Used habitat against what the model would use, and what was available."""
    ax = axes(ax)
    middle = 0.5 * (found.edges[:-1] + found.edges[1:])
    ax.fill_between(middle, found.lower, found.upper, color=BLUE, alpha=0.25, lw=0, label="used, by the model")
    ax.plot(middle, found.used, color=BLUE, marker="o", ms=3, label="used")
    ax.plot(middle, found.available, color=GREY, ls="--", label="available")
    ax.set_xlabel(found.name, parse_math=False)
    ax.set_ylabel("share of steps")
    ax.legend(frameon=False)
    return ax


def step_law(observed: np.ndarray, tentative: Any, updated: Any, ax: Any = None) -> Any:
    """Observed step lengths, the kernel that was fitted to them, and the updated one."""
    ax = axes(ax)
    top = float(np.quantile(observed, 0.99))
    ax.hist(observed, bins=np.linspace(0.0, top, 40), density=True, color=GREY, alpha=0.5, label="observed")
    r = np.linspace(top / 400, top, 400)
    for law, colour, style, name in ((tentative, GREY, "--", "fitted to the steps"), (updated, BLUE, "-", "updated")):
        if law is not None:
            ax.plot(r, np.exp(law.log_density(r)), color=colour, ls=style, label=name)
    ax.set(xlabel="step", ylabel="density")
    ax.legend(frameon=False)
    return ax
