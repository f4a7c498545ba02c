"""The robust meat by cluster, and how much C clusters of unequal size know of a variance.

Cluster c holds a share π_c of the observations. Leaving it out moves the estimate by −(−H + H_c)⁻¹ g_c, H_c its own
share of the Hessian: with H_c = π_c H by V g_c/(1 − π_c). The jackknife's variance (CR3; Bell & McCaffrey 2002) is

    V M V,      M = (C − 1)/C Σ_c g_c g_cᵀ/(1 − π_c)²,

which is CR1, C/(C − 1) Σ_c g_c g_cᵀ, where clusters are of one size. Two corrections:

- The data's scores alone do not add to zero (points that all observations share are left out of g_c): each is taken
  about its share of their sum.
- Reference points that are spread evenly vary less in all than cluster by cluster. Their part of each Var(g_c) is
  measured and taken off, and Σ2 of all is added once.

Intervals take Student's t, tests F, on the degrees of freedom of M (Bell & McCaffrey 2002): C − 1 for clusters of one
size, fewer for others, as if there were fewer clusters (Carter, Schnepel & Steigerwald 2017).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..objectives.scores import Drawn, Scores

FEW = 10.0  # effective clusters, below which unequal ones are warned of
UNEQUAL = 0.8  # of the number of clusters: at least so many are effective where their sizes do not matter
NOTE = (
    "{count:,} clusters of unequal size know as much of their variance as {effective:.1f} equal ones: robust intervals "
    "are wide (Student's t on {df:.1f} degrees of freedom) and approximate. Use more or smaller clusters, or the "
    "errors that assume the model (robust=False)."
)


class ClusterMeat(NamedTuple):
    """M by cluster, without the penalty."""

    M: np.ndarray
    df: float
    notes: tuple[str, ...] = ()


def cluster_meat(
    scores: Scores, cluster: np.ndarray, V: np.ndarray, sigma1: np.ndarray, sigma2: np.ndarray
) -> ClusterMeat:
    """M of clusters labelled 0 … C − 1; Σ1 under the model and Σ2 of all points."""
    count = int(cluster.max(initial=0)) + 1
    weight = scores.cluster_weights(cluster, count)
    share = weight / weight.sum()
    g = scores.cluster_sums(cluster, count)
    g = g - share[:, None] * g.sum(axis=0) if scores.shared else g
    factor = cluster_factor(share)
    own = (factor[:, None] * g).T @ (factor[:, None] * g)
    if scores.shared:
        M, expected = own + sigma2, sigma1
    elif scores.drawn is not Drawn.EVENLY or (points := scores.cluster_points(cluster, factor)) is None:
        M, expected = own, sigma1 + sigma2
    else:
        M, expected = nearest_psd(own - points, scores.information, scores.penalty) + sigma2, sigma1 + points
    df = degrees_of_freedom(share, float(np.sum(V * own)) / max(float(np.sum(V * expected)), 1e-300))
    # M less what is known of it has own's noise: as many times fewer degrees of freedom as its square is smaller
    kept = min(float(np.sum(V * M)) / max(float(np.sum(V * own)), 1e-300), 1.0)
    unequal = df + 1.0 < min(FEW, UNEQUAL * count)
    notes = (NOTE.format(count=count, effective=df + 1.0, df=df * kept**2),) if unequal else ()
    return ClusterMeat(M, df * kept**2, notes)


def cluster_factor(share: np.ndarray) -> np.ndarray:
    """(C,) √((C − 1)/C)/(1 − π_c), by which g_c counts in M."""
    return np.sqrt((len(share) - 1) / len(share)) / np.maximum(1.0 - share, 1e-12)


def degrees_of_freedom(share: np.ndarray, inflation: float) -> float:
    """tr(B)²/tr(B²), B the covariance of the g_c/(1 − π_c): what a χ² of the same mean and variance as M has.

    Cluster c's own score e_c has variance s_c = π_c + b π_c², with b Σ π_c² = inflation − 1: b is zero for independent
    observations, whose variance by cluster is `inflation` times what the model says. At the estimate the scores add to
    zero, g_c = e_c − π_c Σ e, so that with a = π/(1 − π), z = s/(1 − π) and S = Σ s

        B = diag(s/(1 − π)²) − a zᵀ − z aᵀ + S a aᵀ.
    """
    s = share + max(inflation - 1.0, 0.0) / np.sum(share**2) * share**2
    left = np.maximum(1.0 - share, 1e-12)
    D, a, z, S = s / left**2, share / left, s / left, s.sum()
    low = S * a**2 - 2 * a * z  # the diagonal of what has rank two
    aa, az, zz = a @ a, a @ z, z @ z
    squares = D @ D + 2 * D @ low + 2 * (az**2 + aa * zz) + (S * aa) ** 2 - 4 * S * aa * az
    return round(float((D + low).sum() ** 2 / squares), 9)  # C − 1 exactly where all are of one size


_NO_INFORMATION = 1e-6  # of a coordinate's precision: what the data say of it is less, and may be rounding


def nearest_psd(matrix: np.ndarray, information: np.ndarray, penalty: np.ndarray | None = None) -> np.ndarray:
    """The nearest positive semi-definite matrix: a difference of estimates may stray below zero.

    Nearest in the units of `information`, −H, so that the scale of the statistics does not matter; coordinates beyond
    its own (of the criterion's slopes) are taken in theirs, and those of which the penalty alone knows anything (a part
    of a curve that is the context's, where constants follow f) in the penalty's.
    """
    scale = np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1e-300))
    units = np.diag(information)
    if penalty is not None:
        whole = units + np.diag(penalty)
        units = np.where(units > _NO_INFORMATION * whole, units, whole)
    scale[: len(information)] = np.sqrt(np.maximum(units, 1e-300))
    values, vectors = np.linalg.eigh((matrix + matrix.T) / (2 * np.outer(scale, scale)))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T * np.outer(scale, scale)
