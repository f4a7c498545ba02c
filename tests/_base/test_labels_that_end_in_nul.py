"""NumPy's text ends before its last NULs, so that "a" and "a\\0" would be one level: such labels are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm._base import files, frames
from unnorm.errors import DataError

LABELS = ["a", "b", "a\0"]
SAID = r"Column 'g': labels must not end in the character NUL, .*: 'a\\x00' would be 'a'\. Strip it"


def of_pandas(kind: str) -> Callable[[list[str]], Any]:
    return lambda labels: pytest.importorskip("pandas").Series(labels, dtype=kind)


def of_polars(labels: list[str]) -> Any:
    return pytest.importorskip("polars").Series(labels)


COLUMNS: dict[str, Callable[[list[str]], Any]] = {
    "list": list,
    "tuple": tuple,
    "objects": lambda labels: np.array(labels, dtype=object),
    "objects with a gap": lambda labels: np.array([*labels, None], dtype=object),
    "object series": of_pandas("object"),
    "text series": of_pandas("string"),
    "category": of_pandas("category"),
    "polars": of_polars,
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns(kind: str) -> None:
    with pytest.raises(DataError, match=SAID):
        frames.to_column("g", COLUMNS[kind](LABELS))
    inside = frames.to_column("g", COLUMNS[kind](["a\0b", "a\0c", "a\0b"]))
    assert inside.levels is not None
    assert inside.levels[inside.data][:3].tolist() == ["a\0b", "a\0c", "a\0b"]


def test_parquet_files_of_any_size(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for kind in (pa.string(), pa.dictionary(pa.int32(), pa.string(), ordered=True)):
        g = pa.array(LABELS * 20).cast(pa.dictionary(pa.int32(), pa.string())).cast(kind)
        pq.write_table(pa.table({"y": np.arange(60.0) % 7, "g": g}), tmp_path / "t.parquet")
        for read in (
            lambda: un.gam("y ~ g", str(tmp_path / "t.parquet")),
            lambda: files.read_table(tmp_path / "t.parquet"),
        ):
            with pytest.raises(DataError, match=SAID):
                read()


def test_fits_and_predictions() -> None:
    y, g = np.arange(60.0) % 7, ["a", "b", "c"] * 20
    with pytest.raises(DataError, match=SAID):
        un.gam("y ~ g", {"y": y, "g": LABELS * 20})
    fit = un.gam("y ~ g", {"y": y, "g": g})
    with pytest.raises(DataError, match=SAID):
        fit.predict({"g": ["a\0"]})


def test_text_of_numpy_in_a_list_keeps_its_nul() -> None:
    """`str` of it drops the NUL: two levels would have one name."""
    for given in ([np.str_("a\0"), np.str_("a")], np.array([np.str_("a\0"), "a"], dtype=object)):
        with pytest.raises(DataError, match="must not end in the character NUL"):
            frames.to_column("g", given)
