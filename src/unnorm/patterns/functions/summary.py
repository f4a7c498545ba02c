"""A summary function: its values at distances r, beside what they are without interaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ..._base.frames import to_native
from ..._base.numerics import floats
from ...errors import InputError

if TYPE_CHECKING:
    from ..point_pattern import Pattern

STEPS = 512


@final
@dataclass(frozen=True, eq=False)
class Summary:
    """Estimates at distances r, with the value of a Poisson process.

    Example:
        >>> import numpy as np, unnorm as un
        >>> points = un.pattern(np.random.default_rng(1).random((100, 2)), window=un.Box((0, 1), (0, 1)))
        >>> un.patterns.K(points).name
        'K'
    """

    name: str  #: of the function
    correction: str  #: of edges
    r: np.ndarray  #: distances
    value: np.ndarray  #: the estimates
    theory: np.ndarray  #: of a Poisson process
    backend: Any = None  #: the user's kind of table, for those given back

    def table(self) -> Any:
        """r, value and theory, as a table of the data's kind."""
        return to_native({"r": self.r, "value": self.value, "theory": self.theory}, self.backend)

    def __repr__(self) -> str:
        return f"Summary({self.name}, {self.correction}, r from {self.r[0]:.4g} to {self.r[-1]:.4g})"

    def plot(self, ax: Any = None) -> Any:
        """The estimate, and dashed what it is without interaction."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        ax.plot(self.r, self.value, label=f"{self.name}, {self.correction}")
        ax.plot(self.r, self.theory, "--", color="0.5", label="Poisson")
        ax.set(xlabel="r", ylabel=f"{self.name}(r)")
        ax.legend(frameon=False)
        return ax


def distances(r: Any, default: float, pattern: Pattern) -> np.ndarray:
    """Increasing distances, the first of them 0; default 513, up to `default`."""
    if r is None:
        return np.linspace(0.0, default, STEPS + 1)
    grid = np.asarray(r, dtype=np.float64)
    if grid.ndim != 1 or len(grid) < 2 or not np.all(np.isfinite(grid)) or grid[0] < 0 or not np.all(np.diff(grid) > 0):
        raise InputError("r must be two or more increasing distances, none negative.")
    low, high = pattern.windows[0].enclosing_box or (0.0, np.inf)
    across = float(np.linalg.norm(high - low))
    if grid[-1] > across:
        raise InputError(
            f"r goes up to {grid[-1]:.6g}, and no two places in the window are more than {across:.6g} apart. Take a "
            f"smaller r: the default ends at {default:.6g}."
        )
    return grid if grid[0] == 0.0 else np.concatenate([[0.0], grid])


def alone(pattern: Pattern, name: str, least: int = 2) -> None:
    """Refuse what is no pattern, replicates, and patterns with too few points."""
    from ..point_pattern import Pattern

    if not isinstance(pattern, Pattern):
        raise InputError(f"{name} is a function of a pattern, un.pattern(…); got {type(pattern).__name__}.")
    if pattern.replicates > 1:
        raise InputError(f"{name} is a function of one pattern: take one replicate, pattern.only(0).")
    if pattern.n < least:
        raise InputError(f"{name} needs {least} or more points; the pattern has {pattern.n}.")


def widest(pattern: Pattern) -> float:
    """A quarter of the shorter side of the window's box: beyond it estimates are mostly noise."""
    box = pattern.windows[0].enclosing_box
    assert box is not None
    return float((box[1] - box[0]).min()) / 4.0


def positive_at_points(pattern: Pattern, intensity: Any) -> np.ndarray:
    """(n,) λ at the points, checked."""
    lam = floats(intensity, "intensity, λ at each point (of a fit, fit.intensity(pattern.table())['intensity']),")
    if lam.shape != (pattern.n,):
        raise InputError(f"intensity must be {pattern.n:,} numbers, one for each point; got shape {lam.shape}.")
    wrong = np.flatnonzero(~(np.isfinite(lam) & (lam > 0.0)))
    if wrong.size:
        x, y = pattern.xy[wrong[0]]
        raise InputError(
            f"intensity must be positive and finite at every point; it is {lam[wrong[0]]:.6g} at ({x:.6g}, {y:.6g})."
        )
    return lam
