"""Is k large enough, and are the terms concurved? The two questions `check()` answers, on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

NEIGHBOURS = 3  # in two and more dimensions, as in mgcv's k.check
GRAM = 100_000  # rows that concurvity looks at: it describes how the covariates lie, and needs no more
SUBSAMPLE = 5000  # rows looked at, as in mgcv's k.check
TIED = 0.05  # share of rows with a repeated value below which they are chance, and move the k-index by less than this


@dataclass(frozen=True)
class BasisCheck:
    """One smooth: its columns k′, its edf, the k-index, and the p-value of "no pattern is left along it"."""

    label: str
    size: int
    edf: float
    k_index: float  # nan where the covariates include a factor
    p: float


@dataclass(frozen=True)
class Concurvity:
    """How far one term could be made of the others, 0 (not at all) to 1: three measures, as in mgcv's `concurvity`."""

    label: str
    worst: float
    observed: float
    estimate: float


@dataclass(frozen=True)
class Check:
    """What `check()` found. `notes` are sentences; `basis` and `concurvity` the tables behind them."""

    basis: Any  # table: term, k, edf, k_index, p
    concurvity: Any  # table: term, worst, observed, estimate
    notes: tuple[str, ...]
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text


def k_index(
    residuals: np.ndarray,
    coordinates: Sequence[np.ndarray],
    rng: np.random.Generator,
    repeats: int = 400,
    spread: bool = False,
) -> tuple[float, float]:
    """The k-index of Wood (2017, §5.9): half the mean squared difference of neighbouring residuals over their variance.

    Below 1 there is a pattern left; the p-value is the share of random orders that give a smaller one. With
    `spread`, values on a grid are spread over their cells first (`untied`); mgcv leaves them in the order of the rows.
    """
    r = np.asarray(residuals, dtype=np.float64)
    n = r.size
    if spread:
        coordinates = [untied(np.asarray(x, dtype=np.float64), rng) for x in coordinates]
    if len(coordinates) == 1:
        order = np.argsort(coordinates[0], kind="stable")

        def roughness(e: np.ndarray) -> float:
            return float(np.mean(np.diff(e) ** 2)) / 2.0

        observed = roughness(r[order])
    else:
        near = _neighbours(np.column_stack(coordinates))

        def roughness(e: np.ndarray) -> float:
            return float(np.mean((e[:, None] - e[near]) ** 2)) / 2.0

        observed = roughness(r)
    shuffled = np.array([roughness(r[rng.permutation(n)]) for _ in range(repeats)])
    return observed / float(np.mean(r**2)), float(np.mean(shuffled < observed))


def untied(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """x with repeated values (pixels, whole numbers) spread at random over their cells, which end half-way to the next.

    Data on a grid among reference points that are not would lie side by side, row after row with a residual of one
    sign, and seem to have a pattern. A few repeated values among others are left alone.
    """
    values, code, count = np.unique(x, return_inverse=True, return_counts=True)
    often = values[count > 1]
    repeated = count[code] > 1
    if len(often) < 2 or np.mean(repeated) < TIED:
        return x
    gaps = np.diff(often)
    below, above = np.concatenate([gaps[:1], gaps]), np.concatenate([gaps, gaps[-1:]])
    at = np.searchsorted(often, x[repeated])
    out = x.copy()
    out[repeated] += rng.uniform(-0.5 * below[at], 0.5 * above[at])
    return out


def _neighbours(points: np.ndarray) -> np.ndarray:
    """(n, NEIGHBOURS) nearest other rows of each row."""
    from scipy.spatial import KDTree

    near = np.asarray(KDTree(points).query(points, k=NEIGHBOURS + 1)[1])
    own = near == np.arange(points.shape[0])[:, None]
    own[~own.any(axis=1), -1] = True  # many copies of one point: its own row need not be among them
    return near[~own].reshape(points.shape[0], NEIGHBOURS)


def steepness(
    effect: Callable[[Sequence[np.ndarray]], np.ndarray], coordinates: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Covariates of an anisotropic term in units that make its effect equally steep: then "nearest" has a meaning.

    mgcv's k.check divides by the range once more, so that its neighbours depend on the covariates' units.
    """
    base = effect(coordinates)
    scaled = []
    for i, x in enumerate(coordinates):
        low, width = float(np.min(x)), float(np.ptp(x)) or 1.0
        moved = list(coordinates)
        moved[i] = x + width / 1000.0
        slope = float(np.mean(np.abs(effect(moved) - base))) / (width / 1000.0)
        scaled.append(slope * (x - low))
    return scaled


def concurvity(gram: np.ndarray, beta: np.ndarray, spans: Mapping[str, slice]) -> list[Concurvity]:
    """mgcv's `concurvity(full=TRUE)` from G = XᵀX: each block of columns against all the others.

    With B = G_ji G_ii⁻ G_ij (what the others i explain of X_j) and G_jj: worst = λ_max(G_jj⁻¹B),
    observed = β̂ᵀBβ̂ / β̂ᵀG_jjβ̂, estimate = tr B / tr G_jj.
    """
    scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    G = gram / np.outer(scale, scale)
    inverse = _inverse(G)
    out = []
    for label, span in spans.items():
        j = np.arange(gram.shape[0])[span]
        i = np.setdiff1d(np.arange(gram.shape[0]), j)
        if i.size == 0:
            out.append(Concurvity(label, 0.0, 0.0, 0.0))
            continue
        Gjj, b, d = G[np.ix_(j, j)], beta[span] * scale[span], scale[span]
        if inverse is not None:  # (G⁻¹)_jj = (G_jj − B)⁻¹: one inverse serves every term
            B = Gjj - np.linalg.inv(inverse[np.ix_(j, j)])
        else:
            value, vector = np.linalg.eigh(G[np.ix_(i, i)])
            keep = value > value[-1] * 1e-13
            root = (vector[:, keep] / np.sqrt(value[keep])).T @ G[np.ix_(i, j)]
            B = root.T @ root
        w, U = np.linalg.eigh(Gjj)
        fine = U[:, w > w[-1] * 1e-13] / np.sqrt(w[w > w[-1] * 1e-13])
        worst = float(np.linalg.eigvalsh(fine.T @ B @ fine)[-1])
        denominator = float(b @ Gjj @ b)
        observed = float(b @ B @ b) / denominator if denominator > 0.0 else 0.0
        estimate = float(np.sum(np.diag(B) * d**2) / np.sum(np.diag(Gjj) * d**2))
        out.append(Concurvity(label, *(min(1.0, max(0.0, share)) for share in (worst, observed, estimate))))
    return out


def _inverse(G: np.ndarray) -> np.ndarray | None:
    """G⁻¹, or None where its columns are so nearly dependent that differences of inverses would be rounding error."""
    try:
        factor = np.linalg.cholesky(G)
    except np.linalg.LinAlgError:
        return None
    return np.linalg.inv(G) if np.min(np.diag(factor)) > 1e-5 else None


def notes(basis: Sequence[BasisCheck], curved: Sequence[Concurvity], parametric: str = "parametric") -> tuple[str, ...]:
    """The sentences a reader needs: terms whose k may be too small, and terms that others nearly make up."""
    said = []
    for b in basis:
        if b.p < 0.05 and b.edf > 0.8 * b.size:
            said.append(
                f"{b.label}: edf {b.edf:.1f} is close to its limit of {b.size} and a pattern is left along it "
                f"(k-index {b.k_index:.2f}, p {b.p:.3f}): refit with a larger k, e.g. k={2 * (b.size + 1)}."
            )
        elif b.p < 0.05:
            said.append(
                f"{b.label}: a pattern is left along it (k-index {b.k_index:.2f}, p {b.p:.3f}), but k does not bind "
                f"(edf {b.edf:.1f} of {b.size}): look for dependent rows or a missing covariate."
            )
    said.extend(
        f"{c.label}: concurvity {c.observed:.2f} (worst case {c.worst:.2f}): the other terms can nearly replace it, "
        "so its curve and theirs are not separately determined."
        for c in curved
        if c.observed > 0.8 and c.label != parametric
    )
    return tuple(said) or ("k is large enough for every term that could be tested, and no term is strongly concurved.",)
