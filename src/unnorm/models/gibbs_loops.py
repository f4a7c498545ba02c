"""The loops of Gibbs sampling and annealing over bits, compiled for the three functions of a model (gibbs.py).

Numba does not keep functions on disk that it finds through variables. So each pair of loops is made of the same code
with the model's functions as its globals, under a name that holds a digest of their code: what is on disk under a name
was compiled from these functions.
"""

from __future__ import annotations

# pyright: reportCallIssue=false, reportOptionalCall=false
import hashlib
import math
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np

start: Any = None  # the model's, in the globals of a copy of the loops
delta: Any = None
flip: Any = None
log_sum: Any = None
base_change: Any = None


def sweep(params, y, free, sweeps, either_way, rng):
    """Every free bit of every chain in turn, so many times."""
    C, d = y.shape
    for c in range(C):
        state = start(params, y[c], c)
        for _ in range(sweeps):
            back = either_way and rng.random() < 0.5
            for k in range(d):
                i = d - 1 - k if back else k
                if free[c % len(free), i]:
                    change = delta(params, state, y[c], i)
                    if rng.random() * (1.0 + math.exp(-change)) < 1.0:
                        flip(params, state, y[c], i)


def anneal(params, y, log_odds, components, betas, rng, log_w):
    """From q to the model by a sweep at each β; the log weights are added to `log_w`."""
    C, d = y.shape
    moved = np.empty(log_odds.shape[0])
    for c in range(C):
        state = start(params, y[c], c)
        f = 0.0  # of both, less their values at the start
        log_q = 0.0
        parts = components[c].copy()
        begin = log_sum(parts)
        for k in range(len(betas) - 1):
            beta = betas[k + 1]
            log_w[c] += (beta - betas[k]) * (f - log_q)
            for i in range(d):
                change = delta(params, state, y[c], i)
                back = base_change(parts, begin + log_q, log_odds, i, 1.0 - 2.0 * y[c, i], moved)
                both = beta * change + (1.0 - beta) * back
                if rng.random() * (1.0 + math.exp(-both)) < 1.0:
                    flip(params, state, y[c], i)
                    f += change
                    log_q += back
                    parts[:] = moved


@cache
def compiled_loops(start: Any, delta: Any, flip: Any, closed: bool) -> tuple[Callable[..., None], Callable[..., None]]:
    """`sweep` and `anneal` for a model's three functions; kept on disk where these are `closed`."""
    from .._base.cached import njit
    from . import base_kernels

    own = {"start": start, "delta": delta, "flip": flip}
    own |= {"base_change": base_kernels.base_change, "log_sum": base_kernels.log_sum}
    codes = [one.py_func.__code__ for one in own.values()]
    digest = hashlib.sha256(repr([_parts(code) for code in codes]).encode()).hexdigest()[:16]

    def made(loop: Callable[..., None]) -> Callable[..., None]:
        copy = FunctionType(loop.__code__, {**globals(), **own}, loop.__name__)
        copy.__qualname__, copy.__module__ = f"{loop.__name__}_{digest}", __name__
        return njit(nogil=True, error_model="numpy", cache=closed)(copy)

    return made(sweep), made(anneal)


def _parts(code: CodeType) -> tuple[Any, ...]:
    """What a function does, whatever file it is in."""
    return code.co_code.hex(), code.co_consts, code.co_names, code.co_varnames
