"""The first fit: how many kernels it compiles, and that other processes compile the largest of them, or none do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from unnorm.engine import ahead

README = """
import json, sys, unnorm as un
table = un.datasets.eye()
one = {name: values[table["subject"] == 1] for name, values in table.items()}
eye = un.Additive("s(step, k=10) + s(dcenter, k=40) + s(angle, bs='cc', k=20)", un.Box((0, 800), (0, 600)))
from unnorm.engine import ahead
others = len({id(process) for process in ahead._running.values()})
fit = un.fit(eye, un.transitions(one, y=("x", "y"), order="fix", group=("subject", "image")),
             objective=un.Logistic(un.Uniform(), per_point=20), rng=2)
from numba.core.dispatcher import Dispatcher
from unnorm.engine import arrange_kernels, gather, kernels, matrix_kernels
from unnorm.terms import basis_kernels, sample_kernels
rooms = (kernels, arrange_kernels, matrix_kernels, gather, basis_kernels, sample_kernels)
parts = {name: part for room in rooms for name, part in vars(room).items()}
own = {name: part for name, part in parts.items() if isinstance(part, Dispatcher)}
print(json.dumps({
    "others": others,
    "left": len(ahead._running),
    "signatures": {name: len(part.signatures) for name, part in own.items() if part.signatures},
    "agree": [own[name].signatures == [ahead.signature(name)] for names in ahead.SHARES for name in names]
    + [own[name].signatures == [ahead.of_matrices(own[name])] for name in ("gather_blocks", "cholesky_inverse")],
    "compiled here": sum(sum(part.stats.cache_misses.values()) for part in own.values()),
    "estimate": fit.smooths.gam.smoothed.beta.tolist(),
}))
"""
KERNELS = {  # of README's eye formula: one signature each. More of them make the first fit slower, by .3 to 2 s each
    *("number_rows", "locate_from", "solve_band", "predictor", "run_sums"),
    *("cross_products", "leverages", "cholesky_inverse", "gather_blocks", "spline_rows"),
}


ELSEWHERE = [name for names in ahead.SHARES for name in names]


def readme(cache: Path | None = None) -> dict:
    environment = {**os.environ, **({} if cache is None else {"NUMBA_CACHE_DIR": str(cache)})}
    out = subprocess.run([sys.executable, "-c", README], capture_output=True, text=True, check=True, env=environment)
    return json.loads(out.stdout.splitlines()[-1])


def test_the_readmes_formula_needs_few_kernels_and_one_signature_of_each() -> None:
    readme()  # the cache is filled
    found = readme()
    assert found["signatures"] == dict.fromkeys(KERNELS, 1)
    assert all(found["agree"]), "ahead.signature differs from what a fit calls: it would compile in vain"
    assert found["others"] == 0, "the cache is filled, and yet other processes were started"


@pytest.mark.slow
def test_an_empty_cache_is_filled_by_several_processes_and_nothing_is_left(tmp_path: Path) -> None:
    found = readme(tmp_path)
    several = ahead.cores() > 1
    assert found["others"] == (len(ahead.SHARES) if several else 0)
    assert found["left"] == 0
    assert found["compiled here"] == len(KERNELS) - (len(ELSEWHERE) if several else 0)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    assert found["estimate"] == readme(tmp_path)["estimate"]


def child(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code])


def test_a_kernel_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = tmp_path / "done"
    process = child(f"import time; time.sleep(.3); open({str(done)!r}, 'w').close()")
    monkeypatch.setattr(ahead, "_running", {"cross_products": process})
    monkeypatch.setattr(ahead, "_written", lambda *_: False)
    assert ahead.kernel("cross_products").py_func.__name__ == "cross_products"
    assert done.exists()
    assert process.returncode == 0, "the process was not waited for, and is a zombie"
    assert not ahead._running


def test_a_kernel_that_is_written_is_not_waited_for_any_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process compiles several: the first of them can be used while it goes on."""
    process = child("import time; time.sleep(60)")
    monkeypatch.setattr(ahead, "_running", {"predictor": process, "leverages": process})
    monkeypatch.setattr(ahead, "_processes", [process])
    monkeypatch.setattr(ahead, "_written", lambda folder, below, name: name == "predictor")
    ahead.kernel("predictor")
    assert process.poll() is None
    assert list(ahead._running) == ["leverages"]
    ahead._end()
    assert process.returncode not in (None, 0)


def test_a_design_that_nobody_compiles_for_is_not_kept_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    process = child("import time; time.sleep(60)")
    monkeypatch.setattr(ahead, "_running", dict.fromkeys(ELSEWHERE, process))
    monkeypatch.setattr(ahead, "_processes", [process])
    assert ahead.kernel("leverages", bare=False).py_func.__name__ == "leverages"
    assert process.returncode not in (None, 0)
    assert not ahead._running


def test_garbage_is_not_collected_while_numba_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    import gc

    from unnorm._base.cached import Uncollected

    pause, seen = Uncollected(), []
    monkeypatch.setattr(gc, "disable", lambda: seen.append("off"))
    monkeypatch.setattr(gc, "enable", lambda: seen.append("on"))
    for step in (pause.on_start, pause.on_start, pause.on_end, pause.on_end):
        step(None)  # a function inside a function
        seen.append(step.__name__)
    assert seen == ["off", "on_start", "on_start", "on_end", "on", "on_end"]
    monkeypatch.setattr(gc, "isenabled", lambda: False)  # whoever does without garbage keeps doing so
    seen.clear()
    pause.on_start(None)
    pause.on_end(None)
    assert seen == ["off"]


def test_a_process_that_fails_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_running", {name: child("raise SystemExit(1)") for name in ELSEWHERE})
    assert [ahead.kernel(name).py_func.__name__ for name in ELSEWHERE] == ELSEWHERE
    assert not ahead._running


def test_a_process_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    process = child("import time; time.sleep(60)")
    monkeypatch.setattr(ahead, "PATIENCE", 0.2)
    monkeypatch.setattr(ahead, "_running", {"leverages": process})
    monkeypatch.setattr(ahead, "_written", lambda *_: False)
    ahead.kernel("leverages")
    assert process.returncode not in (None, 0)


def test_no_process_outlives_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    process = child("import time; time.sleep(60)")
    monkeypatch.setattr(ahead, "_processes", [process])
    ahead._end()
    assert process.returncode not in (None, 0)


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list:
    """An empty cache, two cores, and a list of what would be started."""
    asked: list = []

    def refused(command: list[str], **_: object) -> None:
        asked.append(command)
        raise PermissionError

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ahead, "_begun", False)
    monkeypatch.setattr(ahead, "_running", {})
    monkeypatch.setattr(ahead, "_processes", [])
    monkeypatch.setattr(ahead, "cores", lambda: 2)
    monkeypatch.setattr(ahead.subprocess, "Popen", refused)
    return asked


def test_where_no_process_can_be_started_nothing_is_said(empty: list) -> None:
    ahead.compile_ahead()
    ahead.compile_ahead()
    assert [tuple(command[-len(names) :]) for command, names in zip(empty, ahead.SHARES)] == list(ahead.SHARES)
    assert len(empty) == len(ahead.SHARES)  # tried once each
    assert not ahead._running


@pytest.mark.parametrize("name", ["", "/opt/app/bin/Blender", "C:\\R\\bin\\R.exe"])
def test_a_program_that_embeds_python_is_not_started_again(empty: list, monkeypatch: pytest.MonkeyPatch, name) -> None:
    monkeypatch.setattr(ahead.sys, "executable", name)
    ahead.compile_ahead()
    assert not empty


def test_one_core_compiles_alone(empty: list, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "cores", lambda: 1)
    ahead.compile_ahead()
    assert not empty


def test_kernels_older_than_their_source_do_not_count(empty: list, tmp_path: Path) -> None:
    folder = tmp_path / "engine_0"
    folder.mkdir()
    source = (Path(ahead.__file__).parent / "kernels.py").stat().st_mtime
    for name in ELSEWHERE:
        (folder / f"kernels.{name}-59.py311.1.nbc").touch()
    assert ahead.cached()
    os.utime(folder / "kernels.leverages-59.py311.1.nbc", (source - 9, source - 9))
    assert not ahead.cached()


def test_where_nothing_can_be_kept_on_disk_kernels_are_compiled_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    from unnorm._base import cached

    plain = numba.njit

    def nowhere(*function, **options):  # Numba itself decorates with it
        if options.get("cache"):
            raise RuntimeError("cannot cache function 'twice': no locator available")
        return plain(*function, **options)

    monkeypatch.setattr(cached.numba, "njit", nowhere)
    twice = cached.njit(cache=True, nogil=True)(lambda x: 2.0 * x)
    assert twice(3.0) == 6.0
    assert twice.stats.cache_path is None
