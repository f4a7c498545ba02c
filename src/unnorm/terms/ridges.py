"""`t2`: tensor products with one ridge penalty for each product of parts, so that no penalties overlap (Wood, Scheipl &
Faraway 2013, Statistics and Computing 23: 341–360).

Each margin is turned into functions with the identity as penalty, r of them, and n that it leaves alone. Products of
parts, r × r, r × n, n × r for two margins, have a smoothing parameter each, and n × n none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from .basis import Setup
from .sample import Sample
from .tensor import TensorProduct


def split(setup: Setup, sample: Sample) -> tuple[np.ndarray, int]:
    """P (k, k) and r: the first r functions have the identity as penalty, the rest none; both parts of unit mean
    square, the constant last. (Within a null space of two or more dimensions mgcv's scaling depends on rounding; here
    each of its functions has the same mean square.)"""
    (E,), rank, X = setup.roots, setup.ranks[0], setup.columns
    _, d, V = np.linalg.svd(E)
    P = V.T.copy()
    P[:, :rank] /= d[:rank]
    null = X @ P[:, rank:]
    if null.shape[1] > 1:
        P[:, rank:] /= np.sqrt(sample.mean(null**2))
        null = X @ P[:, rank:]
        mean = sample.mean(null)
        order = np.linalg.eigh(((null - mean) * sample.weights[:, None]).T @ (null - mean))[1][:, ::-1]
        P[:, rank:] = P[:, rank:] @ order
    for part in (slice(0, rank), slice(rank, None)):
        if P[:, part].shape[1]:
            P[:, part] /= np.sqrt(np.mean(sample.mean((X @ P[:, part]) ** 2)))
    return P, rank


def ridge_product(margins: Sequence[Setup], samples: Sequence[Sample], sample: Sample) -> Setup:
    """The product of the margins, columns sorted by part, with an identity penalty on each part but n × n × …"""
    turned = [split(margin, own) for margin, own in zip(margins, samples)]
    sizes = [len(P) for P, _ in turned]
    inside = [np.arange(size) < rank for size, (_, rank) in zip(sizes, turned)]
    part = np.array([sum(2**i * bool(flag) for i, flag in enumerate(flags)) for flags in product(*inside)])
    order = np.argsort(-part, kind="stable")
    basis = TensorProduct(tuple(m.basis.times(P) for m, (P, _) in zip(margins, turned)), np.eye(part.size)[:, order])
    roots = tuple(np.eye(part.size)[part[order] == kind] for kind in np.unique(part)[::-1] if kind)
    null_dim = int(np.sum(part == 0))
    ranks = tuple(len(E) for E in roots)
    return Setup(basis, basis.evaluate(sample.points), roots, ranks, null_dim, isotropic=False)
