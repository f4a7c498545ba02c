"""Pictures of fits: intervals of parameters, effects with bands, maps. matplotlib is loaded on use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.intervals import normal_quantile
from ..engine import gam_effects
from ..errors import InputError
from .smooths import SmoothPart

INK, BAND, INNER = "#1f4e79", "#c6dcef", "#8fb8dc"
MOST_INTERVALS = 200


def _axes(ax: Any, width: float = 4.6, height: float = 3.6) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def intervals(names: Sequence[str], estimate: np.ndarray, se: np.ndarray, level: float, ax: Any = None) -> Any:
    """Estimates with their intervals, one row for each parameter; returns the Axes."""
    if not len(names):
        raise InputError("There are no parameters to draw.")
    if len(names) > MOST_INTERVALS:
        raise InputError(f"{len(names)} intervals do not fit in a picture (at most {MOST_INTERVALS}); use tidy().")
    ax = _axes(ax, 5.0, 1.0 + 0.32 * len(names))
    height = np.arange(len(names))[::-1]
    ax.errorbar(
        estimate, height, xerr=normal_quantile(level) * se, fmt="o", color=INK, ecolor=INNER, elinewidth=3, markersize=5
    )
    ax.axvline(0.0, color="0.6", linewidth=0.7, linestyle=":")
    ax.set_yticks(height, list(names))
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlabel(f"estimate, {100 * level:g} % interval")
    return ax


def effects(part: SmoothPart, terms: str | Sequence[str] | None, level: float, ax: Any = None) -> Any:
    """One panel for each term. Returns the Axes with `ax` or one term, (Figure, axes) with several."""
    labels = list(part.model_labels) if terms is None else [terms] if isinstance(terms, str) else list(terms)
    labels = [part.term(label).label for label in labels]  # which refuses an unknown label
    if ax is not None and len(labels) != 1:
        raise InputError(f"ax= draws one term; this call asks for {len(labels)}. Name one, e.g. terms={labels[0]!r}.")
    if len(labels) == 1:
        return _panel(part, labels[0], level, _axes(ax))
    import matplotlib.pyplot as plt

    columns = min(len(labels), 4 if len(labels) > 6 else 3 if len(labels) > 4 or len(labels) == 3 else 2)
    rows = -(-len(labels) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.1 * columns, 3.2 * rows), squeeze=False, layout="constrained")
    for label, panel in zip(labels, axes.flat):
        _panel(part, label, level, panel)
    for panel in axes.flat[len(labels) :]:
        panel.set_visible(False)
    return figure, axes


def _panel(part: SmoothPart, label: str, level: float, ax: Any) -> Any:
    term = part.term(label)
    table = part.effect(label, level=level)
    names = gam_effects.coordinates(term)
    text = gam_effects.factors(term, {name: np.asarray(table[name]) for name in names})
    if len(names) == 1 and not text:
        _curve(table, names[0], level, ax)
    elif len(names) == 1:
        _levels(table, names[0], ax)
    elif len(names) == 2 and not text:
        _map(table, names, ax)
    elif len(names) == 2 and len(text) == 1:
        _curves(table, text[0], next(name for name in names if name not in text), ax)
    else:  # three covariates and more have no picture of their own
        ax.hist(table["estimate"], bins=40, color=BAND, edgecolor=INK, linewidth=0.4)
        ax.set_xlabel("effect over the grid")
    edf = "" if term.parametric else f", edf {part.edf.get(label, float('nan')):.1f}"
    ax.set_title(f"{label}{edf}", fontsize=10)
    return ax


def _curve(table: dict[str, np.ndarray], name: str, level: float, ax: Any) -> None:
    """The total band, and inside it that of the sampling error alone."""
    x, z = table[name], normal_quantile(level)
    ax.fill_between(x, table["lower"], table["upper"], color=BAND, linewidth=0, label="total error")
    inner = z * table["se_sampling"]
    ax.fill_between(x, table["estimate"] - inner, table["estimate"] + inner, color=INNER, linewidth=0, label="sampling")
    ax.plot(x, table["estimate"], color=INK, linewidth=1.6)
    ax.axhline(0.0, color="0.6", linewidth=0.7, linestyle=":")
    ax.set_xlim(float(np.min(x)), float(np.max(x)))
    ax.set_xlabel(name)
    ax.set_ylabel("effect on log p")


def _curves(table: dict[str, np.ndarray], factor: str, name: str, ax: Any) -> None:
    levels = list(dict.fromkeys(table[factor].tolist()))
    for level in levels:
        here = table[factor] == level
        ax.plot(table[name][here], table["estimate"][here], linewidth=1.1, label=str(level))
    ax.axhline(0.0, color="0.6", linewidth=0.7, linestyle=":")
    if len(levels) <= 8:
        ax.legend(title=factor, fontsize=7, title_fontsize=7, frameon=False)
    ax.set_xlabel(name)
    ax.set_ylabel("effect on log p")


def _levels(table: dict[str, np.ndarray], name: str, ax: Any) -> None:
    place = np.arange(len(table["estimate"]))
    error = np.vstack([table["estimate"] - table["lower"], table["upper"] - table["estimate"]])
    ax.errorbar(place, table["estimate"], yerr=error, fmt="o", color=INK, ecolor=INNER, elinewidth=2.5, markersize=4)
    ax.axhline(0.0, color="0.6", linewidth=0.7, linestyle=":")
    ax.set_xticks(place, [str(level) for level in table[name].tolist()])
    ax.set_xlabel(name)
    ax.set_ylabel("effect on log p")


def _map(table: dict[str, np.ndarray], names: tuple[str, ...], ax: Any) -> None:
    first, second = (np.unique(table[name]) for name in names)
    z = table["estimate"].reshape(first.size, second.size)
    bound = float(np.max(np.abs(z))) or 1.0
    mesh = ax.pcolormesh(first, second, z.T, cmap="RdBu_r", vmin=-bound, vmax=bound, shading="gouraud", rasterized=True)
    if np.ptp(z) > 0:
        ax.clabel(ax.contour(first, second, z.T, levels=8, colors="0.15", linewidths=0.7), fontsize=6)
    bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02)
    bar.set_label(f"effect (se {table['se'].min():.2g} to {table['se'].max():.2g})", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])


def against(x: np.ndarray, y: np.ndarray, xlabel: str, ylabel: str, title: str, ax: Any = None) -> Any:
    """y against x with the diagonal; returns the Axes."""
    ax = _axes(ax, 4.2, 4.0)
    low, high = float(min(x.min(), y.min())), float(max(x.max(), y.max()))
    pad = 0.05 * (high - low) or 0.5
    ax.plot([low - pad, high + pad], [low - pad, high + pad], color="0.6", linewidth=0.9)
    ax.plot(x, y, "o", color=INK, markersize=3.5, alpha=0.7)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.set_title(title, fontsize=10)
    return ax
