"""How well points of sequences left out are predicted, in the scores that the field uses."""

from __future__ import annotations

from ...errors import UnnormError
from ..analysis import GROUP, Analysis
from ..held_out import HOW, held_out_scores
from ..page import Cell, Section, Table, number


def section(analysis: Analysis) -> Section:
    try:
        every = held_out_scores(analysis)
    except UnnormError as error:
        return Section((f"Scores could not be computed: {error}",))
    if not every:
        return Section(("No sequences were left out: there is nothing to score.",))
    found = every.get(GROUP, next(iter(every.values())))
    rows = [
        (Cell(name), number(mean, 3), number(se, 3), Cell(f"{lower:.3f} to {upper:.3f}", mean))
        for name, (mean, se, lower, upper) in found.scores.items()
    ]
    head = ("score", "mean", "se", f"{100 * analysis.level:g} % interval")
    caption = f"Scores of {found.n:,} points left out"
    groups = " and ".join(f"{name}: {count:,}" for name, count in found.clusters.items())
    errors = f"Errors let points of one group depend on each other ({groups})." if groups else ""
    baseline = f"The baseline is {found.baseline}." if found.baseline is not None else ""
    return Section(
        (" ".join(text for text in (HOW, errors, baseline) if text),), tables=(Table(caption, head, tuple(rows)),)
    )
