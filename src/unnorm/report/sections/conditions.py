"""Conditions compared: each condition's population curve, differences with both bands, and the tests."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...groups.conditions import Conditions
from ...groups.plot import COLOURS
from ..analysis import Analysis, Columns
from ..curves import condition_chart, difference_chart
from ..figures import BLUE, direction_ticks, draw, label_axes
from ..interactive import charted
from ..page import Cell, Picture, Section, Table, number, p_value
from .effects import covariates, numeric

MOST_PAIRS = 6  # differences that are drawn of each effect; the rest are in differences.csv


def section(analysis: Analysis) -> Section | None:
    found = analysis.conditions
    if found is None:
        return None
    pictures = []
    for label in analysis.labels:
        if len(covariates(analysis, label)) == 1 and numeric(analysis, label):
            pictures += _pictures(analysis, found, label)
    return Section(tuple(_words(analysis, found)), tuple(pictures), (_tests(found),), pairs=len(found.differences) == 1)


def _words(analysis: Analysis, found: Conditions) -> list[str]:
    band = f"{100 * analysis.level:g} %"
    text = [
        *found.notes,
        f"Curves are the conditions' populations, with {band} pointwise bands; all average to zero over the same rows. "
        f"Of the differences, the inner band is pointwise and the outer one simultaneous: it holds the whole curve in "
        f"{band} of repetitions, so that where it leaves zero out the conditions differ there.",
        "Tests are by exchange: p is the share of reassignments of conditions "
        + (f"to each {found.by}" if found.design == "between" else f"within each {found.by}")
        + " under which conditions differ as much as they do. Those of single effects leave the other effects free to "
        "differ; p-values of several effects are not adjusted for one another (the first row, all effects together, "
        "needs no adjustment).",
    ]
    if len(found.names) > 2:
        text.append("Tests of pairs are adjusted for each other within an effect (Holm).")
    return text


def _pictures(analysis: Analysis, found: Conditions, label: str) -> list[Picture]:
    alt = f"Effect {label} by condition: {', '.join(found.names)}."
    (name,) = covariates(analysis, label)
    picture = draw(partial(_curves, analysis, found, label), alt, f"{label} by condition")
    out = [charted(picture, condition_chart(analysis, label, name))]
    for one in found.differences[:MOST_PAIRS]:
        table = _difference(analysis, found, label, one.first, one.second)
        away = (table["lower_simultaneous"] > 0) | (table["upper_simultaneous"] < 0)
        where = "leaves zero out somewhere" if away.any() else "holds zero everywhere"
        alt = f"Difference {one.name} of the effect {label}; its simultaneous band {where}."
        picture = draw(partial(_band, analysis, label, table), alt, f"{label}, {one.name}")
        out.append(charted(picture, difference_chart(analysis, one.name, table, name)))
    return out


def _difference(analysis: Analysis, found: Conditions, label: str, first: str, second: str) -> Columns:
    return found.difference_columns(label, first, second, analysis.grids.get(label), analysis.level)


def _curves(analysis: Analysis, found: Conditions, label: str, ax: Any) -> None:
    (name,) = covariates(analysis, label)
    for colour, condition in zip(_colours(len(found.names)), found.names):
        table = analysis.effect(label, f"{found.between}={condition}")
        ax.fill_between(table[name], table["lower"], table["upper"], color=colour, alpha=0.2, lw=0)
        ax.plot(table[name], table["estimate"], color=colour, lw=1.8, label=condition)
    _finish(ax, name, "effect on log density")
    for text in ax.legend(frameon=False, fontsize=7, loc="best").get_texts():
        text.set_parse_math(False)


def _band(analysis: Analysis, label: str, table: Columns, ax: Any) -> None:
    (name,) = covariates(analysis, label)
    x = table[name]
    ax.fill_between(x, table["lower_simultaneous"], table["upper_simultaneous"], color=BLUE, alpha=0.15, lw=0)
    ax.fill_between(x, table["lower"], table["upper"], color=BLUE, alpha=0.3, lw=0)
    ax.plot(x, table["estimate"], color=BLUE, lw=1.8)
    _finish(ax, name, "difference")


def _finish(ax: Any, name: str, y: str) -> None:
    ax.axhline(0.0, color="#bbbbbb", lw=0.6, zorder=0)
    label_axes(ax, name, y)
    if name in ("angle", "turn"):
        direction_ticks(ax, words=name == "angle")


def _colours(count: int) -> list[str]:
    return [COLOURS[i % len(COLOURS)] for i in range(count)]


def _tests(found: Conditions) -> Table:
    rows = []
    for term, contrast, statistic, p, adjusted in zip(*(np.asarray(found.tests[name]).tolist() for name in _NAMES)):
        rows.append((Cell(term), Cell(contrast), number(statistic, 2), p_value(p), p_value(adjusted)))
    head = ("effect", "conditions", "statistic", "p", "p, adjusted")
    return Table(f"Do the conditions of {found.between} differ?", head, tuple(rows))


_NAMES = ("term", "contrast", "statistic", "p", "p_adjusted")


def differences_table(analysis: Analysis) -> Columns:
    """Long table: contrast, term, each covariate under its own name, estimate, se, and both bands."""
    found = analysis.conditions
    assert found is not None
    kept = ("estimate", "se", "se_reference", "lower", "upper", "lower_simultaneous", "upper_simultaneous")
    made = [
        (one.name, label, _difference(analysis, found, label, one.first, one.second))
        for one in found.differences
        for label in analysis.labels
    ]
    names = dict.fromkeys(name for _, _, table in made for name in table if name not in (*kept, "se_sampling"))
    out: dict[str, list[Any]] = {name: [] for name in ("contrast", "term", *names, *kept)}
    for contrast, label, table in made:
        n = len(table["estimate"])
        for name in names:
            out[name] += np.asarray(table[name]).tolist() if name in table else [float("nan")] * n
        out["contrast"] += [contrast] * n
        out["term"] += [label] * n
        for name in kept:
            out[name] += np.asarray(table[name]).tolist()
    return {name: np.array(column) for name, column in out.items()}
