"""Where commands write: checked before any work is done, and written in one step at the end."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from .._base import frames
from .._base.atomic import in_its_place, recover, scratch_folder, take_place, try_writing, write_text
from .._base.paths import checked_path
from ..errors import InputError, WriteError

MARK = "config.toml"  # a folder with this file is one of ours, and may be replaced with --force


def check_target(out: str | Path, force: bool, mark: str = MARK) -> Path:
    """The output folder, checked before any work is done: that it may be made, or replaced."""
    target = checked_path(out)
    if not str(out).strip() or target.resolve() == Path(target.resolve().anchor):
        raise InputError(f"--out must name a folder to make; got {str(out)!r}.")
    recover(target)
    _check_there(target, out, force, mark)
    _may_write(target)
    return target


def _check_there(target: Path, out: str | Path, force: bool, mark: str) -> None:
    """Refuse to replace what is there, unless it is an earlier output and --force is given."""
    if target.exists():
        if not target.is_dir():
            raise InputError(f"{str(out)!r} exists and is not a folder; choose another --out.")
        empty = next(target.iterdir(), None) is None
        if not empty and not force:
            raise InputError(f"{str(out)!r} exists; choose another --out, or pass --force to replace it.")
        if not empty and not (target / mark).is_file():
            raise InputError(
                f"{str(out)!r} holds other files than an earlier output (no {mark}), which --force does not remove; "
                "choose another --out."
            )


def check_file(path: str | Path, force: bool) -> Path:
    """The output file, checked before any work is done: that it may be made, or replaced."""
    target = Path(path)
    if not str(path).strip():
        raise InputError(f"--out must name a file; got {str(path)!r}.")
    if target.is_dir():
        raise InputError(f"{str(path)!r} is a folder; --out must name a file.")
    if target.exists() and not force:
        raise InputError(f"{str(path)!r} exists; choose another --out, or pass --force to replace it.")
    _may_write(target)
    return target


def _may_write(target: Path) -> None:
    """Asking for permission is not enough: some folders refuse everyone (/proc, a full or read-only disk)."""
    parent = target.resolve().parent
    while not parent.exists():
        parent = parent.parent
    try:
        try_writing(parent)
    except OSError as error:
        raise InputError(
            f"--out {str(target)!r} cannot be written: {str(parent)!r} is not a folder that you may write to "
            f"({error.strerror})."
        ) from error


@contextmanager
def whole_folder(target: Path, force: bool, mark: str = MARK) -> Iterator[Path]:
    """A fresh folder that takes the place of `target` at the end, or vanishes with the error.

    What has come to be there in the meantime is not removed without --force: the output then takes the next free name.
    """
    resolved = target.resolve()
    with _named(f"--out {str(target)!r}"), scratch_folder(resolved) as scratch:
        yield scratch
        try:
            in_its_place(lambda: _check_there(target, target, force, mark), scratch, resolved)
        except InputError as error:
            other = _free(resolved)
            take_place(scratch, other)
            raise InputError(f"{error} It was made while this ran; the output is in {str(other)!r}.") from error


def whole_file(path: str | Path, text: str, force: bool) -> Path:
    """Write one file in one step; an existing one only with `force`."""
    target = check_file(path, force)
    with _named(repr(str(path))):
        write_text(target, text)
    return target


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Errors of the file system, with the name of the output as it was given."""
    try:
        yield
    except WriteError as error:
        raise InputError(f"{what} cannot be written: {error.reason}. Choose another --out.") from error


def _free(target: Path) -> Path:
    return next(path for i in count(2) if not (path := target.with_name(f"{target.name}-{i}")).exists())


def columns_of(given: Any) -> dict[str, np.ndarray]:
    """The columns of a result's table, labels as text."""
    read = frames.table(given)
    return {name: read.read(name).take(slice(None)) for name in read.names}


def csv_text(columns: Mapping[str, np.ndarray]) -> str:
    """Columns as CSV: numbers to 10 digits, empty cells for NaN, text quoted where it must be."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(_cells(column) for column in columns.values())))
    return buffer.getvalue()


def _cells(column: np.ndarray) -> list[str]:
    array = np.asarray(column)
    if array.dtype.kind == "f":
        return ["" if value != value else f"{value:.10g}" for value in array.tolist()]
    return [str(value) for value in array.tolist()]
