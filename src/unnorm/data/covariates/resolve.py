"""CovariateSet: the names that are known for these data, and their values, each computed once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, final

import numpy as np

from ..._base.numerics import floats
from ..._base.words import either, option
from ...errors import DataError, InputError, TermError, listing
from ..observations import Observations
from .base import Covariate, Rows
from .columns import Angle, Context, DistanceFromCentre, Outcome, Step, Turn, Unavailable
from .expressions import FUNCTIONS

LARGEST = 1e100  # thin-plate bases take fourth powers of differences
_BEFORE = "angle of the previous step"


@final
class CovariateSet:
    """The covariates known for observations of one shape, by name.

    These are, a later kind hiding an earlier: group columns, context columns (earlier points and `extra` included) and
    outcome columns under their own names; for planar chains `x, y, x_prev, y_prev, step, angle, turn, dcenter`,
    whatever the columns are called (the built-ins win; `notes` tells of columns that they hide). Other outcomes with
    two coordinates get `x, y, dcenter` where the data leave those names free. The user's own come on top and need new
    names.

    centre: the domain's centre, for `dcenter`. y_down: y grows downwards, as pixels do, so that angles are as seen.
    period: the period of the outcome's coordinates (of an angle's, on the circle).

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
        period: float | None = None,
    ) -> None:
        self.dim = obs.dim
        self.planar_chain = obs.kind == "transitions" and obs.dim == 2
        known: dict[str, Covariate] = {name: Context(name, name) for name in obs.group}
        earlier = {name for name in obs.context if obs.kind == "transitions" and name not in obs.extra}
        known |= {name: Context(name, name, period if name in earlier else None) for name in obs.context}
        known |= {name: Outcome(name, j, period) for j, name in enumerate(obs.outcome_names)}
        built = self._built_in(obs, centre, y_down, period)
        self._hidden: tuple[str, ...] = ()
        if self.planar_chain:
            self._hidden = tuple(name for name in built if name in known and not _same(known[name], built[name]))
        else:
            built = {name: covariate for name, covariate in built.items() if name not in known}
        known |= built
        self._known = known
        for covariate in covariates:
            if covariate.name in known:
                raise TermError(
                    f"There is already a covariate {covariate.name!r}: a column of the data, a built-in or one given "
                    "before; choose another name."
                )
            known[covariate.name] = covariate
        self._context_only = self._dependence()

    @staticmethod
    def _built_in(obs: Observations, centre: Any, y_down: bool, period: float | None) -> dict[str, Covariate]:
        if obs.dim != 2:
            return {}
        made: dict[str, Covariate] = {"x": Outcome("x", 0, period), "y": Outcome("y", 1, period)}
        if centre is None:
            reason = (
                "dcenter is the distance from the centre of the domain, which is not known here; give "
                f"{either('centre=(x, y)', '--centre x,y')}."
            )
            made["dcenter"] = Unavailable("dcenter", reason)
        else:
            where = floats(centre, "centre")
            if where.shape != (2,) or not np.isfinite(where).all():
                raise InputError(f"centre must be two finite numbers, (x, y); got {centre!r}.")
            made["dcenter"] = DistanceFromCentre((float(where[0]), float(where[1])))
        if obs.kind != "transitions":
            return made
        for lag in range(1, obs.lags + 1):
            suffix = "_prev" if lag == 1 else f"_prev{lag}"
            made |= {
                axis + suffix: Context(axis + suffix, column + suffix, period)
                for axis, column in zip("xy", obs.outcome_names)
            }
        made |= {"step": Step(), "angle": Angle(y_down=y_down)}
        if obs.lags >= 2:
            made[_BEFORE] = Angle(_BEFORE, ("x_prev", "y_prev", "x_prev2", "y_prev2"), y_down)
            made["turn"] = Turn()
        else:
            reason = f"turn compares two successive steps and needs transitions with {option('lags', 2)}."
            made["turn"] = Unavailable("turn", reason)
        return made

    def _dependence(self) -> dict[str, bool]:
        """name → whether it depends on the context only; unknown names and circles are errors."""
        done: dict[str, bool] = {}

        def visit(name: str, path: tuple[str, ...]) -> bool:
            if name in path:
                raise TermError(f"Covariates read each other in a circle: {' → '.join((*path, name))}.")
            if name not in done:
                covariate = self._known[name]
                for need in covariate.needs:
                    if need not in self._known:
                        raise TermError(
                            f"Covariate {name!r} reads {need!r}, which is not known. Known names: "
                            f"{listing(self.names, most=60)}. Known functions: {', '.join(FUNCTIONS)}."
                        )
                parts = [visit(need, (*path, name)) for need in covariate.needs]
                done[name] = not covariate.reads_outcome and all(parts)
            return done[name]

        for name in self._known:
            visit(name, ())
        return done

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that can be asked for."""
        return tuple(
            k for k, covariate in self._known.items() if k != _BEFORE and not isinstance(covariate, Unavailable)
        )

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def period(self, name: str) -> float | None:
        """2π for angles, None where values do not wrap around."""
        return self._find(name).period

    def context_only(self, name: str) -> bool:
        """Whether the covariate depends on x only, not on y."""
        self._find(name)
        return self._context_only[name]

    def _find(self, name: str) -> Covariate:
        if name not in self._known or name == _BEFORE:
            raise TermError(f"There is no covariate {name!r}; known are {listing(self.names, most=60)}.")
        return self._known[name]

    def values(
        self, names: str | Iterable[str], obs: Observations, y: np.ndarray | None = None, at: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        """name → (N,) values at outcomes `y` (N, d) with the contexts of observations `at` (N,); default: the data."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        if obs.dim != self.dim:
            raise DataError(f"These covariates are for outcomes with {self.dim} coordinates; got {obs.dim}.")
        if y is None:
            y = obs.outcome if at is None else obs.outcome[at]
        y = floats(y, "y")
        at = np.arange(obs.n) if at is None else np.asarray(at)
        if y.shape != (at.size, self.dim) or at.ndim != 1:
            raise DataError(f"y must have shape (N, {self.dim}) and at shape (N,); got {y.shape} and {at.shape}.")
        contexts = Rows(obs.outcome, obs, np.arange(obs.n), self._resolve)

        def resolve(name: str, rows: Rows) -> np.ndarray:
            # once for each context, where there are more rows than contexts
            if self._context_only.get(name, False) and at.size > obs.n:
                return contexts[name][at]
            return self._resolve(name, rows)

        rows = Rows(y, obs, at, resolve)
        return {name: rows[name] for name in wanted if self._find(name)}

    def _resolve(self, name: str, rows: Rows) -> np.ndarray:
        if name not in self._known:
            raise TermError(f"There is no covariate {name!r}; known are {listing(self.names, most=60)}.")
        values = self._known[name].values(rows)
        if values.dtype.kind == "f":
            bad = np.flatnonzero(~np.isfinite(values))
            if bad.size:
                i = int(bad[0])
                raise DataError(
                    f"Covariate {name!r} is not finite at {bad.size:,} of {values.size:,} rows, first at y = "
                    f"{_point(rows.y[i])} with the context of observation {int(rows.at[i])}."
                )
            if values.size and max(values.max(), -values.min()) > LARGEST:
                raise DataError(
                    f"Covariate {name!r} reaches {max(values.max(), -values.min()):.3g}, and its powers overflow; "
                    "measure it in other units."
                )
        return values

    def notes(self, obs: Observations) -> tuple[str, ...]:
        """What a careful reader would want to know: hidden columns, steps without a direction, maps with holes."""
        notes = []
        if self._hidden:
            notes.append(
                f"The built-in covariates {listing(self._hidden)} hide columns of the same name; x, y are the first "
                f"and second outcome column ({', '.join(obs.outcome_names)})."
            )
        if self.planar_chain:
            still = int(np.all(obs.outcome == obs.previous(), axis=1).sum())
            if still:
                notes.append(
                    f"{still:,} of {obs.n:,} steps have length zero and no direction; their angle is set to 0."
                )
        return (*notes, *(note for covariate in self._known.values() for note in covariate.notes()))


def _same(column: Covariate, built: Covariate) -> bool:
    """Whether a built-in name stands for the column that has it anyway."""
    if isinstance(column, Outcome) and isinstance(built, Outcome):
        return column.j == built.j
    return isinstance(column, Context) and isinstance(built, Context) and column.column == built.column


def _point(y: np.ndarray) -> str:
    return f"{y[0]:.6g}" if y.size == 1 else f"({', '.join(f'{value:.6g}' for value in y[:6])})"
