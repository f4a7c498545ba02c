"""Only the named columns are read, and the two CSV readers agree on whatever is in a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unnorm._base import files
from unnorm._base.frames import only, read_table
from unnorm.cli import main
from unnorm.errors import DataError, InputError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

XY = only(y=("x", "y"))
BROKEN = {
    "text among numbers": b"x,y,z\n1,2,3\n3,4,oops\n",
    "not UTF-8": b"x,y,z\n1,2,caf\xe9\n3,4,\xff\xfe\n",
    "a long cell": b"x,y,z\n1,2," + b"z" * 100_000 + b"\n3,4,5\n",
    "hexadecimal": b"x,y,z\n1,2,0x1A\n3,4,5\n",
    "quoted line ends": b'x,y,z\n1,2,"two\nlines"\n3,4,"say ""no"""\n',
    "in the middle": b"x,z,y\n1,caf\xe9,2\n3,oops,4\n",
}


@pytest.mark.parametrize("arrow", [True, False])
@pytest.mark.parametrize("raw", BROKEN.values(), ids=BROKEN)
def test_a_broken_cell_of_an_unused_column_does_not_matter(raw: bytes, arrow: bool) -> None:
    found = files._parse_csv(raw, "t.csv", arrow=arrow, choose=XY)
    assert list(found) == ["x", "y"]
    np.testing.assert_array_equal(found["x"], [1, 3])
    np.testing.assert_array_equal(found["y"], [2, 4])


@pytest.mark.parametrize("arrow", [True, False])
def test_a_broken_cell_of_a_used_column_is_named_with_its_line(arrow: bool) -> None:
    raw = b"x,y,z\n1,2,3\n3,caf\x81,5\n"
    with pytest.raises(InputError, match=r"'t\.csv' is not UTF-8 text \(line 3\)"):
        files._parse_csv(raw, "t.csv", arrow=arrow, choose=XY)
    with pytest.raises(InputError, match=r"'t\.csv' is not UTF-8 text \(line 3\)"):
        files._parse_csv(raw, "t.csv", arrow=arrow)


def test_a_column_that_is_not_there_is_named_among_all(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y,zed\n1,2,3\n")
    with pytest.raises(
        DataError, match=r"no column 'ze' \(asked for by order=\); .*'x', 'y', 'zed'\. Did you mean 'zed'"
    ):
        read_table(tmp_path / "t.csv", only(y=("x", "y"), order="ze"))


def test_parquet_reads_the_named_columns_only(tmp_path: Path) -> None:
    """The pages of another column are broken, and one holds what is no number, date or text."""
    path, n = tmp_path / "t.parquet", 1000
    table = {"x": np.arange(n) / n, "z": np.random.default_rng(1).random(n), "odd": [{"a": 1}] * n, "a.b": np.arange(n)}
    pq.write_table(pa.table(table), path, compression="snappy", use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(1)
    raw = bytearray(path.read_bytes())
    begin, size = chunk.data_page_offset, chunk.total_compressed_size
    raw[begin : begin + size] = b"\xff" * size
    path.write_bytes(bytes(raw))
    found = read_table(path, only(y=("x", "a.b")))
    assert list(found) == ["x", "a.b"]
    np.testing.assert_array_equal(found["a.b"], np.arange(n))
    with pytest.raises(InputError, match="could not be read as Parquet"):
        read_table(path, only(y=("x", "z")))


def test_the_shell_reads_the_named_columns_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong with a used column is said; with an unused one, nothing."""
    raw = b"t,x,y,note\n" + b"".join(b"%d,0.5,0.5,\x81\xfe\n" % i for i in range(5))
    (tmp_path / "t.csv").write_bytes(raw)
    tokens = ["fit", str(tmp_path / "t.csv"), "--order", "t", "--window", "0,1,0,1", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit):
        main(tokens)
    assert "All points are the same" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*tokens, "--group", "note"])
    assert "is not UTF-8 text (line 2)" in capsys.readouterr().err


CELLS = st.one_of(
    st.sampled_from(("", "NA", "NaN", "nan", "1", "-2", "+3", "007", "1.5", ".5", "5.", "1e5", "1E-3", "1e999")),
    st.sampled_from(("inf", "-inf", "Infinity", "INF", "true", "False", "2020-01-01", "12:30", "1_000", "1,5", "٣")),
    st.sampled_from((" 1", "1 ", "1\n", "\x0b1", "1.5\x0c", "\x1c2", "\u00a01", "0x1A", "1e", "e1", "--1", "1.2.3")),
    st.sampled_from(("9223372036854775807", "9223372036854775808", "-9223372036854775809")),
    st.text(alphabet="0123456789.eE+-xXnaNi _", max_size=6),
    st.text(alphabet='ab,;\t"\n é日', max_size=4),
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.data())
def test_the_readers_agree(data: st.DataObject) -> None:
    import csv
    import io

    rows = data.draw(st.integers(1, 4))
    width = data.draw(st.integers(1, 3))
    columns = [[data.draw(CELLS) for _ in range(rows)] for _ in range(width)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([[f"c{j}" for j in range(width)], *zip(*columns)])

    def read(arrow: bool) -> dict[str, np.ndarray] | str:
        try:
            return files._parse_csv(text.getvalue().encode(), "t.csv", arrow=arrow)
        except InputError as error:
            return str(error)

    fast, slow = read(True), read(False)
    if isinstance(fast, str) or isinstance(slow, str):
        assert fast == slow
        return
    for name in slow:
        assert fast[name].dtype.kind == slow[name].dtype.kind, (name, fast[name], slow[name])
        np.testing.assert_array_equal(fast[name], slow[name])
