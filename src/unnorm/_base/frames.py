"""The border to other people's tables: pandas, polars, pyarrow, mappings, arrays and files in; the same kinds out.

A `Table` reads columns on demand. A `Column` is one of five things (integers, floats, times, durations, text) with a
mask of what is missing; nothing downstream needs to know which library it came from.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from ..errors import DataError, listing
from .categories import as_series, check_labels, with_labels
from .files import duplicates, nameless, read_table, reads_as_number
from .words import option

__all__ = [
    "Column",
    "Missing",
    "Table",
    "duplicates",
    "only",
    "read_table",
    "table",
    "to_column",
    "to_native",
]

Missing = Literal["error", "drop", "keep"]
KINDS = "a pandas, polars or pyarrow table, a mapping of columns, or an array"
_EPOCH = np.datetime64(0, "us")
_LONGEST_LABEL = 256  # characters; longer text stays as Python strings, since NumPy pads every label to the longest


@dataclass(frozen=True)
class Column:
    """One column: int64, float64, datetime64[us] or timedelta64[us] values; for text, positions in `levels`."""

    name: str
    data: np.ndarray  # (n,)
    missing: np.ndarray | None = None  # (n,) booleans; None when nothing is missing
    levels: np.ndarray | None = None  # the distinct labels of a text column
    declared: bool = False  # the order of `levels` is the user's: a pandas category, a polars Enum
    ordered: bool = False  # and is one of size: an ordered pandas category, a polars Enum
    order: tuple[float, ...] | None = None  # of a category of numbers: they are the data, and these its levels

    @property
    def kind(self) -> str:
        """'integers', 'floats', 'times', 'durations' or 'text'."""
        if self.levels is not None:
            return "text"
        return {"i": "integers", "f": "floats", "M": "times", "m": "durations"}[self.data.dtype.kind]

    @property
    def numeric(self) -> bool:
        return self.kind in ("integers", "floats")

    def take(self, rows: np.ndarray | slice) -> np.ndarray:
        """The values at these rows: numbers as they are, times and durations as float seconds, text as labels."""
        if self.levels is not None:
            return self.levels[self.data[rows]]
        if self.data.dtype.kind == "M":
            return (self.data[rows] - _EPOCH) / np.timedelta64(1, "s")
        if self.data.dtype.kind == "m":
            return self.data[rows] / np.timedelta64(1, "s")
        return self.data[rows]

    def codes(self) -> tuple[np.ndarray, int]:
        """Non-negative int64 codes, equal where the values are equal, and a bound on them (any code where missing)."""
        if self.levels is not None:
            return self.data, max(len(self.levels), 1)
        if self.data.dtype.kind == "i" and self.data.size:
            low, high = int(self.data.min()), int(self.data.max())
            if high - low < 4 * self.data.size + 1000:  # a dense range needs no sorting
                return self.data - low, high - low + 1
        distinct, codes = np.unique(self.data, return_inverse=True)
        return codes.astype(np.int64), max(distinct.size, 1)

    def whole(self) -> Column:
        """A float column of whole numbers with gaps as the integers it was: pandas and CSV files turn
        integers with missing cells into floats."""
        if self.data.dtype.kind != "f" or self.missing is None:
            return self
        there = self.data[~self.missing]
        if there.size == 0 or not np.all(np.isfinite(there) & (there == np.floor(there)) & (np.abs(there) < 2.0**53)):
            return self
        return Column(self.name, np.where(self.missing, 0.0, self.data).astype(np.int64), self.missing)

    def as_times(self) -> Column:
        """A text column of ISO 8601 dates as times (UTC where a zone is given); any other column as it is."""
        if self.levels is None or not all("-" in str(label) for label in self.levels[:1]):
            return self
        try:
            times = [_naive(datetime.fromisoformat(label)) for label in self.levels.tolist()]
        except ValueError:
            return self
        return Column(self.name, np.array(times, dtype="datetime64[us]")[self.data], self.missing)


@dataclass(frozen=True)
class Table:
    """Columns by name, read on demand; `bare` when the data came as an array without column names."""

    names: tuple[str, ...]
    n: int
    read: Callable[[str], Column]
    backend: Any = None
    bare: bool = False

    def column(self, ref: Any, role: str) -> Column:
        """The column that `ref` names, or `ref` itself where it is an array of n values."""
        if isinstance(ref, str):
            if ref not in self.names:
                raise DataError(self._unknown(ref, role))
            return self.read(ref)
        column = to_column(role, ref)
        if column.data.size != self.n:
            raise DataError(
                f"{role} must be a column name or an array of {self.n} values, one for each row; "
                f"got {column.data.size} values."
            )
        return column

    def _unknown(self, name: str, role: str) -> str:
        if self.bare:
            return f"{role}={name!r} names a column, but the data are a bare array; pass an array of {self.n} values."
        return _no_column(name, role, self.names)


def _no_column(name: str, role: str, names: Sequence[str]) -> str:
    close = closest(name, names)
    hint = f" Did you mean {close!r}?" if close is not None else ""
    if close is None and any(reads_as_number(one) for one in names):
        hint = f" If the file has no line of names, {nameless()}."
    return (
        f"There is no column {name!r} (asked for by {option(role)}); the columns are {listing(names, most=40)}.{hint}"
    )


def closest(name: str, names: Sequence[str]) -> str | None:
    """The name that was probably meant: almost the same letters, in capitals or not, or the only one that has it as a
    word, as 'FIX_X' has x.

    >>> closest("x", ["TRIAL", "FIX_X", "FIX_Y"]), closest("subjct", ["Subject"]), closest("z", ["x", "y"])
    ('FIX_X', 'Subject', None)
    """
    plain = {one.lower(): one for one in reversed(names)}
    if found := difflib.get_close_matches(name.lower(), plain, n=1):
        return plain[found[0]]
    holding = [one for one in names if name.lower() in re.split(r"[\W_]+", one.lower())]
    return holding[0] if len(holding) == 1 else None


def only(**roles: str | Sequence[str] | None) -> Callable[[list[str]], list[str]]:
    """For `read_table`: the columns that these options name, each of which must be there."""

    def choose(names: list[str]) -> list[str]:
        wanted: dict[str, None] = {}
        for role, given in roles.items():
            for name in (given,) if isinstance(given, str) else given or ():
                if name not in names:
                    raise DataError(_no_column(name, role, names))
                wanted[name] = None
        return list(wanted)

    return choose


def table(data: Any) -> Table:
    """Any table or array as a `Table`."""
    if isinstance(data, Table):
        return data
    if isinstance(data, Mapping):
        return _from_mapping(data)
    if isinstance(data, np.ndarray) and data.dtype.names is not None:
        return _from_mapping({name: data[name] for name in data.dtype.names})
    if isinstance(data, np.ndarray | list | tuple):
        return _from_array(data)
    return _from_frame(data)


def _from_frame(data: Any) -> Table:
    import narwhals as nw

    try:
        native = nw.from_native(data, pass_through=True, allow_series=True)
    except Exception as error:  # each library has its own errors, e.g. for duplicate column names
        raise DataError(f"The table could not be read: {_line(error)}") from error
    if isinstance(native, nw.LazyFrame):
        native = native.collect()
    if isinstance(native, nw.Series):
        name = native.name if isinstance(native.name, str) and native.name else "y"
        series = native
        return Table((name,), len(native), lambda name: _from_series(name, series), native.implementation, bare=True)
    if isinstance(native, nw.DataFrame):
        frame = native
        try:
            names = tuple(frame.columns)
        except Exception as error:
            raise DataError(f"The table could not be read: {_line(error)}") from error
        odd = [name for name in names if not isinstance(name, str)]
        if odd:
            raise DataError(
                f"Column names must be strings; got {listing(odd)}. Rename them, e.g. df.columns = ['x', 'y']."
            )
        twice = duplicates(names)
        if twice:
            raise DataError(f"Column names must be distinct; {listing(twice)} came more than once.")
        return Table(names, len(frame), lambda name: _from_series(name, frame[name]), frame.implementation)
    if hasattr(data, "__array__"):
        return _from_array(np.asarray(data))
    raise DataError(f"The data must be {KINDS}; got {type(data).__name__}.")


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _from_mapping(data: Mapping[Any, Any]) -> Table:
    odd = [name for name in data if not isinstance(name, str)]
    if odd:
        raise DataError(f"Column names must be strings; got {listing(odd)}.")
    if not data:
        raise DataError("The table has no columns.")
    lengths = {name: len(v) if hasattr(v, "__len__") else to_column(name, v).data.size for name, v in data.items()}
    n = next(iter(lengths.values()))
    if any(length != n for length in lengths.values()):
        raise DataError(
            "The columns must have the same length; got " + ", ".join(f"{k!r}: {v}" for k, v in lengths.items()) + "."
        )
    return Table(tuple(data), n, lambda name: to_column(name, data[name]))


def _from_array(data: Any) -> Table:
    try:
        array = data if isinstance(data, np.ma.MaskedArray) else np.asarray(data)
    except ValueError as error:  # ragged nested lists
        raise DataError(f"The data must be {KINDS} of shape (n,) or (n, d); got a ragged list.") from error
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise DataError(
            f"An array of outcomes must have shape (n,) or (n, d); got {array.shape}. "
            "Several chains: stack their points into one array and tell the chains apart with group=."
        )
    if array.ndim == 1:
        return Table(("y",), array.size, lambda name: to_column(name, array), bare=True)
    names = ("y",) if array.shape[1] == 1 else tuple(f"y{j + 1}" for j in range(array.shape[1]))
    return Table(names, array.shape[0], lambda name: to_column(name, array[:, names.index(name)]), bare=True)


def to_column(name: str, values: Any) -> Column:
    """A column from an array, a list or a series."""
    if isinstance(values, np.ma.MaskedArray):
        column = to_column(name, values.data)
        mask = np.ma.getmaskarray(values)
        return Column(name, column.data, mask if column.missing is None else mask | column.missing, column.levels)
    if not isinstance(values, np.ndarray | list | tuple | range | str | Mapping):
        import narwhals as nw

        values = as_series(values)
        native = nw.from_native(values, pass_through=True, series_only=True)
        if isinstance(native, nw.Series):
            return _from_series(name, native)
    try:
        array = np.asarray(values)
    except ValueError:
        array = None
    if array is None or array.ndim != 1:
        shape = "a ragged list" if array is None else f"shape {array.shape}"
        raise DataError(f"Column {name!r} must have one value for each row, shape (n,); got {shape}.")
    if isinstance(values, list | tuple) and array.dtype.kind in "US" and not all(isinstance(v, str) for v in values):
        array = np.array(values, dtype=object)  # NumPy has turned None or numbers into text
    kind = array.dtype.kind
    if kind in "bi":
        return Column(name, array.astype(np.int64))
    if kind == "u":
        return (
            _text(name, array.tolist())
            if array.size and array.max() > 2**63 - 1
            else Column(name, array.astype(np.int64))
        )
    if kind == "f":
        return _floats(name, array)
    if kind in "Mm":
        array = array.astype(f"{'datetime' if kind == 'M' else 'timedelta'}64[us]")
        missing = np.isnat(array)
        return Column(name, array, missing if missing.any() else None)
    if kind == "U":  # of a list its own labels, to the last character: NumPy's end before a NUL
        return _text(name, array.tolist() if isinstance(values, np.ndarray) else list(values))
    if kind in "OT":
        return _from_objects(name, array.tolist())
    raise DataError(f"Column {name!r} must hold numbers, dates or text; got {array.dtype}.")


def _floats(name: str, array: np.ndarray) -> Column:
    array = np.asarray(array, dtype=np.float64)
    missing = np.isnan(array)
    return Column(name, array, missing if missing.any() else None)


def _text(name: str, values: Sequence[Any], missing: np.ndarray | None = None) -> Column:
    place: dict[Any, int] = {}
    codes = np.fromiter((place.setdefault(value, len(place)) for value in values), dtype=np.int64, count=len(values))
    check_labels(name, (label for label in place if isinstance(label, str)))  # `str` of numpy.str_ drops a NUL
    return Column(name, codes, missing, _levels(name, [str(label) for label in place]))


def _levels(name: str, labels: list[str]) -> np.ndarray:
    check_labels(name, labels)
    long = max(map(len, labels), default=0) > _LONGEST_LABEL
    return np.array(labels, dtype=object if long else np.str_)


def _is_missing(value: Any) -> bool:
    # pandas.NA and NaT are told by their type's name: pandas need not be installed
    return (
        value is None or (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")
    )


def _from_objects(name: str, values: Sequence[Any]) -> Column:
    if set(map(type, values)) == {str}:  # quick, and the usual case
        return _text(name, values)
    missing = np.fromiter(map(_is_missing, values), dtype=bool, count=len(values))
    gaps = missing if missing.any() else None
    kinds = {type(value) for value, gone in zip(values, missing.tolist()) if not gone}

    def all_are(*types: type) -> bool:
        return all(issubclass(kind, types) for kind in kinds)

    def filled(blank: Any) -> list[Any]:
        return list(values) if gaps is None else [blank if gone else v for v, gone in zip(values, missing.tolist())]

    if all_are(str):
        return _text(name, filled(""), gaps) if kinds else Column(name, np.full(len(values), np.nan), gaps)
    if all_are(Integral) and max(abs(int(v)) for v in filled(0)) < 2**63:
        return Column(name, np.array(filled(0), dtype=np.int64), gaps)
    if all_are(Real, Decimal):
        return _floats(name, np.array(filled(np.nan), dtype=np.float64))
    if all_are(date):
        times = [np.datetime64("NaT", "us") if gone else _naive(v) for v, gone in zip(values, missing.tolist())]
        return Column(name, np.array(times, dtype="datetime64[us]"), gaps)
    if all_are(timedelta):
        return Column(name, np.array(filled(timedelta(0)), dtype="timedelta64[us]"), gaps)
    if all_are(str, Real):
        return _text(name, [str(value) for value in filled("")], gaps)
    odd = sorted(kind.__name__ for kind in kinds)
    raise DataError(f"Column {name!r} must hold numbers, dates or text; got {', '.join(odd)}.")


def _naive(value: date) -> np.datetime64:
    if isinstance(value, datetime):
        offset = value.utcoffset()
        value = value.replace(tzinfo=None) - (timedelta(0) if offset is None else offset)
    return np.datetime64(value, "us")


def _from_series(name: str, series: Any) -> Column:
    import narwhals as nw

    series = with_labels(series)
    dtype = series.dtype
    if dtype.is_float() or isinstance(dtype, nw.Decimal):
        return _floats(name, series.cast(nw.Float64).to_numpy())
    if isinstance(dtype, nw.String | nw.Categorical | nw.Enum) and importlib.util.find_spec("pyarrow") is not None:
        column = _from_dictionary(name, series.to_arrow())
        if column is not None:
            enum = isinstance(dtype, nw.Enum)
            declared = enum or (isinstance(dtype, nw.Categorical) and series.implementation.is_pandas_like())
            ordered = (declared or series.implementation.is_pyarrow()) and nw.is_ordered_categorical(series)
            return replace(column, declared=declared or ordered, ordered=ordered)
    if isinstance(dtype, nw.String | nw.Categorical | nw.Enum | nw.Object | nw.Unknown):
        column = _from_objects(name, series.to_list())
        if column.numeric and isinstance(dtype, nw.Categorical | nw.Enum) and series.implementation.is_pandas_like():
            order = tuple(series.to_native().cat.categories.tolist())
            return replace(column, declared=True, ordered=nw.is_ordered_categorical(series), order=order)
        return column
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool) if series.null_count() else None

    def filled(column: Any, blank: Any) -> np.ndarray:
        return (column if missing is None else column.fill_null(blank)).to_numpy()

    if dtype.is_integer():
        data = filled(series, 0)
        if data.dtype.kind == "u" and data.size and data.max() > 2**63 - 1:
            return _text(name, data.tolist(), missing)
        return Column(name, np.asarray(data, dtype=np.int64), missing)
    if isinstance(dtype, nw.Boolean):
        return Column(name, np.asarray(filled(series, False), dtype=np.int64), missing)
    if isinstance(dtype, nw.Datetime | nw.Date):
        stamps = filled(series.dt.timestamp("us"), 0)
        return Column(name, np.asarray(stamps, dtype=np.int64).view("datetime64[us]"), missing)
    if isinstance(dtype, nw.Duration):
        spans = filled(series.dt.total_microseconds(), 0)
        return Column(name, np.asarray(spans, dtype=np.int64).view("timedelta64[us]"), missing)
    if missing is not None and missing.all():
        return Column(name, np.full(missing.size, np.nan), missing)
    raise DataError(f"Column {name!r} must hold numbers, dates or text; got {dtype}.")


def _from_dictionary(name: str, array: Any) -> Column | None:
    """A text column coded by pyarrow, several times as fast as Python does it; None where the labels are not text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    labels = array.dictionary.to_pylist()
    if not all(isinstance(label, str) for label in labels):
        return None
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    codes = pc.fill_null(array.indices, 0).to_numpy(zero_copy_only=False)  # pyright: ignore[reportAttributeAccessIssue]
    return Column(name, codes.astype(np.int64), missing, _levels(name, labels or [""]))


def to_native(columns: Mapping[str, Any], backend: Any = None) -> Any:
    """A table of the user's own kind: `backend` as in `Observations.backend`; a dict of arrays where it is None."""
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    if backend is None:
        return arrays
    import narwhals as nw

    plain = {name: array.tolist() if array.dtype.kind in "UO" else array for name, array in arrays.items()}
    return nw.from_dict(plain, backend=backend).to_native()
