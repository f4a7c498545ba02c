"""`StepFit`: what can be asked of a step selection model besides what any fit answers."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from .._base import frames
from .._base.frames import to_native
from .._base.numerics import Rng, generator, whole
from ..data.covariates.maps import Map
from ..errors import CombinationError, InputError, unknown
from ..references.step_kernel import StepKernel
from ..results.fit import Fit
from .calibration import Calibration, calibrate
from .movement import kernel_of, movement_columns, updated
from .utilisation import Utilisation, counted, steady


@final
@dataclass(frozen=True, eq=False)
class StepFit:
    """A fitted step selection model; `fit` is the `Fit` itself. Of a loaded fit, `StepFit(un.load(path, model=…))`.

    Example:
        >>> import numpy as np, unnorm as un
        >>> walk = np.cumsum(np.random.default_rng(1).normal(0, 80, (200, 2)), axis=0)
        >>> table = {"t": np.arange(200) * 60, "x": walk[:, 0], "y": walk[:, 1]}
        >>> fixes = un.track(table, time="t", x="x", y="y", unit="metres")
        >>> found = un.fit_steps(fixes, "x", per_point=5, rng=1)
        >>> found.fit.names
        ('x',)
    """

    fit: Fit  #: the fit itself
    maps: tuple[Map, ...] = field(default=(), repr=False)  #: rasters that f reads

    def __post_init__(self) -> None:
        if self.fit.model is None or self.fit.model.base is None:
            raise CombinationError(
                "A StepFit needs a fit relative to a kernel: un.fit_steps(…), or base=un.Tilt(kernel)."
            )

    def __repr__(self) -> str:
        return f"StepFit({self.fit!r})"

    def __str__(self) -> str:
        return self.summary()

    @property
    def kernel(self) -> StepKernel:
        """k, with the parameters fitted to the observed steps."""
        return kernel_of(self.fit)

    def summary(self) -> str:
        """Coefficients of f, and the kernel that it is relative to."""
        k = self.kernel
        return f"{self.fit.summary()}\nrelative to steps {k.step.describe()}, turns {k.turn.describe()}"

    def tidy(self, level: float = 0.95, robust: bool = False) -> Any:
        """The coefficients as a table, as `Fit.tidy`.

        Args:
            level: of the intervals.
            robust: whether errors come from the scores themselves, by cluster with cluster= on the objective.
        """
        return self.fit.tidy(level, robust)

    def rows(self) -> Any:
        """The case-control table, as `Fit.rows`."""
        return self.fit.rows()

    def contrast(self, at1: Any, at2: Any, level: float = 0.95, robust: bool = False) -> Any:
        """log RSS, the log of the relative selection strength of at1 over at2, with intervals; as `Fit.contrast`.

        Args:
            at1: a table, or covariate → value or values.
            at2: likewise.
            level: of the intervals.
            robust: whether errors come from the scores themselves, by cluster with cluster= on the objective.
        """
        return self.fit.contrast(at1, at2, level, robust)

    def movement(self, at: Any = None, level: float = 0.95) -> Any:
        """The updated movement kernel as a table: part, law, parameter, tentative, estimate, se, lower, upper.

        Args:
            at: covariates that change the kernel, as {"night": 1} where f has cos_turn:night; others at their median.
            level: of the intervals (delta method).
        """
        return to_native(movement_columns(self.fit, at, level), self.fit.backend)

    def updated_kernel(self, at: Any = None) -> StepKernel:
        """The updated movement kernel, to draw from or to compare.

        Args:
            at: covariates that change the kernel, as in `movement`; others at their median.
        """
        return updated(self.fit, at)

    def simulate(self, n: int, *, x0: Any = None, x: Any = None, chains: int | None = None, rng: Rng = None) -> Any:
        """Tracks of n steps that never leave Ω, as `Fit.simulate`: columns chain, step, x, y and what x holds.

        Args:
            n: steps of each track.
            x0: the first points of each chain; default drawn from the observed contexts.
            x: covariates: a table or name → values.
            chains: how many; default as many as `x0` has.
            rng: seed or generator.
        """
        return self.fit.simulate(n, x0=x0, x=x, chains=chains, rng=rng)

    def utilisation(
        self,
        cell: float | None = None,
        *,
        at: Any = None,
        method: str = "grid",
        steps: int = 500,
        chains: int = 100,
        burn: int | None = None,
        rng: Rng = None,
    ) -> Utilisation:
        """The steady-state map: the share of time that an animal spends in each cell when it moves by the model.

        Args:
            cell: side of the cells; default a fiftieth of the longer side of Ω.
            at: values of the columns that f reads besides places, as {"night": 1}; with method="simulation" also one
                for each of burn + steps, so that they may change along the tracks.
            method: "grid", the stationary law of the transitions between cells, with an error from cells twice as
                wide; or "simulation", tracks counted in cells, with Monte Carlo errors.
            steps, chains: of simulated tracks, from observed places.
            burn: steps left out before these; default as many.
            rng: seed or generator, for simulation.
        """
        if method == "grid":
            return steady(self.fit, cell, at)
        if method != "simulation":
            raise InputError(unknown("method", method, ("grid", "simulation")))
        count, tracks = whole(steps, "steps", 2), whole(chains, "chains", 2)
        left_out = count if burn is None else whole(burn, "burn", 0)
        table = frames.table(self.simulate(left_out + count, x=at, chains=tracks, rng=rng))
        names = self.fit.settings["observations"]["outcome_names"]
        every = np.arange(table.n)
        points = np.column_stack([table.read(name).take(every) for name in names]).reshape(tracks, -1, 2)
        return counted(self.fit, points[:, -count:], cell)

    def calibration(self, name: str, *, draws: int = 200, level: float = 0.95, rng: Rng = 0) -> Calibration:
        """Used-habitat calibration: how a covariate is distributed over observed steps, and the model's band for it.

        Args:
            name: of the covariate.
            draws: data sets simulated from the fit.
            level: of the band.
            rng: seed or generator.
        """
        return calibrate(self.fit, name, whole(draws, "draws", 2), level, generator(rng))

    def plot(self, ax: Any = None) -> Any:
        """Step lengths with the kernel, and the updated kernel where f reads the step; returns the Axes.

        Args:
            ax: where to draw.
        """
        from .plots import step_law

        assert self.fit.obs is not None
        lengths = np.hypot(*(self.fit.obs.outcome - self.fit.obs.previous()).T)
        try:
            new = self.updated_kernel().step
        except InputError:  # f is a curve in the step
            new = None
        return step_law(lengths, self.kernel.step, new if new != self.kernel.step else None, ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit as a folder; `StepFit(un.load(path, model=fit.model))` reads it.

        Args:
            path: of the folder.
        """
        self.fit.save(path)
