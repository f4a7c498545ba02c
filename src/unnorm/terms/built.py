"""Built terms: each knows its columns at new points, its penalties, and how to be saved."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, cast, final

import numpy as np

from ..errors import DataError, InputError, listing, unknown, warn
from .base import BuiltTerm, Columns, Penalty
from .basis import Basis, basis_from_dict
from .levels import Level, codes, level_name, unseen
from .partial import where_present
from .sample import numeric

_FAR = 0.1  # of the data's range: beyond it a spline says nothing about the data


@dataclass(frozen=True, eq=False)
class SavedTerm(BuiltTerm):
    """What all built terms hold."""

    kind: ClassVar[str]
    label: str
    covariates: tuple[str, ...]
    size: int
    penalties: tuple[Penalty, ...] = ()
    fixed_sp: tuple[float | None, ...] = ()
    null_dim: int = 0
    parametric: bool = False
    level: tuple[str, object] | None = None
    by: str | None = None
    factor_levels: tuple[str, tuple[object, ...]] | None = None
    breaks: np.ndarray | None = None
    period: float | None = None
    spectrum: np.ndarray | None = None
    partial: tuple[str, ...] = ()
    link: str | None = None
    isotropic: bool = True

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: floats go through repr and come back exactly; `from_dict` rebuilds the term without the data."""
        out: dict[str, Any] = {"kind": self.kind}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):  # an infinite edge (a periodic covariate) has no JSON number
                value = [None if isinstance(v, float) and not np.isfinite(v) else v for v in value.tolist()]
            elif isinstance(value, Basis):
                value = value.to_dict()
            elif item.name == "penalties":
                value = [
                    {"matrix": p.block.tolist(), "rank": p.rank, "label": p.label, "copies": p.copies} for p in value
                ]
            out[item.name] = _lists(value)
        return out


def _lists(value: Any) -> Any:
    return [_lists(v) for v in value] if isinstance(value, tuple) else value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def from_dict(saved: dict[str, Any]) -> BuiltTerm:
    """The term that `to_dict` described.

    >>> import numpy as np
    >>> from unnorm.terms import s, Terms
    >>> (term,) = Terms((s("x", k=5),)).build({"x": np.linspace(0, 1, 50)})
    >>> bool((from_dict(term.to_dict()).design({"x": np.ones(1)}) == term.design({"x": np.ones(1)})).all())
    True
    """
    from .interaction import InteractionTerm  # made of this file's parts
    from .kernel_term import KernelTerm

    kinds = {**_TERMS, KernelTerm.kind: KernelTerm, InteractionTerm.kind: InteractionTerm}
    if saved.get("kind") not in kinds:
        raise InputError(unknown("A saved term's kind", saved.get("kind"), kinds))
    cls = kinds[saved["kind"]]
    known = {item.name for item in fields(cls)}
    values: dict[str, Any] = {}
    for name in known & saved.keys():
        value = saved[name]
        if name == "penalties":
            size = int(saved["size"])
            value = tuple(
                Penalty(
                    np.array(p["matrix"], dtype=np.float64).reshape((size // int(p.get("copies", 1)),) * 2),
                    int(p["rank"]),
                    p["label"],
                    copies=int(p.get("copies", 1)),
                )
                for p in value
            )
        elif name == "basis":
            value = basis_from_dict(value)
        elif name == "spectrum":
            value = None if value is None else np.array(value, dtype=np.float64)
        elif name in ("breaks", "lower", "upper") and value is not None:
            value = np.array([np.nan if v is None else v for v in value], dtype=np.float64)
            value = np.where(np.isnan(value), -np.inf if name == "lower" else np.inf, value)
        values[name] = _tuples(value)
    return cls(**values)


def points_of(columns: Columns, names: tuple[str, ...], what: str) -> np.ndarray:
    data = [numeric(columns, name, what) for name in names]
    for x, name in zip(data, names):
        if not np.isfinite(x).all():
            raise DataError(
                f"{what}: column {name!r} has {int(np.sum(~np.isfinite(x)))} missing or infinite of {x.size} values."
            )
    if len({x.size for x in data}) > 1:
        raise DataError(f"{what}: its columns have different lengths {sorted({x.size for x in data})}.")
    return np.column_stack(data)


def _evaluate(basis: Basis, points: np.ndarray) -> np.ndarray:
    """The basis at each row; where rows of one context lie together (equal points in runs), once for each run."""
    if basis.dim == 1 or len(points) < 2:
        return basis.evaluate(points)
    new = np.ones(len(points), dtype=bool)
    new[1:] = (points[1:] != points[:-1]).any(axis=1)
    if 2 * new.sum() > len(points):
        return basis.evaluate(points)
    return basis.evaluate(points[new])[np.cumsum(new) - 1]


def _warn_if_far(points: np.ndarray, lower: np.ndarray, upper: np.ndarray, names: tuple[str, ...], what: str) -> None:
    """`lower` and `upper` are the data's box, infinite for periodic covariates."""
    with np.errstate(invalid="ignore"):
        margin = np.where(np.isfinite(upper - lower), _FAR * (upper - lower), 0.0)
    far = ((points < lower - margin) | (points > upper + margin)).any(axis=1)
    if far.any():
        box = ", ".join(f"{name} in [{a:.6g}, {b:.6g}]" for name, a, b in zip(names, lower, upper) if np.isfinite(a))
        warn(
            f"{what}: {int(far.sum())} of {len(points)} rows lie far outside the data ({box}); "
            "the term is extrapolated there.",
            stacklevel=5,
        )


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothTerm(SavedTerm):
    """A smooth of numeric covariates, times `by`, or on the rows of one level."""

    kind: ClassVar[str] = "smooth"
    basis: Basis
    lower: np.ndarray
    upper: np.ndarray
    by_levels: tuple[Level, ...] = ()  # of a factor `by`: all that the data had
    labels: tuple[Level, ...] = ()  # of a covariate that holds labels: points are positions among them

    @property
    def own_levels(self) -> dict[str, tuple[Level, ...]]:
        return {self.covariates[0]: self.labels} if self.labels else {}

    @property
    def smooth_covariates(self) -> tuple[str, ...]:
        return () if self.labels else self.covariates[: self.basis.dim]

    @property
    def grid(self) -> tuple[tuple[np.ndarray | None, float | None], ...] | None:
        return None if self.labels or self.partial else self.basis.grid

    def functions(self, points: np.ndarray) -> np.ndarray:
        return self.basis.evaluate(np.asarray(points, dtype=np.float64))

    def known(self, points: np.ndarray) -> np.ndarray | None:
        return None if self.labels or self.partial else self.basis.known(np.asarray(points, dtype=np.float64))

    def _warn_if_far(self, points: np.ndarray) -> None:
        if not self.labels:
            points = self.basis.nearest(points, self.lower, self.upper)
        _warn_if_far(points, self.lower, self.upper, self.smooth_covariates, self.label)

    def warn_if_far(self, columns: Columns) -> None:
        self._warn_if_far(points_of(columns, self.smooth_covariates, self.label))

    @property
    def larger(self) -> str | None:
        return None if self.labels else self.basis.larger

    @property
    def outline(self) -> tuple[np.ndarray, ...]:
        return self.basis.outline

    @property
    def mesh(self) -> float:
        return self.basis.mesh

    def fixed(self, columns: Columns) -> np.ndarray | None:
        if not self.outline:
            return None
        found = self.basis.fixed(points_of(columns, self.smooth_covariates, self.label))
        if found is None:
            return None
        if self.by is not None:
            return found * points_of(columns, (self.by,), self.label)[:, 0]
        if self.level is None:
            return found
        at = known_codes(columns, self.level[0], self.by_levels, self.label)
        return np.where(at == self.by_levels.index(self.level[1]), found, 0.0)

    def design(self, columns: Columns) -> np.ndarray:
        if (lacking := where_present(self, columns, self.design)) is not None:
            return lacking
        if self.labels:
            points = known_codes(columns, self.covariates[0], self.labels, self.label).astype(np.float64)[:, None]
        else:
            points = points_of(columns, self.smooth_covariates, self.label)
        if self.level is not None:
            name, level = self.level
            if self.by_levels:
                at = known_codes(columns, name, self.by_levels, self.label)
                here = np.flatnonzero(at == self.by_levels.index(level))
            else:
                here = np.flatnonzero(codes(columns, name, (cast(Level, level),), self.label) == 0)
            if not self.outline:  # outside it columns are nan
                self._warn_if_far(points[here])
            out = np.zeros((len(points), self.size))
            out[here] = _evaluate(self.basis, points[here])
            return out
        if not self.outline:
            self._warn_if_far(points)
        out = _evaluate(self.basis, points)
        if self.by is not None:
            out *= points_of(columns, (self.by,), self.label)
        return out


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class FactorSmoothTerm(SavedTerm):
    """`fs`: a curve for each level of a factor, all with the same smoothing parameters; one block of columns a
    level. New levels get zero."""

    kind: ClassVar[str] = "factor-smooth"
    basis: Basis
    lower: np.ndarray
    upper: np.ndarray
    factors: tuple[
        tuple[str, tuple[Level, ...]], ...
    ] = ()  # with several a block for each combination, the last fastest

    @property
    def coded(self) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        """The factors with their levels; fits saved before there could be several have one."""
        return self.factors or ((self.factor_levels,) if self.factor_levels is not None else ())

    @property
    def own_levels(self) -> dict[str, tuple[Any, ...]]:
        return dict(self.coded)

    @property
    def count(self) -> int:
        """Blocks."""
        return self.size // self.basis.size

    @property
    def smooth_covariates(self) -> tuple[str, ...]:
        return self.covariates[: self.basis.dim]

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        names = [self.label]
        for _, levels in self.coded:
            names = [f"{name}.{level_name(level)}" for name in names for level in levels]
        return tuple(f"{name}.{j + 1}" for name in names for j in range(self.basis.size))

    def functions(self, points: np.ndarray) -> np.ndarray:
        return self.basis.evaluate(np.asarray(points, dtype=np.float64))

    def design(self, columns: Columns) -> np.ndarray:
        if (lacking := where_present(self, columns, self.design)) is not None:
            return lacking
        at, values = self._coded(columns)
        out = np.zeros((at.size, self.count, self.basis.size))
        rows = np.flatnonzero(at >= 0)
        out[rows, at[rows]] = values[rows]
        return out.reshape(at.size, self.size)

    def _coded(self, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        points = points_of(columns, self.smooth_covariates, self.label)
        _warn_if_far(points, self.lower, self.upper, self.smooth_covariates, self.label)
        at = np.broadcast_to(combined_codes(columns, self.coded, self.label, len(points)), len(points))
        return at, np.where(at[:, None] >= 0, _evaluate(self.basis, points), 0.0)

    def level_rows(self, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        if (lacking := where_present(self, columns, lambda some: np.column_stack(self._coded(some)))) is not None:
            return lacking[:, 0].astype(np.int64), np.ascontiguousarray(lacking[:, 1:])  # a row without it: any level
        return self._coded(columns)

    @property
    def blocks_alike(self) -> bool:
        return True

    def level_design(self, columns: Columns, at: int) -> np.ndarray:
        if (lacking := where_present(self, columns, lambda some: self.level_design(some, at))) is not None:
            return lacking
        points = points_of(columns, self.smooth_covariates, self.label)
        return _evaluate(self.basis, points)


@final
@dataclass(frozen=True, eq=False)
class RandomTerm(SavedTerm):
    """`re`: one coefficient for each combination of levels, times the numeric covariates; a ridge penalty. New
    levels get zero."""

    kind: ClassVar[str] = "random"
    factors: tuple[tuple[str, tuple[Level, ...]], ...] = ()
    slopes: tuple[str, ...] = ()  # numeric covariates

    @property
    def own_levels(self) -> dict[str, tuple[Level, ...]]:
        return dict(self.factors)

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        names = [self.label]
        for _, levels in self.factors:
            names = [f"{name}.{level_name(level)}" for name in names for level in levels]
        return tuple(names)

    def design(self, columns: Columns) -> np.ndarray:
        at, slope = self._coded(columns)
        out = np.zeros((at.size, self.size))
        rows = np.flatnonzero(at >= 0)
        out[rows, at[rows]] = slope[rows]
        return out

    def _coded(self, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        """The number of each row's combination of levels, −1 for one that the data did not have, and its multiplier."""
        slope = np.ones(1)
        for name in (*self.slopes, *((self.by,) if self.by is not None and self.by not in self.slopes else ())):
            slope = slope * points_of(columns, (name,), self.label)[:, 0]
        n = len(columns[self.covariates[0]])
        at = combined_codes(columns, self.factors, self.label, n)
        return np.broadcast_to(at, n), np.broadcast_to(slope, n)

    def level_rows(self, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        at, slope = self._coded(columns)
        return at, np.where(at >= 0, slope, 0.0)[:, None]

    @property
    def blocks_alike(self) -> bool:
        return True

    def level_design(self, columns: Columns, at: int) -> np.ndarray:
        assert self.factor_levels is not None
        n = len(columns[self.factor_levels[0]])
        slope = np.ones(n)
        for name in (*self.slopes, *((self.by,) if self.by is not None and self.by not in self.slopes else ())):
            slope = slope * points_of(columns, (name,), self.label)[:, 0]
        return slope[:, None]


@final
@dataclass(frozen=True, eq=False)
class LinearTerm(SavedTerm):
    """One covariate as it is."""

    kind: ClassVar[str] = "linear"

    def design(self, columns: Columns) -> np.ndarray:
        return points_of(columns, self.covariates, f"linear({self.label})")


@final
@dataclass(frozen=True, eq=False)
class FactorTerm(SavedTerm):
    """A 0/1 column for each level that is not the reference."""

    kind: ClassVar[str] = "factor"
    levels: tuple[Level, ...] = ()  # all of them; the first is the reference unless `full`
    full: bool = False

    @property
    def own_levels(self) -> dict[str, tuple[Level, ...]]:
        return {self.covariates[0]: self.levels}

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        return tuple(f"{self.label}{level_name(level)}" for level in (self.levels if self.full else self.levels[1:]))

    def design(self, columns: Columns) -> np.ndarray:
        at = known_codes(columns, self.covariates[0], self.levels, f"factor({self.label})") - (0 if self.full else 1)
        out = np.zeros((at.size, self.size))
        rows = np.flatnonzero(at >= 0)
        out[rows, at[rows]] = 1.0
        return out


def known_codes(columns: Columns, name: str, levels: tuple[Any, ...], what: str) -> np.ndarray:
    at = codes(columns, name, levels, what)
    if (at < 0).any():
        raise DataError(
            f"{what}: column {name!r} must hold one of {listing(levels, most=40)}; "
            f"got {listing(unseen(columns, name, at))}, "
            "for which the data said nothing."
        )
    return at


def combined_codes(
    columns: Columns, factors: tuple[tuple[str, tuple[Any, ...]], ...], what: str, rows: int = 1
) -> np.ndarray:
    """The number of each row's combination of levels of a random term, −1 (with a warning) for one that the data did
    not have."""
    at, known, strange = np.zeros(1, dtype=np.int64), np.ones(1, dtype=bool), []
    for name, levels in factors:
        here = codes(columns, name, levels, what)
        strange += [] if (here >= 0).all() else unseen(columns, name, here)
        at, known = at * len(levels) + here, known & (here >= 0)
    if strange:
        n = max(at.size, rows)
        new = n if known.size == 1 else int(np.sum(~known))
        warn(
            f"{what}: {new} of {n} rows have levels that were not in the data ({listing(strange)}); their effect is "
            "set to its mean, zero.",
            stacklevel=5,
        )
    return np.where(known, at, -1)


_TERMS: dict[str, type[SavedTerm]] = {
    cls.kind: cls for cls in (SmoothTerm, FactorSmoothTerm, RandomTerm, LinearTerm, FactorTerm)
}
