"""Saved results: a folder with one JSON file and one npz file, written whole or not at all.

Loading never runs code, and reads only what was saved: the JSON file ends with the SHA-256 of everything else, so that
a change made since is found here, not in the middle of a computation. A result made of several (a group of fits) has
its parts in folders inside, and a manifest with the SHA-256 of each.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import InputError, UnnormError
from .atomic import recover, whole_folder
from .paths import checked_path, found_path, path_text

FORMAT = 1
JSON_NAME, ARRAYS_NAME = "fit.json", "arrays.npz"
LONGEST_HEADER = 10_000  # characters before an array's numbers, as NumPy allows
TRIES = 20  # of reading what another process replaces
MOST_EMPTY = 1_000_000  # labels without a character in one array
_MARK = ',\n"sha256": "'

Described = tuple[Mapping[str, Any], Mapping[str, np.ndarray]]  # what a result is, JSON-ready, and its arrays


def write_folder(
    path: str | os.PathLike[str],
    description: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    parts: Mapping[str, Described] | None = None,
    settle: bool = True,
) -> Path:
    """Write `description` and `arrays` as the folder `path`, with a folder inside for each of `parts`; an earlier saved
    result there is replaced in one step. `settle`: as `atomic.whole_folder` has it."""
    target = checked_path(path)
    with whole_folder(target, check_target, settle) as scratch:
        manifest = {}
        for name, part in (parts or {}).items():
            (scratch / name).mkdir()
            manifest[name] = _write(scratch / name, *part)
        _write(scratch, {**description, "manifest": manifest} if parts is not None else description, arrays)
    return target


def _write(folder: Path, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """The two files of one result; their SHA-256."""
    with open(folder / ARRAYS_NAME, "wb") as file:
        np.savez(file, **{name: _plain(array) for name, array in arrays.items()})  # pyright: ignore[reportArgumentType]
    body = _json({"format": FORMAT, **description})
    with open(folder / ARRAYS_NAME, "rb") as file:
        found = _digest(body, file)
    with open(folder / JSON_NAME, "wb") as file:  # not yet under its name: the folder is settled as a whole
        file.write(f'{body}{_MARK}{found}"\n}}\n'.encode())
    return found


def check_target(target: Path) -> None:
    """Refuse to replace what is no saved result."""
    if os.path.lexists(target) and not (target / JSON_NAME).is_file():
        raise InputError(f"{path_text(target)} exists and is not a saved fit; choose another path or remove it.")


def _json(description: Mapping[str, Any]) -> str:
    """One line for each key, left open: `indent` takes the slow encoder, and a group of fits has 400,000 numbers."""
    lines = (f"{json.dumps(str(key))}: {json.dumps(value, allow_nan=True)}" for key, value in description.items())
    return "{\n" + ",\n".join(lines)


def _digest(body: str, arrays: BinaryIO) -> str:
    """SHA-256 of the description and of the file of arrays."""
    inner = hashlib.file_digest(arrays, "sha256").digest()  # pyright: ignore[reportArgumentType]
    return hashlib.sha256(body.encode("utf-8") + inner).hexdigest()


def read_folder(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what `write_folder` wrote; its parts are compared with the manifest, and read by their own paths."""
    target = found_path(path)
    recover(target)
    if not (target / JSON_NAME).is_file():
        raise InputError(f"{path_text(target)} is not a saved fit: it has no {JSON_NAME}.")
    if not (target / ARRAYS_NAME).is_file():  # a device would be read for ever
        raise InputError(f"The saved fit {path_text(target)} is damaged: it has no {ARRAYS_NAME}. Save it again.")
    with restoring(target):
        text = (target / JSON_NAME).read_text(encoding="utf-8")
        description = json.loads(text)
        if not isinstance(description, dict) or description.get("format") != FORMAT:
            raise InputError(
                f"The saved fit {path_text(target)} has a format that this version cannot read; it reads format "
                f"{FORMAT}."
            )
        with open(target / ARRAYS_NAME, "rb") as file:
            if description.pop("sha256", None) != _digest(text.rpartition(_MARK)[0], file):
                raise InputError(
                    f"The saved fit {path_text(target)} is damaged: it is not as it was saved. Save it again."
                )
            arrays = _read_arrays(file)
        for name, expected in description.get("manifest", {}).items():
            if Path(name).name != name or digest(target / name) != expected:
                raise InputError(
                    f"The saved fits {path_text(target)} are damaged: {name} is not the fit that was saved with them. "
                    "Save them again."
                )
    return description, arrays


def settled(path: str | os.PathLike[str], read: Callable[[], Any]) -> Any:
    """What `read` makes of a saved folder; again, where another process has replaced the folder meanwhile: half of the
    old and half of the new is neither."""
    path = found_path(path)
    for _ in range(TRIES):
        before = _identity(path)
        try:
            found = read()
        except UnnormError:
            if _identity(path) == before:
                raise
            continue
        if _identity(path) == before:
            return found
    raise InputError(f"{path_text(path)} is being written again and again; read it when the other process has ended.")


def _identity(path: str | os.PathLike[str]) -> tuple[int, int, int] | None:
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_dev, about.st_ino, about.st_mtime_ns


def digest(path: Path) -> str:
    """The SHA-256 that a saved folder ends with: of its description and its arrays, which `read_folder` checks."""
    if not (path / JSON_NAME).is_file():
        raise InputError(f"{path_text(path)} is not a saved fit: it has no {JSON_NAME}.")
    text = (path / JSON_NAME).read_text(encoding="utf-8")
    return text.rpartition(_MARK)[2].partition('"')[0]


@contextmanager
def restoring(path: str | os.PathLike[str], what: str = "fit") -> Iterator[None]:
    """Within, whatever goes wrong is damage of the saved result: it may hold anything, its digest included."""
    try:
        yield
    except UnnormError:
        raise
    except Exception as error:  # what bytes from elsewhere can do to json, zipfile, NumPy and constructors has no list
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"The saved {what} {path_text(path)} is damaged ({type(error).__name__}: {said}). Save it again."
        ) from error


# --- arrays -----------------------------------------------------------------------------------------------------------


def _read_arrays(file: BinaryIO) -> dict[str, np.ndarray]:
    """The arrays of an npz file as `np.savez` writes it, uncompressed: nothing in it is larger than the file."""
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if any(one.compress_type != zipfile.ZIP_STORED or one.flag_bits & 1 for one in members):
            raise ValueError("a compressed or encrypted array")
        if sum(one.file_size for one in members) > size or any(one.file_size != one.compress_size for one in members):
            raise ValueError("arrays larger than their file")
        names = [one.filename for one in members]
        if len(set(names)) < len(names) or not all(name.endswith(".npy") for name in names):
            raise ValueError("a name that is no array's, or one that comes twice")
        return {one.filename.removesuffix(".npy"): _array(archive.read(one)) for one in members}


def _array(raw: bytes) -> np.ndarray:
    """One array, its size compared with what there is before anything is allocated."""
    file = io.BytesIO(raw)
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, fortran, dtype = readers[version](file, max_header_size=LONGEST_HEADER)
    if dtype.hasobject:
        raise ValueError("an array of Python objects, which are never loaded")
    count = 1
    for length in shape:
        count *= length
    if min(shape, default=0) < 0 or count * dtype.itemsize != len(raw) - file.tell():
        raise ValueError(f"an array of shape {shape} with {len(raw) - file.tell():,} bytes")
    if dtype.itemsize == 0:  # empty labels, which NumPy holds as labels of one character
        if count > MOST_EMPTY:
            raise ValueError(f"an array of shape {shape} with no bytes")
        return np.zeros(shape, dtype)
    flat = np.frombuffer(raw, dtype, count, file.tell()).copy()
    return flat.reshape(shape, order="F" if fortran else "C")


def _plain(array: np.ndarray) -> np.ndarray:
    """Objects (labels) as text: an npz without pickles."""
    array = np.asarray(array)
    if array.dtype.kind in "OT":
        array = np.array([str(value) for value in array.ravel()]).reshape(array.shape)
    return array
