"""CSV files of any size as Parquet files of the named columns, a stretch of rows at a time.

They are read three times. The first reading looks at quotation marks (`quotes.py`). The second decides what each column
is, over all files together and by the rules of `files.read_table`: integers, else floats, else text. The third writes.
A column whose first thousand rows are whole numbers, or missing, may go on as anything.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, final

from ..errors import InputError
from .encodings import not_text, not_utf8
from .extras import extra
from .files import DECIMAL, LONGEST_HEADER, MISSING_CELLS, MISSING_NUMBER, THOUSANDS, header_of
from .quotes import check_quotes

_BLOCK = 2**24  # bytes that are parsed at once
_BOM = b"\xef\xbb\xbf"
_WHAT = "Reading files"


@final
@dataclass
class Kind:
    """What the cells of a column can be, as far as they were met."""

    there: bool = False  # a cell that is not missing
    points: bool = False  # a single point, which stands for a missing number
    integers: bool = True
    floats: bool = True
    decimal: bool = True  # numbers with decimal commas, where commas do not separate cells
    commas: bool = False
    thousands: bool = True  # every comma could mark thousands

    def meet(self, cells: Any, mark: str) -> None:
        """Cells of text, those missing null."""
        pa, pc = extra("pyarrow", "parquet", _WHAT), extra("pyarrow.compute", "parquet", _WHAT)
        cells = pc.drop_null(cells)
        if not len(cells):
            return
        points = pc.equal(cells, MISSING_NUMBER)
        self.points |= bool(pc.any(points).as_py())
        cells = cells.filter(pc.invert(points))
        if not len(cells):
            return
        self.there = True
        plain = _trimmed(cells)
        if self.integers:  # to pyarrow 0x1A is a whole number
            hexadecimal = pc.any(pc.match_substring(plain, "x", ignore_case=True)).as_py()
            self.integers = not hexadecimal and _cast(plain, pa.int64()) is not None
        if self.floats and not self.integers:  # and nan(1) a number
            payload = pc.any(pc.match_substring(plain, "(")).as_py()
            self.floats = not payload and _cast(plain, pa.float64()) is not None
        if mark == ",":
            self.decimal = False
        if self.decimal:
            self.decimal = _all(cells, DECIMAL.pattern)
            with_comma = cells.filter(pc.match_substring(cells, ","))
            self.commas |= len(with_comma) > 0
            self.thousands &= mark != ";" and _all(with_comma, THOUSANDS.pattern)

    def typed(self, cells: Any) -> Any:
        """The cells as what the whole column is."""
        pa, pc = extra("pyarrow", "parquet", _WHAT), extra("pyarrow.compute", "parquet", _WHAT)
        if not self.there:
            return cells if self.points else cells.cast(pa.float64())
        numbers = pc.if_else(pc.equal(cells, MISSING_NUMBER), None, cells) if self.points else cells
        if self.floats:
            return _trimmed(numbers).cast(pa.int64() if self.integers else pa.float64())
        if self.decimal and self.commas and not self.thousands:
            return pc.replace_substring(numbers, ",", ".").cast(pa.float64())
        return cells


def _trimmed(cells: Any) -> Any:
    return extra("pyarrow.compute", "parquet", _WHAT).ascii_trim(cells, " \t")


def _cast(cells: Any, kind: Any) -> Any:
    try:
        return cells.cast(kind)
    except extra("pyarrow", "parquet", _WHAT).ArrowInvalid:
        return None


def _all(cells: Any, pattern: str) -> bool:
    pc = extra("pyarrow.compute", "parquet", _WHAT)
    return pc.all(pc.match_substring_regex(cells, f"^(?:{pattern})$")).as_py() is not False


@final
@dataclass(frozen=True)
class TextFile:
    """A CSV file: its columns and what separates its cells."""

    path: Path
    names: tuple[str, ...]
    mark: str
    start: int  # of the rows, in bytes of text
    line: int  # on which they begin

    def check(self) -> None:
        """Refuse what is not text, and quotation marks that make one cell of several rows."""
        with _open(self.path) as file:
            file.seek(self.start)
            check_quotes(file, self.mark, str(self.path), self.line)

    def batches(self, wanted: Sequence[str]) -> Iterator[Any]:
        """The named columns as text, block by block."""
        pa, csv = extra("pyarrow", "parquet", _WHAT), extra("pyarrow.csv", "parquet", _WHAT)
        with _open(self.path) as file:
            file.seek(self.start)
            if not file.read(1):
                return
            file.seek(self.start)
            reader = csv.open_csv(
                file,
                read_options=csv.ReadOptions(column_names=list(self.names), block_size=_BLOCK),
                parse_options=csv.ParseOptions(
                    delimiter=self.mark, newlines_in_values=True, ignore_empty_lines=len(self.names) > 1
                ),
                convert_options=csv.ConvertOptions(
                    include_columns=list(wanted),
                    column_types=dict.fromkeys(wanted, pa.string()),
                    null_values=list(MISSING_CELLS),
                    strings_can_be_null=True,
                ),
            )
            yield from reader


def text_file(path: Path) -> TextFile:
    """The file's header read."""
    with _open(path) as file:
        head = file.read(LONGEST_HEADER + len(_BOM) + 1)
    start = len(_BOM) if head.startswith(_BOM) else 0
    start += len(head[start:]) - len(head[start:].lstrip(b"\r\n"))
    above, head = head[:start], head[start:]
    end = b"\n" if b"\n" in head or b"\r" not in head else b"\r"
    line, found, _ = head.partition(end)
    if b"\0" in line:
        raise not_text(str(path))
    if not line.strip():
        raise InputError(f"{str(path)!r} is empty; expected a line of column names and a line for each row.")
    try:
        header = line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(str(path)) from error
    names, mark = header_of(header, str(path), tab=".tsv" in path.name.lower())
    return TextFile(path, tuple(names), mark, start + len(line) + len(found), above.count(end) + 2)


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    """The file's text; what cannot be read has a sentence."""
    pa = extra("pyarrow", "parquet", _WHAT)
    try:
        with gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb") as file:
            yield file  # pyright: ignore[reportReturnType]
    except pa.ArrowInvalid as error:
        said = str(error).splitlines()[0]
        if "UTF8" in said:
            raise not_utf8(str(path)) from error
        raise InputError(f"{str(path)!r} could not be read: {said}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{str(path)!r} could not be read: {error}.") from error


@final
@dataclass
class TextFiles:
    """CSV files that are one table."""

    files: Sequence[TextFile]
    wanted: Sequence[str]
    kinds: Mapping[str, Kind] = field(init=False)

    def __post_init__(self) -> None:
        self.kinds = {name: Kind() for name in self.wanted}
        for file in self.files:
            file.check()
            for batch in file.batches(self.wanted):
                for name, kind in self.kinds.items():
                    kind.meet(batch[name], file.mark)

    def write(self, file: TextFile, target: Path, rows: int) -> None:
        """One of them as Parquet, with row groups of so many rows."""
        pa, pq = extra("pyarrow", "parquet", _WHAT), extra("pyarrow.parquet", "parquet", _WHAT)
        empty = pa.array([], pa.string())
        schema = pa.schema([(name, kind.typed(empty).type) for name, kind in self.kinds.items()])
        writer = pq.ParquetWriter(target, schema)
        try:
            for batch in file.batches(self.wanted):
                arrays = [kind.typed(batch[name]) for name, kind in self.kinds.items()]
                made = pa.Table.from_arrays(arrays, schema=schema)
                with writing(target.parent, file.path):
                    writer.write_table(made, row_group_size=rows)
        finally:
            with writing(target.parent, file.path):
                writer.close()


@contextmanager
def writing(folder: Path, path: Path) -> Iterator[None]:
    """Within, a disk that is full has a sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{str(path)!r} could not be turned into Parquet in {str(folder.parent)!r}: {error}. Set the environment "
            "variable TMPDIR to a folder with more room, or save the table as Parquet yourself."
        ) from error
