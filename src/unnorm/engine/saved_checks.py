"""What a saved Gam has to be before it is one: its parts fit together, its numbers are numbers, and it can predict.

A digest finds accidents. What somebody wrote on purpose, or another program, is found here and refused when it is
read: a fit that is read answers.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ..errors import hush
from .arrow import Arrow
from .core import METHODS
from .families import FAMILIES
from .gam_result import Gam
from .smoothed import Smoothed

FEW = 5  # rows at which it predicts
MOST = 1e120  # of any number of a fit: squares of sums of them are numbers
MAY_BE_UNKNOWN = ("known",)  # a film's boundary values, nan where they are free
_COUNTS = {"beta": "p", "edf": "p", "edf1": "p", "rho": "m", "estimated": "m", "flat": "m", "limit": "m"}
_COUNTS |= {"gradient": "m", "hessian": "mm", "dbeta_drho": "pm"}
_TRUTHS = ("estimated", "flat")
_SIGNS = ("limit",)
_NUMBERS = ("score", "loglik", "deviance", "null_deviance", "scale", "rows")
_MAY_LACK = ("score", "null_deviance")  # of a fit that did not converge, or with a link of its own


def check(fit: Gam) -> None:
    """Raise ValueError at the first thing that is not as a fit has it."""
    _check_words(fit)
    _check_rows(fit)
    _check_smoothed(fit.smoothed)
    _check_terms(fit)
    _answers(fit)


def _demand(holds: Any, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _check_words(fit: Gam) -> None:
    inner = fit.smoothed
    texts = (fit.formula, fit.response, inner.reason, *fit.notes, *inner.notes, *inner.sp_labels, *fit.columns)
    texts += fit.offset_names or ()
    _demand(all(isinstance(one, str) for one in texts), "names and notes that are no text")
    _demand(fit.family in FAMILIES and inner.family in FAMILIES, f"the family {fit.family!r}")
    _demand(fit.method in (*METHODS, "UBRE", "fixed") and isinstance(inner.method, str), f"the method {fit.method!r}")
    truths = (inner.converged, inner.scale_known, fit.theta_known)
    _demand(all(isinstance(one, bool) for one in truths), "what is neither true nor false")
    _demand(fit.whole is None or (isinstance(fit.whole, int) and fit.whole >= fit.y.size), f"{fit.whole!r} rows")
    theta = fit.theta
    _demand(theta is None or (_is_number(theta) and theta > 0), f"theta = {theta!r}")
    _demand(fit.family != "nb" or theta is not None, "no theta")
    for record in (inner.iterations, inner.timings):
        _demand(isinstance(record, dict) and all(_is_number(one) for one in record.values()), "no record of its work")
    fit.distribution  # noqa: B018  refuses a link that there is not


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(float(value)))


def _sound(values: np.ndarray) -> bool:
    return values.dtype.kind != "f" or bool(np.all(np.abs(values) < MOST))


def _check_rows(fit: Gam) -> None:
    n = fit.y.size
    _demand(_sound(fit.y), "a response that no fit has")
    given = {"y": fit.y, "weights": fit.weights, "offset": fit.offset}
    for name, one in given.items():
        if one is not None:
            _demand(one.shape == (n,) and one.dtype.kind in "fiub" and np.isfinite(one).all(), f"{name} of {n} rows")
    _demand(n > 0 and (fit.weights is None or (fit.weights >= 0).all()), "weights below zero, or no rows")
    inner = fit.smoothed.offset
    _demand(isinstance(inner, np.ndarray) and inner.shape in ((0,), (n,)) and inner.dtype.kind == "f", "an offset")
    for name, column in fit.columns.items():
        _demand(column.shape == (n,) and column.dtype.kind in "fiubU", f"the column {name!r} of {n} rows")


def _check_smoothed(inner: Smoothed) -> None:
    sizes = {"p": inner.design.size, "m": len(inner.sp_labels)}
    for name, letters in _COUNTS.items():
        array = getattr(inner, name)
        _demand(isinstance(array, np.ndarray), f"no {name}")
        _demand(array.shape == tuple(sizes[letter] for letter in letters), f"{name} of shape {array.shape}")
        _demand(
            array.dtype.kind in ("b" if name in _TRUTHS else "i" if name in _SIGNS else "fi"),
            f"{name} of type {array.dtype}",
        )
        _demand(_sound(array), f"{name} is not finite")
    for name in _NUMBERS:
        value = getattr(inner, name)
        lacks = name in _MAY_LACK and isinstance(value, float) and not np.isfinite(value)
        _demand(lacks or _is_number(value), f"{name} = {value!r}")
    _demand(inner.scale > 0 and isinstance(inner.rows, int) and inner.rows > 0, "a scale or rows that are not positive")
    _demand(tuple(inner.sp_labels) == tuple(inner.design.penalties.labels), "smoothing parameters of other penalties")
    known = {item.name for item in fields(Smoothed)}
    _demand({*_COUNTS, *_NUMBERS} <= known, "other fields")
    _check_blocks(inner)


def _check_blocks(inner: Smoothed) -> None:
    """XᵀWX and its inverse are those of the design: blocks of the same sizes, finite, with variances that are one."""
    likeness: Arrow = inner.cross
    inverse = inner.inverse
    sizes = np.diff(likeness.starts)
    _demand(np.array_equal(likeness.starts, inverse.starts) and likeness.starts[-1] == inner.size, "blocks of others")
    shared = int(sizes[0])
    every = (likeness.shared, inverse.sigma, *likeness.own, *likeness.cross, *inverse.own, *inverse.slopes)
    _demand(all(block.dtype.kind == "f" for block in every), "blocks that are no real numbers")
    _demand(likeness.shared.shape == inverse.sigma.shape == (shared, shared), "blocks that are not square")
    for blocks, width in (
        (likeness.own, None),
        (likeness.cross, shared),
        (inverse.own, None),
        (inverse.slopes, shared),
    ):
        _demand(len(blocks) == len(sizes) - 1, "levels that are missing")
        for block, k in zip(blocks, sizes[1:]):
            _demand(block.shape == (k, k if width is None else width) and np.isfinite(block).all(), "a level's block")
    _demand(np.isfinite(likeness.shared).all() and np.isfinite(inverse.sigma).all(), "blocks that are not finite")
    _demand(_sound(likeness.shared) and _sound(inverse.sigma), "blocks too large to multiply")
    _demand((inverse.diagonal() > 0).all() and np.isfinite(inverse.logdet), "a variance that is not positive")


def _check_terms(fit: Gam) -> None:
    labels = [term.label for term in fit.terms]
    _demand(len(set(labels)) == len(labels) and all(isinstance(one, str) for one in labels), "labels that come twice")
    for term in fit.terms:
        names = (*term.covariates, *([] if term.by is None else [term.by]))
        _demand(all(name in fit.columns for name in names), f"{term.label} reads columns that are not there")
        _demand(len(term.fixed_sp) == len(term.penalties), f"{term.label} has other penalties than parameters")
        if term.factor_levels is not None:
            name, levels = term.factor_levels  # a parametric term leaves its first out
            _demand(term.own_levels.get(name, ())[-len(levels) :] == levels, f"other levels of {name!r}")
        if is_dataclass(basis := getattr(term, "basis", None)):
            _check_arrays(basis, term.label)
        for penalty in term.penalties:
            size = len(penalty.block)
            _demand(_sound(penalty.block) and 0 <= penalty.rank <= size * penalty.copies, "a penalty")
            root = penalty.root
            _demand(root is None or (root.ndim == 2 and root.shape[1] == size and np.isfinite(root).all()), "a root")


def _check_arrays(part: Any, label: str) -> None:
    """Every array of a basis holds numbers: a table of its values may lack one that no row of the data reads."""
    for item in fields(part):
        value = getattr(part, item.name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, np.ndarray) and item.name not in MAY_BE_UNKNOWN:
                _demand(_sound(one), f"{label}: {item.name} holds what is no number")
            elif is_dataclass(one) and not isinstance(one, type):
                _check_arrays(one, label)


def _answers(fit: Gam) -> None:
    """η at the fitted rows, every term's columns at some of them as at new ones, every effect, and the summary."""
    _demand(np.isfinite(fit.linear_predictor).all(), "predictions that are not finite")
    some = np.unique(np.linspace(0, fit.y.size - 1, FEW).astype(int))
    with hush(), np.errstate(all="ignore"):
        for term in fit.terms:
            values = term.design({name: fit.columns[name][some] for name in term.covariates})
            _demand(values.shape == (some.size, term.size), f"{term.label} has other columns than coefficients")
            found = fit.effect_columns(term.label)
            _demand(np.isfinite(found["se"]).any(), f"{term.label} has no standard errors")
        if not fit.smoothed.wide:  # whose tests take longer than reading does
            fit.summary()  # what cannot be shown was not saved so
