"""Reading CSV and Parquet: both CSV readers give the same columns, and a file that cannot be used says why."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from unnorm._base import files
from unnorm._base.frames import read_table
from unnorm.errors import InputError, MemoryLimitError, MissingLibraryError, UnnormWarning

pa = pytest.importorskip("pyarrow")

GOOD = {
    "plain": "a,b,s\n1,0.5,u\n2,-3e2,v\n",
    "quoted header, as R writes it": '"a","b","s"\n1,0.5,u\n2,1,v\n',
    "quotes, commas and line ends inside": 'a,b,s\n1,2,"u, v"\n3,4,"two\nlines"\n5,6,"say ""no"""\n',
    "missing cells": "a,b,s\n1,,u\n,NA,\n3,NaN,w\n4,2.5,NA\n",
    "points for missing numbers": "a,b,s\n1,.,u\n.,2.5,.\n3,.,w\n",
    "nothing but points": "a,b,s\n1,.,u\n2,.,v\n",
    "a column with nothing in it": "a,b,s\n1,,u\n2,,v\n",
    "CRLF, no last line end": "a,b,s\r\n1,2,x\r\n3,4,y",
    "byte order mark and blank lines": "\ufeffa,b,s\n1,2,x\n\n3,4,y\n\n",
    "semicolons": "a;b;s\n1;2.5;x\n3;4;y\n",
    "dates and truth values stay text": "a,b,s\n2020-01-01,true,12:30\n2020-01-02T10:00:00Z,false,13:00\n",
    "numbers that Python reads and tables do not mean": "a,b,s\n1_000,1,x\n2_000,2,y\n",
    "large integers and infinities": "a,b,s\n9007199254740993,inf,x\n-9007199254740993,-inf,y\n",
    "too large for an integer": "a,b,s\n99999999999999999999,1,x\n1,2,y\n",
    "one column": "a\n1\n\n3\n",
    "hexadecimal, signs, bare points": "a,b,s\n0x1A,+5,5.\n1,2,.5\n",
    "digits and blanks of other scripts": "a,b,s\n١٢٣,\u00a012.5,００１\n1,2,3\n",
    "blanks around numbers": "a,b,s\n 1,2.5 ,\u20091\n2,1,1\n",
    "leading zeros and blanks": "a,b,s\n007, 1.5,é\n008,2,日本\n",
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_both_readers_give_the_same_columns(text):
    fast, slow = (files._parse_csv(text.encode(), "t.csv", arrow=arrow) for arrow in (True, False))
    assert list(fast) == list(slow)
    for name in fast:
        assert fast[name].dtype.kind == slow[name].dtype.kind, name
        np.testing.assert_array_equal(fast[name], slow[name])


def test_the_columns_are_those_in_the_file():
    got = files._parse_csv(GOOD["missing cells"].encode(), "t.csv", arrow=False)
    np.testing.assert_array_equal(got["a"], [1, np.nan, 3, 4])
    np.testing.assert_array_equal(got["b"], [np.nan, np.nan, np.nan, 2.5])
    assert got["s"].tolist() == ["u", None, "w", None]
    got = files._parse_csv(GOOD["points for missing numbers"].encode(), "t.csv", arrow=True)
    np.testing.assert_array_equal(got["a"], [1, np.nan, 3])
    np.testing.assert_array_equal(got["b"], [np.nan, 2.5, np.nan])
    assert got["s"].tolist() == ["u", ".", "w"]
    got = files._parse_csv(b"a;b;s\n1;2,5;.\n.;.;x\n", "t.csv", arrow=False)
    np.testing.assert_array_equal(got["a"], [1, np.nan])
    np.testing.assert_array_equal(got["b"], [2.5, np.nan])
    assert got["s"].tolist() == [".", "x"]
    assert files._parse_csv(GOOD["nothing but points"].encode(), "t.csv")["b"].tolist() == [".", "."]
    got = files._parse_csv(GOOD["large integers and infinities"].encode(), "t.csv", arrow=True)
    assert got["a"].tolist() == [9007199254740993, -9007199254740993]
    np.testing.assert_array_equal(got["b"], [np.inf, -np.inf])
    got = files._parse_csv(GOOD["quotes, commas and line ends inside"].encode(), "t.csv", arrow=True)
    assert got["s"].tolist() == ["u, v", "two\nlines", 'say "no"']
    got = files._parse_csv(GOOD["one column"].encode(), "t.csv", arrow=False)
    np.testing.assert_array_equal(got["a"], [1, np.nan, 3])


BAD = {
    "": "is empty; expected a line of column names",
    " \n\n": "is empty",
    "a,b\n": "has column names but no rows",
    "a,b\n\n \n": "has column names but no rows",
    "a,b,a\n1,2,3\n": "must be distinct; 'a' came more than once",
    "a,,b\n1,2,3\n": "Every column needs a name; column 2",
    "1,2,3\n4,5,6\n": "first line of .* must name the columns; got '1', '2', '3'. If there is no such line",
    "a,b\n1,2\n3\n": "Line 3 of .* has 1 cells; expected 2",
    "a,b\n1,2\n\n3,4,5\n": "Line 4 of .* has 3 cells; expected 2",
}


@pytest.mark.parametrize("arrow", [True, False])
@pytest.mark.parametrize(("text", "message"), BAD.items())
def test_bad_text_is_refused_in_one_sentence(text, message, arrow):
    with pytest.raises(InputError, match=message) as caught:
        files._parse_csv(text.encode(), "t.csv", arrow=arrow)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("raw", [b"PK\x03\x04\0\0\0a,b", "a,b\n1,2\n".encode("utf-16-le"), b"\x89PNG\0", b"\xff\xfea"])
def test_binary_files_are_refused(raw):
    with pytest.raises(InputError, match="not a text file"):
        files._parse_csv(raw, "t.csv")


WORDS = "a µ,b\n1,x\n2,é\n3,€\n"


@pytest.mark.parametrize("arrow", [True, False])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_text_that_says_its_encoding_is_read(encoding, arrow):
    found = files._parse_csv(WORDS.encode(encoding), "t.csv", arrow=arrow)
    assert {name: cells.tolist() for name, cells in found.items()} == {"a µ": [1, 2, 3], "b": ["x", "é", "€"]}


@pytest.mark.parametrize("arrow", [True, False])
def test_windows_1252_is_read_and_said(arrow):
    with pytest.warns(UnnormWarning, match=r"'my t\.csv' is not UTF-8 text and was read as Windows-1252") as said:
        found = files._parse_csv(WORDS.encode("cp1252"), "my t.csv", arrow=arrow)
    assert {name: cells.tolist() for name, cells in found.items()} == {"a µ": [1, 2, 3], "b": ["x", "é", "€"]}
    assert "iconv -f ENCODING -t UTF-8 'my t.csv' > utf8.csv" in str(said[0].message)
    assert len(said) == 1


@pytest.mark.parametrize(
    "last",
    [b"\x81", b"\xe9\x07", "é".encode() + b"\xe9"],
    ids=["no Windows-1252", "a control character", "damaged UTF-8"],
)
@pytest.mark.parametrize("arrow", [True, False])
def test_other_encodings_are_refused_with_the_line_and_a_command(last, arrow):
    with pytest.raises(
        InputError, match=r"not UTF-8 text \(line 3\); .* iconv -f WINDOWS-1252 -t UTF-8 t.csv > utf8.csv"
    ):
        files._parse_csv(b"a,b\n1,x\n2," + last + b"\n", "t.csv", arrow=arrow)


def test_paths(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    (tmp_path / "t.tsv").write_text("a\tb,c\n1\t2\n")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    (tmp_path / "bad.csv.gz").write_bytes(b"a,b\n1,2\n")
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    assert {k: v.tolist() for k, v in read_table(tmp_path / "t.csv").items()} == {"a": [1], "b": [2]}
    assert list(read_table(str(tmp_path / "t.tsv"))) == ["a", "b,c"]
    assert list(read_table(tmp_path / "t.csv.gz")) == ["a", "b"]
    for name, message in [
        ("none.csv", "There is no file"),
        ("t.cvs", r"There is no file .*Did you mean '.*t\.csv'"),
        ("", r"is not a file but a folder; .*It holds 'bad\.csv\.gz', 't\.csv', 't\.csv\.gz' and 1 more\. Several"),
        ("t.xlsx", r"must end in \.csv, .* or \.parquet: save it as .*'CSV UTF-8'"),
        ("bad.csv.gz", "could not be read"),
    ]:
        with pytest.raises(InputError, match=message):
            read_table(tmp_path / name)


def test_parquet(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "i": [1, 2, 3],
            "gap": pa.array([1, None, 3], pa.int64()),
            "s": pa.array(["u", None, "u"]),
            "d": pa.array(["p", "q", "p"]).dictionary_encode(),
            "ok": [True, False, True],
            "t": pa.array([0, 1, 2], pa.timestamp("us")),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    got = read_table(tmp_path / "t.parquet")
    assert got["i"].tolist() == [1, 2, 3]
    np.testing.assert_array_equal(got["gap"], [1, np.nan, 3])
    assert got["s"].tolist() == ["u", None, "u"]
    assert got["d"].tolist() == ["p", "q", "p"]
    assert got["ok"].tolist() == [1, 0, 1]
    assert got["t"].dtype.kind == "M"
    pq.write_table(table[:0], tmp_path / "none.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"not parquet")
    with pytest.raises(InputError, match="no rows"):
        read_table(tmp_path / "none.parquet")
    with pytest.raises(InputError, match="could not be read as Parquet"):
        read_table(tmp_path / "bad.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'unnorm\[parquet\]'"):
        read_table(tmp_path / "t.parquet")


@pytest.mark.parametrize("arrow", [True, False])
def test_one_long_cell_costs_its_own_length(arrow):
    """Six million characters in one of 2,000 rows: as text of one width it would be 48 GB."""
    rows = "".join(f"{i},z\n" for i in range(1999))
    read = files._parse_csv(f"a,s\n{rows}1999,{'z' * 6_000_000}\n".encode(), "long.csv", arrow=arrow)
    assert read["a"][-1] == 1999
    assert len(read["s"][-1]) == 6_000_000
    assert read["s"].dtype == object


def test_what_reads_as_a_number():
    assert all(map(files.reads_as_number, ("1", " -2.5e3 ", "+5", "inf")))
    assert not any(map(files.reads_as_number, ("0x1A", "١٢٣", "\u00a01", "1_000", "1,5", "")))


def test_decimal_commas_where_commas_do_not_separate():
    got = files._parse_csv(b"a;b;c\n1,5;x;1,234\n-2;y;5,678\n;z;3\n", "t.csv")
    np.testing.assert_array_equal(got["a"], [1.5, -2.0, np.nan])
    assert got["b"].tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(got["c"], [1.234, 5.678, 3.0])
    tabs = files._parse_csv(b"a\tb\n1,234\t1,5\n5,678\t2,25\n", "t.tsv", tab=True)
    assert tabs["a"].tolist() == ["1,234", "5,678"]  # may be thousands
    assert tabs["b"].tolist() == [1.5, 2.25]


@pytest.mark.parametrize("mark", [",", ";", "\t", " "])
def test_text_without_names(mark, tmp_path):
    path = tmp_path / "t.txt"
    path.write_text(f"u{mark}1{mark}2.5\nv{mark}2{mark}3.5\n")
    got = read_table(path, columns=("who", "n", "x"))
    assert {name: column.tolist() for name, column in got.items()} == {"who": ["u", "v"], "n": [1, 2], "x": [2.5, 3.5]}
    for columns, message in (
        (("a", "b"), "names 2 columns .* has 3 cells"),
        (("a", "b", "a"), "'a' came more than once"),
        (("2.5", "U", "1"), "names its columns already"),
    ):
        with pytest.raises(InputError, match=message):
            read_table(path, columns=columns)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_table_that_memory_cannot_hold_is_refused_with_the_figures(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = ("x,y\n" + "1,2\n" * 1000).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert len(files.read_table(tmp_path / name)["x"]) == 1000
    monkeypatch.setattr("unnorm._base.memory.free", lambda: 5000.0)  # the text alone would do
    with pytest.raises(MemoryLimitError, match=r"would take about 10 kB, and 5 kB are free\. Save it as Parquet"):
        files.read_table(tmp_path / name)
