"""Draws from the posterior of a `Gam`; effects, derivatives of smooths and differences between levels, with bands.

β | y ≈ N(β̂, V), V the Bayesian covariance (or V_c, with the smoothing parameters' uncertainty): every function of the
coefficients has a posterior by drawing them, and those that are linear in them, Cβ, have it exactly, N(Cβ̂, CVCᵀ).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtri

from .._base import numerics
from ..errors import CombinationError, DataError, InputError, unknown, warn
from . import gam_effects, gam_levels, gam_predict, inference

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm, Columns
    from .gam_result import Gam
    from .level_covariance import LevelRows

METHODS = ("gaussian", "metropolis")
DEGREES = 40.0  # of freedom of the proposal's t distribution
STRIDE = 0.25  # of the random walk, in V's square roots
BURN_IN = 100
STEPS = {1: 2e-4, 2: 2e-2}  # of a derivative's differences, by its order, of the local scale
_LOCAL = 20  # which is what holds one in so many distinct values: 1/20 of the range where they are evenly spread


def coefficients(fit: Gam, n: int, unconditional: bool, rng: Any) -> np.ndarray:
    """(n, p) draws of β."""
    if not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n must be a whole number of draws, at least 1; got {n!r}.")
    if fit.smoothed.wide:
        drawn = gam_levels.covariance(fit, unconditional).draws(int(n), numerics.generator(rng))
        return fit.smoothed.beta + fit.smoothed.design.to_user(drawn).T
    root, _ = inference.covariance_root(fit.vcov(unconditional=unconditional))
    return fit.smoothed.beta + numerics.generator(rng).standard_normal((int(n), root.shape[1])) @ root.T


def metropolis(fit: Gam, n: int, rng: Any) -> np.ndarray:
    """(n, p) draws of β from p(β | y, λ) ∝ exp{ℓ(β)/φ − ½βᵀS_λβ/φ} itself, without the Gaussian approximation.

    Each draw is two Metropolis–Hastings moves, as in mgcv's `gam.mh`: a proposal from t₄₀(β̂, V) whatever the present
    state, which crosses the whole posterior, and a random walk of a quarter of V's size, which leaves its tails.
    """
    if not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n must be a whole number of draws, at least 1; got {n!r}.")
    if fit.whole is not None:
        raise CombinationError(
            f"method='metropolis' needs the likelihood of every row, and this fit keeps {fit.y.size:,} of "
            f"{fit.whole:,}. With so many rows the Gaussian approximation is as good: leave method= out."
        )
    draw, inner, S = numerics.generator(rng), fit.smoothed, fit.S
    root, back = inference.covariance_root(fit.vcov())
    size = root.shape[1]
    w = 1.0 if fit.weights is None else fit.weights
    offset = 0.0 if fit.offset is None else fit.offset

    def density(beta: np.ndarray) -> float:
        eta = inner.design.unsort(inner.design.predict(inner.design.to_flat(beta))) + offset
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            deviance = float(np.sum(w * fit.distribution.unit_deviance(fit.y, fit.distribution.mean(eta))))
        return -0.5 * (deviance + float(beta @ S @ beta)) / fit.scale if np.isfinite(deviance) else -np.inf

    def proposed(beta: np.ndarray) -> float:
        z = back @ (beta - inner.beta)
        return -0.5 * (DEGREES + size) * float(np.log1p(z @ z / DEGREES))

    here, at, crossed = inner.beta, density(inner.beta), 0
    out = np.empty((int(n), inner.size))
    for k in range(-BURN_IN, int(n)):
        z = draw.standard_normal(size) / np.sqrt(draw.chisquare(DEGREES) / DEGREES)
        there = inner.beta + root @ z
        value = density(there)
        if np.log(draw.random()) < value - at + proposed(here) - proposed(there):
            here, at, crossed = there, value, crossed + (k >= 0)
        there = here + STRIDE * (root @ draw.standard_normal(size))
        value = density(there)
        if np.log(draw.random()) < value - at:
            here, at = there, value
        if k >= 0:
            out[k] = here
    if crossed < 0.05 * n:
        warn(
            f"Only {crossed} of {n} proposals from the Gaussian approximation were accepted: the draws depend on each "
            "other. Ask for many more, and thin them.",
            stacklevel=3,
        )
    return out


# long: the arguments of `Gam.predict`, and how to draw
def draws(
    self: Gam,
    n: int = 1000,
    data: Any = None,
    kind: Literal["coefficients", "link", "response"] = "coefficients",
    offset: Any = None,
    unconditional: bool = True,
    rng: Any = 0,
    method: Literal["gaussian", "metropolis"] = "gaussian",
    terms: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
) -> np.ndarray:
    """Draws from the posterior: (n, p) of the coefficients, or (n, rows) of η or μ at rows.

    method="gaussian" draws from N(β̂, V), with the smoothing parameters' uncertainty if `unconditional`;
    "metropolis" from the posterior itself at the estimated smoothing parameters (mgcv's `gam.mh`): for few rows.

    Args:
        n: how many.
        data: a table with the formula's covariates; None for the fitted rows. With kind="link" or "response".
        kind: "coefficients", "link" (η) or "response" (μ).
        offset: the known part of η at new rows, as in `predict`.
        unconditional: whether to include the smoothing parameters' uncertainty.
        rng: seed or generator.
        method: "gaussian" or "metropolis".
        terms, exclude: terms to count alone, or to leave out, as in `predict`: terms="s(x)", offset=0.0 draws a
            smooth.

    >>> import numpy as np, unnorm as un
    >>> x = np.linspace(0.0, 1.0, 200)
    >>> fit = un.gam("y ~ s(x)", {"x": x, "y": np.sin(6 * x) + 0.1 * np.cos(99 * x)})
    >>> fit.draws(500, {"x": [0.2, 0.8]}, kind="response", rng=1).shape
    (500, 2)
    """
    if method not in METHODS:
        raise InputError(unknown("method", method, METHODS))
    labels = gam_predict.chosen(self, terms, exclude)
    if kind == "coefficients" and len(labels) < len(self.smoothed.slices):
        raise CombinationError(
            "terms= and exclude= choose what η is made of: pass kind='link' or 'response' with them."
        )
    if kind == "coefficients" and (data is not None or offset is not None):
        raise CombinationError(
            "data and offset= say at which rows η is drawn, and coefficients have none: pass kind='link' or 'response' "
            "with them, or leave them out."
        )
    unconditional = numerics.flag(unconditional, "unconditional") and self.method in ("REML", "ML")
    beta = metropolis(self, n, rng) if method == "metropolis" else coefficients(self, n, unconditional, rng)
    if kind == "coefficients":
        return beta
    if kind not in ("link", "response"):
        raise InputError(f"kind must be 'coefficients', 'link' or 'response'; got {kind!r}.")
    needed = tuple(dict.fromkeys(name for term in self.terms if term.label in labels for name in term.covariates))
    at = gam_predict.rows_of(self, data, offset, needed, labels)
    out = np.empty((len(beta), at.n))
    for here in gam_predict.chunks(at.n):
        part = {name: column[here] for name, column in at.columns.items()}
        rows = here.stop - here.start
        if self.smoothed.wide:
            found = gam_levels.rows_of(self, part, rows, labels)
            out[:, here] = found.dot(self.smoothed.design.to_flat(np.ascontiguousarray(beta.T))).T
        else:
            out[:, here] = beta @ gam_predict.design(self, part, rows, labels).T
    if at.offset is not None:
        out += at.offset
    return self.distribution.mean(out) if kind == "response" else out


def effect_columns(
    self: Gam, label: str, at: Any = None, level: float = 0.95, unconditional: bool = False, simultaneous: bool = False,
    rng: Any = 0,
) -> dict[str, np.ndarray]:  # fmt: skip
    """`effect` as plain arrays.

    Args:
        label: the term.
        at: points as a table with the term's covariates (an array where it has one); by default a grid over the
            data's range.
        level: of the bands.
        unconditional: whether to include the smoothing parameters' uncertainty.
        simultaneous: whether bands hold for all points of `at` at once, by simulation from the posterior with
            `rng`.
        rng: seed or generator.
    """
    term = self.term(label)
    points = gam_effects.grid(term, self.columns) if at is None else gam_effects.read_at(term, at)
    span = self.smoothed.slices[term.label]
    gam_effects.check_band(level, simultaneous, unconditional)
    if self.smoothed.wide:
        rows = gam_levels.term_rows(self, term, gam_effects.completed(term, points))
        band = gam_levels.banded(self, rows, unconditional, level, simultaneous, rng)
        return {**points, **gam_effects.raised(band, gam_effects.known(term, points))}
    if unconditional:
        V = self.required_unconditional().covariance[span, span]
    else:
        V = self.smoothed.covariance_block(term.label)
    return gam_effects.effect(term, points, self.smoothed.beta[span], V, level, simultaneous, rng)


def shifted(points: Columns, name: str, by: np.ndarray) -> Columns:
    return {**points, name: points[name] + by}


def steps(term: BuiltTerm, order: int, column: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Steps of the differences at these points. Curves may bend where the values of the covariate are dense (knots are
    quantiles), and a share of its range would step over that where its tails are long."""
    known = np.unique(column[np.isfinite(column)].astype(np.float64))
    if known.size < 2:
        return np.full(at.shape, max(STEPS[order], term.mesh))
    m = max(1, known.size // _LOCAL)
    spans = known[m:] - known[:-m]
    i = np.searchsorted(known, at)
    left, right = (spans[np.clip(start, 0, spans.size - 1)] for start in (i - m, i))
    least = max(term.mesh, 16.0 * float(np.spacing(np.max(np.abs(at), initial=0.0))))
    return np.maximum(STEPS[order] * np.minimum(left, right), least)


def nodes(term: BuiltTerm, points: Columns, name: str, order: int, column: np.ndarray) -> tuple[list[Columns], Any]:
    """Where the differences at these points are taken, and where they lean inwards. A first one has two places, one
    step after the point and one before; a second one has three round the point, and a fourth for the ends of the data:
    P-splines are straight beyond, and there the three begin at the point."""
    h, at = steps(term, order, column, points[name]), points[name]
    if order == 1:
        return [shifted(points, name, by) for by in (h, -h)], None
    known = column[np.isfinite(column)].astype(np.float64)
    low, high = known.min(initial=np.inf), known.max(initial=-np.inf)
    inside = (low <= at) & (at <= high) & (3.0 * h <= high - low) & (term.mesh == 0.0)
    lean = np.where(inside & (at - h < low), 1.0, np.where(inside & (at + h > high), -1.0, 0.0))
    step = np.where(lean == 0.0, h, lean * h)
    first = np.where(lean == 0.0, -h, 0.0)
    return [shifted(points, name, first + k * step) for k in range(4)], lean != 0.0


def differences(there: list[Any], where: list[np.ndarray], leaning: Any, less: Any) -> Any:
    """The derivative of what `there` has at the places `where`; `less(a, b, s)` is (a − b)/s. f″ is a straight line
    between knots, so that two second differences give it at the point where they begin: 2A − B."""
    if leaning is None:
        return less(there[0], there[1], where[0] - where[1])
    gaps = [after - before for before, after in pairwise(where)]  # as rounding left them
    slopes = [less(after, before, gap) for before, after, gap in zip(there, there[1:], gaps)]
    A, B = (less(slopes[i + 1], slopes[i], 0.5 * (gaps[i] + gaps[i + 1])) for i in (0, 1))
    return less(A, less(B, A, np.where(leaning, 1.0, np.inf)), np.ones(leaning.shape))


def derivative_columns(term: BuiltTerm, points: Columns, name: str, order: int, column: np.ndarray) -> np.ndarray:
    """C (r, p) with Cβ = ∂^order f/∂name^order, by differences of the basis, far closer than a standard error. Soap
    films are straight between the nodes of their lattice, and their differences go from node to node."""
    places, leaning = nodes(term, points, name, order, column)
    there = [gam_effects.design(term, rows) for rows in places]
    return differences(there, [rows[name] for rows in places], leaning, lambda a, b, s: (a - b) / s[:, None])


def derivative_rows(fit: Gam, term: BuiltTerm, points: Columns, name: str, order: int, column: np.ndarray) -> LevelRows:
    """The same where levels are many."""
    places, leaning = nodes(term, points, name, order, column)
    there = [gam_levels.term_rows(fit, term, gam_effects.completed(term, rows)) for rows in places]
    return differences(there, [rows[name] for rows in places], leaning, lambda a, b, s: a.less(b, s[:, None]))


def _known_slope(term: BuiltTerm, points: Columns, name: str, order: int, column: np.ndarray) -> np.ndarray | None:
    """∂^order/∂name^order of what the term is whatever its coefficients; None where nothing is known."""
    h = steps(term, order, column, points[name])
    after, here, before = (gam_effects.known(term, shifted(points, name, by)) for by in (h, 0.0 * h, -h))
    if after is None or here is None or before is None:
        return None
    return (after - before) / (2 * h) if order == 1 else (after - 2 * here + before) / h**2


# long: the arguments of the public method
def derivative(
    fit: Gam, label: str, at: Any, of: str | None, order: int, level: float, simultaneous: bool, unconditional: bool,
    rng: Any,
) -> dict[str, np.ndarray]:  # fmt: skip
    """See `Gam.derivative`."""
    term = fit.term(label)
    if term.parametric:
        raise CombinationError(
            f"derivative() is of smooths, and {term.label} is a parametric term: its slopes are among `coefficients`."
        )
    numeric = [name for name in term.smooth_covariates if gam_effects.is_numeric(fit.columns[name])]
    if not numeric:
        raise CombinationError(f"{term.label} has no numeric covariate to differentiate by.")
    name = numeric[0] if of is None and len(numeric) == 1 else of
    if name not in numeric:
        raise InputError(
            f"of= must name one of {', '.join(map(repr, numeric))}, covariates of {term.label}; got {of!r}."
        )
    if order not in (1, 2):
        raise InputError(f"order must be 1 or 2; got {order!r}.")
    points = gam_effects.grid(term, fit.columns) if at is None else gam_effects.read_at(term, at)
    if not gam_effects.is_numeric(points[name]):
        raise DataError(f"at= for {term.label!r}: column {name!r} must hold numbers.")
    column = np.asarray(fit.columns[name])
    gam_effects.check_band(level, simultaneous, unconditional)
    known = _known_slope(term, points, name, order, column)
    if fit.smoothed.wide:
        rows = derivative_rows(fit, term, points, name, order, column)
        band = gam_levels.banded(fit, rows, unconditional, level, simultaneous, rng)
        return {**points, **gam_effects.raised(band, known)}
    C = derivative_columns(term, points, name, order, column)
    span = fit.smoothed.slices[term.label]
    V = fit.vcov(unconditional=unconditional)[span, span]
    return {**points, **gam_effects.raised(_banded(C, fit.smoothed.beta[span], V, level, simultaneous, rng), known)}


def difference(
    fit: Gam, first: str, second: str, at: Any, level: float, simultaneous: bool, unconditional: bool, rng: Any
) -> dict[str, np.ndarray]:
    """f_first − f_second at the same points of their common covariates; see `Gam.difference`."""
    a, b = fit.term(first), fit.term(second)
    if gam_effects.coordinates(a) != gam_effects.coordinates(b):
        raise CombinationError(
            f"{a.label} and {b.label} are functions of different covariates: {gam_effects.coordinates(a)} and "
            f"{gam_effects.coordinates(b)}. Compare levels of one smooth, e.g. 's(x):ga' and 's(x):gb'."
        )
    if at is None:
        points = gam_effects.grid(a, fit.columns)
    else:  # each curve times its own by, where the points have it
        points = _without_levels((a, b), {**gam_effects.read_at(a, at), **gam_effects.read_at(b, at)})
    n = next(iter(points.values())).size
    gam_effects.check_band(level, simultaneous, unconditional)
    known, taken = gam_effects.known(a, points), gam_effects.known(b, points)
    if taken is not None:
        known = -taken if known is None else known - taken
    if fit.smoothed.wide:
        one, two = (gam_levels.term_rows(fit, term, gam_effects.completed(term, points)) for term in (a, b))
        band = gam_levels.banded(fit, one.less(two), unconditional, level, simultaneous, rng)
        return {**points, **gam_effects.raised(band, known)}
    C = np.zeros((n, fit.smoothed.size))
    C[:, fit.smoothed.slices[a.label]] += gam_effects.design(a, points)
    C[:, fit.smoothed.slices[b.label]] -= gam_effects.design(b, points)
    V = fit.vcov(unconditional=unconditional)
    return {**points, **gam_effects.raised(_banded(C, fit.smoothed.beta, V, level, simultaneous, rng), known)}


def _without_levels(terms: tuple[BuiltTerm, ...], points: Columns) -> Columns:
    """The points without their own levels, which say where the data's rows lie: both curves are compared at each."""
    for term in terms:
        if term.level is not None and term.level[0] in points:
            gam_effects.design(term, points)  # refuses a level that the data did not have
    levels = {term.level[0] for term in terms if term.level is not None}
    return {name: column for name, column in points.items() if name not in levels}


def _banded(
    C: np.ndarray, beta: np.ndarray, V: np.ndarray, level: float, simultaneous: bool, rng: Any
) -> dict[str, np.ndarray]:
    estimate, se = C @ beta, inference.standard_errors(C, V)
    if simultaneous:
        width = inference.simultaneous_multiplier(C, V, level, numerics.generator(rng))
    else:
        width = float(ndtri(0.5 * (1.0 + level)))
    return {"estimate": estimate, "se": se, "lower": estimate - width * se, "upper": estimate + width * se}
