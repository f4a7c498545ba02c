"""Directions of a term that a likelihood cannot see, and its penalties on the others.

Where constants are estimated for each context, or cancel (𝓛, PerContext, Ranking), a change of f that is constant
within every context changes nothing: the level of each curve of an `fs` term, the functions of z alone in te(y, z).
Such directions belong neither in log|H + S_λ| nor in log|S_λ|₊, and a penalty that acts on nothing else has no
smoothing parameter to estimate. Their coefficients are zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..terms.base import Penalty

_UNSEEN = 1e-11  # of the term's largest information: between rounding (1e-15) and what is seen (1e-7 in tp, k = 40)
_CONSTANT = 1e-6  # share of a function's size that varies within contexts, below which none does: rounding leaves 1e-7
_ALIKE = 1e-9  # of the largest: functions of unit size that differ by less are one, and only penalties tell them apart
_DEAD = 1e-10  # of a penalty's root: what rounding leaves of one that acts on unseen directions alone


@dataclass(frozen=True)
class SeenPenalty:
    """P S P with P the projection on what is seen: S = EᵀE."""

    matrix: np.ndarray
    root: np.ndarray


def unseen(information: np.ndarray) -> np.ndarray:
    """(p, c) orthonormal: the directions of one term's coefficients that carry no information.

    >>> unseen(np.diag([2.0, 0.0, 1.0])).T.tolist()
    [[0.0, 1.0, 0.0]]
    """
    values, vectors = np.linalg.eigh(information)
    return vectors[:, values <= _UNSEEN * max(values.max(initial=0.0), 1e-300)]


def unvarying(within: np.ndarray, between: np.ndarray) -> np.ndarray:
    """(p, c) orthonormal: the directions of one term's coefficients whose functions are constant within each context.

    `within`: XᵀWX of the columns less their context's mean; `between`: that of the means. With B = within + between the
    size of a function, uᵀ within u / uᵀBu is its share that varies with y. Unlike the information itself it does not
    depend on the scale of the columns: functions that few rows reach have little of it, and may still vary with y.

    >>> unvarying(np.diag([2.0, 0.0, 1e-12]), np.diag([0.0, 1.0, 0.0])).round(12).T.tolist()
    [[0.0, 1.0, 0.0]]
    """
    B = within + between
    unit = 1.0 / np.sqrt(np.maximum(np.diag(B), 1e-300))
    sizes, vectors = np.linalg.eigh(B * np.outer(unit, unit))
    kept = sizes > _ALIKE * max(sizes.max(initial=0.0), 1e-300)
    white = unit[:, None] * vectors[:, kept] / np.sqrt(sizes[kept])  # whiteᵀ B white = I
    share, turned = np.linalg.eigh(white.T @ within @ white)
    return np.linalg.qr(white @ turned[:, share <= _CONSTANT])[0]


def on_seen(penalty: Penalty, blind: np.ndarray) -> SeenPenalty | None:
    """The penalty on the directions orthogonal to `blind`; None where it acts on nothing else."""
    E = penalty.square_root
    root = E - (E @ blind) @ blind.T
    if np.linalg.norm(root) <= _DEAD * max(float(np.linalg.norm(E)), 1e-300):
        return None
    return SeenPenalty(root.T @ root, root) if blind.shape[1] else SeenPenalty(penalty.matrix, E)
