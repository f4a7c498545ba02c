"""Held-out scores in a process of its own, beside the fits.

They need nothing that the job computes: the model is fitted to half of the sequences. Fits of one subject and figures
are mostly Python, which one thread runs at a time; another process has a core to itself. It reads the job's settings,
and writes the scores as JSON. Nothing depends on it: where it is not started, or fails, they are computed in threads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._base.blas import single_threaded
from .._base.checkpoints import digest
from .._base.threads import cores
from ..data.observations import Observations
from ..errors import hush
from ..report.analysis import GROUP, level_rows
from ..report.held_out import HeldOut, predicted
from ..terms.levels import level_name
from .config import Job, checked_job
from .jobs import Prepared, prepare, refit

MANY = 5_000  # transitions from which it is worth the second that another process takes to start
_ROOT = Path(__file__).resolve().parents[2]

Asked = Callable[[], "dict[str, HeldOut] | None"]


@contextmanager
def held_out_beside(prepared: Prepared) -> Iterator[Asked | None]:
    """Within, another process computes the scores: a function that waits for them, None where there is none."""
    process = _started(prepared)
    if process is None:
        yield None
        return
    try:
        yield partial(_answer, process, digest_of(prepared.obs))
    finally:
        process.kill()
        process.wait()


def digest_of(obs: Observations) -> str:
    """Of what is fitted: a table that changed between two readings gives other scores."""
    return digest({"outcome": obs.outcome, "previous": obs.previous(), **obs.group})


def _started(prepared: Prepared) -> subprocess.Popen[bytes] | None:
    job = prepared.job
    if prepared.obs.n < MANY or job.between is not None or cores() < 2 or not _may_start():
        return None
    path = os.pathsep.join([str(_ROOT), *(place for place in sys.path if place)])
    hidden = subprocess.CREATE_NO_WINDOW if sys.platform == "win32" else 0
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            creationflags=hidden,
        )
        assert process.stdin is not None
        with process.stdin as told:
            told.write(job.toml().encode())
    except OSError:  # no processes here, or it died at once
        return None
    process.stdin = None
    return process


def _may_start() -> bool:
    """Not in a worker of multiprocessing, nor where sys.executable is a program that embeds Python, nor where kernels
    are still to be compiled, which would be done twice."""
    import multiprocessing

    from ..engine import ahead

    named = Path(sys.executable or "").stem.lower()
    return multiprocessing.parent_process() is None and named.startswith("python") and ahead._cached()


def _answer(process: subprocess.Popen[bytes], of: str) -> dict[str, HeldOut] | None:
    """What the process found, once it has; None where it failed, or read other observations."""
    said, _ = process.communicate()
    if process.returncode != 0:
        return None
    found = json.loads(said)
    if found["observations"] != of:
        return None
    return {which: HeldOut.read(own) for which, own in found["scores"].items()}


def scores_of(job: Job) -> dict[str, Any]:
    """The scores of a job and the digest of its observations, JSON-ready."""
    prepared = prepare(job)
    obs = prepared.inside()
    rows = {GROUP: np.arange(obs.n)}
    if job.by is not None:
        column = obs.group[job.by]
        names = [level_name(value) for value in np.unique(column).tolist()]
        rows = {name: np.flatnonzero(level_rows(column, name)) for name in names}
    with hush(), single_threaded():
        found = predicted(prepared.model, obs, rows, partial(refit, prepared, prepared.model), job.seed, job.level)
    scores = {which: HeldOut.of(own).to_dict() for which, own in found.items()}
    return {"observations": digest_of(prepared.obs), "scores": scores}


if __name__ == "__main__":
    given = tomllib.loads(sys.stdin.buffer.read().decode())
    sys.stdout.write(json.dumps(scores_of(checked_job(given))))
