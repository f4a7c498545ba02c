"""The additive engine on rows that are never together: each block is made from its seed, or held in compact form.

What a fit keeps of its rows is the sample that its terms were built on; sums over rows are sums over parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from .._base.memory import allowed
from .._base.threads import cores
from ..engine.design import Design
from ..engine.families import FAMILIES
from ..engine.gam_result import Gam
from ..engine.partition import PartitionedDesign
from ..engine.parts import Held, LocalParts
from ..engine.plan import Plan
from ..engine.resources import require
from ..engine.sides import Sides
from ..engine.smoothed import Smoothed
from ..objectives.additive import AdditiveProblem, Placing, response
from ..objectives.parts import in_parts
from ..objectives.rows import Rows, RowSource
from ..terms.base import BuiltTerm
from .engine_rows import EngineScores

# one penalised fit of a design in parts; from another, and rough where it is the start of another
Fitted = Callable[[Any, Sides, tuple[BuiltTerm, ...], Smoothed | None, bool], Smoothed]


@final
@dataclass(frozen=True)
class PartWalk:
    """The rows of a problem at β̂, from its parts in this process."""

    source: RowSource
    parts: LocalParts
    beta: np.ndarray  # flat
    side: Sides
    code: int

    def __call__(self) -> Iterator[tuple[Rows, np.ndarray, Design]]:
        return self.parts.each(_walked, self.source, self.beta)

    def levers(self, matrices: list[np.ndarray]) -> np.ndarray:
        design = PartitionedDesign(self.parts)
        return design.to_user(design.leverages(self.side.rows, self.code, self.beta, matrices).T)


def _walked(plan: Plan, part: Held, i: int, source: RowSource, beta: np.ndarray) -> tuple[Rows, np.ndarray, Design]:
    given, design = part.rows, part.design
    eta = design.predict(beta)
    w, offset = (design.unsort(a) if a.size else None for a in (given.weights, given.offset))
    rows = source.numbers(i, design.unsort(given.y), w, offset)
    return rows, design.unsort(eta) + rows.offset, design


def fit_many(problem: AdditiveProblem, fitted: Fitted, method: str, threads: int | None) -> EngineScores:
    """The fit of a problem whose rows are made block by block, and its scores."""
    built, placing = problem.built
    count = cores() if threads is None else threads
    plan = problem.plan(built, placing, count)
    require(problem.family, method, plan.frame.size)
    resources = replace(problem.resources, threads=threads)
    design = in_parts(problem, plan, resources)
    side = design.sides(problem.family, None)
    smoothed = fitted(design, side, built, None, False)
    home = design.parts.at_home(allowed(resources.memory), count)
    flat = design.to_flat(smoothed.beta)
    walk = PartWalk(problem.source, home, flat, side, FAMILIES[problem.family])
    return EngineScores(problem, kept(problem, plan, placing, smoothed), None, walk=walk)


def kept(problem: AdditiveProblem, plan: Plan, placing: Placing, smoothed: Smoothed) -> Gam:
    """The additive fit with the rows that its terms were built on."""
    own, part = response(placing.rows.likelihood), placing.part
    context = placing.rows.context if problem.obs.has_context else None
    design = plan.meet(part.columns, context, len(placing.rows), cores())
    offset = np.empty(0) if part.offset is None else part.offset
    columns: Mapping[str, np.ndarray] = part.columns
    return Gam(
        formula=str(part.terms),
        family=problem.family,
        method=smoothed.method,
        smoothed=replace(smoothed, design=design, offset=offset),
        terms=plan.frame.terms,
        columns=columns,
        response="z",
        y=own.y,
        weights=own.weights,
        offset=part.offset,
        offset_names=None,
        backend=problem.obs.backend,
        whole=problem.source.size,
    )
