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
    return WindowsReference(domain, overall.reference, obs)


@final
class WindowsReference(BoundReference):
    """q(y|x) = q_w(y|x) with w the window of x, each bound to the contexts that have it: those of other windows may lie
    outside it, and say nothing of how exact its constants must be."""

    def __init__(self, domain: Domain, reference: Reference, obs: Observations) -> None:
        super().__init__(domain, reference)
        code = window_codes(domain, obs)
        order = np.argsort(code, kind="stable")
        ends = np.searchsorted(code[order], np.arange(len(domain.windows) + 1))
        self._own: dict[int, BoundReference] = {}
        for w, (begin, end) in enumerate(pairwise(ends)):
            if end > begin:
                self._own[w] = reference.bind(domain.windows[w], obs.take(order[begin:end]))
        self.first = next(iter(self._own.values())) if self._own else reference.bind(domain.windows[0], obs)

    def own(self, w: int, obs: Observations) -> BoundReference:
        """The law on window w; bound to these observations of it, where there were none before."""
        if w not in self._own:
            self._own[w] = self.reference.bind(self.domain.windows[w], obs)
        return self._own[w]

    @property
    def given(self) -> Given:
        return self.first.given

    @property
    def cube_dim(self) -> int | None:
        return self.first.cube_dim

    @property
    def distinct(self) -> int | None:
        return self.first.distinct

    @property
    def periodic(self) -> bool:
        return self.first.periodic

    def _parts(self, obs: Observations, t: np.ndarray) -> Iterator[tuple[BoundReference, np.ndarray | slice, tuple]]:
        """For each window its law, its rows, and their observations: those of the window, and which each row has."""
        code, count = window_codes(self.domain, obs), len(self.domain.windows)
        if count == 1:
            yield self.own(0, obs), slice(None), (obs, t)
            return
        small = code.astype(np.int16) if count < 2**15 else code  # 16 bits are sorted by digits
        row_code, place = small[t], np.empty(obs.n, dtype=np.intp)
        order = np.argsort(row_code, kind="stable")
        ends = np.searchsorted(row_code[order], np.arange(count + 1))
        by_code = np.argsort(small, kind="stable")
        at = np.searchsorted(small[by_code], np.arange(count + 1))
        for w, (begin, end) in enumerate(pairwise(ends)):
            if end > begin:
                rows, here = order[begin:end], by_code[at[w] : at[w + 1]]
                place[here] = np.arange(len(here))
                some = obs.take(here)
                yield self.own(w, some), rows, (some, place[t[rows]])

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
        first, others = self.first.describe(), len(self.domain.windows) - 1
        return f"{first}, and likewise on {others:,} other windows" if others else first
