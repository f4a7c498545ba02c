"""Held-out scores in a process of its own, beside the fits.

They need nothing that the job computes: the model is fitted to half of the sequences. Fits of one subject and figures
are mostly Python, which one thread runs at a time; another process has a core to itself. It reads the job's settings,
and writes the scores as JSON. Nothing depends on it: where it is not started, or fails, they are computed in threads.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from .._base.blas import single_threaded
from .._base.checkpoints import digest
from .._base.processes import may_start, started
from .._base.threads import cores
from ..data.observations import Observations
from ..engine.ahead import cached
from ..errors import hush
from ..report.analysis import GROUP, level_rows
from ..report.held_out import HeldOut, predicted
from ..terms.levels import level_name
from .config import Job, checked_job
from .jobs import Prepared, prepare, refit

MANY = 5_000  # transitions from which it is worth the second that another process takes to start

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
    if prepared.obs.n < MANY or job.between is not None or cores() < 2 or not may_start():
        return None
    if not cached():  # kernels would be compiled twice
        return None
    return started(__name__, told=job.toml().encode())


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
