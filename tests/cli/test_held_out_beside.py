"""Held-out scores from another process are those of this one, and nothing is lost where it fails."""

from __future__ import annotations

import subprocess
import sys
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
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert beside._answer(process, of) == found
