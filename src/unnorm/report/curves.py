"""Which curves the figures of an analysis show: the group's, the plain mean, each level's, conditions, differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..groups.plot import COLOURS
from .analysis import ANGLES, GROUP, Analysis, Columns
from .figures import BLUE, INK, ORANGE
from .interactive import MOST_CURVES, Chart, Curve, curve

EFFECT = "effect on log density"


def panels(analysis: Analysis) -> dict[str, list[tuple[str, str]]]:
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


def effect_chart(analysis: Analysis, label: str, name: str, each: bool = False) -> Chart | None:
    """A term of one covariate: the group over the levels; `each`: a panel for every level."""
    key = f"curves of {label}"
    if key not in analysis.kept:  # the two charts share their numbers on the page
        few = len(analysis.fits) < MOST_CURVES - 1
        analysis.kept[key] = tuple(_effect_curves(analysis, label, name)) if few else ()
    found = analysis.kept[key]
    return chart(analysis, name, EFFECT, found, panels=each) if found else None


def _effect_curves(analysis: Analysis, label: str, name: str) -> list[Curve]:
    out = []
    if analysis.group is not None:
        out.append(curve(GROUP if analysis.fits else label, analysis.effect(label, GROUP), name))
    if analysis.mean is not None:
        table = analysis.mean(label)
        x, y = (np.asarray(table[key], dtype=float) for key in (name, "estimate"))
        out.append(Curve("plain mean", x, y, colour=INK, role="mean"))
    for level, fits in panels(analysis).items():
        for which, colour in fits:
            table = analysis.effect(label, which)
            out.append(curve(which, table, name, colour=colour, level=level, role="level"))
    return out


def condition_chart(analysis: Analysis, label: str, name: str) -> Chart | None:
    """The conditions' populations."""
    found = analysis.conditions
    assert found is not None
    curves = tuple(
        curve(one, analysis.effect(label, f"{found.between}={one}"), name, colour=COLOURS[i % len(COLOURS)])
        for i, one in enumerate(found.names)
    )
    return chart(analysis, name, EFFECT, curves)


def difference_chart(analysis: Analysis, contrast: str, table: Columns, name: str) -> Chart:
    """A difference with both bands."""
    outer = (np.asarray(table["lower_simultaneous"], dtype=float), np.asarray(table["upper_simultaneous"], dtype=float))
    return chart(analysis, name, "difference", (curve(contrast, table, name, outer=outer),))


def histogram_chart(analysis: Analysis, name: str, edges: np.ndarray, heights: dict[str, np.ndarray]) -> Chart:
    """Histograms over the same edges, observed and simulated."""
    curves = tuple(Curve(who, edges, h, colour=colour) for (who, h), colour in zip(heights.items(), (INK, ORANGE)))
    return chart(analysis, name, "share of steps", curves, kind="stairs")


def chart(analysis: Analysis, name: str, y: str, curves: tuple[Curve, ...], **more: Any) -> Chart:
    """A chart over one covariate, with its unit where that is known."""
    words = {"unit": analysis.unit_of(name), "by": analysis.by or "", "coverage": f"{100 * analysis.level:g} %"}
    return Chart(name, y, curves, circular=name in ANGLES, **words, **more)
