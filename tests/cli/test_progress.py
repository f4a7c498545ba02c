"""Progress bars: after two seconds, on a terminal, not with -q; and they go on within a step."""

from __future__ import annotations

import io
import time

import pytest

from unnorm._base.counting import passed
from unnorm._base.workers import mapped
from unnorm.cli import progress
from unnorm.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, seconds: float, quiet: bool = False) -> str:
    monkeypatch.setattr(progress, "DELAY", 0.2)
    monkeypatch.setattr(progress, "TICK", 0.15)
    monkeypatch.setattr("sys.stderr", stream)
    with Progress(("reading", "fitting"), quiet) as bar:
        with bar.step("reading"):
            pass
        with bar.step("fitting"):
            time.sleep(seconds)
    return stream.getvalue()


def test_a_long_step_shows_while_it_lasts_and_is_wiped(monkeypatch):
    text = shown(monkeypatch, Terminal(), 0.8)
    assert text.count("fitting") >= 3
    assert "reading" not in text  # it was over before the bar was due
    assert "1/2" in text
    assert text.endswith("\r")
    assert text.rsplit("\r", 2)[1].strip() == ""


def test_a_quick_job_shows_nothing(monkeypatch):
    assert shown(monkeypatch, Terminal(), 0.0) == ""


def test_neither_quiet_nor_a_log_shows_anything(monkeypatch):
    assert shown(monkeypatch, Terminal(), 0.5, quiet=True) == ""
    assert shown(monkeypatch, io.StringIO(), 0.5) == ""


def test_a_step_counts_its_tasks_and_passes(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "TICK", 0.05)
    monkeypatch.setattr("sys.stderr", stream)
    with Progress(("fitting", "tables")) as bar:
        with bar.step("fitting"):
            mapped(time.sleep, [(0.15,)] * 3)
        with bar.step("tables"):
            for _ in range(4):
                passed()
            time.sleep(0.2)
    text = stream.getvalue()
    assert "fitting 1/3" in text
    assert "tables, pass 4" in text
