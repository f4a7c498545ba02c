"""What an unfinished result depends on, written beside it: another run's is refused, never continued."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..errors import InputError
from .atomic import write_text

FORMAT = 1
LARGEST = 10_000_000  # bytes of the file


def depending(on: Mapping[str, Any]) -> dict[str, Any]:
    """What the numbers depend on, as JSON gives it back; the version of unnorm is part of it."""
    return json.loads(json.dumps({"format": FORMAT, "unnorm": __version__, **on}))


def write_depends(path: Path, depends: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(depends, indent=1, ensure_ascii=False) + "\n")


def check_depends(path: Path, depends: Mapping[str, Any], remedy: str) -> None:
    """Refuse what was begun with other data or settings; `remedy`: how to begin again."""
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"larger than {LARGEST:,} bytes")
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("not a list of settings")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{str(path)!r} is damaged ({error}); {remedy} to begin again.") from error
    changed = sorted(key for key in {*found, *depends} if found.get(key) != depends.get(key))
    if changed:
        some = [" ".join(key.split())[:40] for key in changed[:12]]  # the file may hold anything
        named = ", ".join([*some, *(["…"] if len(changed) > 12 else [])])
        raise InputError(
            f"{str(path.parent)!r} is of another run: {named} differ. Give the same data and options to "
            f"go on, or {remedy} to begin again."
        )


def digest(columns: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of a table's columns."""
    found = hashlib.sha256()
    for name, column in columns.items():
        array = np.asarray(column)
        raw = json.dumps([str(one) for one in array.tolist()]).encode() if array.dtype.kind == "O" else array.tobytes()
        found.update(json.dumps([name, str(array.dtype), array.shape]).encode() + raw)
    return found.hexdigest()
