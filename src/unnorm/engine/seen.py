"""Directions of a term that a likelihood cannot see, and its penalties on the others.

Where constants are estimated for each context, or cancel (𝓛, PerContext, Ranking), a change of f that is constant
within every context changes nothing: the level of each curve of an `fs` term, the functions of z alone in te(y, z).
A penalty that acts on nothing else has no smoothing parameter to estimate. Unseen directions that the other penalties
charge are left to them: what log|H + S_λ| and log|S_λ|₊ have of such directions is the penalty on the functions that
are seen, the unseen ones integrated out (a Schur complement), whatever the coefficients' coordinates. What no penalty
charges either is in neither determinant, and its coefficients are zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..terms.base import Penalty

_UNSEEN = 1e-11  # of the term's largest information: between rounding (1e-15) and what is seen (1e-7 in tp, k = 40)
_CONSTANT = 1e-6  # share of a function's size that varies within contexts, below which none does: rounding leaves 1e-7
_ALIKE = 1e-9  # of the largest: functions of unit size that differ by less are one, and only penalties tell them apart
_CHARGED = 1e-7  # of a penalty's root: a direction charged with less is in its null space, but for rounding
_DEAD = 1e-10  # of a penalty's root: what rounding leaves of one that acts on unseen directions alone


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


def acts(penalty: Penalty, blind: np.ndarray) -> bool:
    """Does it penalise anything but the directions `blind`?"""
    E = penalty.square_root
    return bool(np.linalg.norm(E - (E @ blind) @ blind.T) > _DEAD * max(float(np.linalg.norm(E)), 1e-300))


def untouched(blind: np.ndarray, penalties: Sequence[Penalty]) -> np.ndarray:
    """(p, c) orthonormal: those of the directions `blind` that no penalty charges, so that nothing determines them."""
    if not penalties or not blind.shape[1]:
        return blind
    charged = [E @ blind / max(float(np.linalg.norm(E)), 1e-300) for E in (one.square_root for one in penalties)]
    _, d, Vt = np.linalg.svd(np.concatenate(charged))
    rank = int(np.sum(d > _CHARGED))
    return blind @ Vt[rank:].T
