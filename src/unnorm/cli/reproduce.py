"""`unnorm reproduce`: the paper's experiments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from ..errors import InputError
from .reproduce_eye import eye

app = App(name="reproduce", help="Run the paper's experiments again.")
app.command(eye)


@app.command
def toy(
    *,
    reps: int = 300,
    n: str = "50,100,200,500,1000,2000",
    k: str = "10,30",
    theta: Literal["random", "fixed", "both"] = "both",
    seed: int = 1,
    out: str = "reproduce-toy",
    jobs: int = 2,
    basis: int = 10,
    check: bool = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> None:
    """Section 4.1: maximum likelihood against noise-contrastive divergence on the toy chain.

    Writes errors.csv and the two figures. A run that was interrupted goes on where it stopped; sizes, settings and
    repetitions can be added to a folder later.

    Args:
        reps: repetitions for each n and setting.
        n: transitions, separated by commas.
        k: reference points for each transition, separated by commas.
        theta: θ1 ~ U(−1, 1) and θ2 ~ U(1/10, 10) in each repetition (random), θ = (−2, 50) (fixed), or both.
        seed: of everything that is random.
        out: folder for the results.
        jobs: worker processes.
        basis: functions of the smooth χ.
        check: print what the experiment shows, statement by statement, and fail if one does not hold.
        quiet: print nothing but errors, and what --check asks for.
    """
    from tqdm import tqdm

    from ..studies.reproduce_toy import Toy, read_errors, run
    from ..studies.reproduce_toy_checks import checks
    from ..studies.reproduce_toy_figures import all_figures

    settings = ("random", "fixed") if theta == "both" else (theta,)
    what = Toy(reps, _whole(n, "--n"), _whole(k, "--k"), settings, seed, basis)
    folder = Path(out)
    with tqdm(unit=" transitions", unit_scale=True, disable=quiet or None, file=sys.stderr) as bar:

        def progress(done: int, of: int) -> None:
            if bar.total is None:
                bar.initial = done
            bar.total = of
            bar.update(done - bar.n)

        table = run(what, folder, jobs, progress)
    errors = read_errors(table)
    failed = sum(1 for status in errors.status if status != "ok") // 2
    made = all_figures(errors, folder, seed)
    if not quiet:
        print(f"{table}: {len(errors.rep) // 2:,} fits, {failed:,} without an estimate or not converged")
        for path in made:
            print(path)
    if check:
        found = checks(errors, seed)
        for one in found:
            print(one)
        wrong = sum(not one.holds for one in found)
        if wrong:
            print(f"{wrong} of {len(found)} statements do not hold", file=sys.stderr)
            sys.exit(1)


def _whole(text: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option} must be whole numbers separated by commas, e.g. 100,500; got {text!r}.") from None
