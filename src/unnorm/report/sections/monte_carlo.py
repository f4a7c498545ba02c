"""How much of each standard error the reference points cause, and what more of them would bring."""

from __future__ import annotations

import numpy as np

from ...errors import UnnormError
from ..analysis import GROUP, Analysis
from ..page import Cell, Section, Table, number


def section(analysis: Analysis) -> Section:
    shares = reference_shares(analysis)
    rows = []
    for label in analysis.labels:
        cells = [Cell(label)]
        if analysis.group is not None:
            cells.append(number(shares[GROUP][label], 3))
        if analysis.fits:
            levels = np.array([shares[which][label] for which in analysis.fits])
            cells += [number(float(np.median(levels)), 3), number(float(np.max(levels)), 3)]
        rows.append(tuple(cells))
    head = ["term"]
    head += ["group" if analysis.fits else "share"] if analysis.group is not None else []
    head += [f"{analysis.by}s, median", f"{analysis.by}s, largest"] if analysis.fits else []
    table = Table("Monte Carlo standard error as a share of the standard error", tuple(head), tuple(rows))
    return Section(advice(analysis), tables=(table,))


def reference_shares(analysis: Analysis) -> dict[str, dict[str, float]]:
    """which → label → rms of se_reference over rms of se: how much of the error is the reference points'."""
    out: dict[str, dict[str, float]] = {}
    for which in analysis.all_fits:
        out[which] = {}
        for label in analysis.labels:
            table = analysis.effect(label, which)
            total, reference = (float(np.sqrt(np.nanmean(table[name] ** 2))) for name in ("se", "se_reference"))
            out[which][label] = reference / total if total > 0 else float("nan")
    return out


def advice(analysis: Analysis) -> tuple[str, ...]:
    """What the main fit advises; with levels, what the one with the fewest transitions does."""
    which = analysis.smallest
    fit = analysis.main if which is None else analysis.fits[which]
    whose = () if which is None else (f"Of {analysis.by} {which}, the one with the fewest transitions:",)
    try:
        return (*whose, str(fit.advise()))
    except UnnormError as error:
        return (*whose, str(error))
