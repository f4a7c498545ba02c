"""`gam` on rows in parts: stretches of a table that are met one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np

from .._base import memory
from .._base.threads import cores
from . import families, gam_rows
from .partition import PartitionedDesign
from .parts import PART, Held, Parts, Recipe
from .plan import Plan, plan
from .resources import Resources, partitioned
from .segment import ResponseRows

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm, Columns
    from .gam_rows import TableRows
    from .sides import Sides
    from .smoothed import Smoothed


_LITTLE = 16e6  # bytes of rows for which nobody asks what is free: the table itself takes as much


class Stream(Protocol):
    """Rows that are read when they are needed, or are with workers."""

    def parts(self, plan: Plan, family: str, rows: int, resources: Resources) -> Parts: ...


@final
@dataclass(frozen=True)
class Stretch(Recipe):
    """Rows of a table that is in memory."""

    y: np.ndarray
    columns: Mapping[str, np.ndarray]
    weights: np.ndarray | None
    offset: np.ndarray | None
    family: str

    @property
    def numbers(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 1 + (self.weights is not None) + (self.offset is not None)

    def make(self, plan: Plan) -> Held:
        return met(plan, self.family, self.y, self.columns, self.weights, self.offset)


# long: the columns of a response
def met(
    plan: Plan, family: str, y: np.ndarray, columns: Mapping[str, np.ndarray], weights: np.ndarray | None,
    offset: np.ndarray | None,
) -> Held:  # fmt: skip
    """A part of these rows."""
    design = plan.meet(columns, rows=y.size)
    offset = gam_rows.plus_fixed(offset, plan.frame.terms, columns)
    given = families.checked(family, y, weights, offset, y.size)
    parts = (given.y, given.weights, given.offset)
    return Held(
        design, ResponseRows(*(np.require(design.sort(a) if a.size else a, requirements=("C", "W")) for a in parts))
    )


def stretches(rows: TableRows, family: str, plan: Plan) -> list[Recipe]:
    """Recipes of a table in memory."""
    out: list[Recipe] = []
    for a, b in cuts(rows.y.size, [rows.columns[name] for name in plan.names], PART):
        columns = {name: column[a:b] for name, column in rows.columns.items()}
        weights = None if rows.weights is None else rows.weights[a:b]
        offset = None if rows.offset is None else rows.offset[a:b]
        out.append(Stretch(rows.y[a:b], columns, weights, offset, family))
    return out


def cuts(n: int, contexts: Sequence[np.ndarray], part: int) -> Iterator[tuple[int, int]]:
    """Stretches of about `part` rows; rows next to each other with equal values of the columns `contexts` stay
    together, as far as a stretch may be half as long again."""
    a = 0
    while a < n:
        b = min(a + part, n)
        if contexts and b < n:
            end = min(b + part // 2, n)
            new = np.logical_or.reduce([column[b:end] != column[b - 1 : end - 1] for column in contexts])
            b = b + int(np.argmax(new)) if new.any() else n if end == n else b
        yield a, b
        a = b


# long: what a design is made of
def designed(
    rows: TableRows, placed: Columns, built: Sequence[BuiltTerm], intercept: bool,
    family: tuple[str, str | None, str], resources: Resources, stream: Stream | None, n: int,
) -> tuple[Any, Sides | None]:  # fmt: skip
    """The rows of a table as a design: whole, or in parts with the response's side of the fit. `placed`: the rows that
    the terms were built on; `stream`: all rows, where `rows` are no more than these; n: how many there are."""
    from .core import build_design

    every = len(rows.y) == n and rows.columns is placed
    whole = n * (24.0 + 8.0 * sum(max(len(term.covariates), 1) for term in built))
    if not resources.asked and stream is None and levels_of(built):
        remedy = "Fit fewer rows, or leave out terms of a factor: other rows are met in parts where they do not fit."
        memory.require(whole, f"{n:,} rows, arranged by the levels of a factor,", remedy)
    elif (
        (resources.asked or whole > _LITTLE) and whole > memory.allowed(resources.memory) and resources.workers is None
    ):
        resources = replace(resources, memory=memory.allowed(resources.memory))  # in parts
    if not resources.asked and stream is None and (every or levels_of(built)):
        return build_design(built, rows.columns, intercept=intercept, rows=n), None
    known = None if every else ()
    threads = cores() if resources.threads is None else resources.threads
    made = plan(
        built,
        placed,
        all_rows=n,
        intercept=intercept,
        constant=known,
        rows=None if built else len(rows.y),
        threads=threads,
    )
    if not resources.asked and stream is None:
        return made.meet(rows.columns, rows=n, threads=threads), None

    def parts() -> Parts:
        if stream is not None:
            return stream.parts(made, family[0], n, resources)
        return resources.parts(made, stretches(rows, family[0], made), n, family[0])

    return partitioned(made, parts, family)


def levels_of(built: Sequence[BuiltTerm]) -> bool:
    """Whether a factor would partition the rows of these terms."""
    return any(term.level is not None or term.factor_levels is not None for term in built)


def at_home(
    smoothed: Smoothed, design: PartitionedDesign, offset: np.ndarray | None, resources: Resources,
    kept: TableRows | None,
) -> Smoothed:  # fmt: skip
    """The fit with its rows in this process, whoever summed over them, and with its offset; `kept`: the rows that it
    keeps, where they are not all."""
    threads = cores() if resources.threads is None else resources.threads
    here: Any = None
    if kept is None:
        here = PartitionedDesign(design.parts.at_home(memory.allowed(resources.memory), threads))
    else:
        here = design.parts.plan.meet(kept.columns, rows=kept.y.size, threads=threads)
    return replace(smoothed, design=here, offset=np.empty(0) if offset is None else offset)
