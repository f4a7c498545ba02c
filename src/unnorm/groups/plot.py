"""The paper's figure: one panel a term, levels in grey, the group in blue with its band, the plain mean dashed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from .result import FitGroup

BLUE, GREY = "#1f5fa8", "#9a9a9a"


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
