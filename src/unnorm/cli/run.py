"""A job from its settings to the output folder: read, fit, write tables and report."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._base.atomic import write_text
from .._base.blas import single_threaded
from ..domains import Domain
from ..engine.resources import Resources
from ..errors import CombinationError, EstimationError, hush
from ..report import SECTIONS, Analysis, Provenance, effects_table, grouped, make_sections, parameters_table, pooled
from ..report import render as render_page
from ..report.figures import wanted
from ..report.page import Section
from ..report.sections.conditions import differences_table
from ..report.sections.monte_carlo import advice
from ..results.constants import worst
from .beside import Other, digest_of, held_out_beside
from .checkpoint import Part
from .config import BUNDLED, Job
from .extras import PLAIN, Extras, summary_json, write_figures
from .jobs import Prepared, prepare, refit
from .loading import load_fits
from .output import MARK, csv_text, whole_folder
from .progress import Progress
from .ready import begin_figures, make_ready

ANYWHERE = Resources()
FIT = "fit"  # the folder of saved fits, which `unnorm report` reads: with its advice, which need not be computed again
STEPS = ("reading", "fitting", "tables")  # and then the report's sections


def run_job(
    job: Job,
    target: Path,
    force: bool,
    quiet: bool,
    resume: bool | None = None,
    resources: Resources = ANYWHERE,
    extras: Extras = PLAIN,
    other: Other | None = None,
) -> None:
    """Everything from the job to the output folder. BLAS has one thread throughout: levels have the cores.

    With `resume` (True or False, not None) the fits are kept in `OUT.part`, level by level, until the output is
    written; True takes those that an interrupted run left there. `other`: the process for held-out scores, begun.
    """
    with single_threaded(), Progress((*STEPS, *SECTIONS), quiet) as progress:
        with progress.step("reading"):
            prepared = prepare(job)
        begin_figures()  # once the input is known to be right
        make_ready()
        with (
            nullcontext() if resume is None else Part(target, _depends(prepared), resume) as part,
            nullcontext() if resources.memory is not None else held_out_beside(prepared, other) as elsewhere,
        ):
            with progress.step("fitting"):
                fits = fitted(prepared, resources) if part is None else _kept(prepared, part, resources)
                analysis = analysed(prepared, fits)
                if not analysis.failures:  # the other process takes every level to be fitted
                    analysis = replace(analysis, elsewhere=elsewhere)
            with whole_folder(target, force) as folder:
                write(prepared, analysis, folder, progress, extras)
                if part is None or not part.given(FIT, folder / FIT):
                    assert analysis.save is not None
                    analysis.save(str(folder / FIT))  # last, with the advice that the report asked for
    if extras.json:
        print(summary_json(analysis, target))
    elif not quiet:
        print(closing(prepared, analysis, target))


def _depends(prepared: Prepared) -> dict[str, Any]:
    """What the numbers of a job depend on."""
    return {**asdict(prepared.job), "observations": digest_of(prepared.obs)}


def _kept(prepared: Prepared, part: Part, resources: Resources) -> Any:
    """The fits, from an interrupted run or made and saved, with the advice that the report will ask for."""

    def make() -> Any:
        fits = fitted(prepared, resources, None if prepared.job.by is None else part.inside("levels"))
        advice(analysed(prepared, fits))
        return fits

    return part.stage(FIT, lambda path: load_fits(prepared.job, path, prepared.model), make)


def fitted(prepared: Prepared, resources: Resources = ANYWHERE, levels: Path | None = None) -> Any:
    """The `Fit` or `FitGroup`, whose finished levels are kept in the folder `levels`. Warnings are not printed: what
    matters is in the fits' notes, and so in the report."""
    from ..groups import fit_each
    from ..results import fitting

    job = prepared.job
    options: dict[str, Any] = {
        "objective": prepared.objective,
        "normaliser": prepared.normaliser,
        "smoothing": job.smoothing,
        "rng": job.seed,
        "outside": job.outside,
    }
    with hush():
        if job.by is None:
            where = {"memory": resources.memory, "workers": resources.workers}
            return fitting.fit(prepared.model, prepared.obs, **options, **where)
        if resources.memory is not None:
            raise CombinationError("--memory is for one fit of all rows: leave it out with --by.")
        where = {"workers": resources.workers, "checkpoint": levels, "between": job.between}
        each = fit_each(prepared.model, prepared.obs, job.by, **options, **where)
    if job.between is not None and each.conditions is None:
        raise EstimationError(f"The conditions of {job.between!r} could not be compared. {each.no_group}")
    if not each.fits:
        why = next(iter(each.failures.values()), "no level could be fitted")
        raise EstimationError(f"None of the levels of {job.by!r} could be fitted; the first says: {why}")
    return each


def analysed(prepared: Prepared, fits: Any) -> Analysis:
    """The fit, or the `FitGroup`, of a job as the report reads it."""
    job = prepared.job
    more = {
        "level": job.level,
        "seed": job.seed,
        "unit": job.length_unit,
        "duration": job.duration,
        "refit": partial(refit, prepared, prepared.model),
    }
    return (pooled if job.by is None else grouped)(fits, prepared.model, prepared.inside(), **more)


def write(prepared: Prepared, analysis: Analysis, folder: Path, progress: Progress, extras: Extras = PLAIN) -> None:
    """All output files but the fits into a folder."""
    with progress.step("tables"):
        write_text(folder / "effects.csv", csv_text(effects_table(analysis)))
        write_text(folder / "parameters.csv", csv_text(parameters_table(analysis)))
        if analysis.conditions is not None:
            write_text(folder / "differences.csv", csv_text(differences_table(analysis)))
            write_text(folder / "tests.csv", csv_text(dict(analysis.conditions.tests)))
        write_text(folder / "summary.txt", analysis.summary + "\n")
        write_text(folder / MARK, prepared.job.toml())
    text, sections = report_of(prepared, analysis, progress, extras.figures)
    write_text(folder / "report.html", text)
    write_figures(folder, sections)


def report_of(
    prepared: Prepared, analysis: Analysis, progress: Progress, formats: tuple[str, ...] = ()
) -> tuple[str, list[Section]]:
    """The report of a fitted job, and its sections, their figures as files of these formats too."""
    with wanted(formats):
        sections = make_sections(analysis, progress.step)
    return render_page(provenance(prepared, analysis), sections), sections


def closing(prepared: Prepared, analysis: Analysis, target: Path) -> str:
    """What is printed at the end."""
    levels = f", {len(analysis.fits)} levels of {analysis.by}" if analysis.fits else ""
    dropped = prepared.obs.n - analysis.obs.n
    lost = f" ({dropped:,} with a point outside the window were dropped)" if dropped else ""
    lines = [f"{analysis.obs.n:,} transitions{lost}{levels}; effects {', '.join(analysis.labels)}"]
    lines += [f"no fit for {analysis.by} {level}: {why}" for level, why in analysis.failures.items()]
    lines += _failing(analysis)
    lines.append(f"report: {target / 'report.html'}")
    return "\n".join(lines)


def _failing(analysis: Analysis) -> list[str]:
    """The constants that failed their check: how many, and the worst of them in full."""
    own = analysis.fits or {"": analysis.main}
    failed = [which for which, fit in own.items() if fit.constants_failed]
    if not failed:
        return []
    which = worst(own)
    whose = f" of {analysis.by} {which}" if analysis.fits else ""
    more = f" ({len(failed)} of {len(own)} fail, this one worst)" if len(failed) > 1 else ""
    return [f"constants{whose} FAIL{more}: {own[which].constants}"]


def provenance(prepared: Prepared, analysis: Analysis) -> Provenance:
    """What the report says of the job itself."""
    job = prepared.job
    name = "the simulated scanpaths that come with unnorm" if job.data == BUNDLED else job.data
    title = f"Spatial Markov chain: {name if job.data == BUNDLED else Path(job.data).name}"
    return Provenance(title, _facts(prepared, analysis, name), _notes(analysis), job.command())


def _facts(prepared: Prepared, analysis: Analysis, name: str) -> list[tuple[str, str]]:
    job, obs = prepared.job, analysis.obs
    sequences = len(np.unique(obs.sequence)) if obs.sequence is not None else 1
    facts = [
        ("data", f"{name}: {prepared.table_rows:,} rows, {obs.n:,} transitions in {sequences:,} sequences"),
        ("window", _window_words(job, prepared.model.domain)),
        ("effects, f", job.terms),
    ]
    if analysis.by is not None:
        facts.append(("separately for", f"each {analysis.by}: {len(analysis.fits)} levels"))
    if prepared.normaliser is not None and prepared.normaliser.terms is not None:
        penalised = ", penalised (REML)" if job.normaliser_smoothing == "reml" else ""
        facts.append(("normaliser, χ", f"{prepared.normaliser.terms}{penalised}"))
    elif analysis.main.anchored:
        facts.append(("normaliser, χ", "−log ∫ exp f + δ: computed from the effects, with one number δ to estimate"))
    facts += [(f"covariate {text.partition('=')[0]}", text.partition("=")[2]) for text in (*job.map, *job.covariate)]
    drawn = {"logistic": f" ({job.points or 'lattice'})", "ranking": " (iid)"}.get(job.objective)
    points = "" if drawn is None else f", {job.references} reference points for each{drawn}"
    return [
        *facts,
        ("objective", f"{job.objective}{points}"),
        *([] if drawn is None else [("reference", _references(analysis))]),
        ("smoothing", job.smoothing.upper()),
        ("angles", "as seen, y down" if job.y_down else "y up; where y grows downwards, as pixels do, give --y-down"),
        ("seed", str(job.seed)),
    ]


def _references(analysis: Analysis) -> str:
    """The law of the reference points; with levels, how many have which, as each is fitted to its own steps."""
    own = list(analysis.fits.values()) or [analysis.main]
    described = [fit.diagnostics["reference"] for fit in own]
    if len(own) == 1:
        return described[0]
    if len({*described}) == 1:
        return f"{described[0]}, for all {len(own)}"
    count = Counter(fit.diagnostics["law"]["reference"] for fit in own)
    return f"{', '.join(f'{name} for {times}' for name, times in count.most_common())}; the first: {described[0]}"


def _notes(analysis: Analysis) -> tuple[str, ...]:
    """Those of the data, of the whole, and of each fit, once."""
    obs = analysis.obs
    own = {f"{analysis.by} {which}: ": fit for which, fit in analysis.fits.items()} or {"": analysis.main}
    fit_notes = [whose + note for whose, fit in own.items() for note in fit.notes if note not in obs.notes]
    failed = [f"No fit for {analysis.by} {level}: {why}" for level, why in analysis.failures.items()]
    return tuple(dict.fromkeys([*obs.notes, *analysis.notes, *fit_notes, *failed]))


def _window_words(job: Job, domain: Domain) -> str:
    unit = "" if job.px_per_degree is None else f", in degrees of {job.px_per_degree:g} pixels"
    if domain.key is not None:
        return f"one for each {domain.key}, from {job.window}: {domain!r}{unit}"
    if isinstance(job.window, str):
        return f"the polygon in {job.window}{unit}"
    x0, x1, y0, y1 = job.window
    return f"x from {x0:g} to {x1:g}, y from {y0:g} to {y1:g}{' pixels' if unit else ''}{unit}"
