"""Faults at the steps that touch the disk, one at a time: a full disk, an interrupt, a kill."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from unnorm._base import atomic


class Faults:
    """Counts the steps that touch the disk; raises at one of them."""

    def __init__(self, at: int, error: Callable[[], BaseException]) -> None:
        self.at, self.error, self.count = at, error, 0

    def step(self) -> None:
        self.count += 1
        if self.count == self.at:
            raise self.error()

    def before(self, real: Callable) -> Callable:
        def call(*args: object, **kwargs: object) -> object:
            self.step()
            return real(*args, **kwargs)

        return call

    def opened(self, real: Callable) -> Callable:
        def call(file: object, mode: str = "r", *args: object, **kwargs: object) -> object:
            if set(mode) & set("wax+"):
                self.step()
            return real(file, mode, *args, **kwargs)

        return call


@contextmanager
def faults(at: int, error: Callable[[], BaseException], swap: bool) -> Iterator[Faults]:
    given = Faults(at, error)
    with pytest.MonkeyPatch.context() as patch:
        if not swap:
            patch.setattr(atomic, "_swapped", lambda *_: False)
        for place, name in ((os, "replace"), (os, "mkdir"), (atomic.tempfile, "mkdtemp"), (atomic.tempfile, "mkstemp")):
            patch.setattr(place, name, given.before(getattr(place, name)))
        patch.setattr(atomic, "_settle", given.before(atomic._settle))
        patch.setattr(np, "savez", given.before(np.savez))
        patch.setattr(builtins, "open", given.opened(builtins.open))
        patch.setattr(Path, "chmod", given.before(Path.chmod))
        yield given
