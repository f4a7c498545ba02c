"""What all parts of a design have in common: where coefficients live, and which form each term takes.

Forms are decided once, on all rows or on a sample of them, so that a part of the rows has the same columns however the
rows are cut; `Plan.meet` brings rows into these forms.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np

from .._base.blas import single_threaded
from .arrange import Order, arrange, number
from .build import arranged
from .design import Design
from .forms import Forms
from .runs import consecutive

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm, Columns

_NO_ORDER = Order(None, np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), False)


@final
@dataclass(frozen=True)
class Plan:
    """A design without rows, and how rows are met with it."""

    frame: Design  # without rows
    forms: Forms
    names: tuple[str, ...]  # the columns whose values make contexts; none where contexts are numbered, or stretches
    contexts: bool

    def meet(self, columns: Columns, context: np.ndarray | None = None, rows: int = 0, threads: int = 1) -> Design:
        """The design of these rows; `rows` is their number, needed where there are no terms."""
        arrays = {name: np.asarray(columns[name]) for term in self.frame.terms for name in term.covariates}
        n = len(next(iter(arrays.values()))) if arrays else rows
        order = self._order(arrays, context, n, threads)
        forms = replace(self.forms, arrays=arrays, order=order, threads=threads, codes={})
        with single_threaded():
            segment = forms.segment(None, 0, order.level.size)
        run_ids = np.arange(order.level.size) if order.contexts else None
        return replace(self.frame, segments=(segment,), order=order.order, run_ids=run_ids, rows=n)

    def _order(self, arrays: dict[str, np.ndarray], context: np.ndarray | None, n: int, threads: int) -> Order:
        if not self.contexts:
            return arrange(n, None, 0, None)
        columns = [np.asarray(context)] if context is not None else [arrays[name] for name in self.names]
        found = consecutive(columns, n, threads)
        return arrange(n, None, 0, number(columns)[0]) if found is None else found


# long: as `build_design`
def plan(
    terms: Sequence[BuiltTerm],
    columns: Columns,
    *,
    all_rows: int,
    intercept: bool = True,
    context: np.ndarray | None = None,
    constant: Collection[str] | None = None,
    rows: int | None = None,
    threads: int = 1,
) -> Plan:
    """The plan of a design of `all_rows` rows, decided on the rows of `columns`: all of them, or a sample of stretches
    of rows with the ends of every column and every level of every factor.

    `constant`: of a sample, the columns known to be constant in every context; None where `columns` are all rows.
    """
    with single_threaded():
        design, forms, names = arranged(
            terms, columns, intercept, context, rows, threads, all_rows=all_rows, partitioned=False
        )
        if constant is not None:  # what a sample shows may not hold elsewhere
            known = {name: forms.order.contexts and (name in names or name in constant) for name in forms.constant}
            if known != forms.constant:
                forms = replace(forms, constant=known, kinds={}, errors={}, codes={}, threads=threads)
                segment = forms.segment(None, 0, forms.order.level.size)
                design = replace(design, segments=(segment,), kinds=forms.kinds, errors=forms.errors)
    contexts = forms.order.contexts
    (segment,) = design.segments
    empty, _ = replace(segment, dense=None, x=segment.x[:0]).take(np.arange(0), 0)
    frame = replace(design, segments=(empty,), order=None, run_ids=None, rows=0)
    bare = replace(forms, arrays={}, order=_NO_ORDER, codes={})
    return Plan(frame, bare, tuple(sorted(names)), contexts)
