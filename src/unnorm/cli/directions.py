"""`unnorm directions`: from a table of angles, axes or directions to a named family's parameters and a picture."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._base.atomic import whole_file, write_text
from ..errors import InputError, hush, listing, unknown
from .config import numbers, shell_line
from .options import Flag, Force, Quiet, Text
from .output import check_target, columns_of, csv_text, whole_folder

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..directions import DirectionFit

MARK = "directions.json"  # a folder with this file is one of ours


def directions(
    data: str,
    /,
    *,
    y: Text = None,
    unit: Text = None,
    family: str = "vonmises",
    axes: Flag = None,
    x: Text = None,
    dispersion: Text = None,
    order: Text = None,
    group: Text = None,
    level: Text = None,
    missing: str = "error",
    out: str = "directions-output",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fit a named family of directions, and write its parameters, a picture and the fit.

    Args:
        data: a .csv, .tsv (also .gz) or .parquet file with one row for each direction.
        y: the column of angles; two columns with --unit lonlat or for two angles; three of a unit vector.
        unit: radians, degrees, bearings (clockwise from north), hours or lonlat (longitude,latitude in
            degrees; lonlat_radians in radians).
        family: vonmises, wrappednormal, wrappedcauchy, generalisedvonmises(1,2), vonmisesfisher, kent, watson, bingham,
            fisherbingham, bivariatevonmises(sine), regression (with --x) or chain (with --order and --group).
        axes: the data are axes, which have no head: angles count modulo half a turn.
        x: the covariates of a regression, as wind,night.
        dispersion: covariates on which its log kappa depends.
        order: the column that orders a chain.
        group: the columns that tell chains apart, as bird,day.
        level: of the intervals, 0.95 unless given.
        missing: error or drop, for rows with missing values.
        out: the folder to make.
        force: replace an earlier output there.
        quiet: print nothing but errors.
    """
    from .._base.files import table_file
    from ..data.units import unit_of
    from ..directions.fitting import fit_direction
    from ..directions.reading import read_family

    table_file(data)  # first: without it no option matters
    target = check_target(out, force, MARK)
    if y is None:
        raise InputError("--y is needed: the column of angles, as --y bearing, or --y lon,lat with --unit lonlat.")
    if missing not in ("error", "drop"):
        raise InputError(unknown("--missing", missing, ("error", "drop")))
    columns = {name: _names(f"--{name}", text) for name, text in (("y", y), ("x", x), ("dispersion", dispersion))}
    share = _level(level)
    in_space = (unit is not None and unit_of(unit).places) or len(columns["y"]) == 3
    law = read_family(family, axes=bool(axes), space=in_space, x=columns["x"], dispersion=columns["dispersion"])
    covariates = tuple(dict.fromkeys(columns["x"] + columns["dispersion"]))
    obs = observations(law.kind, data, columns["y"], covariates, order, _names("--group", group), unit, missing)
    with hush():  # what matters is in the notes
        fit = fit_direction(law, obs)
    settings = {
        "data": data, "y": y, "unit": unit, "family": family, "axes": bool(axes), "x": x, "dispersion": dispersion,
        "order": order, "group": group, "level": share, "missing": missing,
    }  # fmt: skip
    with whole_folder(target, force, MARK) as folder:
        write(fit, folder, settings)
    if not quiet:
        print(f"{fit.summary(share)}\npicture: {target / 'picture.png'}")


def observations(
    kind: str,
    data: str,
    y: tuple[str, ...],
    x: tuple[str, ...],
    order: str | None,
    group: tuple[str, ...],
    unit: str | None,
    missing: str,
) -> Observations:
    """The observations that a family of this kind takes."""
    from .._base import frames
    from ..data.observations import conditional, iid, transitions

    table = frames.read_table(data)
    common: dict[str, Any] = {"unit": unit, "missing": missing}
    outcome = y[0] if len(y) == 1 else y
    if kind != "transitions" and (order is not None or group):
        raise InputError("--order and --group are of chains: --family chain.")
    if kind == "transitions":
        return transitions(table, outcome, order=order, group=group or None, **common)
    return conditional(table, outcome, x, **common) if kind == "conditional" else iid(table, outcome, **common)


def _names(what: str, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    found = tuple(part.strip() for part in text.split(","))
    if not all(found):
        raise InputError(f"{what} has an empty name; got {text!r}.")
    if len(set(found)) < len(found):
        raise InputError(f"{what} must name different columns; got {listing(found)}.")
    return found


def _level(text: str | None) -> float:
    value = numbers("--level", "0.95" if text is None else text)
    if len(value) != 1 or not 0.0 < value[0] < 1.0:
        raise InputError(f"--level must lie between 0 and 1, as 0.95; got {text!r}.")
    return value[0]


def write(fit: DirectionFit, folder: Path, settings: dict[str, Any]) -> None:
    """Table, summary, picture and the fit into a folder."""
    level = settings["level"]
    write_text(folder / "parameters.csv", csv_text(columns_of(fit.tidy(level))))
    write_text(folder / "summary.txt", fit.summary(level) + "\n")
    found = {
        "settings": settings, "command": command(settings), "n": fit.fit.n, "unit": fit.unit.name,
        "parameters": {row.name: _row(row) for row in fit.rows(level)},
        "log_likelihood": _finite(fit.fit.loglik), "aic": _finite(fit.fit.aic), "notes": list(fit.notes),
    }  # fmt: skip
    text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(folder / MARK, text + "\n")
    _picture(fit, folder / "picture.png")
    fit.save(folder / "fit")


def _row(row: Any) -> dict[str, Any]:
    numbers = {name: _finite(getattr(row, name)) for name in ("estimate", "se", "lower", "upper")}
    return numbers | ({"note": row.note} if row.note else {})


def _finite(value: float) -> float | None:
    """JSON has no NaN."""
    return float(value) if math.isfinite(value) else None


def _picture(fit: DirectionFit, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from ..directions.plots import projection

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    fit.plot(figure.add_subplot(projection=projection(fit)))
    with whole_file(path) as scratch:
        figure.savefig(scratch, dpi=150, format="png")


def command(settings: dict[str, Any]) -> str:
    """The line for the shell that repeats the run."""
    words = ["unnorm", "directions", str(settings["data"])]
    for name, value in settings.items():
        if name == "data" or value is None or value is False:
            continue
        text = str(value)
        words += (
            [f"--{name}"] if value is True else [f"--{name}={text}"] if text.startswith("-") else [f"--{name}", text]
        )
    return shell_line(words)
