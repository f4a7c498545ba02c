"""Directions of a random curve that have a variance of their own: levels mostly differ in the few smoothest ones.

Of directions whose penalties are alike, as cos and sin of a cyclic term or the two slopes of a surface, which comes
first hangs on rounding and on the rows: they share one variance, so that the law of the curve does not change when
they are turned into each other.
"""

from __future__ import annotations

import numpy as np

LEAD = 2  # directions, at least, that are taken out of a curve's common variance
ALIKE = 1.25  # times that two penalties may differ and still be taken for equal


def leading(penalty: np.ndarray, rank: int) -> list[slice]:
    """Blocks of the last directions of a diagonal penalty (the smoothest come last), in order; the rest is one curve.

    >>> leading(np.diag([81.0, 16.0, 1.0]), 3)
    [slice(1, 2, None), slice(2, 3, None)]
    >>> leading(np.diag([81.0, 81.0, 16.0, 16.0, 1.0, 1.0]), 6)  # cos and sin
    [slice(4, 6, None)]
    """
    size = np.diag(penalty)[:rank]
    blocks: list[slice] = []
    end = rank
    while rank - end < LEAD:
        begin = end - 1
        while begin > 0 and size[begin - 1] <= ALIKE * size[end - 1]:
            begin -= 1
        if begin <= 0:  # something must be left for the common variance
            break
        blocks.append(slice(begin, end))
        end = begin
    return blocks[::-1]
