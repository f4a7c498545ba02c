"""`unnorm report`: the report of an earlier fit, made again."""

from __future__ import annotations

from pathlib import Path

from .loading import load_fits, needs_data, saved_job
from .options import Force, Quiet, Text
from .output import check_file, whole_file
from .progress import Progress


def report(
    fitdir: str,
    /,
    *,
    out: str | None = None,
    data: str | None = None,
    figures: Text = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Make the report of an earlier fit again, from its folder and the data.

    Args:
        fitdir: the output folder of unnorm fit.
        out: the file to write; default report.html in that folder.
        data: where the data are now, if they have moved.
        figures: formats of the report's figures as files beside it, as svg or svg,pdf (png too).
        force: replace an existing file.
        quiet: print nothing but errors.
    """
    from ..report import SECTIONS
    from .extras import read_formats, write_figures
    from .jobs import prepare
    from .run import analysed, report_of

    job, folder = saved_job(fitdir, data)
    needs_data(job)
    target = Path(out) if out is not None else folder.parent / "report.html"
    check_file(target, force)
    formats = read_formats(figures)
    with Progress(("reading", *SECTIONS), quiet) as progress:
        with progress.step("reading"):
            prepared = prepare(job)
            fits = load_fits(job, folder, prepared.model)
        text, sections = report_of(prepared, analysed(prepared, fits), progress, formats)
    whole_file(target, text, force)
    write_figures(target.parent, sections)
    if not quiet:
        print(f"report: {target}")
