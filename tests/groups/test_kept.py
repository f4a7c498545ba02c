"""`fit_each(checkpoint=…)`: levels that were finished are not fitted again, and no digit differs."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import EstimationError, InputError, UnnormWarning
from unnorm.groups import each

MODEL = un.Additive("s(gap, k=5)", un.Interval(-1, 1), covariates=[un.Expression("gap", "abs(y - y_prev)")])
LOGISTIC = un.Logistic(un.Uniform(), per_point=4)


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Levels in turn, so that an interruption is after a known number of them."""
    monkeypatch.setattr(each, "cores", lambda: 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)
        yield


@pytest.fixture(scope="module")
def obs() -> un.Observations:
    chain = un.transitions(un.datasets.toy_chain(150, 0.5, 5.0, rng=1))
    weight = np.random.default_rng(2).uniform(0.5, 2.0, chain.n)
    return un.Observations(**{**vars(chain), "group": {"who": np.arange(chain.n) // 50}, "weight": weight})


def _fit(obs: un.Observations, **more: Any) -> un.FitGroup:
    return un.fit_each(MODEL, obs, "who", **{"objective": LOGISTIC, "rng": 3, **more})


def _interrupted(after: int, obs: un.Observations, monkeypatch: pytest.MonkeyPatch, **more: Any) -> list[str]:
    """Ctrl-C when so many levels are finished; which were begun."""
    real, begun = each._fit_level, []

    def level(parts: Any, own: Any, name: str) -> Any:
        if len(begun) == after:
            raise KeyboardInterrupt
        begun.append(name)
        return real(parts, own, name)

    with monkeypatch.context() as patch:
        patch.setattr(each, "_fit_level", level)
        try:
            _fit(obs, **more)
        except KeyboardInterrupt:
            return begun
    return begun


def _numbers(found: un.FitGroup, folder: Path) -> dict[str, bytes]:
    """All that is saved, but for the time that it took."""
    found.diagnostics.pop("seconds")  # pyright: ignore
    shutil.rmtree(folder, ignore_errors=True)
    for one in found.fits.values():
        one.advise()
    found.save(folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SMOOTH = {"normaliser": un.Smooth("s(y_prev, k=4)"), "objective": un.Importance(un.Uniform(), per_point=9)}


@pytest.mark.parametrize(
    ("options", "after"),
    [({}, 0), ({}, 2), ({}, 3), (SMOOTH, 2), ({"weights": "relative"}, 1)],
    ids=["anchored-0", "anchored-2", "anchored-3", "smooth-2", "relative-1"],
)
def test_an_interrupted_call_goes_on_to_the_same_numbers(
    obs: un.Observations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], after: int
) -> None:
    expected = _numbers(_fit(obs, **options), tmp_path / "whole")
    more = {**options, "checkpoint": tmp_path / "kept"}
    assert _interrupted(after, obs, monkeypatch, **more) == ["0", "1", "2"][:after]
    assert len(list(tmp_path.glob("kept/level-*"))) == after
    assert _interrupted(9, obs, monkeypatch, **more) == ["0", "1", "2"][after:]
    assert _interrupted(9, obs, monkeypatch, **more) == []
    found = _numbers(_fit(obs, **more), tmp_path / "again")
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []


def test_a_level_that_failed_is_tried_again(obs: un.Observations, tmp_path: Path, monkeypatch: Any) -> None:
    real = each.fit

    def fails(model: Any, own: un.Observations, *given: Any, **more: Any) -> Any:
        if own.group["who"][0] == 1:
            raise EstimationError("no.")
        return real(model, own, *given, **more)

    more = {"checkpoint": tmp_path / "kept"}
    with monkeypatch.context() as patch:
        patch.setattr(each, "fit", fails)
        assert list(_fit(obs, **more).failures) == ["1"]
    assert _interrupted(9, obs, monkeypatch, **more) == ["1"]
    assert _fit(obs, **more).failures == {}


def test_quadrature_is_fitted_again(obs: un.Observations, tmp_path: Path, monkeypatch: Any) -> None:
    """The order of its rule is found during the fit."""
    more = {"objective": un.Poisson(), "normaliser": un.Smooth("s(y_prev, k=4)"), "checkpoint": tmp_path / "kept"}
    assert _interrupted(9, obs, monkeypatch, **more) == ["0", "1", "2"]
    assert _interrupted(9, obs, monkeypatch, **more) == ["0", "1", "2"]


def test_another_run_is_refused_and_a_damaged_level_made_again(
    obs: un.Observations, tmp_path: Path, monkeypatch: Any
) -> None:
    kept = tmp_path / "kept"
    _fit(obs, checkpoint=kept)
    for other, named in (
        ({"rng": 4}, "rng"),
        ({"objective": un.Logistic(un.Uniform(), per_point=5)}, "objective"),
        ({"smoothing": "ml"}, "smoothing"),
    ):
        with pytest.raises(InputError, match=rf"of another run: {named} differ.*or remove the folder to begin again"):
            _fit(obs, checkpoint=kept, **other)
    moved = un.Observations(**{**vars(obs), "outcome": obs.outcome * 0.99})
    with pytest.raises(InputError, match="observations differ"):
        _fit(moved, checkpoint=kept)
    for path, raw in ((kept / "level-1" / "arrays.npz", b"nothing"), (kept / "level-2" / "fit" / "fit.json", b"{}")):
        path.write_bytes(raw)
    assert any("0 could" not in note and "made again" in note for note in _fit(obs, checkpoint=kept).notes)
    assert _interrupted(9, obs, monkeypatch, checkpoint=kept) == []
    shutil.rmtree(kept / "level-0")
    shutil.copytree(kept / "level-1", kept / "level-0")  # another level in its place
    assert _interrupted(9, obs, monkeypatch, checkpoint=kept) == ["0"]


def test_a_folder_of_another_kind_and_a_missing_seed(obs: un.Observations, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(InputError, match="choose another checkpoint"):
        _fit(obs, checkpoint=tmp_path)
    for rng in (None, np.random.default_rng(1)):
        with pytest.raises(InputError, match="needs rng="):
            _fit(obs, rng=rng, checkpoint=tmp_path / "kept")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
