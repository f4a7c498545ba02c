"""Files and folders that appear whole or not at all: made under a hidden name, and renamed at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """A path to write to; the file there becomes `target` at the end, or goes with the error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    scratch = Path(name)
    try:
        yield scratch
        scratch.chmod(0o644)
        os.replace(scratch, target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


@contextmanager
def scratch_folder(target: Path) -> Iterator[Path]:
    """A folder beside `target` to write into and to move to its place; what is left of it at the end is removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        scratch.chmod(0o755)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def take_place(scratch: Path, target: Path) -> None:
    """Give a folder the name `target`. An earlier folder there steps aside, and comes back if this fails."""
    if not target.exists():
        os.replace(scratch, target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
    try:
        os.replace(target, aside / target.name)
        os.replace(scratch, target)
    except BaseException:
        if not target.exists():
            os.replace(aside / target.name, target)
        raise
    finally:
        if target.exists():  # or the folder that stepped aside is all there is
            shutil.rmtree(aside, ignore_errors=True)
