"""The stationary law of the fitted chain on a grid: π = π P, the chain's own transitions between cells.

A state is a cell, and where turns matter the direction in which it was entered. From its centre the nodes of the
kernel's own rule, weighted by exp f̂, are sorted into cells, which makes a sparse row of P; its leading left
eigenvector is π. Cells twice as wide tell the error: that of the grid falls as the square of their width.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.observations import Observations
from ..domains.base import Domain
from ..errors import EstimationError, InputError
from ..objectives.integrals import own_rules
from ..results.density import Density
from ..results.planar import box_around

HEADINGS = 8
ORDER = {True: 12, False: 20}  # of the rule at each state, with headings and without
BLOCK = 400  # states at a time
RESIDUAL = 1e-6  # of π P − π, in total variation


class Cells:
    """Cells of one width over the box around Ω; those whose centre lies in Ω are states."""

    def __init__(self, domain: Domain, side: float) -> None:
        self.lower, upper = box_around(domain)
        self.side = side
        self.shape = tuple(max(1, int(np.ceil(width / side - 1e-9))) for width in upper - self.lower)  # nx, ny
        self.x, self.y = (self.lower[j] + side * (np.arange(n) + 0.5) for j, n in enumerate(self.shape))
        middles = [  # of what the box has of the last cells
            0.5 * (axis - side / 2 + np.minimum(axis + side / 2, top)) for axis, top in zip((self.x, self.y), upper)
        ]
        centres = np.column_stack([a.ravel() for a in np.meshgrid(*middles)])
        inside = np.flatnonzero(domain.contains(centres))
        if inside.size < 4:
            raise InputError(f"cell={side:g} leaves {inside.size} cells in Ω: take smaller ones.")
        self.inside, self.centres = inside, centres[inside]
        self.state = np.zeros(len(centres), dtype=int)
        self.state[inside] = np.arange(inside.size)
        outside = np.setdiff1d(np.arange(len(centres)), inside)
        if outside.size:  # a cell that only its corner has in Ω counts with the nearest
            from scipy.spatial import KDTree

            self.state[outside] = KDTree(self.centres).query(centres[outside])[1]

    def of(self, points: np.ndarray) -> np.ndarray:
        """The state of each point."""
        i = np.clip(((points - self.lower) / self.side).astype(int), 0, np.array(self.shape) - 1)
        return self.state[i[:, 1] * self.shape[0] + i[:, 0]]

    def grid(self, mass: np.ndarray) -> np.ndarray:
        """(ny, nx) masses, zero outside."""
        out = np.zeros(self.shape[0] * self.shape[1])
        out[self.inside] = mass
        return out.reshape(self.shape[1], self.shape[0])


def stationary(
    density: Density, like: Observations, held: dict[str, Any], side: float, turns: bool
) -> tuple[Cells, np.ndarray]:
    """π by cell; `like`: the observations that were fitted, `held`: the other columns of the context."""
    from scipy import sparse
    from scipy.sparse.linalg import ArpackError, eigs

    cells = Cells(density.domain, side)
    H = HEADINGS if turns else 1
    size = len(cells.centres) * H
    contexts = _contexts(cells.centres, H, like, held)
    law = density.law(contexts)
    rows, columns, values = [], [], []
    for begin in range(0, size, BLOCK):
        some = contexts.take(np.arange(begin, min(begin + BLOCK, size)))
        y, w, of = own_rules(density.domain, law, some, ORDER[turns])
        f = density.f(some, y, of)
        mass = w * np.exp(f - _largest(f, of, some.n)[of])
        mass /= np.bincount(of, mass, some.n)[of]
        heading = 0
        if turns:
            step = y - some.previous()[of]
            heading = np.floor((np.arctan2(step[:, 1], step[:, 0]) / (2 * np.pi) % 1.0) * H).astype(int) % H
        rows.append(begin + of)
        columns.append(cells.of(y) * H + heading)
        values.append(mass)
    P = sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(size, size)
    )  # entries that meet are added
    Q = P.T.tocsr()
    try:
        found: Any = eigs(Q, k=1, which="LR", v0=np.ones(size), tol=1e-9, maxiter=20_000)  # pyright: ignore[reportArgumentType]
        pi = np.abs(np.real(found[1][:, 0]))
    except ArpackError as error:
        raise EstimationError(f"The stationary law was not found ({error}): take larger cells.") from error
    pi /= pi.sum()
    for _ in range(10):
        pi = Q @ pi
    residual = 0.5 * float(np.abs(Q @ pi - pi).sum())
    if residual > RESIDUAL:
        raise EstimationError(
            f"The stationary law was not found (a step still moves {residual:.1e} of it): take larger cells."
        )
    return cells, pi.reshape(-1, H).sum(axis=1) / pi.sum()


def _largest(f: np.ndarray, of: np.ndarray, n: int) -> np.ndarray:
    return np.maximum.reduceat(f, np.searchsorted(of, np.arange(n)))


def _contexts(centres: np.ndarray, H: int, like: Observations, held: dict[str, Any]) -> Observations:
    """A step from each centre, entered in each direction; the step before it had the median length."""
    n = len(centres) * H
    angle = np.tile(2 * np.pi * (np.arange(H) + 0.5) / H, len(centres))
    length = float(np.median(np.hypot(*(like.outcome - like.previous()).T)))
    at = np.repeat(centres, H, axis=0)
    names = like.outcome_names
    context = {f"{name}_prev": at[:, j] for j, name in enumerate(names)}
    for lag in range(2, like.lags + 1):
        before = at - (lag - 1) * length * np.column_stack([np.cos(angle), np.sin(angle)])
        context |= {f"{name}_prev{lag}": before[:, j] for j, name in enumerate(names)}
    filled = {name: np.broadcast_to(np.asarray(value), (n,)) for name, value in held.items()}
    extra = {name: filled[name] for name in like.extra if name in filled}
    group = {name: filled[name] for name in like.group if name in filled}
    return Observations("transitions", at, names, {**context, **extra}, like.lags, tuple(extra), group)
