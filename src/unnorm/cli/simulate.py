"""`unnorm simulate`: scanpaths from an earlier fit, of one subject or of the group."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError, listing
from .config import LARGEST_SEED, Job, numbers, whole
from .loading import load_fits, needs_data, saved_job
from .options import Count, Force, Number, Quiet, Text
from .output import check_file, csv_text, whole_file
from .progress import Progress

MOST = 10_000_000  # points
STEPS = ("reading", "simulating", "writing")


def simulate(
    fitdir: str,
    /,
    *,
    which: str = "group",
    n: Count = "100",
    steps: Number = "10",
    start: Text = None,
    seed: Number = "1",
    out: str = "simulated.csv",
    data: str | None = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Simulate scanpaths from an earlier fit.

    Args:
        fitdir: the output folder of unnorm fit.
        which: group, or a level of --by such as a subject.
        n: scanpaths.
        steps: of each, after its starting point.
        start: where all of them start, as 400,300; default at starting points drawn from the data.
        seed: of the simulation.
        out: the .csv file to write: chain, step and the point's columns.
        data: where the data are now, if they have moved.
        force: replace an existing file.
        quiet: print nothing but errors.
    """
    from .jobs import additive, window

    chains, length = whole("-n", n, 1, MOST), whole("--steps", steps, 1, MOST)
    random = np.random.default_rng(whole("--seed", seed, 0, LARGEST_SEED))
    if chains * length > MOST:
        raise InputError(f"{chains:,} scanpaths of {length:,} steps are more than {MOST:,} points; ask for fewer.")
    job, folder = saved_job(fitdir, data)
    check_file(out, force)
    with Progress(STEPS, quiet) as progress:
        with progress.step("reading"):
            model = additive(job, window(job))
            fit = chosen(load_fits(job, folder, model), which, job.by)
            starts, held = _starts(job, model, start, chains, random)
        with progress.step("simulating"):
            table = fit.simulate(length, x0=starts, x=held, rng=random)
        with progress.step("writing"):
            target = whole_file(out, csv_text({name: np.asarray(table[name]) for name in table}), force)
    if not quiet:
        print(f"{chains:,} scanpaths of {length:,} steps: {target}")


def _starts(
    job: Job, model: Any, start: str | None, chains: int, rng: np.random.Generator
) -> tuple[np.ndarray, dict[str, np.ndarray] | None]:
    """(chains, lags, 2) points to start from, and the columns that the chains keep from where they start."""
    if start is not None:
        point = numbers("--start", start)
        if model.domain.key is not None:
            raise InputError(
                f"--start is one place, and each {model.domain.key} has its own window: leave it out, and scanpaths "
                "start where observed ones do."
            )
        if len(point) != 2:
            raise InputError(f"--start must be two numbers, as 400,300; got {start!r}.")
        return np.tile(np.array(point), (chains, job.lags, 1)), None
    from ..data.placing import within
    from ..results.simulation import held_columns
    from .jobs import observations, read

    needs_data(job)
    obs = observations(job, read(job))
    first = np.unique(np.asarray(obs.sequence), return_index=True)[1]
    inside = within(model.domain, obs, obs.previous())
    rows = rng.choice(first[inside[first]], size=chains)
    return np.stack([obs.previous(lag)[rows] for lag in range(job.lags, 0, -1)], axis=1), held_columns(model, obs, rows)


def chosen(fits: Any, which: str, by: str | None) -> Any:
    """The group's fit, or a level's."""
    if by is None:
        if which != "group":
            raise InputError(f"This fit is one pooled model, without levels: --which group; got {which!r}.")
        return fits
    if which == "group":
        if fits.group is None:
            raise InputError(f"This fit has no group curve; --which must be one of {listing(fits.fits)}.")
        return fits.group
    if which not in fits.fits:
        raise InputError(f"--which must be 'group' or one of {listing(fits.fits)} ({by}); got {which!r}.")
    return fits.fits[which]
