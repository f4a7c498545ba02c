"""What a fit of very many rows will take, said before anything large is allocated: bytes from the forms of the terms,
seconds from the first part of the rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from .._base.memory import as_option, words
from ..errors import warn
from .families import FAMILIES

if TYPE_CHECKING:
    from .parts import LocalParts
    from .plan import Plan

PASSES = 25  # over all rows, in a fit: REML of three to ten smooths takes 12 to 30
TIMED = 20_000_000  # rows from which the first part is timed
LONG = 600.0  # seconds from which a fit says beforehand what it may take
_READ = 0.25  # of the time that making a row takes: reading it back from the disk


def row_bytes(plan: Plan, numbers: int = 3) -> float:
    """What a row takes in compact form, about: cells, dense columns and the response with its weight and offset
    (`numbers` of them); a context's columns shared between its rows are counted as one number."""
    (segment,) = plan.frame.segments
    product = 0 if segment.product is None else segment.product.u.shape[1]
    dense = segment.x.shape[1] if segment.dense is None else 0
    context = segment.z.shape[1] / (16.0 if plan.contexts else 64.0)
    return (
        8.0 * (numbers + segment.u.shape[1] + segment.mult.shape[1] + product + dense + context)
        + 4.0 * segment.f.shape[1]
    )


@final
@dataclass(frozen=True)
class Estimate:
    """Seconds and bytes of a fit in this process."""

    rows: int
    bytes: float  # of all rows in compact form
    held: float  # the share of them that memory holds
    make: float  # seconds to make a row once, on one core
    sweep: float  # seconds of a row in a pass
    threads: int

    def seconds(self, held: float) -> float:
        again = (1.0 - held) * _READ * self.make
        return self.rows * (self.make + PASSES * (self.sweep + again)) / self.threads

    def __str__(self) -> str:
        about = duration(self.seconds(self.held))
        text = (
            f"{self.rows:,} rows take {words(self.bytes)} in compact form and about {about} in this process "
            f"({PASSES} passes on {self.threads} threads)"
        )
        if self.held < 1.0:
            option = as_option(self.bytes / 0.7)
            text += (
                f"; memory= holds {self.held:.0%} of them, and memory='{option}' would hold all: about "
                f"{duration(self.seconds(1.0))}"
            )
        return text + ". workers= shares them between processes or machines."


def duration(seconds: float) -> str:
    """A time for a sentence.

    >>> duration(42.0), duration(600.0), duration(9000.0)
    ('42 seconds', '10 minutes', '2.5 hours')
    """
    if seconds < 90.0:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400.0 else f"{seconds / 3600:.1f} hours"


def foretold(parts: LocalParts, rows: int, family: str, budget: float) -> Estimate | None:
    """The estimate of a fit to very many rows, from its first part, which is kept; with a warning where it is long."""
    if rows < TIMED:
        return None
    since = time.perf_counter()
    first = parts.part(0)
    make = (time.perf_counter() - since) / first.design.rows
    (segment,) = first.design.segments
    beta, code, best = np.zeros(first.design.size), FAMILIES[family], np.inf
    for _ in range(2):  # the first may compile
        since = time.perf_counter()
        segment.sweep(first.rows, code, beta, 0, segment.runs)
        best = min(best, (time.perf_counter() - since) / first.design.rows)
    size = float(first.bytes) / first.design.rows * rows
    found = Estimate(rows, size, min(1.0, budget / size), make, best, parts.threads)
    if found.seconds(found.held) > LONG:
        warn(f"This is a long fit: {found}", stacklevel=2)
    return found
