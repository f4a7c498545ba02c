"""Are the estimated constants normalisers? χ̂ against −log ∫ exp f̂ for every fit, and maps of both for the worst."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...data.placing import commonest
from ...results.constants import worst
from ...results.fit import Fit
from ...results.normaliser_check import Anchoring
from .. import figures
from ..analysis import Analysis
from ..page import Cell, Section, Table, number, p_value

ORDER = 24  # of the rule for each cell of a map, 480 nodes: log Z to about 0.001
MOST_NAMED = 20
UNCHECKED = "the constants were not checked."  # fits that did not converge
WIDTH = 20  # cells across a map: each needs an integral


def section(analysis: Analysis) -> Section:
    if analysis.main.anchored:
        return _anchored(analysis)
    fits = {which: fit for which, fit in analysis.all_fits.items() if analysis.smooths(which).normaliser_labels}
    if not fits:
        return Section(("The normalising constants cancel or are integrated: none are estimated.",))
    worse = worst(fits)
    text: list[str] = []
    tables: tuple[Table, ...] = ()
    if analysis.fits:
        text.append(_failures(analysis, fits))
        tables = (_table(str(analysis.by), fits),)
    whose = f" of {analysis.by} {worse}" if analysis.fits else ""
    text.append(f"Consistency check{whose and f'{whose}, the worst'}: {fits[worse].constants or UNCHECKED}")
    images = _images(analysis, fits[worse])
    if images is None:
        text.append("The normaliser depends on more than the previous point and has no map.")
        return Section(tuple(text), tables=tables)
    text.append(
        f"The maps{whose} show first χ̂, estimated together with the effects; then −log ∫ exp f̂, by quadrature on the "
        "effects alone; then the difference: where it is large, the model or the smoothing fails (places that nobody "
        "looked from are extrapolated)."
    )
    return Section(tuple(text), _maps(analysis, *images), tables)


def _anchored(analysis: Analysis) -> Section:
    """Constants that follow the effects: their rule, δ̂, and whether it is the same at all contexts."""
    own = analysis.fits or {"": analysis.main}
    known = {which: fit.anchoring for which, fit in own.items() if fit.anchoring is not None}
    which = worst({name: own[name] for name in known})
    whose = f" of {analysis.by} {which}, the worst" if analysis.fits else ""
    text = (
        "The constants are computed from the effects: χ̂ = −log ∫ exp f̂ + δ̂.",
        f"Consistency check{whose}: {own[which].constants or UNCHECKED}",
    )
    if not analysis.fits:
        return Section(text)
    rows = [
        (Cell(name), number(one.delta, 3), number(one.se or np.nan, 3), number(one.shift or np.nan, 3), _p(one))
        for name, one in known.items()
    ]
    head = (str(analysis.by), "δ̂", "se", "error of the integrals, in se", "p of a constant δ")
    table = Table("What the constants leave to δ, and how well they are integrated", head, tuple(rows))
    return Section(text, tables=(table,))


def _p(one: Anchoring) -> Cell:
    """The smallest p-value of the columns, times their number."""
    return p_value(one.p if one.tests else np.nan)


def _failures(analysis: Analysis, fits: Mapping[str, Fit]) -> str:
    """For how many levels the check failed, by name."""
    failed = [which for which, one in fits.items() if one.constants_failed]
    begin = f"Each {analysis.by} has constants of its own"
    if not failed:
        return f"{begin}. None of {len(fits)} fails the check of them."
    named = f"{', '.join(failed[:MOST_NAMED])}{', …' if len(failed) > MOST_NAMED else ''}"
    return f"{begin}. Of {len(fits)}, {len(failed)} fail the check of them ({named})."


def _table(by: str, fits: Mapping[str, Fit]) -> Table:
    def row(which: str, fit: Fit) -> tuple[Cell, ...]:
        figures = [number(fit.diagnostics.get(f"constants_{name}", np.nan), 3) for name in ("rms", "largest", "bias")]
        checked = "not checked" if fit.constants is None else "fails" if fit.constants_failed else "passes"
        return (Cell(which), *figures, Cell(checked))

    head = (by, "rms difference", "largest", "can move f̂ by, standard errors", "check")
    title = "χ̂ against −log ∫ exp f̂, on the log scale, as each fit checked them"
    return Table(title, head, tuple(row(which, fit) for which, fit in fits.items()))


def _images(analysis: Analysis, fit: Fit) -> tuple[figures.Image, figures.Image] | None:
    """χ̂ and −log ∫ exp f̂ over the previous point, where they depend on nothing else."""
    obs, part = analysis.obs, fit.smooths
    assert part is not None
    reads = {name for label in part.normaliser_labels for name in part.term(label).covariates}
    if obs.lags > 1 or not reads <= {"x_prev", "y_prev", *(f"{name}_prev" for name in obs.outcome_names)}:
        return None
    region, context = commonest(analysis.model.domain, obs)
    x, y, points, inside = figures.plane(region, WIDTH)
    points = points[inside]
    before = {f"{name}_prev": points[:, j] for j, name in enumerate(obs.outcome_names)}
    grid = obs.take(np.full(len(points), context))
    grid = replace(grid, outcome=points, context={**grid.context, **before})
    check = fit.check_normaliser(len(points), grid, ORDER)
    return figures.surface(x, y, inside, check.chi), figures.surface(x, y, inside, check.integral)


def _maps(analysis: Analysis, chi: figures.Image, integral: figures.Image) -> tuple[figures.Picture, ...]:
    gap = (chi[0], chi[1], chi[2] - integral[2])
    both = np.stack([chi[2], integral[2]])
    limits = (float(np.nanmin(both)), float(np.nanmax(both)))
    pictures = []
    for one, caption, span in (
        (chi, "χ̂(previous point)", limits),
        (integral, "−log ∫ exp f̂(y | previous point) dy", limits),
        (gap, "χ̂ + log ∫ exp f̂", None),
    ):
        z = one[2]
        rms = f", {np.sqrt(np.nanmean(z**2)):.2g} rms" if span is None else ""
        alt = f"Map over the previous point of {caption}: from {np.nanmin(z):.2f} to {np.nanmax(z):.2f}{rms}."
        pictures.append(figures.image(analysis, one, span, alt, caption, caption))
    return tuple(pictures)
