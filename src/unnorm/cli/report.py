"""`unnorm report`: the report of an earlier fit, made again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from .loading import load_fits, needs_data, saved_job
from .output import check_file, whole_file
from .progress import Progress


def report(
    fitdir: str,
    /,
    *,
    out: str | None = None,
    data: str | None = None,
    force: Annotated[bool, Parameter(negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> None:
    """Make the report of an earlier fit again, from its folder and the data.

    Args:
        fitdir: the output folder of unnorm fit.
        out: the file to write; default report.html in that folder.
        data: where the data are now, if they have moved.
        force: replace an existing file.
        quiet: print nothing but errors.
    """
    from ..report import grouped, pooled
    from .fit import Done, inside, report_text
    from .jobs import prepare

    made, folder = saved_job(fitdir, data)
    needs_data(made)
    target = Path(out) if out is not None else folder.parent / "report.html"
    check_file(target, force)
    with Progress(9, quiet) as progress:
        with progress.step("reading"):
            parts = prepare(made)
            fits = load_fits(made, folder, parts.model)
        build = pooled if made.by is None else grouped
        run = build(fits, parts.model, inside(parts, made), made.level)
        text = report_text(Done(parts, run), progress)
    whole_file(target, text, force=True)
    if not quiet:
        print(f"report: {target}")
