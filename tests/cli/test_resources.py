"""--memory and --workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unnorm.cli import app, run
from unnorm.engine.resources import Resources


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ([], Resources()),
        (["--memory", "2GB"], Resources("2GB")),
        (["--workers", "3"], Resources(None, 3)),
        (["--workers", "tcp://host:8786"], Resources(None, "tcp://host:8786")),
    ],
)
def test_where_rows_may_live_reaches_the_fit(
    given: list[str], meant: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []
    monkeypatch.setattr(run, "run_job", lambda *arguments: found.append(arguments[-1]))
    table = tmp_path / "points.csv"
    table.write_text("x,y\n0.1,0.2\n0.3,0.4\n")
    tokens = ["fit", str(table), "--terms", "s(step)", "--window", "0,1,0,1", "--out", str(tmp_path / "out"), *given]
    app(tokens, exit_on_error=False, result_action="return_value")
    assert found == [meant]
