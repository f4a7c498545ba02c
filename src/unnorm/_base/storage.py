"""Saved results: a folder with one JSON file and one npz file, written whole or not at all.

Loading never runs code, and reads only what was saved: the JSON file ends with the SHA-256 of everything else, so that
a change made since is found here, not in the middle of a computation.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .atomic import scratch_folder, take_place

FORMAT = 1
JSON_NAME, ARRAYS_NAME = "fit.json", "arrays.npz"
_MARK = ',\n"sha256": "'


def write_folder(
    path: str | os.PathLike[str], description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> Path:
    """Write `description` and `arrays` as the folder `path`; an earlier saved fit there is replaced in one step."""
    target = Path(path)
    check_target(target)
    with writing_to(target), scratch_folder(target) as scratch:
        np.savez(scratch / ARRAYS_NAME, **{name: _plain(array) for name, array in arrays.items()})  # pyright: ignore[reportArgumentType]
        body = _json({"format": FORMAT, **description})
        text = f'{body}{_MARK}{_digest(body, scratch / ARRAYS_NAME)}"\n}}\n'
        (scratch / JSON_NAME).write_text(text, encoding="utf-8")
        take_place(scratch, target)
    return target


def check_target(target: Path) -> None:
    """Refuse to replace what is no saved result."""
    if target.exists() and not (target / JSON_NAME).is_file():
        raise InputError(f"{target} exists and is not a saved fit; choose another path or remove it.")


@contextmanager
def writing_to(target: Path) -> Iterator[None]:
    """Within, an error of the file system is one of the path that was given."""
    try:
        yield
    except OSError as error:
        raise InputError(f"Cannot write to {target.parent}: {error.strerror or error}.") from error


def _json(description: Mapping[str, Any]) -> str:
    """One line for each key, left open: `indent` takes the slow encoder, and a group of fits has 400,000 numbers."""
    lines = (f"{json.dumps(str(key))}: {json.dumps(value, allow_nan=True)}" for key, value in description.items())
    return "{\n" + ",\n".join(lines)


def _digest(body: str, arrays: Path) -> str:
    """SHA-256 of the description and of the file of arrays."""
    with open(arrays, "rb") as file:
        return hashlib.sha256(body.encode("utf-8") + hashlib.file_digest(file, "sha256").digest()).hexdigest()


def read_folder(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what `write_folder` wrote."""
    target = Path(path)
    if not (target / JSON_NAME).is_file():
        raise InputError(f"{target} is not a saved fit: it has no {JSON_NAME}.")
    try:
        text = (target / JSON_NAME).read_text(encoding="utf-8")
        description = json.loads(text)
        with np.load(target / ARRAYS_NAME, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(
            f"The saved fit {target} is damaged ({type(error).__name__}: {error}). Save it again."
        ) from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise InputError(
            f"The saved fit {target} has a format that this version cannot read; it reads format {FORMAT}."
        )
    body = text.rpartition(_MARK)[0]
    if description.pop("sha256", None) != _digest(body, target / ARRAYS_NAME):
        raise InputError(f"The saved fit {target} is damaged: it is not as it was saved. Save it again.")
    return description, arrays


def digest(path: Path) -> str:
    """The SHA-256 that a saved folder ends with: of its description and its arrays, which `read_folder` checks."""
    try:
        text = (path / JSON_NAME).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a saved fit: it has no {JSON_NAME} that can be read ({error}).") from error
    return text.rpartition(_MARK)[2].partition('"')[0]


def _plain(array: np.ndarray) -> np.ndarray:
    """Objects (labels) as text: an npz without pickles."""
    array = np.asarray(array)
    if array.dtype.kind == "O":
        array = np.array([str(value) for value in array.ravel()]).reshape(array.shape)
    return array
