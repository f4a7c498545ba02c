"""CovariateSet: the names that are known for these data, and their values, each computed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np

from ..._base.numerics import floats, point_text
from ...domains.base import Domain
from ...errors import DataError, InputError, TermError, listing
from ..observations import Observations, lag_suffix
from ..placing import frame_of
from .base import BUILT_INS, Covariate, CovariateRows, Setting
from .columns import Context, Outcome
from .expressions import FUNCTIONS
from .traced import Traced

LARGEST = 1e100  # thin-plate bases take fourth powers of differences


@final
class CovariateSet:
    """The covariates known for observations of one shape, by name.

    Group columns, context columns (earlier points and `extra` included) and outcome columns are known under their own
    names, a later kind hiding an earlier one. Planar chains also have `x, y, x_prev, y_prev, step, angle, turn,
    dcenter`, whatever the columns are called (these built-ins hide columns of the same name, and `notes` says so).
    In a region of the plane there are `xrel, yrel` (shares of its width and height) and `drel` (the distance from the
    centre in half widths and heights), unless the data have such columns. Other outcomes with two coordinates have
    `x, y, dcenter`, and directions in space `latitude, longitude` in degrees
    (`latitude_prev`, … for the earlier ones of a chain), where the data leave those names free. The user's own
    covariates need new names.

    centre: the domain's centre, for `dcenter`. y_down: y grows downwards, as pixels do, so that angles are as seen.
    domain: Ω, which says where coordinates are periods, a place in a region or a direction in space.

    >>> from unnorm.data.observations import transitions
    >>> obs = transitions({"a": [0.0, 3.0, 3.0], "b": [0.0, 4.0, 4.5]}, y=("a", "b"))
    >>> CovariateSet(obs).values(["step", "angle"], obs)["step"]
    array([5. , 0.5])
    """

    def __init__(
        self,
        obs: Observations,
        covariates: Iterable[Covariate] = (),
        *,
        centre: Sequence[float] | np.ndarray | None = None,
        y_down: bool = False,
        domain: Domain | None = None,
    ) -> None:
        self.dim: int = obs.dim
        self._domain = domain
        self._places = _places(obs)
        period = None if domain is None else domain.coordinate_period
        sphere, frame = (False, None) if domain is None else (domain.sphere, frame_of(domain))
        setting = Setting(obs, _centre(centre), y_down, period, sphere, frame)
        self.planar_chain: bool = setting.planar_chain
        columns: dict[str, Covariate] = {name: Context(name, name) for name in obs.group}
        earlier = {name for name in obs.context if obs.kind == "transitions" and name not in obs.extra}
        columns |= {name: Context(name, name, period if name in earlier else None) for name in obs.context}
        columns |= {name: Outcome(name, j, period) for j, name in enumerate(obs.outcome_names)}
        built = {one.name: one for kind in BUILT_INS.values() for one in kind.built_in(setting)}
        built = {name: one for name, one in built.items() if not (one.yields and name in columns)}
        self.hidden: tuple[str, ...] = ()  # columns that a built-in of the same name hides
        if self.planar_chain:
            self.hidden = tuple(
                name for name, one in built.items() if name in columns and columns[name].column != one.column
            )
        else:
            built = {name: one for name, one in built.items() if name not in columns}
        self._by_name = {**columns, **built}
        for covariate in covariates:
            if covariate.name in self._by_name:
                raise TermError(
                    f"There is already a covariate {covariate.name!r}: a column of the data, a built-in or one given "
                    "before; choose another name."
                )
            self._by_name[covariate.name] = covariate
        self._context_only = self._dependence()

    def _dependence(self) -> dict[str, bool]:
        """name → whether it depends on the context only; unknown names and circles are errors."""
        done: dict[str, bool] = {}

        def visit(name: str, path: tuple[str, ...]) -> bool:
            if name in path:
                raise TermError(f"Covariates read each other in a circle: {' → '.join((*path, name))}.")
            if name not in done:
                covariate = self._by_name[name]
                for need in covariate.needs:
                    if need not in self._by_name:
                        raise TermError(
                            f"Covariate {name!r} reads {need!r}, which is not known. Known names: "
                            f"{listing(self.names, most=60)}. Known functions: {', '.join(FUNCTIONS)}."
                        )
                parts = [visit(need, (*path, name)) for need in covariate.needs]
                done[name] = not covariate.reads_outcome and all(parts)
            return done[name]

        for name in self._by_name:
            visit(name, ())
        return done

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that can be asked for."""
        return tuple(name for name, one in self._by_name.items() if one.available and not one.internal)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def period(self, name: str) -> float | None:
        """2π for angles, None where values do not wrap around."""
        return self._find(name).period

    def partial(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of these covariates that some rows do not have (nan): directions, which a step of length zero lacks."""
        return tuple(name for name in names if name in self._by_name and self._by_name[name].partial)

    def boundary(self, names: tuple[str, ...]) -> tuple[np.ndarray, ...] | None:
        """Closed loops (m + 1, 2) round the domain, where these two covariates are a place in it: an outcome, or an
        earlier one of its chain. None elsewhere."""
        if len(names) != 2 or any(name not in self._by_name for name in names):
            return None
        columns = tuple(self._by_name[name].column for name in names)
        edges = None if self._domain is None or self.dim != 2 else self._domain.edges
        if edges is None or (columns not in self._places and columns[::-1] not in self._places):
            return None
        ends = np.flatnonzero((edges[:-1, 1] != edges[1:, 0]).any(axis=1)) + 1
        loops = [np.concatenate([some[:, 0], some[-1:, 1]]) for some in np.split(edges, ends)]
        return tuple(loop if columns in self._places else loop[:, ::-1] for loop in loops)

    def ends(self, name: str) -> tuple[float, float, bool] | None:
        """The least and the largest value in the domain, where the covariate is a coordinate of the outcome (True) or
        of an earlier one of its chain (False), and the domain has ends. None elsewhere."""
        box = None if self._domain is None or self._domain.dim != self.dim else self._domain.enclosing_box
        if box is None or name not in self._by_name:
            return None
        column = self._by_name[name].column
        j = next((j for j, same in enumerate(zip(*self._places)) if column in same), None)
        return None if j is None else (float(box[0][j]), float(box[1][j]), column == self._places[0][j])

    def context_only(self, name: str) -> bool:
        """Whether the covariate depends on x only, not on y."""
        self._find(name)
        return self._context_only[name]

    def reads(self, names: Iterable[str]) -> tuple[str, ...]:
        """The context and group columns, under their own names, that these covariates read."""
        found: dict[str, None] = {}

        def visit(name: str) -> None:
            one = self._by_name[name]
            if one.column is not None and one.column[0] == "context":
                found[str(one.column[1])] = None
            for need in one.needs:
                visit(need)

        for name in names:
            visit(self._find(name).name)
        return tuple(found)

    def traced(self, names: Iterable[str], obs: Observations) -> Traced | None:
        """These covariates in JAX; None where one has values in NumPy only, or is no number."""
        outcomes, contexts, formulas = {}, {}, {}

        def visit(name: str) -> bool:
            one = self._by_name[name]
            if one.column is not None:
                kind, which = one.column
                (outcomes if kind == "outcome" else contexts)[name] = which
                return kind == "outcome" or (which in obs.context and obs.context[str(which)].dtype.kind in "fi")
            if not one.traces or not all(visit(need) for need in one.needs):
                return False
            formulas[name] = one
            return True

        wanted = tuple(self._find(name).name for name in names)
        if not all(visit(name) for name in wanted):
            return None
        return Traced(wanted, tuple(outcomes.items()), tuple(contexts.items()), tuple(formulas.values()))

    def _find(self, name: str) -> Covariate:
        if name not in self._by_name or self._by_name[name].internal:
            raise TermError(f"There is no covariate {name!r}. Known names: {listing(self.names, most=60)}.")
        return self._by_name[name]

    def values(
        self, names: str | Iterable[str], obs: Observations, y: np.ndarray | None = None, t: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        """name → (N,) values at outcomes `y` (N, d) with the contexts of observations `t` (N,); default: the data."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        if obs.dim != self.dim:
            raise DataError(f"These covariates are for outcomes with {self.dim} coordinates; got {obs.dim}.")
        if y is None:
            y = obs.outcome if t is None else obs.outcome[t]
        y = floats(y, "y")
        t = np.arange(obs.n) if t is None else np.asarray(t)
        if y.shape != (t.size, self.dim) or t.ndim != 1:
            raise DataError(f"y must have shape (N, {self.dim}) and t shape (N,); got {y.shape} and {t.shape}.")
        contexts = CovariateRows(obs.outcome, obs, np.arange(obs.n), self._resolve)

        def resolve(name: str, rows: CovariateRows) -> np.ndarray:
            # once for each context, where there are more rows than contexts
            if self._context_only.get(name, False) and t.size > obs.n:
                return contexts[name][t]
            return self._resolve(name, rows)

        rows = CovariateRows(y, obs, t, resolve)
        return {name: rows[name] for name in wanted if self._find(name)}

    def at(self, names: Iterable[str], obs: Observations, known: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """name → (N,) values computed from those of other covariates, `known` (N,) each."""
        n = len(next(iter(known.values())))
        t = np.zeros(n, dtype=np.intp)
        rows = CovariateRows(obs.outcome[t], obs, t, self._resolve, dict(known))
        return {name: rows[name] for name in names if self._find(name)}

    def _resolve(self, name: str, rows: CovariateRows) -> np.ndarray:
        if name not in self._by_name:
            raise TermError(f"There is no covariate {name!r}. Known names: {listing(self.names, most=60)}.")
        covariate = self._by_name[name]
        values = covariate.values(rows)
        if values.dtype.kind == "f" and not covariate.partial and values.size:
            largest = max(float(values.max()), -float(values.min()))
            if not largest <= LARGEST:  # nan is not
                self._refuse(covariate, values, rows)
        return values

    def _refuse(self, covariate: Covariate, values: np.ndarray, rows: CovariateRows) -> None:
        """The error of values that are not finite, or too large."""
        name, bad = covariate.name, np.flatnonzero(~np.isfinite(values))
        if bad.size:
            i = int(bad[0])
            lacking = [need for need in self.partial(covariate.needs) if np.isnan(rows[need][i])]
            raise DataError(
                f"Covariate {name!r} is not finite at {bad.size:,} of {values.size:,} rows, first at y = "
                f"{point_text(rows.y[i])} with the context of observation {int(rows.t[i])}."
                + (
                    f" A step of length zero has no {lacking[0]}; say what {name!r} is there, as in "
                    f"where(step > 0, cos({lacking[0]}), 0)."
                    if lacking
                    else ""
                )
            )
        raise DataError(
            f"Covariate {name!r} reaches {max(values.max(), -values.min()):.3g}, and its powers overflow; "
            "measure it in other units."
        )

    def notes(self, obs: Observations) -> tuple[str, ...]:
        """What a careful reader would want to know: hidden columns, steps without a direction, maps with holes."""
        notes = []
        if self.hidden:
            notes.append(
                f"The built-in covariates {listing(self.hidden)} hide columns of the same name; x, y are the first "
                f"and second outcome column ({', '.join(obs.outcome_names)})."
            )
        if self.planar_chain:
            still = int(np.all(obs.outcome == obs.previous(), axis=1).sum())
            if still:
                notes.append(
                    f"{still:,} of {obs.n:,} steps have length zero and so no direction: cyclic terms of angle, "
                    "and of a turn from or to such a step, are zero there."
                )
        return (*notes, *(note for covariate in self._by_name.values() for note in covariate.notes()))


def _places(obs: Observations) -> tuple[tuple[Any, ...], ...]:
    """The columns that make a point of Ω together: outcomes, and the earlier points of a chain."""
    lags = range(1, obs.lags + 1) if obs.kind == "transitions" else ()
    earlier = [tuple(("context", name + lag_suffix(lag)) for name in obs.outcome_names) for lag in lags]
    return (tuple(("outcome", j) for j in range(obs.dim)), *earlier)


def _centre(centre: Any) -> tuple[float, float] | None:
    """The centre as a pair of numbers."""
    if centre is None:
        return None
    where = floats(centre, "centre")
    if where.shape != (2,) or not np.isfinite(where).all():
        raise InputError(f"centre must be two finite numbers, (x, y); got {centre!r}.")
    return float(where[0]), float(where[1])
