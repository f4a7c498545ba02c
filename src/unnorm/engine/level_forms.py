"""Terms that every level of a factor has alike: which they are, and the rows' own columns of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._base.threads import run_tasks
from .forms import CHUNK, STORE, Forms, Part
from .levels import LevelColumns
from .splines import LocalBasis

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm
    from .arrange import Order

_BUSY = 600_000  # squares of own columns, rows of a level × k²: beyond, four non-zeros a row are the quicker


def alike(terms: Sequence[BuiltTerm], factor: str, rows: int, levels: int) -> bool:
    """Whether the columns that levels of this factor have to themselves are the same functions for all of them."""
    mine = [t for t in terms if t.factor_levels is not None and t.factor_levels[0] == factor]
    if any(t.level is not None and t.level[0] == factor for t in terms):
        return False
    if not mine or not all(t.blocks_alike and len(t.factor_levels[1]) == levels for t in mine if t.factor_levels):
        return False
    k = sum(t.size // levels for t in mine)
    return rows * k * k <= _BUSY * levels and rows * k * 8 <= STORE


def level_columns(forms: Forms, numbers: Sequence[int], order: Order, levels: int) -> LevelColumns:
    """The rows' own columns of parts `numbers`, side by side."""
    runs = np.searchsorted(order.level, np.arange(levels + 1))
    parts = [forms.parts[n] for n in numbers]
    x = np.empty((forms.rows, sum(part.size for part in parts)))
    tasks = []
    for n, part in zip(numbers, parts):
        term = forms.terms[part.term]
        forms.kinds[term.label] = "level"
        local = None
        if term.breaks is not None and len(forms._numeric(term)) == 1 and term.by is None:
            local = forms._basis(n, forms.level_values[0])
        tasks += [(part, local, a, min(a + CHUNK, forms.rows)) for a in range(0, forms.rows, CHUNK)]

    def fill(part: Part, local: LocalBasis | None, a: int, b: int) -> None:
        term, rows = forms.terms[part.term], forms.order.pick(a, b)
        columns = {name: forms.arrays[name][rows] for name in term.covariates}
        if local is None:
            x[a:b, part.at] = term.level_design(columns, 0) @ part.rotation
        else:
            at = np.asarray(columns[forms._numeric(term)[0]], dtype=np.float64)
            x[a:b, part.at] = _evaluated(local, at, local.coefficients @ part.rotation)

    run_tasks(fill, tasks, forms.threads)
    return LevelColumns(x, runs, np.asarray(order.starts)[runs])


def _evaluated(basis: LocalBasis, x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """(n, k): the cubics of each row's cell; rows without a value lie in the last, empty cell."""
    from .arrange_kernels import locate

    cells = len(basis.poly)
    u = np.empty((x.size, 1))
    locate(np.require(x, requirements=("C", "W")), np.empty(0, np.int32), basis.breaks, basis.period, u, 0)
    u[np.isnan(x), 0] = basis.breaks.size - 1
    cell = u[:, 0].astype(np.int64)
    t = (u[:, 0] - cell)[:, None]
    here = coefficients[np.arange(cells)[:, None] + np.arange(4)]  # (cells, 4, k)
    powers = np.matmul(basis.poly, here)
    out = powers[cell, 3]
    for p in (2, 1, 0):
        out = powers[cell, p] + t * out
    return out
