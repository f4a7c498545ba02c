"""Pictures of a fitted `Gam`: curves with bands, maps of two-dimensional terms, QQ plots of random effects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import numerics
from ..errors import InputError
from . import gam_effects

if TYPE_CHECKING:
    from .gam_result import Gam

INK, BAND = "#1f4e79", "#9dc3e6"


def plot(
    fit: Gam,
    terms: str | Sequence[str] | None,
    ax: Any,
    level: float,
    unconditional: bool,
    simultaneous: bool,
    rug: bool,
) -> Any:
    """One panel a smooth term. With `ax` or a single term the `Axes`; with more `(Figure, axes)`."""
    labels = _labels(fit, terms)
    rug = numerics.flag(rug, "rug")
    if ax is not None and len(labels) != 1:
        raise InputError(f"ax= draws one term; this call asks for {len(labels)}. Name one, e.g. terms={labels[0]!r}.")
    if ax is not None and not hasattr(ax, "fill_between"):
        raise InputError(f"ax= must be Axes of matplotlib; got {type(ax).__name__}. Pass e.g. plt.gca().")
    options = {"level": level, "unconditional": unconditional, "simultaneous": simultaneous}
    if ax is not None:
        return _panel(fit, labels[0], ax, rug, options)
    import matplotlib.pyplot as plt

    if len(labels) == 1:
        _, ax = plt.subplots(figsize=(4.6, 3.6), layout="constrained")
        return _panel(fit, labels[0], ax, rug, options)
    columns = min(len(labels), 4 if len(labels) > 6 else 3 if len(labels) > 4 else 2)
    rows = -(-len(labels) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.1 * columns, 3.2 * rows), squeeze=False, layout="constrained")
    for label, panel in zip(labels, axes.flat):
        _panel(fit, label, panel, rug, options)
    for panel in axes.flat[len(labels) :]:
        panel.set_visible(False)
    return figure, axes


def _labels(fit: Gam, terms: str | Sequence[str] | None) -> list[str]:
    if terms is None:
        labels = [term.label for term in fit.terms if not term.parametric]
        if not labels:
            raise InputError(
                f"This model has no smooth term to plot. Name a parametric one, e.g. terms={fit.terms[0].label!r}."
                if fit.terms
                else "This model has only an intercept: there is nothing to plot."
            )
        return labels
    asked = list(terms) if isinstance(terms, Iterable) and not isinstance(terms, str) else [terms]
    if not asked:
        raise InputError("terms= names no term. Name one, or leave it out for every smooth.")
    for label in asked:
        fit.term(label)  # an unknown label is an error there
    return asked


def _panel(fit: Gam, label: str, ax: Any, rug: bool, options: dict[str, Any]) -> Any:
    term = fit.term(label)
    label = term.label
    coordinates = gam_effects.coordinates(term)
    factors = gam_effects.factors(term, fit.columns)
    title = label if term.parametric else f"{label}, edf {fit.edf[label]:.2f}"
    if not term.parametric and term.null_dim == 0 and factors and len(coordinates) == len(factors):
        _qq(fit, label, ax)
    elif factors and len(coordinates) == len(factors):
        _levels(fit, label, factors, ax, options)
    elif factors and len(coordinates) == 2:
        _curves(fit, label, factors[0], next(n for n in coordinates if n not in factors), ax, options)
    elif len(coordinates) == 1:
        _curve(fit, label, coordinates[0], ax, rug, options)
    elif not factors and len(coordinates) == 2:
        _map(fit, label, coordinates, ax, rug, options)
    else:
        _values(fit, label, ax)
    ax.set_title(title, fontsize=10)
    return ax


def _curve(fit: Gam, label: str, name: str, ax: Any, rug: bool, options: dict[str, Any]) -> None:
    table = fit.effect_columns(label, **options)
    x = table[name]
    ax.fill_between(x, table["lower"], table["upper"], color=BAND, alpha=0.55, linewidth=0)
    ax.plot(x, table["estimate"], color=INK, linewidth=1.6)
    ax.axhline(0.0, color="0.6", linewidth=0.7, linestyle=":")
    if rug:
        seen = np.unique(fit.columns[name])
        if seen.size > 300:  # a rug of quantiles says the same and draws fast
            seen = np.quantile(fit.columns[name], np.linspace(0.0, 1.0, 301))
        ax.plot(seen, np.zeros_like(seen), "|", color="0.25", markersize=6, markeredgewidth=0.6, alpha=0.6,
                transform=ax.get_xaxis_transform(), clip_on=False)  # fmt: skip
    ax.set_xlim(float(np.min(x)), float(np.max(x)))
    ax.set_xlabel(name)
    ax.set_ylabel("effect (link scale)")


def _curves(fit: Gam, label: str, factor: str, name: str, ax: Any, options: dict[str, Any]) -> None:
    table = fit.effect_columns(label, **options)
    for level in dict.fromkeys(table[factor].tolist()):
        here = table[factor] == level
        ax.plot(table[name][here], table["estimate"][here], linewidth=1.1, label=str(level))
    ax.axhline(0.0, color="0.6", linewidth=0.7, linestyle=":")
    if len(set(table[factor].tolist())) <= 8:
        ax.legend(title=factor, fontsize=7, title_fontsize=7, frameon=False)
    ax.set_xlabel(name)
    ax.set_ylabel("effect (link scale)")


def _map(fit: Gam, label: str, names: tuple[str, ...], ax: Any, rug: bool, options: dict[str, Any]) -> None:
    table = fit.effect_columns(label, **options)
    first, second = (np.unique(table[name]) for name in names)
    shape = (first.size, second.size)
    z, se = table["estimate"].reshape(shape), table["se"].reshape(shape)
    outline = fit.term(label).outline
    blank = np.isnan(table["estimate"]) if outline else gam_effects.far_from_data(table, fit.columns, names)
    z = np.ma.masked_array(z, mask=blank.reshape(shape))
    se = np.ma.masked_array(se, mask=blank.reshape(shape))
    bound = float(np.max(np.abs(z))) or 1.0
    mesh = ax.pcolormesh(first, second, z.T, cmap="RdBu_r", vmin=-bound, vmax=bound, shading="gouraud", rasterized=True)
    lines = ax.contour(first, second, z.T, levels=8, colors="0.15", linewidths=0.7)
    ax.clabel(lines, fontsize=6, inline_spacing=2)
    for loop in outline:
        ax.plot(*loop.T, color="0.15", linewidth=1.0)
    if rug:
        step = fit.y.size // 2000 + 1  # at most 2,000 dots
        ax.plot(*(fit.columns[name][::step] for name in names), ".", color="k", markersize=1.2, alpha=0.35)
    bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02)
    bar.set_label(f"effect (se {float(np.ma.min(se)):.2g} to {float(np.ma.max(se)):.2g})", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])


def _levels(fit: Gam, label: str, names: list[str], ax: Any, options: dict[str, Any]) -> None:
    table = fit.effect_columns(label, **options)
    at = np.arange(len(table["estimate"]))
    error = np.vstack([table["estimate"] - table["lower"], table["upper"] - table["estimate"]])
    ax.errorbar(at, table["estimate"], yerr=error, fmt="o", color=INK, ecolor=BAND, elinewidth=2.5, markersize=4)
    ax.axhline(0.0, color="0.6", linewidth=0.7, linestyle=":")
    rows = zip(*(table[name].tolist() for name in names))
    ax.set_xticks(at, [":".join(map(str, row)) for row in rows])
    ax.set_xlabel(":".join(names))
    ax.set_ylabel("effect (link scale)")


def _qq(fit: Gam, label: str, ax: Any) -> None:
    from scipy.special import ndtri

    b = np.sort(fit.smoothed.beta[fit.index(label)])
    normal = ndtri((np.arange(b.size) + 0.5) / b.size)
    ax.plot(normal, b, "o", color=INK, markersize=3.5)
    ax.plot(normal, b.mean() + b.std() * normal, color=BAND, linewidth=1.2, zorder=0)
    ax.set_xlabel("Gaussian quantiles")
    ax.set_ylabel("random effects")


def _values(fit: Gam, label: str, ax: Any) -> None:
    """Three and more covariates have no picture of their own: the distribution of the effect over the rows."""
    ax.hist(fit.term_values(label), bins=40, color=BAND, edgecolor=INK, linewidth=0.4)
    ax.set_xlabel("effect at the rows (link scale)")
    ax.set_ylabel("rows")
