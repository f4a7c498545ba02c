"""`un.gam` from Dask data frames and from data sets of several files: the fit of the table in memory."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_parts import FORMULA, agree, fitted, rows

import unnorm as un
from unnorm.engine import gam_frames, placing
from unnorm.errors import CombinationError, DataError, InputError, WorkersError

N = 6_000


def frame(data: dict[str, np.ndarray], partitions: int) -> Any:
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    return dd.from_pandas(pd.DataFrame(data), npartitions=partitions, sort=False)


@pytest.mark.parametrize("partitions", [1, 5])
def test_partitions_have_the_fit_of_the_table(partitions: int, client: Any) -> None:
    data = rows(N)
    whole, apart = fitted(data, memory="1GB"), fitted(frame(data, partitions), workers=client)
    agree(whole, apart)
    assert apart.n == N


def test_partitions_may_be_cut_into_parts(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows(N)
    monkeypatch.setattr(gam_frames, "PART", 700)  # the workers are threads of this process
    agree(fitted(data), fitted(frame(data, 3), workers=client))


def test_a_sample_of_partitions_is_that_of_the_table(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "PLACING", 2_048)
    data = rows(N)
    data["t"] = np.array(["u", "v"])[(np.arange(N) == 4_321).astype(int)]
    whole = un.gam("y ~ s(x, k=8) + factor(t)", data, family="gaussian", memory="1GB")
    apart = un.gam("y ~ s(x, k=8) + factor(t)", frame(data, 4), family="gaussian", workers=client)
    np.testing.assert_allclose(whole.smoothed.beta, apart.smoothed.beta, atol=1e-10)
    assert apart.whole == N
    assert 2_048 <= apart.y.size < 2_070


def test_categories_keep_their_order(client: Any) -> None:
    pd = pytest.importorskip("pandas")
    data: dict[str, Any] = rows(2_000)
    data["c"] = pd.Categorical(np.array(["low", "mid", "high"])[np.arange(2_000) % 3], ["low", "mid", "high"])
    whole = un.gam("y ~ factor(c)", pd.DataFrame(data), family="gaussian")
    apart = un.gam("y ~ factor(c)", frame(data, 3), family="gaussian", workers=client)
    assert list(whole.coefficients) == list(apart.coefficients)
    np.testing.assert_allclose(whole.smoothed.beta, apart.smoothed.beta, atol=1e-10)


def test_missing_values_are_refused_by_partition_or_dropped(client: Any) -> None:
    data = rows(N)
    data["x"] = np.where(np.arange(N) % 100 == 7, np.nan, data["x"])
    data["x"][:2_000] = np.nan  # a partition without a row
    with pytest.raises(DataError, match=r"Partition \d of the Dask data frame: \d+ of 2000 rows"):
        fitted(frame(data, 3), workers=client)
    dropped = fitted(frame(data, 3), workers=client, missing="drop")
    agree(fitted(data, memory="1GB", missing="drop"), dropped)
    assert any("2040 of 6000 rows were left out" in note for note in dropped.notes)


def _none() -> None:
    raise ValueError("No clients found")


def test_what_cannot_be_fitted_is_refused(client: Any) -> None:
    data = frame(rows(500), 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("distributed.default_client", _none)
        with pytest.raises(CombinationError, match="pass workers=client"):
            un.gam("y ~ s(x)", data)
    with pytest.raises(InputError, match="There is no column 'zz'"):
        un.gam("y ~ s(zz)", data, workers=client)
    array = pytest.importorskip("dask.array").zeros((10, 2))
    with pytest.raises(InputError, match="takes data frames"):
        un.gam("y ~ s(x)", array, workers=client)
    with pytest.raises(InputError, match="weights must be the name of one of its columns"):
        un.gam("y ~ s(x)", data, weights=np.ones(500), workers=client)
    made = gam_frames.DaskParts(None, None, client, None, (), (0,))  # pyright: ignore[reportArgumentType]
    with pytest.raises(WorkersError, match="with its workers"):
        made.at_home(1e9, 1)


def test_several_files_are_one_table(tmp_path: Path, client: Any) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    data, folder = rows(N), tmp_path / "rows.parquet"
    folder.mkdir()
    (folder / "_SUCCESS.csv").write_text("not data\n")
    cuts = [0, 1_500, 1_600, N]
    for i, (a, b) in enumerate(pairwise(cuts)):
        part = {name: column[a:b] for name, column in data.items()}
        pq.write_table(pa.table(part), folder / f"part-{i}.parquet", row_group_size=700)
        text = "\n".join([",".join(part), *(",".join(repr(float(v)) for v in row) for row in zip(*part.values()))])
        (tmp_path / f"rows-{i}.csv").write_text(text + "\n")
    whole = fitted(data, memory="1GB")
    agree(whole, fitted(folder))  # pyright: ignore[reportArgumentType]
    agree(whole, fitted(str(folder), workers=client))  # pyright: ignore[reportArgumentType]
    agree(whole, fitted(str(tmp_path / "rows-*.csv"), workers=client))  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="No file matches"):
        un.gam(FORMULA, tmp_path / "nothing-*.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no file that ends in"):
        un.gam(FORMULA, tmp_path / "empty")
