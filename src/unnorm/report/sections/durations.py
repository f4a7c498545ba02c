"""How long points last, beside where they are: log duration on the covariates of the place."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..._base.words import at_row
from ...data.observations import Observations
from ...engine.gam_effects import coordinates, is_numeric
from ...engine.gam_result import Gam
from ...errors import DataError
from ...results.beside import beside
from ..analysis import Analysis, Columns
from ..curves import chart
from ..figures import BLUE, direction_ticks, draw, label_axes
from ..interactive import charted, curve
from ..page import Cell, Picture, Section, Table, number, p_value


def section(analysis: Analysis) -> Section | None:
    if analysis.duration is None:
        return None
    gam = durations(analysis, analysis.duration)
    labels = [label for label in analysis.labels if label in gam.edf]
    curves = [label for label in labels if _drawn(gam, label)]
    rows = [(Cell(label), number(gam.edf[label], 1), p_value(gam.p_values[label])) for label in labels]
    table = Table("Effects on log duration", ("term", "edf", "p"), tuple(rows))
    by = "" if analysis.by is None else f" with a level of its own for each {analysis.by}"
    text = (
        f"The logarithm of {analysis.duration} at {gam.n:,} points, on the effects of the place{by}: "
        f"{100 * gam.deviance_explained:.2g} % of its variation is explained. Curves average to zero over the points."
    )
    return Section((text,), tuple(_picture(analysis, gam, label) for label in curves), (table,))


def durations(analysis: Analysis, column: str) -> Gam:
    """The gam of log duration; levels as effects at random."""
    positive(analysis.obs, column)
    random = () if analysis.by is None or len(analysis.fits) < 2 else (analysis.by,)
    return beside(analysis.model, analysis.obs, f"log({column})", None, random)


def positive(obs: Observations, column: str) -> None:
    """Refuse durations that have no logarithm."""
    given = np.asarray({**obs.columns, **obs.beside}[column])
    if given.dtype.kind not in "iuf":
        raise DataError(f"Durations must be numbers; column {column!r} holds text, first {str(given[0])!r}.")
    none = ~(given > 0)
    if none.any():
        first = int(np.argmax(none))
        row = first if obs.row is None else int(obs.row[first])
        raise DataError(
            f"Durations must be positive to have a logarithm; {int(none.sum()):,} of {column!r} are not, the first in "
            f"{at_row(row)}. Leave these rows out."
        )


def _drawn(gam: Gam, label: str) -> bool:
    names = coordinates(gam.term(label))
    return len(names) == 1 and is_numeric(gam.columns[names[0]]) and not gam.term(label).parametric


def _picture(analysis: Analysis, gam: Gam, label: str) -> Picture:
    alt = f"Effect {label} on the logarithm of {analysis.duration}."
    (name,) = coordinates(gam.term(label))
    table = gam.effect_columns(label, level=analysis.level)
    picture = draw(partial(_curve, analysis, name, table), alt, f"{label} on log {analysis.duration}")
    return charted(picture, chart(analysis, name, f"effect on log {analysis.duration}", (curve(label, table, name),)))


def _curve(analysis: Analysis, name: str, table: Columns, ax: Any) -> None:
    ax.fill_between(table[name], table["lower"], table["upper"], color=BLUE, alpha=0.25, lw=0)
    ax.plot(table[name], table["estimate"], color=BLUE, lw=1.8)
    ax.axhline(0.0, color="#bbbbbb", lw=0.6, zorder=0)
    label_axes(ax, analysis.named(name), f"effect on log {analysis.duration}")
    if name in ("angle", "turn"):
        direction_ticks(ax, words=name == "angle")
