"""Held-out scores in a process of its own, beside the fits.

They need nothing that the job computes: the model is fitted to half of the sequences. Fits of one subject and figures
are mostly Python, which one thread runs at a time; another process has a core to itself. It starts with the command,
imports while this one does (`begun`), reads the job's settings and writes the scores as JSON (scoring.py). Nothing
depends on it: where it is not started, or fails, they are computed in threads.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from .._base.processes import end, may_start, started, tell
from .._base.threads import cores
from ..engine.ahead import cached

if TYPE_CHECKING:  # nothing heavy is imported before the process has started
    from ..data.observations import Observations
    from ..report.held_out import HeldOut
    from .jobs import Prepared

MANY = 5_000  # transitions from which it is worth the second that another process takes to start
LARGE = 20 * MANY  # bytes of a file that may hold so many

Asked = Callable[[], "dict[str, HeldOut] | None"]
Process = subprocess.Popen[bytes]


@contextmanager
def begun(likely: bool) -> Iterator[Process | None]:
    """Within, a process that has imported what scores need, or soon will have; None where it is not `likely` that there
    are many transitions, or there can be none."""
    process = _started() if likely else None
    try:
        yield process
    finally:
        if process is not None:
            end(process)


def large(path: str) -> bool:
    """Whether a file may hold many transitions."""
    try:
        return os.stat(path).st_size >= LARGE
    except (OSError, ValueError):  # which the command will say
        return False


@contextmanager
def held_out_beside(prepared: Prepared, waiting: Process | None = None) -> Iterator[Asked | None]:
    """Within, another process computes the scores: a function that waits for them, None where there is none. `waiting`:
    one that has begun."""
    if prepared.obs.n < MANY or prepared.job.between is not None:
        yield None
        return
    process = _started() if waiting is None else waiting
    if process is None or not tell(process, prepared.job.toml().encode()):
        yield None
        return
    try:
        yield partial(_answer, process, digest_of(prepared.obs))
    finally:
        end(process)


def digest_of(obs: Observations) -> str:
    """Of what is fitted: a table that changed between two readings gives other scores."""
    from .._base.checkpoints import digest

    return digest({"outcome": obs.outcome, "previous": obs.previous(), **obs.group})


def _started() -> Process | None:
    if cores() < 2 or not may_start() or not cached():  # kernels would be compiled twice
        return None
    return started(f"{__package__}.scoring", talks=True)


def _answer(process: Process, of: str) -> dict[str, HeldOut] | None:
    """What the process found, once it has; None where it failed, or read other observations."""
    from ..report.held_out import HeldOut

    said, _ = process.communicate()
    if process.returncode != 0:
        return None
    found = json.loads(said)
    if found["observations"] != of:
        return None
    return {which: HeldOut.read(own) for which, own in found["scores"].items()}
