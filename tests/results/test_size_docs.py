"""The calls of docs/size.md run, on small data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import unnorm as un

PAGE = (Path(__file__).parents[2] / "docs" / "size.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # few rows
def test_the_calls(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"x": rng.random(900), "a": rng.uniform(-np.pi, np.pi, 900)})
    table["y"] = (rng.random(900) < 0.3 + 0.4 * table["x"]).astype(float)
    table.to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "rows").mkdir()
    for i in range(2):
        table[i::2].to_parquet(tmp_path / "rows" / f"{i}.parquet")
    walk = np.clip(np.cumsum(rng.normal(0, 0.1, (400, 2)), axis=0) % 1.0, 0.01, 0.99)
    steps = {"subject": np.repeat([1, 2], 200), "x": walk[:, 0], "y": walk[:, 1]}
    names: dict[str, Any] = {
        "client": client,
        "model": un.Additive("s(step, k=5)", un.Box((0, 1), (0, 1))),
        "obs": un.transitions(steps, y=("x", "y"), group="subject"),
        "objective": un.Logistic(un.Uniform(), per_point=5),
        "chi": un.Smooth("s(x_prev, y_prev, k=8)"),
    }
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
    here = block.replace("workers=4", "workers=client")  # two threads, where the page starts four processes
    exec(compile(here, "docs/size.md", "exec"), names)  # the documentation's own text, not a user's
    assert names["fit"].converged
    assert set(names["each"].fits) == {"1", "2"}
