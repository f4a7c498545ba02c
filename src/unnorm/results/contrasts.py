"""f̂ at one set of covariates less f̂ at another: (X₁ − X₂) β̂ with its error, constants aside.

In step selection this is the log relative selection strength (Avgar, Lele, Keim & Boyce 2017, Ecol. Evol. 7).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import frames
from .._base.intervals import quantile
from .._base.numerics import flag, quadratic_forms
from ..errors import InputError, listing, unknown
from .smooths import SmoothPart, robust_covariance

if TYPE_CHECKING:
    from .fit import Fit


def contrast_columns(fit: Fit, at1: Any, at2: Any, level: float, robust: bool) -> dict[str, np.ndarray]:
    """The table of `Fit.contrast` by column."""
    part = terms_of(fit)
    one, two = given(at1, "at1"), given(at2, "at2")
    n = _rows(one, two)
    _refuse_one_sided(fit, part, one, two)
    C = f_design(fit, part, one, n) - f_design(fit, part, two, n)
    V, df = robust_covariance(part.errors) if flag(robust, "robust") else (part.errors.total, None)
    log_rss, se = C @ part.beta, np.sqrt(np.maximum(quadratic_forms(C, V), 0.0))
    z = quantile(level, df)
    lower, upper = log_rss - z * se, log_rss + z * se
    shown = {f"{name}_1": np.broadcast_to(values, (n,)) for name, values in one.items()}
    shown |= {f"{name}_2": np.broadcast_to(values, (n,)) for name, values in two.items()}
    numbers = {"log_rss": log_rss, "se": se, "lower": lower, "upper": upper}
    return {**shown, **numbers, "rss": np.exp(log_rss), "rss_lower": np.exp(lower), "rss_upper": np.exp(upper)}


def terms_of(fit: Fit) -> SmoothPart:
    """The terms of a fit, or a sentence."""
    if fit.smooths is None or fit.model is None:
        raise InputError(
            "A contrast needs the terms of f and the model that knows their covariates: fit un.Additive(…), and load "
            "with un.load(path, model=…)."
        )
    return fit.smooths


def given(at: Any, name: str) -> dict[str, np.ndarray]:
    """Covariate → its values, one or as many as there are rows."""
    if isinstance(at, Mapping):
        return {str(key): np.atleast_1d(np.asarray(values)) for key, values in at.items()}
    table = frames.table(at)
    if table.bare:
        raise InputError(f"{name} must be a table or a mapping from covariates to values; got an array.")
    return {key: table.read(key).take(np.arange(table.n)) for key in table.names}


def _refuse_one_sided(fit: Fit, part: SmoothPart, one: Mapping[str, Any], two: Mapping[str, Any]) -> None:
    """Refuse a covariate that one side gives and the other would hold at its median: they differ unseen."""
    model = fit.model
    assert model is not None
    wanted = {name for label in part.model_labels for name in part.term(label).covariates}

    def from_it(name: str, side: Mapping[str, Any]) -> bool:
        return name in side or any(from_it(need, side) for need in model.needs(name))

    for has, lacks, its in ((one, two, "at1"), (two, one, "at2")):
        alone = [name for name in has if name in wanted and lacks and not from_it(name, lacks)]  # {}: all medians
        if alone:
            raise InputError(
                f"{listing(alone)} stands in {its} only, and the other side would have its median: give it in both, or "
                "{} for all medians."
            )


def _rows(*sides: Mapping[str, np.ndarray]) -> int:
    lengths = {f"at{i + 1}[{key!r}]": len(v) for i, side in enumerate(sides) for key, v in side.items() if len(v) != 1}
    if len(set(lengths.values())) > 1:
        raise InputError(f"at1 and at2 must have one value, or as many as each other; got {lengths}.")
    return next(iter(lengths.values()), 1)


def f_design(fit: Fit, part: SmoothPart, at: Mapping[str, np.ndarray], n: int) -> np.ndarray:
    """(n, p) X of f's terms at these values of covariates, zero in the columns of χ."""
    columns = covariate_values(fit, part, at, n)
    X = np.zeros((n, len(part.beta)))
    for label in part.model_labels:
        term = part.term(label)
        X[:, part.slices[label]] = term.design({name: columns[name] for name in term.covariates})
    return X


def covariate_values(fit: Fit, part: SmoothPart, at: Mapping[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
    """Every covariate of f's terms: as given, computed from what is given, or held at its middle value."""
    model = fit.model
    assert model is not None
    wanted = dict.fromkeys(name for label in part.model_labels for name in part.term(label).covariates)
    read: dict[str, None] = {}

    def below(name: str) -> tuple[str, ...]:
        read[name] = None
        return tuple(dict.fromkeys(one for need in model.needs(name) for one in (need, *below(need))))

    needs = {name: below(name) for name in wanted}
    strange = [name for name in at if name not in read]
    if strange:
        raise InputError(unknown("A covariate of at1 or at2", strange[0], list(read)))
    out: dict[str, np.ndarray] = {}
    computed = [name for name in wanted if name not in at and any(need in at for need in needs[name])]
    for name in wanted:
        if name in at:
            out[name] = np.broadcast_to(at[name], (n,))
        elif name not in computed:
            out[name] = np.broadcast_to(middle(fit, name), (n,))
    if computed:
        held = dict.fromkeys(need for name in computed for need in needs[name] if not model.needs(need))
        known = {name: np.broadcast_to(at[name] if name in at else middle(fit, name), (n,)) for name in held}
        assert fit.obs is not None  # `middle` of what is held needs them too
        known |= {name: np.broadcast_to(values, (n,)) for name, values in at.items()}
        out |= model.covariates(fit.obs).at(computed, fit.obs, known)
    return out


def middle(fit: Fit, name: str) -> Any:
    """The median over the observations, or the commonest level."""
    if fit.obs is None or fit.model is None:
        raise InputError(f"A loaded fit has no observations, and so no median of {name!r}: give it in at1 and at2.")
    known = fit.model.covariates(fit.obs)
    if name not in known:
        raise InputError(f"{name!r} is not known: give it in at1 and at2. Known are {listing(known.names, most=40)}.")
    values = known.values(name, fit.obs)[name]
    if values.dtype.kind in "fiu":
        return np.nanmedian(values)
    levels, counts = np.unique(values, return_counts=True)
    return levels[np.argmax(counts)]
