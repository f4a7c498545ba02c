"""Reading tables from files: CSV, TSV and other text (also gzipped) with or without pyarrow, Parquet with it.

Cells are separated by commas, semicolons or tabs, whichever the first line has; in .txt and .dat files also by blanks.
Where commas do not separate cells they may be decimal ones (`_decimal_commas`). Text is UTF-8, or what `encodings.py`
makes UTF-8 of.

A column is integers, else floats, else text. Missing cells are empty, NA or NaN: NaN in a column of numbers (which is
then float), None in a column of text. The two CSV readers give the same columns; pyarrow's is about five times as fast.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import importlib.util
import io
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, listing, warn
from .arrow_columns import WIDE, from_arrow
from .encodings import NO_TEXT, NotUTF8Error, from_western, not_text, not_utf8, read_as_western, without_mark
from .extras import extra
from .memory import require
from .paths import found_path
from .quotes import check_quotes
from .words import either

MISSING_CELLS = ("", "NA", "NaN", "nan")  # NA is how R writes a missing value
MISSING_NUMBER = "."  # how EyeLink, SAS and Stata write a missing number; among text it is text
BLOCK = 2**20  # bytes that pyarrow parses at once
LONGEST_HEADER = 100_000  # characters; a cell of more than 131,072 is refused by the csv module
PLAIN = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
SUFFIXES = (*PLAIN[:-1], ".txt", ".txt.gz", ".dat", ".parquet")
ODD = re.compile(rb"0[xX]|[nN][aA][nN]\(")  # which pyarrow takes for numbers: hexadecimal ones, and C's nan(1)
SHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
BLANKS = re.compile(rb"[ \t]+")
DECIMAL = re.compile(r"[+-]?[0-9]*,?[0-9]+(?:[eE][+-]?[0-9]+)?")
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_TIMES = 2.5  # bytes for each byte of text: the text, parsed columns and NumPy's
_REMEDY = (
    "Save it as Parquet (pip install 'unnorm[parquet]'), of which only the named columns are read; un.gam(…, memory=…) "
    "reads CSV files of any size."
)


def duplicates(names: Iterable[str]) -> list[str]:
    """The names that come more than once, in order."""
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for name in names:
        if name in seen:
            twice[name] = None
        seen.add(name)
    return list(twice)


def nameless() -> str:
    """What to do about a file that does not name its columns."""
    return either("read it with names of your own (pandas.read_csv(…, names=…))", "give --columns subject,image,x,y")


Choose = Callable[[list[str]], Sequence[str]]  # from the names of all columns, those to read


def read_table(
    path: str | Path, choose: Choose | None = None, columns: Sequence[str] | None = None
) -> dict[str, np.ndarray]:
    """The columns of a .csv, .tsv, .txt (also .gz) or .parquet file, by name; with `choose`, only those that it names:
    what stands in the others does not matter. `columns` names them where the file has no line that does."""
    path, suffix = table_file(path)
    if suffix == ".parquet":
        if columns is not None:
            raise InputError(f"{str(path)!r} is a Parquet file, which names its columns itself: leave columns out.")
        return _read_parquet(path, choose)
    zipped = suffix.endswith(".gz")
    require(_TIMES * _size(path, zipped), f"Reading {str(path)!r}", _REMEDY)
    raw = _read_bytes(path, zipped)
    blanks = ".txt" in suffix or suffix == ".dat"
    return _parse_csv(raw, str(path), tab=".tsv" in suffix, choose=choose, columns=columns, blanks=blanks)


def table_file(path: str | Path) -> tuple[Path, str]:
    """The path of a file that may hold a table, and how its name ends."""
    path = found_path(path)
    suffix = next((end for end in SUFFIXES if path.name.lower().endswith(end)), None)
    endings = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
    if not path.exists():
        raise InputError(f"There is no file {str(path)!r}.{_beside(path)}")
    if path.is_dir():
        inside = [name for name in _names_in(path) if name.lower().endswith(SUFFIXES)]
        holds = f" It holds {listing(inside, most=3)}." if inside else ""
        more = " Several tables go into one file, with a column that says whose the rows are." if inside[1:] else ""
        raise InputError(f"{str(path)!r} is not a file but a folder; expected one table ({endings}).{holds}{more}")
    if not path.is_file():
        raise InputError(f"{str(path)!r} is not a file; expected a table ({endings}).")
    if suffix is None:
        remedy = f": {NO_TEXT}" if path.suffix.lower() in SHEETS else ""
        raise InputError(f"{str(path)!r} must end in {endings}{remedy}.")
    return path, suffix


def _beside(path: Path) -> str:
    """A file of almost this name in the same folder, for a misspelt one."""
    close = difflib.get_close_matches(path.name, _names_in(path.parent), n=1)
    return f" Did you mean {str(path.parent / close[0])!r}?" if close else ""


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(one.name for one in folder.iterdir())
    except OSError:  # a hint is not worth a failure
        return []


def _size(path: Path, zipped: bool) -> int:
    """Bytes of text; of a gzipped file what its last four bytes say (modulo 2³²), or more."""
    size = path.stat().st_size
    if not zipped or size < 18:
        return size
    with path.open("rb") as file:
        file.seek(-4, io.SEEK_END)
        return max(size, int.from_bytes(file.read(4), "little"))


def _read_bytes(path: Path, zipped: bool) -> bytes:
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if zipped else raw
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{str(path)!r} could not be read: {error}.") from error


def _read_parquet(path: Path, choose: Choose | None = None) -> dict[str, np.ndarray]:
    what = f"Reading {path.name!r}"
    pa, pq = extra("pyarrow", "parquet", what), extra("pyarrow.parquet", "parquet", what)
    try:
        with pq.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            _check_names(names, str(path))
            wanted = names if choose is None else list(choose(names))
            table = file.read(columns=None if choose is None else wanted)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{str(path)!r} could not be read as Parquet: {str(error).splitlines()[0]}") from error
    if table.num_rows == 0:
        raise InputError(f"{str(path)!r} has columns but no rows.")
    return {name: from_arrow(name, table[name]) for name in wanted}


def _parse_csv(
    raw: bytes,
    path: str,
    tab: bool = False,
    arrow: bool | None = None,
    choose: Choose | None = None,
    columns: Sequence[str] | None = None,
    blanks: bool = False,
) -> dict[str, np.ndarray]:
    """The columns of a CSV file's bytes; `arrow` chooses the reader (None: pyarrow where it is installed)."""
    raw = without_mark(raw, path)
    try:
        return _parse_text(raw, path, tab, arrow, choose, columns, blanks)
    except NotUTF8Error:
        western = from_western(raw)
        if western is None:
            raise
    found = _parse_text(western, path, tab, arrow, choose, columns, blanks)
    warn(read_as_western(path))
    return found


def _parse_text(
    raw: bytes,
    path: str,
    tab: bool,
    arrow: bool | None,
    choose: Choose | None,
    columns: Sequence[str] | None,
    blanks: bool,
) -> dict[str, np.ndarray]:
    if not raw.strip():
        raise InputError(f"{path!r} is empty; expected a line of column names and a line for each row.")
    if b"\0" in raw:
        raise not_text(path)
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    raw = raw.lstrip(b"\n")
    first = raw.partition(b"\n")[0]
    if blanks and b" " in first.strip() and not any(mark in first for mark in (b",", b";", b"\t")):
        raw = b"\n".join(BLANKS.sub(b"\t", line.strip()) for line in raw.split(b"\n"))
    head, _, body = raw.partition(b"\n")
    header = _decoded(head if choose is not None else raw, path).partition("\n")[0]
    names, mark = header_of(header, path, tab, columns)
    if columns is not None:
        body = raw
    if not body.strip():
        raise InputError(f"{path!r} has column names but no rows.")
    if b'"' in body:
        check_quotes(io.BytesIO(body), mark, path, 2 if columns is None else 1)
    if arrow is None:
        arrow = importlib.util.find_spec("pyarrow") is not None
    if arrow and ODD.search(body):
        arrow = False
    wanted = names if choose is None else list(choose(names))
    if not wanted:
        raise InputError(f"{path!r}: no column is named that could be read; it has {listing(names, most=40)}.")
    found = (_by_arrow if arrow else _by_numpy)(body, names, wanted, mark, path)
    found = {name: _without_points(cells, mark) for name, cells in found.items()}
    return found if mark == "," else {name: _decimal_commas(cells, mark) for name, cells in found.items()}


def header_of(header: str, path: str, tab: bool, columns: Sequence[str] | None = None) -> tuple[list[str], str]:
    """The names of the columns, and what separates cells, from the first line; or the user's own names."""
    # with semicolons or tabs, commas are decimal ones
    mark = "\t" if tab else next((c for c in (";", "\t", ",") if c in header), ",")
    if "," in header and mark != "," and not tab:
        fits = columns is not None and header.count(mark) + 1 == len(columns)
        mark = mark if fits else max(",", mark, key=header.count)
    if len(header) > LONGEST_HEADER:
        raise InputError(f"The first line of {path!r} has {len(header):,} characters; expected the columns' names.")
    names = [name.strip() for name in next(csv.reader([header], delimiter=mark))]
    if columns is not None:
        return _given_names(columns, names, path), mark
    _check_names(names, path)
    return names, mark


def _given_names(columns: Sequence[str], first: list[str], path: str) -> list[str]:
    """The user's names for the columns of a file that has none."""
    names = [str(name).strip() for name in columns]
    if twice := duplicates(names):
        raise InputError(f"--columns must be distinct names; {listing(twice)} came more than once.")
    if len(names) != len(first):
        raise InputError(
            f"--columns names {len(names)} columns ({listing(names, most=40)}), and the first line of "
            f"{path!r} has {len(first)} cells: {listing(first, most=10)}."
        )
    if {name.lower() for name in first} == {name.lower() for name in names}:
        raise InputError(f"The first line of {path!r} names its columns already: leave --columns out.")
    return names


def _decimal_commas(cells: np.ndarray, mark: str) -> np.ndarray:
    """A column of text that holds numbers with decimal commas as numbers; any other as it is.

    Where tabs or blanks separate cells, a column in which every comma could mark thousands (1,234) stays text.
    """
    if cells.dtype.kind not in "UO":
        return cells
    labels, codes = np.unique(np.array(["" if cell is None else cell for cell in cells.tolist()]), return_inverse=True)
    there = [label for label in labels.tolist() if label not in MISSING_CELLS]
    if not any("," in label for label in there) or not all(DECIMAL.fullmatch(label) for label in there):
        return cells
    if mark != ";" and all(THOUSANDS.fullmatch(label) for label in there if "," in label):
        return cells
    numbers = [np.nan if label in MISSING_CELLS else float(label.replace(",", ".")) for label in labels.tolist()]
    return np.array(numbers)[codes]


def _without_points(cells: np.ndarray, mark: str) -> np.ndarray:
    """A column of numbers in which a single point stands for what is missing as numbers; any other as it is."""
    if cells.dtype.kind not in "UO" or not np.any(cells == MISSING_NUMBER):
        return cells
    rest = ["" if cell is None or cell == MISSING_NUMBER else cell for cell in cells.tolist()]
    if not any(rest):
        return cells
    found = _parse_cells(rest)
    found = found if mark == "," else _decimal_commas(found, mark)
    return cells if found.dtype.kind in "UO" else found


def _decoded(raw: bytes, path: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise not_utf8(path, line) from error


def _check_names(names: list[str], path: str) -> None:
    if all(reads_as_number(name) for name in names) or any(reads_as_number(name) for name in duplicates(names)):
        raise InputError(
            f"The first line of {path!r} must name the columns; got {listing(names)}. If there is no such line, "
            f"{nameless()}."
        )
    if twice := duplicates(names):
        raise InputError(f"Column names must be distinct; {listing(twice)} came more than once in {path!r}.")
    if "" in names:
        raise InputError(
            f"Every column needs a name; column {names.index('') + 1} of {len(names)} in {path!r} has none."
        )


def reads_as_number(text: str) -> bool:
    """Whether a cell of text holds a number; other digits and blanks than those of ASCII make it text."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


def _ragged(path: str, line: int, expected: int, got: int) -> InputError:
    return InputError(f"Line {line} of {path!r} has {got} cells; expected {expected}, one for each column name.")


# --- pyarrow ---------------------------------------------------------------------------------------------------------


def _by_arrow(body: bytes, names: list[str], wanted: list[str], mark: str, path: str) -> dict[str, np.ndarray]:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    ragged: list[tuple[int, int]] = []
    block = max(BLOCK, 4 * max(map(len, body.split(b"\n"))))  # a row must lie within two blocks

    def keep(row: Any) -> str:
        ragged.append((row.number or 0, row.actual_columns))
        return "error"

    def read(types: dict[str, Any]) -> Any:
        return arrow_csv.read_csv(
            io.BytesIO(body),
            # one thread, so that a ragged row knows its number; parsing is not what takes the time
            read_options=arrow_csv.ReadOptions(column_names=names, use_threads=False, block_size=block),
            parse_options=arrow_csv.ParseOptions(
                delimiter=mark,
                newlines_in_values=b'"' in body,
                ignore_empty_lines=len(names) > 1,
                invalid_row_handler=keep,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=types,
                null_values=list(MISSING_CELLS),
                strings_can_be_null=True,
                include_columns=wanted,
            ),
        )

    try:
        table = read({})
        # Dates and true/false stay text: a column is numbers or text, whichever reader is installed.
        other = {
            f.name: pa.string()
            for f in table.schema
            if not (pa.types.is_integer(f.type) or pa.types.is_floating(f.type) or pa.types.is_null(f.type))
        }
        if any(not pa.types.is_string(table.schema.field(name).type) for name in other):
            table = read(other)
    except pa.ArrowInvalid as error:
        # the other reader knows the line, blank ones and quoted line ends counted
        if ragged or "UTF8" in str(error):
            _by_numpy(body, names, wanted, mark, path)
        if ragged:
            raise _ragged(path, ragged[0][0] + 1, len(names), ragged[0][1]) from error
        raise InputError(f"{path!r} could not be read: {str(error).splitlines()[0]}") from error
    return {name: from_arrow(name, table[name]) for name in wanted}


# --- NumPy and the standard library ----------------------------------------------------------------------------------


def _by_numpy(body: bytes, names: list[str], wanted: list[str], mark: str, path: str) -> dict[str, np.ndarray]:
    width = len(names)
    text = body.decode("utf-8", "surrogateescape").removesuffix("\n")  # what is not text is named below, if it is read
    if '"' in text:
        cells = _quoted_cells(text, width, mark, path)
    else:
        lines = text.split("\n")
        if width > 1 and "" in lines:  # blank lines are no rows
            numbered = [(number, line) for number, line in enumerate(lines) if line]
            numbers, lines = [number for number, _ in numbered], [line for _, line in numbered]
        else:
            numbers = range(len(lines))
        widths = np.fromiter((line.count(mark) for line in lines), dtype=np.int64, count=len(lines)) + 1
        if (bad := np.flatnonzero(widths != width)).size:
            raise _ragged(path, numbers[bad[0]] + 2, width, int(widths[bad[0]]))
        cells = mark.join(lines).split(mark)
    chosen = {name: cells[names.index(name) :: width] for name in wanted}
    if not text.isascii():
        for column in chosen.values():
            _check_text(column, body, path)
    return {name: _parse_cells(column) for name, column in chosen.items()}


def _check_text(cells: list[str], body: bytes, path: str) -> None:
    """Refuse bytes that are not text, with the line that they are on."""
    for cell in cells:
        try:
            cell.encode("utf-8")
        except UnicodeEncodeError:
            place = body.find(cell.encode("utf-8", "surrogateescape"))
            raise not_utf8(path, body.count(b"\n", 0, place) + 2) from None


def _quoted_cells(text: str, width: int, mark: str, path: str) -> list[str]:
    rows: list[str] = []
    reader = csv.reader(io.StringIO(text + "\n", newline=""), delimiter=mark)
    try:
        for row in reader:
            if not row and width > 1:
                continue
            row = row or [""]
            if len(row) != width:
                raise _ragged(path, reader.line_num + 1, width, len(row))
            rows += row
    except csv.Error as error:  # a cell longer than the csv module takes: a quotation mark that is never closed
        raise InputError(f"Line {reader.line_num + 1} of {path!r} could not be read: {error}.") from error
    return rows


def _parse_cells(cells: list[str]) -> np.ndarray:
    text = np.array(cells, dtype=object)
    gaps = np.zeros(len(cells), dtype=bool)
    if not set(MISSING_CELLS).isdisjoint(cells):
        gaps = np.fromiter((cell in MISSING_CELLS for cell in cells), dtype=bool, count=len(cells))
    there = text[~gaps]
    # Python takes '1_000', digits of other scripts and "5\n" for numbers; a table does not. To pyarrow '+5' is a float.
    plain = all(cell.isascii() and "_" not in cell and cell.strip() == cell.strip(" \t") for cell in there)
    signed = any("+" in cell for cell in there)
    for kind in () if not plain else (np.float64,) if signed else (np.int64, np.float64):
        try:
            numbers = there.astype(kind)
        except (ValueError, OverflowError):
            continue
        if not gaps.any():
            return numbers
        out = np.full(len(cells), np.nan)
        out[~gaps] = numbers
        return out
    if gaps.any():
        text[gaps] = None
        return text
    if len(cells) * max(map(len, cells), default=0) > WIDE:
        return text
    return np.array(cells, dtype=np.str_)
