"""Outputs that appear whole or not at all: written into a folder beside the target, which then takes its name."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..errors import InputError

MARK = "config.toml"  # a folder with this file is one of ours, and may be replaced with --force


def check_target(out: str | Path, force: bool, mark: str = MARK) -> Path:
    """The output folder, refused before any work where it could not be written in the end."""
    target = Path(out)
    if not str(out).strip() or target.resolve() == Path(target.resolve().anchor):
        raise InputError(f"--out must name a folder to make; got {str(out)!r}.")
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
    _may_write(target)
    return target


def check_file(path: str | Path, force: bool) -> Path:
    """The output file, refused before any work where it could not be written in the end."""
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
        os.rmdir(tempfile.mkdtemp(prefix=".unnorm-", dir=parent))
    except OSError as error:
        raise InputError(
            f"--out {str(target)!r} cannot be written: {str(parent)!r} is not a folder that you may write to "
            f"({error.strerror})."
        ) from error


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A fresh folder beside `target` that takes its place at the end, or vanishes with the error."""
    resolved = target.resolve()
    try:
        resolved.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{resolved.name}-", dir=resolved.parent))
    except OSError as error:
        raise InputError(f"--out {str(target)!r} cannot be written: {error.strerror or error}.") from error
    try:
        yield scratch
        scratch.chmod(0o755)
        if resolved.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{resolved.name}-old-", dir=resolved.parent))
            os.replace(resolved, old / "old")
            os.replace(scratch, resolved)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.replace(scratch, resolved)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def whole_file(path: str | Path, text: str, force: bool) -> Path:
    """Write one file in one step; an existing one only with `force`."""
    target = check_file(path, force)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error.strerror or error}.") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(scratch, 0o644)
        os.replace(scratch, target)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
    return target


def csv_text(columns: Mapping[str, np.ndarray]) -> str:
    """Columns as CSV: numbers to 10 digits, empty cells for NaN, text quoted where it must be."""
    import csv
    import io

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
