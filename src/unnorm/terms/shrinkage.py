"""Smooths that can vanish: `ts` and `cs`, whose penalty has no null space, and `select`, a second penalty on it (Marra
& Wood 2011, Computational Statistics & Data Analysis 55: 2372–2387)."""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from .base import BuiltTerm, Penalty
from .basis import Setup
from .built import SmoothTerm
from .cubic import CubicRegression
from .kinds import BasisKind, Request
from .sample import Sample
from .thin_plate import ThinPlates

SHRINK = 0.1  # eigenvalue of the null space, of the smallest positive one (mgcv's)


def _null_rows(roots: tuple[np.ndarray, ...], null_dim: int) -> tuple[np.ndarray, float]:
    """Orthonormal rows (null_dim, p) that span the null space, and the smallest positive singular value."""
    _, d, V = np.linalg.svd(np.concatenate(roots))
    rank = V.shape[0] - null_dim
    return V[rank:], float(d[rank - 1])


def shrunk(setup: Setup, sample: Sample, powers: tuple[float, ...]) -> Setup:
    """The setup with its null space penalised: eigenvalue SHRINK^power of the smallest positive one for each direction
    of it, the constant last."""
    null, least = _null_rows(setup.roots, setup.null_dim)
    values = setup.columns @ null.T
    centred = values - sample.mean(values)
    order = np.linalg.eigh((centred * sample.weights[:, None]).T @ centred)[1][:, ::-1]  # by variance over the data
    weights = least * SHRINK ** (0.5 * np.array(powers))
    root = np.concatenate([setup.roots[0], weights[:, None] * (order.T @ null)])
    return replace(setup, roots=(root,), ranks=(setup.ranks[0] + setup.null_dim,), null_dim=0)


@final
class ShrunkThinPlates(BasisKind):
    """`ts`: thin plates whose straight parts are penalised too, so that the whole term can vanish."""

    name = "ts"
    covariates = (1, 3)
    takes_m = True

    def setup(self, request: Request) -> Setup:
        plain = ThinPlates().setup(request)
        return shrunk(plain, request.sample, (1.0,) * plain.null_dim)

    def examples(self) -> tuple[str, ...]:
        return ("s(x, bs='ts')", "s(x, z, bs='ts', k=20)")


@final
class ShrunkCubic(BasisKind):
    """`cs`: `cr` that can vanish. mgcv leaves to rounding whether line or constant is shrunk more; here constant."""

    name = "cs"

    def setup(self, request: Request) -> Setup:
        return shrunk(CubicRegression().setup(request), request.sample, (1.0, 2.0))

    def examples(self) -> tuple[str, ...]:
        return ("s(x, bs='cs')", "s(x, bs='cs', k=5)")


def selectable(term: BuiltTerm) -> BuiltTerm:
    """The term with a second penalty, on the null space of its own, where it has one: mgcv's select=TRUE."""
    if not isinstance(term, SmoothTerm) or not term.penalties or term.null_dim == 0:
        return term
    balanced = tuple(p.square_root / np.linalg.norm(p.square_root) for p in term.penalties)
    null, _ = _null_rows(balanced, term.null_dim)
    labels = [f"{term.label}{i + 1}" for i in range(len(term.penalties) + 1)]
    own = [replace(penalty, label=label) for penalty, label in zip(term.penalties, labels)]
    extra = Penalty(null.T @ null, term.null_dim, labels[-1], null)
    return replace(term, penalties=(*own, extra), fixed_sp=(*term.fixed_sp, None), null_dim=0, spectrum=None)
