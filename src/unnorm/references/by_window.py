"""References where each context has a window of its own (`un.Windows`): one law, cut off by each window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, final

import numpy as np

from ..data.placing import window_codes
from ..domains.base import Domain
from .base import BoundReference, Given, Reference

if TYPE_CHECKING:
    from ..data.observations import Observations


def bound(reference: Reference, domain: Domain, obs: Observations) -> BoundReference:
    """`reference.bind`; where contexts have windows of their own, bound to each.

    Parameters left open are fitted once, to all observations in the box around all windows.
    """
    if domain.key is None:
        return reference.bind(domain, obs)
    box = domain.hull
    overall = reference.bind(box, obs)
    law = overall.reference
    return WindowsReference(domain, law, tuple(law.bind(window, obs) for window in domain.windows))


@final
class WindowsReference(BoundReference):
    """q(y|x) = q_w(y|x) with w the window of x."""

    def __init__(self, domain: Domain, reference: Reference, own: tuple[BoundReference, ...]) -> None:
        super().__init__(domain, reference)
        self.own = own

    @property
    def given(self) -> Given:
        return self.own[0].given

    @property
    def cube_dim(self) -> int | None:
        return self.own[0].cube_dim

    @property
    def distinct(self) -> int | None:
        return self.own[0].distinct

    @property
    def periodic(self) -> bool:
        return self.own[0].periodic

    def _parts(self, obs: Observations, t: np.ndarray) -> Iterator[tuple[BoundReference, np.ndarray | slice, tuple]]:
        """For each window its law, its rows, and their observations: those of the window, and which each row has."""
        code = window_codes(self.domain, obs)
        if len(self.own) == 1:
            yield self.own[0], slice(None), (obs, t)
            return
        small = code.astype(np.int16) if len(self.own) < 2**15 else code  # 16 bits are sorted by digits
        row_code, place = small[t], np.empty(obs.n, dtype=np.intp)
        order = np.argsort(row_code, kind="stable")
        ends = np.searchsorted(row_code[order], np.arange(len(self.own) + 1))
        by_code = np.argsort(small, kind="stable")
        at = np.searchsorted(small[by_code], np.arange(len(self.own) + 1))
        for w, (begin, end) in enumerate(pairwise(ends)):
            if end > begin:
                rows, here = order[begin:end], by_code[at[w] : at[w + 1]]
                place[here] = np.arange(len(here))
                yield self.own[w], rows, (obs.take(here), place[t[rows]])

    def _each(self, shape: tuple[int, ...], obs: Observations, t: np.ndarray, value: Callable[..., np.ndarray]):
        out = np.empty(shape)
        for own, rows, given in self._parts(obs, t):
            out[rows] = value(own, rows, *given)
        return out

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        return self._each((len(t), self.domain.dim), obs, t, lambda q, rows, *given: q.from_unit(u[rows], *given))

    def sample(self, obs: Observations, t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self._each((len(t), self.domain.dim), obs, t, lambda q, rows, *given: q.sample(*given, rng))

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        return self._each((len(t),), obs, t, lambda q, rows, *given: q.log_density(y[rows], *given))

    def describe(self) -> str:
        first = self.own[0].describe()
        return first if len(self.own) == 1 else f"{first}, and likewise on {len(self.own) - 1:,} other windows"
