"""Symmetric arrowhead matrices: columns shared by all rows, and blocks of columns that only one level's rows touch.

    H = [ H_00  H_01 … H_0L ]        H⁻¹_00 = Σ = (H_00 − Σ_l H_0l H_ll⁻¹ H_l0)⁻¹
        [ H_10  H_11        ]        H⁻¹_l0 = −A_l Σ,  A_l = H_ll⁻¹ H_l0
        [  ⋮          ⋱     ]        H⁻¹_lm = δ_lm H_ll⁻¹ + A_l Σ A_mᵀ
        [ H_L0         H_LL ]

With A_0 = −I the last line holds for every pair of blocks. A model without levels is the case L = 0.
Vectors are flat: the shared part first, then each level's. Blocks of levels that all have as many columns lie in one
array (L, k, ·), over which algebra goes at once: it costs O(L k (k + s)²) whatever L, and no (Lk)² is ever formed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

_OWN = (
    300  # columns up to which our own factorisation is the quicker: it needs no BLAS threads, which collide with ours
)


_DIGITS = 1e-8  # least² · (left of H_00), pivots of a unit diagonal, below which rounding is 10⁻⁸ of what is left
_STACK = 8  # levels from which algebra goes over all of them at once
Blocks = Sequence[np.ndarray] | np.ndarray  # one for each level; an array (L, k, ·) where all have as many columns


def tall(blocks: np.ndarray) -> np.ndarray:
    """Blocks (L, k, c) one below the other, (L k, c); c is 0 where a model has no shared columns."""
    return blocks.reshape(blocks.shape[0] * blocks.shape[1], blocks.shape[2])


class Singular(Exception):
    """A pivot that is not positive; `block` (−1: shared) and `direction` say where, `own` what it is in each level."""

    def __init__(self, block: int, direction: np.ndarray, own: Sequence[np.ndarray] = ()) -> None:
        super().__init__(f"block {block} is not positive definite")
        self.block = block
        self.direction = direction
        self.own = own

    def flat(self, starts: np.ndarray) -> np.ndarray:
        """The direction among all coefficients."""
        out = np.zeros(starts[-1])
        out[starts[self.block + 1] : starts[self.block + 2]] = self.direction
        for k, part in enumerate(self.own):
            out[starts[k + 1] : starts[k + 2]] = part
        return out


@dataclass(frozen=True)
class Arrow:
    """shared (s, s); own[l] (k_l, k_l); cross[l] (k_l, s)."""

    shared: np.ndarray
    own: Blocks = ()
    cross: Blocks = ()

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each block starts in a flat vector: shared, own_1, …, and the total size."""
        return _starts(len(self.shared), self.own)

    @cached_property
    def stacked(self) -> tuple[np.ndarray, np.ndarray] | None:
        """own (L, k, k) and cross (L, k, s) where every level has as many columns: then algebra goes over all levels
        at once."""
        return _stack(self.own, self.cross)

    def plus(self, other: Sequence[np.ndarray]) -> Arrow:
        """With matrices added on the diagonal blocks: shared, then each level's."""
        return self.add(other[0], other[1:])

    def add(self, shared: np.ndarray, own: Blocks) -> Arrow:
        """The same, the levels' blocks by themselves."""
        if self.stacked is not None:
            return Arrow(self.shared + shared, self.stacked[0] + np.asarray(own), self.stacked[1])
        return Arrow(self.shared + shared, tuple(a + b for a, b in zip(self.own, own)), self.cross)

    def ridged(self, diagonal: np.ndarray) -> Arrow:
        """With a diagonal added, where there are no levels."""
        shared = self.shared.copy()
        shared.ravel()[:: len(shared) + 1] += diagonal
        return Arrow(shared)

    def dot(self, v: np.ndarray) -> np.ndarray:
        """H v, for a vector or the columns of a matrix."""
        if not len(self.own):
            return self.shared @ v
        at = self.starts
        out = np.empty(v.shape)
        top = self.shared @ v[: at[1]]
        if self.stacked is not None:
            own, cross = self.stacked
            here = v[at[1] :].reshape(len(own), own.shape[1], -1)
            below = np.matmul(own, here).reshape(v[at[1] :].shape)
            flat = tall(cross)
            out[at[1] :] = below + flat @ v[: at[1]]
            out[: at[1]] = top + flat.T @ v[at[1] :]
            return out
        for k, (own, cross) in enumerate(zip(self.own, self.cross)):
            here = v[at[k + 1] : at[k + 2]]
            out[at[k + 1] : at[k + 2]] = own @ here + cross @ v[: at[1]]
            top += cross.T @ here
        out[: at[1]] = top
        return out

    def diagonal(self) -> np.ndarray:
        """The diagonal, flat."""
        if self.stacked is not None:
            return np.concatenate([np.diag(self.shared), np.diagonal(self.stacked[0], axis1=1, axis2=2).ravel()])
        return np.concatenate([np.diag(self.shared), *(np.diag(block) for block in self.own)])

    def keep(self, which: np.ndarray) -> Arrow:
        """The rows and columns where `which` (flat, bool) holds."""
        at = self.starts
        top = which[: at[1]]
        if self.stacked is not None and (k := _alike(which, at)) is not None and k.any():
            own, cross = self.stacked
            return Arrow(self.shared[np.ix_(top, top)], own[:, k][:, :, k], cross[:, k][:, :, top])
        parts = [which[a:b] for a, b in itertools.pairwise(at)]
        return Arrow(
            self.shared[np.ix_(parts[0], parts[0])],
            tuple(block[np.ix_(k, k)] for block, k in zip(self.own, parts[1:])),
            tuple(block[np.ix_(k, parts[0])] for block, k in zip(self.cross, parts[1:])),
        )

    def dense(self) -> np.ndarray:
        """The whole matrix."""
        at = self.starts
        out = np.zeros((at[-1], at[-1]))
        out[: at[1], : at[1]] = self.shared
        for k, (own, cross) in enumerate(zip(self.own, self.cross)):
            rows = slice(at[k + 1], at[k + 2])
            out[rows, rows] = own
            out[rows, : at[1]] = cross
            out[: at[1], rows] = cross.T
        return out

    def invert(self) -> ArrowInverse:
        """H⁻¹ by blocks, and log|H|; raises `Singular`.

        What is left of H_00 may be 10⁻⁹ of it: an intercept, beside curves of levels whose rows' weights range from 1
        to 10⁶. Where rounding in H_ll⁻¹ is much of that, A_l takes a step of refinement, and with R = H_l0 − H_ll A_l
        what comes off H_00 is H_l0ᵀA_l + A_lᵀR, which errs by the square of what A_l is off."""
        if self.stacked is not None:
            return self._invert_stacked(*self.stacked)
        if not len(self.own):
            return ArrowInverse(*_whole(self.shared))
        inverses, parts, pivots = zip(*(_inverse(own, k) for k, own in enumerate(self.own)))
        slopes = [inverse @ cross for inverse, cross in zip(inverses, self.cross)]
        schur = self.shared - sum(cross.T @ slope for cross, slope in zip(self.cross, slopes))
        if self._rough(min(pivots), schur):
            slopes = [a + p @ (c - h @ a) for a, p, c, h in zip(slopes, inverses, self.cross, self.own)]
            schur = self.shared - sum(c.T @ a + a.T @ (c - h @ a) for a, c, h in zip(slopes, self.cross, self.own))
        return self._inverse(schur, inverses, tuple(slopes), float(sum(parts)))

    def _invert_stacked(self, own: np.ndarray, cross: np.ndarray) -> ArrowInverse:
        """The same for levels of equal size, all at once."""
        inverse, logdet, least = _inverses(own)
        slope = np.matmul(inverse, cross)
        schur = self.shared - tall(cross).T @ tall(slope)
        if self._rough(least, schur):
            slope = slope + np.matmul(inverse, cross - np.matmul(own, slope))
            schur = self.shared - tall(cross).T @ tall(slope) - tall(slope).T @ tall(cross - np.matmul(own, slope))
        return self._inverse((schur + schur.T) / 2, inverse, slope, logdet)

    def _rough(self, least: float, schur: np.ndarray) -> bool:
        """Whether rounding in the inverses of the levels' blocks is much of what they leave of the shared one."""
        whole = self.shared.diagonal()
        left = np.divide(schur.diagonal(), whole, out=np.zeros(len(whole)), where=whole > 0)
        return bool(least * least * left.min(initial=1.0) < _DIGITS)

    def _inverse(self, schur: np.ndarray, inverses: Blocks, slopes: Blocks, logdet: float) -> ArrowInverse:
        try:
            sigma, part, _ = _inverse(schur, -1, np.diag(self.shared))
        except Singular as singular:
            raise Singular(-1, singular.direction, [-slope @ singular.direction for slope in slopes]) from None
        return ArrowInverse(sigma, inverses, slopes, logdet + part)


def _whole(matrix: np.ndarray) -> tuple[np.ndarray, Blocks, Blocks, float]:
    """The inverse of a matrix without levels."""
    sigma, logdet, _ = _inverse(matrix, -1)
    return sigma, (), (), logdet


def _starts(shared: int, own: Blocks) -> np.ndarray:
    if isinstance(own, np.ndarray):
        return np.concatenate([[0], shared + own.shape[1] * np.arange(len(own) + 1)])
    return np.cumsum([0, shared, *(len(block) for block in own)])


def _alike(which: np.ndarray, starts: np.ndarray) -> np.ndarray | None:
    """(k,) what is kept of each level, where levels have as many columns and it is the same of all."""
    sizes = np.diff(starts[1:])
    if sizes.size == 0 or np.any(sizes != sizes[0]):
        return None
    levels = which[starts[1] :].reshape(sizes.size, sizes[0])
    return levels[0] if np.all(levels == levels[0]) else None


def _stack(own: Blocks, cross: Blocks) -> tuple[np.ndarray, np.ndarray] | None:
    if isinstance(own, np.ndarray) and isinstance(cross, np.ndarray):
        return own, cross
    if len(own) < _STACK or len({block.shape for block in own}) > 1 or own[0].size == 0:
        return None
    return np.array(own), np.array(cross)


def _inverses(own: np.ndarray) -> tuple[np.ndarray, float, float]:
    """The inverses of (L, k, k), the sum of their log-determinants and the least pivot, scaled as in `_inverse`."""
    diagonal = np.diagonal(own, axis1=1, axis2=2)
    if own.shape[1] == 1 and np.all(diagonal > 0) and np.all(np.isfinite(diagonal)):
        return 1.0 / own, float(np.sum(np.log(own))), 1.0
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, np.nan))
    unit = own * scale[:, :, None] * scale[:, None, :]
    try:
        pivots = np.diagonal(np.linalg.cholesky(unit), axis1=1, axis2=2)
    except np.linalg.LinAlgError:
        pivots = np.zeros(diagonal.shape)
    if not np.all(pivots >= 1e-7):  # say which level, as the plain way does
        for k, block in enumerate(own):
            _inverse(block, k)
    inverse = np.linalg.inv(unit) * scale[:, :, None] * scale[:, None, :]
    return inverse, 2.0 * float(np.sum(np.log(pivots)) - np.sum(np.log(scale))), float(np.min(pivots))


def _inverse(matrix: np.ndarray, block: int, diagonal: np.ndarray | None = None) -> tuple[np.ndarray, float, float]:
    """(A⁻¹, log|A|, least pivot) by Cholesky of the matrix scaled to a unit diagonal (graded penalties then lose no
    digits), or by `diagonal`, that of a matrix of which A is what was left: columns that the others span are then seen
    as small."""
    if len(matrix) == 0:
        return matrix.copy(), 0.0, 1.0
    if diagonal is None or not matrix.diagonal().min() > 0:
        diagonal = matrix.diagonal()
    if not (diagonal.min() > 0 and diagonal.max() < np.inf):
        direction = np.zeros(len(matrix))
        direction[int(np.argmin(np.where(np.isfinite(diagonal), diagonal, -np.inf)))] = 1.0
        raise Singular(block, direction)
    scale = 1.0 / np.sqrt(diagonal)
    if len(matrix) <= _OWN:
        from .matrix_kernels import cholesky_inverse

        fours = -(-len(matrix) // 4) * 4
        inverse, room = np.empty(matrix.shape), np.empty((fours, 2 * fours))
        log_pivots, least = cholesky_inverse(np.require(matrix, requirements=("C", "W")), scale, room, inverse)
    else:
        from scipy.linalg import lapack

        routines: Any = lapack
        scales = scale * scale[:, None]
        factor, info = routines.dpotrf(matrix * scales, lower=1, clean=0)
        pivots = np.diag(factor).copy()
        least = -1.0 if info else float(np.min(pivots))
        log_pivots = float(np.sum(np.log(pivots))) if not info else np.nan
        inverse, _ = routines.dpotri(factor, lower=1, overwrite_c=1)
        inverse = np.tril(inverse)
        inverse += np.tril(inverse, -1).T
        inverse *= scales
    if not least >= 1e-7:  # unit diagonal: a pivot of √ε means a column that the others span
        raise Singular(block, np.linalg.eigh(matrix * (scale * scale[:, None]))[1][:, 0] * scale)
    return inverse, 2.0 * float(log_pivots - np.sum(np.log(scale))), least


@dataclass(frozen=True)
class ArrowInverse:
    """The inverse by blocks: sigma (s, s), own[l] = H_ll⁻¹, slopes[l] = A_l; logdet = log|H|."""

    sigma: np.ndarray
    own: Blocks
    slopes: Blocks
    logdet: float

    @cached_property
    def starts(self) -> np.ndarray:
        """As `Arrow.starts`."""
        return _starts(len(self.sigma), self.own)

    @cached_property
    def stacked(self) -> tuple[np.ndarray, np.ndarray] | None:
        """own (L, k, k) and slopes (L, k, s), as `Arrow.stacked`."""
        return _stack(self.own, self.slopes)

    def dot(self, v: np.ndarray) -> np.ndarray:
        """H⁻¹ v."""
        if not len(self.own):
            return self.sigma @ v
        at = self.starts
        out = np.empty(v.shape)
        if self.stacked is not None:
            own, slope = self.stacked
            flat, below = tall(slope), v[at[1] :]
            top = self.sigma @ (v[: at[1]] - flat.T @ below)
            out[: at[1]] = top
            out[at[1] :] = np.matmul(own, below.reshape(len(own), own.shape[1], -1)).reshape(below.shape) - flat @ top
            return out
        top = v[: at[1]].copy()
        for k, slope in enumerate(self.slopes):
            top -= slope.T @ v[at[k + 1] : at[k + 2]]
        top = self.sigma @ top
        out[: at[1]] = top
        for k, (own, slope) in enumerate(zip(self.own, self.slopes)):
            rows = slice(at[k + 1], at[k + 2])
            out[rows] = own @ v[rows] - slope @ top
        return out

    @cached_property
    def every(self) -> tuple[np.ndarray, np.ndarray]:
        """H⁻¹_l0 (L, k, s) and H⁻¹_ll (L, k, k) of all levels, where they are stacked."""
        assert self.stacked is not None
        own, slope = self.stacked
        below = np.matmul(slope, -self.sigma)
        return below, own - np.matmul(below, slope.transpose(0, 2, 1))

    def through(self, level: int) -> np.ndarray:
        """A_l Σ A_lᵀ: what the shared columns add to level l's block."""
        return self.slopes[level] @ self.sigma @ self.slopes[level].T

    def block(self, level: int) -> np.ndarray:
        """The diagonal block H⁻¹_ll (level −1: shared)."""
        return self.sigma if level < 0 else self.own[level] + self.through(level)

    def segment(self, level: int | None) -> np.ndarray:
        """H⁻¹ on the columns shared and those of one level (None: shared alone)."""
        if level is None:
            return self.sigma
        s = len(self.sigma)
        out = np.empty((s + len(self.own[level]),) * 2)
        out[:s, :s] = self.sigma
        out[s:, :s] = -self.slopes[level] @ self.sigma
        out[:s, s:] = out[s:, :s].T
        out[s:, s:] = self.own[level] - self.slopes[level] @ out[:s, s:]
        return out

    def diagonal(self) -> np.ndarray:
        """The diagonal, flat."""
        parts = [np.diag(self.sigma)]
        if self.stacked is not None:
            stack, slope = self.stacked
            flat = tall(slope)
            parts.append(np.diagonal(stack, axis1=1, axis2=2).ravel() + np.einsum("ij,ij->i", flat @ self.sigma, flat))
            return np.concatenate(parts)
        for own, slope in zip(self.own, self.slopes):
            parts.append(np.diag(own) + np.einsum("ij,ij->i", slope @ self.sigma, slope))
        return np.concatenate(parts)

    def rows(self, which: np.ndarray) -> np.ndarray:
        """The rows `which` (flat indices) of H⁻¹, (len(which), p)."""
        unit = np.zeros((self.starts[-1], len(which)))
        unit[which, np.arange(len(which))] = 1.0
        return self.dot(unit).T

    def dense(self) -> np.ndarray:
        """The whole inverse."""
        at = self.starts
        out = np.empty((at[-1], at[-1]))
        slopes = np.concatenate([-np.eye(len(self.sigma)), *self.slopes])  # A
        np.matmul(slopes @ self.sigma, slopes.T, out=out)
        for k, own in enumerate(self.own):
            rows = slice(at[k + 1], at[k + 2])
            out[rows, rows] += own
        return out

    def embed(self, which: np.ndarray, starts: np.ndarray) -> ArrowInverse:
        """The inverse of a kept part as blocks of the full size (`starts`), zero where `which` (flat, bool) is
        False."""
        top = which[: starts[1]]
        if (k := _alike(which, starts)) is not None:
            levels = np.arange(len(self.own))
            sigma, own = np.zeros((top.size, top.size)), np.zeros((levels.size, k.size, k.size))
            slopes = np.zeros((levels.size, k.size, top.size))
            sigma[np.ix_(top, top)] = self.sigma
            if k.any():
                own[np.ix_(levels, k, k)] = np.asarray(self.own)
                slopes[np.ix_(levels, k, top)] = np.asarray(self.slopes)
            return ArrowInverse(sigma, own, slopes, self.logdet)
        parts = [which[a:b] for a, b in itertools.pairwise(starts)]

        def spread(block: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            out = np.zeros((rows.size, columns.size))
            out[np.ix_(rows, columns)] = block
            return out

        return ArrowInverse(
            spread(self.sigma, parts[0], parts[0]),
            tuple(spread(block, k, k) for block, k in zip(self.own, parts[1:])),
            tuple(spread(slope, k, parts[0]) for slope, k in zip(self.slopes, parts[1:])),
            self.logdet,
        )
