"""The rows of a fit as a table: what conditional logistic regression, lme4 or mgcv would be given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from .fit import Fit

NO_ROWS = (
    "This fit has no rows of observations and reference points: it was loaded, or its objective draws no points. Fit "
    "with un.Ranking(…), un.Logistic(…) or un.Importance(…)."
)


def case_control(fit: Fit) -> dict[str, np.ndarray]:
    """Columns: case, stratum, weight (where there are any), outcome, context, group, covariates of f, offset."""
    source = None if fit.solution is None else fit.solution.source
    if source is None or fit.model is None or fit.obs is None or "m" not in fit.diagnostics:
        raise InputError(NO_ROWS)
    obs, model = fit.obs, fit.model
    known = model.covariates(obs)
    wanted = () if model.terms is None else model.terms.columns
    parts: list[dict[str, np.ndarray]] = []
    for rows in source.blocks():
        at = rows.context
        part = {"case": rows.data.astype(np.int64)}
        if obs.has_context:
            part["stratum"] = at
        if obs.weight is not None and rows.weight is not None:
            part["weight"] = rows.weight
        part |= {name: rows.y[:, j] for j, name in enumerate(obs.outcome_names)}
        part |= {name: column[at] for columns in (obs.context, obs.group) for name, column in columns.items()}
        part |= {name: v for name, v in known.values(wanted, obs, rows.y, at).items() if name not in part}
        parts.append({**part, "offset": rows.offset})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
