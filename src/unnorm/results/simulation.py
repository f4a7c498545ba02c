"""Draw from a fitted or given model on any domain: independent outcomes, outcomes with covariates, chains step by step.

`draws` draws one outcome in each context; planar chains of additive models take the faster way of `planar`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .._base import frames
from .._base.numerics import Rng, floats, generator
from ..data.observations import Kind, Observations
from ..domains.base import Domain, whole
from ..errors import CombinationError, EstimationError, InputError, OutsideError, listing
from ..models import Additive
from ..models.base import Model, Unnormalised
from ..references.base import BoundReference
from .density import Density, ParametricDensity
from .draws import Drawer, Proposal
from .kernel_draws import KernelDrawer


@dataclass(frozen=True)
class Shape:
    """What simulated observations look like: the kind and the columns of those that were fitted."""

    kind: Kind
    outcome: tuple[str, ...]
    lags: int = 0
    extra: tuple[str, ...] = ()  # transitions: context columns besides the earlier points
    context: tuple[str, ...] = ()  # regressions: the covariates
    group: tuple[str, ...] = ()
    needed: tuple[str, ...] | None = None  # those of extra, context and group that f reads; None: all but the groups
    window: str | None = None  # that which says which window a context has, where each has its own

    @classmethod
    def of(
        cls,
        kind: Kind,
        stored: Mapping[str, Any],
        needed: tuple[str, ...] | None = None,
        window: str | None = None,
    ) -> Shape:
        """From what a fit stores stored its observations."""
        extra, outcome = tuple(stored["extra"]), tuple(stored["outcome_names"])
        context = tuple(stored["context_names"]) if kind == "conditional" else ()
        group = tuple(stored.get("group_names", ()))
        return cls(kind, outcome, int(stored["lags"]), extra, context, group, needed, window)

    @property
    def given(self) -> tuple[str, ...]:
        """The columns that the user must give."""
        every = (*self.extra, *self.context, *self.group)
        if self.needed is None:
            return tuple(name for name in every if name not in self.group or name == self.window)
        return tuple(name for name in every if name in self.needed or name == self.window)

    @property
    def free(self) -> bool:
        """Whether f reads places and steps only."""
        return self.needed is not None and not {*self.extra, *self.context, *self.group} & {*self.needed}


@dataclass(frozen=True)
class Simulation:
    """Simulated columns, and how they were drawn."""

    columns: dict[str, np.ndarray]
    method: str
    error: float = 0.0  # total variation error of the tables, where tables were used


@final
@dataclass(frozen=True, eq=False)
class Request:
    """What the user asks for, as `Fit.simulate` takes it."""

    n: int
    x0: Any = None
    x: Any = None
    chains: int | None = None
    bound: float | None = None


def simulate(
    model: Model,
    theta: Any,
    n: int,
    *,
    x0: Any = None,
    x: Any = None,
    chains: int | None = None,
    lags: int = 1,
    names: tuple[str, ...] | None = None,
    bound: float | None = None,
    rng: Rng = None,
) -> dict[str, np.ndarray]:
    """Draws from p(y|x) ∝ exp f_θ(y|x) for a given θ, as columns.

    Args:
        model: an `ExponentialFamily` or `Energy`.
        theta: its parameters, as `Fit.theta` has them.
        n: outcomes (IID), outcomes for each row of `x` (regressions), or steps of each chain.
        x0: where chains start: the first `lags` points of one chain or of each, in the order of time.
        x: the covariates of a regression, or of a chain's `extra`: a table, or name → values.
        chains: how many; default as many as there are starts.
        lags: points that the next one depends on.
        names: of the outcome's columns; default `y`, or `y1, y2, …`.
        bound: an upper bound of f, for rejection; default estimated and checked where rejection is used.
        rng: seed or generator.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
        >>> chain = un.simulate(toy, (0.5, 5.0), 200, x0=0.0, rng=1)
        >>> list(chain), len(chain["y"])
        (['chain', 'step', 'y'], 201)
    """
    if not isinstance(model, Unnormalised) or not model.parametric:
        raise CombinationError(
            f"un.simulate needs un.ExponentialFamily or un.Energy, with parameters; got {type(model).__name__}. "
            "Of an additive model, simulate its fit: fit.simulate(…)."
        )
    d = model.domain.dim
    names = (("y",) if d == 1 else tuple(f"y{j + 1}" for j in range(d))) if names is None else tuple(names)
    if len(names) != d:
        raise InputError(f"names must name the {d} column(s) of the outcome; got {listing(names)}.")
    columns = () if x is None else tuple(x) if isinstance(x, Mapping) else tuple(frames.table(x).names)
    if model.context_arity == 0:
        shape = Shape("iid", names)
    elif x0 is not None:
        shape = Shape("transitions", names, whole(lags, "lags", least=1), extra=columns)
    elif x is not None:
        shape = Shape("conditional", names, context=columns)
    else:
        raise InputError(
            "The model's f takes a context: pass x0= (where a chain starts) or x= (a table of covariates)."
        )
    density = ParametricDensity(model, model.flatten(theta))
    return simulated(density, shape, n, x0=x0, x=x, chains=chains, bound=bound, rng=rng).columns


def simulated(
    density: Density,
    shape: Shape,
    n: int,
    *,
    proposal: Proposal | None = None,
    observed: Observations | None = None,
    rng: Rng = None,
    **asked: Any,
) -> Simulation:
    """n outcomes, n for each row of covariates, or n steps of each chain; `observed` gives starts and covariates.

    `asked` are the other fields of `Request`.
    """
    request = Request(whole(n, "n", least=1), **asked)
    random = generator(rng)
    if shape.kind == "transitions":
        return _chains(density, shape, request, proposal, observed, random)
    if request.x0 is not None or request.chains is not None:
        raise InputError("x0= and chains= belong to chains, and this model is not one.")
    drawer = Drawer(density, random, request.bound, proposal)
    if shape.kind == "iid":
        contexts = Observations("iid", np.zeros((n, len(shape.outcome))), shape.outcome)
        y = drawer(contexts)
        return Simulation(_named(shape.outcome, y), drawer.method, drawer.error)
    given = _columns(shape, request.x, observed)
    rows = len(next(iter(given.values()))) if given else 1
    repeated = {name: np.repeat(values, n) for name, values in given.items()}
    contexts = Observations(
        "conditional",
        np.zeros((rows * n, len(shape.outcome))),
        shape.outcome,
        {name: values for name, values in repeated.items() if name not in shape.group},
        group={name: values for name, values in repeated.items() if name in shape.group},
    )
    y = drawer(contexts)
    draw = {"draw": np.tile(np.arange(n), rows)} if n > 1 else {}
    return Simulation({**repeated, **draw, **_named(shape.outcome, y)}, drawer.method, drawer.error)


def _chains(
    density: Density,
    shape: Shape,
    request: Request,
    proposal: Proposal | None,
    observed: Observations | None,
    rng: np.random.Generator,
) -> Simulation:
    """Chains side by side: points (chains, lags + n, d), the starts included, so that the table gives n transitions."""
    starts, drawn_from = _starts(shape, request, observed, rng)
    held = _held(shape, request, len(starts), observed, drawn_from)
    if request.x0 is not None or density.domain.key is not None:
        _check_starts(density.domain, shape, starts, held)
    if density.domain.key is None:
        points, method, error = _walks(density, shape, request, proposal, starts, held, rng)
        return Simulation(_chain_table(shape, points, held), method, error)
    points, methods, error = np.empty((len(starts), shape.lags + request.n, len(shape.outcome))), [], 0.0
    for window, rows in _windows(density.domain, held):
        own = {name: values[rows] for name, values in held.items()}
        points[rows], method, off = _walks(density.on(window), shape, request, proposal, starts[rows], own, rng)
        methods, error = [*methods, method], max(error, off)
    return Simulation(_chain_table(shape, points, held), listing(dict.fromkeys(methods)), error)


def _windows(domain: Domain, held: Mapping[str, np.ndarray]) -> Iterator[tuple[Domain, np.ndarray]]:
    """The windows of chains, each with the chains that have it."""
    assert domain.key is not None
    code = domain.codes(held[domain.key][:, 0])
    for one in np.unique(code):
        yield domain.windows[one], np.flatnonzero(code == one)


def _walks(
    density: Density,
    shape: Shape,
    request: Request,
    proposal: Proposal | None,
    starts: np.ndarray,
    held: Mapping[str, np.ndarray],
    rng: np.random.Generator,
) -> tuple[np.ndarray, str, float]:
    """Chains on one Ω, how they were drawn, and the error of tables."""
    n, count = request.n, len(starts)
    planar = len(shape.outcome) == 2 and not density.domain.finite
    lags = shape.lags
    points = np.empty((count, lags + n, len(shape.outcome)))
    points[:, :lags] = starts
    first = _contexts(shape, points, held, lags)
    terms = planar and density.additive() is not None and request.bound is None
    law = density.law(first)
    if terms and law is None and (not held or shape.free):
        from .planar import simulate_planar

        try:
            return simulate_planar(density, starts, n, rng), "planar", 0.0
        except CombinationError:  # terms or a domain that `planar` cannot take
            pass
        except EstimationError:  # too few of its proposals are kept
            if _kernel(proposal, first) is None:
                raise
    if terms and law is None:
        law = _kernel(proposal, first)
    drawer = Drawer(density, rng, request.bound, proposal) if law is None else KernelDrawer(density, law, rng)
    for t in range(lags, lags + n):
        points[:, t] = drawer(_contexts(shape, points, held, t))
    return points, drawer.method, drawer.error


def _kernel(proposal: Proposal | None, contexts: Observations) -> BoundReference | None:
    """A reference that stays around the previous point, from which candidates may come."""
    q = None if proposal is None else proposal(contexts)
    local = q is not None and q.given == "context" and q.cube_dim is not None and not q.reference.everywhere
    return q if local else None


def _contexts(shape: Shape, points: np.ndarray, held: Mapping[str, np.ndarray], t: int) -> Observations:
    """The contexts of the chains' t-th points; outcomes are not read."""
    lags = shape.lags
    context = {
        f"{name}{_suffix(lag)}": points[:, t - lag, j]
        for lag in range(1, lags + 1)
        for j, name in enumerate(shape.outcome)
    }
    here = {name: values[:, t - lags] for name, values in held.items()}
    return Observations(
        "transitions",
        points[:, t - 1],
        shape.outcome,
        {**context, **{name: here[name] for name in shape.extra if name in here}},
        lags=lags,
        extra=tuple(name for name in shape.extra if name in here),
        group={name: values for name, values in here.items() if name in shape.group},
    )


def _starts(
    shape: Shape, request: Request, observed: Observations | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray | None]:
    """(chains, lags, d) first points in the order of time, and the observations that they were taken from."""
    lags, d = shape.lags, len(shape.outcome)
    count = None if request.chains is None else whole(request.chains, "chains", least=1)
    if request.x0 is None:
        if observed is None:
            raise InputError("x0= is needed: the fit no longer has the observations that chains could start from.")
        whole_ones = np.arange(observed.n)
        if observed.masks is not None:
            whole_ones = np.flatnonzero(~observed.masks.before.any(axis=1))
            if whole_ones.size == 0:
                raise InputError("Every observed outcome has missing or absent bits: pass x0=, where chains start.")
        rows = whole_ones[rng.integers(whole_ones.size, size=count or 1)]
        return np.stack([observed.previous(lag)[rows] for lag in range(lags, 0, -1)], axis=1), rows
    given = floats(request.x0, "x0")
    if given.size % (lags * d) or given.size == 0:
        raise InputError(
            f"x0 must give {lags} point(s) of {d} coordinate(s) for each chain, shape ({lags}, {d}) or "
            f"(chains, {lags}, {d}); got shape {given.shape}."
        )
    starts = given.reshape(-1, lags, d)
    if count is not None and len(starts) == 1:
        starts = np.repeat(starts, count, axis=0)
    if count is not None and len(starts) != count:
        raise InputError(f"x0 gives {len(starts)} starts for chains={count}; give one for each, or one for all.")
    return starts, None


def _check_starts(domain: Domain, shape: Shape, starts: np.ndarray, held: Mapping[str, np.ndarray]) -> None:
    if domain.key is not None and np.any(held[domain.key] != held[domain.key][:, :1]):
        raise InputError(f"x[{domain.key!r}] must be the same throughout a chain, which stays in one window.")
    d = len(shape.outcome)
    windows = [(domain, np.arange(len(starts)))] if domain.key is None else _windows(domain, held)
    for window, rows in windows:
        inside = window.contains(starts[rows].reshape(-1, d))
        if not inside.all():
            raise OutsideError(
                f"{int((~inside).sum())} of {inside.size} points of x0 lie outside {window!r}; the first is "
                f"{starts[rows].reshape(-1, d)[~inside][0].tolist()}."
            )


def _held(
    shape: Shape, request: Request, chains: int, observed: Observations | None, rows: np.ndarray | None
) -> dict[str, np.ndarray]:
    """name → (chains, n) values of what the context holds besides earlier points; by default those of `rows`."""
    given: dict[str, np.ndarray] = {}
    n, x = request.n, request.x
    if x is not None:
        table = x if isinstance(x, Mapping) else _plain_columns(x)
        for name, values in table.items():
            array = np.asarray(values)
            if array.ndim == 1 and array.shape == (chains,) and chains != n:
                array = array[:, None]
            try:
                given[name] = np.broadcast_to(array, (chains, n))
            except ValueError as error:
                raise InputError(
                    f"x[{name!r}] must be one value, {n} (one for each step), {chains} (one for each chain) or "
                    f"({chains}, {n}); got shape {array.shape}."
                ) from error
    elif observed is not None and rows is not None:
        for name in shape.given:
            column = observed.context[name] if name in observed.context else observed.group[name]
            given[name] = np.repeat(column[rows][:, None], n, axis=1)
    _missing(shape, given)
    read = (*shape.extra, *shape.group)
    return {name: values for name, values in given.items() if name in read}


def held_columns(model: Additive, obs: Observations, rows: np.ndarray) -> dict[str, np.ndarray] | None:
    """The group and extra columns that the model's covariates read (an image's map), at these rows: what chains that
    start there keep, for `Fit.simulate(x=…)`."""
    read = {*model.terms.columns, *(need for one in model.covariate_objects for need in one.needs)}
    columns = {**obs.group, **{name: obs.context[name] for name in obs.extra}}
    read |= set() if model.domain.key is None else {model.domain.key}
    return {name: column[rows] for name, column in columns.items() if name in read} or None


def _columns(shape: Shape, x: Any, observed: Observations | None) -> dict[str, np.ndarray]:
    """The covariates of a regression's rows."""
    if x is None:
        if observed is None:
            raise InputError(f"x= is needed: a table of {listing(shape.given)}.")
        return {**observed.context, **{name: observed.group[name] for name in shape.given if name in observed.group}}
    if isinstance(x, Mapping):
        arrays = {name: np.atleast_1d(np.asarray(values)) for name, values in x.items()}
        rows = max((len(array) for array in arrays.values()), default=1)
        try:
            given = {name: np.broadcast_to(array, (rows,)) for name, array in arrays.items()}
        except ValueError as error:
            lengths = {name: len(array) for name, array in arrays.items()}
            raise InputError(f"The columns of x must be of one length, or of length one; got {lengths}.") from error
    else:
        given = _plain_columns(x)
    _missing(shape, given)
    read = (*shape.context, *shape.group)
    return {name: values for name, values in given.items() if name in read}


def _plain_columns(x: Any) -> dict[str, np.ndarray]:
    table = frames.table(x)
    return {name: table.read(name).take(np.arange(table.n)) for name in table.names}


def _missing(shape: Shape, given: Mapping[str, Any]) -> None:
    missing = [name for name in shape.given if name not in given]
    if missing:
        raise InputError(f"x must give {listing(shape.given)}, which f reads; missing {listing(missing)}.")


def _chain_table(shape: Shape, points: np.ndarray, held: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Long columns: chain, step, outcome, what was held; the starts are the first steps."""
    chains, length, d = points.shape
    lead = length - next(iter(held.values())).shape[1] if held else 0
    more = {
        name: np.concatenate([np.repeat(values[:, :1], lead, axis=1), values], axis=1).ravel()
        for name, values in held.items()
    }
    return {
        "chain": np.repeat(np.arange(chains), length),
        "step": np.tile(np.arange(length), chains),
        **_named(shape.outcome, points.reshape(-1, d)),
        **more,
    }


def _named(names: tuple[str, ...], y: np.ndarray) -> dict[str, np.ndarray]:
    return {name: y[:, j].copy() for j, name in enumerate(names)}


def _suffix(lag: int) -> str:
    return "_prev" if lag == 1 else f"_prev{lag}"
