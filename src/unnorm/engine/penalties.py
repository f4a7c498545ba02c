"""The penalties S_λ = Σ_j λ_j S_j in arrow coordinates: their pieces, log|S_λ|₊, and the traces that REML needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._base.threads import cores, run_tasks
from .arrow import Arrow, ArrowInverse, Blocks, tall

_ENDLESS = 1e100  # a variance whose square would not be a number
_WIDE = 200  # columns from which products with P take longer than another thread to wake
_PAIRS = 200_000  # levels × penalties up to which they are held at once
EVERY = -2  # the block of a piece that every level has alike


@dataclass(frozen=True)
class PenaltyPiece:
    """S_j on part of one block (−1: shared; EVERY: the same of each level): columns `at` of the block."""

    block: int
    at: slice
    matrix: np.ndarray


@dataclass(frozen=True)
class Group:
    """The penalties (numbers `which`) of one term on one of its blocks, on their joint range (r columns).

    `roots`: E_j with S_j = E_jᵀE_j. Where they are not given they are taken from the matrices.
    """

    which: tuple[int, ...]
    matrices: tuple[np.ndarray, ...]  # (r, r) each
    roots: tuple[np.ndarray, ...] = ()  # (r_j, r) each
    spectrum: np.ndarray | None = None  # (r, penalties): eigenvalues in common eigenvectors, where they commute
    copies: int = 1  # equal blocks that it stands for: one for each level

    @cached_property
    def _roots(self) -> tuple[np.ndarray, ...]:
        return self.roots or tuple(square_root(matrix) for matrix in self.matrices)

    def logdet(self, rho: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """log|Σ λ_j S_j| on the joint range, with its gradient and Hessian in this group's ρ."""
        if self.spectrum is None:
            return self._by_roots(rho)
        weighted = self.spectrum * np.exp(rho)
        total = weighted.sum(axis=1)
        share = weighted / total[:, None]
        gradient = share.sum(axis=0)
        return float(np.log(total).sum()) + self._shift, gradient, np.diag(gradient) - share.T @ share

    @cached_property
    def _shift(self) -> float:
        """What the constraint adds to the sum over the spectrum, the same for every ρ."""
        assert self.spectrum is not None
        return self._by_roots(np.zeros(len(self.which)))[0] - float(np.log(self.spectrum.sum(axis=1)).sum())

    def _by_roots(self, rho: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """log|Σ λ_j S_j| on the joint range, with its gradient and Hessian in this group's ρ.

        With E the roots √λ_j E_j one below the other and E = QR, it is 2 Σ log|R_ii|, and Q_j being the rows of Q
        that belong to penalty j,

            ∂/∂ρ_j = tr(S_λ⁻¹ λ_jS_j) = |Q_j|²,   ∂²/∂ρ_i∂ρ_j = δ_ij |Q_j|² − |Q_i Q_jᵀ|².

        Rows sorted by size and columns pivoted keep the small rows' digits whatever the ratios of the λ (Cox & Higham
        1998), which is what Wood (2011), Appendix B, is for.
        """
        from scipy.linalg import qr

        stacked = np.concatenate([np.exp(0.5 * r) * E for r, E in zip(rho, self._roots)])
        owner = np.repeat(np.arange(rho.size), [len(E) for E in self._roots])
        order = np.argsort(-np.abs(stacked).max(axis=1), kind="stable")
        found: Any = qr(stacked[order], mode="economic", pivoting=True)
        Q, R = found[0], found[1]
        value = 2.0 * float(np.sum(np.log(np.abs(np.diag(R)))))
        rows = [Q[owner[order] == j] for j in range(rho.size)]
        gradient = np.array([np.sum(q * q) for q in rows])
        grams = [q.T @ q for q in rows]
        pairs = np.array([[np.sum(a * b) for b in grams] for a in grams])
        return value, gradient, np.diag(gradient) - pairs


def _sizes(root: np.ndarray) -> np.ndarray:
    """The singular values of a root, which is diagonal where a term has one penalty."""
    diagonal = root.diagonal()
    if root.shape[0] == root.shape[1] and np.count_nonzero(root) == np.count_nonzero(diagonal):
        return np.abs(diagonal)
    return np.linalg.svd(root, compute_uv=False)


def square_root(matrix: np.ndarray) -> np.ndarray:
    """E with EᵀE = S, for a matrix whose root was not kept."""
    values, vectors = np.linalg.eigh(matrix)
    keep = values > 1e-13 * max(float(values[-1]), 1e-300)
    return np.sqrt(values[keep])[:, None] * vectors[:, keep].T


@dataclass(frozen=True)
class Penalties:
    """All M penalties of a design, in arrow coordinates."""

    labels: tuple[str, ...]
    pieces: tuple[tuple[PenaltyPiece, ...], ...]  # one tuple per penalty
    groups: tuple[Group, ...]
    starts: np.ndarray  # of the arrow's blocks
    free: np.ndarray  # (p,) bool: coefficients that no penalty touches

    @property
    def count(self) -> int:
        """M."""
        return len(self.labels)

    @cached_property
    def diagonals(self) -> np.ndarray | None:
        """(p, M): the diagonals of the S_j, where all are diagonal (every term with one penalty, after rotation);
        else None."""
        out = np.zeros((self.starts[-1], self.count))
        for j, pieces in enumerate(self.pieces):
            for piece in pieces:
                diagonal = np.diag(piece.matrix)
                if np.count_nonzero(piece.matrix) > np.count_nonzero(diagonal):
                    return None
                if piece.block == EVERY:
                    self._by_level(out)[:, piece.at, j] += diagonal
                    continue
                begin = self.starts[piece.block + 1]
                out[begin + piece.at.start : begin + piece.at.stop, j] += diagonal
        return out

    @cached_property
    def alike(self) -> bool:
        """Whether the levels' penalties are the same for all of them."""
        return any(piece.block == EVERY for pieces in self.pieces for piece in pieces)

    @property
    def levels(self) -> int:
        """L."""
        return len(self.starts) - 2

    def _by_level(self, rows: np.ndarray) -> np.ndarray:
        """(L, k, …): the levels' part of (p, …), where all have as many columns; a view."""
        below = rows[self.starts[1] :]
        return below.reshape(self.levels, len(below) // max(self.levels, 1), *rows.shape[1:])

    def norm(self, piece: PenaltyPiece) -> float:
        """The sum of the Frobenius norms of a piece on its blocks."""
        return float(np.linalg.norm(piece.matrix)) * (self.levels if piece.block == EVERY else 1)

    def level_sums(self, v: np.ndarray) -> np.ndarray:
        """(k,) sums of (p,) over the levels, where they are alike; else nothing."""
        return self._by_level(v).sum(axis=0) if self.alike else np.empty(0)

    @cached_property
    def _single(self) -> tuple[np.ndarray, float]:
        """Of the groups with one penalty: rank by penalty, and Σ log|S_j|₊."""
        ranks, value = np.zeros(self.count), 0.0
        for group in self.groups:
            if len(group.which) == 1:
                ranks[group.which[0]] += group.copies * len(group.matrices[0])
                value += group.copies * 2.0 * float(np.sum(np.log(_sizes(group._roots[0]))))
        return ranks, value

    @cached_property
    def _several(self) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if len(group.which) > 1)

    def blocks(self, lam: np.ndarray) -> list[np.ndarray]:
        """S_λ on each diagonal block: shared, then each level's."""
        shared, own = self.parts(lam)
        return [shared, *own]

    def parts(self, lam: np.ndarray) -> tuple[np.ndarray, Blocks]:
        """S_λ on the shared columns, and on each level's; one matrix that is not copied where levels are alike."""
        if self.alike:
            sums = [np.zeros((b - a, b - a)) for a, b in zip(self.starts[:2], self.starts[1:3])]
            for weight, pieces in zip(lam, self.pieces):
                for piece in pieces:
                    sums[piece.block == EVERY][piece.at, piece.at] += weight * piece.matrix
            return sums[0], np.broadcast_to(sums[1], (self.levels, *sums[1].shape))
        if self.diagonals is not None:
            total = self.diagonals @ lam
            found = [np.diag(total[a:b]) for a, b in zip(self.starts[:-1], self.starts[1:])]
            return found[0], found[1:]
        out = [np.zeros((b - a, b - a)) for a, b in zip(self.starts[:-1], self.starts[1:])]
        for weight, pieces in zip(lam, self.pieces):
            for piece in pieces:
                out[piece.block + 1][piece.at, piece.at] += weight * piece.matrix
        return out[0], out[1:]

    def added(self, cross: Arrow, lam: np.ndarray) -> Arrow:
        """A + S_λ."""
        if self.levels == 0 and self.diagonals is not None:
            return cross.ridged(self.diagonals @ lam)
        return cross.add(*self.parts(lam))

    def columns(self, v: np.ndarray) -> np.ndarray:
        """(p, M): S_j v for every j."""
        if self.diagonals is not None:
            return self.diagonals * v[:, None]
        out = np.zeros((v.size, self.count))
        for j, pieces in enumerate(self.pieces):
            for piece in pieces:
                if piece.block == EVERY:
                    self._by_level(out)[:, piece.at, j] += self._by_level(v)[:, piece.at] @ piece.matrix
                    continue
                at = slice(self.starts[piece.block + 1] + piece.at.start, self.starts[piece.block + 1] + piece.at.stop)
                out[at, j] = piece.matrix @ v[at]
        return out

    def root(self, j: int) -> tuple[slice, np.ndarray] | None:
        """E with EᵀE = S_j on the columns `at`, where S_j is on one stretch of the shared columns and there are no
        others."""
        if len(self.pieces[j]) != 1 or self.levels or self.pieces[j][0].block != -1:
            return None
        matrix = self.pieces[j][0].matrix
        diagonal = np.diag(matrix)
        if np.count_nonzero(matrix) > np.count_nonzero(diagonal):
            return self.pieces[j][0].at, square_root(matrix)
        seen = np.flatnonzero(diagonal > 0)
        return self.pieces[j][0].at, np.sqrt(diagonal[seen])[:, None] * np.eye(len(diagonal))[seen]

    def logdet(self, rho: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """log|S_λ|₊, gradient and Hessian in ρ."""
        ranks, value = self._single
        value += float(ranks @ rho)
        gradient, hessian = ranks.copy(), np.zeros((self.count, self.count))
        for group in self._several:
            which = list(group.which)
            part, slope, curve = group.logdet(rho[which])
            value += group.copies * part
            gradient[which] += group.copies * slope
            hessian[np.ix_(which, which)] += group.copies * curve
        return value, gradient, hessian

    def traces(self, inverse: ArrowInverse) -> tuple[np.ndarray, np.ndarray]:
        """tr(P S_j) and tr(P S_j P S_k) for the arrow inverse P.

        With P_ab = A_a Σ A_bᵀ off the diagonal, the second is tr(Σ K_j Σ K_k), K_j = Σ_a A_aᵀ S_ja A_a, and a
        correction within each level.
        """
        if self.alike:
            return self._alike_traces(inverse)
        if len(inverse.own):
            return self._arrow_traces(inverse)
        if self.diagonals is not None:
            sigma, weights, variance = inverse.sigma, self.diagonals, inverse.sigma.diagonal()
            first = variance @ weights
            if variance.max(initial=0.0) > _ENDLESS:  # of a direction that rows and penalty hardly determine
                sigma = sigma / np.sqrt(variance) / np.sqrt(variance)[:, None]
                weights = weights * variance[:, None]
            return first, weights.T @ (sigma**2 @ weights)
        first, pairs = np.zeros(self.count), np.zeros((self.count, self.count))
        done: list[tuple[int, slice, np.ndarray]] = []
        pieces = self._by_block[0]
        threads = cores() if len(inverse.sigma) >= _WIDE and len(pieces) > 1 else 1
        products = run_tasks(_times, [(inverse.sigma, piece) for _, piece in pieces], threads, brief=True)
        for (j, piece), turned in zip(pieces, products):
            first[j] += np.trace(turned[piece.at])
            for k, at, other in done:
                each = np.sum(turned[at] * other[piece.at].T)
                pairs[j, k] += each
                pairs[k, j] += each  # of two pieces of one penalty: once in each order
            pairs[j, j] += np.sum(turned[piece.at] * turned[piece.at].T)
            done.append((j, piece.at, turned))
        return first, pairs

    def _alike_traces(self, inverse: ArrowInverse) -> tuple[np.ndarray, np.ndarray]:
        """As `_arrow_traces`, where each level has the same penalties."""
        assert inverse.stacked is not None
        m, s = self.count, len(inverse.sigma)
        slope, whole = inverse.stacked[1], inverse.every[1]
        through, k = whole - inverse.stacked[0], slope.shape[1]
        matrices, shared = np.zeros((m, k, k)), np.zeros((m, s, s))  # S_j of a level; K_j, then Σ K_j
        for j, pieces in enumerate(self.pieces):
            for piece in pieces:
                (matrices if piece.block == EVERY else shared)[j][piece.at, piece.at] += piece.matrix
        first = np.einsum("ab,mab->m", inverse.sigma, shared)
        active = np.flatnonzero(np.abs(matrices).max(axis=(1, 2)) > 0).tolist()
        first[active] += np.einsum("ab,mab->m", whole.sum(axis=0), matrices[active])
        pairs, flat = np.zeros((m, m)), tall(slope)

        def times(blocks: np.ndarray, j: int) -> np.ndarray:
            return (tall(blocks) @ matrices[j]).reshape(blocks.shape)

        turned = [(times(whole, j), times(through, j)) for j in active]
        for j, (all_j, via_j) in zip(active, turned):
            for i, (all_i, via_i) in zip(active, turned):
                if i <= j:
                    both = np.sum(all_j * all_i.transpose(0, 2, 1)) - np.sum(via_j * via_i.transpose(0, 2, 1))
                    pairs[i, j] = pairs[j, i] = both
            shared[j] += flat.T @ times(slope.transpose(0, 2, 1), j).transpose(0, 2, 1).reshape(flat.shape)
        shared = inverse.sigma @ shared
        pairs += shared.reshape(m, s * s) @ shared.transpose(0, 2, 1).reshape(m, s * s).T
        return first, 0.5 * (pairs + pairs.T)

    def _stacked_traces(
        self, inverse: ArrowInverse, diagonals: np.ndarray, own: np.ndarray, slope: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `_arrow_traces`, over all levels at once: diagonal penalties, levels of equal size."""
        m, s = self.count, len(inverse.sigma)
        levels, k = own.shape[:2]
        top, below = diagonals[:s], diagonals[s:].reshape(levels, k, m)
        through = np.matmul(slope @ inverse.sigma, slope.transpose(0, 2, 1))
        whole = own + through
        first = np.diag(inverse.sigma) @ top + np.einsum("lkk,lkm->m", whole, below)
        pairs = np.einsum("lim,lim->m", below, below)  # which penalties have a part in the levels
        active = np.flatnonzero(pairs > 0)
        pairs = np.zeros((m, m))
        weights = below[:, :, active]
        mixed = np.matmul(whole * whole - through * through, weights)
        pairs[np.ix_(active, active)] = np.einsum("lia,lib->ab", weights, mixed)
        shared = np.zeros((m, s, s))
        for j in range(m):
            shared[j][np.diag_indices(s)] = top[:, j]
        flat = tall(slope)
        for column, j in enumerate(active):
            shared[j] += (flat.T * weights[:, :, column].ravel()) @ flat
        shared = inverse.sigma @ shared
        pairs += shared.reshape(m, s * s) @ shared.transpose(0, 2, 1).reshape(m, s * s).T
        return first, 0.5 * (pairs + pairs.T)

    def _arrow_traces(self, inverse: ArrowInverse) -> tuple[np.ndarray, np.ndarray]:
        if inverse.stacked is not None and self.diagonals is not None and self.count * len(inverse.own) <= _PAIRS:
            return self._stacked_traces(inverse, self.diagonals, *inverse.stacked)
        m, s = self.count, len(inverse.sigma)
        first, pairs = np.zeros(m), np.zeros((m, m))
        shared = np.zeros((m, s, s))  # K_j, then Σ K_j
        for block, entries in enumerate(self._by_block):
            if block == 0:
                for j, piece in entries:
                    shared[j, piece.at, piece.at] += piece.matrix
                    first[j] += np.sum(inverse.sigma[piece.at, piece.at] * piece.matrix)
                continue
            if not entries:
                continue
            slope = inverse.slopes[block - 1]
            through = slope @ inverse.sigma @ slope.T
            whole = inverse.own[block - 1] + through
            if self.diagonals is not None:
                which = np.unique([j for j, _ in entries])
                weights = self.diagonals[self.starts[block] : self.starts[block + 1]][:, which]
                first[which] += np.diag(whole) @ weights
                pairs[which[:, None], which] += weights.T @ ((whole * whole - through * through) @ weights)
                for column, j in enumerate(which):
                    shared[j] += (slope.T * weights[:, column]) @ slope
                continue
            turned = [
                (j, piece.at, whole[:, piece.at] @ piece.matrix, through[:, piece.at] @ piece.matrix)
                for j, piece in entries
            ]
            for j, at, all_, via in turned:
                first[j] += np.trace(all_[at])
                for k, other, all_k, via_k in turned:
                    pairs[j, k] += np.sum(all_[other] * all_k[at].T) - np.sum(via[other] * via_k[at].T)
            for j, piece in entries:
                part = slope[piece.at]
                shared[j] += part.T @ piece.matrix @ part
        shared = inverse.sigma @ shared
        pairs += shared.reshape(m, s * s) @ shared.transpose(0, 2, 1).reshape(m, s * s).T
        return first, 0.5 * (pairs + pairs.T)

    @cached_property
    def _by_block(self) -> list[list[tuple[int, PenaltyPiece]]]:
        """(penalty, piece) in each block: shared, then each level's."""
        out: list[list[tuple[int, PenaltyPiece]]] = [[] for _ in self.starts[1:]]
        for j, pieces in enumerate(self.pieces):
            for piece in pieces:
                out[piece.block + 1].append((j, piece))
        return out


def _times(sigma: np.ndarray, piece: PenaltyPiece) -> np.ndarray:
    """Σ S_j, the columns that S_j is on."""
    return sigma[:, piece.at] @ piece.matrix


Piece = PenaltyPiece  # the name that groups still import
