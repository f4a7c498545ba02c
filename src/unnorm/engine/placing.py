"""The rows that terms are built on: all of them, or of very many a sample that depends on nothing but the rows.

Knots, centring and the forms that terms take are decided on these. Stretches of neighbouring rows are taken evenly over
all rows (neighbours may share a context), and with them the rows where a numeric column is least or largest and the
first row of each level of a column that may be a factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np

PLACING = 2_000_000  # rows from which a sample decides: a column of it is 16 MB
STRETCH = 1_024  # neighbouring rows that are taken together
_MOST = 200_000  # distinct values of a column that may be a factor


def stretches(n: int) -> np.ndarray:
    """(·,) the rows of the sample that depend on their number only."""
    count, whole = PLACING // STRETCH, n // STRETCH
    first = np.unique(np.linspace(0, whole, max(count, 1), endpoint=False).astype(np.int64)) * STRETCH
    return (first[:, None] + np.arange(STRETCH)).ravel()


@final
@dataclass
class Sampler:
    """Gathers the sample from blocks of rows that come in order."""

    n: int
    at: int = 0
    kept: list[dict[str, np.ndarray]] = field(default_factory=list)
    ends: dict[tuple[str, int], tuple[float, int, dict[str, np.ndarray]]] = field(default_factory=dict)
    levels: dict[str, dict[object, tuple[int, dict[str, np.ndarray]]]] = field(default_factory=dict)
    never: set[str] = field(default_factory=set)  # columns that are no factors

    def meet(self, columns: Mapping[str, np.ndarray], beside: Mapping[str, np.ndarray] | None = None) -> None:
        """The next block; columns `beside` come along and decide nothing."""
        covariates, columns = columns, {**columns, **(beside or {})}
        rows = len(next(iter(columns.values()), ()))
        every = self.n <= PLACING
        inside = slice(None) if every else self._inside(rows)
        self.kept.append({name: np.asarray(column)[inside] for name, column in columns.items()})
        if not every:
            for name, column in covariates.items():
                self._numeric(name, np.asarray(column), columns)
                self._factor(name, np.asarray(column), columns)
        self.at += rows

    def _inside(self, rows: int) -> np.ndarray:
        wanted = stretches(self.n)
        low, high = np.searchsorted(wanted, [self.at, self.at + rows])
        return wanted[low:high] - self.at

    def _row(self, columns: Mapping[str, np.ndarray], i: int) -> dict[str, np.ndarray]:
        return {name: np.asarray(column)[i : i + 1] for name, column in columns.items()}

    def _numeric(self, name: str, column: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        if column.dtype.kind not in "fiu" or not column.size:
            return
        for sign in (1, -1):
            i = int(np.argmin(sign * column))
            value = float(sign * column[i])
            if (name, sign) not in self.ends or value < self.ends[name, sign][0]:
                self.ends[name, sign] = value, self.at + i, self._row(columns, i)

    def _factor(self, name: str, column: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        if name in self.never:
            return
        if column.dtype.kind == "f" and self.at == 0 and np.any(column[:STRETCH] % 1.0 != 0.0):  # no codes of levels
            self.never.add(name)
            return
        known = self.levels.setdefault(name, {})
        values, first = np.unique(column, return_index=True)
        new = [(value, i) for value, i in zip(values.tolist(), first.tolist()) if value not in known]
        if len(known) + len(new) > _MOST:
            self.never.add(name)
            del self.levels[name]
            return
        for value, i in new:
            known[value] = self.at + i, self._row(columns, i)

    def join(self, other: Sampler) -> None:
        """What another has gathered from the rows after these, the same n."""
        self.kept += other.kept
        for key, (value, row, values) in other.ends.items():
            if key not in self.ends or value < self.ends[key][0]:
                self.ends[key] = value, row, values
        self.never |= other.never
        for name, known in other.levels.items():
            mine = self.levels.setdefault(name, {})
            mine |= {value: at for value, at in known.items() if value not in mine}
            if len(mine) > _MOST:
                self.never.add(name)
        for name in self.never & set(self.levels):
            del self.levels[name]
        self.at += other.at

    def columns(self) -> dict[str, np.ndarray]:
        """The sample, in the order of the rows; ends and levels that no stretch has, after them."""
        more: dict[int, dict[str, np.ndarray]] = {row: values for _, row, values in self.ends.values()}
        for known in self.levels.values():
            more |= dict(known.values())
        taken = stretches(self.n) if self.n > PLACING else np.arange(0)
        extra = [values for row, values in sorted(more.items(), key=lambda one: one[0]) if not _among(row, taken)]
        blocks = [*self.kept, *extra]
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]} if blocks else {}


def _among(row: int, rows: np.ndarray) -> bool:
    at = int(np.searchsorted(rows, row))
    return at < rows.size and int(rows[at]) == row


def sample(columns: Mapping[str, np.ndarray], n: int, block: int = 262_144) -> Mapping[str, np.ndarray]:
    """The columns on the rows that terms are built on."""
    if n <= PLACING or not columns:
        return columns
    return gathered(({name: column[a : a + block] for name, column in columns.items()} for a in range(0, n, block)), n)


def gathered(blocks: Iterable[Mapping[str, np.ndarray]], n: int) -> dict[str, np.ndarray]:
    """The same from n rows that come in blocks."""
    sampler = Sampler(n)
    for block in blocks:
        sampler.meet(block)
    return sampler.columns()
