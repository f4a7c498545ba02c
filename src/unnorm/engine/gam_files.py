"""`gam` from files: stretches of rows are read when a pass needs them, and only the columns that the model names.

Parquet files are read by row groups; a folder of them, or a pattern such as "rows-*.csv", is one table in the order of
the files' names. CSV files are turned into Parquet files of the named columns first, in a temporary folder that lasts
as long as the fit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from .._base.extras import extra
from .._base.files import MISSING_CELLS, PLAIN, column_from_arrow
from .._base.frames import Table
from .._base.frames import table as as_table
from ..errors import CombinationError, DataError, InputError
from ..terms import arithmetic
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
        table = as_table(_range(self.files, w.columns(), a, b))
        try:
            return gam_rows.read(table, w.response, w.names, w.weights, w.offsets, None, w.missing, "formula")
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
        sampler, kept = Sampler(n), 0
        for _, rows in self.blocks():
            sampler.meet(rows.columns, beside(rows))
            kept += rows.y.size
        if kept == 0:
            raise DataError(f"Every row of {self.path!r} has a missing or infinite value: no row is left to fit.")
        return sampled_rows(sampler.columns(), self.n, kept), kept

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
    paths = _paths(Path(data))
    try:
        with tempfile.TemporaryDirectory(prefix="unnorm-") as folder:
            files = []
            for i, path in enumerate(paths):
                name, target = path.name.lower(), str(path)
                if not name.endswith(".parquet"):
                    target = str(Path(folder) / f"rows-{i:06d}.parquet")
                    _as_parquet(path, target, wanted, "\t" if ".tsv" in name else None)
                files.append(_checked(target, wanted))
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
    for column in wanted.columns():
        if column not in names:
            Table(tuple(names), 0, lambda name: None).column(column, "formula")  # pyright: ignore
    return File(path, _stamp(path), parquet.metadata.num_rows)


def _stamp(path: str) -> tuple[int, int]:
    about = Path(path).stat()
    return about.st_mtime_ns, about.st_size


def _parquet(path: str) -> Any:
    pa, pq = extra("pyarrow", "parquet", "Reading files"), extra("pyarrow.parquet", "parquet", "Reading files")
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path!r} could not be read as Parquet: {str(error).splitlines()[0]}") from error


def _range(files: Sequence[File], names: Sequence[str], a: int, b: int) -> dict[str, np.ndarray]:
    """Rows a … b − 1 of some columns."""
    pieces, low = [], 0  # the first row of a file, and of its row groups
    for path, stamp, n in files:
        if low < b and low + n > a:
            start = low
            for group, count in enumerate(_groups(path, stamp)):
                first, last = max(a - start, 0), min(b - start, count)
                if first < last:
                    columns = _group(path, stamp, tuple(names), group)
                    pieces.append({name: column[first:last] for name, column in columns.items()})
                start += count
        low += n
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in names}


@lru_cache(maxsize=256)
def _groups(path: str, stamp: tuple[int, int]) -> list[int]:
    if _stamp(path) != stamp:
        raise DataError(f"{path!r} was changed while it was being fitted.")
    metadata = _parquet(path).metadata
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


@lru_cache(maxsize=3)  # neighbouring stretches share a row group
def _group(path: str, stamp: tuple[int, int], names: tuple[str, ...], group: int) -> dict[str, np.ndarray]:
    table = _parquet(path).read_row_group(group, columns=list(names))
    return {name: column_from_arrow(table[name]) for name in names}


def _as_parquet(path: Path, target: str, wanted: Wanted, mark: str | None) -> None:
    """The named columns of a CSV file as Parquet, a stretch at a time."""
    pa, csv = extra("pyarrow", "parquet", "Reading files"), extra("pyarrow.csv", "parquet", "Reading files")
    pq = extra("pyarrow.parquet", "parquet", "Reading files")
    if mark is None:
        with pa.input_stream(str(path)) as stream:
            header = stream.read(100_000).split(b"\n", 1)[0].decode("utf-8", "replace")
        mark = next((one for one in (",", ";", "\t") if one in header), ",")
    try:
        reader = csv.open_csv(
            pa.input_stream(str(path)),
            read_options=csv.ReadOptions(block_size=2**24),
            parse_options=csv.ParseOptions(delimiter=mark),
            convert_options=csv.ConvertOptions(
                include_columns=list(wanted.columns()), null_values=list(MISSING_CELLS), strings_can_be_null=True
            ),
        )
        with pq.ParquetWriter(target, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch, row_group_size=PART)
    except KeyError as error:
        raise DataError(f"{str(path)!r} has no such column: {error}.") from error
    except pa.ArrowException as error:
        raise InputError(f"{str(path)!r} could not be read: {str(error).splitlines()[0]}") from error
