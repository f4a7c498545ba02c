"""Draws from p(y|x) ∝ k(y|x) exp g(y|x) by candidates of k: each draw is picked among many by its weight exp g.

The law of such a draw differs from p by about 1/N_eff in total variation, N_eff = (Σw)²/Σw² the effective number of
candidates (Rubin 1987; amt's redistribution kernels are the same). Contexts whose N_eff is too small get more, up to a
limit: the work is bounded whatever f is, and no draw leaves Ω, to which k is confined.
"""

from __future__ import annotations

from typing import final

import numpy as np

from ..data.observations import Observations
from ..errors import warn
from ..references.base import BoundReference
from .density import ROWS_AT_ONCE, Density

FIRST, TIMES, MOST = 512, 8, 2**15  # candidates of a context: at first, how many times more, at most
ENOUGH = 200  # effective candidates: an error of half a percent in total variation, at the worst
DOUBTFUL = 20  # below this the draws are said to be approximate


@final
class KernelDrawer:
    """One draw for each context, from candidates of k."""

    method = "candidates"

    def __init__(
        self,
        density: Density,
        law: BoundReference,
        rng: np.random.Generator,
        first: int = FIRST,
        enough: float = ENOUGH,
    ) -> None:
        self._density, self._law, self._rng = density, law, rng
        self._first, self._enough = first, enough
        self.effective = np.inf  # of the worst context
        self.error = 0.0

    def __call__(self, contexts: Observations) -> np.ndarray:
        """(n, d) one draw for each of the n observations' contexts (their outcomes are not read)."""
        out, waiting, count = np.empty((contexts.n, contexts.dim)), np.arange(contexts.n), self._first
        while waiting.size:
            effective = np.empty(len(waiting))
            for begin in range(0, len(waiting), max(1, ROWS_AT_ONCE // count)):
                here = slice(begin, begin + max(1, ROWS_AT_ONCE // count))
                out[waiting[here]], effective[here] = self._pick(contexts, waiting[here], count)
            again = effective < self._enough
            if count >= MOST:
                self._say(float(effective.min()))
                again[:] = False
            else:
                self.effective = min(self.effective, float(effective[~again].min(initial=np.inf)))
            waiting, count = waiting[again], min(TIMES * count, MOST)
        self.error = 1.0 / self.effective
        return out

    def _pick(self, contexts: Observations, rows: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        at = np.repeat(rows, count)
        y = self._law.sample(contexts, at, self._rng)
        own = self._density.law(contexts)
        g = self._density.f(contexts, y, at)
        if own is not self._law:
            g = self._density.log_f(contexts, y, at) - self._law.log_density(y, contexts, at)
        g = g.reshape(len(rows), count)
        w = np.exp(g - g.max(axis=1, keepdims=True))
        total = w.sum(axis=1)
        edges = np.cumsum(w, axis=1)
        pick = np.sum(edges < (self._rng.random(len(rows)) * total)[:, None], axis=1)
        pick = np.minimum(pick, count - 1)
        return y.reshape(len(rows), count, -1)[np.arange(len(rows)), pick], total**2 / (w**2).sum(axis=1)

    def _say(self, effective: float) -> None:
        if effective < DOUBTFUL <= self.effective:
            warn(
                f"Simulated steps are approximate: of {MOST:,} candidates of {self._law.describe()} only "
                f"{effective:.0f} are effective at the worst. "
                "The kernel is far from the fitted steps: use one that is closer.",
                stacklevel=6,
            )
        self.effective = min(self.effective, effective)
