"""`unnorm fit`: from a table of fixations to effects, a loadable fit and a report."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from ..errors import EstimationError, UnnormError, UnnormWarning
from .config import BUNDLED, Job, job, read_config
from .output import MARK, check_target, csv_text, whole_folder
from .progress import Progress

Text = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
Flag = Annotated[bool | None, Parameter(negative="")]
Many = Annotated[list[str] | None, Parameter(negative="", allow_leading_hyphen=True)]


def fit(
    data: str | None = None,
    /,
    *,
    y: Text = None,
    order: Text = None,
    group: Text = None,
    by: Text = None,
    window: Text = None,
    terms: Text = None,
    normaliser: Text = None,
    references: Text = None,
    objective: Text = None,
    points: Text = None,
    smoothing: Text = None,
    seed: Text = None,
    level: Text = None,
    lags: Text = None,
    max_gap: Text = None,
    map: Many = None,
    covariate: Many = None,
    centre: Text = None,
    drop_first: Flag = None,
    y_down: Flag = None,
    outside: Text = None,
    missing: Text = None,
    config: str | None = None,
    out: str = "results",
    force: Annotated[bool, Parameter(negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> None:
    """Fit a spatial Markov chain to a table of fixations or steps, and write effects, fits and a report.

    Args:
        data: a .csv, .tsv (also .gz) or .parquet file with one row for each point.
        y: the two columns of the point, as x,y.
        order: the column that orders each sequence; a step of an integer other than 1 breaks it.
        group: the columns that tell sequences apart, as subject,image.
        by: one of them: separate functions for each of its levels, and the group's.
        window: x from, to, y from, to, as 0,800,0,600; or a polygon file (.geojson, .wkt).
        terms: the effects, as "s(step, k=10) + s(dcenter, k=40) + s(angle, bs='cc', k=20)".
        normaliser: the terms of the normalising constants, as "s(x_prev, y_prev, k=40)".
        references: reference points for each observed one.
        objective: logistic, ranking or poisson.
        points: how reference points are drawn: lattice, iid, stratified or sobol.
        smoothing: reml, ml, gcv (ubre) or cv.
        seed: of everything random.
        level: of the bands.
        lags: 2 for turning angles (turn).
        max_gap: the largest step of --order within a sequence, where it holds times.
        map: a covariate on a grid, as NAME=FILE (.csv, .parquet, .npy); may be given again.
        covariate: a covariate as arithmetic, as NAME=EXPRESSION; may be given again.
        centre: the point that dcenter is measured from, as 400,300; by default the window's centre.
        drop_first: remove each sequence's first point before pairs are formed.
        y_down: y grows downwards, as pixels do.
        outside: error or drop, for points outside the window.
        missing: error or drop, for rows with missing values.
        config: a TOML file with any of these settings; options given here win.
        out: the folder to make.
        force: replace an earlier output there.
        quiet: print nothing but errors.
    """
    given = {
        "data": data, "y": y, "order": order, "group": group, "by": by, "window": window, "terms": terms,
        "normaliser": normaliser, "references": references, "objective": objective, "points": points,
        "smoothing": smoothing, "seed": seed, "level": level, "lags": lags, "max_gap": max_gap, "map": map,
        "covariate": covariate, "centre": centre, "drop_first": drop_first, "y_down": y_down, "outside": outside,
        "missing": missing,
    }  # fmt: skip
    target = check_target(out, force)
    settings: dict[str, Any] = {}
    if config is not None:
        settings = {name.replace("-", "_"): value for name, value in read_config(config).items()}
        job({"data": "-", "window": [0, 1, 0, 1], **settings}, source=config)  # says which setting of the file is wrong
    made = job({**settings, **{name: value for name, value in given.items() if value is not None}})
    run_job(made, target, quiet)


def run_job(job: Job, target: Path, quiet: bool) -> None:
    """Everything from the job to the output folder."""
    with Progress(10, quiet) as progress:
        done = fitted(job, progress)
        with whole_folder(target) as folder:
            write(done, folder, progress)
    if not quiet:
        print(done.closing(target))


@dataclass(frozen=True)
class Done:
    """A job that has been fitted."""

    parts: Any
    run: Any

    def closing(self, target: Path) -> str:
        run, obs = self.run, self.parts.obs
        levels = f", {len(run.fits)} levels of {run.by}" if run.fits else ""
        lines = [f"{obs.n:,} transitions{levels}; effects {', '.join(run.labels)}"]
        lines += [f"no fit for {run.by} {level}: {why}" for level, why in run.failures.items()]
        lines.append(f"report: {target / 'report.html'}")
        return "\n".join(lines)


def fitted(job: Job, progress: Progress) -> Done:
    """Read, build and fit. Warnings are not printed: what matters is in the fits' notes, and so in the report."""
    from ..report import grouped, pooled
    from ..results import fitting
    from .jobs import prepare

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)
        with progress.step("reading"):
            parts = prepare(job)
        with progress.step("fitting"):
            options: dict[str, Any] = {
                "objective": parts.objective,
                "normaliser": parts.normaliser,
                "smoothing": job.smoothing,
                "rng": job.seed,
                "outside": job.outside,
            }
            if job.by is None:
                one = fitting.fit(parts.model, parts.obs, **options)
                run = pooled(one, parts.model, one.obs or parts.obs, job.level)
            else:
                from ..groups import fit_each

                each = fit_each(parts.model, parts.obs, job.by, **options)
                if not each.fits:
                    why = next(iter(each.failures.values()), "no level could be fitted")
                    raise EstimationError(f"None of the levels of {job.by!r} could be fitted; the first says: {why}")
                run = grouped(each, parts.model, inside(parts, job), job.level)
    return Done(parts, run)


def inside(parts: Any, job: Job) -> Any:
    from ..results.fitting import keep_inside

    return keep_inside(parts.model.domain, parts.obs, job.outside)[0]  # pyright: ignore[reportArgumentType]


def write(done: Done, folder: Path, progress: Progress) -> None:
    """All output files into a folder."""
    from .._base.blas import single_threaded
    from ..report import effects_table, parameters_table

    with progress.step("tables"), single_threaded():
        run, job = done.run, done.parts.job
        (folder / "effects.csv").write_text(csv_text(effects_table(run)), encoding="utf-8")
        (folder / "parameters.csv").write_text(csv_text(parameters_table(run)), encoding="utf-8")
        (folder / "summary.txt").write_text(run.summary + "\n", encoding="utf-8")
        (folder / MARK).write_text(job.toml(), encoding="utf-8")
    (folder / "report.html").write_text(report_text(done, progress), encoding="utf-8")
    run.save(str(folder / "fit"))  # last, so that what the report asked is kept, and `unnorm report` can say it again


def report_text(done: Done, progress: Progress) -> str:
    """The report of a fitted job."""
    from .._base.blas import single_threaded
    from ..report import render, sections
    from .held_out import held_out_bits

    with progress.step("held-out bits"), warnings.catch_warnings(), single_threaded():
        warnings.simplefilter("ignore", UnnormWarning)
        try:
            bits, how = held_out_bits(done.parts, done.run)
        except UnnormError as error:
            bits, how = {}, f"Held-out bits could not be computed: {error}"
    about = about_job(done, bits, how)
    with warnings.catch_warnings(), single_threaded():
        warnings.simplefilter("ignore", UnnormWarning)
        made = sections(done.run, about, progress.step)
    return render(about, made)


def _window_words(window: tuple[float, ...] | str) -> str:
    if isinstance(window, str):
        return f"the polygon in {window}"
    x0, x1, y0, y1 = window
    return f"x from {x0:g} to {x1:g}, y from {y0:g} to {y1:g}"


def about_job(done: Done, bits: dict[str, float], how: str) -> Any:
    """What the report says of the job itself."""
    from ..report import About

    parts, run = done.parts, done.run
    job, obs = parts.job, run.obs
    sequences = len(np.unique(obs.sequence)) if obs.sequence is not None else 1
    name = "the simulated scanpaths that come with unnorm" if job.data == BUNDLED else job.data
    facts = [
        ("data", f"{name}: {parts.rows:,} rows, {obs.n:,} transitions in {sequences:,} sequences"),
        ("window", _window_words(job.window)),
        ("effects, f", job.terms),
    ]
    if run.by is not None:
        facts.append(("separately for", f"each {run.by}: {len(run.fits)} levels"))
    if parts.normaliser is not None:
        facts.append(("normaliser, χ", job.normaliser))
    facts += [(f"covariate {text.partition('=')[0]}", text.partition("=")[2]) for text in (*job.map, *job.covariate)]
    points = (
        f", {job.references} reference points for each ({job.points or 'lattice'})"
        if job.objective == "logistic"
        else ""
    )
    points = f", {job.references} independent reference points for each" if job.objective == "ranking" else points
    facts += [
        ("objective", f"{job.objective}{points}"),
        ("smoothing", job.smoothing.upper()),
        ("angles", "as seen, y down" if job.y_down else "y up"),
        ("seed", str(job.seed)),
    ]
    own = {None: run.main} if not run.fits else run.fits
    fit_notes = [
        note if which is None else f"{run.by} {which}: {note}"
        for which, one in own.items()
        for note in one.notes
        if note not in obs.notes
    ]
    failed = [f"No fit for {run.by} {level}: {why}" for level, why in run.failures.items()]
    notes = dict.fromkeys([*obs.notes, *run.notes, *fit_notes, *failed])
    title = f"Spatial Markov chain: {name if job.data == BUNDLED else Path(job.data).name}"
    return About(title, tuple(facts), tuple(notes), job.command(), job.seed, bits, how)
