"""Where an animal that moves by the fitted model spends its time: the chain's stationary law as a map.

Two ways: on a grid (steady_state.py), and by simulated tracks, whose first steps are left out and whose points are
counted in cells. Tracks are independent, so that the spread of their counts gives the Monte Carlo error of every cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from .._base.frames import to_native
from ..data.observations import Observations
from ..errors import InputError, listing, warn
from ..results.fit import Fit
from ..results.fitted_terms import columns_read
from .steady_state import Cells, stationary

CELLS = 50  # along the longer side
DOUBTFUL = 0.1  # total variation from which a map is doubted
COARSE = (
    "The map of utilisation may be off by {error:.2g} in total variation or more: its cells (side {side:.4g}) are wide "
    "beside the steps (median {step:.4g}) or beside what the animal selects. Take smaller ones, cell=…, or "
    "method='simulation'."
)


@final
@dataclass(frozen=True, eq=False)
class Utilisation:
    """Probabilities of cells (ny, nx) on centres x, y; they sum to one."""

    x: np.ndarray
    y: np.ndarray
    probability: np.ndarray
    error: float  # total variation by which the map may be off: against cells twice as wide, or Monte Carlo
    se: np.ndarray | None = None  # of each cell, where it was simulated
    backend: Any = field(default=None, repr=False)

    def __repr__(self) -> str:
        how = "stationary law on a grid" if self.se is None else "simulated tracks"
        return f"Utilisation({len(self.x)} × {len(self.y)} cells, {how}, error {self.error:.2g} in total variation)"

    def tidy(self) -> Any:
        """A table: x, y, probability (and se, of simulated tracks)."""
        gx, gy = np.meshgrid(self.x, self.y)
        columns = {"x": gx.ravel(), "y": gy.ravel(), "probability": self.probability.ravel()}
        return to_native(columns if self.se is None else {**columns, "se": self.se.ravel()}, self.backend)

    def plot(self, ax: Any = None) -> Any:
        """The map; returns the Axes."""
        from .plots import utilisation

        return utilisation(self, ax)


def width(fit: Fit, cell: float | None) -> float:
    """The side of the cells, as given or a fiftieth of the longer side of Ω."""
    assert fit.model is not None
    from ..results.planar import box_around

    lower, upper = box_around(fit.model.domain)
    side = float((upper - lower).max()) / CELLS if cell is None else float(cell)
    if not side > 0.0:
        raise InputError(f"cell must be a positive length; got {cell!r}.")
    return side


def steady(fit: Fit, cell: float | None, at: Any) -> Utilisation:
    """By the grid."""
    assert fit.model is not None
    obs = fit.obs
    if obs is None:
        raise InputError("A loaded fit has no observations to begin from: fit again, or simulate.")
    held = _held(fit, obs, {} if at is None else dict(at))
    read = columns_read(fit) or ()
    kernel: Any = fit.model.base.kernel if fit.model.base is not None else None
    known = fit.model.covariates(obs)
    before = {f"{name}_prev{lag}" for name in obs.outcome_names for lag in range(2, obs.lags + 1)}
    turns = kernel.turn.needs_heading or bool(before & set(known.reads(name for name in read if name in known)))
    side = width(fit, cell)
    cells, pi = stationary(fit.density, obs, held, side, turns)
    wide, rough = stationary(fit.density, obs, held, 2.0 * side, turns)
    together = np.bincount(wide.of(cells.centres), pi, len(rough))
    error = 0.5 * float(np.abs(together - rough).sum())
    step = float(np.median(np.hypot(*(obs.outcome - obs.previous()).T)))
    if error > DOUBTFUL or side > 4.0 * step:  # half of all steps leave no cell
        warn(COARSE.format(error=error, side=side, step=step), stacklevel=3)
    return Utilisation(cells.x, cells.y, cells.grid(pi), error, None, fit.backend)


def _held(fit: Fit, obs: Observations, at: dict[str, Any]) -> dict[str, Any]:
    """One value of each column of the context that f reads besides places."""
    read = set(columns_read(fit) or ())
    wanted = [name for name in (*obs.extra, *obs.group) if name in read]
    missing = [name for name in wanted if name not in at]
    if missing:
        raise InputError(
            f"f reads {listing(missing)}, which change along a track: say where the map is to hold, as "
            f"at={{{missing[0]!r}: …}}, or simulate (method='simulation')."
        )
    return {name: at[name] for name in wanted}


def counted(fit: Fit, tracks: np.ndarray, cell: float | None) -> Utilisation:
    """From tracks (chains, steps, 2)."""
    assert fit.model is not None
    cells = Cells(fit.model.domain, width(fit, cell))
    chains, steps, _ = tracks.shape
    size = len(cells.centres)
    each = np.stack([np.bincount(cells.of(one), minlength=size) for one in tracks]) / steps
    se = each.std(axis=0, ddof=1) / np.sqrt(chains)
    error = float(0.5 * np.sqrt(2.0 / np.pi) * se.sum())
    return Utilisation(cells.x, cells.y, cells.grid(each.mean(axis=0)), error, cells.grid(se), fit.backend)
