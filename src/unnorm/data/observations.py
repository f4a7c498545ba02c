"""Frames and arrays → `Observations`: IID points, transitions of a chain, or outcomes with covariates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from .._base.categories import Category
from .._base.column_checks import incomplete
from .._base.frames import Column, Missing, Table
from .._base.numerics import whole
from .._base.words import option
from ..errors import DataError, InputError, listing
from .chains import Chains, chains, order_key
from .masks import Masks
from .placing import Placed
from .table_columns import (
    attached,
    column_names,
    compact,
    covariate_columns,
    declared,
    extra_columns,
    group_columns,
    holes_of,
    lag_suffix,
    offset_at,
    outcome_columns,
    read_table,
    refuse_missing_bits,
    stand_ins,
    weight_at,
)

Kind = Literal["iid", "transitions", "conditional"]


@dataclass(frozen=True, repr=False)
class Observations:
    """n outcomes y_t, each with its context x_t, group, weight and the input row that it came from.

    For transitions the context's columns are the outcome's names with `_prev` (and `_prev2`, … with more lags), then
    `extra`. Outcomes and earlier points are float64; other context and group columns are float64, int64 or text (dates
    are float seconds since 1970, durations float seconds, true and false 1 and 0).

    Example:
        >>> import unnorm as un
        >>> obs = un.transitions({"i": [1, 2, 3], "z": [0.1, 0.4, 0.2]}, y="z", order="i")
        >>> obs.n, list(obs.context), obs.outcome[:, 0]
        (2, ['z_prev'], array([0.4, 0.2]))
    """

    kind: Kind  #: "iid", "transitions" or "conditional"
    outcome: np.ndarray  #: (n, d) float64; int8 where it came as a large array of bytes
    outcome_names: tuple[str, ...]  #: of the outcome's columns
    context: Mapping[str, np.ndarray] = field(default_factory=dict)  #: name → (n,); empty for IID data
    lags: int = 0  #: transitions only
    extra: tuple[str, ...] = ()  #: transitions only: the context columns that are not earlier points
    group: Mapping[str, np.ndarray] = field(default_factory=dict)  #: grouping columns, name → (n,)
    sequence: np.ndarray | None = None  #: (n,) int: which unbroken sequence; transitions only
    weight: np.ndarray | None = None  #: (n,) or None for all one
    offset: np.ndarray | None = None  #: (n,) known part of f; None for zero
    row: np.ndarray | None = None  #: (n,) position in the input table of y_t
    notes: tuple[str, ...] = ()  #: sentences: what was dropped or skipped, how many, why
    backend: Any = None  #: narwhals implementation of the input table, for output tables of the same kind
    masks: Masks | None = None  #: bits that could not vary or were not seen
    unit: str | None = None  #: of directions, as the data gave them (data/units.py); None where nothing was said
    beside: Mapping[str, np.ndarray] = field(default_factory=dict)  #: other outcomes of the same rows, as durations
    categories: Mapping[str, Category] = field(default_factory=dict)  #: levels of columns that have their own order
    placed: Placed | None = None  #: which of the domain's windows each context has, once the two have met

    @property
    def n(self) -> int:
        """The number of observations."""
        return self.outcome.shape[0]

    @property
    def dim(self) -> int:
        """d, the number of the outcome's coordinates."""
        return self.outcome.shape[1]

    @property
    def has_context(self) -> bool:
        """Whether outcomes depend on a context."""
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

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """Group and context columns by name; the context's where both have it."""
        return {**self.group, **self.context}

    def previous(self, lag: int = 1) -> np.ndarray:
        """(n, d) points `lag` steps before y_t.

        Args:
            lag: 1 for y_{t−1}, 2 for y_{t−2}, …
        """
        return np.column_stack([self.context[name + lag_suffix(lag)] for name in self.outcome_names])

    def take(self, index: np.ndarray) -> Observations:
        """The observations at `index` (booleans or positions), with everything that belongs to them.

        Args:
            index: booleans or positions.
        """

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
            beside={name: column[index] for name, column in self.beside.items()},
            placed=None if self.placed is None else self.placed.take(index),
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

    Args:
        data: a pandas, polars or pyarrow table, a mapping of columns, or an array of shape (n,) or (n, d).
        y: the outcome's column or columns; those of an array are called `y`, or `y1, y2, …`.
        weight: a column, or n values: how often each outcome counts.
        offset: a column, or n values: the known part of f.
        group: a column, a tuple of columns, or n values: to fit or to cluster by.
        missing: "error"; "drop" leaves out incomplete rows and notes how many; "keep" keeps outcomes of which some
            entries are missing, for models of bits that can do without them.
        unit: what directions are written in: "radians", "degrees", "bearings" (degrees clockwise from north), "hours"
            (of the day), or "lonlat" (longitude and latitude in degrees, which become unit vectors y1, y2, y3; where
            they look like radians, say "lonlat_radians" or "lonlat_degrees").

    >>> iid({"x": [0.1, 0.4], "y": [0.2, 0.9]}, y=("x", "y")).outcome.shape
    (2, 2)
    """
    table = read_table(data, missing)
    bits = compact(data)
    if bits is not None:
        columns = stand_ins(table, y)
        made = _rows("iid", table, columns[:1], {}, weight, offset, group, missing)
        names = tuple(column.name for column in columns)
        return replace(made, outcome=bits if made.n == len(bits) else bits[made.row], outcome_names=names)
    outcome = outcome_columns(table, y)
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

    Args:
        data: a table, a mapping of columns, or an array of outcomes, as in `iid`.
        y: the outcome's column or columns.
        x: the columns of the context. With outcomes given as an array, a mapping of arrays, or an array of shape (n,)
            or (n, k), called `x` or `x1, x2, …`.
        weight: a column, or n values: how often each outcome counts.
        offset: a column, or n values: the known part of f.
        group: a column, a tuple of columns, or n values.
        missing: "error", "drop" or "keep", as in `iid`.
        unit: of outcomes that are directions, as in `iid`; not of covariates.

    >>> conditional({"height": [1.6, 1.8], "age": [20, 30]}, y="height", x="age").context["age"]
    array([20, 30])
    """
    table = read_table(data, missing)
    outcome = outcome_columns(table, y)
    context = covariate_columns(table, x)
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
    beside: str | Sequence[str] | None = None,
) -> Observations:
    """The transitions y_{t−1} → y_t of one or more chains: outcome y_t, context y_{t−1} (and y_{t−2}, … with `lags`).

    The transitions come chain by chain, in the order in which the chains first appear. A chain of fewer than `lags + 1`
    points gives nothing; `notes` counts them.

    Args:
        data: a table, a mapping of columns, or an array, as in `iid`.
        y: the outcome's column or columns.
        order: the column that sorts each chain; default: as the rows come. With integers, a step other than 1 breaks
            the chain.
        group: one or more columns that tell chains apart; no transition crosses from one chain to another.
        extra: columns that join the context with their value in y_t's row, and written `duration_prev` with that in the
            row of y_{t−1}.
        lags: how many earlier points are in the context.
        max_gap: a step of `order` above it breaks the chain: a number, seconds for dates, "20min", a timedelta. With
            integers it replaces the rule of 1.
        missing: "error"; "drop" leaves out rows without outcome, order or group, which breaks the chain there (with
            times, `max_gap` decides), and transitions without extra, weight or offset; "keep" as in `iid`.
        weight: a column, or values: of y_t's row.
        offset: a column, or values: of y_t's row.
        unit: of outcomes that are directions, as in `iid`.
        beside: columns of y_t's row that are outcomes too, as how long a fixation lasts (`Fit.beside`): they are kept,
            and the chain is not conditioned on them.

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
    table = read_table(data, missing)
    bits = compact(data)
    outcome = outcome_columns(table, y) if bits is None else stand_ins(table, y)
    names = tuple(column.name for column in outcome)
    groups = group_columns(table, group)
    extras, at_start = extra_columns(table, extra, names, lags)
    linked = chains(table, outcome, groups, None if order is None else order_key(table, order), max_gap, missing)
    others = {name: table.column(name, "beside") for name in column_names(beside, "beside")}
    needed = [*extras.values(), *others.values(), *attached(table, weight, offset)]
    place, notes = _places(linked, lags, needed, missing, list(at_start.values()))
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
        earlier
        | {name: column.take(row) for name, column in extras.items()}
        | {name: column.take(linked.row[place - 1]) for name, column in at_start.items()},
        lags=lags,
        extra=(*extras, *at_start),
        group={name: column.take(row) for name, column in groups.items()},
        sequence=np.unique(linked.label[place], return_inverse=True)[1],
        weight=weight_at(table, weight, row),
        offset=offset_at(table, offset, row),
        row=row,
        notes=notes,
        backend=table.backend,
        beside={name: column.take(row) for name, column in others.items()},
        categories=declared({**groups, **extras, **at_start}),
    )
    return _in_unit(made, unit)


def _in_unit(obs: Observations, unit: str | None) -> Observations:
    from .units import in_unit

    return in_unit(obs, unit)


def _places(
    linked: Chains, lags: int, attached: Sequence[Column], missing: Missing, at_start: Sequence[Column] = ()
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
    gone, note = incomplete(at_start, missing, linked.row[place - 1], "transitions")
    if note:
        notes.append(note)
        place = place[~gone]
    if place.size == 0:
        said = " ".join(["There are no transitions: no sequence is long enough.", *notes])
        raise DataError(said.replace("(max_gap)", f"({option('max_gap')})"))  # notes name no options, errors do
    return place, tuple(notes)


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
        refuse_missing_bits(outcome)
    groups = group_columns(table, group)
    needed = [*context.values(), *groups.values(), *attached(table, weight, offset)]
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
    holes, said = holes_of(outcome, row) if missing == "keep" else (None, None)
    if holes is not None:
        points[holes] = np.nan
        note = said
    return Observations(
        kind,
        points,
        tuple(column.name for column in outcome),
        {name: column.take(row) for name, column in context.items()},
        group={name: column.take(row) for name, column in groups.items()},
        weight=weight_at(table, weight, row),
        offset=offset_at(table, offset, row),
        masks=None if holes is None else Masks.holes(holes),
        row=row,
        notes=(note,) if note else (),
        backend=table.backend,
        categories=declared({**groups, **context}),
    )
