"""A term's penalties with their labels, and the smoothing parameters that the user fixed."""

from __future__ import annotations

import numpy as np

from ..errors import TermError
from .base import Penalty
from .specs import Smooth
from .tensor_specs import Tensor


def labelled_penalties(
    label: str,
    matrices: tuple[np.ndarray, ...],
    ranks: tuple[int, ...],
    roots: tuple[np.ndarray, ...] | None = None,
    copies: int = 1,
) -> tuple[Penalty, ...]:
    """One `Penalty` for each matrix; numbered from 1 where there are several."""
    names = [label] if len(matrices) == 1 else [f"{label}{i + 1}" for i in range(len(matrices))]
    known = roots if roots is not None else (None,) * len(matrices)
    return tuple(Penalty(S, rank, name, E, copies) for S, rank, name, E in zip(matrices, ranks, names, known))


def fixed_sp(spec: Smooth | Tensor, count: int) -> tuple[float | None, ...]:
    """The user's smoothing parameter for each of `count` penalties, or None."""
    if spec.sp is None or count == 0:
        return (None,) * count
    sp = spec.sp * count if len(spec.sp) == 1 and count == 1 else spec.sp
    if len(sp) != count:
        raise TermError(f"{spec.label}: sp takes {count} value(s), one for each penalty; got {len(sp)}.")
    return sp
