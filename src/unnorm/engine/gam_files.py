"""`gam` from files: stretches of rows are read when a pass needs them, and only the columns that the model names.

Parquet files are read by row groups; a folder of them, or a pattern such as "rows-*.csv", is one table in the order of
the files' names. CSV files are turned into Parquet files of the named columns first, in a temporary folder that lasts
as long as the fit (`_base/csv_streams.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from .._base.arrow_columns import from_arrow, labels_from_arrow
from .._base.atomic import temporary_folder
from .._base.csv_streams import TextFiles, text_file
from .._base.extras import extra
from .._base.files import PLAIN, duplicates
from .._base.frames import Table
from .._base.frames import table as as_table
from .._base.paths import found_path
from ..errors import CombinationError, DataError, InputError, listing
from ..terms import arithmetic
from ..terms.levels import Category, level_name
from . import gam_rows
from .gam_parts import PART, cuts, met
from .parts import Held, Recipe
from .placing import PLACING, Sampler

if TYPE_CHECKING:
    from ..terms.specs import Terms
    from .gam_rows import TableRows
    from .parts import Parts
    from .plan import Plan
    from .resources import Resources

_AHEAD = 65_536  # rows in which the end of a context is looked for
_Y, _W, _O = "\0y", "\0w", "\0o"  # response, weights and offset among the columns of a sample


@final
@dataclass(frozen=True)
class Wanted:
    """What a model reads of each row."""

    response: str
    names: tuple[str, ...]
    weights: str | None
    offsets: tuple[str, ...] | None
    missing: str

    def columns(self) -> tuple[str, ...]:
        """The file's columns that this needs."""
        every = (self.response, *self.names, *(self.offsets or ()), *([] if self.weights is None else [self.weights]))
        return tuple(dict.fromkeys(one for name in every for one in _needs(name)))

    @property
    def numbers(self) -> int:
        """Of a row's response, weight and offset, those that there are."""
        trials = arithmetic.counts(self.response) is not None
        return 1 + (self.weights is not None or trials) + (self.offsets is not None)

    def require(self, names: Sequence[str]) -> None:
        """Refuse a table that lacks one of them."""
        for column in self.columns():
            if column not in names:
                Table(tuple(names), 0, lambda name: None).column(column, "formula")  # pyright: ignore


def _needs(name: str) -> Iterable[str]:
    pair = arithmetic.counts(name)
    if pair is not None:
        return [one for part in pair for one in _needs(part)]
    return arithmetic.needs(name) if arithmetic.is_arithmetic(name) else (name,)


class File(NamedTuple):
    """A Parquet file."""

    path: str
    stamp: tuple[int, int]  # when it was written, and its size: a file that changes is another
    n: int


@final
@dataclass(frozen=True)
class FileRows:
    """The rows of Parquet files that a model reads."""

    path: str  # as it was given
    wanted: Wanted
    n: int  # rows of all files
    files: tuple[File, ...]

    def read(self, a: int, b: int) -> TableRows:
        """Rows a … b − 1, those with missing values refused or left out."""
        w = self.wanted
        columns, categories = _range(self.files, w.columns(), a, b)
        table = as_table(columns)
        try:
            rows = gam_rows.read(table, w.response, w.names, w.weights, w.offsets, None, w.missing, "formula")
            return replace(rows, categories=categories)
        except DataError as error:
            if "Every row has" in str(error):
                return no_rows(w)
            raise DataError(f"Rows {a:,} to {b - 1:,} of {self.path!r}: {error}") from error

    def blocks(self) -> Iterator[tuple[int, TableRows]]:
        for a in range(0, self.n, PART):
            yield a, self.read(a, min(a + PART, self.n))

    def sampled(self) -> tuple[TableRows, int]:
        """The rows that terms are built on, and how many rows are fitted."""
        n = self.n
        if self.wanted.missing == "drop" and n > PLACING:
            n = sum(rows.y.size for _, rows in self.blocks())
        sampler, kept, declared = Sampler(n), 0, []
        for _, rows in self.blocks():
            sampler.meet(rows.columns, beside(rows))
            kept += rows.y.size
            if rows.y.size:
                declared.append(rows.categories)
        if kept == 0:
            raise DataError(f"Every row of {self.path!r} has a missing or infinite value: no row is left to fit.")
        rows = sampled_rows(sampler.columns(), self.n, kept)
        return replace(rows, categories={**self._codes(rows.columns), **in_common(declared)}), kept

    def _codes(self, columns: Mapping[str, np.ndarray]) -> dict[str, Category]:
        """The levels of pandas categories of numbers, by size: a Parquet file has forgotten their order."""
        schema = _parquet(self.files[0].path).schema_arrow
        found = {name: columns[name] for name in self.wanted.names if name in schema.names and _is_coded(schema, name)}
        return {name: Category(tuple(sorted(set(one.tolist()), key=float))) for name, one in found.items()}

    def parts(self, plan: Plan, family: str, rows: int, resources: Resources) -> Parts:
        """The rows in parts, where they are to be."""
        return resources.parts(plan, self.recipes(plan, family), rows, family)

    def recipes(self, plan: Plan, family: str) -> list[Recipe]:
        """The parts; rows of one context stay together."""
        if not plan.names:
            return [FileStretch(self, a, b, family) for a, b in cuts(self.n, [], PART)]
        out: list[Recipe] = []
        a = 0
        while a < self.n:
            b = min(a + PART, self.n)
            if b < self.n:
                ahead = self.read(b - 1, min(b + _AHEAD, self.n))
                values = [ahead.columns[name] for name in plan.names]
                new = np.logical_or.reduce([one[1:] != one[:-1] for one in values])
                b = b + int(np.argmax(new)) if new.any() else b
            out.append(FileStretch(self, a, b, family))
            a = b
        return out


@final
@dataclass(frozen=True)
class FileStretch(Recipe):
    """Rows a … b − 1 of a file."""

    rows: FileRows
    a: int
    b: int
    family: str

    @property
    def numbers(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.rows.wanted.numbers

    def make(self, plan: Plan) -> Held:
        read = self.rows.read(self.a, self.b)
        return met(plan, self.family, read.y, read.columns, read.weights, read.offset)


def no_rows(wanted: Wanted) -> TableRows:
    none = np.empty(0)
    return gam_rows.TableRows(
        none,
        dict.fromkeys(wanted.names, none),
        None if wanted.weights is None else none,
        None if wanted.offsets is None else none,
        None,
        (),
    )


def beside(rows: TableRows) -> dict[str, np.ndarray]:
    """Response, weights and offset as columns of a sample."""
    more = {_Y: rows.y}
    more |= {} if rows.weights is None else {_W: rows.weights}
    return more | ({} if rows.offset is None else {_O: rows.offset})


def sampled_rows(columns: dict[str, np.ndarray], n: int, kept: int) -> TableRows:
    """The sample as rows, with a sentence on those of n that were not kept."""
    said = (f"{n - kept} of {n} rows were left out: missing or infinite values.",) if n > kept else ()
    y, w, o = columns.pop(_Y), columns.pop(_W, None), columns.pop(_O, None)
    return gam_rows.TableRows(y, columns, w, o, None, said)


def is_path(data: Any) -> bool:
    """Whether the data are a file."""
    return isinstance(data, str | Path)


def wanted(terms: Terms, weights: Any, offsets: Sequence[Any], groups: Any, missing: str) -> Wanted:
    """What a model reads of a file's rows; arrays beside it are refused."""
    assert terms.response is not None
    if groups is not None:
        raise CombinationError("groups= is for method='CV', which needs the rows in memory: read the file first.")
    for name, one in (("weights", weights), *(("offset", one) for one in offsets)):
        if one is not None and not isinstance(one, str):
            raise InputError(f"With a file, {name} must be the name of one of its columns; got {type(one).__name__}.")
    return Wanted(terms.response, tuple(terms.columns), weights, tuple(offsets) or None, missing)


@contextmanager
def opened(data: str | Path, wanted: Wanted) -> Iterator[FileRows]:
    """The rows of a file, of a folder of files or of a pattern, while the block lasts."""
    paths = _paths(found_path(data))
    try:
        with temporary_folder() as folder:
            texts = {path: text_file(path) for path in paths if not path.name.lower().endswith(".parquet")}
            for one in texts.values():
                wanted.require(one.names)
            whole = TextFiles(list(texts.values()), wanted.columns())
            files = []
            for i, path in enumerate(paths):
                target = path
                if path in texts:
                    target = folder / f"rows-{i:06d}.parquet"
                    whole.write(texts[path], target, PART)
                files.append(_checked(str(target), wanted))
            _check_kinds([str(path) for path in paths], files, wanted)
            n = sum(file.n for file in files)
            if n == 0:
                raise InputError(f"{str(data)!r} has columns but no rows.")
            yield FileRows(str(data), wanted, n, tuple(files))
    finally:
        _group.cache_clear()


def _paths(path: Path) -> list[Path]:
    """The files that a path means, in the order of their names."""
    ends = f"{', '.join(PLAIN[:-1])} or {PLAIN[-1]}"
    if path.is_dir():
        found = sorted(one for one in path.rglob("*") if one.is_file() and one.name.lower().endswith(PLAIN))
        found = [one for one in found if not one.name.startswith((".", "_"))]  # notes that writers leave
        if not found:
            raise InputError(f"The folder {str(path)!r} has no file that ends in {ends}.")
    elif any(mark in path.name for mark in "*?[") and not path.exists():
        found = sorted(one for one in path.parent.glob(path.name) if one.is_file())
        if not found:
            raise InputError(f"No file matches {str(path)!r}.")
    elif path.is_file():
        found = [path]
    else:
        raise InputError(f"There is no file {str(path)!r}.")
    wrong = [one for one in found if not one.name.lower().endswith(PLAIN)]
    if wrong:
        raise InputError(f"{str(wrong[0])!r} must end in {ends}.")
    return found


def _checked(path: str, wanted: Wanted) -> File:
    parquet = _parquet(path)
    names = parquet.schema_arrow.names
    if twice := duplicates(names):
        raise InputError(f"Column names must be distinct; {listing(twice)} came more than once in {path!r}.")
    wanted.require(names)
    return File(path, _stamp(path), parquet.metadata.num_rows)


def _check_kinds(paths: Sequence[str], files: Sequence[File], wanted: Wanted) -> None:
    """Refuse files of which one has numbers where another has text."""
    for name in wanted.columns():
        seen: dict[str, str] = {}
        for path, file in zip(paths, files):
            if file.n and (kind := _kind(_parquet(file.path).schema_arrow.field(name).type)):
                seen.setdefault(kind, path)
        if len(seen) > 1:
            said = " and ".join(f"{kind} in {path!r}" for kind, path in seen.items())
            raise DataError(f"Column {name!r} holds {said}. Write it in the same way to all files.")


def _kind(kind: Any) -> str | None:
    types = extra("pyarrow", "parquet", "Reading files").types
    if types.is_null(kind):
        return None
    if types.is_dictionary(kind):
        return _kind(kind.value_type)
    if types.is_temporal(kind):
        return "times"
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    return "numbers" if number else "text"


def _stamp(path: str) -> tuple[int, int]:
    try:
        about = Path(path).stat()
    except OSError as error:
        raise DataError(f"{path!r} cannot be read any more: {error.strerror}.") from error
    return about.st_mtime_ns, about.st_size


def _parquet(path: str) -> Any:
    pa, pq = extra("pyarrow", "parquet", "Reading files"), extra("pyarrow.parquet", "parquet", "Reading files")
    try:
        return pq.ParquetFile(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path!r} could not be read as Parquet: {str(error).splitlines()[0]}") from error


Categories = Mapping[str, Category]


def _range(
    files: Sequence[File], names: Sequence[str], a: int, b: int
) -> tuple[dict[str, np.ndarray], dict[str, Category]]:
    """Rows a … b − 1 of some columns, and the levels that were declared for them."""
    pieces, declared, low = [], [], 0  # the first row of a file, and of its row groups
    for path, stamp, n in files:
        if low < b and low + n > a:
            start = low
            for group, count in enumerate(_groups(path, stamp)):
                first, last = max(a - start, 0), min(b - start, count)
                if first < last:
                    columns, categories = _group(path, stamp, tuple(names), group)
                    pieces.append({name: column[first:last] for name, column in columns.items()})
                    declared.append(categories)
                start += count
        low += n
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in names}, in_common(declared)


def in_common(declared: Sequence[Categories]) -> dict[str, Category]:
    """The declared levels that all parts of a table agree on."""
    first = declared[0] if declared else {}
    return {name: one for name, one in first.items() if all(other.get(name) == one for other in declared)}


@lru_cache(maxsize=256)
def _groups(path: str, stamp: tuple[int, int]) -> list[int]:
    _unchanged(path, stamp)
    metadata = _parquet(path).metadata
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


def _unchanged(path: str, stamp: tuple[int, int]) -> None:
    if _stamp(path) != stamp:
        raise DataError(f"{path!r} was changed while it was being fitted. Fit it again when it is written.")


@lru_cache(maxsize=3)  # neighbouring stretches share a row group
def _group(
    path: str, stamp: tuple[int, int], names: tuple[str, ...], group: int
) -> tuple[dict[str, np.ndarray], dict[str, Category]]:
    pa = extra("pyarrow", "parquet", "Reading files")
    try:
        table = _parquet(path).read_row_group(group, columns=list(names))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path!r} is damaged: {str(error).splitlines()[0]}") from error
    _unchanged(path, stamp)  # the rows are those that were counted
    columns, categories = {}, {}
    for name in names:
        levels = _declared(table, name)
        if levels is None and _is_coded(table.schema, name):
            columns[name] = labels_from_arrow(name, *_coded(table[name]))
        elif levels is None:
            columns[name] = from_arrow(name, table[name])
        else:
            labels = tuple(level_name(level) for level in levels)
            columns[name] = labels_from_arrow(name, table[name].combine_chunks(), labels)
            categories[name] = Category(labels, bool(table.schema.field(name).type.ordered))
    return columns, categories


def _declared(table: Any, name: str) -> list[Any] | None:
    """The levels of a category in their own order: of pandas, whose metadata say so, or of a type that is ordered;
    None for any other column."""
    types = extra("pyarrow", "parquet", "Reading files").types
    kind = table.schema.field(name).type
    if not types.is_dictionary(kind) or not table[name].num_chunks:
        return None
    if not _says_category(table.schema, name) and not kind.ordered:
        return None
    return table[name].combine_chunks().dictionary.to_pylist()


def _says_category(schema: Any, name: str) -> bool:
    """Whether pandas wrote the column as a category."""
    about = (schema.pandas_metadata or {}).get("columns", [])
    return any(one.get("field_name") == name and one.get("pandas_type") == "categorical" for one in about)


def _is_coded(schema: Any, name: str) -> bool:
    """Whether it is a category of numbers, which a Parquet file has as numbers: R's factor(1:3), and no slope."""
    return _says_category(schema, name) and not extra("pyarrow", "parquet", "Reading files").types.is_dictionary(
        schema.field(name).type
    )


def _coded(column: Any) -> tuple[Any, tuple[str, ...]]:
    """Numbers as a column of levels, and the levels' names."""
    coded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    return coded, tuple(level_name(value) for value in coded.dictionary.to_pylist())
