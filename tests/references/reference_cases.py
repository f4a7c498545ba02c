"""Domains and observations that the tests of references share."""

from __future__ import annotations

import numpy as np

import unnorm as un
from unnorm.domains import Domain


def transitions(domain: Domain, n: int = 40, lags: int = 1, seed: int = 0) -> un.Observations:
    """Pairs of points of Ω, the outcome somewhat nearer to the context than by chance."""
    rng = np.random.default_rng(seed)
    y, *before = (domain.uniform(n, rng) for _ in range(lags + 1))
    names = tuple(f"y{j}" for j in range(domain.dim))
    if domain.enclosing_box is not None:
        near = 0.5 * (y + before[0])
        y = np.where(domain.contains(near)[:, None], near, y)
    context = {}
    for lag, points in enumerate(before, start=1):
        suffix = "_prev" if lag == 1 else f"_prev{lag}"
        context |= {name + suffix: points[:, j] for j, name in enumerate(names)}
    return un.Observations("transitions", y, names, context, lags=lags)


def star() -> Domain:
    return un.Window.examples()[1]


def box3() -> Domain:
    return un.Box((-1, 1), (0, 1), (2, 5))


def interval() -> Domain:
    return un.Interval(-1, 1)


def screen() -> Domain:
    return un.Box((0, 8), (0, 6))
