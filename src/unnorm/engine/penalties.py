"""The penalties S_λ = Σ_j λ_j S_j in arrow coordinates: their pieces, log|S_λ|₊, and the traces that REML needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .arrow import ArrowInverse

_DOMINANT = np.finfo(float).eps ** (1 / 3)  # Wood (2011), Appendix B


@dataclass(frozen=True)
class Piece:
    """S_j on part of one block (−1: shared): columns `at` of the block."""

    block: int
    at: slice
    matrix: np.ndarray


@dataclass(frozen=True)
class Group:
    """The penalties (numbers `which`) of one term, on the `copies` equal blocks it is made of; matrices on their joint range."""

    which: tuple[int, ...]
    matrices: tuple[np.ndarray, ...]  # (r, r) each
    copies: int

    def logdet(self, rho: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """log|Σ λ_j S_j|₊ with its gradient and Hessian in this group's ρ."""
        lam = np.exp(rho)
        if len(self.which) == 1:
            value = self.matrices[0].shape[0] * rho[0] + np.linalg.slogdet(self.matrices[0])[1]
            return self.copies * value, self.copies * np.array([float(len(self.matrices[0]))]), np.zeros((1, 1))
        rotated = _similarity(self.matrices, lam)
        total = sum(l * s for l, s in zip(lam, rotated))
        scale = 1.0 / np.sqrt(np.diag(total))
        inverse = np.linalg.inv(total * scale * scale[:, None]) * scale * scale[:, None]
        value = np.linalg.slogdet(total * scale * scale[:, None])[1] - 2.0 * np.sum(np.log(scale))
        parts = [l * (inverse @ s) for l, s in zip(lam, rotated)]
        gradient = np.array([np.trace(part) for part in parts])
        hessian = np.diag(gradient) - np.array([[np.sum(a * b.T) for b in parts] for a in parts])
        return self.copies * value, self.copies * gradient, self.copies * hessian


def _similarity(matrices: Sequence[np.ndarray], lam: np.ndarray) -> list[np.ndarray]:
    """The matrices in an orthogonal basis in which Σλ_jS_j is graded, so that no small term is lost (Wood 2011, Appendix B)."""
    current = [matrix.copy() for matrix in matrices]
    todo = list(range(len(matrices)))
    start, size = 0, len(matrices[0])
    while todo and start < size:
        inner = [current[i][start:, start:] for i in todo]
        norms = np.array([np.linalg.norm(block) for block in inner])
        strength = norms * lam[todo]
        if strength.max() <= 0:
            break
        dominant = [i for i, w in zip(todo, strength) if w >= _DOMINANT * strength.max()]
        rest = [i for i in todo if i not in dominant]
        balanced = sum(current[i][start:, start:] / max(np.linalg.norm(current[i][start:, start:]), 1e-300) for i in dominant)
        rank = int(np.sum(np.linalg.eigvalsh(balanced) > 1e-9 * np.linalg.norm(balanced)))
        if rank >= size - start or not rest:
            break
        values, vectors = np.linalg.eigh(sum(lam[i] * current[i][start:, start:] for i in dominant))
        vectors = vectors[:, np.argsort(values)[::-1]]
        turn = np.eye(size)
        turn[start:, start:] = vectors
        current = [turn.T @ matrix @ turn for matrix in current]
        for i in dominant:  # exactly zero on the complement of its range
            current[i][start + rank :, :] = 0.0
            current[i][:, start + rank :] = 0.0
        start += rank
        todo = rest
    return current


@dataclass(frozen=True)
class Penalties:
    """All M penalties of a design, in arrow coordinates."""

    labels: tuple[str, ...]
    pieces: tuple[tuple[Piece, ...], ...]  # one tuple per penalty
    groups: tuple[Group, ...]
    starts: np.ndarray  # of the arrow's blocks
    free: np.ndarray  # (p,) bool: coefficients that no penalty touches

    @property
    def count(self) -> int:
        """M."""
        return len(self.labels)

    def blocks(self, lam: np.ndarray) -> list[np.ndarray]:
        """S_λ on each diagonal block: shared, then each level's."""
        out = [np.zeros((b - a, b - a)) for a, b in zip(self.starts[:-1], self.starts[1:])]
        for weight, pieces in zip(lam, self.pieces):
            for piece in pieces:
                out[piece.block + 1][piece.at, piece.at] += weight * piece.matrix
        return out

    def times(self, j: int, v: np.ndarray) -> np.ndarray:
        """S_j v."""
        out = np.zeros(v.shape)
        for piece in self.pieces[j]:
            at = slice(self.starts[piece.block + 1] + piece.at.start, self.starts[piece.block + 1] + piece.at.stop)
            out[at] = piece.matrix @ v[at]
        return out

    def columns(self, v: np.ndarray) -> np.ndarray:
        """(p, M): S_j v for every j."""
        if self.count == 0:
            return np.zeros((v.size, 0))
        return np.stack([self.times(j, v) for j in range(self.count)], axis=1)

    def logdet(self, rho: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """log|S_λ|₊, gradient and Hessian in ρ."""
        value, gradient, hessian = 0.0, np.zeros(self.count), np.zeros((self.count, self.count))
        for group in self.groups:
            which = list(group.which)
            part, slope, curve = group.logdet(rho[which])
            value += part
            gradient[which] = slope
            hessian[np.ix_(which, which)] = curve
        return value, gradient, hessian

    def traces(self, inverse: ArrowInverse, second: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """tr(P S_j) and tr(P S_j P S_k) for the arrow inverse P.

        With P_ab = A_a Σ A_bᵀ off the diagonal, the second is tr(Σ K_j Σ K_k), K_j = Σ_a A_aᵀ S_ja A_a, and a correction within each level.
        """
        m, s = self.count, len(inverse.sigma)
        first, pairs = np.zeros(m), np.zeros((m, m))
        through_shared: list[tuple[slice, np.ndarray] | None] = [None] * m
        within: list[list[tuple[int, slice, np.ndarray, np.ndarray]]] = [[] for _ in inverse.own]
        blocks = [inverse.block(l) for l in range(len(inverse.own))]
        through = [inverse.through(l) for l in range(len(inverse.own))] if second else []
        for j, pieces in enumerate(self.pieces):
            dense: np.ndarray | None = None
            for piece in pieces:
                p = inverse.sigma if piece.block < 0 else blocks[piece.block]
                first[j] += np.sum(p[piece.at, piece.at] * piece.matrix)
                if not second:
                    continue
                if piece.block < 0:
                    through_shared[j] = (piece.at, inverse.sigma[:, piece.at] @ piece.matrix)
                    continue
                slope = inverse.slopes[piece.block][piece.at]
                k = inverse.sigma @ (slope.T @ piece.matrix @ slope)
                dense = k if dense is None else dense + k
                within[piece.block].append(
                    (
                        j,
                        piece.at,
                        blocks[piece.block][:, piece.at] @ piece.matrix,
                        through[piece.block][:, piece.at] @ piece.matrix,
                    )
                )
            if dense is not None:
                through_shared[j] = (slice(0, s), dense)
        if second:
            for j in range(m):
                for k in range(j, m):
                    a, b = through_shared[j], through_shared[k]
                    if a is not None and b is not None:
                        pairs[j, k] += np.sum(a[1][b[0]] * b[1][a[0]].T)
            for entries in within:
                for n, (j, at_j, full_j, via_j) in enumerate(entries):
                    for k, at_k, full_k, via_k in entries[n:]:
                        pairs[min(j, k), max(j, k)] += np.sum(full_j[at_k] * full_k[at_j].T) - np.sum(
                            via_j[at_k] * via_k[at_j].T
                        )
            pairs = np.triu(pairs) + np.triu(pairs, 1).T
        return first, pairs
