"""Effects with bands, levels in grey and the group in blue; and the paper's findings, asked of the curves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...engine.gam_effects import coordinates
from ..analysis import GROUP, Analysis
from ..curves import effect_chart
from ..figures import BLUE, GREY, INK, Image, direction_ticks, draw, field, label_axes, mesh, with_gaps
from ..findings import Finding, findings
from ..interactive import charted, mapped
from ..page import Cell, Picture, Section, Table


def section(analysis: Analysis) -> Section:
    pictures = effect_pictures(analysis)
    found = findings(analysis.model, analysis.obs, analysis.group, analysis.fits)
    tables = (_findings_table(analysis, found),) if found else ()
    return Section((_how_to_read(analysis, bool(pictures)),), tuple(pictures), tables)


def _how_to_read(analysis: Analysis, drawn: bool) -> str:
    if not drawn:
        return "The model has no smooth effect of one or two numeric covariates to draw."
    text = (
        f"Effects on the log density, with {100 * analysis.level:g} % pointwise bands. Each averages to zero over all "
        "fitted rows, most of which are reference points: differences along a curve mean something, its level does "
        "not (it belongs to the normalising constants)."
    )
    if analysis.fits:
        text += f" Grey: each {analysis.by}."
    if analysis.fits and analysis.group is not None:
        text += (
            " Blue: the group, the main effect of a joint fit, with the band of the population's mean. Dashed: the "
            "plain mean of the separate fits, whose smoothing bias does not average out."
        )
    return text


def _findings_table(analysis: Analysis, found: Sequence[Finding]) -> Table:
    levels = (f"holds for {analysis.by}s", "surely (95 %)") if analysis.fits else ()
    rows = []
    for one in found:
        cells = [Cell(one.question), Cell("–" if one.group is None else "yes" if one.group else "no")]
        cells.append(Cell("–") if one.share is None else Cell(f"{100 * one.share:.0f} %", one.share))
        if analysis.fits:
            cells += [Cell(f"{len(who)} of {one.levels}", float(len(who))) for who in (one.holds, one.sure)]
        rows.append(tuple(cells))
    head = ("What the paper found", "group" if analysis.fits else "here", "in draws", *levels)
    caption = (
        "The paper's findings (Section 4.2), asked of these curves; in draws: the share of draws from the curve's "
        "posterior in which it holds"
    )
    return Table(caption, head, tuple(rows))


def effect_pictures(analysis: Analysis) -> list[Picture]:
    """A picture for each term of one or two numeric covariates."""
    pictures = []
    for label in analysis.labels:
        names = covariates(analysis, label)
        if len(names) > 2 or not numeric(analysis, label):
            continue
        who = f"{len(analysis.fits)} levels of {analysis.by} in grey, the group in blue" if analysis.fits else "in blue"
        if len(names) == 1:
            alt = f"Effect {label} on the log density, {who}. {_extremes(analysis, label)}"
            picture = draw(partial(_curve, analysis, label), alt, label)
            pictures.append(charted(picture, effect_chart(analysis, label, *names)))
        else:
            pictures.append(_map_picture(analysis, label))
    return pictures


def covariates(analysis: Analysis, label: str) -> tuple[str, ...]:
    """What the term is a function of: not its `by`."""
    return coordinates(analysis.smooths().term(label))


def _main_effect(analysis: Analysis, label: str) -> dict[str, np.ndarray]:
    return analysis.effect(label, next(iter(analysis.all_fits)))


def numeric(analysis: Analysis, label: str) -> bool:
    table = _main_effect(analysis, label)
    return all(np.asarray(table[name]).dtype.kind in "fi" for name in covariates(analysis, label))


def _curve(analysis: Analysis, label: str, ax: Any) -> None:
    (name,) = covariates(analysis, label)
    each = [analysis.effect(label, which) for which in analysis.fits]
    if each:
        lines = with_gaps([np.stack([np.asarray(one[key], dtype=float) for key in (name, "estimate")]) for one in each])
        ax.plot(*lines, color=GREY, lw=0.7, alpha=0.8, label=f"each {analysis.by}")
    if analysis.mean is not None:
        table = analysis.mean(label)
        ax.plot(table[name], table["estimate"], color=INK, lw=1.0, ls=(0, (4, 3)), label="plain mean", zorder=4)
    if analysis.group is not None:
        table = analysis.effect(label, GROUP)
        ax.fill_between(table[name], table["lower"], table["upper"], color=BLUE, alpha=0.25, lw=0, zorder=3)
        ax.plot(table[name], table["estimate"], color=BLUE, lw=1.8, label="group", zorder=5)
    ax.axhline(0.0, color="#bbbbbb", lw=0.6, zorder=0)
    label_axes(ax, analysis.named(name), "effect on log density")
    if analysis.fits:
        for text in ax.legend(frameon=False, fontsize=7, loc="best").get_texts():
            text.set_parse_math(False)
    if name in ("angle", "turn"):
        direction_ticks(ax, words=name == "angle")


def _map_picture(analysis: Analysis, label: str) -> Picture:
    """A term of two covariates as a map, where its table is a grid."""
    first, second = covariates(analysis, label)
    table = _main_effect(analysis, label)
    u, v = np.unique(table[first]), np.unique(table[second])
    alt = f"Map of the effect {label} on the log density of the {'group' if analysis.fits else 'model'}."
    if u.size * v.size != len(table["estimate"]):
        return draw(_no_grid, f"{alt} It is no grid: see effects.csv.", label)
    shown = (u, v, np.asarray(table["estimate"]).reshape(u.size, v.size).T)
    numbers = field(analysis, "effect on log density", (first, second), shown)
    picture = draw(partial(_map, analysis, first, second, shown), f"{alt} {numbers.extremes()}", label)
    return mapped(picture, numbers)


def _no_grid(ax: Any) -> None:
    ax.text(0.5, 0.5, "see effects.csv", ha="center", transform=ax.transAxes)


def _map(analysis: Analysis, first: str, second: str, shown: Image, ax: Any) -> None:
    mesh(ax, *shown, None)
    label_axes(ax, analysis.named(first), analysis.named(second))
    if analysis.model.y_down and second.startswith("y"):
        ax.invert_yaxis()


def _extremes(analysis: Analysis, label: str) -> str:
    (name,) = covariates(analysis, label)
    table = _main_effect(analysis, label)
    x, f = np.asarray(table[name], dtype=float), table["estimate"]
    high, low = int(np.argmax(f)), int(np.argmin(f))
    return f"It is highest, {f[high]:.2f}, at {x[high]:.3g} and lowest, {f[low]:.2f}, at {x[low]:.3g}."
