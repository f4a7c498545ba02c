"""`compare`: several estimates on the same observations and, where they can, on the same reference points."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from .._base.frames import to_native
from .._base.intervals import normal_quantile
from .._base.numerics import Rng, flag, generator, own_stream
from .._base.workers import mapped
from ..data.observations import Observations
from ..errors import CombinationError, InputError, listing
from ..models.base import Unnormalised
from ..models.normalisers import Normaliser
from ..objectives import Exact
from ..objectives.base import Objective
from .fit import Fit
from .fitting import Outside, fit, keep_inside, wrapped

ALLOWED = ("model", "objective", "normaliser", "solver", "smoothing")


@final
@dataclass(frozen=True, eq=False)
class Comparison:
    """Fits by name, with `table` (one row for each spec and term) and `criteria` (one for each spec).

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), un.Interval(-1, 1))
        >>> obs = un.transitions(un.datasets.toy_chain(100, 0.5, 5.0, rng=1))
        >>> specs = {"exact": {"objective": un.Exact()}, "poisson": {"objective": un.Poisson()}}
        >>> both = un.compare(toy, obs, specs, rng=2)
        >>> list(both.fits), both.criteria["spec"].tolist()
        (['exact', 'poisson'], ['exact', 'poisson'])
    """

    fits: Mapping[str, Fit]  #: spec → its fit
    table: Any  #: spec, term, estimate, se, se_sampling, se_reference, lower, upper
    criteria: Any  #: spec, objective, normaliser, converged, loglik, aic, ncic, points, seconds
    shared: tuple[tuple[str, ...], ...] = ()  #: groups of specs that share reference points
    _rows: dict[str, list[Any]] = field(default_factory=dict, repr=False)

    def __getitem__(self, spec: str) -> Fit:
        if spec not in self.fits:
            raise InputError(f"There is no spec {spec!r}; there are {listing(self.fits)}.")
        return self.fits[spec]

    def summary(self) -> str:
        """The comparison as a text for people."""
        wide = max(4, *(len(name) for name in self.fits))
        terms = list(dict.fromkeys(name for one in self.fits.values() for name in one.names))
        lines = [f"{'spec':<{wide}}  " + "  ".join(f"{term:>22}" for term in terms) + f"  {'AIC':>10}  {'NCIC':>10}"]
        criteria = self._rows
        for i, (name, one) in enumerate(self.fits.items()):
            cells = []
            for term in terms:
                j = one.names.index(term) if term in one.names else None
                cells.append(" " * 22 if j is None else f"{one.estimate[j]:>12.5g} ± {one.se[j]:<7.3g}")
            scores = (_number(criteria[key][i]) for key in ("aic", "ncic"))
            lines.append(f"{name:<{wide}}  " + "  ".join(cells) + "  " + "  ".join(f"{one:>10}" for one in scores))
        lines += [f"{', '.join(group)} share their reference points." for group in self.shared if len(group) > 1]
        lines += [f"{name}: NOT CONVERGED ({one.reason})" for name, one in self.fits.items() if not one.converged]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"Comparison({listing(self.fits, most=6)}; see .summary())"


def compare(
    model: Unnormalised,
    obs: Observations,
    specs: Mapping[str, Mapping[str, Any]],
    *,
    share_references: bool = True,
    outside: Outside = "error",
    level: float = 0.95,
    rng: Rng = None,
    workers: Any = None,
) -> Comparison:
    """Fit several specs to the same observations, on common reference points.

    Args:
        model: f_θ; a spec may bring its own under "model", to compare models.
        obs: the observations.
        specs: name → dict of `un.fit`'s arguments: objective, normaliser, solver, smoothing, model.
        share_references: whether specs with the same reference, number and scheme of points use the same points.
        outside: as in `un.fit`.
        level: of the intervals in the table.
        rng: seed or generator.
        workers: a number of processes, or a client of `dask.distributed` (`pip install 'unnorm[dask]'`), which share
            the specs. The numbers are the same.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
        >>> chain = un.datasets.toy_chain(300, 0.5, 5.0, rng=1)
        >>> both = un.compare(toy, un.transitions(chain), rng=1, specs={
        ...     "ML": dict(objective=un.Exact()),
        ...     "NCD": dict(objective=un.Logistic(un.Uniform(), per_point=10), normaliser=un.Smooth("s(y_prev)"))})
        >>> list(both.fits), len(both.table["term"])
        (['ML', 'NCD'], 4)
    """
    _check(specs)
    share_references = flag(share_references, "share_references")
    random = generator(own_stream(rng))
    models = {name: spec.get("model", model) for name, spec in specs.items()}
    domain = model.domain
    if any(one.domain != domain for one in models.values()):
        raise InputError("All models must be on the same domain: densities on different ones cannot be compared.")
    obs, notes = keep_inside(domain, wrapped(domain, obs), outside)
    obs = replace(obs, notes=(*obs.notes, *notes))
    shared = SharedPoints(random)
    tasks: list[tuple[Any, ...]] = []
    drawing: list[float] = []
    for name, spec in specs.items():
        objective: Objective = Exact() if spec.get("objective") is None else spec["objective"]
        seed = int(random.integers(2**31))
        begin = time.perf_counter()
        if share_references:
            objective = shared.given(name, objective, models[name], obs, spec.get("normaliser"))
        drawing.append(time.perf_counter() - begin)
        options = {"solver": spec.get("solver"), "smoothing": spec.get("smoothing", "reml"), "rng": seed}
        tasks.append((models[name], objective, spec.get("normaliser"), options))
    found = mapped(_timed, tasks, workers, common=(obs,))
    fits: dict[str, Fit] = {name: one for name, (one, _) in zip(specs, found)}
    seconds = {name: before + during for name, before, (_, during) in zip(specs, drawing, found)}
    rows = _criteria(fits, seconds)
    return Comparison(
        fits=fits,
        table=to_native(_table(fits, level), obs.backend),
        criteria=to_native({key: np.array(values) for key, values in rows.items()}, obs.backend),
        shared=shared.groups,
        _rows=rows,
    )


def _timed(
    obs: Observations, model: Unnormalised, objective: Objective, normaliser: Normaliser | None, options: dict[str, Any]
) -> tuple[Fit, float]:
    """One spec's fit, and its seconds."""
    begin = time.perf_counter()
    return fit(model, obs, objective, normaliser, **options), time.perf_counter() - begin


def _check(specs: Any) -> None:
    if not isinstance(specs, Mapping) or not specs:
        raise InputError("specs must be a mapping from names to dicts, e.g. {'ML': dict(objective=un.Exact())}.")
    for name, spec in specs.items():
        if not isinstance(spec, Mapping):
            raise InputError(f"specs[{name!r}] must be a dict of {listing(ALLOWED)}; got {type(spec).__name__}.")
        odd = [key for key in spec if key not in ALLOWED]
        if odd:
            raise InputError(f"specs[{name!r}] may hold {listing(ALLOWED)}; got {listing(odd)}.")
        objective = spec.get("objective")
        if objective is not None and not isinstance(objective, Objective):
            example = "an objective such as un.Logistic(un.Uniform(), per_point=20)"
            raise CombinationError(f"specs[{name!r}]: objective must be {example}; got {type(objective).__name__}.")


@final
class SharedPoints:
    """Reference points drawn once for all specs that say the same of them."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._drawn: list[tuple[tuple[Any, ...], Any, list[str]]] = []  # what they depend on, the points, the specs

    def given(
        self, name: str, objective: Objective, model: Unnormalised, obs: Observations, normaliser: Normaliser | None
    ) -> Objective:
        """The objective with its points: those drawn for an equal spec before, or new ones."""
        chosen = objective.default_normaliser(model, obs) if normaliser is None else normaliser
        key = objective.sharing(model, obs, chosen)
        if key is None:
            return objective
        for other, points, names in self._drawn:
            if _same(other, key):
                names.append(name)
                return objective.holding(points)
        points = objective.draw(model, obs, chosen, self._rng)
        self._drawn.append((key, points, [name]))
        return objective.holding(points)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The specs that share their points."""
        return tuple(tuple(names) for _, _, names in self._drawn)


def _same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    try:
        return bool(a == b)
    except ValueError:  # references that hold arrays: equal only if they are one object
        return all(one is other or one == other for one, other in zip(a[1:], b[1:])) and a[0] is b[0]


def _table(fits: Mapping[str, Fit], level: float) -> dict[str, np.ndarray]:
    z = normal_quantile(level)
    columns: dict[str, list[Any]] = {
        key: [] for key in ("spec", "term", "estimate", "se", "se_sampling", "se_reference", "lower", "upper")
    }
    for name, one in fits.items():
        p = len(one.names)
        se = one.se
        nothing = np.zeros(p)  # without reference points all error is the sample's
        parts = (se, nothing) if one.errors is None else (one.errors.sampling, one.errors.reference)
        sampling, reference = (np.sqrt(np.maximum(np.diag(V), 0.0)) if V.ndim == 2 else V for V in parts)
        values = (one.estimate, se, sampling, reference, one.estimate - z * se, one.estimate + z * se)
        columns["spec"] += [name] * p
        columns["term"] += list(one.names)
        for key, column in zip(list(columns)[2:], values):
            columns[key] += column.tolist()
    return {key: np.array(values) for key, values in columns.items()}


def _criteria(fits: Mapping[str, Fit], seconds: Mapping[str, float]) -> dict[str, list[Any]]:
    def or_nan(read: Any) -> float:
        try:
            return float(read())
        except InputError:
            return float("nan")

    return {
        "spec": list(fits),
        "objective": [one.settings["objective"]["objective"] for one in fits.values()],
        "normaliser": [one.settings["normaliser"]["normaliser"] for one in fits.values()],
        "converged": [one.converged for one in fits.values()],
        "loglik": [one.loglik if one.is_likelihood else float("nan") for one in fits.values()],
        "aic": [or_nan(lambda one=one: one.aic) for one in fits.values()],
        "ncic": [or_nan(lambda one=one: one.ncic) for one in fits.values()],
        "points": [int(one.diagnostics.get("m", 0)) for one in fits.values()],
        "seconds": [seconds[name] for name in fits],
    }


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.6g}"
