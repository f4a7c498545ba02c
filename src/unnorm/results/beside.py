"""Another outcome of the same points beside the place: how long a fixation lasts, by what drew the eye there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, listing

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..engine.gam_result import Gam
    from ..models.base import Unnormalised


def covariate_table(model: Unnormalised, obs: Observations) -> dict[str, np.ndarray]:
    """Every covariate that the model knows at the observed points, and every column that none of them hides."""
    known = model.covariates(obs)
    names = [name for name in known.names if name not in obs.columns or name in known.hidden]
    return {**obs.columns, **known.values(names, obs), **obs.beside}


def beside(
    model: Unnormalised,
    obs: Observations,
    response: str,
    terms: str | None = None,
    random: Sequence[str] = (),
    **options: Any,
) -> Gam:
    """A gam of `response`, a column beside the outcome or of the context, or a function of one, on f's terms."""
    from ..engine import gam

    if model.terms is None and terms is None:
        raise InputError("The model has no terms to put beside the response; give terms=.")
    table = covariate_table(model, obs)
    known = model.covariates(obs)
    lost = [name for name in random if name not in table]
    if lost:
        raise InputError(f"random names {listing(lost)}; the observations have {listing(obs.columns)}.")
    effects = " + ".join([str(model.terms) if terms is None else terms, *(f"s({name}, bs='re')" for name in random)])
    for name in random:
        table[name] = np.array([str(value) for value in table[name].tolist()])
    periods = {name: period for name in known.names if (period := known.period(name)) is not None and name in table}
    used = {name: period for name, period in periods.items() if name in effects}
    return gam(f"{response} ~ {effects}", table, periods=used or None, missing="drop", **options)
