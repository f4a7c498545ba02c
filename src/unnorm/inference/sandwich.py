"""Scores → errors, once for all: total = sampling + reference, V (Σ1 + Σ2) V (Baddeley, Coeurjolly, Rubak &
Waagepetersen 2014), and the robust sandwich.

V = (−H + S_λ)⁻¹ is the bread; Σ1 and Σ2 are the variances of the data's and of the reference points' part of the score
(objectives/scores.py). The pieces:

- sampling: V (Σ1 + S_λ) V, with Σ1 from the model (without reference points Σ1 = −H, and this is V itself). S_λ is the
  part of the Bayesian covariance that stands for smoothing bias; what not knowing λ adds comes on top.
- reference: V' Σ2 V'ᵀ, V' the move of β̂ with the score when λ is chosen again (`Reselection`). Σ2 is that of IID
  points, or measured over independent randomisations of points that are not.
- robust: V M V with M from the scores themselves, so that no model need be correct. By observation, M = Σ1 + Σ2 with Σ1
  empirical; by cluster, M = C/(C − 1) Σ_c g_c g_cᵀ, plus Σ2 where the points belong to no cluster, and intervals take
  Student's t on C − 1 degrees of freedom (CR1, as Stata and survival's `cluster` with few clusters).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from ..objectives.scores import Drawn, Scores

FLOOR = 0.05  # of V: a difference of estimates must not claim certainty
ONE_SET = (
    "One randomisation of the reference points: their error cannot be measured, and that of IID points stands in for "
    "it, which is larger. Use randomisations=4 or more on the point scheme."
)
TOO_FEW = (
    "No standard errors: the scores of {units:,} independent {what} are too few to estimate the errors of {p} "
    "parameters: there must be more of them than parameters. {remedy}"
)
EXCESS = (
    "The scores of the reference points vary more than the model and the reference's density allow ({names}): either "
    "the density does not describe the points, or the model is far from the data. Check the reference; the robust "
    "errors, tidy(robust=True), assume neither."
)


@final
@dataclass(frozen=True)
class ErrorParts:
    """Covariances of the estimates: total, its two parts, and a robust version that is computed when asked for."""

    total: np.ndarray
    sampling: np.ndarray
    reference: np.ndarray
    points: bool = True  # whether reference points were drawn, so that the parts differ
    robust: Robust | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)
    smoothing: np.ndarray | None = None  # what not knowing λ adds to `total`

    def picked(self, index: np.ndarray) -> ErrorParts:
        """The coordinates in `index`."""
        at = np.ix_(index, index)
        robust = None if self.robust is None else self.robust.picked(at)
        smoothing = None if self.smoothing is None else self.smoothing[at]
        parts = {name: getattr(self, name)[at] for name in ("total", "sampling", "reference")}
        return replace(self, **parts, robust=robust, smoothing=smoothing)


@final
class Robust:
    """A covariance that is computed once, when first asked for; or the sentence why there is none."""

    def __init__(self, compute: Callable[[], np.ndarray], df: float | None = None, refusal: str | None = None) -> None:
        self._compute: Callable[[], np.ndarray] | None = compute
        self._value: np.ndarray | None = None
        self.df = df  # degrees of freedom of its intervals; None for the normal
        self.refusal = refusal

    @property
    def covariance(self) -> np.ndarray:
        if self._value is None:
            assert self._compute is not None
            self._value, self._compute = self._compute(), None  # releases the rows
        return self._value

    @property
    def computed(self) -> np.ndarray | None:
        """The covariance if it has been asked for: what saving may keep without computing."""
        return self._value

    def picked(self, at: Any) -> Robust:
        out = Robust(lambda: self.covariance[at], self.df, self.refusal)
        if self._value is not None:
            out._value = self._value[at]
        return out


def bread(scores: Scores) -> np.ndarray:
    """V = (−H + S_λ)⁻¹."""
    return np.linalg.inv(scores.information if scores.penalty is None else scores.information + scores.penalty)


def reference_spread(scores: Scores, times: float = 1.0) -> tuple[np.ndarray, tuple[str, ...]]:
    """Σ2, and a note where it had to be guessed."""
    if scores.drawn is not Drawn.EVENLY:
        return scores.points_spread(2), ()
    measured = scores.measured_spread(times)
    return (scores.points_spread(2), (ONE_SET,)) if measured is None else (measured, ())


def error_parts(scores: Scores, cluster: np.ndarray | None = None, names: tuple[str, ...] = ()) -> ErrorParts | None:
    """The errors of an estimate from its scores; None where there are too few units to tell."""
    if not scores.model_based and scores.units <= scores.size:
        return None
    V = bread(scores)
    sigma2, notes = reference_spread(scores)
    sigma1 = nearest_psd(scores.data_spread(), scores.information)
    sampling = V @ (sigma1 if scores.penalty is None else sigma1 + scores.penalty) @ V
    short = np.diag(sampling) < FLOOR * np.diag(V)
    if short.any() and scores.drawn is not Drawn.NONE:
        sampling = sampling + np.diag(np.where(short, FLOOR * np.diag(V) - np.diag(sampling), 0.0))
        which = [name for name, low in zip(names, short) if low]
        notes = (*notes, EXCESS.format(names=", ".join(which[:5]))) if which else notes
    smoothing = None if scores.smoothing is None else scores.widened * scores.smoothing
    sampling = scores.widened * sampling
    if smoothing is not None:
        sampling = sampling + smoothing
    reference = _reference(scores, V, sigma2)
    robust = _robust(scores, V, sigma2, cluster)
    if cluster is not None and robust.refusal is None:
        _ = robust.covariance  # asked for by name: computed with the fit, and saved with it
    points = scores.drawn is not Drawn.NONE
    return ErrorParts(sampling + reference, sampling, reference, points, robust, notes, smoothing)


def _reference(scores: Scores, V: np.ndarray, sigma2: np.ndarray) -> np.ndarray:
    """V' Σ2 V', with λ chosen again where it was chosen."""
    again = scores.reselection
    if again is None:
        return V @ nearest_psd(sigma2, scores.information) @ V
    moves = again.bread(V)
    whole = scores.reselected_spread()
    if whole is None:
        return moves @ nearest_psd(sigma2, scores.information) @ moves.T
    moves = np.concatenate([moves, -again.J @ again.V_rho], axis=1)
    return moves @ nearest_psd(whole, scores.information) @ moves.T


def _robust(scores: Scores, V: np.ndarray, sigma2: np.ndarray, cluster: np.ndarray | None) -> Robust:
    def meat() -> np.ndarray:
        if cluster is None:
            return nearest_psd(scores.empirical_spread(), scores.information) + sigma2
        count = int(cluster.max(initial=0)) + 1
        g = scores.cluster_sums(cluster, count)
        own = g.T @ g * (count / max(count - 1, 1))
        return own + sigma2 if scores.shared else own

    def covariance() -> np.ndarray:
        M = meat() if scores.penalty is None else meat() + scores.penalty
        return V @ M @ V

    units = scores.units if cluster is None else int(cluster.max(initial=0)) + 1
    refusal = scores.robust_refusal
    free = scores.size if scores.penalty is None else int(np.ceil(np.trace(V @ scores.information)))
    if refusal is None and units <= free:
        refusal = TOO_FEW.format(
            units=units,
            what="observations" if cluster is None else "clusters",
            p=free,
            remedy="Use the errors that assume the model (robust=False), or smaller clusters."
            if cluster is not None
            else "Use the errors that assume the model (robust=False).",
        )
    return Robust(covariance, None if cluster is None else float(units - 1), refusal)


def information_penalty(scores: Scores) -> float | None:
    """tr(Î Ĵ⁻¹) of NCIC (Matsuda, Uehara & Hyvärinen 2021), Î = Σ1 + Σ2 from the scores themselves."""
    if scores.units <= 1 or scores.robust_refusal is not None:
        return None
    return float(np.sum(bread(scores) * (scores.empirical_spread() + reference_spread(scores)[0])))


def nearest_psd(matrix: np.ndarray, information: np.ndarray) -> np.ndarray:
    """The nearest positive semi-definite matrix: a difference of estimates may stray below zero.

    Nearest in the units of `information`, −H, so that the scale of the statistics does not matter; coordinates beyond
    its own (of the criterion's slopes) are taken in theirs.
    """
    scale = np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1e-300))
    scale[: len(information)] = np.sqrt(np.maximum(np.diag(information), 1e-300))
    values, vectors = np.linalg.eigh((matrix + matrix.T) / (2 * np.outer(scale, scale)))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T * np.outer(scale, scale)
