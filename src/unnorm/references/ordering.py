"""An order of points in which neighbours are near: sorted on a line, along a Hilbert curve above."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..data.observations import Observations

AT_ONCE = 3  # bits of a coordinate that a table takes
_BITS = {1: 52, 2: 26, 3: 20}  # of each coordinate, so that the index fits into 63 bits
NUDGE = 1e-3  # of a cell: pixels lie on borders of cells, where rounding, and so the unit of length, would decide


def hilbert_index(cells: Any, bits: int, xp: Any = np) -> Any:
    """(n, d) integer coordinates in [0, 2^bits) → (n,) position along the Hilbert curve through all 2^(bits·d) cells.

    Skilling (2004), "Programming the Hilbert curve", AIP Conf. Proc. 707, 381–387, over whole columns; `xp`
    is NumPy, or JAX's.

    >>> hilbert_index(np.array([[0, 0], [0, 1], [1, 1], [1, 0]]), 1).tolist()
    [0, 1, 2, 3]
    """
    x = [xp.array(column, dtype=xp.int64) for column in xp.asarray(cells).T]
    d = len(x)
    for b in range(bits - 1, 0, -1):  # undo the rotations and reflections of the sub-cubes
        q, low = 1 << b, (1 << b) - 1
        for i in range(d):
            inverted = (x[i] & q) != 0
            swap = xp.where(inverted, 0, (x[0] ^ x[i]) & low)
            x[0] ^= xp.where(inverted, low, swap)
            x[i] ^= swap
    for i in range(1, d):  # Gray code
        x[i] ^= x[i - 1]
    flip = xp.zeros_like(x[0])
    for b in range(bits - 1, 0, -1):
        flip ^= xp.where((x[-1] >> b) & 1, (1 << b) - 1, 0)
    index = xp.zeros_like(x[0])
    for b in range(bits - 1, -1, -1):
        for i in range(d):
            index = (index << 1) | (((x[i] ^ flip) >> b) & 1)
    return index


def order(points: np.ndarray) -> np.ndarray:
    """The permutation that puts (n, d) points in order: sorted for d = 1, along a Hilbert curve for d = 2 and 3, along
    one through the three leading principal components for d > 3."""
    points = np.asarray(points, dtype=np.float64)
    if points.shape[1] > 3:
        points = _leading(points, 3)
    if points.shape[1] == 1:
        return np.argsort(points[:, 0], kind="stable")
    return np.argsort(plane_index(points), kind="stable")


def plane_index(points: Any, xp: Any = np) -> Any:
    """(n,) the position of (n, d) points, d = 2 or 3, along the Hilbert curve through the box that holds them."""
    low, high = points.min(axis=0), points.max(axis=0)
    width = xp.where(high > low, high - low, 1.0)
    bits = _BITS[points.shape[1]]
    along = (points - low) / width * 2.0**bits + NUDGE
    cells = xp.minimum(along, 2.0**bits - 1.0).astype(xp.int64)
    return _read_off(cells, bits) if xp is np and points.shape[1] == 2 else hilbert_index(cells, bits, xp)


@cache
def _tables(bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The curve in the plane as a machine: for each of its four orientations and each cell of 2^bits × 2^bits, the
    cell's place along the curve, and the orientation within the cell."""
    side = 2 ** (bits + 3)
    cells = np.stack(np.meshgrid(*[np.arange(side)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    index = hilbert_index(cells, bits + 3).reshape(side, side)

    def orientation(level: int, x: int, y: int) -> tuple[int, ...]:
        """Of the cell (x, y) of that level: the order of its four quarters."""
        wide, rest = side >> level, 2 * (bits + 3 - level - 1)
        half = wide // 2
        return tuple(int(index[x * wide + a * half, y * wide + b * half] >> rest) & 3 for a in (0, 1) for b in (0, 1))

    seen: dict[tuple[int, ...], tuple[int, int, int]] = {}  # orientation → the first cell that has it
    for level in range(3):
        for x in range(2**level):
            for y in range(2**level):
                seen.setdefault(orientation(level, x, y), (level, x, y))
    number = {one: i for i, one in enumerate(seen)}
    place, turn = np.empty((2, len(seen), 2**bits, 2**bits), dtype=np.int64)
    for one, (level, x, y) in seen.items():
        wide = side >> (level + bits)
        for a in range(2**bits):
            for b in range(2**bits):
                here = x * 2**bits + a, y * 2**bits + b
                first = index[here[0] * wide, here[1] * wide] >> (2 * (bits + 3 - level - bits))
                place[number[one], a, b] = first & (4**bits - 1)
                turn[number[one], a, b] = number[orientation(level + bits, *here)]
    return place.ravel(), turn.ravel()


def _read_off(cells: np.ndarray, bits: int) -> np.ndarray:
    """`hilbert_index` in the plane, a few bits of the coordinates at a time."""
    x, y = np.ascontiguousarray(cells.T)
    index, state, left = np.zeros(len(x), np.int64), np.zeros(len(x), np.int64), bits
    while left:
        w = left % AT_ONCE or AT_ONCE
        left -= w
        place, turn = _tables(w)
        key = (((state << w) | ((x >> left) & (2**w - 1))) << w) | ((y >> left) & (2**w - 1))
        index, state = (index << (2 * w)) | place.take(key), turn.take(key)
    return index


def _leading(points: np.ndarray, most: int) -> np.ndarray:
    """The leading principal components of the standardised columns."""
    centred = points - points.mean(axis=0)
    sd = centred.std(axis=0)
    centred = centred[:, sd > 0.0] / sd[sd > 0.0]
    if centred.shape[1] <= 1:
        return np.zeros((len(points), 1)) if centred.shape[1] == 0 else centred
    _, vectors = np.linalg.eigh(centred.T @ centred)
    return centred @ vectors[:, ::-1][:, :most]


def context_order(obs: Observations, around_outcome: bool = False) -> np.ndarray:
    """The permutation that puts the observations' contexts in order.

    A transition's context is its previous point; a regression's its covariates (text by the rank of its levels);
    where the reference is a kernel around the outcome, the outcome itself.
    """
    if around_outcome:
        return order(obs.outcome)
    if obs.kind == "transitions":
        return order(obs.previous())
    columns = [_numbers(np.asarray(column)) for column in obs.context.values()]
    if not columns:
        return np.arange(obs.n)
    return order(np.column_stack(columns))


def _numbers(column: np.ndarray) -> np.ndarray:
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    return np.unique(column, return_inverse=True)[1].astype(np.float64)
