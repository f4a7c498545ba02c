"""Tables in several files or partitions mean what they mean in memory: categories, kinds of columns, weights."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm._base import csv_streams
from unnorm.engine import gam_files, gam_frames, gam_parts
from unnorm.errors import DataError, InputError, NoEstimateError

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
N = 1_200
FORMULA = "z ~ s(x, k=5) + c"


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a few hundred rows; blocks of text of 8 kB."""
    for module in (gam_files, gam_parts, gam_frames):
        monkeypatch.setattr(module, "PART", 300)
    monkeypatch.setattr(csv_streams, "_BLOCK", 2**13)


def table() -> Any:
    rng = np.random.default_rng(15)
    x, level = rng.uniform(0, 1, N), rng.integers(0, 3, N)
    z = np.sin(6 * x) + np.array([0.0, 0.5, 2.0])[level] + rng.normal(0, 0.4, N)
    return pd.DataFrame({"z": z, "x": x, "c": level, "y": (rng.random(N) < 0.5).astype(float)})


def equal(whole: un.Gam, apart: un.Gam) -> None:
    assert list(whole.coefficients) == list(apart.coefficients)
    np.testing.assert_allclose(apart.smoothed.beta, whole.smoothed.beta, rtol=1e-10, atol=1e-10)
    assert apart.n == whole.n


LABELS = np.array(["low", "mid", "high"])


@pytest.mark.parametrize(
    "category",
    [
        lambda level: pd.Categorical.from_codes(level, list(LABELS)),
        lambda level: pd.Categorical.from_codes(level, ["b", "unused", "a"]),
        lambda level: pd.Categorical(np.array([2, 10, 30])[level], [2, 10, 30]),
    ],
    ids=["own order", "unused", "numbers"],
)
def test_a_category_of_a_file_keeps_its_levels(category: Callable[[Any], Any], tmp_path: Path, client: Any) -> None:
    """A category of numbers is a factor and not a slope; the first level is the one that the owner put first."""
    dd = pytest.importorskip("dask.dataframe")
    data = table()
    level = data["c"].to_numpy()
    data["c"] = category(np.where(level == 1, 0, level))
    whole = un.gam(FORMULA, data)
    assert "c" not in whole.coefficients
    data.to_parquet(tmp_path / "rows.parquet", row_group_size=250)
    (tmp_path / "folder").mkdir()
    data[:700].to_parquet(tmp_path / "folder" / "a.parquet")
    data[700:].to_parquet(tmp_path / "folder" / "b.parquet")
    equal(whole, un.gam(FORMULA, tmp_path / "rows.parquet"))
    equal(whole, un.gam(FORMULA, tmp_path / "folder", workers=client))
    equal(whole, un.gam(FORMULA, dd.from_pandas(data, npartitions=4), workers=client))


def test_an_ordered_category_of_a_file_is_ordered(tmp_path: Path) -> None:
    data = table()
    data["c"] = pd.Categorical.from_codes(data["c"], list(LABELS), ordered=True)
    data.to_parquet(tmp_path / "rows.parquet")
    formula = "z ~ s(x, k=5) + s(x, by=c, k=4)"  # of an ordered factor, the first level has no curve
    assert list(un.gam(formula, tmp_path / "rows.parquet").coefficients) == list(un.gam(formula, data).coefficients)


def test_categories_that_partitions_order_differently_are_text(client: Any) -> None:
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    data = table()
    data["c"] = pd.Categorical.from_codes(data["c"], list(LABELS))
    a, b = data[:500], data[500:].copy()
    b["c"] = b["c"].cat.reorder_categories(["high", "low", "mid"])
    frame = dd.from_delayed([dask.delayed(one) for one in (a, b)], meta=a[:0])
    equal(un.gam(FORMULA, data.astype({"c": str})), un.gam(FORMULA, frame, workers=client))


def test_partitions_may_be_empty_of_one_row_or_without_weight(tmp_path: Path, client: Any) -> None:
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    data = table()
    data["c"] = np.array(["a", "b"])[(np.arange(N) > 1_150).astype(int)]  # a level of the last partition alone
    data["w"] = np.where(np.arange(N) < 620, 0.0, 1.5)
    whole = un.gam(FORMULA, data, weights="w")
    cuts = [0, 1, 400, 400, 620, 1_000, N]
    parts = [data[a:b] for a, b in pairwise(cuts)]
    frame = dd.from_delayed([dask.delayed(one) for one in parts], meta=data[:0])
    equal(whole, un.gam(FORMULA, frame, weights="w", workers=client))
    for i, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{i}.parquet")
    equal(whole, un.gam(FORMULA, tmp_path, weights="w"))
    data["w"] = 0.0
    data.to_parquet(tmp_path / "0.parquet")
    with pytest.raises(DataError, match="weights are zero in every row"):
        un.gam(FORMULA, tmp_path / "0.parquet", weights="w")
    with pytest.raises(DataError, match="weights are zero in every row"):
        un.gam(FORMULA, data, weights="w")


@pytest.mark.parametrize("more", [{}, {"memory": "50MB"}], ids=["whole", "parts"])
@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson"])
def test_weights_of_any_size_fit_or_have_a_sentence(family: Any, more: dict[str, Any]) -> None:
    """Of a Gaussian response the size of all weights changes nothing but the scale."""
    data, formula = table()[:400], "y ~ s(x, k=5)" if family != "gaussian" else "z ~ s(x, k=5)"
    for size in (1e-300, 1e-30, 1e150, 1e300):
        with pytest.raises(DataError, match=r"weights are .* on average.*Divide them by their mean"):
            un.gam(formula, data.assign(w=size), family, weights="w", **more)
    if family == "gaussian":
        plain = un.gam(formula, data, **more)
        for size in (1e-12, 1e90):
            found = un.gam(formula, data.assign(w=size), weights="w", **more)
            np.testing.assert_allclose(found.predict().estimate, plain.predict().estimate, atol=1e-8)
            assert found.smoothed.scale == pytest.approx(size * plain.smoothed.scale, rel=1e-8)


def test_separation_is_seen_beside_a_part_without_rows(tmp_path: Path) -> None:
    data = table()
    data["y"] = (data["x"] > 0.5).astype(float)
    data.loc[:400, "x"] = np.nan
    data.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(NoEstimateError, match="separates"):
        un.gam("y ~ x", tmp_path / "rows.parquet", "binomial", missing="drop")


def test_the_present_client_has_a_dask_data_frame(client: Any) -> None:
    dd = pytest.importorskip("dask.dataframe")
    equal(un.gam(FORMULA, table()), un.gam(FORMULA, dd.from_pandas(table(), npartitions=3)))


# --- CSV --------------------------------------------------------------------------------------------------------------


def lines(data: Any, c: Callable[[int, int], str] = lambda i, c: str(c), x: Any = None) -> list[str]:
    cells = [repr(v) for v in data["x"].tolist()] if x is None else x
    return [f"{z!r},{cells[i]},{c(i, int(k))}" for i, (z, k) in enumerate(zip(data["z"].tolist(), data["c"]))]


def written(path: Path, rows: list[str], header: str = "z,x,c") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_column_may_begin_as_another_kind(tmp_path: Path) -> None:
    data = table()
    whole = np.arange(N) < 900
    data["x"] = np.where(whole, np.round(50 * data["x"]), 50 * data["x"])
    cells = [str(int(v)) if i < 900 else repr(v) for i, v in enumerate(data["x"].tolist())]
    equal(un.gam(FORMULA, data), un.gam(FORMULA, written(tmp_path / "a.csv", lines(data, x=cells))))
    late = written(tmp_path / "b.csv", lines(data, lambda i, c: "" if i < 900 else str(c)))
    missing = data.assign(c=np.where(whole, np.nan, data["c"]))
    equal(un.gam(FORMULA, missing, missing="drop"), un.gam(FORMULA, late, missing="drop"))
    text = written(tmp_path / "c.csv", lines(data, lambda i, c: str(c) if i < 900 or c < 2 else "two"))
    labels = ["two" if i >= 900 and c == 2 else str(c) for i, c in enumerate(data["c"])]
    equal(un.gam(FORMULA, data.assign(c=labels)), un.gam(FORMULA, text))


def test_files_together_decide_what_a_column_is(tmp_path: Path) -> None:
    data = table()
    rows = lines(data, lambda i, c: str(c) if i < 600 or c < 2 else "two")
    written(tmp_path / "a.csv", rows[:600])
    written(tmp_path / "b.csv", rows[600:])
    labels = ["two" if i >= 600 and c == 2 else str(c) for i, c in enumerate(data["c"])]
    equal(un.gam(FORMULA, data.assign(c=labels)), un.gam(FORMULA, tmp_path))
    data[:600].to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"'c' holds text in '.*a.csv' and numbers in '.*a.parquet'"):
        un.gam(FORMULA, tmp_path)


@pytest.mark.parametrize(
    "labels",
    [("0x1A", "0x2B", "0x3C"), ("2020-01-01", "2021-05-05", "2022-07-07"), ("true", "false", "1"), ("a\nb", "c", "d")],
    ids=["hexadecimal", "dates", "booleans", "line ends"],
)
def test_what_is_no_number_is_text(labels: tuple[str, ...], tmp_path: Path) -> None:
    data = table()
    path = written(tmp_path / "rows.csv", lines(data, lambda i, c: f'"{labels[c]}"'))
    equal(un.gam(FORMULA, data.assign(c=[labels[c] for c in data["c"]])), un.gam(FORMULA, path))


def test_headers_and_marks(tmp_path: Path) -> None:
    data = table()
    whole, rows = un.gam(FORMULA, data), lines(data)
    equal(whole, un.gam(FORMULA, written(tmp_path / "blank.csv", rows, "z, x , c")))
    equal(whole, un.gam(FORMULA, written(tmp_path / "mark.csv", rows, "\ufeff\n\nz,x,c")))
    tabs = written(tmp_path / "tabs.csv", [row.replace(",", "\t") for row in rows], "z\tx\tc")
    equal(whole, un.gam(FORMULA, tabs))
    german = [row.replace(",", ";").replace(".", ",") for row in rows]
    equal(whole, un.gam(FORMULA, written(tmp_path / "german.csv", german, "z;x;c")))
    for end in ("\r\n", "\r"):
        (tmp_path / "ends.csv").write_bytes(end.join(["z,x,c", *rows, ""]).encode())
        equal(whole, un.gam(FORMULA, tmp_path / "ends.csv"))
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress("\n".join(["z,x,c", *rows, ""]).encode()))
    equal(whole, un.gam(FORMULA, tmp_path / "rows.csv.gz"))


@pytest.mark.parametrize(
    ("raw", "name", "message"),
    [
        (b"", "a.csv", "is empty"),
        (b"z,x,c\n", "a.csv", "has columns but no rows"),
        (b"z,x,x\n1,2,3\n", "a.csv", "'x' came more than once"),
        (b"z,x,c\n1,2,3\n1,2\n", "a.csv", "could not be read.*Expected 3 columns, got 2"),
        ("z,x,c\n1,2,é\n".encode("latin1"), "a.csv", "is not UTF-8 text"),
        (b"z,x,d\n1,2,3\n", "a.csv", "There is no column 'c'"),
        (b"\x1f\x8bnothing", "a.csv.gz", "could not be read"),
        (gzip.compress(b"z,x,c\n" + b"1,2,3\n" * 5_000)[:-30], "a.csv.gz", "could not be read"),
        (b"1,2,3\n4,5,6\n", "a.csv", "must name the columns"),
    ],
    ids=["empty", "no rows", "twice", "ragged", "latin1", "no column", "no gzip", "cut gzip", "no names"],
)
def test_text_that_is_no_table_has_a_sentence(raw: bytes, name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(InputError, match=message):
        un.gam(FORMULA, tmp_path / name)


def test_a_file_that_changes_during_the_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, path = table(), tmp_path / "rows.parquet"
    data.to_parquet(path, row_group_size=100)
    real = gam_files.FileRows.parts

    def parts(*given: Any) -> Any:
        found = real(*given)
        data.assign(z=data["z"] + 1.0).to_parquet(path, row_group_size=90)
        return found

    monkeypatch.setattr(gam_files.FileRows, "parts", parts)
    with pytest.raises(DataError, match="was changed while it was being fitted"):
        un.gam(FORMULA, path)


def test_a_full_disk_names_the_file_and_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    path = written(tmp_path / "rows.csv", lines(table()))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(InputError, match=r"rows.csv'.*No space left on device.*TMPDIR"):
        un.gam(FORMULA, path)
    assert [one.name for one in tmp_path.iterdir()] == ["rows.csv"]


def test_what_a_killed_process_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / ".unnorm-rows.unnorm-abcdefgh"
    left.mkdir()
    (left / "rows-000000.parquet").write_bytes(b"half")
    un.gam(FORMULA, written(tmp_path / "rows.csv", lines(table())))
    assert [one.name for one in tmp_path.iterdir()] == ["rows.csv"]
