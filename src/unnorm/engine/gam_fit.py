"""`gam`: a generalised additive model fitted to rows as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._base import numerics
from .._base.blas import single_threaded
from .._base.frames import table as as_table
from .._base.memory import in_words
from ..errors import CombinationError, InputError, unknown, warn
from . import gam_rows
from .ahead import compile_ahead
from .device.spec import Device, device_of
from .gam_files import is_path, opened, wanted
from .gam_frames import frame_rows, is_frame, workers_of
from .gam_parts import at_home, designed
from .gam_result import Gam
from .placing import sample
from .resources import Resources
from .response import response as response_of

if TYPE_CHECKING:
    from ..terms.specs import Term, Terms
    from .smoothed import Smoothed

METHODS = ("REML", "ML", "GCV", "UBRE", "CV")


# long: the entry point
def gam(
    formula: str | Term | Terms,
    data: Any,
    family: Literal["binomial", "poisson", "gaussian", "nb", "quasipoisson"] = "gaussian",
    *,
    link: Literal["logit", "probit", "cloglog", "log", "identity"] | None = None,
    theta: float | None = None,
    response: str | None = None,
    offset: Any = None,
    weights: Any = None,
    method: Literal["REML", "ML", "GCV", "UBRE", "CV"] = "REML",
    sp: Mapping[str, float] | Sequence[float] | None = None,
    knots: Mapping[str, Any] | None = None,
    periods: Mapping[str, Any] | None = None,
    max_knots: int | None = None,
    select: bool = False,
    missing: Literal["error", "drop"] = "error",
    groups: Any = None,
    folds: int = 10,
    rng: Any = 0,
    threads: int | None = None,
    memory: Any = None,
    workers: Any = None,
    device: Literal["cpu", "gpu"] | Device | None = None,
) -> Gam:
    """Fit g(E y) = β₀ + Σ_j f_j(x_j) + offset by penalised likelihood, the smoothing chosen from the data.

    β̂ maximises ℓ(β) − ½ Σ_k λ_k βᵀS_kβ, and λ minimises the criterion of `method`; bases, constraints and criteria are
    mgcv's, so that the same formula means the same model.

    Args:
        formula: "y ~ s(x, k=20) + s(angle, bs='cc') + te(a, b) + factor(g)", read against the known names and never
            evaluated; or terms (`un.s("x") + un.factor("g")`) with `response=`. Columns may be computed, `s(log(x))`,
            `I(x^2)`, `offset(log(days))`, `log(y) ~ …`; `a:b` and `a*b` are products; `cbind(k, n - k)` on the left
            are successes and failures.
        data: a pandas, polars or pyarrow table, a mapping of columns, or the path of a Parquet or CSV file, of a folder
            of such files or a pattern (`rows-*.parquet`). Files may be larger than memory: their rows are read a
            stretch at a time, and the fit keeps up to two million of them. Also a Dask data frame, whose
            partitions stay with the workers of the present client, or of workers=.
        family: "binomial" (0/1, or proportions with weights = trials), "poisson", "gaussian"; for overdispersed counts
            "nb" (negative binomial, Var y = μ + μ²/θ) or "quasipoisson" (Var y = φμ).
        link: of a binomial response "logit" (default), "probit" or "cloglog"; the others have one link each.
        theta: θ of family "nb", where it is known; by default it is estimated, by `method` (REML or ML).
        response: the response's column, where `formula` does not name it.
        offset: known part of the linear predictor, an array or a column's name, added to the formula's `offset(…)`.
            `predict` reads named columns again.
        weights: prior weights, an array or a column's name.
        method: "REML" or "ML" (Laplace approximate), "GCV" (the same as "UBRE" where the scale is known), or "CV":
            `folds`-fold cross-validation of the deviance, which keeps rows of one of `groups` together.
        sp: smoothing parameters to hold fixed, by penalty label or one for each penalty (negative: estimate).
        knots: covariate → knots; for cyclic terms the two ends, e.g. {"angle": (-pi, pi)}.
        periods: covariate → period or (low, high), for cyclic terms without knots; s(x) without bs= is then cyclic.
        max_knots: thin-plate knots as mgcv places them: every distinct row, or so many drawn at random (the same ones
            each time). By default every one of up to 2,000 in tables of up to 5,000 rows; larger tables get means of
            groups of rows, which are quicker and, for curves, within .02 standard errors of every row.
        select: a second penalty on what each smooth's own penalty leaves alone (straight lines), so that terms that the
            data do not need vanish.
        missing: "error" refuses rows with missing values, "drop" leaves them out and says so in `notes`.
        groups, folds, rng: for method="CV".
        threads: at most so many; by default all cores.
        memory: what the rows may take, e.g. "2GB", beside the table itself; by default most of what is free. Rows that
            do not fit are made again from the table in each pass over them. The estimates are the same to 1e-10.
        workers: a number of processes, or a client of `dask.distributed` (`pip install 'unnorm[dask]'`): the rows stay
            with them, and each pass sends coefficients out and sums back. With method="CV" they share the folds.
        device: "gpu" makes the passes over the rows on a GPU through JAX, in float64, with the same result to 1e-8;
            `un.Device(precision="float32")` is quicker and says what it cost. Not for terms of levels or method="CV".

    Returns:
        A frozen `Gam`.

    >>> import numpy as np, unnorm as un
    >>> rng = np.random.default_rng(1)
    >>> x = rng.random(400)
    >>> fit = un.gam("z ~ s(x)", {"x": x, "z": rng.random(400) < 0.5 + 0.4 * np.sin(6 * x)}, family="binomial")
    >>> 2.0 < fit.edf["s(x)"] < 6.0
    True
    """
    from ..terms import arithmetic
    from ..terms.parser import parse
    from .core import build_design, smooth_fit
    from .overdispersion import choose, is_poisson
    from .resolution import too_coarse

    where = device_of(device)
    compile_ahead()
    distribution = response_of(family, link, theta)
    _check_family(family, method, theta)
    if method not in METHODS:
        raise InputError(unknown("method", method, METHODS))
    if method == "UBRE" and not distribution.scale_known:
        raise CombinationError(f"UBRE needs a known scale, and that of {family} data is estimated: use method='GCV'.")
    if groups is not None and method != "CV":
        raise CombinationError(
            f"groups= says which rows method='CV' keeps together; with method={method!r} leave it out."
        )
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1):
        raise InputError(f"threads must be a whole number, at least 1; got {threads!r}. Leave it out for all cores.")
    select = numerics.flag(select, "select")
    terms = parse(formula, table=True)
    if isinstance(periods, Mapping) and (strange := [name for name in periods if name not in terms.columns]):
        raise InputError(unknown("A name in periods", strange[0], terms.columns))
    if response is not None and not isinstance(response, str):
        raise InputError(f"response must be the name of a column, e.g. response='y'; got {type(response).__name__}.")
    if response is not None and terms.response is not None and response != terms.response:
        raise InputError(f"The formula's response is {terms.response!r} and response= says {response!r}: give one.")
    if response is not None:
        terms = replace(terms, response=response)
    if terms.response is None:
        raise InputError(f"The formula {str(terms)!r} names no response. Write 'y ~ {terms}', or pass response='y'.")
    counted = arithmetic.counts(terms.response) is not None
    if counted and family != "binomial":
        raise CombinationError(f"{terms.response} is a binomial response; family= says {family!r}.")
    if terms.response in terms.columns:
        raise InputError(f"The response {terms.response!r} is also a covariate of {str(terms)!r}.")
    known = terms.offsets if offset is None else (*terms.offsets, offset)
    with ExitStack() as stack:
        stack.enter_context(in_words("Pass memory='…' (as '1GB'), fit a file, or take fewer rows or functions."))
        stack.enter_context(single_threaded())  # once: terms, design and fit each ask for it
        stream: Any = None
        resources = stack.enter_context(Resources(memory, workers_of(data, workers), threads).opened())
        if is_path(data) or is_frame(data):
            read = wanted(terms, weights, known, groups, missing)
            stream = stack.enter_context(
                opened(data, read) if is_path(data) else frame_rows(data, read, resources.workers)
            )
            (rows, n), backend = stream.sampled(), None
        else:
            resources = resources.choosing(method)
            table = as_table(data)
            rows = gam_rows.read(
                table, terms.response, terms.columns, weights, known or None, groups, missing, "formula"
            )
            if rows.weights is not None:
                gam_rows.check_total(float(rows.weights.sum()), int(np.sum(rows.weights > 0.0)))
            n, backend = rows.y.size, table.backend
        distribution.check(rows.y if rows.weights is None else rows.y[rows.weights > 0.0], terms.response)
        if family == "binomial" and rows.weights is None and np.any((rows.y > 0.0) & (rows.y < 1.0)):
            warn(
                f"The response {terms.response!r} has proportions but no weights= were given: each counts as one "
                "trial. Pass the numbers of trials as weights.",
                stacklevel=2,
            )
        placed = sample(rows.columns, n) if stream is None else rows.columns
        built = terms.build(
            placed,
            knots=knots,
            periods=periods,
            max_knots=max_knots,
            categories=rows.categories,
            select=select,
            links=True,
        )
        known_part = gam_rows.plus_fixed(rows.offset, built, rows.columns)
        if not built and not terms.intercept:
            raise InputError("The model has neither terms nor an intercept: there is nothing to estimate.")
        own_link = None if distribution.link in ("logit", "log", "identity") else distribution.link
        notes, theta_known = rows.notes, theta is not None
        design: Any
        design, side = designed(rows, placed, built, terms.intercept, (family, own_link, method), resources, stream, n)

        def fit_at(theta: float | None, start: Smoothed | None = None) -> Smoothed:
            return smooth_fit(
                design, rows.y, family, known=side, weights=rows.weights, offset=known_part,
                method="GCV" if method == "UBRE" else method, sp=sp, groups=rows.groups, folds=folds, rng=rng,
                start=start, threads=threads, link=own_link, theta=theta, device=where,
                client=resources.folds,
            )  # fmt: skip

        def fitted() -> tuple[float | None, Smoothed]:
            return choose(fit_at, rows.y) if family == "nb" and not theta_known else (theta, fit_at(theta))

        theta, smoothed = fitted()
        if side is None and where is None:
            distribution = response_of(family, link, theta)
            if too_coarse(smoothed, distribution, rows.columns, rows.y, rows.weights):
                design = build_design(built, rows.columns, intercept=terms.intercept, rows=n, exact=True)
                theta, smoothed = fitted()
        if theta is not None and not theta_known and is_poisson(theta, rows.y):
            notes += ("theta is infinite: the counts are not overdispersed, and family='poisson' fits as well.",)
        if side is not None:
            smoothed = at_home(smoothed, design, known_part, resources, None if stream is None else rows)
        return Gam(
            formula=str(terms),
            family=family,
            method="UBRE" if method == "GCV" and distribution.scale_known else method,
            smoothed=smoothed,
            terms=tuple(built),
            columns=rows.columns,
            response=terms.response,
            y=rows.y,
            weights=rows.weights,
            offset=known_part,
            offset_names=known if all(isinstance(one, str) for one in known) else None,
            backend=backend,
            notes=(*notes, *smoothed.notes),
            link=own_link,
            theta=theta,
            theta_known=theta_known,
            whole=n if n > rows.y.size else None,
        )


def _check_family(family: str, method: str, theta: float | None) -> None:
    if theta is not None:
        if family != "nb":
            raise CombinationError(f"theta= is for family='nb'; got family={family!r}.")
        if isinstance(theta, bool) or not isinstance(theta, int | float | np.number) or not 0 < theta < np.inf:
            raise InputError(f"theta must be a positive number; got {theta!r}. Leave it out to have it estimated.")
    elif family == "nb" and method not in ("REML", "ML"):
        raise CombinationError(f"theta is estimated by REML or ML; with method={method!r} pass theta=.")
    if family == "quasipoisson" and method == "CV":
        raise CombinationError("method='CV' needs a likelihood, and quasipoisson has none: use 'REML', or family='nb'.")
