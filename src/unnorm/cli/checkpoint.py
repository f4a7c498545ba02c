"""`OUT.part`: the fits that a command has made so far, from which `--resume` goes on after an interruption.

A stage is saved as it ends, so that it is not lost even where the process is killed. The folder goes when the output
is written; what its numbers depend on is written down in it, so that another job, data or version are refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

import numpy as np

from .._base.atomic import remove, write_text
from .._version import __version__
from ..errors import InputError, WriteError

FORMAT = 1
NAME = "part.json"
LARGEST = 10_000_000  # bytes of it


@final
class Part:
    """The finished stages of a command; as a context, gone at its end unless there is something to resume."""

    def __init__(self, target: Path, depends: Mapping[str, Any], resume: bool) -> None:
        self.folder = target.with_name(f"{target.name}.part")
        self.depends = json.loads(json.dumps({"format": FORMAT, "unnorm": __version__, **depends}))
        self.damaged = False  # what is there could not be read, and is left to its owner
        if not self.folder.exists():
            return
        if not (self.folder / NAME).is_file():
            raise InputError(
                f"{str(self.folder)!r} exists and is no unfinished output; remove it or choose another --out."
            )
        if resume:
            self._check()
        else:
            remove(self.folder)

    def _check(self) -> None:
        path = self.folder / NAME
        try:
            if path.stat().st_size > LARGEST:
                raise ValueError(f"larger than {LARGEST:,} bytes")
            found = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(found, dict):
                raise ValueError("not a list of settings")
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{str(path)!r} is damaged ({error}); leave --resume out to begin again.") from error
        changed = sorted(key for key in {*found, *self.depends} if found.get(key) != self.depends.get(key))
        if changed:
            raise InputError(
                f"{str(self.folder)!r} is of another run: {', '.join(changed)} differ. Give the same data and options "
                "to go on, or leave --resume out to begin again."
            )

    def stage(self, name: str, load: Callable[[Path], Any], make: Callable[[], Any]) -> Any:
        """What an earlier run saved under this name; else what `make` gives, saved before it is used."""
        path = self.folder / name
        if path.exists():
            try:
                return load(path)
            except InputError as error:
                self.damaged = True
                raise InputError(f"{error} Or leave --resume out to begin again.") from error
        made = make()
        if not (self.folder / NAME).exists():
            write_text(self.folder / NAME, json.dumps(self.depends, indent=1, ensure_ascii=False) + "\n")
        made.save(path)
        return made

    def __enter__(self) -> Part:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not self.folder.exists():
            return
        if error is None or (isinstance(error, Exception) and not _passing(error) and not self.damaged):
            remove(self.folder)
        elif not self.damaged:
            error.add_note(
                f"What was fitted is in {str(self.folder)!r}: the same command with --resume goes on from there."
            )


def _passing(error: BaseException) -> bool:
    """Whether the same command may succeed later: a full disk, a full memory."""
    causes = (error, error.__cause__)
    return any(isinstance(one, WriteError | OSError | MemoryError) for one in causes)


def digest(columns: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of a table's columns."""
    found = hashlib.sha256()
    for name, column in columns.items():
        array = np.asarray(column)
        raw = json.dumps([str(one) for one in array.tolist()]).encode() if array.dtype.kind == "O" else array.tobytes()
        found.update(json.dumps([name, str(array.dtype), array.shape]).encode() + raw)
    return found.hexdigest()
