"""Sums over raw functions to those of coefficients, compiled: a dozen small products, for which two threads would wait
for each other in the interpreter."""

from __future__ import annotations

# pyright: reportCallIssue=false
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from .._base.cached import njit
from .block_products import MOST, add_products
from .simd import set4

if TYPE_CHECKING:
    from .segment import Block


# long: arrays of a compiled loop
@njit(nogil=True, cache=True, error_model="numpy")
def gather_blocks(cross, score, matrices, raw, at, local, half, part, out, gradient):
    """Add XᵀWX to `out` and Xᵀ(dℓ/dη) to `gradient`, from sums T over raw functions: each pair of local blocks above
    the diagonal, contexts' blocks with all blocks below it, and squares, which lie on it, whole. Blocks may share
    coefficients.

    Block b has C_b in matrices[offset_b:], in rows of width_b. `raw` (blocks, 4) says for each its first raw function,
    how many there are, offset and width; `at` (blocks, 2) its first coefficient and how many. Rows of T go on beyond
    its columns by MOST, for products that end there. half, part: room for C_aᵀT_a and C_aᵀT_abC_b.
    """
    blocks = raw.shape[0]
    for a in range(blocks):
        first, count, offset, width = raw[a, 0], raw[a, 1], raw[a, 2], raw[a, 3]
        row, rows = at[a, 0], at[a, 1]
        for i in range(rows):
            total = 0.0
            for k in range(count):
                total += matrices[offset + k * width + i] * score[first + k]
            gradient[row + i] += total
        inside = first < local
        begin, end = (first, local) if inside else (0, cross.shape[0])  # the raw functions that these have sums with
        for c in range(0, half.size, 4):
            set4(half, c, 0.0)
        size = cross.shape[1]
        add_products(half, rows, end - begin, matrices, offset, 1, width, cross, first * size + begin, size, count)
        for b in range(blocks):
            if raw[b, 0] < begin or raw[b, 0] >= end or (not inside and b > a):  # its own row has the others
                continue
            other, others, from_, step = raw[b, 0], raw[b, 1], raw[b, 2], raw[b, 3]
            column, columns = at[b, 0], at[b, 1]
            for c in range(0, part.size, 4):
                set4(part, c, 0.0)
            add_products(part, rows, columns, half, other - begin, half.shape[1], 1, matrices, from_, step, others)
            for i in range(rows):
                for j in range(columns):
                    if a == b:
                        out[row + i, row + j] += 0.5 * (part[i, j] + part[j, i])
                    else:
                        out[row + i, column + j] += part[i, j]
                        out[column + j, row + i] += part[i, j]


def _room(columns: int) -> int:
    """Room for so many columns on any machine: a worker may have wider vectors than where this was made."""
    return -(-columns // MOST) * MOST


@final
@dataclass(frozen=True)
class Gather:
    """The blocks of a segment without factors and dense columns, as `gather_blocks` takes them."""

    matrices: np.ndarray
    raw: np.ndarray
    at: np.ndarray
    local: int
    functions: int
    size: int

    beyond: ClassVar[int] = MOST  # columns that the sums have beyond theirs

    @staticmethod
    def of(blocks: tuple[Block, ...], local: int, size: int) -> Gather:
        raw, at, offset = np.empty((len(blocks), 4), np.int64), np.empty((len(blocks), 2), np.int64), 0
        matrices = np.zeros(sum(len(block.matrix) * _room(block.matrix.shape[1]) for block in blocks))
        for b, block in enumerate(blocks):
            count, columns = block.matrix.shape
            width = _room(columns)
            matrices[offset : offset + count * width].reshape(count, width)[:, :columns] = block.matrix
            raw[b], at[b] = (block.raw.start, count, offset, width), (block.at.start, columns)
            offset += count * width
        return Gather(matrices, raw, at, local, blocks[-1].raw.stop, size)

    def both(self, score: np.ndarray, cross: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Xᵀ(dℓ/dη) and XᵀWX of the coefficients."""
        gradient, out = np.zeros(self.size), np.zeros((self.size, self.size))
        rows = int(self.at[:, 1].max(initial=0))
        half, part = np.empty((rows, _room(self.functions))), np.empty((rows, _room(rows)))
        gather_blocks(cross, score, self.matrices, self.raw, self.at, self.local, half, part, out, gradient)
        return gradient, out
