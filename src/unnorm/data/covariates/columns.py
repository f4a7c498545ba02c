"""Columns of the data, the built-ins of planar outcomes, and users' own functions.

step = |y_t − y_{t−1}|; angle = direction of the step in (−π, π]; turn = angle less the previous step's, wrapped;
dcenter = distance of y_t from the centre. A step of length zero has no direction (rare in practice: one step in 87,821
in the OSIE eye movements): its angle and turn are nan, cyclic terms are zero there, and `CovariateSet.notes` counts
such steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from ..._base.words import either, option
from ...errors import DataError, InputError, TermError, listing
from ..observations import lag_suffix
from .base import Covariate, CovariateRows, Setting

TWO_PI = 2 * np.pi
PREVIOUS_ANGLE = "angle of the previous step"
TINY = 1e-140  # the squares of what is below it lose digits


def distance(dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """√(dx² + dy²) in a third of the time of `np.hypot`, which is used where all squares would underflow: points 1e-160
    apart are not equal points."""
    out = dx * dx
    out += dy * dy
    np.sqrt(out, out=out)
    return out if out.size == 0 or out.max() > TINY else np.hypot(dx, dy)


@final
@dataclass(frozen=True)
class Outcome(Covariate):
    """Coordinate j of y."""

    name: str
    j: int
    period: float | None = None
    reads_outcome: bool = True

    @property
    def column(self) -> tuple[str, int]:
        return "outcome", self.j

    def values(self, rows: CovariateRows) -> np.ndarray:
        return rows.y[:, self.j]

    @classmethod
    def built_in(cls, setting: Setting) -> tuple[Covariate, ...]:
        """x and y of planar outcomes."""
        return (cls("x", 0, setting.period), cls("y", 1, setting.period)) if setting.planar else ()


@final
@dataclass(frozen=True)
class Context(Covariate):
    """A column of the context or of the groups, under its own name or a built-in one."""

    name: str
    of: str  # the column's own name
    period: float | None = None

    @property
    def column(self) -> tuple[str, str]:
        return "context", self.of

    def values(self, rows: CovariateRows) -> np.ndarray:
        obs = rows.obs
        if self.of in obs.context:
            return obs.context[self.of][rows.t]
        if self.of in obs.group:
            return obs.group[self.of][rows.t]
        raise DataError(
            f"These observations have no column {self.of!r}, which covariate {self.name!r} reads; they have "
            f"{listing([*obs.context, *obs.group])}. Make them with the columns that the model was written for."
        )

    @classmethod
    def built_in(cls, setting: Setting) -> tuple[Covariate, ...]:
        """x_prev, y_prev, x_prev2, … of planar chains."""
        if not setting.planar_chain:
            return ()
        suffixes = [lag_suffix(lag) for lag in range(1, setting.obs.lags + 1)]
        columns = list(zip("xy", setting.obs.outcome_names))
        return tuple(cls(axis + end, name + end, setting.period) for end in suffixes for axis, name in columns)


@final
@dataclass(frozen=True)
class Step(Covariate):
    """|y_t − y_{t−1}|."""

    name: str = "step"
    needs: tuple[str, ...] = ("x", "y", "x_prev", "y_prev")
    traces: ClassVar[bool] = True

    def values(self, rows: CovariateRows) -> np.ndarray:
        return distance(rows["x"] - rows["x_prev"], rows["y"] - rows["y_prev"])

    def traced(self, columns: Mapping[str, Any]) -> Any:
        import jax.numpy as jnp

        return jnp.hypot(columns["x"] - columns["x_prev"], columns["y"] - columns["y_prev"])

    @classmethod
    def built_in(cls, setting: Setting) -> tuple[Covariate, ...]:
        return (cls(),) if setting.planar_chain else ()


@final
@dataclass(frozen=True)
class Angle(Covariate):
    """atan2(dy, dx) in (−π, π], counterclockwise, nan where both are 0; `y_down` for pixels, whose y grows down."""

    name: str = "angle"
    needs: tuple[str, ...] = ("x", "y", "x_prev", "y_prev")
    y_down: bool = False
    period: float | None = TWO_PI
    partial: bool = True
    internal: bool = False
    traces: ClassVar[bool] = True

    def traced(self, columns: Mapping[str, Any]) -> Any:
        import jax.numpy as jnp

        x, y, x_prev, y_prev = (columns[name] for name in self.needs)
        dx, dy = x - x_prev, y_prev - y if self.y_down else y - y_prev
        return jnp.where((dx == 0.0) & (dy == 0.0), jnp.nan, jnp.arctan2(dy, dx))

    def values(self, rows: CovariateRows) -> np.ndarray:
        now, before = (rows[name] for name in self.needs[1::2])
        # a − a is +0, so that atan2 gives +π and never −π to a step straight to the left
        dy = before - now if self.y_down else now - before
        dx = rows[self.needs[0]] - rows[self.needs[2]]
        angle = np.arctan2(dy, dx)
        still = (angle == 0.0) & (dx == 0.0)  # atan2(0, 0) = 0
        return np.where(still, np.nan, angle) if still.any() else angle

    @classmethod
    def built_in(cls, setting: Setting) -> tuple[Covariate, ...]:
        """The angle of the step, and that of the step before it for `Turn`."""
        if not setting.planar_chain:
            return ()
        angle = cls(y_down=setting.y_down)
        if setting.obs.lags < 2:
            return (angle,)
        before = cls(PREVIOUS_ANGLE, ("x_prev", "y_prev", "x_prev2", "y_prev2"), setting.y_down, internal=True)
        return angle, before


@final
@dataclass(frozen=True)
class Turn(Covariate):
    """The angle less the previous step's, wrapped."""

    name: str = "turn"
    needs: tuple[str, ...] = ("angle", PREVIOUS_ANGLE)
    period: float | None = TWO_PI
    partial: bool = True

    def values(self, rows: CovariateRows) -> np.ndarray:
        return wrap(rows[self.needs[0]] - rows[self.needs[1]])

    @classmethod
    def built_in(cls, setting: Setting) -> tuple[Covariate, ...]:
        if not setting.planar_chain:
            return ()
        reason = f"turn compares two successive steps and needs transitions with {option('lags', 2)}."
        return (cls(),) if setting.obs.lags >= 2 else (Unavailable("turn", reason),)


@final
@dataclass(frozen=True)
class DistanceFromCentre(Covariate):
    """|y_t − centre|."""

    centre: tuple[float, float]
    name: str = "dcenter"
    needs: tuple[str, ...] = ("x", "y")
    traces: ClassVar[bool] = True

    def traced(self, columns: Mapping[str, Any]) -> Any:
        import jax.numpy as jnp

        return jnp.hypot(columns["x"] - self.centre[0], columns["y"] - self.centre[1])

    def values(self, rows: CovariateRows) -> np.ndarray:
        return distance(rows["x"] - self.centre[0], rows["y"] - self.centre[1])

    @classmethod
    def built_in(cls, setting: Setting) -> tuple[Covariate, ...]:
        if not setting.planar:
            return ()
        reason = (
            "dcenter is the distance from the centre of the domain, which is not known here; give "
            f"{either('centre=(x, y)', '--centre x,y')}."
        )
        if setting.centre is None and setting.frame is not None and not setting.frame.shared:
            return ()  # each window has its own: relative.py
        return (Unavailable("dcenter", reason) if setting.centre is None else cls(setting.centre),)


@final
@dataclass(frozen=True)
class Unavailable(Covariate):
    """A built-in that these data or options do not allow; the reason is raised when it is asked for."""

    name: str
    reason: str
    available: bool = False

    def values(self, rows: CovariateRows) -> np.ndarray:
        raise TermError(self.reason)


@final
class Function(Covariate):
    """A user's NumPy function of all rows at once: f(y, x) → (N,).

    y has shape (N,) where the outcome has one coordinate, else (N, d); x is read by name, x["age"], and has
    the context and group columns and the covariates declared in `needs`, each (N,). Declare `context_only=True` where f
    does not look at y.

    Args:
        name: of the covariate, as terms call it.
        function: f(y, x), of all rows at once.
        needs: other covariates that it reads as x[name].
        period: of its values, where they are cyclic.
        context_only: whether f leaves y unread.

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

    def values(self, rows: CovariateRows) -> np.ndarray:
        y = rows.y[:, 0] if rows.y.shape[1] == 1 else rows.y
        out = np.asarray(self.function(y, _Declared(self, rows)))
        if out.shape != rows.t.shape:
            raise TermError(
                f"Covariate {self.name!r} must return one value for each row, shape {rows.t.shape}; got {out.shape}."
            )
        return out

    @classmethod
    def examples(cls) -> tuple[Covariate, ...]:
        late = cls("late", lambda y, x: x["wait"] > 0.5, context_only=True)
        return cls("far", lambda y, x: y[:, 0] - x["step"], needs="step"), late

    def __repr__(self) -> str:
        needs = f", needs={self.needs}" if self.needs else ""
        return f"Function({self.name!r}{needs}{'' if self.reads_outcome else ', context_only=True'})"


@final
@dataclass(frozen=True)
class _Declared:
    """x as a user's function sees it. What is not declared cannot be read, or `context_only` could not be trusted."""

    function: Function
    rows: CovariateRows

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self.function.needs:
            return self.rows[name]
        for columns in (self.rows.obs.context, self.rows.obs.group):
            if name in columns:
                return columns[name][self.rows.t]
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
