"""`fit_pattern`: the log intensity, or conditional intensity, of a point pattern by logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from .._base.blas import single_threaded
from .._base.numerics import Rng
from .._base.words import option
from ..data.covariates import Covariate
from ..engine.gam_fit import gam
from ..engine.gam_result import Gam
from ..errors import DataError, InputError, NoEstimateError, listing, warn
from ..inference.sandwich import Robust, error_parts
from .dummies import Design, DrawnDummies, Dummies, draw
from .interactions import Interaction
from .interactions.base import Correction
from .places import Places, close_pairs
from .point_pattern import Pattern
from .result import PatternFit
from .rows import Covaried, PatternModel
from .scores import FittedRows, PatternScores

RESPONSE = "a data point"
ENOUGH, PEAK = 200, 0.1  # dummy points, and the share of ∫λ that one of them may carry
NEARBY = 10.0  # reaches within which the closest two points are sought, for a message
FEW = "None of {all} points is farther than {reach:.6g}, the reach of {interaction!r}, from the border"


# long: a public entry point
def fit_pattern(
    pattern: Pattern,
    terms: str = "1",
    *,
    covariates: Sequence[Covariate] = (),
    interaction: Interaction | None = None,
    correction: Correction = "border",
    points: Dummies | None = None,
    dummies: int | None = None,
    design: Design = "stratified",
    smoothing: Literal["REML", "ML", "GCV", "CV"] = "REML",
    rng: Rng = None,
) -> PatternFit:
    """Fit log λ(u | x) = terms of covariates at u + φᵀt(u, x∖u): Poisson without an interaction, else Gibbs.

    The data are told from dummy points of known intensity ρ by logistic regression with offset −log ρ (Baddeley et
    al. 2014), spatstat's `ppm(method = "logi")`; smooth terms are penalised, and their smoothing chosen from the data.

    Args:
        pattern: from `un.pattern`.
        terms: "1" (constant), "elev + grad", "s(elev) + factor(species)", "s(x, y, k=60) + offset(log(pop))": the
            coordinates are known as x and y, and marks and replicates by their columns.
        covariates: `un.Map`, `un.Expression` and `un.Function` objects that the terms may name.
        interaction: `un.Strauss(r)`, `un.Geyer(r, sat)`, `un.HardCore(r)`, `un.AreaInteraction(r)`, …; None: Poisson.
        correction: "border" leaves out rows within the interaction's reach of the border; "none" takes the pattern as
            all there is; "periodic" joins the sides of a rectangle; "isotropic" and "translate" weight close pairs for
            those that the border hides (all but the area interaction).
        points: dummy points from elsewhere, `un.Dummies(points, rho=…)`.
        dummies: how many to draw, all marks and replicates together; default 4 n, 10,000 or more, n from 400,000 on.
        design: how: "stratified", "poisson" or "binomial".
        smoothing: how the smoothing parameters are chosen.
        rng: seed or generator of the dummy points.

    Example:
        >>> import numpy as np, unnorm as un
        >>> xy = np.random.default_rng(1).random((300, 2))
        >>> fit = un.fit_pattern(un.pattern(xy, window=un.Box((0, 1), (0, 1))), rng=2)
        >>> bool(abs(fit.theta["(Intercept)"] - np.log(300)) < 0.01)
        True
    """
    if not isinstance(pattern, Pattern):
        raise InputError(f"pattern must be the result of un.pattern(…); got {type(pattern).__name__}.")
    if points is not None and dummies is not None:
        raise InputError("points= brings dummy points, and dummies= says how many to draw: give one of them.")
    model = PatternModel.of(pattern, terms, covariates, interaction, correction)
    drawn = draw(pattern, design, dummies, rng) if points is None else points.drawn(pattern)
    fitted = _solved(pattern, model, drawn, smoothing)
    scores = PatternScores(fitted)
    with single_threaded():
        errors = error_parts(scores, names=dict(enumerate(fitted.gam.coefficients)))
    assert errors is not None
    robust = errors.robust
    assert robust is not None
    errors = replace(errors, robust=Robust(lambda: robust.covariance, lambda: scores.robust_df, robust.refusal))
    notes = (*pattern.notes, *errors.notes, *fitted.gam.notes, *_unstable(model, fitted.gam), *_peaked(fitted))
    return PatternFit(fitted, errors, notes)


def _solved(pattern: Pattern, model: PatternModel, drawn: DrawnDummies, smoothing: str) -> FittedRows:
    """The rows, and the engine's fit of them."""
    everything = Places.joined([pattern.places, drawn.places])
    index = np.concatenate([np.arange(pattern.n), np.full(drawn.places.n, -1)])
    inside = np.flatnonzero(model.inside(pattern, everything))
    _enough(pattern, model, int(np.sum(index[inside] >= 0)), int(np.sum(index[inside] < 0)), drawn.brought)
    given = model.at(pattern, everything.take(inside), index[inside])
    kept = inside[given.allowed]
    given, places = given.take(given.allowed), everything.take(kept)
    _finite(pattern, model, given, index[kept] >= 0)
    log_rho = drawn.log_rho(places)
    found = _engine(model, given, index[kept] >= 0, given.known - log_rho, smoothing)
    return FittedRows(pattern, model, drawn, found, places, index[kept], kept, log_rho)


def _engine(model: PatternModel, given: Covaried, z: np.ndarray, offset: np.ndarray, smoothing: str) -> Gam:
    table: dict[str, Any] = {**given.columns, RESPONSE: z.astype(float)}
    terms: Any = replace(model.terms, offsets=())
    how: Any = smoothing
    try:
        return gam(terms, table, "binomial", response=RESPONSE, offset=offset, method=how)
    except NoEstimateError as error:
        if not model.statistics:
            raise
        raise NoEstimateError(
            f"{error} The two classes are the points and the dummy points, and {listing(model.statistics)} belongs to "
            f"{model.interaction!r}: where it is at fault, take other distances or limits."
        ) from error


def _finite(pattern: Pattern, model: PatternModel, given: Covaried, data: np.ndarray) -> None:
    """A statistic that is zero at every point of the data has an infinite coefficient, or none."""
    for name in model.statistics:
        t = given.columns[name]
        if np.any(t[data] != 0.0):
            continue
        what = f"{name} of {model.interaction!r} is 0 at each of the {int(data.sum()):,} points that are rows"
        nearest = _nearest(pattern, model)
        if np.any(t != 0.0):
            raise NoEstimateError(
                f"{what}, though not elsewhere: no points are close enough to interact{nearest}, and the estimate of "
                "its coefficient is infinite. Take a larger r, or forbid close points with un.HardCore(r)."
            )
        raise DataError(f"{what} and at the dummy points: nothing is within its reach{nearest}. Take a larger r.")


def _nearest(pattern: Pattern, model: PatternModel) -> str:
    near = close_pairs(pattern.places, pattern.places, NEARBY * model.reach, model.period(pattern))
    d = near.less(np.arange(pattern.n)).d
    return f" (the closest two are {d.min():.6g} apart)" if d.size else ""


def _enough(pattern: Pattern, model: PatternModel, n: int, m: int, brought: bool) -> None:
    if n and m:
        return
    if not m and n:
        more = "points= must bring more of them" if brought else f"pass more of them, {option('dummies', 10_000)}"
        raise DataError(f"No dummy point is left to compare the data with: {more}.")
    if model.interaction is None:
        raise DataError("There are no points to fit.")
    few = FEW.format(all=pattern.n, reach=model.reach, interaction=model.interaction)
    other = "isotropic" if model.interaction.weighs else "none"
    raise DataError(f"{few}. Take a smaller r, or {option('correction', other)}.")


def _unstable(model: PatternModel, found: Gam) -> tuple[str, ...]:
    if model.interaction is None or not model.statistics:
        return ()
    phi = np.array([found.coefficients[name] for name in model.statistics])
    if model.interaction.stable(phi):
        return ()
    note = (
        f"The estimated interaction attracts, and {model.interaction!r} is a process only where it does not: the fit "
        "describes the pattern's clustering but nothing can be simulated from it. Use un.Geyer or un.AreaInteraction."
    )
    warn(note, stacklevel=3)
    return (note,)


def _peaked(fitted: FittedRows) -> tuple[str, ...]:
    """Where one dummy point carries much of ∫λ, the integral is not known, and may be infinite."""
    dummy = np.flatnonzero(~fitted.data)
    log_share = np.asarray(fitted.gam.linear_predictor)[dummy]  # log λ − log ρ
    if len(dummy) < ENOUGH:
        return ()
    share = np.exp(log_share - log_share.max())
    k = int(np.argmax(share))
    if share[k] < PEAK * share.sum():
        return ()
    x, y = fitted.places.xy[dummy[k]]
    note = (
        f"One of {len(dummy):,} dummy points, at ({x:.6g}, {y:.6g}), carries {share[k] / share.sum():.0%} of the "
        "integral of the fitted intensity: it has a sharp peak there, or a pole whose integral is infinite. Bound the "
        "covariate or offset, or take many more dummy points."
    )
    warn(note, stacklevel=3)
    return (note,)
