"""`DirectionFit`: a fit read in the usual parameters of its family."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from .._base.counts import counted
from .._base.numerics import Rng, flag, generator, whole
from ..data.units import Unit
from ..errors import InputError, unknown
from ..results.fit import Fit
from .family import Chart, Family, Reading
from .quantities import Cone, Row, cone


@final
@dataclass(frozen=True, eq=False, repr=False)
class DirectionFit:
    """Estimates of a family's usual parameters, in the unit of the data.

    `parameters` name → value, `tidy()` a table with errors and intervals, `cone()` the confidence region of a direction
    in space, `log_density`, `simulate`, `plot()`; `fit` is the fit of the natural parameters.

    Example:
        >>> import numpy as np, unnorm as un
        >>> angles = np.random.default_rng(1).vonmises(1.0, 4.0, 200)
        >>> found = un.fit_direction(un.directions.von_mises(), un.iid(angles, unit="radians"))
        >>> sorted(found.parameters)
        ['kappa', 'mean']
    """

    family: Family  #: what was fitted
    chart: Chart  #: how its usual parameters follow from the natural ones
    fit: Fit  #: of the natural parameters
    unit: Unit  #: of the data
    which: int = 0  #: of the family's charts

    def __repr__(self) -> str:
        values = ", ".join(f"{row.name} {row.estimate:.4g}" for row in self.rows())
        return f"DirectionFit({self.family!r}: {values})"

    def __str__(self) -> str:
        return self.summary()

    @cached_property
    def _read(self) -> tuple[Reading, np.ndarray]:
        """The family's quantities, and their Jacobian in θ."""
        values, J = self.chart.values(self.fit.estimate)
        read = self.family.reading(values, J @ self.fit.covariance @ J.T)
        return read, read.slope @ J

    def rows(self, level: float = 0.95, robust: bool = False) -> list[Row]:
        """The lines of the table.

        Args:
            level: of the intervals.
            robust: whether errors come from the scores themselves, by cluster with cluster= on the objective.
        """
        read, J = self._read
        V = J @ (self.fit.covariance_robust if flag(robust, "robust") else self.fit.covariance) @ J.T
        places = zip(read.quantities, self.family.slices.values())
        return [row for quantity, at in places for row in quantity.rows(read.values[at], V[at, at], level, self.unit)]

    @property
    def parameters(self) -> dict[str, float]:
        """name → estimate, angles in the unit of the data."""
        return {row.name: row.estimate for row in self.rows()}

    def tidy(self, level: float = 0.95, robust: bool = False) -> Any:
        """A table: term, estimate, se, lower, upper, note; in the kind of frame that the data came in.

        Standard errors are by the delta method. The interval of a direction is Fieller's and may be the whole circle,
        which `note` says; it runs from `lower` through the estimate to `upper`, in the unit's own sense of rotation, so
        that `lower` may be the larger number.

        Args:
            level: of the intervals.
            robust: whether errors come from the scores themselves, by cluster with cluster= on the objective.
        """
        from .._base.frames import to_native

        rows = self.rows(level, robust)
        columns = {
            "term": np.array([row.name for row in rows]),
            **{name: np.array([getattr(row, name) for row in rows]) for name in ("estimate", "se", "lower", "upper")},
            "note": np.array([row.note or "" for row in rows]),
        }
        return to_native(columns, self.fit.backend)

    def vector(self, name: str = "mean") -> np.ndarray:
        """The direction of that name: a unit vector, in the plane or in space.

        Args:
            name: of the direction, e.g. "mean".
        """
        value = self._quantity(name)[0]
        if not value.any():
            raise InputError(f"There is no direction {name!r}: the vector whose direction it is has length 0.")
        return value / np.linalg.norm(value)

    def cone(self, name: str = "mean", level: float = 0.95) -> Cone | None:
        """The confidence region of a direction in space; None where that is the whole sphere.

        Args:
            name: of the direction, e.g. "mean".
            level: of the region.
        """
        value, V = self._quantity(name)
        if value.size != 3:
            raise InputError(f"{name!r} is not a direction in space; its interval is in tidy().")
        return cone(value, V, level)

    def _quantity(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        read, J = self._read
        directions = [one.name for one in self.family.quantities if one.size > 1]
        if name not in directions:
            raise InputError(unknown("name", name, directions))
        at = self.family.slices[name]
        return read.values[at], J[at] @ self.fit.covariance @ J[at].T

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say: of the fit, and of intervals that are the whole circle or sphere."""
        own = dict.fromkeys(f"{row.note[0].upper()}{row.note[1:]}." for row in self.rows() if row.note)
        remark = self.family.remark(self.parameters)
        return (*self.fit.notes, *own, *self._read[0].notes, *(() if remark is None else (remark,)))

    def summary(self, level: float = 0.95) -> str:
        """The fit as a text for people, with intervals of this level.

        Args:
            level: of the intervals.
        """
        fit, rows = self.fit, self.rows(level)
        wide = max(16, *(len(row.name) for row in rows))
        what = "longitude and latitude" if self.unit.places else "angles"
        sign = f", {what} in {self.unit.angles().name}"
        lines = [
            f"{self.family!r}, {counted(fit.n, fit.n_rows, 'directions')}{sign}",
            f"objective {fit.settings['objective']['objective']}; "
            f"{'converged' if fit.converged else 'NOT CONVERGED'} after {fit.iterations} steps",
            "",
            f"{'':<{wide}} {'estimate':>12} {'se':>10} {'lower':>12} {'upper':>12}",
            *(f"{r.name:<{wide}} {r.estimate:>12.5g} {r.se:>10.3g} {r.lower:>12.5g} {r.upper:>12.5g}" for r in rows),
            "",
        ]
        if fit.is_likelihood and fit.settings.get("weights") != "relative":
            lines.append(f"log-likelihood {fit.loglik:.6g}, AIC {fit.aic:.6g}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def log_density(self, y: Any, x: Any = None) -> np.ndarray:
        """log p(y|x) per radian (per steradian in space) at directions in the unit of the data.

        Args:
            y: directions.
            x: their contexts, of a chain or a regression.
        """
        values = np.asarray(y, dtype=np.float64)
        inner = self.unit.inward(np.atleast_2d(values) if self.unit.places else values)
        return self.fit.log_density(inner, x)

    def simulate(self, n: int, *, x0: Any = None, x: Any = None, chains: int | None = None, rng: Rng = None) -> Any:
        """Draws in the unit of the data, as a table: as `Fit.simulate`, and without a context exact for any κ.

        Args:
            n: outcomes, outcomes for each row of `x`, or steps of each chain.
            x0: the first points of each chain; default drawn from the observed contexts.
            x: covariates: a table or name → values.
            chains: how many; default as many as `x0` has.
            rng: seed or generator.
        """
        from .._base.frames import to_native

        if self.family.draw is None:
            return self._outward(self.fit.simulate(n, x0=x0, x=x, chains=chains, rng=rng))
        values = [self._read[0].values[at] for at in self.family.slices.values()]
        y = self.family.domain.wrap(self.family.draw(values, whole(n, "The number of draws", 0), generator(rng)))
        names = self.fit.settings["observations"]["outcome_names"]
        table = {name: y[:, j].copy() for j, name in enumerate(names)}
        return self._outward(to_native(table, self.fit.backend))

    def _outward(self, table: Any) -> Any:
        from .._base.frames import table as as_table
        from .._base.frames import to_native

        read = as_table(table)
        columns = {name: read.read(name).take(slice(None)) for name in read.names}
        names = [name for name in self.fit.settings["observations"]["outcome_names"] if name in columns]
        values = np.column_stack([columns[name] for name in names])
        if self.unit.places:
            rest = {name: values for name, values in columns.items() if name not in names}
            back = self.unit.outward(values)
            return to_native({**rest, "lon": back[:, 0], "lat": back[:, 1]}, self.fit.backend)
        for j, name in enumerate(names):
            columns[name] = self.unit.outward(values[:, j]) if self.family.domain.coordinate_period else values[:, j]
        return to_native(columns, self.fit.backend)

    def plot(self, ax: Any = None) -> Any:
        """A rose diagram with the fitted density, or a map of the sphere with its contours and the mean's region.

        Args:
            ax: where to draw; polar for a rose.
        """
        from .plots import plot_direction

        return plot_direction(self, ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a folder that `un.load` reads: JSON and npz, no code, the data included; an earlier fit there is
        replaced.

        Args:
            path: of the folder.
        """
        from .saving import save

        save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> DirectionFit:
        """Read a saved fit.

        Args:
            path: of the folder.
        """
        from .saving import load

        return load(path)
