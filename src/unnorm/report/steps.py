"""The sections of the report on step selection: track, coefficients, movement, strength, calibration, maps."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._base import frames
from ..errors import EstimationError, InputError
from ..steps.calibration import Calibration
from ..steps.movement import movement_columns
from ..steps.plots import calibration as paint_calibration
from ..steps.plots import coordinates, step_law
from ..steps.plots import utilisation as paint_utilisation
from ..steps.result import StepFit
from ..steps.tracks import Track
from ..steps.utilisation import DOUBTFUL, Utilisation
from .figures import BLUE, GREY, ORANGE, draw, label_axes
from .interactive import Chart, Curve, Field, charted, curve, mapped
from .page import Cell, Picture, Section, Table, number

MOST_TRACKS = 3  # simulated ones that are drawn


def step_sections(
    fit: StepFit, track: Track, level: float, found: Utilisation | str, at: dict[str, Any] | None, seed: int
) -> list[Section]:
    """All sections; `found`: the map of utilisation, or why there is none."""
    made = [
        _track(track, fit),
        _coefficients(fit, level),
        _movement(fit, level, at),
        *_strength(fit, level),
        *_calibration(fit, level, seed),
        _utilisation(found),
        _simulated(fit, track, at, seed),
    ]
    return [one for one in made if one is not None]


def _track(track: Track, fit: StepFit) -> Section:
    grid = next(iter(fit.maps[0].grids.values())) if fit.maps else None

    def paint(ax: Any) -> None:
        if grid is not None:
            ax.pcolormesh(grid.x, grid.y, grid.z, cmap="Greens", shading="nearest", alpha=0.6, rasterized=True)
        for one in np.unique(track.burst):
            here = track.burst == one
            ax.plot(track.x[here], track.y[here], color=BLUE, lw=0.6)
        label_axes(ax, *_axes(track))
        coordinates(ax)

    over = f" over {fit.maps[0].name}" if fit.maps else ""
    picture = draw(paint, f"The track of {track.n:,} fixes{over}.", f"The track{over}", (4.6, 3.8))
    return Section((*track.describe().splitlines(),), (picture,), anchor="track", title="Track")


def _coefficients(fit: StepFit, level: float) -> Section:
    columns = _columns(fit.tidy(level))
    rows = tuple(
        (Cell(str(term)), *(_figures(v) for v in (b, se, low, high)), _figures(float(np.exp(b))))
        for term, b, se, low, high in zip(*(columns[n] for n in ("term", "estimate", "se", "lower", "upper")))
    )
    text = (
        "f is the log of how much likelier a step becomes, given that the kernel offers it; exp(estimate) is the "
        "relative selection strength of one unit more."
    )
    head = ("term", "estimate", "se", "lower", "upper", "exp(estimate)")
    table = Table(f"Coefficients of f, with {100 * level:g} % intervals", head, rows)
    part = fit.fit.smooths
    curves = [] if part is None else [one for one in part.model_labels if not part.term(one).parametric]
    single = [label for label in curves if part is not None and len(part.term(label).covariates) == 1]
    pictures = tuple(_effect_picture(fit, label) for label in single)
    return Section((text,), pictures, (table,) if rows else (), anchor="coefficients", title="Selection")


def _effect_picture(fit: StepFit, label: str) -> Picture:
    columns = _columns(fit.fit.effect(label))
    name = next(iter(columns))
    picture = draw(partial(_effect, columns, name, label), label, label)
    if columns[name].dtype.kind not in "fi":
        return picture
    return charted(picture, Chart(name, "effect on log density", (curve(label, columns, name),)))


def _effect(columns: dict[str, np.ndarray], name: str, label: str, ax: Any) -> None:
    ax.fill_between(columns[name], columns["lower"], columns["upper"], color=BLUE, alpha=0.25, lw=0)
    ax.plot(columns[name], columns["estimate"], color=BLUE)
    label_axes(ax, name, label)


def _movement(fit: StepFit, level: float, at: Any) -> Section:
    assert fit.fit.obs is not None
    lengths = np.hypot(*(fit.fit.obs.outcome - fit.fit.obs.previous()).T)
    new, tables = None, ()
    try:
        found = movement_columns(fit.fit, at, level)
    except InputError as error:
        text = str(error)
    else:
        new = fit.updated_kernel(at).step
        names = ("part", "law", "parameter", "tentative", "estimate", "se", "lower", "upper")
        rows = tuple(
            tuple(Cell(str(value)) if i < 3 else _figures(float(value)) for i, value in enumerate(row))
            for row in zip(*(found[name] for name in names))
        )
        tables = (Table("The movement kernel: fitted to the steps (tentative), and updated by f", names, rows),)
        text = (
            "The updated kernel is that of movement in a uniform landscape: the tentative one, tilted by f's own terms."
        )
    kernel = fit.kernel.step
    picture = draw(
        lambda ax: step_law(lengths, kernel, None if new == kernel else new, ax) and None,
        f"Histogram of the observed step lengths, median {np.median(lengths):.4g}, and the density of the kernel.",
        "Observed step lengths and the kernel",
    )  # fmt: skip
    return Section((text,), (picture,), tables, anchor="movement", title="Movement")


def _strength(fit: StepFit, level: float) -> list[Section]:
    """Relative selection strength along each numeric covariate of habitat, against its median."""
    part, obs, model = fit.fit.smooths, fit.fit.obs, fit.fit.model
    assert part is not None
    assert obs is not None
    assert model is not None
    own = {one.name for one in fit.maps}
    names = [n for n in dict.fromkeys(c for lab in part.model_labels for c in part.term(lab).covariates) if n in own]
    pictures = []
    for name in names:
        values = model.covariates(obs).values(name, obs)[name]
        at = np.linspace(float(np.quantile(values, 0.02)), float(np.quantile(values, 0.98)), 60)
        if at[0] == at[-1]:
            continue
        columns = _columns(fit.contrast({name: at}, {name: float(np.median(values))}, level))

        def paint(ax: Any, name: str = name, at: np.ndarray = at, columns: Any = columns) -> None:
            ax.fill_between(at, columns["rss_lower"], columns["rss_upper"], color=BLUE, alpha=0.25, lw=0)
            ax.plot(at, columns["rss"], color=BLUE)
            ax.axhline(1.0, color=GREY, lw=0.7)
            label_axes(ax, name, "relative selection strength")

        alt = f"Relative selection strength along {name}, from {columns['rss'][0]:.3g} to {columns['rss'][-1]:.3g}."
        picture = draw(paint, alt, f"How many times likelier than at the median of {name}")
        strength = Curve(name, at, columns["rss"], (columns["rss_lower"], columns["rss_upper"]))
        chart = Chart(name, "relative selection strength", (strength,), coverage=f"{100 * level:g} %")
        pictures.append(charted(picture, chart))
    text = "Other covariates are held at their medians."
    return [Section((text,), tuple(pictures), anchor="strength", title="Selection strength")] if pictures else []


def _calibration(fit: StepFit, level: float, seed: int) -> list[Section]:
    pictures, texts = [], []
    for one in fit.maps:
        found = fit.calibration(one.name, level=level, rng=seed)
        texts.append(
            f"{one.name}: the share of observed steps lies in the model's band in {100 * found.inside:.0f} % of bins."
        )
        caption = f"{one.name} at the end of observed steps, of available ones, and what the model would use"
        picture = draw(lambda ax, found=found: paint_calibration(found, ax) and None, texts[-1], caption)
        pictures.append(charted(picture, _calibration_chart(found, level)))
    return [Section(tuple(texts), tuple(pictures), anchor="calibration", title="Calibration")] if pictures else []


def _calibration_chart(found: Calibration, level: float) -> Chart:
    """Shares of steps in each bin: observed ones, what the model would use, what was available."""
    middle = 0.5 * (found.edges[:-1] + found.edges[1:])
    curves = (
        Curve("the model (middle of its band)", middle, 0.5 * (found.lower + found.upper), (found.lower, found.upper)),
        Curve("used", middle, found.used, colour=ORANGE),
        Curve("available", middle, found.available, colour=GREY),
    )
    return Chart(found.name, "share of steps", curves, coverage=f"{100 * level:g} %")


def _utilisation(found: Utilisation | str) -> Section:
    if isinstance(found, str):
        return Section((found,), anchor="utilisation", title="Utilisation")
    text = (
        "The share of time that an animal spends in each cell when it moves by the fitted model for long: the "
        f"stationary law of its steps, off by about {found.error:.2g} in total variation (from cells twice as wide)."
        + (" That is much: take smaller cells (--cell)." if found.error > DOUBTFUL else "")
    )
    shown = np.where(found.probability > 0.0, found.probability, np.nan)
    numbers = Field("share of time", ("x", "y"), ("", ""), found.x, found.y, shown)
    picture = draw(
        lambda ax: paint_utilisation(found, ax) and None,
        f"Map of the share of time in each cell. {numbers.extremes()}", "Steady-state utilisation", (4.8, 3.8),
    )  # fmt: skip
    picture = mapped(picture, numbers)
    return Section((text,), (picture,), anchor="utilisation", title="Utilisation")


def _simulated(fit: StepFit, track: Track, at: Any, seed: int) -> Section:
    """A few tracks of the model beside the observed one, and their steps in figures."""
    n = int(min(np.bincount(track.burst).max(), 300))
    try:
        table = _columns(fit.simulate(n, chains=MOST_TRACKS, x=at, rng=seed))
    except (InputError, EstimationError) as error:
        return Section((str(error),), anchor="simulated", title="Simulated tracks")
    x, y = (table[name].reshape(MOST_TRACKS, -1) for name in fit.fit.settings["observations"]["outcome_names"])

    def paint(ax: Any) -> None:
        for one in range(MOST_TRACKS):
            ax.plot(x[one], y[one], lw=0.6)
        label_axes(ax, *_axes(track))
        coordinates(ax)

    observed = np.asarray(_columns(track.steps())["step"])
    ours = np.hypot(np.diff(x), np.diff(y))[:, 1:].ravel()
    levels = (0.25, 0.5, 0.75, 0.95)
    rows = tuple(
        (Cell(f"{100 * q:.0f} %"), number(float(np.quantile(observed, q)), 1), number(float(np.quantile(ours, q)), 1))
        for q in levels
    )
    table = Table("Quantiles of the step length", ("quantile", "observed", "simulated"), rows)
    picture = draw(
        paint, f"{MOST_TRACKS} simulated tracks.", f"{MOST_TRACKS} simulated tracks of {n} steps", (4.4, 3.6)
    )
    return Section((), (picture,), (table,), anchor="simulated", title="Simulated tracks")


def _axes(track: Track) -> tuple[str, str]:
    """Names of the axes, with the unit where it is known."""
    unit = f" ({track.unit})" if track.unit else ""
    return f"x{unit}", f"y{unit}"


def _figures(value: float) -> Cell:
    """A number to four figures: a slope for each metre has many zeros."""
    return Cell("–") if value != value else Cell(f"{value:.4g}", float(value))


def _columns(given: Any) -> dict[str, np.ndarray]:
    table = frames.table(given)
    return {name: table.read(name).take(slice(None)) for name in table.names}
