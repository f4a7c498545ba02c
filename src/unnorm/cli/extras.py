"""What `unnorm fit` writes on request: figures as files, and a summary as JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from .._base.atomic import write_bytes
from ..errors import InputError, UnnormError, unknown
from ..report import Analysis, parameters_table
from ..report.figures import FORMATS
from ..report.findings import findings
from ..report.held_out import HeldOut, held_out_scores
from ..report.page import Section
from ..report.sections.misfit import MISFIT


@final
@dataclass(frozen=True)
class Extras:
    """Formats of figures, none by default; whether the summary that is printed is JSON."""

    figures: tuple[str, ...] = ()
    json: bool = False


PLAIN = Extras()


def read_formats(text: str | None) -> tuple[str, ...]:
    """The formats that --figures names, as svg or svg,pdf."""
    names = [] if text is None else [name.strip().lower().removeprefix(".") for name in text.split(",")]
    for name in names:
        if name not in FORMATS:
            raise InputError(unknown("--figures", name, FORMATS))
    return tuple(dict.fromkeys(names))


def write_figures(folder: Path, sections: Sequence[Section]) -> None:
    """figures/SECTION-NN-CAPTION.svg and so on, numbered in the order of the report."""
    made = [(section.anchor, picture) for section in sections for picture in section.pictures if picture.files]
    if not made:
        return
    for i, (anchor, picture) in enumerate(made, 1):
        words = re.sub(r"[^a-z0-9]+", "-", picture.caption.lower()).strip("-")[:60]
        for name, data in picture.files.items():
            write_bytes(folder / "figures" / f"{i:02}-{anchor}-{words or 'figure'}.{name}", data)


def summary_json(analysis: Analysis, target: Path) -> str:
    """Counts, effects, parameters, conditions, findings, misfit, scores and notes as one JSON object."""
    table = parameters_table(analysis)
    rows = [dict(zip(table, values)) for values in zip(*(np.asarray(column).tolist() for column in table.values()))]
    found: dict[str, Any] = {
        "transitions": analysis.obs.n,
        "sequences": 1 if analysis.obs.sequence is None else int(np.unique(analysis.obs.sequence).size),
        "effects": list(analysis.labels),
        "by": analysis.by,
        "levels": list(analysis.fits),
        "not_fitted": dict(analysis.failures),
        "converged": all(fit.converged for fit in analysis.all_fits.values()),
        "constants_failed": [which for which, fit in analysis.all_fits.items() if fit.constants_failed],
        "parameters": rows,
        "conditions": None if analysis.conditions is None else _conditions(analysis),
        "findings": _findings(analysis),
        "misfit": _misfit(analysis),
        "scores": _scores(analysis),
        "notes": list(analysis.notes),
        "report": str(target / "report.html"),
    }
    return json.dumps(_finite(found), ensure_ascii=False, indent=1)


def _conditions(analysis: Analysis) -> dict[str, Any]:
    found = analysis.conditions
    assert found is not None
    columns = {name: np.asarray(values).tolist() for name, values in found.tests.items()}
    return {
        "between": found.between,
        "design": found.design,
        "members": {name: list(levels) for name, levels in found.members.items()},
        "tests": [dict(zip(columns, values)) for values in zip(*columns.values())],
        "notes": list(found.notes),
    }


def _findings(analysis: Analysis) -> list[dict[str, Any]]:
    return [
        {
            "question": one.question,
            "effect": one.label,
            "holds": one.group,
            "share_of_draws": one.share,
            "holds_for": list(one.holds),
            "surely_for": list(one.sure),
            "levels": one.levels,
        }
        for one in findings(analysis.model, analysis.obs, analysis.group, analysis.fits)
    ]


def _misfit(analysis: Analysis) -> dict[str, Any] | None:
    """What the model misses, as the report says it; None where the report did not ask."""
    if MISFIT not in analysis.kept:
        return None
    verdict, found = analysis.kept[MISFIT]
    rows = [
        {
            "feature": one.feature.name,
            "observed_mean": list(one.observed),
            "drawn_mean": list(one.drawn),
            "error": one.size,
            "p": one.p,
            "missed": bool(one.missed),
        }
        for one in found
    ]
    return {"verdict": verdict, "features": rows}


def _scores(analysis: Analysis) -> dict[str, Any] | None:
    """Scores of the points left out, of all together (`group`) and by level; None where none were left out."""
    try:
        every = held_out_scores(analysis)
    except UnnormError as error:
        return {"missing": str(error)}
    if not every:
        return None
    return {which: _score_table(found) for which, found in every.items()}


def _score_table(found: HeldOut) -> dict[str, Any]:
    names = ("mean", "se", "lower", "upper")
    table = [{"score": name, **dict(zip(names, values))} for name, values in found.scores.items()]
    return {"points": found.n, "clusters": dict(found.clusters), "baseline": found.baseline, "table": table}


def _finite(value: Any) -> Any:
    """JSON has no NaN."""
    if isinstance(value, dict):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
