"""Columns of the data, the built-ins of planar outcomes, and users' own functions.

step = |y_t − y_{t−1}|; angle = direction of the step in (−π, π]; turn = angle less the previous step's, wrapped;
dcenter = distance of y_t from the centre. A step of length zero has no direction: its angle is 0 (rare in practice: one
step in 87,821 in the OSIE eye movements); `CovariateSet.notes` counts such steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ...errors import DataError, InputError, TermError
from .base import Covariate, Rows

TWO_PI = 2 * np.pi


@final
@dataclass(frozen=True)
class Outcome(Covariate):
    """Coordinate j of y."""

    name: str
    j: int
    period: float | None = None
    reads_outcome: bool = True

    def values(self, rows: Rows) -> np.ndarray:
        return rows.y[:, self.j]


@final
@dataclass(frozen=True)
class Context(Covariate):
    """A column of the context or of the groups, under its own name or a built-in one."""

    name: str
    column: str
    period: float | None = None

    def values(self, rows: Rows) -> np.ndarray:
        obs = rows.obs
        if self.column in obs.context:
            return obs.context[self.column][rows.at]
        if self.column in obs.group:
            return obs.group[self.column][rows.at]
        raise DataError(f"These observations have no column {self.column!r}, which covariate {self.name!r} reads.")


@final
@dataclass(frozen=True)
class Step(Covariate):
    name: str = "step"
    needs: tuple[str, ...] = ("x", "y", "x_prev", "y_prev")

    def values(self, rows: Rows) -> np.ndarray:
        return np.hypot(rows["x"] - rows["x_prev"], rows["y"] - rows["y_prev"])


@final
@dataclass(frozen=True)
class Angle(Covariate):
    """atan2(dy, dx) in (−π, π], counterclockwise; `y_down` for pixels, whose y grows downwards."""

    name: str = "angle"
    needs: tuple[str, ...] = ("x", "y", "x_prev", "y_prev")
    y_down: bool = False
    period: float | None = TWO_PI

    def values(self, rows: Rows) -> np.ndarray:
        now, before = (rows[name] for name in self.needs[1::2])
        # a − a is +0, so that atan2 gives +π and never −π to a step straight to the left
        dy = before - now if self.y_down else now - before
        return np.arctan2(dy, rows[self.needs[0]] - rows[self.needs[2]])


@final
@dataclass(frozen=True)
class Turn(Covariate):
    name: str = "turn"
    needs: tuple[str, ...] = ("angle", "angle of the previous step")
    period: float | None = TWO_PI

    def values(self, rows: Rows) -> np.ndarray:
        return wrap(rows[self.needs[0]] - rows[self.needs[1]])


@final
@dataclass(frozen=True)
class DistanceFromCentre(Covariate):
    centre: tuple[float, float]
    name: str = "dcenter"
    needs: tuple[str, ...] = ("x", "y")

    def values(self, rows: Rows) -> np.ndarray:
        return np.hypot(rows["x"] - self.centre[0], rows["y"] - self.centre[1])


@final
@dataclass(frozen=True)
class Unavailable(Covariate):
    """A built-in that these data or options do not allow; the reason is raised when it is asked for."""

    name: str
    reason: str

    def values(self, rows: Rows) -> np.ndarray:
        raise TermError(self.reason)


@final
class Function(Covariate):
    """A user's NumPy function of all rows at once: f(y, x) → (N,).

    y has shape (N,) where the outcome has one coordinate, else (N, d); x is read by name, x["age"], and has
    the context and group columns and the covariates declared in `needs`, each (N,). Declare `context_only=True` where f
    does not look at y.

    >>> Function("overshoot", lambda y, x: y - x["target"], needs="target").name
    'overshoot'
    """

    def __init__(
        self,
        name: str,
        function: Callable[[np.ndarray, Any], Any],
        *,
        needs: str | tuple[str, ...] = (),
        period: float | None = None,
        context_only: bool = False,
    ) -> None:
        if not callable(function):
            raise InputError(f"Covariate {name!r} must be a function f(y, x); got {type(function).__name__}.")
        self.name = check_name(name)
        self.function = function
        self.needs = (needs,) if isinstance(needs, str) else tuple(needs)
        self.period = period
        self.reads_outcome = not context_only

    def values(self, rows: Rows) -> np.ndarray:
        y = rows.y[:, 0] if rows.y.shape[1] == 1 else rows.y
        out = np.asarray(self.function(y, _Declared(self, rows)))
        if out.shape != rows.at.shape:
            raise TermError(
                f"Covariate {self.name!r} must return one value for each row, shape {rows.at.shape}; got {out.shape}."
            )
        return out


@final
@dataclass(frozen=True)
class _Declared:
    """x as a user's function sees it. What is not declared cannot be read, or `context_only` could not be trusted."""

    function: Function
    rows: Rows

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self.function.needs:
            return self.rows[name]
        for columns in (self.rows.obs.context, self.rows.obs.group):
            if name in columns:
                return columns[name][self.rows.at]
        raise TermError(
            f"Covariate {self.function.name!r} reads {name!r}, which is not a column of the context; where it is "
            f"another covariate, declare it: needs=({name!r},)."
        )


def wrap(angle: np.ndarray) -> np.ndarray:
    """The angle in (−π, π]."""
    return np.pi - np.mod(np.pi - angle, TWO_PI)


def check_name(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"A covariate's name must be a word such as 'elevation'; got {name!r}.")
    return name
