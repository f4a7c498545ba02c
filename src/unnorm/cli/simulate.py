"""`unnorm simulate`: scanpaths from an earlier fit, of one subject or of the group."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from ..errors import InputError, listing
from .loading import load_fits, needs_data, saved_job
from .output import check_file, csv_text, whole_file
from .progress import Progress

MOST = 10_000_000  # points


def simulate(
    fitdir: str,
    /,
    *,
    which: str = "group",
    n: Annotated[str, Parameter(name=["-n", "--n"], allow_leading_hyphen=True)] = "100",
    steps: Annotated[str, Parameter(allow_leading_hyphen=True)] = "10",
    start: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    seed: Annotated[str, Parameter(allow_leading_hyphen=True)] = "1",
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
    from ..report.collect import held
    from .config import LARGEST_SEED, numbers, whole
    from .jobs import additive, observations, read, window

    chains, length = whole("-n", n, 1, MOST), whole("--steps", steps, 1, MOST)
    random = np.random.default_rng(whole("--seed", seed, 0, LARGEST_SEED))
    if chains * length > MOST:
        raise InputError(f"{chains:,} scanpaths of {length:,} steps are more than {MOST:,} points; ask for fewer.")
    made, folder = saved_job(fitdir, data)
    check_file(out, force)
    with Progress(3, quiet) as progress:
        with progress.step("reading"):
            domain = window(made)
            model = additive(made, domain)
            fits = load_fits(made, folder, model)
            fit = chosen(fits, which, made.by)
            columns: dict[str, Any] | None = None
            if start is not None:
                point = numbers("--start", start)
                if len(point) != 2:
                    raise InputError(f"--start must be two numbers, as 400,300; got {start!r}.")
                starts = np.tile(np.array(point), (chains, made.lags, 1))
            else:
                needs_data(made)
                obs = observations(made, read(made))
                first = np.unique(np.asarray(obs.sequence), return_index=True)[1]
                inside = domain.contains(obs.previous()[first])
                at = random.choice(first[inside], size=chains)
                starts = np.stack([obs.previous(lag)[at] for lag in range(made.lags, 0, -1)], axis=1)
                columns = held(model, obs, at)
        with progress.step("simulating"):
            table = fit.simulate(length, x0=starts, x=columns, rng=random)
        with progress.step("writing"):
            target = whole_file(out, csv_text({name: np.asarray(table[name]) for name in table}), force)
    if not quiet:
        print(f"{chains:,} scanpaths of {length:,} steps: {target}")


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
