"""Damaged, swapped, truncated and hostile results: the same result or a sentence; never code, never another fit."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from damage import ACCIDENTS, CANARY, MALICE, files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from saved_things import Kind, make

from unnorm._base import storage
from unnorm.errors import InputError, UnnormError

KINDS = ("fit", "smooth", "group", "gam", "pattern", "checkpoint")
QUICK = settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kind]:
    return make(tmp_path_factory.mktemp("saved"))


def _sentence(error: BaseException) -> None:
    text = str(error)
    assert text.endswith((".", '"', "'")), text
    assert "\n" not in text
    assert len(text) < 1500


def _accident(kind: Kind, data: Any) -> None:
    expected = kind.same(kind.read(kind.one))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "saved"
        shutil.copytree(kind.one, folder)
        damage = data.draw(st.sampled_from(ACCIDENTS), label="damage")
        damage(data.draw, folder, kind.other)
        changed = {p.relative_to(folder): p for p in files(folder)}
        try:
            found = kind.same(kind.read(folder))
        except InputError as error:
            _sentence(error)
            return
        assert found == expected, changed


def _malice(kind: Kind, data: Any) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "saved"
        shutil.copytree(kind.one, folder)
        parts = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
        harm = data.draw(st.sampled_from(MALICE), label="harm")
        harm(data.draw, data.draw(st.sampled_from(parts)), folder)
        try:
            kind.read(folder)
        except UnnormError as error:
            _sentence(error)
        assert CANARY not in os.environ
        assert os.listdir(scratch) == ["saved"]


@pytest.mark.parametrize("damage", ["accident", "malice"])
@pytest.mark.parametrize("which", KINDS)
def test_what_is_read_is_the_same_or_a_sentence(kinds: dict[str, Kind], which: str, damage: str) -> None:
    check = _accident if damage == "accident" else _malice

    @settings(QUICK, max_examples=50)
    @given(st.data())
    def run(data: Any) -> None:
        check(kinds[which], data)

    run()


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["accident", "malice"])
@pytest.mark.parametrize("which", KINDS)
def test_what_is_read_is_the_same_or_a_sentence_at_length(kinds: dict[str, Kind], which: str, damage: str) -> None:
    check = _accident if damage == "accident" else _malice

    @settings(LONG, max_examples=500)
    @given(st.data())
    def run(data: Any) -> None:
        check(kinds[which], data)

    run()


@pytest.mark.parametrize("which", KINDS)
def test_the_undamaged_is_read(kinds: dict[str, Kind], which: str) -> None:
    """Or the tests above would pass with a reader that refuses everything."""
    kind = kinds[which]
    assert kind.same(kind.read(kind.one)) == kind.same(kind.read(kind.one))
    if which != "checkpoint":  # which belongs to another run
        assert kind.same(kind.read(kind.other)) != kind.same(kind.read(kind.one))
    assert storage.read_folder(kind.one)[0]["format"] == storage.FORMAT
