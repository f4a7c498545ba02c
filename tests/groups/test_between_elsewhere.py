"""Conditions compared with workers and across interruptions: the numbers of one uninterrupted process."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.groups import each

pytestmark = pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
MODEL = un.Additive("s(gap, k=5)", un.Interval(-1, 1), covariates=[un.Expression("gap", "abs(y - y_prev)")])


def _obs(within: bool) -> un.Observations:
    rng, rows = np.random.default_rng(31), []
    for who in range(6):
        for condition in range(2):
            if within or who % 2 == condition:
                y = np.tanh(np.cumsum(rng.normal(0, 0.2 + 0.2 * condition, 60)) % 4.0 - 2.0)
                rows += [(who, "AB"[condition], t, value) for t, value in enumerate(y.tolist())]
    who, condition, t, y = (np.array(column) for column in zip(*rows))
    return un.transitions(
        {"who": who, "condition": condition, "t": t, "y": y}, y="y", order="t", group=("who", "condition")
    )


def _numbers(found: un.FitGroup, folder: Path) -> dict[str, bytes]:
    """All that is saved, but for the time that it took."""
    found.diagnostics.pop("seconds")  # pyright: ignore
    shutil.rmtree(folder, ignore_errors=True)
    for one in found.fits.values():
        one.advise()
    found.save(folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("within", [False, True], ids=["between", "within"])
def test_workers_and_a_checkpoint_change_no_digit(
    within: bool, tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    obs = _obs(within)

    def fitted(**more: Any) -> un.FitGroup:
        objective = un.Logistic(un.Uniform(), per_point=4)
        return un.fit_each(MODEL, obs, "who", objective, rng=4, between="condition", **more)

    whole = fitted()
    assert whole.conditions is not None, whole.no_group
    assert whole.conditions.design == ("within" if within else "between")
    expected = _numbers(whole, tmp_path / "whole")
    more = {"workers": client, "checkpoint": tmp_path / "kept"}
    real = each.mapped

    def interrupted(work: Any, tasks: Any, *given: Any, **named: Any) -> Any:
        real(work, tasks[:3], *given, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(each, "mapped", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fitted(**more)
    assert len(list((tmp_path / "kept").glob("level-*"))) == 3
    begun: list[int] = []
    monkeypatch.setattr(
        each, "mapped", lambda work, tasks, *a, **k: begun.append(len(tasks)) or real(work, tasks, *a, **k)
    )
    for left in (len(whole.fits) - 3, 0):
        found = _numbers(fitted(**more), tmp_path / "again")
        assert begun.pop() == left
        assert found.keys() == expected.keys()
        assert [name for name in found if found[name] != expected[name]] == []
