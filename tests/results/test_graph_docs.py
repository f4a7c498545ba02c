"""The example of docs/graphs.md runs, and its table of statistics names every one."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from unnorm.errors import UnnormWarning
from unnorm.models.graphs import STATISTICS

PAGE = (Path(__file__).parents[2] / "docs" / "graphs.md").read_text(encoding="utf-8")


def test_the_example_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)
        exec(compile(block, "docs/graphs.md", "exec"), names)
    assert {"pseudo", "fit", "gof"} <= set(names)


def test_every_statistic_is_listed() -> None:
    table = PAGE.split("## Statistics")[1].split("Covariates that vary")[0]
    listed = set(re.findall(r"`([a-z]+)", table))
    assert listed == set(STATISTICS)
