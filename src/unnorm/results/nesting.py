"""Tests of nested models: which parameters they are about, and whether the two were fitted to the same data."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.counts import counted
from ..data.observations import Observations
from ..errors import InputError, listing, unknown
from ..inference import tests
from ..inference.tests import NestedTest
from .summaries import is_relative

if TYPE_CHECKING:
    from .fit import Fit


def likelihood_ratio(larger: Fit, smaller: Fit) -> NestedTest:
    """See `Fit.likelihood_ratio`."""
    if not (larger.is_likelihood and smaller.is_likelihood):
        raise InputError(
            "A likelihood ratio needs two likelihoods, and with reference points (or constants that do not "
            "normalise every context) the objective is not a likelihood: twice its gain is not χ². "
            "Use fit.wald(smaller), whose covariance includes the reference points'."
        )
    if is_relative(larger) or is_relative(smaller):
        raise InputError(
            "A likelihood ratio needs weights that are counts, and weights='relative' are not: use "
            "fit.wald(smaller), whose covariance is robust."
        )
    if larger.settings["objective"].get("cluster") is not None:
        raise InputError(
            "A likelihood ratio assumes independent observations, and this fit names clusters: use "
            "fit.wald(smaller, robust=True)."
        )
    extra = extra_names(larger, smaller)
    ours, theirs = (set() if fit.smooths is None else set(fit.edf) for fit in (larger, smaller))
    if ours != theirs:
        raise InputError(
            f"The fits differ in their smooth terms ({listing(sorted(ours ^ theirs))}), whose number of parameters "
            "is not fixed: compare by fit.aic, or see the p-values of smooth terms in fit.summary()."
        )
    error = 2.0 * float(np.hypot(*(fit.diagnostics.get("loglik_se", 0.0) for fit in (larger, smaller))))
    return tests.likelihood_ratio(larger.loglik, smaller.loglik, len(extra), error)


def extra_names(larger: Fit, smaller: Fit) -> list[str]:
    """The parameters that the smaller model lacks."""
    extra = [name for name in larger.names if name not in smaller.names]
    if not extra or any(name not in larger.names for name in smaller.names):
        raise InputError(
            "A nested test needs a smaller model whose parameters are all in this one; "
            f"this one has {listing(larger.names)}, the other {listing(smaller.names)}."
        )
    have = f"they have {' and '.join(counted(fit.n, fit.n_rows) for fit in (larger, smaller))}"
    if smaller.n_rows != larger.n_rows:
        raise InputError(f"The fits must be to the same observations; {have}.")
    if smaller.n != larger.n or not _same_data(larger.obs, smaller.obs):
        raise InputError(f"The fits must be to the same observations; their outcomes or weights differ: {have}.")
    domains = [json.dumps(fit.settings["model"]["domain"]) for fit in (larger, smaller)]  # tuples load as lists
    if domains[0] != domains[1]:
        raise InputError(f"Nested models have the same domain; these have {domains[0]} and {domains[1]}.")
    return extra


def tested_names(fit: Fit, which: Any) -> list[str]:
    """The names of the parameters to be tested, or a sentence."""
    what = "which must be a parameter's name, several names, or a smaller fit"
    names = [which] if isinstance(which, str) else list(which) if isinstance(which, Iterable) else [which]
    if not fit.names:
        raise InputError("This fit has no parameters to test; the p-values of its smooth terms are in fit.summary().")
    if not names:
        raise InputError(f"{what}; got none. The parameters are {listing(fit.names)}.")
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{what}; got {_short(which)}. The parameters are {listing(fit.names)}.")
        if name not in fit.names:
            raise InputError(unknown("which", str(name), fit.names))
    if twice := [str(name) for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise InputError(f"which must name each parameter once; got {listing(twice)} more than once.")
    return names


def _short(value: Any) -> str:
    """A value in a message: of an array, its shape."""
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)


def _same_data(a: Observations | None, b: Observations | None) -> bool:
    """Whether two sets of as many observations have the same outcomes and weights, as far as loaded fits can tell."""
    return a is None or b is None or (np.array_equal(a.outcome, b.outcome) and np.array_equal(a.weights, b.weights))
