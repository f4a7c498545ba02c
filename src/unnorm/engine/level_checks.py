"""Concurvity where one term has a block of columns for each level: as `checks.concurvity`, by blocks.

With G = XᵀX, D its levels' blocks (block-diagonal), C = G_l0 and G̃ = G_00 − CᵀD⁻C, what the others explain of a shared
term j is B = C_jᵀD⁻C_j + G̃_ji G̃_ii⁻ G̃_ij, and of the levels' term C G_00⁻ Cᵀ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .arrow import Arrow, tall
from .checks import GRAM, Concurvity
from .families import FAMILIES
from .segment import ResponseRows
from .smoothed import INTERCEPT

if TYPE_CHECKING:
    from .gam_result import Gam

_NULL = 1e-13  # of the largest eigenvalue: none


class LevelGram:
    """G in the engine's coordinates, and where each term's columns are."""

    def __init__(self, fit: Gam) -> None:
        inner = fit.smoothed
        design = inner.design
        n = fit.y.size
        weight = np.zeros(n)
        weight[:: max(1, -(-n // GRAM))] = 1.0
        rows = ResponseRows(np.zeros(n), np.ascontiguousarray(design.sort(weight)), np.empty(0))
        self.G: Arrow = design.sweep(rows, FAMILIES["gaussian"], np.zeros(design.size))[2]
        smooth = [term.label for term in fit.smooths]
        parametric = [label for label in inner.slices if label not in smooth]
        self.level = next(label for label in smooth if inner.columns([label])[1].any())
        self.beta = design.to_flat(inner.beta)
        self.spans = {"parametric": inner.columns(parametric)[0]} if parametric else {}
        self.spans |= {label: inner.columns([label])[0] for label in smooth if label != self.level}
        self.order = [*(["parametric"] if parametric else []), *smooth]
        self.root = self._turned()

    def _turned(self) -> np.ndarray:
        """R with RᵀR = CᵀD⁻C, (L k, s)."""
        assert self.G.stacked is not None
        D, C = self.G.stacked
        value, vector = np.linalg.eigh(D)
        keep = value > value.max() * _NULL
        back = vector * np.where(keep, 1.0 / np.sqrt(np.where(keep, value, 1.0)), 0.0)[:, None, :]
        return tall(np.matmul(back.transpose(0, 2, 1), C))

    def of_levels(self, others: np.ndarray) -> Concurvity:
        """The levels' term against the shared columns `others` (s,) bool."""
        assert self.G.stacked is not None
        D, C = self.G.stacked
        root = _root_of_inverse(self.G.shared[np.ix_(others, others)])
        flat = tall(C)[:, others] @ root
        b = self.beta[len(self.G.shared) :]
        worst = np.linalg.eigvalsh(root.T @ (self.root[:, others].T @ self.root[:, others]) @ root)[-1]
        below = float(np.einsum("lj,ljk,lk->", b.reshape(len(D), -1), D, b.reshape(len(D), -1)))
        observed = float(np.sum((b @ flat) ** 2)) / below if below > 0.0 else 0.0
        return _bounded(self.level, worst, observed, float(np.sum(flat**2)) / float(np.einsum("ljj->", D)))

    def of_shared(self, label: str, others: np.ndarray, levels: bool) -> Concurvity:
        """A shared term against the shared columns `others`, and the levels' where asked."""
        j = self.spans[label]
        through = self.root.T @ self.root if levels else np.zeros(self.G.shared.shape)
        left, Gjj = self.G.shared - through, self.G.shared[np.ix_(j, j)]
        across = _root_of_inverse(left[np.ix_(others, others)]).T @ left[np.ix_(others, j)]
        B, b = through[np.ix_(j, j)] + across.T @ across, self.beta[: len(left)][j]
        fine = _root_of_inverse(Gjj)
        worst = np.linalg.eigvalsh(fine.T @ B @ fine)[-1]
        below = float(b @ Gjj @ b)
        return _bounded(
            label, worst, float(b @ B @ b) / below if below > 0.0 else 0.0, float(np.trace(B) / np.trace(Gjj))
        )

    def one(self, label: str, with_: list[str]) -> Concurvity:
        """One term against others, by label."""
        none = np.zeros(len(self.G.shared), bool)
        others = np.logical_or.reduce([none, *(self.spans[other] for other in with_ if other != self.level)])
        if not others.any() and self.level not in set(with_) - {label}:  # of nothing
            return Concurvity(label, 0.0, 0.0, 0.0)
        if label == self.level:
            return self.of_levels(others)
        return self.of_shared(label, others, self.level in with_)


def level_concurvity(fit: Gam) -> list[Concurvity]:
    """Each term against all the others."""
    gram = LevelGram(fit)
    return [gram.one(label, [other for other in gram.order if other != label]) for label in gram.order]


def single(fit: Gam) -> bool:
    """Whether one term alone has columns for each level, so that these formulas hold."""
    inner = fit.smoothed
    return inner.wide and sum(inner.columns([label])[1].any() for label in inner.slices if label != INTERCEPT) == 1


def _root_of_inverse(matrix: np.ndarray) -> np.ndarray:
    """R with RRᵀ = G⁻, columns scaled to one."""
    scale = np.maximum(np.diag(matrix), np.finfo(float).tiny) ** -0.5
    if matrix.size == 0:
        return np.zeros((0, 0))
    value, vector = np.linalg.eigh(matrix * scale * scale[:, None])
    keep = value > value[-1] * _NULL
    return scale[:, None] * (vector[:, keep] / np.sqrt(value[keep]))


def _bounded(label: str, worst: float, observed: float, estimate: float) -> Concurvity:
    return Concurvity(label, *(min(1.0, max(0.0, float(share))) for share in (worst, observed, estimate)))
