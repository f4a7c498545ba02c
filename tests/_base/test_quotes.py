"""Quotation marks that make one cell of several rows: refused with their line, whatever column they are in."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unnorm._base import files, quotes
from unnorm._base.csv_streams import TextFiles, text_file
from unnorm.errors import InputError

ROWS = [f"{i},{(i * 37 % 60) / 60:.3f},{(i * i % 17) / 17:.3f},a" for i in range(60)]
NAMES = "t,x,y,note"


def _streamed(path: Path) -> TextFiles:
    """As `un.gam` reads it."""
    return TextFiles([text_file(path)], ["x", "y"])


def _with(*cells: tuple[int, str]) -> str:
    """The table with other notes in some rows."""
    rows = list(ROWS)
    for i, note in cells:
        rows[i] = rows[i].removesuffix("a") + note
    return "\n".join([NAMES, *rows]) + "\n"


FAULTS = {
    "never closed": (_with((3, '"a')), r"opens a cell on line 5 of .* is never closed"),
    "closed by another row's": (
        _with((3, '"a'), (30, '"b')),
        r"Line 32 of .* text after .* in the row that begins on line 5",
    ),
    "text after it": (_with((7, '"a"b')), r"Line 9 of .* text after .* begins on line 9"),
    "after quoted line ends": (_with((2, '"a\nb\nc"'), (7, '"a')), r"opens a cell on line 11 of .* is never closed"),
    "the last cell": (_with((59, '"a'))[:-1], r"opens a cell on line 61 of .* is never closed"),
}


@pytest.mark.parametrize(("text", "said"), FAULTS.values(), ids=FAULTS)
def test_rows_are_not_swallowed(text: str, said: str, tmp_path: Path) -> None:
    """Both readers of whole files took such a file as a shorter one, and so did the one that streams."""
    path = tmp_path / "t.csv"
    path.write_text(text)
    for arrow in (True, False):
        with pytest.raises(InputError, match=said):
            files._parse_csv(text.encode(), "t.csv", arrow=arrow, choose=lambda names: ["x", "y"])
    with pytest.raises(InputError, match=said):
        _streamed(path)


def test_marks_inside_cells_are_text(tmp_path: Path) -> None:
    notes = ((0, '5" wide'), (1, '"two\nlines"'), (2, '"say ""no"""'), (3, '""'), (4, '""""'), (5, ' "b"'), (6, 'a""'))
    path = tmp_path / "t.csv"
    path.write_text(_with(*notes))
    expected = ['5" wide', "two\nlines", 'say "no"', None, '"', ' "b"', 'a""', "a"]
    for arrow in (True, False):
        found = files._parse_csv(path.read_bytes(), "t.csv", arrow=arrow)
        assert found["note"][:8].tolist() == expected
        assert len(found["t"]) == 60
    assert sum(len(batch) for batch in _streamed(path).files[0].batches(["x"])) == 60


@pytest.mark.parametrize("raw", [b"t,x\0,y\n1,2,3\n", b"t,x,y\n1,2,3\n4,\0,5\n", "t,x,y\n1,2,3\n".encode("utf-16-le")])
def test_nul_characters_are_no_text_where_rows_are_streamed_too(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(raw)
    with pytest.raises(InputError, match="not a text file"):
        files.read_table(path)
    with pytest.raises(InputError, match="not a text file"):
        _streamed(path)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.text(alphabet='ab,"\n', max_size=14), st.integers(1, 4))
def test_any_size_of_chunks_agrees_with_the_csv_module(text: str, chunk: int) -> None:
    def strict() -> bool:
        try:
            list(csv.reader(io.StringIO(text, newline=""), strict=True))
        except csv.Error:
            return False
        return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quotes, "_CHUNK", chunk)
        file = io.BytesIO(text.encode())
        alternate = quotes._alternate(file, ",", "t.csv")
        assert strict() or not alternate  # what is let through at once is well formed
        file.seek(0)
        try:
            quotes.check_quotes(file, ",", "t.csv", 1)
            assert strict()
        except InputError:
            assert not strict()
