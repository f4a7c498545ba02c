"""The three readers of CSV give the same columns of random tables of odd cells: pyarrow's, our own, and that of files
larger than memory."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unnorm._base import arrow_columns, csv_streams, files
from unnorm.errors import UnnormError

pq = pytest.importorskip("pyarrow.parquet")
# fmt: off
CELLS = [
    "1", "-2", "+3", "0", "007", "1.5", "-.5", "5.", "1e3", "1E-300", "1e300", "1e-310", "1e400", "inf", "-inf",
    "Infinity", "9223372036854775807", "abc", "true", "FALSE", "2020-01-01", "0x1A", "1_000", "٣", "\u00a05", "1e",
    "1.2.3", "--1", "'x'", "é", "null", "-", "N/A", "10:30", "50%", "$5", "nan(1)", "NAN", "9223372036854775808",
    "-9223372036854775809", "", " ", "NA", "NaN", "nan", "  4", "4 ", "\t7", "1,5", "1,234", "12,345", "1;2", "a\tb",
    "1 2", "1,5e3", ".", "..", "say \"x\"", "two\nlines",
]
# fmt: on


def _random(rng: random.Random) -> str:
    mark = rng.choice(",;\t")
    pools = [rng.sample(CELLS, rng.choice([1, 2, 3, 5])) for _ in "abc"]

    def cell(pool: list[str]) -> str:
        one = rng.choice(pool)
        quoted = '"' + one.replace('"', '""') + '"'
        return quoted if mark in one or '"' in one or "\n" in one or rng.random() < 0.1 else one

    rows = [mark.join(cell(pool) for pool in pools) for _ in range(rng.choice([1, 2, 5, 30]))]
    return rng.choice(["", "\ufeff"]) + mark.join("abc") + "\n" + "\n".join(rows) + rng.choice(["", "\n"])


def _streamed(path: Path) -> dict[str, np.ndarray]:
    file = csv_streams.text_file(path)
    target = path.with_suffix(".parquet")
    csv_streams.TextFiles([file], "abc").write(file, target, 10)
    found = pq.read_table(target)
    return {name: arrow_columns.from_arrow(name, found[name]) for name in "abc"}


def _plain(column: np.ndarray) -> tuple[str, list[Any]]:
    kind = "text" if column.dtype.kind in "UO" else column.dtype.kind
    return kind, [None if value is None or value != value else value for value in column.tolist()]


@pytest.mark.parametrize("seed", range(4))
def test_random_tables(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_streams, "_BLOCK", 128)  # several blocks, none shorter than a row
    rng, path = random.Random(seed), tmp_path / "t.csv"
    for _ in range(60):
        text = _random(rng)
        path.write_text(text, encoding="utf-8", newline="")
        found = []
        for read in (
            lambda: files._parse_csv(path.read_bytes(), "t.csv", arrow=True),
            lambda: files._parse_csv(path.read_bytes(), "t.csv", arrow=False),
            lambda: _streamed(path),
        ):
            try:
                found.append({name: _plain(column) for name, column in read().items()})
            except UnnormError as error:
                found.append(type(error).__name__)
        assert found[0] == found[1], text
        assert found[0] == found[2], text


@pytest.mark.parametrize("kind", ["int8", "int64", "uint32", "float32", "float64"])
def test_numbers_of_arrow_are_those_that_it_gives_itself(kind: str) -> None:
    import pyarrow as pa

    parts = [[1, 2, 3], [], [4, 5]]
    column = pa.chunked_array([pa.array(part, kind) for part in parts])
    gaps = pa.chunked_array([pa.array([1, None, 3], kind)])
    none = pa.chunked_array([], type=kind)
    for one in (column, column.slice(1, 3), column.chunk(0), gaps, none):
        found = arrow_columns._numbers(one)
        assert found.dtype == one.to_numpy(zero_copy_only=False).dtype
        np.testing.assert_array_equal(found, one.to_numpy(zero_copy_only=False))


def test_a_table_of_numbers_is_read_without_pandas(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2.5\n3,4.5\n")
    code = (
        f"import sys; from unnorm._base import files; files.read_table({str(path)!r}); print('pandas' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
