"""What a `Gam` says of itself: the summary, the smoothing parameters, checks, and comparison with another fit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc, fdtrc, ndtr, ndtri, stdtr

from .._base import numerics
from .._base.blas import single_threaded
from .._base.frames import to_native
from ..errors import CombinationError, InputError
from . import checks, gam_effects, inference, level_checks, level_tests
from .smoothed import INTERCEPT

if TYPE_CHECKING:
    from .gam_result import Gam

CRITERION = {"REML": "-REML", "ML": "-ML"}
WIDE = 78
LEAST_DF = 0.01  # between two models that are compared: below, they are the same model


# --- tests --------------------------------------------------------------------------------------------------------


def tests(fit: Gam) -> dict[str, inference.Test]:
    """Each term against zero, by the test that suits it; see `Gam.tests`."""
    with single_threaded():
        return _tests(fit)


def _tests(fit: Gam) -> dict[str, inference.Test]:
    if fit.smoothed.design.own is not None:
        return _level_tests(fit)
    df = None if fit.smoothed.scale_known else fit.residual_df
    random = {term.label: fit.index(term.label) for term in fit.smooths if gam_effects.is_random(term)}
    out = {}
    for term in fit.terms:
        index = fit.index(term.label)
        beta, V = fit.smoothed.beta[index], fit.smoothed.covariance_block(term.label)
        if term.parametric:
            out[term.label] = inference.wald_test(beta, V, df)
        elif term.penalties and term.null_dim == 0:
            rest = [i for label, i in random.items() if label != term.label]
            others = np.concatenate(rest) if rest else np.empty(0, dtype=np.int64)
            curvature = inference.Curvature(fit.A, fit.S, fit.H_inv, fit.scale)
            out[term.label] = inference.random_test(index, fit.smoothed.beta, curvature, others, df)
        else:
            edf1 = float(fit.smoothed.edf1[index].sum())
            out[term.label] = inference.smooth_test(beta, fit.A[np.ix_(index, index)], V, edf1, df)
    return out


def _level_tests(fit: Gam) -> dict[str, inference.Test]:
    """The same by blocks, where every level has the same columns."""
    inner = fit.smoothed
    df = None if inner.scale_known else fit.residual_df
    flat = inner.design.to_flat(inner.beta)
    at = level_tests.LevelCurvature(inner.cross, inner.design.penalties, np.exp(inner.rho), inner.inverse, fit.scale)
    random = [term.label for term in fit.smooths if gam_effects.is_random(term)]
    out = {}
    for term in fit.terms:
        shared, own = inner.columns([term.label])
        others = inner.columns([label for label in random if label != term.label])
        index, beta = np.flatnonzero(shared), inner.beta[fit.index(term.label)]
        if term.parametric:
            out[term.label] = inference.wald_test(beta, inner.covariance_block(term.label), df)
        elif term.penalties and term.null_dim == 0 and own.any():
            out[term.label] = level_tests.level_test(own, flat, at, others, df)
        elif term.penalties and term.null_dim == 0:
            out[term.label] = level_tests.shared_test(index, flat, at, others, df)
        else:
            edf1 = float(inner.edf1[fit.index(term.label)].sum())
            V = inner.covariance_block(term.label)
            out[term.label] = inference.smooth_test(beta, inner.information_block(term.label), V, edf1, df)
    return out


# --- summary ------------------------------------------------------------------------------------------------------


def parametric(fit: Gam) -> dict[str, np.ndarray]:
    """The intercept and every parametric coefficient: estimate, se, z or t, p."""
    labels = [INTERCEPT] if INTERCEPT in fit.smoothed.slices else []
    labels += [term.label for term in fit.terms if term.parametric]
    names = list(fit.coefficients)
    index = np.concatenate([fit.index(label) for label in labels]) if labels else np.empty(0, dtype=np.int64)
    blocks = [np.sqrt(np.diag(fit.smoothed.covariance_block(label))) for label in labels]
    estimate = fit.smoothed.beta[index]
    se = np.concatenate(blocks) if blocks else np.empty(0)
    statistic = estimate / se
    size = np.abs(statistic)
    p = 2.0 * (ndtr(-size) if fit.smoothed.scale_known else stdtr(fit.residual_df, -size))
    return {
        "name": np.array([names[i] for i in index], dtype=np.str_),
        "estimate": estimate,
        "se": se,
        "statistic": statistic,
        "p": p,
    }


def smooth(fit: Gam) -> dict[str, np.ndarray]:
    """Every smooth: edf, reference df, χ² (or F where the scale is estimated), p."""
    tests = [fit.tests[term.label] for term in fit.smooths]
    df = np.array([test.df for test in tests])
    statistic = np.array([test.statistic for test in tests])
    return {
        "term": np.array([term.label for term in fit.smooths], dtype=np.str_),
        "edf": np.array(list(fit.edf.values())),
        "ref_df": df,
        "statistic": statistic if fit.smoothed.scale_known else statistic / np.where(df > 0.0, df, 1.0),
        "p": np.array([test.p for test in tests]),
    }


def summary(fit: Gam) -> str:
    """Text in the order of mgcv's `summary.gam`."""
    theta = "" if fit.theta is None else f", theta = {fit.theta:.4g}"
    lines = [
        f"Family: {fit.family} ({fit.distribution.link} link{theta})",
        f"Formula: {_short(fit.formula)}",
    ]
    known = fit.smoothed.scale_known
    table = parametric(fit)
    if table["name"].size:
        lines += ["", "Parametric coefficients:"]
        lines += _aligned(
            ["", "estimate", "std. error", "z" if known else "t", "p"],
            [table["name"].tolist(), *(_numbers(table[c]) for c in ("estimate", "se", "statistic")), _p(table["p"])],
        )
    if fit.smooths:
        table = smooth(fit)
        lines += ["", "Smooth terms (approximate tests against zero):"]
        lines += _aligned(
            ["", "edf", "ref. df", "chi.sq" if known else "F", "p"],
            [table["term"].tolist(), *(_numbers(table[c]) for c in ("edf", "ref_df", "statistic")), _p(table["p"])],
        )
    score = f"{CRITERION.get(fit.method, fit.method)} = {fit.score:.6g}   " if np.isfinite(fit.score) else ""
    lines += [
        "",
        f"Deviance explained = {100.0 * fit.deviance_explained:.1f} %"
        + (f"   AIC = {fit.aic:.2f}" if fit.distribution.likelihood else ""),
        f"{score}Scale = {fit.scale:.5g}{'' if known else ' (estimated)'}   n = {fit.n}",
    ]
    if not fit.converged:
        lines.append(f"Not converged: {fit.smoothed.reason}")
    lines += [f"Note: {note}" for note in fit.notes]
    return "\n".join(lines)


def _numbers(values: np.ndarray) -> list[str]:
    return [f"{value:.4g}" if abs(value) >= 1e-4 or value == 0.0 else f"{value:.2e}" for value in values.tolist()]


def _p(values: np.ndarray) -> list[str]:
    return ["< 2e-16" if p < 2e-16 else f"{p:.3g}" for p in values.tolist()]


def _aligned(header: list[str], columns: list[list[str]]) -> list[str]:
    widths = [max(len(head), *(len(cell) for cell in column)) for head, column in zip(header, columns)]

    def line(cells: list[str]) -> str:
        rest = "  ".join(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:]))
        return f"  {cells[0].ljust(widths[0])}  {rest}".rstrip()

    return [line(header), *(line(list(row)) for row in zip(*columns))]


# --- smoothing parameters -----------------------------------------------------------------------------------------


def smoothing(fit: Gam) -> dict[str, np.ndarray]:
    """λ with the standard error of log λ; where the criterion is flat λ is infinite or zero in effect."""
    inner = fit.smoothed
    M = inner.rho.size
    se = np.full(M, np.nan)
    free = np.flatnonzero(inner.estimated & ~inner.flat)
    if fit.method in ("REML", "ML") and free.size:
        value, vector = np.linalg.eigh(fit.criterion_hessian[np.ix_(free, free)])
        if np.all(value > 0.0):
            se[free] = np.sqrt(np.diag((vector / value) @ vector.T))
    z = ndtri(0.975)
    state = np.where(~inner.estimated, "fixed", np.choose(inner.limit + 1, ["zero", "estimated", "infinite"]))
    with np.errstate(over="ignore"):
        return {
            "penalty": np.array(inner.sp_labels, dtype=np.str_),
            "sp": np.exp(inner.rho),
            "log_sp": np.array(inner.rho),
            "se": se,
            "lower": np.exp(inner.rho - z * se),
            "upper": np.where(inner.limit > 0, np.inf, np.exp(inner.rho + z * se)),
            "state": state,
        }


# --- comparison ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelComparison:
    """Two fits of the same rows, the smaller first. `p` is nan where the larger one fits no better or is the same."""

    table: Any  # of the data's kind: model, residual_df, deviance, aic
    df: float  # extra degrees of freedom of the larger model
    statistic: float  # deviance difference (χ²), or F
    p: float
    aic_difference: float  # larger minus smaller: negative speaks for the larger
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text


def compare(first: Gam, second: Gam) -> ModelComparison:
    """Generalised likelihood ratio test, as mgcv's `anova.gam` for two models."""
    if not isinstance(second, type(first)):
        raise InputError(f"compare() takes another fit of un.gam; got {type(second).__name__}.")
    kinds = [f"{fit.family} ({fit.distribution.link})" for fit in (first, second)]
    if kinds[0] != kinds[1]:
        raise CombinationError(
            f"Models of different families or links, {kinds[0]} and {kinds[1]}, have no likelihood ratio; compare "
            "their AIC, or refit one."
        )
    same = np.array_equal(first.y, second.y)
    if not same or not np.array_equal(_weights(first), _weights(second)):
        raise CombinationError(
            f"compare() needs two models of the same rows and weights: these {'weights' if same else 'responses'} "
            "differ. Refit both on one table (missing='drop' may have left out different rows)."
        )
    residual = {
        id(fit): fit.n - float(fit.smoothed.edf1.sum()) - (fit.edf2_total - fit.edf_total) for fit in (first, second)
    }
    small, large = sorted((first, second), key=lambda fit: -residual[id(fit)])
    df = residual[id(small)] - residual[id(large)]
    # each θ̂ has a saturated model of its own: then −2 loglik takes the deviance's place, as in mgcv
    deviances = [-2.0 * fit.loglik if fit.theta is not None else fit.deviance for fit in (small, large)]
    drop = deviances[0] - deviances[1]
    tested = df > LEAST_DF and drop > 0.0  # on no degrees of freedom any difference would be significant
    p, statistic, name = np.nan, drop, "chi.sq"
    if first.smoothed.scale_known:
        if tested:
            p = float(chdtrc(df, drop))
    else:
        name, statistic = "F", drop / df / large.scale if df > 0.0 else np.nan
        if tested:
            p = float(fdtrc(df, residual[id(large)], statistic))
    columns = {
        "model": np.array([small.formula, large.formula], dtype=np.str_),
        "residual_df": np.array([residual[id(small)], residual[id(large)]]),
        "deviance": np.array(deviances),
        "aic": np.array([small.aic, large.aic]),
    }
    rows = [columns["model"].tolist(), *(_fixed(columns[c]) for c in ("residual_df", "deviance", "aic"))]
    text = "\n".join([
        *_aligned(["", "residual df", "deviance", "AIC"], rows),
        f"  difference: df {df:.3f}, {name} {statistic:.4g}, p {_p(np.array([p]))[0]} (approximate; see `compare`)",
    ])  # fmt: skip
    return ModelComparison(
        to_native(columns, first.backend), float(df), float(statistic), p, large.aic - small.aic, text
    )


def _weights(fit: Gam) -> np.ndarray:
    return np.ones(fit.y.size) if fit.weights is None else fit.weights


def _fixed(values: np.ndarray) -> list[str]:
    return [f"{value:.2f}" for value in values.tolist()]


# --- checks -------------------------------------------------------------------------------------------------------


def _gram(fit: Gam) -> tuple[np.ndarray, np.ndarray, dict[str, slice]]:
    """XᵀX with the parametric columns first, β in that order, and where each term's columns are."""
    spans = {term.label: fit.smoothed.slices[term.label] for term in fit.smooths}
    free = [fit.index(label) for label in fit.smoothed.slices if label not in spans]
    order = np.concatenate([*free, *(fit.index(label) for label in spans)])
    blocks, start = {}, sum(index.size for index in free)
    if start:
        blocks["parametric"] = slice(0, start)
    for label in spans:
        size = fit.index(label).size
        blocks[label] = slice(start, start + size)
        start += size
    return fit.gram(most=checks.GRAM)[np.ix_(order, order)], fit.smoothed.beta[order], blocks


def curved_terms(fit: Gam) -> list[checks.Concurvity]:
    """Each term against all the others."""
    return level_checks.level_concurvity(fit) if level_checks.single(fit) else checks.concurvity(*_gram(fit))


def concurvity_table(curved: Sequence[checks.Concurvity]) -> dict[str, np.ndarray]:
    names = ("worst", "observed", "estimate")
    return {
        "term": np.array([c.label for c in curved], dtype=np.str_),
        **{name: np.array([getattr(c, name) for c in curved]) for name in names},
    }


def concurvity(fit: Gam, pairwise: bool) -> dict[str, np.ndarray]:
    """mgcv's `concurvity`, full=TRUE and full=FALSE, as a table."""
    if not numerics.flag(pairwise, "pairwise"):
        return concurvity_table(curved_terms(fit))
    found, others = [], []
    if level_checks.single(fit):
        levels = level_checks.LevelGram(fit)
        pairs = [(one, other) for one in levels.order for other in levels.order if one != other]
        table = concurvity_table([levels.one(one, [other]) for one, other in pairs])
        return {"term": table.pop("term"), "with": np.array([other for _, other in pairs], dtype=np.str_), **table}
    gram, beta, blocks = _gram(fit)
    for label, span in blocks.items():
        for other, at in blocks.items():
            if other == label:
                continue
            here = np.concatenate([np.arange(gram.shape[0])[span], np.arange(gram.shape[0])[at]])
            size = span.stop - span.start
            found += checks.concurvity(gram[np.ix_(here, here)], beta[here], {label: slice(0, size)})
            others.append(other)
    table = concurvity_table(found)
    return {"term": table.pop("term"), "with": np.array(others, dtype=np.str_), **table}


def _short(formula: str) -> str:
    """The formula with long lists of numbers (a boundary, knots) cut."""
    return re.sub(r"\(((?:-?[\d.e+-]+, ){2})(?:-?[\d.e+-]+, ){5,}-?[\d.e+-]+\)", r"(\1…)", formula)


def check(fit: Gam, rng: Any) -> checks.Check:
    """k-index of every smooth (on at most 5,000 rows) and concurvity of every term (on at most 100,000)."""
    draw = numerics.generator(rng)
    rows = np.arange(fit.y.size) if fit.weights is None else np.flatnonzero(fit.weights > 0.0)
    if rows.size > checks.SUBSAMPLE:
        rows = np.sort(draw.choice(rows, checks.SUBSAMPLE, replace=False))
    residuals = fit.residuals("deviance")[rows]
    basis = []
    for term in fit.smooths:
        names = gam_effects.coordinates(term)
        index, p = np.nan, np.nan
        if not gam_effects.factors(term, fit.columns):
            at = [np.asarray(fit.columns[name][rows], dtype=np.float64) for name in names]
            if len(names) > 1 and not term.isotropic:  # the units of the covariates differ
                beta = fit.smoothed.beta[fit.index(term.label)]
                at = checks.steepness(
                    lambda xs, term=term, names=names, beta=beta: gam_effects.design(term, dict(zip(names, xs))) @ beta,
                    at,
                )
            index, p = checks.k_index(residuals, at, draw)
        basis.append(checks.BasisCheck(term.label, term.size, fit.edf[term.label], index, p))
    curved = curved_terms(fit)
    said = checks.notes(basis, curved)
    k_table = {
        "term": np.array([b.label for b in basis], dtype=np.str_),
        "k": np.array([b.size for b in basis]),
        "edf": np.array([b.edf for b in basis]),
        "k_index": np.array([b.k_index for b in basis]),
        "p": np.array([b.p for b in basis]),
    }
    c_table = concurvity_table(curved)
    text = [f"Basis size (k-index below 1 with a small p: a pattern is left; {rows.size} rows):"]
    if basis:
        numbers = [[f"{v:.3g}" for v in k_table[c].tolist()] for c in ("k", "edf", "k_index", "p")]
        text += _aligned(["", "k'", "edf", "k-index", "p"], [k_table["term"].tolist(), *numbers])
    text.append("Concurvity (0 none, 1 total):")
    numbers = [[f"{v:.3f}" for v in c_table[c].tolist()] for c in ("worst", "observed", "estimate")]
    text += _aligned(["", "worst", "observed", "estimate"], [c_table["term"].tolist(), *numbers])
    text += [f"- {sentence}" for sentence in said]
    return checks.Check(to_native(k_table, fit.backend), to_native(c_table, fit.backend), said, "\n".join(text))
