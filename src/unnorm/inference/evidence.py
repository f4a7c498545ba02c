"""What a contrast says about itself: what its reference points cost, how many would do, whether they lie too far off.

With c times as many reference points the log-odds fall by log c, and the reference rows count c times: the variances of
θ̂ at other k follow from the rows at hand. The variance of points that are not IID is measured: on fresh ones at the
present number and at fewer, where their noise grows faster than IID points'. More of them are taken to gain as IID
points would, which they surpass: a stated number is then more than enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from .sandwich import ErrorParts

MULTIPLES = tuple(4.0**j for j in range(-2, 5))  # of the present number of reference points
LIMIT = 1e4  # times as many points: as good as infinitely many

MOST_KEPT = 2e7  # numbers that a fit may hold on to for the sake of `advise`

Parts = Callable[[float], tuple[np.ndarray, np.ndarray]]
Measured = Callable[[float], np.ndarray]  # c → variance by fresh points, c times as many


@final
class Later:
    """Evidence worked out once, when first asked for; at once where its arrays are too large to be kept."""

    def __init__(self, work: Callable[[], dict[str, Any]], size: float = 0) -> None:
        self._work: Callable[[], dict[str, Any]] | None = work
        self._done: dict[str, Any] | None = None
        if size > MOST_KEPT:
            self()

    def __call__(self) -> dict[str, Any]:
        if self._done is None:
            assert self._work is not None
            self._done, self._work = self._work(), None  # lets go of the rows
        return self._done

    @property
    def known(self) -> dict[str, Any] | None:
        """The evidence if it has been asked for: what saving may keep without working."""
        return self._done


def contrast_evidence(
    names: Sequence[str],
    parts: Parts,
    errors: ErrorParts,
    information_equality: bool,
    log_w: np.ndarray | None,
    data: np.ndarray,
    *,
    value: float,
    penalty: float | None,
    measured: Measured | None = None,
    least: float = 0.0,
) -> dict[str, Any]:
    """The evidence of objectives that are sums over rows; `log_w` is f + χ − log q by row.

    `least` is the multiple at which one point (of each context) is left: there is nothing below.
    """
    total, reference = (np.diag(V)[: len(names)] for V in (errors.total, errors.reference))
    return {
        **_costs(names, parts, total, reference, information_equality, measured, least),
        **_distance(log_w, data),
        **_criterion(value, penalty),
    }


def choice_evidence(
    names: Sequence[str], total: np.ndarray, reference: np.ndarray, d: np.ndarray, value: float, penalty: float
) -> dict[str, Any]:
    """The evidence of objectives that compare each observation with its own points; d is (n, k + 1), data first.

    `total` and `reference` are variances by name.
    """

    def parts(c: float) -> tuple[np.ndarray, np.ndarray]:
        return total - reference + reference / c, reference / c

    ahead = np.mean((d[:, :1] > d[:, 1:]) + 0.5 * (d[:, :1] == d[:, 1:]))
    w = np.exp(d[:, 1:] - d[:, 1:].max(axis=1, keepdims=True))
    share = float(np.mean(w.sum(axis=1) ** 2 / (w**2).sum(axis=1)) / w.shape[1])
    return {
        **_costs(names, parts, total, reference, True, None, 1.0 / (d.shape[1] - 1)),
        "auc": float(ahead),
        "effective": share,
        **_criterion(value, penalty),
    }


def _costs(
    names: Sequence[str],
    parts: Parts,
    total: np.ndarray,
    reference: np.ndarray,
    information_equality: bool,
    measured: Measured | None,
    least: float,
) -> dict[str, Any]:
    """For each name the reference points' share of the variance at each multiple, and the inflation of its se."""
    full, iid = parts(1.0)
    gain = reference / np.maximum(iid, 1e-300)  # what evenly spread points have over IID ones

    def at(c: float) -> tuple[np.ndarray, np.ndarray]:
        full_c, iid_c = (full, iid / c) if not information_equality else parts(c)
        sampling = np.maximum(full_c - iid_c, 1e-3 * full_c) if information_equality else total - reference
        return sampling, gain * iid_c if measured is None or c >= 1.0 else np.maximum(measured(c), gain * iid_c)

    limit = np.maximum(at(LIMIT)[0], 1e-300)
    shares, inflations = [], []
    for c in MULTIPLES:
        sampling, other = at(max(c, least))
        shares.append(other / np.maximum(sampling + other, 1e-300))
        inflations.append(np.sqrt(np.maximum((sampling + other) / limit, 1.0)))
    return {
        "names": list(names),
        "share": (reference / np.maximum(total, 1e-300)).tolist(),
        "multiples": list(MULTIPLES),
        "shares": np.array(shares).tolist(),  # by multiple, then name
        "inflation": inflations[MULTIPLES.index(1.0)].tolist(),
        "inflations": np.array(inflations).tolist(),
    }


def _distance(log_w: np.ndarray | None, data: np.ndarray) -> dict[str, Any]:
    """AUC of the log density ratio between data and reference points, and the effective share of the latter."""
    if log_w is None:
        return {"auc": None, "effective": None}
    w = np.exp(log_w[~data] - log_w[~data].max())
    return {"auc": auc(log_w, data), "effective": float(w.sum() ** 2 / (w @ w) / len(w))}


def auc(score: np.ndarray, data: np.ndarray) -> float:
    """P(score of an observation > score of a reference point), ties half: the rank-sum statistic."""
    low, high = np.sort(score[~data]), score[data]
    below = np.searchsorted(low, high, side="left") + np.searchsorted(low, high, side="right")
    return float(np.mean(below) / (2 * len(low)))


def _criterion(value: float, penalty: float | None) -> dict[str, Any]:
    """NCIC = −2 𝓡 + 2 tr(Î Ĵ⁻¹)."""
    if penalty is None:
        return {"penalty": None, "ncic": None}
    return {"penalty": penalty, "ncic": -2 * value + 2 * penalty}
