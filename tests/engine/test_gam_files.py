"""`un.gam` from files: the same fit as from a table in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_parts import agree, rows

import unnorm as un
from unnorm.engine import gam_files, gam_parts, placing
from unnorm.errors import DataError, InputError

pa = pytest.importorskip("pyarrow")
FORMULA = "y ~ s(x, k=12) + s(px, py, k=15) + factor(g) + offset(log(w))"


def write(folder: Path, data: dict[str, Any], kind: str) -> Path:
    path = folder / f"rows.{kind}"
    table = pa.table(data)
    if kind == "parquet":
        pa.parquet.write_table(table, path, row_group_size=1_700)
    else:
        pa.csv.write_csv(table, path)
    return path


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401

    monkeypatch.setattr(gam_parts, "PART", 2_500)
    monkeypatch.setattr(gam_files, "PART", 2_500)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_has_the_fit_of_its_table(kind: str, tmp_path: Path) -> None:
    data = rows()
    path = write(tmp_path, {**data, "unused": np.arange(12_000)}, kind)
    whole = un.gam(FORMULA, data, family="binomial", weights="w")
    for memory in (None, "700kB"):
        file = un.gam(FORMULA, path, family="binomial", weights="w", memory=memory)
        agree(whole, file)
        assert file.whole is None
        np.testing.assert_array_equal(file.y, whole.y)


def test_a_large_file_leaves_a_sample_with_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows()
    path = write(tmp_path, data, "parquet")
    monkeypatch.setattr(placing, "PLACING", 4_096)
    monkeypatch.setattr(gam_files, "PLACING", 4_096)
    formula = "y ~ s(x, k=12) + s(px, py, k=15)"
    whole, file = un.gam(formula, data, family="binomial"), un.gam(formula, str(path), family="binomial")
    assert file.whole == 12_000
    assert 4_096 <= file.y.size < 4_110
    assert file.n == 12_000
    np.testing.assert_allclose(file.smoothed.beta, whole.smoothed.beta, atol=1e-10)
    assert file.loglik == pytest.approx(whole.loglik, abs=1e-4)
    new = {name: data[name][:50] for name in ("x", "px", "py")}
    np.testing.assert_allclose(file.predict(new).se, whole.predict(new).se, rtol=1e-8)
    assert file.linear_predictor.size == file.y.size
    np.testing.assert_allclose(file.effect("s(x)")["estimate"], whole.effect("s(x)")["estimate"], atol=1e-9)


def test_missing_values_of_a_file_are_refused_or_dropped(tmp_path: Path) -> None:
    data = rows()
    data["x"] = np.where(np.arange(12_000) % 100 == 7, np.nan, data["x"])
    path = write(tmp_path, data, "parquet")
    with pytest.raises(DataError, match=r"Rows 0 to 2,499 of .*25 of 2500 rows have missing"):
        un.gam(FORMULA, path, family="binomial")
    file = un.gam(FORMULA, path, family="binomial", missing="drop")
    assert any("120 of 12000 rows were left out" in note for note in file.notes)
    agree(un.gam(FORMULA, data, family="binomial", missing="drop"), file, 1e-3)  # parts begin at other rows


def test_what_a_file_lacks_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, rows(), "parquet")
    with pytest.raises(InputError, match="There is no column 'z'"):
        un.gam("y ~ s(z)", path)
    with pytest.raises(InputError, match="There is no file"):
        un.gam("y ~ s(x)", tmp_path / "nothing.parquet")
    with pytest.raises(InputError, match="weights must be the name of one of its columns"):
        un.gam("y ~ s(x)", path, weights=np.ones(12_000))
    (tmp_path / "odd.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match="could not be read as Parquet"):
        un.gam("y ~ s(x)", tmp_path / "odd.parquet")


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    """pyarrow reads neither of them by its name, and says so with a KeyError."""
    path = tmp_path / "t.parquet"
    columns = [pa.array(np.arange(9.0))] * 3
    for names in (["x", "y", "x"], ["x", "y", "y"]):
        pa.parquet.write_table(pa.Table.from_arrays(columns, names=names), path)
        with pytest.raises(InputError, match=r"must be distinct; '[xy]' came more than once"):
            un.gam("y ~ x", path)
