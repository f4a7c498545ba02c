"""`unnorm fit`: from a table of fixations to effects, a loadable fit and a report."""

from __future__ import annotations

from .._base.garbage import staying
from .options import NONE_GIVEN, Flag, Force, Options, Quiet, Resume, Text, shell_workers
from .output import check_target


def fit(
    data: str | None = None,
    /,
    *,
    terms: Text = None,
    options: Options = NONE_GIVEN,
    between: Text = None,
    objective: Text = None,
    level: Text = None,
    memory: Text = None,
    workers: Text = None,
    figures: Text = None,
    json: Flag = None,
    out: str = "results",
    force: Force = False,
    resume: Resume = False,
    quiet: Quiet = False,
) -> None:
    """Fit a spatial Markov chain to a table of fixations or steps, and write effects, fits and a report.

    Args:
        data: a .csv, .tsv (also .gz) or .parquet file with one row for each point.
        terms: the effects, as "s(step, k=10) + s(dcenter, k=40) + s(angle, bs='cc', k=20)".
        options: shared with unnorm compare.
        between: a column of conditions to compare: curves, differences and tests, between the levels of --by or within
            them, as the data are.
        objective: logistic, ranking or poisson.
        level: of the bands.
        memory: what the rows may take, as 2GB; by default most of what is free. Rows that do not fit are read again.
        workers: a number of processes, or the address of a Dask scheduler, as tcp://host:8786.
        figures: formats of the report's figures as files beside it, as svg or svg,pdf (png too).
        json: print the summary as JSON.
        out: the folder to make.
        force: replace an earlier output there.
        resume: go on from what an interrupted run left in OUT.part.
        quiet: print nothing but errors.
    """
    from ..engine.ahead import compile_ahead
    from .beside import begun, large

    target, job = (
        check_target(out, force),
        options.job(data=data, terms=terms, between=between, objective=objective, level=level),
    )
    compile_ahead()  # before anything heavy is imported
    with begun(likely=memory is None and job.between is None and large(job.data)) as other:
        with staying():
            from ..engine.resources import Resources
            from .extras import Extras, read_formats
            from .run import run_job

        extras, resources = Extras(read_formats(figures), bool(json)), Resources(memory, shell_workers(workers))
        run_job(job, target, force, quiet, resume, resources, extras, other)
