"""The likelihood of a few hundred rows at a time, compiled: dℓ/dη and w = −d²ℓ/dη² at their η.

Of the logit, which most fits have, loops over rows become vector instructions: the exponential is arithmetic
(`exp_below`), and one logarithm serves a block of rows. Other families go row by row.
"""

from __future__ import annotations

# pyright: reportCallIssue=false
import math

from .._base.cached import inner, njit
from .._base.elementary import exp_below
from .links import binary_row

BINOMIAL, POISSON, GAUSSIAN = 0, 1, 2
BLOCK = 256  # rows at most: a product of so many 1 + e ≤ 2 is a number
FAST = {"contract", "nsz", "arcp", "reassoc"}
_LEAST = -700.0  # beyond, e^x is no longer a number with all its digits, and nothing beside one


@njit(inline="always")
def weight_of(family, link, y, eta, wt):
    """dℓ/dη, w = −d²ℓ/dη², dw/dη of one row, and exp(−|η|) (logit) or ℓ (other links). `link` is the family again, or
    None where it is one of the three above: links.py is then not compiled."""
    if family == BINOMIAL:
        e = math.exp(-abs(eta))
        r = 1.0 / (1.0 + e)
        p = r if eta >= 0.0 else e * r
        w = wt * e * r * r
        return wt * (y - p), w, w * (1.0 - 2.0 * p), e
    if family == POISSON:
        mu = wt * math.exp(500.0 if eta > 500.0 else eta)
        return wt * y - mu, mu, mu, 0.0
    if family == GAUSSIAN or link is None:
        return wt * (y - eta), wt, 0.0, 0.0
    value, g, w, dw = binary_row(link, y, eta, wt)
    return g, w, dw, value


@inner(fastmath=False, error_model="numpy")
def exponentials(eta, n, e):
    """e = exp(−|η|) of n rows. `exp_below` rounds by a sum, so that sums may not be reordered here (`fastmath` would
    else be the caller's)."""
    for k in range(n):
        x = -abs(eta[k])
        value = exp_below(x)
        e[k] = 0.0 if x < _LEAST else value


# long: arrays of a compiled loop
@inner(fastmath=FAST, error_model="numpy")
def slopes(family, link, y, wt, weighted, eta, n, e, g, w):
    """Of n rows, at most `BLOCK`: dℓ/dη and w; returns the sum of ℓ without its constants. e: room for as many."""
    total = 0.0
    if family == BINOMIAL:
        odds = 1.0
        exponentials(eta, n, e)
        for k in range(n):
            odds *= 1.0 + e[k]
            r = 1.0 / (1.0 + e[k])
            p = r if eta[k] >= 0.0 else e[k] * r
            w[k] = wt[k] * e[k] * r * r
            g[k] = wt[k] * (y[k] - p)
            total += wt[k] * (y[k] * eta[k] - (eta[k] if eta[k] > 0.0 else 0.0))
        if weighted:
            for k in range(n):
                total -= wt[k] * math.log1p(e[k])
            return total
        return total - math.log(odds)
    for k in range(n):
        g[k], w[k], _, value = weight_of(family, link, y[k], eta[k], wt[k])
        if family == POISSON:
            value = wt[k] * y[k] * eta[k] - w[k]
        elif family == GAUSSIAN:
            value = -0.5 * wt[k] * (y[k] - eta[k]) ** 2
        total += value
    return total


# long: arrays of a compiled loop
@inner(fastmath=FAST, error_model="numpy")
def bends(family, link, y, wt, eta, n, e, dw):
    """Of n rows, at most `BLOCK`: dw/dη. e: room for as many."""
    if family == BINOMIAL:
        exponentials(eta, n, e)
        for k in range(n):
            r = 1.0 / (1.0 + e[k])
            p = r if eta[k] >= 0.0 else e[k] * r
            dw[k] = wt[k] * e[k] * r * r * (1.0 - 2.0 * p)
        return
    for k in range(n):
        _, _, dw[k], _ = weight_of(family, link, y[k], eta[k], wt[k])
