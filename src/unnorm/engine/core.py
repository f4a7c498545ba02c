"""The engine's entry points: `build_design` (terms × columns → rows), `smooth_fit` (one problem), `fit_many`
(several)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.blas import single_threaded
from .._base.threads import BRIEF, cores, in_turn, run_tasks
from ..errors import InputError, listing, unknown, warn
from . import families
from .approach import approach
from .arrow import Arrow, ArrowInverse, Blocks, Singular, tall
from .criteria import Criterion, Laplace, PredictionError
from .design import Design
from .outer import Clock, Found, PenalisedRows, smooth
from .penalties import Penalties
from .restarts import limits, reconsider
from .sides import Sides, sides
from .smoothed import INTERCEPT, Smoothed

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm, Columns
    from .device.spec import Device

__all__ = ["INTERCEPT", "Smoothed", "build_design", "fit_many", "smooth_fit"]


METHODS = ("REML", "ML", "GCV", "CV")
_TOLERANCE = 1e-5, 2.5e-3  # nats that the last step gains, with few rows and many; it leaves a 25th or less (measured)
_MANY = 20_000  # rows from which a first fit on some of the contexts pays, and passes cost more than digits
_SERIAL = 12_000  # rows up to which a thread costs more to wake than it saves
_FEW = 6_000  # rows of that first fit, at least
_PER_COLUMN = 60  # and for each column
_NOTHING = 1e-13  # of the null deviance: what is left of an exact fit is rounding
_STRAY = 20.0  # of η: a mean 5·10⁸ times as large as any seen
_COSTLY = 30  # non-zeros in a row from which XᵀWX costs more than two passes without it (12: twice one, 60: four times)


# long: what is known of the rows
def build_design(
    terms: Sequence[BuiltTerm],
    columns: Columns,
    *,
    intercept: bool = True,
    context: np.ndarray | None = None,
    rows: int | None = None,
    threads: int | None = None,
    whole_contexts: bool = False,
    all_rows: int | None = None,
    exact: bool = False,
) -> Design:
    """Rows in compact form. `context` (n,): rows of one context share the covariates of context-level terms.

    Without it, contexts are found where a term of several covariates takes at most n/4 distinct combinations of them.
    `rows` = n is needed only where there are no terms. `whole_contexts`: a factor that varies within a context does not
    split its rows, so that there is a run for each context. `all_rows`: of a block, how many rows there are in all.
    `exact`: columns to rounding, where those of fewer breaks are too coarse (`resolution`).
    """
    from .build import build

    with single_threaded():
        threads = cores() if threads is None else threads
        return build(terms, columns, intercept, context, rows, threads, whole_contexts, all_rows, exact)


# long: the engine's entry point
def smooth_fit(
    design: Design,
    y: np.ndarray | None,
    family: str = "binomial",
    *,
    weights: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    method: str = "REML",
    sp: Mapping[str, float] | Sequence[float] | None = None,
    groups: np.ndarray | None = None,
    folds: int = 10,
    rng: Any = 0,
    start: Smoothed | None = None,
    threads: int | None = None,
    max_outer: int = 200,
    link: str | None = None,
    theta: float | None = None,
    rough: bool = False,
    known: Sides | None = None,
    device: Device | None = None,
    client: Any = None,
) -> Smoothed:
    """Fit one penalised model and choose its smoothing parameters.

    y, weights, offset: in the caller's row order, as `columns` were. `sp`: smoothing parameters that the user fixes,
    by penalty label or one per penalty (negative = estimate), on top of the terms' own `fixed_sp`. `groups` (n,),
    `folds`, `rng` serve method="CV" (rows of one group, by default of one context, stay together). `start`: a fit of
    the same terms to start from. `link`: "probit" or "cloglog" for a binomial response; `theta`: of a negative binomial
    one. `rough`: only until β is within about a standard error, as the start of another fit. `known`: of a design in
    parts, which has its response to itself (`PartitionedDesign.sides`), in place of y, weights and offset. `device`:
    where the passes over the rows are made, if not here. `client`: of workers that share the folds of method="CV".

    Raises NotIdentifiedError (rank deficiency, names the terms), NoEstimateError (separation, names the term); warns
    UnnormWarning where it stops before convergence (also in `.converged`, `.reason`).
    """
    with single_threaded():
        return _smooth_fit(
            design, y, (family, link, theta), weights, offset, method, sp, groups, folds, rng, start, threads,
            max_outer, rough, known, device, client,
        )  # fmt: skip


# long: the entry point's arguments, passed on
def _smooth_fit(
    design: Design, y: np.ndarray | None, likelihood: tuple[str, str | None, float | None], weights: np.ndarray | None,
    offset: np.ndarray | None, method: str,
    sp: Mapping[str, float] | Sequence[float] | None, groups: np.ndarray | None, folds: int, rng: Any,
    start: Smoothed | None, threads: int | None, max_outer: int, rough: bool,
    known_sides: Sides | None, device: Device | None, client: Any,
) -> Smoothed:  # fmt: skip
    began = time.perf_counter()
    if method not in METHODS:
        raise InputError(unknown("method", method, METHODS))
    clock = Clock()
    family, link, theta = likelihood
    side = sides(design, y, family, link, theta, weights, offset) if known_sides is None else known_sides
    rows, count, constant, saturated = side.rows, side.count, side.constant, side.saturated
    fixed = _fixed(design.penalties, design.fixed, sp)
    free = np.isnan(fixed)
    threads = _threads(design, cores() if threads is None else threads)
    code, known = families.code_of(family, link), family not in families.UNKNOWN_SCALE
    if not known and count <= (whole := int(design.penalties.free.sum())):
        raise InputError(
            f"A {family} response needs more rows than unpenalised coefficients, as the rest tell its scale; there are "
            f"{count:,} rows and {whole:,} coefficients. Gather more rows, or leave terms out."
        )
    problem = PenalisedRows(
        design, rows, family, code, constant, count, free, threads, clock, known, 0.0 if known else saturated
    )
    criterion: Criterion = (
        PredictionError(saturated - problem.saturated + constant)
        if method in ("GCV", "CV")
        else Laplace(method != "ML")
    )

    beta, level = np.zeros(design.size), np.zeros(design.size)
    if INTERCEPT in design.slices:
        beta[0] = side.null_intercept
    if family == "gaussian" and rows.y.size:
        problem, level = _less_level(problem, beta)
        beta = level
    if device is not None:
        problem = _moved(problem, device, method, link, known_sides is not None)
    rho: np.ndarray | None = None
    if start is not None:
        beta, rho = design.to_flat(start.beta), start.rho
    elif design.rows >= _MANY and family != "gaussian":
        since = time.perf_counter()
        beta, rho, problem = _from_some(problem, criterion, beta, fixed, max_outer)
        clock.add("first fit on some contexts", since)
    beta = beta - level
    rho_unset = rho is None
    if not free.all():
        rho = np.where(free, 0.0 if rho is None else rho, fixed)
        if free.any() and rho_unset:
            rho = _mixed_start(problem, beta, fixed)
    tolerance = _TOLERANCE[design.rows >= _MANY]
    found = smooth(problem, criterion, beta, rho, tolerance, max_outer, rough)
    if free.any() and method != "CV" and not rough:
        since = time.perf_counter()
        found = reconsider(problem, criterion, found, tolerance, max_outer)
        clock.add("restarts", since)
    held: tuple[float, np.ndarray, np.ndarray] | None = None
    if method == "CV" and free.any():
        from .crossval import choose

        since = time.perf_counter()
        found, value, gradient, hessian = choose(problem, found, groups, folds, rng, tolerance, max_outer, client)
        held = 2.0 * (saturated - (-value)) / count, gradient, hessian
        clock.add("cross-validation", since)
    if not found.converged:
        warn(found.reason, stacklevel=3)
    result = _result(problem, criterion, found, side, method if free.any() else "fixed")
    if level.any():
        result = replace(result, beta=result.beta + design.to_user(level))
    if not known and result.deviance <= _NOTHING * result.null_deviance:
        warn(
            "The terms fit the response to rounding, so that its scale is zero and standard errors, tests and the "
            "criterion mean nothing: is the response computed from the covariates?",
            stacklevel=3,
        )
    if held is not None:
        flat = free & (np.abs(np.diag(held[2])) < 1e-3) & (np.abs(held[1]) < 1e-3)
        limit = np.where(flat, 1, 0)
        result = replace(result, score=held[0], gradient=held[1], hessian=held[2], flat=flat, limit=limit)
    clock.seconds["fit"] = time.perf_counter() - began
    return result if device is None else _back(result, problem, design, device)


def _threads(design: Design, threads: int) -> int:
    """How many of the threads gain something."""
    return 1 if design.rows <= _SERIAL else threads


def _moved(problem: PenalisedRows, device: Device, method: str, link: str | None, parts: bool) -> PenalisedRows:
    """The problem with its rows on the device."""
    from .device.placing import on_device, refuse

    refuse(method, link, parts)
    since = time.perf_counter()
    moved = replace(problem, design=on_device(problem.design, problem.rows, device))
    problem.clock.add("rows to the device", since)
    return moved


def _back(result: Smoothed, problem: PenalisedRows, here: Design, device: Device) -> Smoothed:
    """The result with its rows where they were, and a sentence on where the passes were made."""
    from .device.error import said

    return replace(result, design=here, notes=(*result.notes, said(problem, result, device)))


def _less_level(problem: PenalisedRows, beta: np.ndarray) -> tuple[PenalisedRows, np.ndarray]:
    """Gaussian rows less Xβ₀, and β₀, of which only unpenalised coefficients are not zero: a criterion made of sums of
    squares would lose the digits of y = 10⁹ + f. β₀ is the intercept; without one, what strong smoothing leaves."""
    from .outer import starting_rho

    design, level = problem.design, beta
    if not level.any() and (free := design.penalties.free).any():
        cross, score = (found := design.sweep(problem.rows, problem.code, level, problem.threads))[2], found[1]
        strong = np.exp(starting_rho(cross, design.penalties) + 10.0)
        try:
            level = np.where(free, design.penalties.added(cross, strong).invert().dot(score), 0.0)
        except Singular:  # the fit will say which terms
            return problem, level
    if not level.any():
        return problem, level
    design, rows = design.remaining(problem.rows, level, problem.threads)
    return replace(problem, design=design, rows=rows), level


def _fixed(penalties: Penalties, own: np.ndarray, sp: Mapping[str, float] | Sequence[float] | None) -> np.ndarray:
    """log λ where it is fixed, nan where it is to be estimated."""
    values = own.copy()
    if isinstance(sp, Mapping):
        for label, value in sp.items():
            if label not in penalties.labels:
                raise InputError(unknown("A smoothing parameter's label", label, penalties.labels))
            values[penalties.labels.index(label)] = _numbers(value)
    elif sp is not None:
        given = _numbers(sp)
        if given.shape != (penalties.count,):
            raise InputError(
                f"sp must have one value for each of the {penalties.count} penalties "
                f"({listing(penalties.labels)}); got shape {given.shape}."
            )
        values = np.where(given >= 0, given, values)
    values = np.where(values < 0, np.nan, values)
    return np.log(np.maximum(values, 1e-100))  # zero: no penalty


def _numbers(sp: Any) -> np.ndarray:
    """Smoothing parameters as numbers; None is to be estimated, as what is negative is."""
    given = [-1.0 if one is None else one for one in sp] if isinstance(sp, list | tuple) else -1.0 if sp is None else sp
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array(np.nan)
    if not np.isfinite(found).all():
        raise InputError(f"sp takes finite numbers, negative or None where they are to be estimated; got {sp!r}.")
    return found


def _mixed_start(problem: PenalisedRows, beta: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Starting ρ from the data where it is free, the user's where it is fixed."""
    from .outer import starting_rho

    cross = problem.design.sweep(problem.rows, problem.code, beta, problem.threads)[2]
    return np.where(np.isnan(fixed), starting_rho(cross, problem.design.penalties), fixed)


def _from_some(
    problem: PenalisedRows, criterion: Criterion, beta: np.ndarray, fixed: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray | None, PenalisedRows]:
    """β and ρ from every k-th run (and these from some of those, where they are many): most iterations then happen on
    few rows. λ = φ/σ² does not depend on how many rows there are. With them the problem, which may be known to be
    identified."""
    from ..errors import EstimationError

    design = problem.design
    least = max(_FEW, _PER_COLUMN * design.size, design.rows // 10)
    every = design.rows // least
    if every < 3 or design.levels:  # with levels, p × p algebra is the larger part
        return beta, None, problem
    part, some = design.some(problem.rows, every)
    small = PenalisedRows(
        part, some, problem.family, problem.code, 0.0, part.rows, problem.free, _threads(part, problem.threads),
        Clock(), problem.scale_known, 0.0 if problem.scale_known else families.saturated(problem.family, some),
    )  # fmt: skip
    begun, start = beta, None
    try:
        if _MANY <= part.rows <= design.rows // 2:  # a few long runs may be all of it
            begun, start, small = _from_some(small, criterion, beta, fixed, most)
        if start is None and not problem.free.all():
            start = _mixed_start(small, begun, fixed)
        found = smooth(small, criterion, begun, start, 0.05, most, rough=True)
    except EstimationError:  # too few rows for these terms: the full fit will say what is wrong, if anything is
        return beta, None, problem
    if _strays(problem, small, found.at.state.beta):
        return beta, None, problem
    beta, rho = found.at.state.beta, found.at.state.rho
    if design.nonzeros >= _COSTLY:
        weights = problem.rows.weights
        more = float(weights.sum() / some.weights.sum()) if weights.size else design.rows / part.rows
        beta, rho = approach(problem, criterion, beta, rho, Arrow(more * found.working.cross.shared))
    return beta, rho, replace(problem, identified=True)


def _strays(problem: PenalisedRows, small: PenalisedRows, beta: np.ndarray) -> bool:
    """Whether β of some contexts puts η at others far beyond all that it has seen, as a curve without a penalty may
    where those have no rows: means are then infinite or zero, and nothing leads back."""
    design = problem.design
    loose = any(not term.parametric and (not term.penalties or 0.0 in term.fixed_sp) for term in design.terms)
    if not loose or design.most(beta) < _STRAY:
        return False
    (low, high), (least, most) = design.ends(beta, problem.threads), small.design.ends(beta, small.threads)
    return max(high - most, least - low) > _STRAY


def _result(
    problem: PenalisedRows,
    criterion: Criterion,
    found: Found,
    side: Sides,
    method: str,
) -> Smoothed:
    """Everything that is reported, in the terms' coordinates."""
    since = time.perf_counter()
    design, penalties = problem.design, problem.design.penalties
    state, working = found.at.state, found.working
    lam = np.exp(state.rho)
    step = state.beta - working.beta
    loglik = working.loglik + float(step @ working.score) - 0.5 * float(step @ working.cross.dot(step))
    loglik += problem.saturated
    deviance = 2.0 * (side.saturated - loglik)
    if not problem.scale_known:
        deviance = max(deviance, 2.0 * working.least)
    edf, edf1 = _degrees(design, penalties, state.inverse, lam)
    scale, full = 1.0, loglik + problem.constant
    if not problem.scale_known:
        n = problem.count
        full = -0.5 * n * (np.log(2 * np.pi * deviance / n) + 1.0) + problem.constant
        scale = deviance / max(n - edf.sum(), 1e-300)
        if problem.family != "gaussian":
            eta = design.predict(state.beta, problem.threads)
            scale = families.pearson_scale(problem.rows, eta, n - float(edf.sum()))
    free = problem.free
    hessian = np.where(np.outer(free, free), found.at.hessian, 0.0)
    limit = limits(found, free)
    problem.clock.add("result", since)
    counts = problem.clock.counts
    return Smoothed(
        design=design, family=problem.family, method=method, beta=design.to_user(state.beta), slices=design.slices,
        sp_labels=penalties.labels, rho=state.rho, estimated=free, flat=limit != 0, limit=limit,
        score=float(criterion.report(working, found.at.value)),
        gradient=np.where(free, found.gradient, 0.0), hessian=hessian, dbeta_drho=design.to_user(state.slopes),
        loglik=full, deviance=deviance, null_deviance=2.0 * (side.saturated - side.null_loglik), scale=scale,
        scale_known=problem.scale_known,
        rows=problem.count, edf=edf, edf1=edf1, converged=found.converged, reason=found.reason,
        iterations={"outer": found.iterations, **{what: counts.get(what, 0) for what in ("passes", "leverage passes")}},
        timings=problem.clock.seconds, inverse=state.inverse, cross=working.cross, offset=side.offset,
    )  # fmt: skip


def _degrees(
    design: Design, penalties: Penalties, inverse: ArrowInverse, lam: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """diag F and diag(2F − FF) in the terms' coordinates: F = I − PS, 2F − FF = I − PSPS.

    By blocks a of the arrow, P_ab = A_a Σ A_bᵀ + δ_ab H_aa⁻¹ (A_0 = −I, no H_00⁻¹), so that with K = Σ_b A_bᵀS_bA_b

        (PSP)_aa = A_a ΣKΣ A_aᵀ + P_aa S_a P_aa − T_a S_a T_a,   T_a = A_a Σ A_aᵀ,

    and no block is met with any other.
    """
    at, sigma = penalties.starts, inverse.sigma
    if penalties.levels == 0 and penalties.diagonals is not None:
        return _plain_degrees(design, sigma * (penalties.diagonals @ lam))
    shared, own = penalties.parts(lam)
    if penalties.levels == 0:
        return _plain_degrees(design, sigma @ shared)
    slopes = inverse.slopes if inverse.stacked is None or not penalties.alike else inverse.stacked[1]
    K = shared + _through(slopes, own)
    middle = sigma @ K @ sigma
    products = [(sigma @ shared, middle @ shared)]  # PS and PSPS on each diagonal block
    if penalties.alike:
        products.append(_level_products(inverse, middle, own[0]))
    else:
        for A, D, s in zip(inverse.slopes, inverse.own, own):
            through = A @ sigma @ A.T
            whole = D + through
            ps = whole @ s
            products.append((ps, (A @ middle @ A.T + whole @ ps.T - through @ s @ through) @ s))
    edf, edf1 = np.empty(design.size), np.empty(design.size)
    starts = np.array([place.flat.start for place in design.placements])
    for place, k in zip(design.placements, np.searchsorted(at, starts, side="right") - 1):
        inside = slice(place.flat.start - at[k], place.flat.stop - at[k])
        u = place.rotation
        for out, product in zip((edf, edf1), products[k]):
            out[place.user] = 1.0 - np.sum((u @ product[..., inside, inside]) * u, axis=-1)
    return edf, edf1


def _plain_degrees(design: Design, ps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same without levels, from PS."""
    edf, edf1 = np.empty(design.size), np.empty(design.size)
    for place in design.placements:
        u = place.rotation
        for out, product in ((edf, ps[place.flat, place.flat]), (edf1, ps[place.flat] @ ps[:, place.flat])):
            out[place.user] = 1.0 - np.sum((u @ product) * u, axis=-1)
    return edf, edf1


def _through(slopes: Blocks, own: Blocks) -> np.ndarray:
    """Σ_b A_bᵀS_bA_b over the levels."""
    if isinstance(slopes, np.ndarray):
        flat = tall(slopes)
        return flat.T @ np.matmul(own[0], slopes).reshape(flat.shape)
    return np.asarray(sum((A.T @ s @ A for A, s in zip(slopes, own)), 0.0))


def _level_products(inverse: ArrowInverse, middle: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """PS and PSPS on the diagonal blocks of all levels, which have the same penalty."""
    assert inverse.stacked is not None
    (own, A), whole = inverse.stacked, inverse.every[1]
    through, ps = whole - own, whole @ s
    around = np.matmul(A @ middle, A.transpose(0, 2, 1))
    return ps, (around + np.matmul(whole, ps.transpose(0, 2, 1)) - through @ s @ through) @ s


def fit_many(problems: Sequence[Mapping[str, Any]], *, threads: int | None = None) -> list[Smoothed]:
    """Independent problems, as many at a time as there are cores; the results in order.

    Each problem is a mapping with `design`, or `terms` and `columns` (and `intercept`, `context`, `rows`), and the
    arguments of `smooth_fit`. `terms` may be a function of `columns` (`spec.build`), which is then called by the
    worker.
    """
    threads = cores() if threads is None else threads
    inner = 1 if threads > 1 and len(problems) > 1 else threads

    def one(problem: Mapping[str, Any]) -> Smoothed:
        with in_turn():
            return fitted(problem)

    def fitted(problem: Mapping[str, Any]) -> Smoothed:
        rest = dict(problem)
        design = rest.pop("design", None)
        if design is None:
            terms, columns = rest.pop("terms"), rest.pop("columns")
            options = {name: rest.pop(name) for name in ("intercept", "context", "rows") if name in rest}
            built: Any = terms(columns) if callable(terms) else terms
            design = build_design(built, columns, threads=inner, **options)
        return smooth_fit(design, threads=inner, **rest)

    with single_threaded():
        if threads <= 1 or len(problems) <= 1:
            return [fitted(problem) for problem in problems]
        sizes = [len(problem["y"]) for problem in problems]
        order = sorted(range(len(problems)), key=lambda i: -sizes[i])  # long ones first
        import scipy.linalg  # noqa: F401  (it starts threads, which must not stay on the core of a short fit)

        brief = max(sizes) <= BRIEF
        found = dict(zip(order, run_tasks(one, [(problems[i],) for i in order], threads, brief=brief)))
        return [found[i] for i in range(len(problems))]
