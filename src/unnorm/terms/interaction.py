"""`a:b`: products of factors and numbers, coded as R's `model.matrix` does.

A factor within a:b has a column for each level but the first where the rest of the product is a term of its own, and
one for each level where it is not: with x in the model g:x gives differences of slopes, without it a slope a level.
The rest also counts as a term where an earlier product with further factors has it: with h:x before it,
g:x gives differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from ..errors import TermError, listing
from .base import BuiltTerm, Columns
from .built import SavedTerm, known_codes, points_of
from .levels import Level, codes, is_category, level_name
from .sample import check_digits, check_finite, numeric
from .specs import Factor, Linear, Term, operands_of
from .writing import alone

MOST_COLUMNS = 5000


@final
@dataclass(frozen=True)
class Interaction(Term):
    """a:b: the product of two or more columns, factors by their levels."""

    operands: tuple[str, ...]
    factors: frozenset[str] = frozenset()  # columns to read as categories whatever they hold

    @property
    def label(self) -> str:
        return ":".join(self.operands)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.operands

    def __str__(self) -> str:
        return ":".join(alone(name, self.factors) for name in self.operands)


def interaction(*operands: str | Factor) -> Interaction:
    """The product of columns, `a:b` in a formula: numbers by their values, factors by their levels.

    Args:
        operands: two or more columns; factors as `factor("clinic")`.

    >>> from unnorm.terms import factor
    >>> str(interaction("age", factor("clinic")))
    'age:factor(clinic)'
    """
    names, factors = operands_of("interaction", operands)
    if len(names) < 2:
        raise TermError(f"interaction() takes two or more columns; got {listing(names)}.")
    return Interaction(names, factors)


@final
@dataclass(frozen=True, eq=False)
class InteractionTerm(SavedTerm):
    """Columns of a:b: for each combination of levels that is coded, the product of the numeric columns."""

    kind: ClassVar[str] = "interaction"
    operands: tuple[str, ...] = ()
    factors: tuple[tuple[str, tuple[Level, ...], bool], ...] = ()  # (column, levels, whether the first is coded too)
    first: int = 0  # combinations left out at the start, which the intercept has

    @property
    def own_levels(self) -> dict[str, tuple[Level, ...]]:
        return {name: levels for name, levels, _ in self.factors}

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        coded = {name: (levels if full else levels[1:]) for name, levels, full in self.factors}
        names = [""]
        for operand in self.operands:
            parts = [f"{operand}{level_name(v)}" for v in coded[operand]] if operand in coded else [operand]
            names = [f"{name}:{part}" if name else part for name in names for part in parts]
        return tuple(names[self.first :])

    def design(self, columns: Columns) -> np.ndarray:
        n = len(columns[self.operands[0]])
        at, there, size = np.zeros(n, np.int64), np.ones(n, bool), 1
        for name, levels, full in self.factors:
            here = known_codes(columns, name, levels, self.label) - (0 if full else 1)
            count = len(levels) - (0 if full else 1)
            at, there, size = at * count + here, there & (here >= 0), size * count
        value = np.ones(n)
        for name in self.operands:
            if name not in {factor[0] for factor in self.factors}:
                value = value * points_of(columns, (name,), self.label)[:, 0]
        out = np.zeros((n, size))
        out[np.flatnonzero(there), at[there]] = value[there]
        return out[:, self.first :]


def build_interaction(
    spec: Interaction,
    columns: Columns,
    levels_of: Callable[[str, str], tuple[Any, ...]],
    others: Sequence[Term],
    intercept: bool,
) -> BuiltTerm:
    """The term on these data. `others`: the terms of the model, by which factors are coded."""
    margins = _margins(spec, columns, others, intercept)
    found: list[tuple[str, tuple[Level, ...], bool]] = []
    for name in spec.operands:
        if _is_factor(spec, name, columns):
            levels = levels_of(name, spec.label)
            if len(levels) < 2:
                raise TermError(f"{spec.label}: {name!r} has one level only ({listing(levels)}). Leave it out.")
            found.append((name, levels, frozenset(spec.operands) - {name} not in margins))
        else:
            column = numeric(columns, name, spec.label)
            check_finite(column.min(), column.max(), column, name, spec.label)
            check_digits(float(column.min()), float(column.max()), name, spec.label)
    size = int(np.prod([len(levels) - (not full) for _, levels, full in found]))
    if size > MOST_COLUMNS:
        raise TermError(f"{spec.label} has {size:,} combinations of levels, more than {MOST_COLUMNS:,}. Use bs='re'.")
    # all combinations add up to the product of the numbers: one too many where that is a term, as the intercept is
    numbers = frozenset(spec.operands) - {name for name, _, _ in found}
    everything = bool(found) and numbers in margins and all(full for _, _, full in found)
    _seen(spec, columns, found)
    return InteractionTerm(
        label=spec.label,
        covariates=spec.operands,
        size=size - everything,
        null_dim=size - everything,
        parametric=True,
        operands=spec.operands,
        factors=tuple(found),
        first=int(everything),
    )


def _is_factor(spec: Term, name: str, columns: Columns) -> bool:
    if isinstance(spec, Factor):
        return True
    return (isinstance(spec, Interaction) and name in spec.factors) or is_category(columns, name, spec.label)


def _margins(spec: Interaction, columns: Columns, others: Sequence[Term], intercept: bool) -> set[frozenset[str]]:
    """The products that the intercept, the other terms, and earlier ones with further factors, have columns of."""
    constant = intercept or any(isinstance(term, Factor) for term in others)  # the first one has every level then
    out = {frozenset[str]()} if constant else set[frozenset[str]]()
    for term in others:
        if isinstance(term, Linear):
            out |= {frozenset({name}) for name in term.covariates}
        elif term is not spec:
            out.add(frozenset(term.columns))
    products = sorted((term for term in others if isinstance(term, Interaction)), key=lambda term: len(term.operands))
    for term in products[: products.index(spec)]:
        shared = frozenset(term.operands) & frozenset(spec.operands)
        if all(_is_factor(term, name, columns) for name in term.operands if name not in shared):
            out.add(shared)
    return out


def _seen(spec: Interaction, columns: Columns, factors: Sequence[tuple[str, tuple[Level, ...], bool]]) -> None:
    """Refuse a combination of levels that no row has: it has no estimate."""
    if len(factors) < 2:
        return
    at = np.zeros(len(columns[factors[0][0]]), np.int64)
    for name, levels, _ in factors:
        at = at * len(levels) + codes(columns, name, levels, spec.label)
    sizes = [len(levels) for _, levels, _ in factors]
    gone = np.setdiff1d(np.arange(int(np.prod(sizes))), at)
    if gone.size:
        where = np.unravel_index(gone[0], sizes)
        one = ", ".join(f"{name} = {levels[i]!r}" for (name, levels, _), i in zip(factors, where))
        raise TermError(
            f"{spec.label}: {gone.size} of {int(np.prod(sizes))} combinations of levels have no rows (the first: "
            f"{one}). Merge levels, or use s({', '.join(spec.operands)}, bs='re')."
        )
