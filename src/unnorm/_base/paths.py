"""Paths as callers give them: what is none, or what the system cannot look up, has a sentence of one line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import InputError


def checked_path(path: Any) -> Path:
    """A path that names something, whether or not it is there."""
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise InputError(f"A path must be text or a pathlib.Path; got {type(path).__name__}.")
    if "\0" in os.fspath(path):
        raise InputError(f"{os.fspath(path)!r} is no path: names of files have no NUL character.")
    return Path(path)


def found_path(path: Any) -> Path:
    """A path that can be looked up: no name that is too long, no folder that is closed to this user."""
    path = checked_path(path)
    try:
        path.is_dir()
        (path / "a").exists()
    except OSError as error:
        raise InputError(f"{path_text(path)} cannot be read: {error.strerror}.") from error
    return path


def path_text(path: Any) -> str:
    """A path in a sentence; in quotation marks where a line end or the like is in its name."""
    text = str(checked_path(path))
    return text if text.isprintable() else repr(text)
