"""--memory and --workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unnorm.cli import compare, run
from unnorm.cli.commands import app
from unnorm.cli.options import Options, shell_workers
from unnorm.cli.progress import Progress
from unnorm.engine.resources import Resources
from unnorm.errors import InputError


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
    monkeypatch.setattr(run, "run_job", lambda *arguments: found.append(arguments[5]))
    table = tmp_path / "points.csv"
    table.write_text("x,y\n0.1,0.2\n0.3,0.4\n")
    tokens = ["fit", str(table), "--terms", "s(step)", "--window", "0,1,0,1", "--out", str(tmp_path / "out"), *given]
    app(tokens, exit_on_error=False, result_action="return_value")
    assert found == [meant]


@pytest.mark.parametrize("wrong", ["0", "-2", "two", "1.5", "host:8786"])
def test_workers_that_are_no_number_and_no_address_are_refused(wrong: str) -> None:
    with pytest.raises(InputError, match="--workers must be a number of processes"):
        shell_workers(wrong)


def test_the_toy_experiment_takes_workers_in_place_of_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []

    def stop(toy: Any, out: Any, jobs: Any, progress: Any) -> None:
        found.append(jobs)
        raise InputError("enough")

    monkeypatch.setattr("unnorm.studies.reproduce_toy.run", stop)
    for given in ([], ["--workers", "3"], ["--workers", "tcp://host:8786"]):
        with pytest.raises(InputError, match="enough"):
            app(["reproduce", "toy", "--out", str(tmp_path), *given], exit_on_error=False, result_action="return_value")
    assert found == [2, 3, "tcp://host:8786"]


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
def test_folds_compared_by_workers_have_the_same_bits(tmp_path: Path, client: Any) -> None:
    rng = np.random.default_rng(4)
    rows = ["x,y,image"]
    for image in range(4):
        path = 0.02 + 0.96 * rng.random((40, 2))
        rows += [f"{x:.6f},{y:.6f},{image}" for x, y in path]
    table = tmp_path / "points.csv"
    table.write_text("\n".join(rows) + "\n")
    given = {"y": "x,y", "group": "image", "window": "0,1,0,1", "references": "3", "normaliser": "s(x_prev, k=4)"}
    job = Options(**given).job(data=str(table))
    plan = compare._plan(job, {"near": "s(step, k=4)", "flat": "s(dcenter, k=4)"}, "image", 2)
    here, there = (compare.compared(plan, Progress((), quiet=True), where) for where in (None, client))
    for name in ("edf", "ncic", "bits", "bits_below_best_se"):
        np.testing.assert_allclose(here[name], there[name], rtol=1e-9)
    assert here["bits"][0] != here["bits"][1]
