"""Covariates that a row may lack, marked nan: a step of length zero has no direction.

A cyclic term is zero at such rows and set up on the others (knots, centring, scale). Other bases need a value in every
row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from ..errors import DataError
from .base import BuiltTerm, Columns
from .kinds import BasisKind
from .sample import column_of, numeric


def _lacking(columns: Columns, names: Sequence[str], what: str) -> np.ndarray | None:
    """Which rows lack some of these; None where none does."""
    gone = [np.isnan(numeric(columns, name, what)) for name in names]
    return np.logical_or.reduce(gone) if any(one.any() for one in gone) else None


def present(columns: Columns, names: Sequence[str], partial: Collection[str], what: str) -> Columns:
    """The columns `names`, on the rows that lack none of them; the table itself where that is all rows."""
    gone = _lacking(columns, [name for name in names if name in partial], what)
    return columns if gone is None else {name: column_of(columns, name, what)[~gone] for name in names}


def check_present(columns: Columns, names: Sequence[str], partial: Collection[str], kind: BasisKind, what: str) -> None:
    """Refuse rows that lack a covariate of a basis that is not cyclic."""
    for name in names:
        if name in partial and not kind.cyclic and (gone := _lacking(columns, (name,), what)) is not None:
            raise DataError(
                f"{what}: {int(gone.sum()):,} of {gone.size:,} rows have no {name} (a step of length zero has no "
                f"direction), and bs={kind.name!r} needs one in every row. Use bs='cc', which is zero there."
            )


def where_present(term: BuiltTerm, columns: Columns, design: Callable[[Columns], np.ndarray]) -> np.ndarray | None:
    """`design` on the rows that lack nothing, and zero on the others; None where no row lacks anything."""
    gone = _lacking(columns, term.partial, term.label) if term.partial else None
    if gone is None:
        return None
    found = design({name: column_of(columns, name, term.label)[~gone] for name in term.covariates})
    out = np.zeros((gone.size, found.shape[1]))
    out[~gone] = found
    return out
