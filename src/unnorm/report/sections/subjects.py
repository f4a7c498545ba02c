"""Small multiples: every level by itself, against the population."""

from __future__ import annotations

from functools import partial
from math import ceil
from typing import Any

import numpy as np

from ...groups.plot import COLOURS
from ..analysis import GROUP, Analysis
from ..figures import BLUE, GREY, direction_ticks, draw, label_axes
from ..page import Picture, Section
from .effects import covariates, numeric

ACROSS, MOST = 5, 30  # panels in a row, and in a figure: the rest are in effects.csv
SIZE = (1.55, 1.35)  # of a panel, inches


def section(analysis: Analysis) -> Section | None:
    panels = _panels(analysis)
    if len(panels) < 2:
        return None
    pictures = [
        _picture(analysis, label, dict(list(panels.items())[:MOST]))
        for label in analysis.labels
        if len(covariates(analysis, label)) == 1 and numeric(analysis, label)
    ]
    if not pictures:
        return None
    text = f"Each {analysis.by}'s own curve with its {100 * analysis.level:g} % band, on one scale; thin, the group's."
    if analysis.conditions is not None:
        colours = ", ".join(f"{name} {_word(i)}" for i, name in enumerate(analysis.conditions.names))
        text += f" Colours are conditions: {colours}."
    if len(panels) > MOST:
        text += f" The first {MOST} of {len(panels)}; effects.csv has all of them."
    return Section((text,), tuple(pictures))


WORDS = ("blue", "orange", "green", "violet", "red", "olive", "teal", "brown")


def _word(i: int) -> str:
    return WORDS[i % len(WORDS)]


def _panels(analysis: Analysis) -> dict[str, list[tuple[str, str]]]:
    """level → its fits, each with its colour."""
    found, cells = analysis.conditions, analysis.cells
    if found is None or cells is None:
        return {which: [(which, BLUE)] for which in analysis.fits}
    out: dict[str, list[tuple[str, str]]] = {}
    for name, (s, c) in zip(cells.names, cells.cells):
        if name in analysis.fits:
            at = list(found.names).index(cells.conditions[c]) if cells.conditions[c] in found.names else 0
            out.setdefault(cells.subjects[s], []).append((name, COLOURS[at % len(COLOURS)]))
    return out


def _picture(analysis: Analysis, label: str, panels: dict[str, list[tuple[str, str]]]) -> Picture:
    across = min(ACROSS, len(panels))
    down = ceil(len(panels) / across)
    alt = f"Effect {label} of each of {len(panels)} levels of {analysis.by}, in panels."
    size = (SIZE[0] * across + 0.4, SIZE[1] * down + 0.4)
    return draw(partial(_paint, analysis, label, panels), alt, f"{label}, each {analysis.by}", size, (down, across))


def _paint(analysis: Analysis, label: str, panels: dict[str, list[tuple[str, str]]], *axes: Any) -> None:
    (name,) = covariates(analysis, label)
    shown = [analysis.effect(label, which) for fits in panels.values() for which, _ in fits]
    values = np.concatenate([table["estimate"] for table in shown])
    low, high = np.quantile(values, [0.0, 1.0])
    room = 0.15 * max(float(high - low), 1e-9)
    for ax, (level, fits) in zip(axes, panels.items()):
        if analysis.group is not None:
            table = analysis.effect(label, GROUP)
            ax.plot(table[name], table["estimate"], color=GREY, lw=0.8)
        for which, colour in fits:
            table = analysis.effect(label, which)
            ax.fill_between(table[name], table["lower"], table["upper"], color=colour, alpha=0.2, lw=0)
            ax.plot(table[name], table["estimate"], color=colour, lw=1.2)
        ax.set_ylim(low - room, high + room)
        ax.tick_params(labelsize=6)
        ax.set_title(level, fontsize=7, pad=2, parse_math=False)
        if name in ("angle", "turn"):
            direction_ticks(ax, words=False)
    across = min(ACROSS, len(panels))
    for i, ax in enumerate(axes):
        if i >= len(panels):
            ax.set_axis_off()
        elif i + across < len(panels):
            ax.set_xticklabels([])
        if i % across and i < len(panels):
            ax.set_yticklabels([])
    label_axes(axes[min(len(panels), len(axes)) - 1], name, "")
