"""Total error = sampling error + reference error: S⁻¹ (Σ1 + Σ2) S⁻¹ (Baddeley, Coeurjolly, Rubak & Waagepetersen 2014).

S is the negative Hessian, Σ1 the variance of the data's score, Σ2 that of the reference points'. For an observation t
with score u_t and reference scores r_tj (ν profiled out), g_t = u_t + Σ_j r_tj has mean zero given the context, so that

- Σ2 for IID points is the sum over contexts of k times the sample covariance of r_tj;
- Σ2 for randomised lattices, Sobol points and strata comes from a few independent randomisations with score sums G_r:
  R/(R−1) Σ_r (G_r − Ḡ)(G_r − Ḡ)ᵀ;
- Σ1 is S − Σ2(IID) for the logistic objective: with IID points and a correct model the Hessian is the variance of the
  score, and the data do not know how the points were drawn. Otherwise Σ1 = Σ_t [u_t u_tᵀ − sym(u_t v_tᵀ)], where
  v_t = −Σ_j r_tj is an independent unbiased estimate of E u_t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Scores:
    """Score contributions (N, p) by row; which are data, share a context, were drawn together, cluster together."""

    value: np.ndarray
    data: np.ndarray
    unit: np.ndarray
    randomisation: np.ndarray
    group: np.ndarray | None


@dataclass(frozen=True)
class ErrorParts:
    """Covariances of θ̂: total, and its two parts; robust where clusters were given."""

    total: np.ndarray
    sampling: np.ndarray
    reference: np.ndarray
    notes: tuple[str, ...] = ()
    robust: np.ndarray | None = None

    def leading(self, p: int) -> ErrorParts:
        """The first p coordinates."""
        robust = None if self.robust is None else self.robust[:p, :p]
        return ErrorParts(self.total[:p, :p], self.sampling[:p, :p], self.reference[:p, :p], self.notes, robust)

    def picked(self, index: Any) -> ErrorParts:
        """The coordinates in `index`, as np.ix_ makes it."""
        robust = None if self.robust is None else self.robust[index]
        return ErrorParts(self.total[index], self.sampling[index], self.reference[index], self.notes, robust)


def sum_by(values: np.ndarray, label: np.ndarray, size: int) -> np.ndarray:
    """(size, p) sums of rows by label."""
    return np.stack([np.bincount(label, values[:, j], size) for j in range(values.shape[1])], axis=1)


def error_parts(
    scores: Scores,
    information: np.ndarray,
    *,
    iid_points: bool,
    per_context: bool,
    information_equality: bool,
    spread: np.ndarray | None = None,
    data_spread: np.ndarray | None = None,
    penalty: np.ndarray | None = None,
) -> ErrorParts:
    """Split the covariance of θ̂ into what the data's and the reference points' randomness contribute.

    `spread`: Σ2 where it was measured on fresh randomisations of the points; `data_spread`: Σ1 where the objective has
    it from the model; `penalty`: S_λ, whose part of the Bayesian covariance, (S + S_λ)⁻¹ S_λ (S + S_λ)⁻¹, counts as
    sampling error.
    """
    bread = np.linalg.inv(information if penalty is None else information + penalty)
    u, r = scores.value[scores.data], scores.value[~scores.data]
    unit_u, unit_r = scores.unit[scores.data], scores.unit[~scores.data]
    randomisation = scores.randomisation[~scores.data]
    spread_iid = iid_spread(r, unit_r, per_context, evenly=not iid_points)
    notes: tuple[str, ...] = ()
    count = int(randomisation.max(initial=1))
    if spread is not None:
        sigma2 = spread
    elif iid_points:
        sigma2 = spread_iid
    elif count > 1:
        G = sum_by(r, randomisation - 1, count)
        centred = G - G.mean(axis=0)
        sigma2 = count / (count - 1) * centred.T @ centred
    else:
        sigma2 = spread_iid
        notes = (
            "One randomisation of the reference points: their error cannot be estimated, and that of IID points stands "
            "in for it, which is larger. Use randomisations=4 or more on the point scheme.",
        )
    if data_spread is not None:
        sigma1 = data_spread
    elif information_equality:
        sigma1 = information - spread_iid
    else:
        sigma1 = _data_spread(u, unit_u, r, unit_r, per_context)
    sampling = bread @ (_psd(sigma1) if penalty is None else _psd(sigma1) + penalty) @ bread
    reference = bread @ _psd(sigma2) @ bread
    robust = None
    if scores.group is not None:
        labels, of = np.unique(scores.group, return_inverse=True)
        robust = clustered(sum_by(scores.value, of[scores.unit], len(labels)), bread, penalty)
    return ErrorParts(sampling + reference, sampling, reference, notes, robust)


def clustered(g: np.ndarray, bread: np.ndarray, penalty: np.ndarray | None) -> np.ndarray:
    """C/(C − 1) H⁻¹ (Σ_c g_c g_cᵀ) H⁻¹ from the score sums (C, p) of C clusters.

    With a penalty, H⁻¹ S_λ H⁻¹ is added, the part of the Bayesian covariance that stands for the smoothing bias.
    """
    meat = g.T @ g * (len(g) / max(len(g) - 1, 1))
    return bread @ (meat if penalty is None else meat + penalty) @ bread


def penalty(
    scores: Scores,
    information: np.ndarray,
    iid_points: bool,
    per_context: bool,
    spread: np.ndarray | None,
    weight: np.ndarray | None = None,
) -> float:
    """tr(Î Ĵ⁻¹) of NCIC (Matsuda, Uehara & Hyvärinen 2021), Î from the scores themselves: no model need be correct.

    `spread`: Σ2 where it was measured on fresh randomisations of the points. `weight` (N,): an observation of weight w
    stands for w of them, whose scores add up w Var(u) and not w² Var(u).
    """
    u, r = scores.value[scores.data], scores.value[~scores.data]
    unit_u, unit_r = scores.unit[scores.data], scores.unit[~scores.data]
    if spread is None:
        spread = iid_spread(r, unit_r, per_context, evenly=not iid_points)
    if weight is not None:
        root = np.sqrt(np.maximum(weight, 1e-300))[:, None]
        u, r = u / root[scores.data], r / root[~scores.data]
    data = _data_spread(u, unit_u, r, unit_r, per_context)
    return float(np.trace(np.linalg.solve(information, data + spread)))


def iid_spread(r: np.ndarray, unit: np.ndarray, per_context: bool, evenly: bool) -> np.ndarray:
    """Σ2 if the points were IID. Points spread evenly represent q itself: their variance has divisor k, not k − 1."""
    if not per_context:
        centred = r - r.mean(axis=0)
        return centred.T @ centred * (1.0 if evenly else len(r) / max(len(r) - 1, 1))
    size = int(unit.max(initial=0)) + 1
    k = np.bincount(unit, minlength=size).astype(float)
    total = sum_by(r, unit, size)
    centred = r - (total / np.maximum(k, 1)[:, None])[unit]
    factor = np.ones(size) if evenly else k / np.maximum(k - 1, 1)
    if k.max(initial=0) == 1:  # one point per context: neighbours in the order of drawing stand in for redraws
        steps = np.diff(r, axis=0)
        return 0.5 * steps.T @ steps
    return (centred * factor[unit][:, None]).T @ centred


def _data_spread(u: np.ndarray, unit_u: np.ndarray, r: np.ndarray, unit_r: np.ndarray, per_context: bool) -> np.ndarray:
    """Σ1 without the information equality."""
    if not per_context:
        centred = u - u.mean(axis=0)
        return centred.T @ centred * len(u) / max(len(u) - 1, 1)
    size = int(max(unit_u.max(initial=0), unit_r.max(initial=0))) + 1
    data, v = sum_by(u, unit_u, size), -sum_by(r, unit_r, size)
    cross = data.T @ v
    return data.T @ data - (cross + cross.T) / 2


def _psd(matrix: np.ndarray) -> np.ndarray:
    """The nearest positive semi-definite matrix: a difference of estimates may stray below zero."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T
