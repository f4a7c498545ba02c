"""Files and folders appear whole or not at all: whatever fails, whatever is killed, whatever comes to be there."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faults import faults
from unnorm._base import atomic, shield, storage
from unnorm._base.shield import shielded
from unnorm.errors import InputError, WriteError

posix = pytest.mark.skipif(sys.platform == "win32", reason="locks and signals of POSIX")


def _save(path: Path, value: float) -> None:
    """A result with two parts, as a group has them."""
    parts = {name: ({"class": "Fit", "value": value}, {"a": np.full(50, value)}) for name in ("level-0", "level-1")}
    storage.write_folder(path, {"class": "FitGroup", "value": value}, {"a": np.full(5, value)}, parts)


def _value(path: Path) -> float:
    """The one value that all of a saved result agrees on."""
    found = {storage.read_folder(one)[0]["value"] for one in (path, path / "level-0", path / "level-1")}
    assert len(found) == 1
    return found.pop()


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- a fault at every step --------------------------------------------------------------------------------------------


def _full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("swap", [True, False], ids=["swap", "two steps"])
@pytest.mark.parametrize("error", [_full, KeyboardInterrupt, MemoryError], ids=["full disk", "Ctrl-C", "memory"])
@pytest.mark.parametrize("old", [True, False], ids=["over an old one", "new"])
def test_a_fault_at_any_step_leaves_the_old_or_the_new(tmp_path: Path, swap: bool, error: Callable, old: bool) -> None:
    path, at, count = tmp_path / "fit", 0, 1
    while count > at:  # there was an at-th step to fail
        at += 1
        if old:
            _save(path, 1.0)
        with faults(at, error, swap) as given:
            said = _tried(lambda: _save(path, 2.0))
        count = given.count + 1
        assert said is None or isinstance(said, KeyboardInterrupt | MemoryError) or f"{str(path)!r} cannot" in str(said)
        if old or said is None:
            assert _value(path) == (2.0 if said is None else 1.0)
        assert _names(tmp_path) == (["fit"] if old or said is None else [])
        if not old:
            shutil.rmtree(path, ignore_errors=True)
    assert at > 8  # that many steps were there to fail


@posix
@pytest.mark.parametrize("swap", [True, False], ids=["swap", "two steps"])
@pytest.mark.parametrize("old", [True, False], ids=["over an old one", "new"])
def test_contents_reach_the_disk_before_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swap: bool, old: bool
) -> None:
    """As after a power cut: what was not synced when a name changed is lost."""
    path = tmp_path / "fit"
    if old:
        _save(path, 1.0)
    synced: dict[int, tuple[int, int]] = {}  # inode → size and time of its last change, as on the disk
    order: list[str] = []
    fsync, replace, swapped = os.fsync, os.replace, atomic._swapped

    def settle(handle: int) -> None:
        fsync(handle)
        about = os.fstat(handle)
        synced[about.st_ino] = (about.st_size, about.st_mtime_ns)
        order.append("parent" if about.st_ino == tmp_path.stat().st_ino else "inside")

    def named(source: Path) -> None:
        """All that gets another name is on the disk already."""
        for one in [source, *source.rglob("*")] if source != path else ():  # the old one was before
            about = one.stat()
            assert synced.get(about.st_ino) == (about.st_size, about.st_mtime_ns), one
        order.append("name")

    def replaced(source: Path, target: Path) -> None:
        named(Path(source))
        replace(source, target)

    def exchanged(one: Path, other: Path) -> bool:
        named(one)
        return swapped(one, other) if swap else False

    monkeypatch.setattr(os, "fsync", settle)
    monkeypatch.setattr(os, "replace", replaced)
    monkeypatch.setattr(atomic, "_swapped", exchanged)
    _save(path, 2.0)
    for one in [path, *path.rglob("*")]:
        about = one.stat()
        assert synced[about.st_ino][0] == about.st_size
        assert one.is_dir() or synced[about.st_ino][1] == about.st_mtime_ns
    assert order[-1] == "parent"  # and the name itself last
    assert _value(path) == 2.0


def test_what_is_written_into_an_unfinished_folder_is_settled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled: list[str] = []
    monkeypatch.setattr(atomic, "_settle", lambda path: settled.append(path.name))
    with atomic.whole_folder(tmp_path / "out", lambda _: None) as folder:
        _save(folder / "fit", 1.0)
        atomic.write_text(folder / "page.html", "text")
        assert settled == []
    files = [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert sorted(settled) == sorted(files)  # each once
    settled.clear()
    with atomic.whole_folder(tmp_path / "kept", lambda _: None, settle=False) as folder:
        atomic.write_text(folder / "page.html", "text")
    assert settled == []
    assert (tmp_path / "kept" / "page.html").read_text() == "text"
    _save(tmp_path / "fit", 1.0)
    assert "fit.json" in settled


def test_a_disk_that_cannot_take_the_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that only fails when it is synced leaves the old one, and says so."""
    path = tmp_path / "fit"
    _save(path, 1.0)

    def broken(handle: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(WriteError, match="fit' cannot be written: Input/output error"):
            _save(path, 2.0)
    assert _value(path) == 1.0
    assert _names(tmp_path) == ["fit"]


def _tried(write: Callable[[], None]) -> BaseException | None:
    try:
        write()
    except (WriteError, KeyboardInterrupt, MemoryError) as error:
        return error
    return None


@pytest.mark.parametrize("error", [_full, KeyboardInterrupt])
def test_a_fault_at_any_step_of_a_file(tmp_path: Path, error: Callable) -> None:
    path, at, count = tmp_path / "out.csv", 0, 1
    while count > at:
        at += 1
        atomic.write_text(path, "old")
        with faults(at, error, True) as given:
            said = _tried(lambda: atomic.write_text(path, "new"))
        count = given.count + 1
        assert path.read_text() == ("new" if said is None else "old")
        assert _names(tmp_path) == ["out.csv"]
    assert at >= 3


# --- killed processes -------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys, tempfile
from pathlib import Path
sys.path[:0] = sys.argv[1].split(os.pathsep)
from faults import faults
from test_atomic import _names, _save, _value

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

at, litter, gone = 0, 0, 0
while True:
    at += 1
    folder = Path(tempfile.mkdtemp(dir=sys.argv[3]))
    path = folder / "fit"
    _save(path, 1.0)
    child = os.fork()
    if not child:
        with faults(at, kill, sys.argv[2] == "swap"):
            _save(path, 2.0)
        os._exit(0)
    code = os.waitpid(child, 0)[1]
    litter += len(_names(folder)) > 1
    gone += not path.exists()
    assert _value(path) == (1.0 if code else 2.0), at
    _save(path, 3.0)
    assert _value(path) == 3.0, at
    assert _names(folder) == ["fit"], (at, _names(folder))
    if not code:
        break
print(at, litter, gone)
"""


@posix
@pytest.mark.parametrize("swap", ["swap", "two steps"])
def test_what_a_killed_process_left_is_read_and_swept(tmp_path: Path, swap: str) -> None:
    """Killed at every step: what is read is the old one, and the next to write removes what was left."""
    here = Path(__file__).parent
    tokens = [sys.executable, "-c", KILLED, f"{here}{os.pathsep}{here.parent}", swap, str(tmp_path)]
    ran = subprocess.run(tokens, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    steps, litter, gone = map(int, ran.stdout.split())
    assert steps > 20
    assert litter > 15
    assert gone == (0 if swap == "swap" else 1)  # between the two renames there is nothing under the name


def test_a_write_that_fails_after_a_kill_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between the two renames, and then the disk is full: the only copy comes back before anything is swept."""
    path, aside = tmp_path / "fit", tmp_path / ".fit.unnorm-old-abcdefgh"
    _save(path, 1.0)
    aside.mkdir()
    os.replace(path, aside / "fit")

    def full(*_: object, **__: object) -> None:
        raise _full()

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        with pytest.raises(WriteError):
            _save(path, 2.0)
    assert _names(tmp_path) == ["fit"]
    assert _value(path) == 1.0


@posix
def test_what_others_are_writing_is_not_swept(tmp_path: Path) -> None:
    path = tmp_path / "fit"
    with atomic.scratch_folder(path) as theirs:
        (theirs / "x").write_text("being written")
        _save(path, 1.0)
        assert (theirs / "x").read_text() == "being written"
    mine = tmp_path / ".fit.backup"
    mine.mkdir()
    _save(path, 2.0)
    assert _names(tmp_path) == [".fit.backup", "fit"]  # and nobody's own hidden folder


@posix
def test_many_writers_of_one_folder(tmp_path: Path) -> None:
    path = tmp_path / "fit"
    errors: list[BaseException] = []

    def write(value: float) -> None:
        try:
            for _ in range(5):
                _save(path, value)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(float(i),)) for i in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not errors
    assert _value(path) in range(4)
    assert _names(tmp_path) == ["fit"]


@pytest.mark.parametrize("theirs", [True, False], ids=["a fit", "another folder"])
def test_a_target_that_appears_at_the_last_moment(
    theirs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process makes the target after it was looked for, and before the new folder takes its name."""
    path, real, made = tmp_path / "fit", atomic.take_place, []

    def meanwhile(scratch: Path, target: Path, settle: bool) -> None:
        if target == path and not made:
            made.append(True)
            if theirs:
                _save(tmp_path / "other", 7.0)
                (tmp_path / "other").rename(path)
            else:
                path.mkdir()
                (path / "mine.txt").write_text("keep me")
            with monkeypatch.context() as patch:
                patch.setattr(os.path, "lexists", lambda _: False)  # it was not there yet
                return real(scratch, target, settle)
        return real(scratch, target, settle)

    monkeypatch.setattr(atomic, "take_place", meanwhile)
    if theirs:
        _save(path, 1.0)
        assert _value(path) == 1.0
    else:
        with pytest.raises(InputError, match="exists and is not a saved fit"):
            _save(path, 1.0)
        assert (path / "mine.txt").read_text() == "keep me"
    assert made
    assert _names(tmp_path) == ["fit"]


# --- targets ----------------------------------------------------------------------------------------------------------


def test_the_target_is_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = tmp_path / "fit", np.savez

    def meanwhile(*args: object, **kwargs: object) -> None:
        real(*args, **kwargs)  # pyright: ignore[reportArgumentType]
        path.mkdir(exist_ok=True)
        (path / "mine.txt").write_text("keep me")

    monkeypatch.setattr(np, "savez", meanwhile)
    with pytest.raises(InputError, match="exists and is not a saved fit"):
        _save(path, 1.0)
    assert (path / "mine.txt").read_text() == "keep me"
    assert _names(tmp_path) == ["fit"]


@posix
def test_links_are_followed(tmp_path: Path) -> None:
    _save(tmp_path / "far" / "fit", 1.0)
    (tmp_path / "near").symlink_to(tmp_path / "far" / "fit")
    _save(tmp_path / "near", 2.0)
    assert (tmp_path / "near").is_symlink()
    assert _value(tmp_path / "far" / "fit") == 2.0


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="permissions, which root does not feel")
def test_a_folder_that_takes_no_files(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    with pytest.raises(WriteError, match="fit' cannot be written: Permission denied"):
        _save(locked / "fit", 1.0)
    assert _names(locked) == []


def test_a_folder_that_takes_no_files_even_from_root(tmp_path: Path) -> None:
    if not Path("/proc/self").is_dir():
        pytest.skip("no /proc")
    with pytest.raises(WriteError, match=r"'/proc/[0-9a-z]+/fit' cannot be written"):
        _save(Path("/proc/self/fit"), 1.0)


def test_long_names(tmp_path: Path) -> None:
    path = tmp_path / ("ж" * 120)
    _save(path, 1.0)
    assert _value(path) == 1.0
    with pytest.raises(WriteError, match="cannot be written: File name too long"):
        _save(tmp_path / ("ж" * 200), 1.0)
    assert _names(tmp_path) == [path.name]


# --- signals ----------------------------------------------------------------------------------------------------------


@posix
def test_a_signal_waits_for_the_end_of_a_shielded_step() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def step() -> None:
        with shielded():
            signal.raise_signal(signal.SIGINT)
            seen.append("whole")

    with pytest.raises(KeyboardInterrupt):
        step()
    assert seen == ["whole"]
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_need_no_shield() -> None:
    done: list[int] = []

    def work() -> None:
        with shielded():
            done.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [1]


def _write_file(path: Path, value: int) -> None:
    atomic.write_text(path, str(value))


def _write_folder(path: Path, value: int) -> None:
    with atomic.whole_folder(path, lambda _: None, settle=False) as scratch:
        (scratch / "value").write_text(str(value))


@posix
@pytest.mark.parametrize("old", [True, False], ids=["over an old one", "new"])
@pytest.mark.parametrize("write", [_write_file, _write_folder])
def test_an_interruption_at_any_line_leaves_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable, old: bool
) -> None:
    """At every line of the code that writes, shields and cleans up, one at a time: the old or the new, nothing beside
    it, and every handler in its place."""
    monkeypatch.setattr(atomic, "_settle", lambda _: None)  # the disk takes its time
    monkeypatch.setattr(atomic, "_settle_folder", lambda _: None)
    ours = {atomic.__file__, shield.__file__, contextlib.__file__}
    path, before = tmp_path / "saved", signal.signal(signal.SIGTERM, lambda *_: None)
    term, at, count, interrupted = signal.getsignal(signal.SIGTERM), 0, 0, 0

    def line(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename not in ours:
            return None
        count += event == "line"
        if event == "line" and count == at:
            signal.raise_signal(signal.SIGINT)
        return line

    tracing = sys.gettrace()
    try:
        while count >= at:  # the last one comes after the end
            at, count = at + 1, 0
            atomic.remove(path)
            if old:
                write(path, 0)
            try:
                sys.settrace(line)
                write(path, at)
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                sys.settrace(tracing)
            assert _names(tmp_path) in ([["saved"]] if old else [["saved"], []]), at
            if path.exists():
                assert (path / "value" if path.is_dir() else path).read_text() in (str(at), "0")
            assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == (
                term,
                signal.default_int_handler,
            )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert interrupted == at - 1 > 100


@posix
def test_a_shared_folder_has_the_same_files_and_none_where_the_system_cannot(tmp_path: Path, monkeypatch: Any) -> None:
    _save(tmp_path / "part", 3.0)
    assert atomic.shared_folder(tmp_path / "part", tmp_path / "out")
    assert _value(tmp_path / "out") == 3.0
    assert os.path.samefile(*(tmp_path / one / "level-0" / storage.ARRAYS_NAME for one in ("part", "out")))
    atomic.remove(tmp_path / "part")
    assert _value(tmp_path / "out") == 3.0

    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    assert not atomic.shared_folder(tmp_path / "out", tmp_path / "other")
    assert not (tmp_path / "other").exists()
