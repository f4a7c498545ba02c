"""Small multiples: every level by itself, against the population."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, final

import numpy as np

from ..analysis import GROUP, Analysis, Columns
from ..curves import effect_chart
from ..curves import panels as by_level
from ..figures import GREY, draw
from ..interactive import charted
from ..page import Picture, Section
from .effects import covariates, numeric

ACROSS, MOST = 5, 30  # panels in a row, and in a figure: the rest are in effects.csv
SIZE = (1.55, 1.35)  # of a panel, inches
STRIDE = (1.15, 1.35)  # from panel to panel, each a unit square


def section(analysis: Analysis) -> Section | None:
    panels = by_level(analysis)
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


def _picture(analysis: Analysis, label: str, panels: dict[str, list[tuple[str, str]]]) -> Picture:
    across = min(ACROSS, len(panels))
    down = ceil(len(panels) / across)
    alt = f"Effect {label} of each of {len(panels)} levels of {analysis.by}, in panels."
    size = (SIZE[0] * across + 0.4, SIZE[1] * down + 0.4)
    picture = draw(partial(_paint, analysis, label, panels), alt, f"{label}, each {analysis.by}", size)
    return charted(picture, effect_chart(analysis, label, *covariates(analysis, label), each=True))


def _paint(analysis: Analysis, label: str, panels: dict[str, list[tuple[str, str]]], ax: Any) -> None:
    """All panels on one pair of axes, moved and scaled: axes and ticks for each would take six times as long."""
    (name,) = covariates(analysis, label)
    shown = [analysis.effect(label, which) for fits in panels.values() for which, _ in fits]
    x, y = (np.concatenate([np.asarray(one[key], dtype=float) for one in shown]) for key in (name, "estimate"))
    across, room = min(ACROSS, len(panels)), 0.15 * max(float(np.ptp(y)), 1e-9)
    ends = (float(x.min()), float(x.max())), (float(y.min()) - room, float(y.max()) + room)
    for i, (level, fits) in enumerate(panels.items()):
        panel = _Panel(ax, (STRIDE[0] * (i % across), -STRIDE[1] * (i // across)), *ends)
        panel.frame(level, left=i % across == 0, below=i + across >= len(panels), turning=name in ("angle", "turn"))
        if analysis.group is not None:
            panel.line(analysis.effect(label, GROUP), name, GREY, 0.8)
        for which, colour in fits:
            panel.band(analysis.effect(label, which), name, colour)
            panel.line(analysis.effect(label, which), name, colour, 1.2)
    ax.set_axis_off()
    bottom = -STRIDE[1] * ((len(panels) - 1) // across) - 0.32
    ax.text(0.5 * (STRIDE[0] * (across - 1) + 1), bottom, name, ha="center", va="top", fontsize=9, parse_math=False)


@final
@dataclass(frozen=True)
class _Panel:
    """A unit square at `corner` that stands for `x` by `y`."""

    ax: Any
    corner: tuple[float, float]
    x: tuple[float, float]
    y: tuple[float, float]

    def _at(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where values lie; what is above or below the panel is on its edge."""
        (x0, x1), (y0, y1) = self.x, self.y
        across = (np.asarray(x, dtype=float) - x0) / max(x1 - x0, 1e-300)
        return self.corner[0] + across, self.corner[1] + np.clip((np.asarray(y) - y0) / (y1 - y0), 0.0, 1.0)

    def line(self, table: Columns, name: str, colour: str, width: float) -> None:
        self.ax.plot(*self._at(table[name], table["estimate"]), color=colour, lw=width)

    def band(self, table: Columns, name: str, colour: str) -> None:
        x, lower = self._at(table[name], table["lower"])
        self.ax.fill_between(x, lower, self._at(table[name], table["upper"])[1], color=colour, alpha=0.2, lw=0)

    def frame(self, title: str, left: bool, below: bool, turning: bool) -> None:
        """Axes, the title, and the ends of the axes where no other panel is in the way."""
        a, b = self.corner
        self.ax.plot([a, a, a + 1], [b + 1, b, b], color="#555555", lw=0.6)
        self.ax.text(a + 0.5, b + 1.03, title, ha="center", va="bottom", fontsize=7, parse_math=False)
        if self.y[0] < 0 < self.y[1]:
            x, zero = self._at(np.array(self.x), np.zeros(2))
            self.ax.plot(x, zero, color="#cccccc", lw=0.5)
            if left:
                self.ax.text(a - 0.04, float(zero[0]), "0", ha="right", va="center", fontsize=6)
        if left:
            for value, at in zip(self.y, (b, b + 1)):
                self.ax.text(a - 0.04, at, f"{value:.2g}".replace("-", "−"), ha="right", va="center", fontsize=6)
        if below:
            words = ("−π", "π") if turning else tuple(f"{value:.3g}".replace("-", "−") for value in self.x)
            for word, at, side in zip(words, (a, a + 1), ("left", "right")):
                self.ax.text(at, b - 0.05, word, ha=side, va="top", fontsize=6)
