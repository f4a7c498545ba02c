"""Scores → errors, once for all: total = sampling + reference, V (Σ1 + Σ2) V (Baddeley, Coeurjolly, Rubak &
Waagepetersen 2014), and the robust sandwich.

V = (−H + S_λ)⁻¹ is the bread; Σ1 and Σ2 are the variances of the data's and of the reference points' part of the score
(objectives/scores.py). The pieces:

- sampling: V (Σ1 + S_λ) V, with Σ1 from the model (without reference points Σ1 = −H, and this is V itself). S_λ is the
  part of the Bayesian covariance that stands for smoothing bias; what not knowing λ adds comes on top.
- reference: V' Σ2 V'ᵀ, V' the move of β̂ with the score when λ is chosen again (`Reselection`). Σ2 is that of IID
  points, or measured over independent randomisations of points that are not: as many as the total needs, which has
  ν/s² degrees of freedom (Satterthwaite) where Σ2 has ν and is a share s of it.
- robust: V M V with M from the scores themselves, so that no model need be correct. By observation, M = Σ1 + Σ2 with Σ1
  empirical; by cluster see clusters.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, final

import numpy as np

from .._base.counts import several, total
from ..objectives.scores import MOST_DF, Drawn, Enough, Scores
from .clusters import cluster_meat, nearest_psd

DOUBT = 0.9  # confidence that the reference part's share is no larger than its bound, where redraws end
FLOOR = 0.05  # of V: a difference of estimates must not claim certainty
ONE_SET = (
    "One randomisation of the reference points: their error cannot be measured, and that of IID points stands in for "
    "it, which is larger. Use randomisations=4 or more on the point scheme."
)
TOO_FEW = (
    "No standard errors: the scores of {units} are too few to estimate the errors of {parameters}: there must be more "
    "of them than parameters. {remedy}"
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

    def moved(self, move: Callable[[np.ndarray], np.ndarray]) -> ErrorParts:
        """Those of other parameters, linear in these: `move` is V → T V Tᵀ."""
        robust = None if self.robust is None else self.robust.moved(move)
        smoothing = None if self.smoothing is None else move(self.smoothing)
        parts = {name: move(getattr(self, name)) for name in ("total", "sampling", "reference")}
        return replace(self, **parts, robust=robust, smoothing=smoothing)


@final
class Robust:
    """A covariance that is computed once, when first asked for; or the sentence why there is none."""

    def __init__(
        self,
        compute: Callable[[], np.ndarray],
        df: float | Callable[[], float] | None = None,
        refusal: str | None = None,
    ) -> None:
        self._compute: Callable[[], np.ndarray] | None = compute
        self._value: np.ndarray | None = None
        self._df = df
        self.refusal = refusal

    @property
    def df(self) -> float | None:
        """Degrees of freedom of its intervals; None for the normal."""
        return self._df() if callable(self._df) else self._df

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
        return self.moved(lambda V: V[at])

    def moved(self, move: Callable[[np.ndarray], np.ndarray]) -> Robust:
        out = Robust(lambda: move(self.covariance), self._df, self.refusal)
        if self._value is not None:
            out._value = move(self._value)
        return out


def too_few(units: float, clustered: bool, p: int, remedy: str) -> str:
    """The sentence: how many independent scores there are, of what, and for how many parameters."""
    what = several(units, "independent cluster" if clustered else "independent observation")
    return TOO_FEW.format(units=what, parameters=several(p, "parameter"), remedy=remedy)


def bread(scores: Scores) -> np.ndarray:
    """V = (−H + S_λ)⁻¹."""
    return np.linalg.inv(scores.information if scores.penalty is None else scores.information + scores.penalty)


def reference_spread(scores: Scores, enough: Enough | None = None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Σ2, and a note where it had to be guessed."""
    if scores.drawn is not Drawn.EVENLY:
        return scores.points_spread(2), ()
    measured = scores.measured_spread(1.0, enough)
    return (scores.points_spread(2), (ONE_SET,)) if measured is None else (measured, ())


def error_parts(
    scores: Scores, cluster: np.ndarray | None = None, names: Mapping[int, str] = MappingProxyType({})
) -> ErrorParts | None:
    """The errors of an estimate from its scores; None where there are too few units to tell.

    `names`: those of the coordinates that are parameters, which mean something one by one.
    """
    if not scores.model_based and scores.weight <= scores.size:
        return None
    V = bread(scores)
    notes: tuple[str, ...] = ()
    sigma1 = nearest_psd(scores.data_spread(), scores.information, scores.penalty)
    sampling = V @ (sigma1 if scores.penalty is None else sigma1 + scores.penalty) @ V
    short = np.diag(sampling) < FLOOR * np.diag(V)
    short[[] if scores.level is None else [scores.level]] = False  # δ of a correct model is all but known
    if short.any() and scores.drawn is not Drawn.NONE:
        sampling = sampling + np.diag(np.where(short, FLOOR * np.diag(V) - np.diag(sampling), 0.0))
        which = [name for at, name in names.items() if short[at] and scores.by_chance < FLOOR]
        notes = (*notes, EXCESS.format(names=", ".join(which[:5]))) if which else notes
    smoothing = None if scores.smoothing is None else scores.widened * scores.smoothing
    sampling = scores.widened * sampling
    if smoothing is not None:
        sampling = sampling + smoothing
    sigma2, guessed = reference_spread(scores, _well_known(scores, V, sampling, list(names)))
    reference = _reference(scores, V, sigma2)
    robust, few = _robust(scores, V, sigma1, sigma2, cluster)
    notes, points = (*notes, *guessed, *few), scores.drawn is not Drawn.NONE
    return ErrorParts(sampling + reference, sampling, reference, points, robust, notes, smoothing)


def _well_known(scores: Scores, V: np.ndarray, sampling: np.ndarray, parameters: list[int]) -> Enough:
    """Whether the total has MOST_DF degrees of freedom, ν/s², at a share s that ν redraws do not rule out.

    s is the reference part's share of the variance: the largest of the `parameters`, or over all coordinates
    together (a curve's coefficients mean nothing one by one).
    """
    from scipy.special import chdtri

    def enough(sigma2: np.ndarray, df: int) -> bool:
        most = df / float(chdtri(df, DOUBT)) * np.diag(_reference(scores, V, sigma2))
        whole = most + np.diag(sampling)
        if parameters:
            share = float(np.max(most[parameters] / np.maximum(whole[parameters], 1e-300)))
        else:
            unit = np.diag(scores.information)
            share = float(unit @ most / max(unit @ whole, 1e-300))
        return df >= MOST_DF * share**2

    return enough


def _reference(scores: Scores, V: np.ndarray, sigma2: np.ndarray) -> np.ndarray:
    """V' Σ2 V', with λ chosen again where it was chosen."""
    again = scores.reselection
    if again is None:
        return V @ nearest_psd(sigma2, scores.information, scores.penalty) @ V
    moves = again.bread(V)
    whole = scores.reselected_spread()
    if whole is None:
        return moves @ nearest_psd(sigma2, scores.information, scores.penalty) @ moves.T
    moves = np.concatenate([moves, -again.J @ again.V_rho], axis=1)
    return moves @ nearest_psd(whole, scores.information, scores.penalty) @ moves.T


def _robust(
    scores: Scores, V: np.ndarray, sigma1: np.ndarray, sigma2: np.ndarray, cluster: np.ndarray | None
) -> tuple[Robust, tuple[str, ...]]:
    """The robust covariance, and what there is to say of it."""

    def whole(meat: np.ndarray) -> np.ndarray:
        return V @ (meat if scores.penalty is None else meat + scores.penalty) @ V

    def by_observation() -> np.ndarray:
        return whole(nearest_psd(scores.empirical_spread(), scores.information, scores.penalty) + sigma2)

    clustered = cluster is not None
    units = total(np.array([scores.weight])) if cluster is None else int(cluster.max(initial=0)) + 1
    refusal = scores.robust_refusal
    free = scores.size if scores.penalty is None else int(np.ceil(np.trace(V @ scores.information)))
    if refusal is None and units <= free:
        remedy = "Use the errors that assume the model (robust=False)" + (
            ", or smaller clusters." if clustered else "."
        )
        refusal = too_few(units, clustered, free, remedy)
    if cluster is None or refusal is not None:
        return Robust(by_observation, scores.df, refusal), ()
    found = cluster_meat(scores, cluster, V, sigma1, sigma2)
    robust = Robust(lambda: whole(found.M), found.df)
    _ = robust.covariance  # asked for by name: computed with the fit, and saved with it
    return robust, found.notes


def information_penalty(scores: Scores) -> float | None:
    """tr(Î Ĵ⁻¹) of NCIC (Matsuda, Uehara & Hyvärinen 2021), Î = Σ1 + Σ2 from the scores themselves."""
    if scores.weight <= 1 or scores.robust_refusal is not None:
        return None
    return float(np.sum(bread(scores) * (scores.empirical_spread() + reference_spread(scores)[0])))
