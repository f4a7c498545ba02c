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
    assert text.endswith((".", "?", ")", '"', "'")), text
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


# --- configurations, and the blocks of an experiment ------------------------------------------------------------------


def _mangled(data: Any, raw: bytes) -> bytes:
    """A few bytes flipped, cut out, put in, or all that comes after a place gone."""
    out = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(len(out) - 1, 0)))
        how = data.draw(st.sampled_from(("flip", "cut", "put", "end")))
        if how == "flip" and out:
            out[at] ^= 1 << data.draw(st.integers(0, 7))
        elif how == "cut":
            del out[at : at + data.draw(st.integers(1, 20))]
        elif how == "put":
            out[at:at] = data.draw(st.sampled_from((b"[", b"'", b"\x00", b"\xff", b"nan", b"9" * 5000, b"\n", b'"""')))
        else:
            del out[at:]
    return bytes(out)


@pytest.mark.parametrize("examples", [150, pytest.param(1500, marks=pytest.mark.slow)])
def test_a_configuration_is_read_or_refused(examples: int, tmp_path: Path) -> None:
    from unnorm.cli.config import Job, checked_job, read_config

    job = Job("t.csv", group=("a", "b"), by="a", window=(0.0, 1.0, 0.0, 1.0), covariate=("z=x+1",), max_gap=2.5)
    path = tmp_path / "config.toml"
    path.write_text(job.toml(), encoding="utf-8")
    raw = path.read_bytes()
    assert checked_job(read_config(path), str(path)) == job
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))  # as Windows' editor saves it
    assert checked_job(read_config(path), str(path)) == job

    @settings(QUICK, max_examples=examples)
    @given(st.data())
    def run(data: Any) -> None:
        path.write_bytes(_mangled(data, raw))
        try:
            checked_job(read_config(path), str(path))
        except UnnormError as error:
            _sentence(error)

    run()


@pytest.mark.parametrize("examples", [50, pytest.param(500, marks=pytest.mark.slow)])
def test_a_block_is_read_as_it_was_written_or_refused(examples: int, tmp_path: Path) -> None:
    from unnorm.studies.reproduce_blocks import read_block, same_configuration, write_block

    header, rows = ("a", "b"), [(1, 0.1 + i) for i in range(20)]
    path = tmp_path / "block.csv"
    write_block(path, header, rows)
    raw, expected = path.read_bytes(), read_block(path, header)
    assert expected == [["1", repr(b)] for _, b in rows]

    @settings(QUICK, max_examples=examples)
    @given(st.data())
    def run(data: Any) -> None:
        path.write_bytes(_mangled(data, raw))
        try:
            assert read_block(path, header) == expected
        except InputError as error:
            _sentence(error)
        (tmp_path / "configuration.json").write_bytes(_mangled(data, b'{"format": 2, "seed": 1, "k": [10, 30]}'))
        try:
            same_configuration(tmp_path, {"format": 2, "seed": 1, "k": [10, 30]})
        except InputError as error:
            _sentence(error)

    run()
