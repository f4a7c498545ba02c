"""Small multiples: every level by itself, against the population."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, final

import numpy as np

from ..analysis import GROUP, Analysis, Columns
from ..curves import effect_chart
from ..curves import panels as by_level
from ..figures import GREY, draw, with_gaps
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
    """All panels on one pair of axes, moved and scaled: axes and ticks for each would take six times as long. All lines
    of one kind are one line with gaps, for the same reason."""
    (name,) = covariates(analysis, label)
    shown = [analysis.effect(label, which) for fits in panels.values() for which, _ in fits]
    x, y = (np.concatenate([np.asarray(one[key], dtype=float) for one in shown]) for key in (name, "estimate"))
    across, room = min(ACROSS, len(panels)), 0.15 * max(float(np.ptp(y)), 1e-9)
    ends = (float(x.min()), float(x.max())), (float(y.min()) - room, float(y.max()) + room)
    lines: dict[tuple[str, float], list[np.ndarray]] = {}  # colour and width → (2, n) each
    bands: dict[str, list[np.ndarray]] = {}  # colour → (3, n) each
    for i, (level, fits) in enumerate(panels.items()):
        panel = _Panel(ax, (STRIDE[0] * (i % across), -STRIDE[1] * (i // across)), *ends)
        for colour, width, line in panel.frame():
            lines.setdefault((colour, width), []).append(line)
        panel.words(level, left=i % across == 0, below=i + across >= len(panels), turning=name in ("angle", "turn"))
        if analysis.group is not None:
            lines.setdefault((GREY, 0.8), []).append(panel.at(analysis.effect(label, GROUP), name, "estimate"))
        for which, colour in fits:
            table = analysis.effect(label, which)
            bands.setdefault(colour, []).append(panel.at(table, name, "lower", "upper"))
            lines.setdefault((colour, 1.2), []).append(panel.at(table, name, "estimate"))
    for colour, parts in bands.items():
        ax.fill_between(*with_gaps(parts), color=colour, alpha=0.2, lw=0)
    for (colour, width), parts in lines.items():
        ax.plot(*with_gaps(parts), color=colour, lw=width)
    ax.autoscale_view()  # now: words are placed by it
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

    def at(self, table: Columns, *names: str) -> np.ndarray:
        """(k, n) where values lie: the first column across; what is above or below the panel is on its edge."""
        (x0, x1), (y0, y1) = self.x, self.y
        x, *heights = (np.asarray(table[name], dtype=float) for name in names)
        up = [self.corner[1] + np.clip((y - y0) / (y1 - y0), 0.0, 1.0) for y in heights]
        return np.stack([self.corner[0] + (x - x0) / max(x1 - x0, 1e-300), *up])

    @property
    def zero(self) -> float | None:
        """The height of zero, where it is in the panel."""
        return self.corner[1] - self.y[0] / (self.y[1] - self.y[0]) if self.y[0] < 0 < self.y[1] else None

    def frame(self) -> Iterator[tuple[str, float, np.ndarray]]:
        """Colours, widths and ends of the axes, and of the line at zero."""
        a, b = self.corner
        yield "#555555", 0.6, np.array([[a, a, a + 1], [b + 1, b, b]])
        if self.zero is not None:
            yield "#cccccc", 0.5, np.array([[a, a + 1], [self.zero, self.zero]])

    def words(self, title: str, left: bool, below: bool, turning: bool) -> None:
        """The title, and the ends of the axes where no other panel is in the way."""
        a, b = self.corner
        self.ax.text(a + 0.5, b + 1.03, title, ha="center", va="bottom", fontsize=7, parse_math=False)
        if left and self.zero is not None:
            self.ax.text(a - 0.04, self.zero, "0", ha="right", va="center", fontsize=6)
        if left:
            for value, at in zip(self.y, (b, b + 1)):
                self.ax.text(a - 0.04, at, f"{value:.2g}".replace("-", "−"), ha="right", va="center", fontsize=6)
        if below:
            words = ("−π", "π") if turning else tuple(f"{value:.3g}".replace("-", "−") for value in self.x)
            for word, at, side in zip(words, (a, a + 1), ("left", "right")):
                self.ax.text(at, b - 0.05, word, ha=side, va="top", fontsize=6)
