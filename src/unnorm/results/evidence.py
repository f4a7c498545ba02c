"""What a fit knows of its reference points: from the rows where it has them, from its record where it was loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from .fit import Fit


def found(fit: Fit) -> Mapping[str, Any]:
    """The evidence itself; empty where there is none, or where it was not asked for before the fit was saved."""
    return (fit.diagnostics.get("evidence") or {}) if fit.evidence is None else fit.evidence()


def saved_without(fit: Fit) -> bool:
    """Whether the fit was saved before its evidence was asked for."""
    return fit.evidence is None and fit.diagnostics.get("evidence", ()) is None


def known_evidence(fit: Fit) -> Mapping[str, Any]:
    """The evidence, or the part of it that a loaded fit has in any case: the points' share of each variance."""
    evidence = found(fit)
    if evidence or not saved_without(fit):
        return evidence
    if fit.smooths is not None and fit.smooths.model_labels:
        names = fit.smooths.model_labels
        tables = [fit.smooths.effect(label) for label in names]
        share = [float(np.nansum(t["se_reference"] ** 2) / max(np.nansum(t["se"] ** 2), 1e-300)) for t in tables]
        return {"names": list(names), "share": share}
    if fit.errors is None:
        return {}
    total = np.maximum(np.diag(fit.errors.total), 1e-300)
    return {"names": list(fit.names), "share": (np.diag(fit.errors.reference) / total).tolist()}


def ncic(fit: Fit) -> float:
    """NCIC, or a sentence why there is none."""
    value = found(fit).get("ncic")
    if value is None and saved_without(fit):
        raise InputError(
            "NCIC was not asked for before this fit was saved, and a loaded fit has no rows to compute it from: fit "
            "again and ask fit.ncic before fit.save, or compare by fit.held_out(obs)."
        )
    if value is None:
        remedy = "compare by fit.aic" if fit.is_likelihood else "compare by fit.held_out(obs)"
        raise InputError(
            "NCIC needs reference points, and a normaliser that does not grow with the data (not PerContext) or "
            f"none at all (Ranking); a joint fit of levels has none either: {remedy}."
        )
    return float(value)
