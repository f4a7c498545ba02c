"""The centre bias as a baseline: a density of places, relative to the window, that knows nothing of steps or images.

Places of the training data, as shares of their window's width and height, are counted on a grid, smoothed by a Gaussian
kernel that is reflected at the sides, and mixed with a little of the uniform law. Bandwidth and mixture are those under
which groups left out (images, by default) are likeliest, as pysaliency chooses those of its baseline models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..data.observations import Observations
from ..data.placing import by_window, frame_of, window_codes
from ..domains.base import Domain
from ..errors import CombinationError

CELLS = 64  # along each side
BANDWIDTHS = (0.015, 0.025, 0.04, 0.06, 0.09, 0.13, 0.2, 0.3)  # of a side
SHARES = (1e-4, 1e-3, 1e-2, 0.05, 0.2, 1.0)  # of the uniform law
FOLDS = 5


@final
@dataclass(frozen=True, eq=False)
class CentreBias:
    """p(u) on the unit square, constant in each cell, with mean one."""

    density: np.ndarray  # (CELLS, CELLS), of x and y
    bandwidth: float
    share: float  # of the uniform law
    n: int  # places it was fitted to

    def __str__(self) -> str:
        return (
            f"a centre bias fitted to {self.n:,} places (bandwidth {self.bandwidth:g} of a side, "
            f"{100 * self.share:g} % uniform)"
        )

    def relative(self, domain: Domain, obs: Observations) -> dict[str, np.ndarray]:
        """For each outcome log₂ of its density over the uniform law's, NSS and AUC; all within its own window."""
        cell = cells(relative_places(domain, obs))
        out = {name: np.empty(obs.n) for name in ("bits", "nss", "auc")}
        centres = (np.stack(np.meshgrid(*[np.arange(CELLS)] * 2, indexing="ij"), axis=-1).reshape(-1, 2) + 0.5) / CELLS
        for window, rows in by_window(domain, obs):
            box = window.enclosing_box
            assert box is not None
            inside = window.contains(box[0] + centres * (box[1] - box[0]))
            all_cells = self.density.ravel()
            here = all_cells[inside]
            p = all_cells[cell[rows]] / here.mean()
            order = np.sort(here)
            below, upto = (np.searchsorted(order, all_cells[cell[rows]], side) for side in ("left", "right"))
            out["bits"][rows] = np.log2(p)
            out["nss"][rows] = (p - 1.0) / max(float((here / here.mean()).std()), 1e-300)
            out["auc"][rows] = 0.5 * (below + upto) / len(order)
        return out


def relative_places(domain: Domain, obs: Observations) -> np.ndarray:
    """(n, 2) outcomes as shares of the width and height of their windows."""
    frame = frame_of(domain)
    if frame is None:
        raise CombinationError(f"A centre bias is one of places in the plane; the outcomes are in {domain!r}.")
    w = window_codes(domain, obs)
    return (obs.outcome - frame.lower[w]) / frame.width[w]


def cells(u: np.ndarray) -> np.ndarray:
    """The cell of each place in the unit square."""
    i = np.clip((u * CELLS).astype(np.intp), 0, CELLS - 1)
    return i[:, 0] * CELLS + i[:, 1]


def centre_bias(domain: Domain, obs: Observations, groups: np.ndarray | None = None) -> CentreBias:
    """The baseline of these observations; `groups` (n,) are left out together where the bandwidth is chosen."""
    cell = cells(relative_places(domain, obs))
    code = np.arange(obs.n) if groups is None else np.unique(groups, return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(int(code.max()) + 1)  # folds do not follow the order of images
    fold = order[code] % min(FOLDS, len(order))
    w = obs.weights
    total = np.bincount(cell, w, CELLS**2)
    if fold.max() == 0:
        return CentreBias(_smoothed(total, 0.09, 0.01), 0.09, 0.01, obs.n)
    parts = [np.bincount(cell[fold == f], w[fold == f], CELLS**2) for f in range(int(fold.max()) + 1)]
    scores: dict[tuple[float, float], float] = {}
    for h in BANDWIDTHS:
        kernel = [_smoothed(total - own, h, 0.0).ravel() for own in parts]
        for share in SHARES:
            scores[h, share] = sum(
                float(own @ np.log((1 - share) * k + share)) for own, k in zip(parts, kernel) if own.any()
            )
    h, share = max(scores, key=lambda one: scores[one])
    return CentreBias(_smoothed(total, h, share), h, share, obs.n)


def _smoothed(count: np.ndarray, h: float, share: float) -> np.ndarray:
    from scipy.ndimage import gaussian_filter

    smooth: Any = gaussian_filter(count.reshape(CELLS, CELLS), h * CELLS, mode="reflect")
    smooth = np.maximum(smooth, 1e-12 * smooth.max())
    return (1.0 - share) * smooth / smooth.mean() + share
