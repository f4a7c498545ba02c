"""Specifications × data → built terms: knots placed, penalties scaled, constraints absorbed, each as mgcv does it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._base.blas import single_threaded
from .._base.threads import BRIEF, cores, run_tasks
from ..errors import DataError, TermError, listing, unknown
from .base import BuiltTerm, Columns
from .build_smooths import linked_smooth, smooth, tensor
from .built import FactorTerm, LinearTerm
from .interaction import Interaction, build_interaction
from .kernel_term import KernelSmooth, build_kernel
from .kinds import Ends
from .levels import Category, is_category
from .linked import linked
from .meeting import Boundary, Meeting
from .sample import check_digits, check_finite, numeric
from .side import side
from .specs import Factor, Linear, Smooth, Term, Terms
from .tensor_specs import Tensor

INTERCEPT = "(Intercept)"  # as fits call theirs
_MANY = 5_000  # rows from which setting up terms side by side gains more than waking a thread costs
_USUAL = 10  # functions of a curve whose k is left open


def _linear(meeting: Meeting, spec: Linear) -> list[BuiltTerm]:
    out: list[BuiltTerm] = []
    for name in spec.covariates:
        column = numeric(meeting.columns, name, f"linear({name})")
        low, high = (column.min(), column.max()) if column.size else (0.0, 1.0)
        check_finite(low, high, column, name, f"linear({name})")
        check_digits(low, high, name, f"linear({name})")
        out.append(LinearTerm(label=name, covariates=(name,), size=1, null_dim=1, parametric=True))
    return out


def _factor(meeting: Meeting, spec: Factor, full: bool) -> list[BuiltTerm]:
    what = f"factor({spec.name})"
    levels = meeting.levels(spec.name, what)
    if len(levels) < 2:
        raise TermError(
            f"{what}: the column has one level only ({listing(levels)}), so nothing can be estimated. "
            "Leave the term out."
        )
    columns = levels if full else levels[1:]
    return [
        FactorTerm(
            label=spec.name,
            covariates=(spec.name,),
            size=len(columns),
            null_dim=len(columns),
            parametric=True,
            factor_levels=(spec.name, columns),
            levels=levels,
            full=full,
        )
    ]


# long: what `Terms.build` takes
def build(
    terms: Terms,
    columns: Columns,
    knots: Mapping[str, Any],
    periods: Mapping[str, Any],
    partial: Collection[str],
    intercept: bool,
    max_knots: int | None,
    categories: Mapping[str, Category],
    boundary: Boundary,
    ends: Ends,
    select: bool,
) -> list[BuiltTerm]:
    """See `Terms.build`."""
    for option, given in (("knots", knots), ("periods", periods)):
        if not isinstance(given, Mapping):
            raise TermError(f"{option} must be a mapping from covariates, e.g. {option}={{'x': …}}; got {given!r}.")
    if strange := [name for name in knots if name not in terms.columns]:
        raise TermError(unknown("A name in knots", strange[0], terms.columns))
    if max_knots is not None and (not isinstance(max_knots, int | np.integer) or max_knots < 3):
        raise TermError(f"max_knots must be at least 3; got {max_knots!r}.")
    sizes = {name: len(columns[name]) for name in terms.columns if name in columns}
    if len(set(sizes.values())) > 1:
        raise DataError(f"The columns must have one value a row each; got lengths {sizes}.")
    terms = terms.labelled(categories)
    meeting = Meeting(columns, knots, periods, partial, max_knots, categories, boundary, ends)
    makers: dict[type[Term], Any] = {
        Smooth: lambda term: (
            smooth(meeting, term) if term.id is None else linked_smooth(meeting, term, linked(term, terms.terms))
        ),
        Tensor: lambda term: tensor(meeting, term),
        Linear: lambda term: _linear(meeting, term),
        KernelSmooth: lambda term: [build_kernel(term, columns, periods)],
        Interaction: lambda term: [build_interaction(term, columns, meeting.levels, parametric, intercept)],
    }
    written = [_as_factor(_as_cyclic(term, periods, partial), columns, categories) for term in terms]
    parametric = [term for term in written if type(term) in (Linear, Factor, Interaction)]
    out: list[BuiltTerm] = []
    factors = [(i, term) for i, term in enumerate(written) if isinstance(term, Factor)]
    # without an intercept the first factor has a coefficient for every level
    alone = {i: _factor(meeting, term, i == factors[0][0] and not intercept) for i, term in factors}
    rest = [(i, term) for i, term in enumerate(written) if i not in alone]
    with single_threaded():
        rows = max(sizes.values(), default=0)
        many = rows >= _MANY and sum(type(term) in (Smooth, Tensor) for term in terms) > 1
        rest.sort(key=_work, reverse=True)
        made = run_tasks(lambda i, term: makers[type(term)](term), rest, cores() if many else 1, brief=rows <= BRIEF)
    found = alone | {i: some for (i, _), some in zip(rest, made)}
    for i in range(len(found)):
        out.extend(found[i])
    labels = [term.label for term in out]
    if INTERCEPT in labels:  # its coefficient would be taken for the intercept's
        raise TermError(f"A column called {INTERCEPT!r} cannot be a term by itself. Rename the column.")
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise TermError(f"Two terms are called {listing(twice)}. Keep one, or give a copy of the column another name.")
    if select:  # of whole terms: what nested ones give up goes from both penalties, as in mgcv
        from .shrinkage import selectable

        out = [selectable(term) for term in out]
    return side(out, columns, intercept)


def _work(one: tuple[int, Term]) -> tuple[int, int]:
    """What takes the longest comes first: surfaces, and most functions."""
    _, term = one
    return len(term.columns), term.k if isinstance(term, Smooth) and isinstance(term.k, int) else _USUAL


def _as_cyclic(term: Term, periods: Mapping[str, Any], partial: Collection[str]) -> Term:
    """A smooth of one angle whose basis was left open goes round. (Directions of steps, which a step of length zero
    lacks, stay as they are written: their cyclic smooths treat such steps apart, and the user decides.)"""
    if not (isinstance(term, Smooth) and term.open and len(term.covariates) == 1 and term.m is None):
        return term
    (name,) = term.covariates
    return replace(term, bs="cc") if periods.get(name) is not None and name not in partial else term


def _as_factor(term: Term, columns: Columns, categories: Collection[str]) -> Term:
    """A column of labels that is named by itself, `y ~ g`, is a factor; a category of numbers too, also in products."""
    if isinstance(term, Interaction):
        return replace(term, factors=term.factors.union(categories).intersection(term.operands))
    if isinstance(term, Linear) and term.bare and term.covariates[0] in columns:
        (name,) = term.covariates
        return Factor(name) if name in categories or is_category(columns, name, term.label) else term
    return term
