"""A table of all fits: transitions, held-out bits, effective degrees of freedom and p-values of each term."""

from __future__ import annotations

import numpy as np

from ..._base import counts
from ...errors import UnnormError
from ..analysis import Analysis
from ..held_out import held_out_bits
from ..page import Cell, Section, Table, number, p_value


def section(analysis: Analysis) -> Section:
    part = analysis.smooths()
    smooth = [label for label in (*analysis.labels, *part.normaliser_labels) if label in part.edf]
    bits, how = _bits(analysis)
    head = [analysis.by or "model", "transitions", *(("held-out bits",) if bits else ())]
    head += [text for label in smooth for text in (f"{label} edf", f"{label} p")]
    rows = []
    for which, fit in analysis.all_fits.items():
        own = analysis.smooths(which)
        tests = dict(zip(np.asarray(own.table["term"]).tolist(), np.asarray(own.table["p"], dtype=float).tolist()))
        cells = [Cell(which), Cell(counts.number(fit.n), float(fit.n))]
        if bits:
            mean, se = bits.get(which, (np.nan, np.nan))
            cells.append(Cell("–") if mean != mean else Cell(f"{mean:.3f} (se {se:.3f})", mean))
        for label in smooth:
            cells += [number(own.edf.get(label, np.nan), 1), p_value(tests.get(label, np.nan))]
        rows.append(tuple(cells))
    table = Table("Effective degrees of freedom and p-values of each term", tuple(head), tuple(rows))
    return Section((how,) if how else (), tables=(table,))


def _bits(analysis: Analysis) -> tuple[dict[str, tuple[float, float]], str]:
    try:
        bits = held_out_bits(analysis)
    except UnnormError as error:
        return {}, f"Held-out bits could not be computed: {error}"
    if not bits:
        return {}, ""
    everyone = " (group: all points)" if analysis.fits else ""
    return bits, f"Held-out bits: the gain over a uniform choice in bits for each point{everyone}."
