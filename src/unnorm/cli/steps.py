"""`unnorm steps`: from a table of fixes to selection, movement kernel, utilisation and a report."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._base.atomic import write_text
from ..errors import EstimationError, InputError, hush
from .config import shell_line, whole
from .directions import _level, _names
from .options import Flag, Force, Many, Number, Quiet, Text
from .output import check_target, columns_of, csv_text, whole_folder

if TYPE_CHECKING:
    from ..data.covariates import Covariate, Map
    from ..references.laws import Law
    from ..report.page import Provenance
    from ..steps.result import StepFit
    from ..steps.tracks import Track

MARK = "steps.json"  # a folder with this file is one of ours
MOST_POINTS = 100_000
UNKEPT = ("figures", "json", "out", "force", "quiet")  # options that change nothing of what is computed


# long: the options of the command
def steps(
    data: str,
    /,
    *,
    terms: Text = None,
    time: str = "time",
    x: str = "x",
    y: str = "y",
    animal: Text = None,
    burst: Text = None,
    columns: Text = None,
    crs: Text = None,
    to: Text = None,
    unit: Text = None,
    max_gap: Text = None,
    rate: Text = None,
    tolerance: Text = None,
    repeated: str = "error",
    order: str = "error",
    zero_steps: str = "error",
    missing: str = "error",
    map: Many = None,
    covariate: Many = None,
    step: str = "gamma",
    turn: str = "vonmises",
    integrated: Flag = None,
    objective: str = "ranking",
    references: Number = "20",
    cluster: Text = None,
    at: Text = None,
    cell: Text = None,
    rows: Flag = None,
    figures: Text = None,
    json: Flag = None,
    level: Text = None,
    seed: Number = "1",
    out: str = "steps-output",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fit a step selection model to a track, and write coefficients, the movement kernel, maps and a report.

    Args:
        data: a .csv, .tsv (also .gz) or .parquet file with one row for each fix.
        terms: of the selection, as "forest", "forest + forest:night" or "s(elevation)"; maps by their name at the end
            of the step, and with _start at its start.
        time: the column of times.
        x: the column of eastings.
        y: the column of northings.
        animal: the column that tells animals apart.
        burst: the column that tells bursts apart.
        columns: other columns that terms read, as night,snow.
        crs: the coordinate system of x and y, as EPSG:4326, to project them.
        to: the system to project to; by default one centred on the track.
        unit: metres, to say that coordinates which look like degrees are metres.
        max_gap: the longest time within a burst, as 7h.
        rate: resample to one fix every so often, as 6h.
        tolerance: of --rate, as 20min.
        repeated: error, first or mean, for fixes at one time.
        order: error or sort, for times that run backwards.
        zero_steps: error or join, for steps of length zero.
        missing: error or drop, for rows with missing values.
        map: a covariate on a grid, as NAME=FILE (.csv, .parquet, .npy); may be given again.
        covariate: a covariate as arithmetic, as NAME=EXPRESSION; may be given again.
        step: law of step lengths: gamma, exponential, weibull, lognormal or halfnormal.
        turn: law of turns: vonmises or uniform.
        integrated: add the kernel's own statistics to the terms, and report the updated movement kernel.
        objective: ranking (conditional logistic regression) or logistic.
        references: available steps for each observed one.
        cluster: a column (animal, burst) whose levels are independent, for robust errors.
        at: values of other columns for the map of utilisation and simulated tracks, as night=0,snow=10.
        cell: side of the cells of the map of utilisation.
        rows: write rows.csv, the case-control table.
        figures: formats of the report's figures as files beside it, as svg or svg,pdf (png too).
        json: print parameters, settings and notes as JSON.
        level: of the intervals, 0.95 unless given.
        seed: of everything random.
        out: the folder to make.
        force: replace an earlier output there.
        quiet: print nothing but errors.
    """
    given = {name: value for name, value in locals().items() if name not in UNKEPT}
    from .._base.files import table_file
    from .extras import read_formats

    table_file(data)  # first: without it no option matters
    formats, as_json = read_formats(figures), bool(json)
    target = check_target(out, force, MARK)
    if terms is None:
        raise InputError('--terms is needed: what the steps select, as --map forest=grid.csv --terms "forest".')
    share, count = _level(level), whole("--references", references, 1, MOST_POINTS)
    track = read_track(data, given)
    maps = _maps(track, map or [])
    with hush():  # what matters is in the notes, and so in the report
        fit = _fitted(track, given, maps, count)
        with whole_folder(target, force, MARK) as folder:
            write(fit, track, folder, given, share, formats)
    if not quiet:
        told = (target / MARK).read_text(encoding="utf-8").rstrip() if as_json else fit.summary()
        print(told if as_json else f"{told}\nreport: {target / 'report.html'}")


def read_track(data: str, given: dict[str, Any]) -> Track:
    """The track, resampled where that is asked for."""
    from .._base import frames
    from ..steps.tracks import track

    named = {name: given[name] for name in ("time", "x", "y", "animal", "burst")}
    more = _names("--columns", given["columns"])
    table = frames.read_table(data, frames.only(**named, columns=more))
    options = {
        name: given[name] for name in ("crs", "to", "unit", "max_gap", "repeated", "order", "zero_steps", "missing")
    }
    if (given["rate"] is None) != (given["tolerance"] is None):
        raise InputError("--rate and --tolerance go together, as --rate 6h --tolerance 20min.")
    made = track(table, **named, columns=more, **options)
    return made if given["rate"] is None else made.resample(given["rate"], given["tolerance"])


def _maps(track: Track, given: list[str]) -> tuple[Map, ...]:
    from ..domains import Box
    from .maps import read_map

    around = Box(
        (float(track.x.min()) - 1, float(track.x.max()) + 1), (float(track.y.min()) - 1, float(track.y.max()) + 1)
    )
    return tuple(read_map(text, around, ("animal",) if track.named else ()) for text in given)


def _fitted(track: Track, given: dict[str, Any], maps: tuple[Map, ...], count: int) -> StepFit:
    from ..references.step_kernel import StepKernel
    from ..steps.fitting import fit_steps

    cluster = _names("--cluster", given["cluster"])
    return fit_steps(
        track,
        given["terms"],
        maps=maps,
        covariates=_expressions(given["covariate"] or []),
        kernel=StepKernel(given["step"], given["turn"]),
        integrated=bool(given["integrated"]),
        objective=given["objective"],
        per_point=count,
        cluster=cluster or None,
        rng=whole("--seed", given["seed"], 0, 2**63 - 1),
    )


def _expressions(given: list[str]) -> tuple[Covariate, ...]:
    from ..data.covariates.expressions import Expression

    made = []
    for text in given:
        name, mark, expression = text.partition("=")
        if not mark or not name.strip() or not expression.strip():
            raise InputError(f"--covariate must be NAME=EXPRESSION, as far=hypot(x, y); got {text!r}.")
        made.append(Expression(name.strip(), expression.strip()))
    return tuple(made)


def _at(text: str | None) -> dict[str, float] | None:
    """--at night=0,snow=10."""
    if text is None:
        return None
    out: dict[str, float] = {}
    for part in text.split(","):
        name, mark, value = part.partition("=")
        try:
            out[name.strip()] = float(value)
        except ValueError:
            mark = ""
        if not mark or not name.strip():
            raise InputError(f"--at must be NAME=NUMBER, with commas between, as night=0,snow=10; got {text!r}.")
    return out


def write(
    fit: StepFit, track: Track, folder: Path, given: dict[str, Any], level: float, formats: tuple[str, ...] = ()
) -> None:
    """Tables, summary, settings, the fit, the report and its figures into a folder."""
    from ..report.figures import wanted
    from ..report.html import render
    from ..report.steps import step_sections
    from ..steps.movement import movement_columns
    from .config import numbers
    from .extras import write_figures

    at = _at(given["at"])
    cell = None if given["cell"] is None else numbers("--cell", given["cell"])[0]
    write_text(folder / "parameters.csv", csv_text(columns_of(fit.tidy(level))))
    with suppress(InputError):  # f may be a curve in the step: the report says so
        write_text(folder / "movement.csv", csv_text(movement_columns(fit.fit, at, level)))
    try:
        found = fit.utilisation(cell, at=at)
        write_text(folder / "utilisation.csv", csv_text(columns_of(found.tidy())))
    except (InputError, EstimationError) as error:
        found = str(error)
    if given["rows"]:
        write_text(folder / "rows.csv", csv_text(columns_of(fit.rows())))
    write_text(folder / "summary.txt", fit.summary() + "\n")
    settings = {name: value for name, value in given.items() if value is not None}
    about = {"settings": settings, "command": command(settings), "notes": list(fit.fit.notes)}
    about["parameters"] = dict(zip(fit.fit.names, fit.fit.estimate.tolist()))
    write_text(folder / MARK, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    with wanted(formats):
        sections = step_sections(fit, track, level, found, at, int(settings["seed"]))
    write_text(folder / "report.html", render(provenance(fit, track, settings), sections))
    write_figures(folder, sections)
    fit.save(folder / "fit")


def provenance(fit: StepFit, track: Track, settings: dict[str, Any]) -> Provenance:
    """What was fitted to what."""
    from ..report.page import Provenance

    kernel = fit.kernel
    facts = [
        ("data", f"{settings['data']}: {track.n:,} fixes, {fit.fit.n_rows:,} steps with a turn"),
        ("selection", str(settings["terms"])),
        ("kernel", f"{_law(kernel.step)} steps; {_law(kernel.turn)} turns"),
        ("available steps", f"{settings['references']} for each, by {settings['objective']}"),
        ("seed", str(settings["seed"])),
    ]
    title = f"Step selection: {Path(settings['data']).name}"
    return Provenance(
        title, facts, fit.fit.notes, command(settings), f"The settings are also in {MARK} beside this report."
    )


def _law(law: Law) -> str:
    """In words: von Mises (mean 0, kappa 0.5)."""
    told = law.to_dict()
    figures = ", ".join(f"{what} {value:.3g}" for what, value in told.items() if isinstance(value, int | float))
    return law.called + (f" ({figures})" if figures else "")


def command(settings: dict[str, Any]) -> str:
    """The line for the shell that repeats the run."""
    words = ["unnorm", "steps", str(settings["data"])]
    for name, value in settings.items():
        if name == "data" or value is None or value is False:
            continue
        option = f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, list | tuple) else [value]:
            words += (
                [option] if one is True else [f"{option}={one}"] if str(one).startswith("-") else [option, str(one)]
            )
    return shell_line(words)
