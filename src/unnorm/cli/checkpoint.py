"""`OUT.part`: the fits that a command has made so far, from which `--resume` goes on after an interruption.

A stage is saved as it ends, so that it is not lost even where the process is killed; a stage of many levels saves each
(`inside`). The folder goes when the output is written; what its numbers depend on is written down in it, so that
another job, data or version are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from .._base.atomic import remove, shared_folder
from .._base.checkpoints import check_depends, depending, write_depends
from ..errors import InputError, WriteError

NAME = "part.json"


@final
class Part:
    """The finished stages of a command; as a context, gone at its end unless there is something to resume."""

    def __init__(self, target: Path, depends: Mapping[str, Any], resume: bool) -> None:
        self.folder = target.with_name(f"{target.name}.part")
        self.depends = depending(depends)
        self.damaged = False  # what is there could not be read, and is left to its owner
        if not self.folder.exists():
            return
        if not (self.folder / NAME).is_file():
            raise InputError(
                f"{str(self.folder)!r} exists and is no unfinished output; remove it or choose another --out."
            )
        if resume:
            check_depends(self.folder / NAME, self.depends, "leave --resume out")
        else:
            remove(self.folder)

    def inside(self, name: str) -> Path:
        """Where a stage may keep what it has finished of itself."""
        self._begin()
        return self.folder / name

    def _begin(self) -> None:
        if not (self.folder / NAME).exists():
            write_depends(self.folder / NAME, self.depends)

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
        self._begin()
        made.save(path)
        return made

    def given(self, name: str, target: Path) -> bool:
        """Put what a stage saved where the output wants it, without writing it again; whether that could be done."""
        return (self.folder / name).is_dir() and shared_folder(self.folder / name, target)

    def __enter__(self) -> Part:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not self.folder.exists():
            return
        nothing = all(path.name == NAME for path in self.folder.iterdir())
        if error is None or nothing or (isinstance(error, Exception) and not _passing(error) and not self.damaged):
            remove(self.folder)
        elif not self.damaged:
            error.add_note(
                f"What was fitted is in {str(self.folder)!r}: the same command with --resume goes on from there."
            )


def _passing(error: BaseException) -> bool:
    """Whether the same command may succeed later: a full disk, a full memory."""
    causes = (error, error.__cause__)
    return any(isinstance(one, WriteError | OSError | MemoryError) for one in causes)
