"""Frames and arrays → `Observations`: IID points, transitions of a chain, or outcomes with covariates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from .._base import frames
from .._base.frames import Column, Missing, Table, any_missing, check_finite, check_numeric, incomplete
from .._base.numerics import whole
from ..errors import DataError, InputError, listing, unknown
from .chains import Chains, chains, order_key
from .masks import Masks

Kind = Literal["iid", "transitions", "conditional"]
COMPACT = 2**24  # entries of a byte array from which its outcomes stay bytes


def lag_suffix(lag: int) -> str:
    """What the name of the point `lag` steps before ends in: `_prev`, `_prev2`, …"""
    return "_prev" if lag == 1 else f"_prev{lag}"


@dataclass(frozen=True, repr=False)
class Observations:
    """n outcomes y_t, each with its context x_t, group, weight and the input row that it came from.

    For transitions the context's columns are the outcome's names with `_prev` (and `_prev2`, … with more lags), then
    `extra`. Outcomes and earlier points are float64; other context and group columns are float64, int64 or text (dates
    are float seconds since 1970, durations float seconds, true and false 1 and 0).
    """

    kind: Kind
    outcome: np.ndarray  # (n, d) float64; int8 where it came as a large array of bytes
    outcome_names: tuple[str, ...]
    context: Mapping[str, np.ndarray] = field(default_factory=dict)  # name → (n,); empty for IID data
    lags: int = 0  # transitions only
    extra: tuple[str, ...] = ()  # transitions only: the context columns that are not earlier points
    group: Mapping[str, np.ndarray] = field(default_factory=dict)  # grouping columns, name → (n,)
    sequence: np.ndarray | None = None  # (n,) int: which unbroken sequence; transitions only
    weight: np.ndarray | None = None  # (n,) or None for all one
    offset: np.ndarray | None = None  # (n,) known part of f; None for zero
    row: np.ndarray | None = None  # (n,) position in the input table of y_t
    notes: tuple[str, ...] = ()  # sentences: what was dropped or skipped, how many, why
    backend: Any = None  # narwhals implementation of the input table, for output tables of the same kind
    masks: Masks | None = None  # bits that could not vary or were not seen
    unit: str | None = None  # of directions, as the data gave them (data/units.py); None where nothing was said

    @property
    def n(self) -> int:
        return self.outcome.shape[0]

    @property
    def dim(self) -> int:
        return self.outcome.shape[1]

    @property
    def has_context(self) -> bool:
        return self.kind != "iid"

    @property
    def weights(self) -> np.ndarray:
        """(n,) weights, ones where none were given."""
        return np.ones(self.n) if self.weight is None else self.weight

    @property
    def offsets(self) -> np.ndarray:
        """(n,) offsets, zeros where none were given."""
        return np.zeros(self.n) if self.offset is None else self.offset

    @property
    def shared_offset(self) -> float:
        """The offset of IID data, which must be one number: points elsewhere in Ω belong to no observation."""
        if self.offset is not None and np.ptp(self.offset) > 0.0:
            raise InputError(
                "An offset that differs between IID observations is unknown elsewhere in Ω. Write it into the model as "
                "a function of y, or make the observations with un.conditional(…)."
            )
        return 0.0 if self.offset is None else float(self.offset[0])

    @property
    def holes(self) -> np.ndarray | None:
        """(n, d) missing entries of the outcome that are to be imputed, NaN; None where there are none."""
        return self.masks.missing if self.masks is not None and self.masks.imputed else None

    def previous(self, lag: int = 1) -> np.ndarray:
        """(n, d) points `lag` steps before y_t."""
        return np.column_stack([self.context[name + lag_suffix(lag)] for name in self.outcome_names])

    def take(self, index: np.ndarray) -> Observations:
        """The observations at `index` (booleans or positions), with everything that belongs to them."""

        def pick(array: np.ndarray | None) -> np.ndarray | None:
            return None if array is None else array[index]

        return replace(
            self,
            outcome=self.outcome[index],
            context={name: column[index] for name, column in self.context.items()},
            group={name: column[index] for name, column in self.group.items()},
            sequence=pick(self.sequence),
            weight=pick(self.weight),
            offset=pick(self.offset),
            row=pick(self.row),
            masks=None if self.masks is None else self.masks.take(index),
        )

    def __repr__(self) -> str:
        return f"Observations({'; '.join(self._lines())})"

    def describe(self) -> str:
        """A few lines for people: what was observed, how many, in what context, and what was left out.

        >>> print(iid([0.1, 0.4, 0.3]).describe())
        3 independent outcomes y
        """
        return "\n".join([*self._lines(), *(f"note: {note}" for note in self.notes)])

    def _lines(self) -> list[str]:
        what = self.outcome_names[0] if self.dim == 1 else f"({_few(self.outcome_names)})"
        noun = {"iid": "independent outcomes", "transitions": "transitions of", "conditional": "outcomes"}[self.kind]
        first = f"{self.n:,} {noun} {what}"
        if self.sequence is not None:
            first += f" in {np.unique(self.sequence).size:,} sequences, lags: {self.lags}"
        lines = [first]
        if self.context:
            lines.append(f"context: {_few(self.context)}")
        if self.group:
            lines.append(f"groups: {_few(f'{name} ({np.unique(c).size:,})' for name, c in self.group.items())}")
        for name, column in (("weights", self.weight), ("offsets", self.offset)):
            if column is not None:
                lines.append(f"{name}: from {column.min():.6g} to {column.max():.6g}")
        return lines


def compact(data: Any) -> np.ndarray | None:
    """A large array of single bytes (bool, int8, uint8) as int8: binary vectors of which float64 would hold eight times
    the memory. None for any other data, and for values above 127."""
    plain = isinstance(data, np.ndarray) and not isinstance(data, np.ma.MaskedArray)
    if not plain or data.ndim != 2 or data.dtype.names is not None:
        return None
    if data.dtype.itemsize > 1 or data.dtype.kind not in "bui" or data.size < COMPACT:
        return None
    data = np.ascontiguousarray(data)
    return None if data.dtype.kind == "u" and data.max() > 127 else data.view(np.int8)


def _stand_ins(table: Table, y: str | Sequence[str] | None) -> list[Column]:
    """Columns with the outcome's names and no values, where the values are kept as one array."""
    names = _names(y, "y") or table.names
    if len(names) != len(table.names):
        raise DataError(f"The array has {len(table.names)} columns, but y= names {len(names)}: {listing(names)}.")
    nothing = np.broadcast_to(np.zeros(1), (table.n,))
    return [Column(name, nothing) for name in names]


def _few(names: Iterable[str], most: int = 8) -> str:
    """Names in a row, and how many more there are."""
    names = list(names)
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def iid(
    data: Any,
    y: str | Sequence[str] | None = None,
    *,
    weight: Any = None,
    offset: Any = None,
    group: Any = None,
    missing: Missing = "error",
    unit: str | None = None,
) -> Observations:
    """Independent outcomes y_1 … y_n.

    `data` is a pandas, polars or pyarrow table, a mapping of columns, or an array of shape (n,) or (n, d); `y` names
    the outcome's column or columns (an array's are `y`, or `y1, y2, …`). `weight`, `offset` and `group` are column
    names, or arrays of n values (`group` also a tuple of names). `missing="drop"` leaves out incomplete rows and notes
    how many; "keep" keeps outcomes of which some entries are missing, for models of bits that can do without them.
    `unit` says what directions are written in: "radians", "degrees", "bearings" (degrees clockwise from north), "hours"
    (of the day), or "lonlat" (longitude and latitude in degrees, which become unit vectors y1, y2, y3; where they look
    like radians, say "lonlat_radians" or "lonlat_degrees").

    >>> iid({"x": [0.1, 0.4], "y": [0.2, 0.9]}, y=("x", "y")).outcome.shape
    (2, 2)
    """
    table = _table(data, missing)
    bits = compact(data)
    if bits is not None:
        columns = _stand_ins(table, y)
        made = _rows("iid", table, columns[:1], {}, weight, offset, group, missing)
        names = tuple(column.name for column in columns)
        return replace(made, outcome=bits if made.n == len(bits) else bits[made.row], outcome_names=names)
    outcome = _outcome(table, y)
    return _in_unit(_rows("iid", table, outcome, {}, weight, offset, group, missing), unit)


def conditional(
    data: Any,
    y: str | Sequence[str] | None = None,
    x: Any = None,
    *,
    weight: Any = None,
    offset: Any = None,
    group: Any = None,
    missing: Missing = "error",
    unit: str | None = None,
) -> Observations:
    """Outcomes y_t, each with its covariates x_t.

    As `iid`; `x` names the columns of the context. With outcomes given as an array, `x` is a mapping of arrays, or an
    array of shape (n,) or (n, k), called `x` or `x1, x2, …`. `unit` is that of outcomes, not of covariates.

    >>> conditional({"height": [1.6, 1.8], "age": [20, 30]}, y="height", x="age").context["age"]
    array([20, 30])
    """
    table = _table(data, missing)
    outcome = _outcome(table, y)
    context = _covariates(table, x)
    if taken := [name for name in context if name in {column.name for column in outcome}]:
        raise DataError(f"A column cannot be outcome and context at once; {listing(taken)} is in y= and in x=.")
    return _in_unit(_rows("conditional", table, outcome, context, weight, offset, group, missing), unit)


def transitions(
    data: Any,
    y: str | Sequence[str] | None = None,
    *,
    order: Any = None,
    group: Any = None,
    extra: str | Sequence[str] | Mapping[str, Any] | None = None,
    lags: int = 1,
    max_gap: Any = None,
    missing: Missing = "error",
    weight: Any = None,
    offset: Any = None,
    unit: str | None = None,
) -> Observations:
    """The transitions y_{t−1} → y_t of one or more chains: outcome y_t, context y_{t−1} (and y_{t−2}, … with `lags`).

    `order` is the column that sorts each chain (default: as the rows come); `group`, one or more columns, tells chains
    apart, and no transition crosses from one to another. With an integer `order` a step other than 1 breaks the chain;
    with times or floats a step above `max_gap` does (a number, seconds for dates, or a timedelta; given with an integer
    `order` it replaces the rule of 1). `extra` columns join the context with their value in y_t's row; `weight` and
    `offset` too are those of y_t's row. A chain of fewer than `lags + 1` points gives nothing; `notes` counts them.

    `missing="drop"` leaves out rows without outcome, order or group, which breaks the chain there (with times,
    `max_gap` decides), and transitions without extra, weight or offset.

    The transitions come chain by chain, in the order in which the chains first appear.

    >>> obs = transitions({"s": ["a", "a", "a", "b", "b"], "t": [1, 2, 4, 1, 2], "z": [0.0, 0.1, 0.2, 0.3, 0.4]},
    ...                   y="z", order="t", group="s")
    >>> obs.context["z_prev"], obs.outcome[:, 0], obs.row
    (array([0. , 0.3]), array([0.1, 0.4]), array([1, 4]))
    """
    lags = whole(lags, "lags", 1)
    if missing == "keep":
        raise InputError(
            "Chains do not keep outcomes with missing entries: to fill in y_t one needs the constant of y_{t+1}. Pass "
            "missing='drop', which breaks the chain there."
        )
    table = _table(data, missing)
    bits = compact(data)
    outcome = _outcome(table, y) if bits is None else _stand_ins(table, y)
    names = tuple(column.name for column in outcome)
    groups, extras = _groups(table, group), _extras(table, extra, names, lags)
    linked = chains(table, outcome, groups, None if order is None else order_key(table, order), max_gap, missing)
    place, notes = _places(linked, lags, [*extras.values(), *_attached(table, weight, offset)], missing)
    row = linked.row[place]
    if bits is None:
        points = np.column_stack([column.data for column in outcome]).astype(np.float64, copy=False)
        before = {lag: points[linked.row[place - lag]].T.copy() for lag in range(1, lags + 1)}
    else:
        points = bits
        before = {lag: points[linked.row[place - lag]].T for lag in range(1, lags + 1)}
    earlier = {name + lag_suffix(lag): before[lag][j] for lag in range(1, lags + 1) for j, name in enumerate(names)}
    made = Observations(
        "transitions",
        points[row],
        names,
        earlier | {name: column.take(row) for name, column in extras.items()},
        lags=lags,
        extra=tuple(extras),
        group={name: column.take(row) for name, column in groups.items()},
        sequence=np.unique(linked.label[place], return_inverse=True)[1],
        weight=_weight(table, weight, row),
        offset=_offset(table, offset, row),
        row=row,
        notes=notes,
        backend=table.backend,
    )
    return _in_unit(made, unit)


def _in_unit(obs: Observations, unit: str | None) -> Observations:
    from .units import in_unit

    return in_unit(obs, unit)


def _places(
    linked: Chains, lags: int, attached: Sequence[Column], missing: Missing
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The places in the chains with `lags` points before them and nothing missing beside them, and all notes."""
    start = np.flatnonzero(np.diff(linked.label, prepend=-1))  # first place of each chain
    length = np.diff(start, append=linked.row.size)
    within = np.arange(linked.row.size) - np.repeat(start, length)  # place within the chain
    notes = list(linked.notes)
    if short := int(np.sum(length <= lags)):
        notes.append(
            f"{short:,} of {length.size:,} sequences are shorter than {lags + 1} points and give no transition."
        )
    place = np.flatnonzero(within >= lags)
    gone, note = incomplete(attached, missing, linked.row[place], "transitions")
    if note:
        notes.append(note)
        place = place[~gone]
    if place.size == 0:
        raise DataError(" ".join(["There are no transitions: no sequence is long enough.", *notes]))
    return place, tuple(notes)


def _extras(table: Table, extra: Any, names: tuple[str, ...], lags: int) -> dict[str, Column]:
    """The columns that join the context, under names that the outcomes and their earlier values leave free."""
    if isinstance(extra, Mapping):
        extras = {name: replace(table.column(values, "extra"), name=name) for name, values in extra.items()}
    else:
        extras = {name: table.column(name, "extra") for name in _names(extra, "extra")}
    check_finite(extras.values())
    earlier = [name + lag_suffix(lag) for lag in range(1, lags + 1) for name in names]
    if taken := [name for name in extras if name in (*names, *earlier)]:
        raise DataError(f"extra={listing(taken)} clashes with the outcome and its earlier values; rename the column.")
    return extras


# --- rows and columns ------------------------------------------------------------------------------------------------


def _rows(
    kind: Kind,
    table: Table,
    outcome: Sequence[Column],
    context: Mapping[str, Column],
    weight: Any,
    offset: Any,
    group: Any,
    missing: Missing,
) -> Observations:
    """One observation for each complete row."""
    if missing == "error":
        _refuse_missing_bits(outcome)
    groups = _groups(table, group)
    needed = [*context.values(), *groups.values(), *_attached(table, weight, offset)]
    needed = needed if missing == "keep" else [*outcome, *needed]
    gone, note = (
        incomplete(needed, "error" if missing == "keep" else missing, None, "rows")
        if needed
        else (
            np.zeros(table.n, dtype=bool),
            None,
        )
    )
    row = np.flatnonzero(~gone)
    if row.size == 0:
        raise DataError(f"No rows are left: {note}")
    points = np.column_stack([column.data[row] for column in outcome]).astype(np.float64, copy=False)
    holes, said = _holes(outcome, row) if missing == "keep" else (None, None)
    if holes is not None:
        points[holes] = np.nan
        note = said
    return Observations(
        kind,
        points,
        tuple(column.name for column in outcome),
        {name: column.take(row) for name, column in context.items()},
        group={name: column.take(row) for name, column in groups.items()},
        weight=_weight(table, weight, row),
        offset=_offset(table, offset, row),
        masks=None if holes is None else Masks.holes(holes),
        row=row,
        notes=(note,) if note else (),
        backend=table.backend,
    )


def _refuse_missing_bits(outcome: Sequence[Column]) -> None:
    """Binary vectors with missing entries can do without them, and the error says so."""
    holes = [column for column in outcome if column.missing is not None and column.missing.any()]
    if len(outcome) < 2 or not holes:
        return
    seen = (column.data if column.missing is None else column.data[~column.missing] for column in outcome)
    if not all(np.isin(values, (0, 1)).all() for values in seen):
        return
    mask: Any = holes[0].missing
    gone = int(any_missing(outcome, mask.size).sum())
    raise DataError(
        f"Entries of {gone:,} of {mask.size:,} binary vectors are missing, the first {holes[0].name!r} of row "
        f"{int(np.argmax(mask))} (rows count from 0). Pass missing='keep' to fit the others of each vector, or "
        "missing='drop' to leave these vectors out."
    )


def _holes(outcome: Sequence[Column], row: np.ndarray) -> tuple[np.ndarray | None, str | None]:
    """(n, d) which entries of the outcome are missing, and the note that says how many; None where none is."""
    none = np.zeros(row.size, dtype=bool)
    holes = np.column_stack([none if column.missing is None else column.missing[row] for column in outcome])
    if not holes.any():
        return None, None
    share, whole_rows = holes.mean(), int(holes.all(axis=1).sum())
    note = f"{int(holes.sum()):,} of {holes.size:,} entries of the outcome ({share:.1%}) are missing and were kept."
    if whole_rows:
        note += f" Of {whole_rows:,} rows nothing was observed."
    return holes, note


def _table(data: Any, missing: Missing) -> Table:
    if missing not in ("error", "drop", "keep"):
        raise InputError(unknown("missing", missing, ("error", "drop", "keep")))
    table = frames.table(data)
    if table.n == 0:
        raise DataError("The data have no rows.")
    return table


def _names(names: str | Sequence[str] | None, role: str) -> tuple[str, ...]:
    given = () if names is None else (names,) if isinstance(names, str) else tuple(names)
    if odd := [name for name in given if not isinstance(name, str)]:
        raise DataError(f"{role} must be a column name or a tuple of column names; got {listing(odd)}.")
    if twice := frames.duplicates(given):
        raise DataError(f"{role} names {listing(twice)} more than once.")
    return given


def _outcome(table: Table, y: str | Sequence[str] | None) -> list[Column]:
    """The outcome's columns, numeric and finite; the names of a bare array are `y`'s where given."""
    names = _names(y, "y")
    if not names and not table.bare:
        raise DataError(
            f"y must name the outcome's column or columns; the columns are {listing(table.names, most=40)}."
        )
    if table.bare and names and len(names) != len(table.names):
        raise DataError(f"The array has {len(table.names)} columns, but y= names {len(names)}: {listing(names)}.")
    if table.bare:
        columns = [replace(table.read(name), name=new) for name, new in zip(table.names, names or table.names)]
    else:
        columns = [table.column(name, "y") for name in names]
    check_numeric(columns, "y")
    check_finite(columns)
    return columns


def _covariates(table: Table, x: Any) -> dict[str, Column]:
    if x is None:
        raise DataError("x must name the covariates' columns, or give their values where the outcomes are an array.")
    if isinstance(x, Mapping):
        columns = {name: replace(table.column(values, "x"), name=name) for name, values in x.items()}
    elif isinstance(x, str) or (isinstance(x, list | tuple) and x and all(isinstance(name, str) for name in x)):
        columns = {name: table.column(name, "x") for name in _names(x, "x")}
    else:
        other = frames.table(x)
        if other.n != table.n:
            raise DataError(f"x must have {table.n} rows, as the outcomes have; got {other.n}.")
        columns = {name: replace(other.read(name), name=name) for name in other.names}
        if other.bare:
            columns = {"x" + name[1:]: replace(column, name="x" + name[1:]) for name, column in columns.items()}
    check_finite(columns.values())
    return columns


def _groups(table: Table, group: Any) -> dict[str, Column]:
    if group is None:
        return {}
    if isinstance(group, Mapping):
        return {name: replace(table.column(values, "group"), name=name).whole() for name, values in group.items()}
    if isinstance(group, str) or (isinstance(group, list | tuple) and all(isinstance(name, str) for name in group)):
        return {name: table.column(name, "group").whole() for name in _names(group, "group")}
    return {"group": table.column(group, "group").whole()}


def _attached(table: Table, weight: Any, offset: Any) -> list[Column]:
    """The weight and offset columns, numeric and finite, weights not negative."""
    columns = [table.column(ref, role) for ref, role in ((weight, "weight"), (offset, "offset")) if ref is not None]
    check_numeric(columns, "weight=, offset")
    check_finite(columns)
    if weight is not None:
        negative = np.flatnonzero(columns[0].data < 0)
        if negative.size:
            raise DataError(
                f"Column {columns[0].name!r} holds weights and must not be negative: {negative.size:,} are, first row "
                f"{negative[0]} (rows count from 0)."
            )
    return columns


def _weight(table: Table, ref: Any, row: np.ndarray) -> np.ndarray | None:
    if ref is None:
        return None
    values = table.column(ref, "weight").data[row].astype(np.float64)
    if not values.any():
        raise DataError("Every weight is zero; at least one must be positive.")
    return values


def _offset(table: Table, ref: Any, row: np.ndarray) -> np.ndarray | None:
    return None if ref is None else table.column(ref, "offset").data[row].astype(np.float64)
