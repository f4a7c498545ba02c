"""Held-out scores in a process of its own, beside the fits.

They need nothing that the job computes: the model is fitted to half of the sequences. Fits of one subject and figures
are mostly Python, which one thread runs at a time; another process has a core to itself. It starts with the command and
imports while this one does, or starts when the kernels are compiled, where others are compiling them; it is told the
job's settings, and writes the scores as JSON (scoring.py). Nothing depends on it: where it is not started, or fails,
they are computed in threads.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, final

from .._base.processes import end, may_start, started, tell
from .._base.threads import cores
from ..engine.ahead import cached

if TYPE_CHECKING:  # nothing heavy is imported before the process has started
    from ..data.observations import Observations
    from ..report.held_out import HeldOut
    from .jobs import Prepared

MANY = 5_000  # transitions from which it is worth the second that another process takes to start
LARGE = 20 * MANY  # bytes of a file that may hold so many
LOOK = 0.1  # seconds between two looks for the kernels

Asked = Callable[[], "dict[str, HeldOut] | None"]


@final
class Other:
    """The process: at once where the kernels are on disk, else as soon as they are; ended with the context."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._told: bytes | None = None
        self._over, self._one = Event(), Lock()

    def __enter__(self) -> Other:
        if cores() >= 2 and may_start():
            if cached():
                self._start()
            else:  # kernels would be compiled twice
                Thread(target=self._wait, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._one:
            self._over.set()
            if self._process is not None:
                end(self._process)

    def _wait(self) -> None:
        while not self._over.wait(LOOK):
            if cached():
                self._start()
                return

    def _start(self) -> None:
        with self._one:
            if self._over.is_set():
                return
            self._process = started(f"{__package__}.scoring", talks=True)
            if self._process is not None and self._told is not None:
                tell(self._process, self._told)

    def tell(self, what: bytes) -> None:
        """What the process is for, now or when it has started."""
        with self._one:
            self._told = what
            if self._process is not None:
                tell(self._process, what)

    def answer(self) -> bytes | None:
        """What it says, once it has; None where there is no process, or it failed. One that has not started by now
        would be too late."""
        with self._one:
            process = self._process
            if process is None:
                self._over.set()
                return None
        said, _ = process.communicate()
        return said if process.returncode == 0 else None


@contextmanager
def begun(likely: bool) -> Iterator[Other | None]:
    """Within, a process that imports what scores need; None where it is not `likely` that there are many
    transitions."""
    if not likely:
        yield None
        return
    with Other() as other:
        yield other


def large(path: str) -> bool:
    """Whether a file may hold many transitions."""
    try:
        return os.stat(path).st_size >= LARGE
    except (OSError, ValueError):  # which the command will say
        return False


@contextmanager
def held_out_beside(prepared: Prepared, other: Other | None = None) -> Iterator[Asked | None]:
    """Within, another process computes the scores, `other` where one has begun: a function that waits for them; None
    where rows are few."""
    if prepared.obs.n < MANY or prepared.job.between is not None:
        yield None
        return
    with begun(likely=other is None) as own:
        told = own if other is None else other
        assert told is not None
        told.tell(prepared.job.toml().encode())
        yield partial(_answer, told, digest_of(prepared.obs))


def digest_of(obs: Observations) -> str:
    """Of what is fitted: a table that changed between two readings gives other scores."""
    from .._base.checkpoints import digest

    return digest({"outcome": obs.outcome, "previous": obs.previous(), **obs.group})


def _answer(other: Other, of: str) -> dict[str, HeldOut] | None:
    """What the process found, once it has; None where it failed, or read other observations."""
    from ..report.held_out import HeldOut

    said = other.answer()
    if said is None:
        return None
    found = json.loads(said)
    if found["observations"] != of:
        return None
    return {which: HeldOut.read(own) for which, own in found["scores"].items()}
