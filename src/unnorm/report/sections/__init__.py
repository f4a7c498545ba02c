"""The report's sections. A section is one file here and one line in `SECTIONS`:

    anchor: (title, function of an `Analysis` that returns a `Section`, or None where there is nothing to say)

They appear in this order; anchors are the fragments of the page's links, and what progress bars show.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from ..._base.blas import single_threaded
from ...errors import UnnormError, hush
from .. import held_out
from ..analysis import Analysis
from ..page import Section
from . import (
    conditions,
    constants,
    durations,
    effects,
    misfit,
    monte_carlo,
    numbers,
    places,
    scores,
    simulated,
    subjects,
)

SECTIONS: dict[str, tuple[str, Callable[[Analysis], Section | None]]] = {
    "effects": ("Effects", effects.section),
    "conditions": ("Conditions compared", conditions.section),
    "subjects": ("One by one", subjects.section),
    "places": ("Where they look", places.section),
    "constants": ("The normalising constants", constants.section),
    "monte-carlo": ("Monte Carlo error", monte_carlo.section),
    "simulated": ("Observed and simulated scanpaths", simulated.section),
    "misfit": ("What the model misses", misfit.section),
    "scores": ("How well it predicts", scores.section),
    "durations": ("How long they stay", durations.section),
    "numbers": ("Tables", numbers.section),
}


def make_sections(
    analysis: Analysis, step: Callable[[str], AbstractContextManager[None]] = nullcontext
) -> list[Section]:
    """All sections that have something to say; `step(anchor)` is a context for progress.

    A section that cannot be made says why, and the others stand.
    """
    sections = []
    with hush(), single_threaded():  # what matters is in the fits' notes
        if "numbers" in SECTIONS:  # whose fits take the longest
            held_out.begin(analysis)
        if "misfit" in SECTIONS:  # a fit, beside figures that are all Python
            misfit.begin(analysis)
        for anchor, (title, make) in SECTIONS.items():
            with step(anchor):
                try:
                    found = make(analysis)
                except UnnormError as error:
                    found = Section((f"This section could not be made: {error}",))
            if found is not None:
                sections.append(replace(found, anchor=anchor, title=title))
    return sections
