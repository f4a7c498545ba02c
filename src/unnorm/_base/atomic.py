"""Files and folders that appear whole or not at all: the one way in which unnorm writes.

What is written is made under a hidden name beside its target and takes its place at the end, in one step where the
system can swap two names. A failure or a signal removes it and leaves what was there before. A process that is killed
cannot remove its scratch; the next one that writes to the same target does: a scratch is locked while its maker lives.
Contents reach the disk before their name does (fsync), so that a power cut leaves the old or the new as well.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import WriteError
from .shield import shielded

MADE, OLD = "unnorm", "unnorm-old"  # in the hidden names: something being made, something that stepped aside
TRIES = 5  # to take the place of a target that others make, too
AT_ONCE = 8  # files that go to the disk together
LONGEST = 100  # bytes of the target's own name in a hidden one: names end at 255
_making: set[Path] = set()  # folders that have no name yet: what is written into them is settled with them


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """A path to write to; the file there becomes `target` at the end, or goes with the error."""
    target = Path(os.path.realpath(target))
    scratch: _Scratch | None = None
    with naming(target):
        try:
            try:
                with shielded():
                    scratch = _made(target, folder=False)
                yield scratch.path
                with shielded():
                    scratch.path.chmod(0o644)
                    if settled := not _settled_later(target):
                        _settle(scratch.path)
                    os.replace(scratch.path, target)
                    if settled:
                        _settle_folder(target.parent)
            finally:
                _cleared(scratch)
        finally:  # where a signal came before the removal had its shield
            _cleared(scratch)


def write_text(target: Path, text: str) -> None:
    """Write a text in one step: an interruption leaves the old file or the new one."""
    with whole_file(target) as scratch, scratch.open("w", encoding="utf-8", newline="") as file:
        file.write(text)


def write_bytes(target: Path, data: bytes) -> None:
    """Write one file, in one step; its folder is made where there is none."""
    with naming(target):
        target.parent.mkdir(exist_ok=True)
    with whole_file(target) as scratch:
        scratch.write_bytes(data)


@contextmanager
def whole_folder(target: Path, check: Callable[[Path], None], settle: bool = True) -> Iterator[Path]:
    """A fresh folder that takes the place of `target` at the end, or goes with the error.

    `check(target)` raises where what is there may not be replaced; it is asked before and after, as something may have
    come to be there in the meantime. `settle`: whether a power cut must not damage it; where it is recognised and made
    again, the disk need not be waited for (4 ms a file).
    """
    target = Path(os.path.realpath(target))
    check(target)
    with scratch_folder(target) as scratch:
        yield scratch
        in_its_place(lambda: check(target), scratch, target, settle)


def in_its_place(check: Callable[[], None], scratch: Path, target: Path, settle: bool = True) -> None:
    """`take_place`, asked `check` just before; again, where another process has made the target in between."""
    for left in reversed(range(TRIES)):
        check()
        try:
            return take_place(scratch, target, settle)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not left:
                raise
    return None


@contextmanager
def scratch_folder(target: Path) -> Iterator[Path]:
    """A folder beside `target` to write into and to move to its place; what is left of it at the end is removed."""
    scratch: _Scratch | None = None
    with naming(target):
        try:
            try:
                with shielded():
                    scratch = _made(target, folder=True)
                scratch.path.chmod(0o755)
                _making.add(scratch.path)
                yield scratch.path
            finally:
                _cleared(scratch)
        finally:  # as above
            _cleared(scratch)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for what lasts as long as the block. What a killed process left of its own is removed here."""
    scratch: _Scratch | None = None
    target = Path(tempfile.gettempdir()) / "unnorm-rows"
    try:
        try:
            with naming(target), shielded():
                scratch = _made(target, folder=True)
            yield scratch.path
        finally:
            _cleared(scratch)
    finally:  # as above
        _cleared(scratch)


def _settled_later(target: Path) -> bool:
    """Whether it is in a folder that is being made, and settled as a whole."""
    return any(folder in _making for folder in target.parents)


def take_place(scratch: Path, target: Path, settle: bool = True) -> None:
    """Give a folder the name `target`. An earlier folder there takes the scratch's name, or steps aside and comes back
    if this fails."""
    settle = settle and not _settled_later(target)
    with shielded():
        if settle:
            _settle_all(scratch)
        if not os.path.lexists(target):
            os.replace(scratch, target)
        elif not _swapped(scratch, target):
            _in_two_steps(scratch, target)
        if settle:
            _settle_folder(target.parent)


def _settle_all(root: Path) -> None:
    """All that a folder holds to the disk, several files at a time: each waits, and the disk takes them together."""
    from concurrent.futures import ThreadPoolExecutor

    found = [(Path(folder), names) for folder, _, names in os.walk(root, topdown=False)]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for _ in threads.map(_settle, [folder / name for folder, names in found for name in names]):
            pass  # an error of any of them is raised here
    for folder, _ in found:
        _settle_folder(folder)


def _settle(path: Path) -> None:
    """A file's contents to the disk: what it cannot take is an error here, and not a file of zeros later."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _settle_folder(path: Path) -> None:
    """A folder's names to the disk, where the system can: without it an old name may come back, never half a file."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _swapped(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where the system or the disk cannot."""
    if sys.platform != "linux":
        return False
    import ctypes

    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return swap is not None and swap(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def _in_two_steps(scratch: Path, target: Path) -> None:
    aside = _made(target, folder=True, kind=OLD)
    try:
        os.replace(target, aside.path / target.name)
        os.replace(scratch, target)
    except BaseException:
        if not target.exists():
            os.replace(aside.path / target.name, target)
        raise
    finally:
        if target.exists():
            aside.remove()
        else:
            aside.release()  # the folder that stepped aside is all there is


def recover(target: Path) -> None:
    """Put back a folder whose replacement was killed between its two steps."""
    if target.exists():
        return
    left = [path for path in _left(target, OLD) if (path / target.name).exists()]
    with suppress(OSError):
        for path in sorted(left, key=lambda path: path.stat().st_mtime)[-1:]:
            if (lock := _lock(path, wait=False)) is not None:
                os.replace(path / target.name, target)
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def shared_folder(source: Path, target: Path) -> bool:
    """Make `target`, a folder whose files are those of `source` under second names; whether the system could. For what
    is written once and never changed."""
    try:
        shutil.copytree(source, target, copy_function=os.link)
    except OSError:  # shutil.Error is one
        remove(target)
        return False
    return True


def remove(path: Path) -> None:
    """Remove a file or a folder; what is not there, or does not go, is left."""
    with shielded():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def try_writing(folder: Path) -> None:
    """Make something in a folder and remove it: asking for permission is not enough."""
    with shielded():
        os.rmdir(tempfile.mkdtemp(prefix=f".{MADE}-", dir=folder))


@contextmanager
def naming(target: Path) -> Iterator[None]:
    """Within, an error of the file system names the path that was given: a full disk does not name one."""
    try:
        yield
    except OSError as error:
        raise WriteError(target, error.strerror or str(error)) from error
    except WriteError as error:  # of something inside a scratch, whose name is nobody's business
        raise WriteError(target, error.reason) from error


# --- hidden names -----------------------------------------------------------------------------------------------------


class _Scratch:
    """A hidden file or folder, and the lock that says that its maker lives."""

    def __init__(self, path: Path, lock: int | None) -> None:
        self.path, self.lock = path, lock

    def remove(self) -> None:
        with shielded():
            remove(self.path)
            self.release()

    def release(self) -> None:
        if self.lock is not None:
            os.close(self.lock)
        self.lock = None


def _cleared(scratch: _Scratch | None) -> None:
    """Remove a scratch, if there is one; again does no harm."""
    if scratch is not None:
        _making.discard(scratch.path)
        scratch.remove()


def _stem(target: Path) -> str:
    return os.fsencode(target.name)[:LONGEST].decode("utf-8", "ignore")


def _made(target: Path, folder: bool, kind: str = MADE) -> _Scratch:
    """A new hidden file or folder beside the target, locked; first those that were left there are removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if kind == MADE:
        recover(target)
        _sweep(target)
    while True:
        prefix = f".{_stem(target)}.{kind}-"
        if folder:
            path = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
        else:
            handle, name = tempfile.mkstemp(prefix=prefix, suffix=target.suffix, dir=target.parent)
            os.close(handle)
            path = Path(name)
        lock = _lock(path, wait=True)
        if path.exists():  # or another process has swept it before it was locked
            return _Scratch(path, lock)
        if lock is not None:
            os.close(lock)


def _left(target: Path, kind: str) -> list[Path]:
    """Hidden names of this kind beside the target."""
    ours = re.compile(rf"\.{re.escape(_stem(target))}\.{kind}-[a-z0-9_]{{8}}({re.escape(target.suffix)})?")
    with suppress(OSError):
        return [path for path in target.parent.iterdir() if ours.fullmatch(path.name)]
    return []


def _sweep(target: Path) -> None:
    """Remove what killed processes left: what nobody holds."""
    for path in [*_left(target, MADE), *_left(target, OLD)]:
        lock = _lock(path, wait=False)
        if lock is not None:
            remove(path)
            os.close(lock)


def _lock(path: Path, wait: bool) -> int | None:
    """A handle that keeps others from sweeping `path`; None where it is held by another, gone, or cannot be locked."""
    try:
        import fcntl
    except ImportError:  # Windows: nothing is swept there
        return None
    handle = None
    try:
        handle = os.open(path, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        if handle is not None:
            os.close(handle)
        return None
    return handle
