"""`unnorm pattern`: from a table of points to intensity, interaction and a report."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.atomic import write_text
from ..errors import EstimationError, InputError, hush
from .config import checked_job, shell_line, whole
from .options import Force, Many, Number, Quiet, Text
from .output import check_target, columns_of, csv_text, whole_folder

if TYPE_CHECKING:
    from ..patterns import Pattern, PatternFit
    from ..patterns.functions import Envelope
    from ..report.figures import Image
    from ..report.interactive import Chart
    from ..report.page import Picture, Section

MARK = "pattern.json"  # a folder with this file is one of ours
MOST_SIMULATIONS, MOST_DUMMIES = 10_000, 100_000_000
MANY = 1000  # points from which they are drawn smaller
MOST_MARKS = 6  # types of points whose intensity the report maps


def pattern(
    data: str,
    /,
    *,
    window: Text = None,
    y: Text = None,
    terms: str = "1",
    map: Many = None,
    covariate: Many = None,
    interaction: Text = None,
    correction: str = "border",
    marks: Text = None,
    replicate: Text = None,
    dummies: Text = None,
    simulations: Number = "39",
    seed: Number = "1",
    outside: str = "error",
    missing: str = "error",
    out: str = "pattern-output",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fit the intensity of a point pattern, Poisson or with an interaction between points, and write a report.

    Args:
        data: a .csv, .tsv (also .gz) or .parquet file with one row for each point.
        window: x from, to, y from, to, as 0,1000,0,500; or a polygon file (.geojson, .wkt).
        y: the two columns of the point, as x,y.
        terms: of the log intensity, as "s(elev) + grad", "s(x, y, k=60)" or 1 for a constant.
        map: a covariate on a grid, as NAME=FILE (.csv, .parquet, .npy); may be given again.
        covariate: a covariate as arithmetic, as NAME=EXPRESSION; may be given again.
        interaction: between points, as "strauss(7)", "geyer(5, sat=2)", "hardcore(2)", "areainteraction(4)".
        correction: border, none, periodic, isotropic or translate.
        marks: the column of the points' types.
        replicate: the column that tells patterns of one experiment apart.
        dummies: dummy points; by default four for each point, and 10,000 at least.
        simulations: of the model, for the envelope of L.
        seed: of everything random.
        outside: error or drop, for points outside the window.
        missing: error or drop, for rows with missing values.
        out: the folder to make.
        force: replace an earlier output there.
        quiet: print nothing but errors.
    """
    from .._base import frames
    from .._base.files import table_file
    from ..patterns.fitting import fit_pattern
    from ..patterns.interactions.reading import read_interaction
    from ..patterns.point_pattern import pattern as make
    from .jobs import covariates
    from .jobs import window as read_window

    table_file(data)  # first: without it no option matters
    target = check_target(out, force, MARK)
    given = {"data": data, "window": window, "y": y, "map": map, "covariate": covariate, "seed": seed}
    job = checked_job({**given, "outside": outside, "missing": missing})
    count = whole("--simulations", simulations, 19, MOST_SIMULATIONS)
    total = None if dummies is None else whole("--dummies", dummies, 1, MOST_DUMMIES)
    domain = read_window(job)
    columns: dict[str, Any] = {"marks": marks, "replicate": replicate, "outside": outside, "missing": missing}
    table = frames.read_table(data, frames.only(y=job.y, marks=marks, replicate=replicate))
    points = make(table, job.y, window=domain, **columns)
    with hush():  # what matters is in the notes, and so in the report
        fit = fit_pattern(
            points, terms, covariates=covariates(job, domain), dummies=total, rng=job.seed,
            correction=correction,  # pyright: ignore[reportArgumentType]
            interaction=None if interaction is None else read_interaction(interaction),
        )  # fmt: skip
        settings = {
            **{name: value for name, value in given.items() if value is not None}, "terms": terms,
            "interaction": interaction, "correction": correction, "marks": marks, "replicate": replicate,
            "dummies": total, "simulations": count, "outside": outside, "missing": missing,
        }  # fmt: skip
        with whole_folder(target, force, MARK) as folder:
            write(fit, folder, settings, count)
    if not quiet:
        print(f"{fit.summary()}\nreport: {target / 'report.html'}")


def write(fit: PatternFit, folder: Path, settings: dict[str, Any], simulations: int) -> None:
    """Tables, summary, settings and the report into a folder."""
    write_text(folder / "parameters.csv", csv_text(columns_of(fit.tidy())))
    at = fit.intensity(64) if fit.poisson else fit.trend(64)
    write_text(folder / "intensity.csv", csv_text(columns_of(at)))
    write_text(folder / "summary.txt", fit.summary() + "\n")
    write_text(folder / MARK, json.dumps(settings, indent=1, ensure_ascii=False) + "\n")
    write_text(folder / "report.html", report_text(fit, settings, simulations))


def report_text(fit: PatternFit, settings: dict[str, Any], simulations: int) -> str:
    """The report as one page."""
    from ..report.html import render
    from ..report.page import Provenance

    points: Pattern = fit.pattern
    model = fit.fitted.model
    facts = [
        ("data", f"{settings['data']}: {points.n:,} points"),
        ("window", f"area {points.area:.6g}"),
        ("log intensity", str(model.terms)),
        ("interaction", "none: a Poisson process" if fit.poisson else repr(model.interaction)),
        ("dummy points", f"{int((~fit.fitted.data).sum()):,}, {fit.fitted.dummies.design}"),
        ("seed", str(settings["seed"])),
    ]
    title, where = (
        f"Point pattern: {Path(settings['data']).name}",
        f"The settings are also in {MARK} beside this report.",
    )
    provenance = Provenance(title, facts, fit.notes, command(settings), where)
    return render(provenance, sections(fit, simulations, int(settings["seed"])))


def command(settings: dict[str, Any]) -> str:
    """The line for the shell that repeats the run."""
    words = ["unnorm", "pattern", str(settings["data"])]
    for name, value in settings.items():
        if name == "data" or value is None:
            continue
        for one in value if isinstance(value, list | tuple) else [value]:
            words += [f"--{name}={one}"] if str(one).startswith("-") else [f"--{name}", str(one)]
    return shell_line(words)


def sections(fit: PatternFit, simulations: int, seed: int) -> list[Section]:
    """Coefficients; maps of intensity and residuals; effects; the envelope."""
    from ..report.figures import draw
    from ..report.interactive import charted
    from ..report.page import Cell, Section, Table, number

    at = fit.parametric
    share = np.sqrt(np.maximum(np.diag(fit.errors.reference), 0.0))
    rows = tuple(
        (Cell(fit.names[k]), number(float(fit.estimate[k]), 4), number(float(fit.se[k]), 4), number(float(share[k]), 4))
        for k in at
    )
    table = Table("Coefficients of the log intensity", ("term", "estimate", "se", "se from dummy points"), rows)
    text = (
        "se is the standard error of an estimate. The last column is the part of it that comes from the dummy points: "
        "more of them make it smaller."
    )
    out = [Section((text,), (), (table,), anchor="coefficients", title="Coefficients")]
    curves = [term.label for term in fit.fitted.gam.smooths if len(term.covariates) == 1]
    if curves:
        pictures = tuple(_effect_picture(fit, label) for label in curves)
        out.append(
            Section(
                ("Effects on the log intensity, summing to zero over the rows.",),
                pictures,
                anchor="effects",
                title="Effects",
            )
        )
    if fit.pattern.replicates == 1:
        out.append(Section((), _maps(fit), anchor="maps", title="Maps"))
        try:
            found = fit.envelope("L", simulations, rng=seed + 1)
        except (InputError, EstimationError) as error:  # nothing can be simulated: the rest of the report stands
            out.append(Section((str(error),), anchor="envelope", title="Interaction"))
            return out
        text = f"L of the data beside {simulations} simulations of the model: p = {found.p:.3g} for the whole curve."
        picture = draw(
            lambda ax: found.plot(ax) and None,
            f"Besag's L of the data, and its envelope in {simulations} simulations; p = {found.p:.3g}.",
            "Besag's L with pointwise and global envelopes",
            (4.8, 3.4),
        )
        picture = charted(picture, _envelope_chart(found))
        out.append(Section((text,), (picture,), anchor="envelope", title="Interaction"))
    return out


def _maps(fit: PatternFit) -> tuple[Picture, ...]:
    """The intensity, for each type of points (the first few), and the residuals."""
    from ..patterns.plots import intensity_cells

    pattern, what = fit.pattern, "intensity" if fit.poisson else "trend"
    pictures = []
    for mark in range(min(pattern.types, MOST_MARKS)):
        cells, points = intensity_cells(fit, mark=mark), pattern.xy[pattern.places.mark == mark]
        whose = "" if pattern.mark_name is None else f" of {pattern.mark_levels[mark]}"
        caption = f"The fitted {what}{whose}, points to a unit of area, and the data"
        pictures.append(_map(fit, what, caption, cells, (0.0, float(np.nanmax(cells[2]))), points))
    left = fit.residuals()
    caption = "Smoothed residuals: red where there are more points than expected"
    pictures.append(_map(fit, "residual", caption, (left.x, left.y, left.z), None, np.zeros((0, 2))))
    return tuple(pictures)


def _map(
    fit: PatternFit, what: str, caption: str, cells: Image, limits: tuple[float, float] | None, points: np.ndarray
) -> Picture:
    from ..report.figures import draw, label_axes, map_size, mesh
    from ..report.interactive import Field, mapped

    first, second = fit.pattern.names

    def paint(ax: Any) -> None:
        mesh(ax, *cells, limits)
        ax.plot(points[:, 0], points[:, 1], ".", ms=2 if len(points) < MANY else 0.8, color="white", alpha=0.7)
        ax.set_aspect("equal")
        label_axes(ax, first, second)

    numbers = Field(what, (first, second), ("", ""), *cells)
    size = map_size(fit.pattern.windows[0])
    return mapped(draw(paint, f"Map of the {what}. {numbers.extremes()}", caption, size), numbers)


def _effect_picture(fit: PatternFit, label: str) -> Picture:
    from ..report.figures import draw
    from ..report.interactive import Chart, charted, curve

    found = columns_of(fit.effect(label))
    name = next(iter(found))
    picture = draw(partial(_effect, found, name, label), f"Effect {label}", f"{label}, with 95 % band")
    if found[name].dtype.kind not in "fiu":
        return picture
    return charted(picture, Chart(name, "effect on log intensity", (curve(label, found, name),)))


def _envelope_chart(found: Envelope) -> Chart:
    """The data's function over the simulations' mean, with both bands."""
    from ..report.interactive import Chart, Curve

    band, outer = (found.lower, found.upper), (found.global_lower, found.global_upper)
    simulated = Curve("mean of simulations", found.r, found.mean, band, outer, "#666666")
    data = Curve("data", found.r, found.observed, colour="#c05621")
    return Chart("r", f"{found.name}(r)", (simulated, data), coverage=f"{100 * found.level:g} %")


def _effect(found: dict[str, np.ndarray], name: str, label: str, ax: Any) -> None:
    x, estimate, lower, upper = (found[one] for one in (name, "estimate", "lower", "upper"))
    if x.dtype.kind in "fiu":
        ax.fill_between(x, lower, upper, color="0.85")
        ax.plot(x, estimate)
    else:  # labels
        ax.errorbar(np.arange(len(x)), estimate, np.stack([estimate - lower, upper - estimate]), fmt="o", ms=3)
        ax.set_xticks(np.arange(len(x)), x.tolist())
    ax.set_xlabel(name)
    ax.set_ylabel(label)
