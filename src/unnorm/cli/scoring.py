"""The process beside a job that computes its held-out scores: settings on its standard input, scores on its output."""

from __future__ import annotations

import json
import sys
import tomllib
from functools import partial
from typing import TYPE_CHECKING, Any

from .._base.garbage import staying
from .._base.processes import give_way
from .ready import make_ready

if TYPE_CHECKING:
    from .config import Job


def scores_of(job: Job) -> dict[str, Any]:
    """The scores of a job and the digest of its observations, JSON-ready."""
    import numpy as np

    from .._base.blas import single_threaded
    from ..errors import hush
    from ..report.analysis import GROUP, level_rows
    from ..report.held_out import HeldOut, predicted
    from ..terms.levels import level_name
    from .beside import digest_of
    from .jobs import prepare, refit

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


def main() -> None:
    """What the process does: nothing, where it is told nothing."""
    from .config import checked_job

    with staying():
        from . import jobs as jobs

    make_ready()  # while the other process reads the data
    told = sys.stdin.buffer.read()
    if told:
        give_way()
        sys.stdout.write(json.dumps(scores_of(checked_job(tomllib.loads(told.decode())))))


if __name__ == "__main__":
    main()
