"""Held-out scores from another process are those of this one, and nothing is lost where it fails."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm.cli import beside
from unnorm.cli.config import checked_job
from unnorm.cli.jobs import Prepared, prepare, refit
from unnorm.report.analysis import grouped
from unnorm.report.held_out import held_out_scores

pytestmark = pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    table = un.datasets.eye()
    rows = [f"{table['subject'][i]},{table['image'][i]},{table['fix'][i]},{table['x'][i]},{table['y'][i]}"
            for i in np.flatnonzero((table["subject"] <= 2) & (table["image"] <= 12))]  # fmt: skip
    path = tmp_path / "fixations.csv"
    path.write_text("\n".join(["subject,image,fix,x,y", *rows]))
    settings = {"data": str(path), "order": "fix", "group": ("subject", "image"), "by": "subject"}
    more = {"window": (0, 800, 0, 600), "terms": "s(step, k=5)", "references": 4}
    return prepare(checked_job({**settings, **more}))


def test_another_process_finds_the_same_and_a_failure_is_told(prepared: Prepared, monkeypatch) -> None:
    monkeypatch.setattr(beside, "MANY", 0)
    monkeypatch.setattr(beside, "may_start", lambda: True)
    monkeypatch.setattr(beside, "cached", lambda: True)
    monkeypatch.setattr(beside, "cores", lambda: 2)
    with beside.held_out_beside(prepared) as asked:
        assert asked is not None
        fits = un.fit_each(prepared.model, prepared.obs, "subject", prepared.objective, rng=1)
        again = partial(refit, prepared, prepared.model)
        analysis = grouped(fits, prepared.model, prepared.inside(), seed=prepared.job.seed, refit=again)
        assert asked() == held_out_scores(analysis)
    Path(prepared.job.data).unlink()  # the process cannot read it
    with beside.held_out_beside(prepared) as asked:
        assert asked is not None
        assert asked() is None


def test_few_rows_and_conditions_start_no_process(prepared: Prepared, monkeypatch) -> None:
    monkeypatch.setattr(beside, "may_start", lambda: True)
    monkeypatch.setattr(beside, "cached", lambda: True)
    monkeypatch.setattr(beside, "cores", lambda: 2)
    assert prepared.obs.n < beside.MANY
    with beside.held_out_beside(prepared) as asked:
        assert asked is None


def test_scores_of_other_observations_are_not_taken() -> None:
    code = 'print(\'{"observations": "other", "scores": {}}\')'
    for of, found in (("this", None), ("other", {})):
        other = beside.Other()
        other._process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert beside._answer(other, of) == found


def test_the_process_waits_until_kernels_are_compiled_and_is_not_waited_for_after_that(monkeypatch) -> None:
    compiled: list[bool] = []
    begins, said = [], []
    monkeypatch.setattr(beside, "may_start", lambda: True)
    monkeypatch.setattr(beside, "cores", lambda: 2)
    monkeypatch.setattr(beside, "cached", lambda: bool(compiled))
    monkeypatch.setattr(beside, "LOOK", 0.005)
    monkeypatch.setattr(beside, "started", lambda *_, **__: begins.append(0) or len(begins))
    monkeypatch.setattr(beside, "tell", lambda process, what: said.append((process, what)))
    monkeypatch.setattr(beside, "end", lambda process: said.append((process, None)))
    with beside.Other() as other:
        other.tell(b"job")
        assert not begins
        compiled.append(True)
        for _ in range(400):
            if said:
                break
            time.sleep(0.005)
        assert said == [(1, b"job")]
    assert said == [(1, b"job"), (1, None)]
    compiled.clear()
    with beside.Other() as other:
        assert other.answer() is None  # there is none yet,
        compiled.append(True)
        time.sleep(0.05)
    assert len(begins) == 1  # and it will not be started for nothing
