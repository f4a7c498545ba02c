"""`unnorm reproduce`: the paper's experiments."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import App

from ..errors import InputError
from .config import LARGEST_SEED, MOST_REFERENCES, whole
from .options import Number, Quiet, Text, shell_workers
from .reproduce_eye import eye

if TYPE_CHECKING:
    from ..studies.reproduce_toy_checks import Check

MOST_REPETITIONS, MOST_TRANSITIONS = 1_000_000, 1_000_000

app = App(name="reproduce", help="Run the paper's experiments again.")
app.command(eye)


@app.command
def toy(
    *,
    reps: Number = "300",
    n: str = "50,100,200,500,1000,2000",
    k: str = "10,30",
    theta: Literal["random", "fixed", "both"] = "both",
    seed: Number = "1",
    out: str = "reproduce-toy",
    jobs: Number = "2",
    workers: Text = None,
    basis: Number = "10",
    check: bool = False,
    quiet: Quiet = False,
) -> None:
    """Section 4.1: maximum likelihood against noise-contrastive divergence on the toy chain.

    Writes errors.csv and the two figures. An interrupted run continues where it stopped; sizes, settings and
    repetitions can be added to a folder later.

    Args:
        reps: repetitions for each n and setting.
        n: transitions, separated by commas.
        k: reference points for each transition, separated by commas.
        theta: θ1 ~ U(−1, 1) and θ2 ~ U(1/10, 10) in each repetition (random), θ = (−2, 50) (fixed), or both.
        seed: of everything that is random.
        out: folder for the results.
        jobs: processes on this machine.
        workers: in place of --jobs, the address of a Dask scheduler, as tcp://host:8786, whose workers share the
            repetitions; or a number of processes. The results are the same.
        basis: functions of the smooth χ.
        check: print what the experiment shows, statement by statement, and fail if one does not hold.
        quiet: print nothing but errors, and what --check asks for.
    """
    from tqdm import tqdm

    from ..studies.reproduce_toy import Toy, read_errors, run
    from ..studies.reproduce_toy_checks import checks
    from ..studies.reproduce_toy_figures import all_figures

    settings = ("random", "fixed") if theta == "both" else (theta,)
    experiment = Toy(
        whole("--reps", reps, 1, MOST_REPETITIONS),
        _sizes("--n", n, MOST_TRANSITIONS),
        _sizes("--k", k, MOST_REFERENCES),
        settings,
        whole("--seed", seed, 0, LARGEST_SEED),
        whole("--basis", basis, 3, 1000),
    )
    where = shell_workers(workers) or whole("--jobs", jobs, 1, 1000)
    folder = Path(out)
    with tqdm(unit=" transitions", unit_scale=True, disable=quiet or None, file=sys.stderr) as bar:
        table = run(experiment, folder, where, partial(_count, bar))
    errors = read_errors(table)
    failed = sum(1 for status in errors.status if status != "ok") // 2
    paths = all_figures(errors, folder, experiment.seed)
    if not quiet:
        print(f"{table}: {len(errors.rep) // 2:,} fits, {failed:,} without an estimate or not converged")
        for path in paths:
            print(path)
    if check:
        _print_checks(checks(errors, experiment.seed))


def _count(bar: Any, done: int, of: int) -> None:
    """Show how many transitions are done; the first call says how many an earlier run had done."""
    if bar.total is None:
        bar.initial = done
    bar.total = of
    bar.update(done - bar.n)


def _print_checks(found: list[Check]) -> None:
    """One line for each statement; exit code 1 where one does not hold."""
    for one in found:
        print(one)
    wrong = sum(not one.holds for one in found)
    if wrong:
        print(f"{wrong} of {len(found)} statements do not hold", file=sys.stderr)
        sys.exit(1)


def _sizes(option: str, text: str, most: int) -> tuple[int, ...]:
    """Whole numbers with commas between them."""
    try:
        return tuple(whole(option, part.strip(), 1, most) for part in text.split(","))
    except InputError:
        message = (
            f"{option} must be whole numbers from 1 to {most}, with commas between them, as 100,500; got {text!r}."
        )
        raise InputError(message) from None
