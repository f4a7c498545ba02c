"""The paper's figure: one panel a term, levels in grey, the group in blue with its band, the plain mean dashed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from .conditions import Conditions
    from .result import FitGroup

BLUE, GREY = "#1f5fa8", "#9a9a9a"
COLOURS = (BLUE, "#c2571a", "#2a7f4f", "#8a4fa0", "#a8201f", "#6b6b00", "#00757a", "#5a3d1e")  # of conditions


def plot_group(each: FitGroup, labels: tuple[str, ...]) -> tuple[Any, Any]:
    """(Figure, axes) with a panel for each term; terms of two covariates as maps of the group (or the plain mean)."""
    import matplotlib.pyplot as plt

    if not labels:
        raise InputError("There are no smooth terms to plot; `tidy()` has the parameters.")
    figure, axes = plt.subplots(1, len(labels), figsize=(4.2 * len(labels), 3.6), squeeze=False, layout="constrained")
    for ax, label in zip(axes[0], labels):
        covariates = list(each.grids[label.replace(" ", "")])
        if len(covariates) == 1:
            _curves(each, label, covariates[0], ax)
        elif len(covariates) == 2:
            _map(each, label, covariates, ax, figure)
        else:
            ax.text(
                0.5, 0.5, f"{label}: {len(covariates)} covariates", ha="center", va="center", transform=ax.transAxes
            )
            ax.set_axis_off()
    return figure, axes[0]


def plot_conditions(
    each: FitGroup, compared: Conditions, labels: tuple[str, ...], first: str | None, second: str | None
) -> tuple[Any, Any]:
    """(Figure, axes (2, panels)): conditions above, the difference of two below."""
    import matplotlib.pyplot as plt

    labels = tuple(label.replace(" ", "") for label in labels)
    shown = [label for label in labels if len(each.grids[label]) == 1]
    if not shown:
        raise InputError("There is no term of one covariate to plot; `difference(label)` has the others as tables.")
    found, sign = compared.pair(first, second)
    name = found.name if sign > 0 else f"{found.second} − {found.first}"
    figure, axes = plt.subplots(2, len(shown), figsize=(3.4 * len(shown), 5.4), squeeze=False, layout="constrained")
    for (above, below), label in zip(axes.T, shown):
        (covariate,) = each.grids[label]
        bands: list[np.ndarray] = []
        for i, condition in enumerate(compared.names):
            table, colour = each._effect(label, f"{compared.between}={condition}"), COLOURS[i % len(COLOURS)]
            x = _x(table[covariate])
            above.fill_between(x, table["lower"], table["upper"], color=colour, alpha=0.2, lw=0)
            above.plot(x, table["estimate"], color=colour, lw=1.8, label=condition)
            bands += [table["lower"], table["upper"]]
        above.set_ylim(*_most(bands))
        table = compared.difference_columns(label, first, second, each.grids[label])
        x = _x(table[covariate])
        below.fill_between(x, table["lower_simultaneous"], table["upper_simultaneous"], color=BLUE, alpha=0.15, lw=0)
        below.fill_between(x, table["lower"], table["upper"], color=BLUE, alpha=0.3, lw=0)
        below.plot(x, table["estimate"], color=BLUE, lw=1.8)
        below.axhline(0.0, color=GREY, lw=0.6)
        below.set_ylim(*_most([table["lower_simultaneous"], table["upper_simultaneous"], np.zeros(1)]))
        above.set_title(label)
        below.set_xlabel(covariate)
    axes[0, 0].set_ylabel("effect on log density")
    axes[1, 0].set_ylabel(name)
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure, axes


def _most(bands: list[np.ndarray]) -> tuple[float, float]:
    """Limits that hold nine tenths of the bands, and more of them: where data are few, bands would flatten the rest."""
    low, high = np.quantile(np.concatenate(bands), [0.05, 0.95])
    room = 0.25 * float(high - low)
    return float(low) - room, float(high) + room


def _curves(each: FitGroup, label: str, name: str, ax: Any) -> None:
    if np.asarray(each.grids[label.replace(" ", "")][name]).dtype.kind not in "iufb":
        ticks = [str(value) for value in each.grids[label.replace(" ", "")][name]]
        ax.set_xticks(range(len(ticks)), ticks)
    for i, level in enumerate(each.fits):
        own = each._effect(label, level)
        ax.plot(
            _x(own[name]), own["estimate"], color=GREY, lw=0.8, alpha=0.7, label=f"each {each.by}" if i == 0 else None
        )
    if len(each.fits) > 1:
        mean = each._effect(label, "mean")
        ax.plot(_x(mean[name]), mean["estimate"], color="black", lw=1.2, ls="--", label="plain mean")
    if each.group is not None:
        group = each._effect(label, "group")
        ax.fill_between(_x(group[name]), group["lower"], group["upper"], color=BLUE, alpha=0.25, lw=0)
        ax.plot(_x(group[name]), group["estimate"], color=BLUE, lw=2, label="group, 95 % band")
    ax.set_xlabel(name)
    ax.set_ylabel(label)
    ax.legend(frameon=False, fontsize="small")


def _x(values: np.ndarray) -> np.ndarray:
    return values if values.dtype.kind in "iufb" else np.arange(len(values))


def _map(each: FitGroup, label: str, names: list[str], ax: Any, figure: Any) -> None:
    which = "group" if each.group is not None else "mean"
    shown = each._effect(label, which)
    first, second = (np.unique(shown[name]) for name in names)
    values = shown["estimate"].reshape(first.size, second.size)
    top = float(np.abs(values).max()) or 1.0
    image = ax.pcolormesh(first, second, values.T, cmap="RdBu_r", vmin=-top, vmax=top, shading="nearest")
    figure.colorbar(image, ax=ax)
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    ax.set_title(f"{label}, {which}")
