"""Full disks and full memories: a sentence with the output's name, exit code 2, nothing half-written."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faults import faults
from unnorm.cli import main
from unnorm.cli import run as running

OPTIONS = ("--order", "t", "--group", "who", "--by", "who", "--window", "0,1,0,1", "--references", "3")
TERMS = ("--terms", "s(step, k=4)", "--normaliser", "x_prev")
FILES = {"effects.csv", "parameters.csv", "summary.txt", "config.toml", "report.html", "fit"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "t.csv"
    xy = np.random.default_rng(1).uniform(0, 1, (40, 2))
    rows = [f"{'ab'[i // 20]},{i},{x:.4f},{y:.4f}" for i, (x, y) in enumerate(xy)]
    path.write_text("\n".join(["who,t,x,y", *rows]) + "\n")
    return path


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits are made once; the report, which has its own tests, is short."""
    made: list[Any] = []
    fitted = running.fitted

    def once(*given: Any) -> Any:
        if not made:
            made.append(fitted(*given))
        return made[0]

    monkeypatch.setattr(running, "fitted", once)
    monkeypatch.setattr(running, "advice", lambda *_: ())
    monkeypatch.setattr(running, "make_sections", lambda *_: ())


def _full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _ran(tokens: list[str]) -> int:
    try:
        main(tokens)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("error", "code"), [(_full, 2), (KeyboardInterrupt, 130)], ids=["full disk", "Ctrl-C"])
def test_a_fault_at_any_step_of_the_shell(
    table: Path, tmp_path: Path, capsys: Any, quick: None, error: Callable, code: int, every: int
) -> None:
    """An old output stays, or the new one is whole; then --resume comes to the same files."""
    out = tmp_path / "out"
    tokens = ["fit", str(table), *OPTIONS, *TERMS, "--out", str(out), "--force", "-q"]
    assert _ran(tokens) == 0
    expected = {name: (out / name).read_bytes() for name in FILES - {"fit"}}
    (out / "summary.txt").write_text("the old one")
    at, count = 1 - every, 1
    while count > at:
        at += every
        with faults(at, error, True) as given:
            ended = _ran(tokens)
        count = given.count + 1
        said = capsys.readouterr().err
        if ended:
            assert ended == code, said
            assert said.count("\n") == 1
            assert code == 130 or ("cannot be written" in said and "No space left on device" in said)
            assert ".unnorm-" not in said  # nobody asked for that name
        assert _names(out) == FILES
        assert ended == 0 or (out / "summary.txt").read_text() == "the old one"
        assert _names(tmp_path) <= {"out", "out.part"}
        assert ("--resume" in said) == ("out.part" in _names(tmp_path))
        if ended:
            assert _ran([*tokens, "--resume"]) == 0
            assert _names(tmp_path) == {"out"}
        assert {name: (out / name).read_bytes() for name in FILES - {"fit"}} == expected
        (out / "summary.txt").write_text("the old one")
    assert at > 40


def test_resuming_another_job_is_refused(table: Path, tmp_path: Path, capsys: Any, quick: None) -> None:
    out = tmp_path / "out"
    tokens = ["fit", str(table), *OPTIONS, *TERMS, "--out", str(out), "-q"]

    def interrupted(*_: Any) -> str:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "make_sections", interrupted)
        assert _ran(tokens) == 130
    assert _names(tmp_path) == {"out.part"}
    assert "out.part': the same command with --resume goes on from there." in capsys.readouterr().err
    assert _ran([*tokens, "--resume", "--seed", "2"]) == 2
    assert "of another run: seed differ" in capsys.readouterr().err
    part = tmp_path / "out.part" / "part.json"
    text = part.read_text()
    for bad in ("", "[" * 100_000, "[]", text.replace('"format": 1', '"format": 2'), '{"format": NaN}'):
        part.write_text(bad)
        assert _ran([*tokens, "--resume"]) == 2
        assert "leave --resume out" in capsys.readouterr().err
    part.write_text(text)
    arrays = tmp_path / "out.part" / "fit" / "arrays.npz"
    raw = arrays.read_bytes()
    arrays.write_bytes(raw[:-10])
    assert _ran([*tokens, "--resume"]) == 2
    assert "damaged" in capsys.readouterr().err
    arrays.write_bytes(raw)
    assert _ran([*tokens, "--resume"]) == 0
    assert _names(tmp_path) == {"out"}


def test_without_resume_an_unfinished_run_begins_again(table: Path, tmp_path: Path, quick: None, capsys: Any) -> None:
    out, part = tmp_path / "out", tmp_path / "out.part"
    tokens = ["fit", str(table), *OPTIONS, *TERMS, "--out", str(out), "-q"]
    part.mkdir()
    (part / "mine.txt").write_text("keep me")
    assert _ran(tokens) == 2
    assert "is no unfinished output" in capsys.readouterr().err
    assert (part / "mine.txt").read_text() == "keep me"
    (part / "part.json").write_text("{}")
    assert _ran(tokens) == 0
    assert _names(tmp_path) == {"out"}


LIMITED = """
import resource, sys
import matplotlib.figure, numba, pyarrow.csv
import unnorm.cli.run
from unnorm.cli import main
status = open("/proc/self/status").read()
size = int(status.split("VmSize:")[1].split()[0]) * 1024 + int(sys.argv[1]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (size, size))
main(sys.argv[2:])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits and /proc of Linux")
@pytest.mark.parametrize("megabytes", [400, pytest.param(250, marks=pytest.mark.slow)])
def test_a_full_memory(table: Path, tmp_path: Path, megabytes: int) -> None:
    rows = [f"a,{i},{0.5 + 0.4 * np.sin(i):.4f},{0.5 + 0.4 * np.cos(2 * i):.4f}" for i in range(400)]
    (tmp_path / "t.csv").write_text("\n".join(["who,t,x,y", *rows]) + "\n")
    tokens = ["fit", "t.csv", "--order", "t", "--group", "who", "--window", "0,1,0,1", "--references", "10000"]
    tokens = [sys.executable, "-c", LIMITED, str(megabytes), *tokens, "--terms", "s(step, k=4)", "--out", "out", "-q"]
    ran = subprocess.run(tokens, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "not enough memory" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.returncode == 2
    assert _names(tmp_path) == {"t.csv"}
