"""`unnorm simulate`: scanpaths from an earlier fit, of one subject or of the group."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from ..errors import InputError, listing
from .loading import load_fits, needs_data, saved_job
from .output import csv_text, whole_file
from .progress import Progress

MOST = 10_000_000  # points


def simulate(
    fitdir: str,
    /,
    *,
    which: str = "group",
    n: Annotated[int, Parameter(name=["-n", "--n"])] = 100,
    steps: int = 10,
    start: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    seed: int = 1,
    out: str = "simulated.csv",
    data: str | None = None,
    force: Annotated[bool, Parameter(negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
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
    from .config import numbers, whole
    from .jobs import additive, observations, read, window

    whole("-n", n, 1, MOST)
    whole("--steps", steps, 1, MOST)
    whole("--seed", seed, 0, 2**63 - 1)
    if n * steps > MOST:
        raise InputError(f"{n:,} scanpaths of {steps:,} steps are more than {MOST:,} points; ask for fewer.")
    made, folder = saved_job(fitdir, data)
    with Progress(3, quiet) as progress:
        with progress.step("reading"):
            domain = window(made)
            fits = load_fits(made, folder, additive(made, domain))
            fit = chosen(fits, which, made.by)
            random = np.random.default_rng(seed)
            held: dict[str, Any] | None = None
            if start is not None:
                point = numbers("--start", start)
                if len(point) != 2:
                    raise InputError(f"--start must be two numbers, as 400,300; got {start!r}.")
                starts = np.tile(np.array(point), (n, made.lags, 1))
            else:
                needs_data(made)
                obs = observations(made, read(made))
                first = np.flatnonzero(np.diff(obs.sequence, prepend=-1))  # pyright: ignore[reportArgumentType]
                inside = domain.contains(obs.previous()[first])
                at = random.choice(first[inside], size=n)
                starts = np.stack([obs.previous(lag)[at] for lag in range(made.lags, 0, -1)], axis=1)
                held = {name: column[at] for name, column in obs.group.items()} or None
        with progress.step("simulating"):
            table = fit.simulate(steps, x0=starts, x=held, rng=random)
        with progress.step("writing"):
            target = whole_file(out, csv_text({name: np.asarray(table[name]) for name in table}), force)
    if not quiet:
        print(f"{n:,} scanpaths of {steps:,} steps: {target}")


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
