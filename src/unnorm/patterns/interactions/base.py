"""What an interaction is: the statistics t(u, x) of a place u given the pattern x less u itself.

A Gibbs process has the conditional intensity λ(u | x) = exp{z(u)ᵀβ + t(u, x∖u)ᵀφ}: its statistics are covariates of the
logistic rows like any other, but that they see the pattern. An interaction states its reach R, beyond which points
do not matter, and what t(u, x∖u) and t(x_i, x∖{x_i, x_j}) are; errors, border corrections and simulation follow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, final

import numpy as np

from ..._base.registry import Registry
from ..._base.words import either
from ...domains.base import Domain
from ...errors import DataError, InputError
from ..places import Pairs, Places, close_pairs

if TYPE_CHECKING:
    from ..point_pattern import Pattern

Correction = Literal["border", "none", "periodic", "isotropic", "translate"]
WEIGHTED = ("isotropic", "translate")  # corrections that weight pairs


@final
@dataclass(frozen=True, eq=False)
class Neighbours:
    """Rows u with the points x of the pattern that are near them; own[a] is the point that row a is, −1 for none."""

    u: Places
    x: Places
    own: np.ndarray  # (N,)
    reach: float
    period: np.ndarray | None = None  # side lengths, where the window's sides are joined
    correction: Correction = "none"
    windows: tuple[Domain, ...] = ()  # one for each replicate, where pairs have weights

    @cached_property
    def weights(self) -> np.ndarray | None:
        """(P,) what each pair counts seen from its row, for those that the border hides; None: each counts once."""
        return self._weights(self.u.xy[self.pairs.a])

    @cached_property
    def weights_back(self) -> np.ndarray | None:
        """(P,) what each pair counts seen from its point."""
        return self._weights(self.x.xy[self.pairs.b])

    def _weights(self, seen_from: np.ndarray) -> np.ndarray | None:
        if self.correction not in WEIGHTED:
            return None
        from ..edge_weights import weights  # compiled: not before it is needed

        step = self.x.xy[self.pairs.b] - self.u.xy[self.pairs.a]
        return weights(self.correction, seen_from, step, self.pairs.d, self.u.replicate[self.pairs.a], self.windows)

    @cached_property
    def pairs(self) -> Pairs:
        """Rows and points within reach of each other, a row and itself excepted."""
        return close_pairs(self.u, self.x, self.reach, self.period).less(self.own)

    @cached_property
    def among(self) -> Neighbours:
        """The points themselves as rows."""
        own = np.arange(self.x.n)
        return Neighbours(self.x, self.x, own, self.reach, self.period, self.correction, self.windows)

    def summed(self, values: np.ndarray, pairs: Pairs | None = None) -> np.ndarray:
        """(N,) Σ_b values over each row's pairs."""
        return np.bincount((self.pairs if pairs is None else pairs).a, values, self.u.n)


class Interaction(ABC):
    """t(u, x∖u), of one or more statistics. What it is, it declares here."""

    r: float
    weighs: bool = False  # whether pairs can have weights, correction="isotropic" or "translate"
    multiplies: bool = False  # whether exp φ is one number γ, by which each close pair multiplies the density

    @property
    def reach(self) -> float:
        """R: λ(u | x) does not depend on points farther from u than this."""
        return self.r

    @property
    def core(self) -> float:
        """No two points of the process are this close, or closer; 0 where there is no such distance."""
        return 0.0

    def stable(self, phi: np.ndarray) -> bool:
        """False where exp φᵀt is not bounded by c^n, so that there is no such process."""
        return True

    @abstractmethod
    def names(self, pattern: Pattern) -> tuple[str, ...]:
        """One for each statistic."""

    @abstractmethod
    def statistics(self, near: Neighbours) -> np.ndarray:
        """(N, k) t(u, x∖u) for each row."""

    @abstractmethod
    def without(self, near: Neighbours) -> np.ndarray:
        """(P, k) t(x_i, x∖{x_i, x_j}) for each pair (i, j) of `near.pairs`, whose rows are the points themselves."""

    @abstractmethod
    def energy(self, pattern: Pattern, phi: np.ndarray) -> Energy:
        """φᵀt for a simulation."""

    def check(self, pattern: Pattern) -> None:
        """Refuse what is known to fail on these data."""
        width = min(
            float((high - low).min()) for low, high in (w.enclosing_box for w in pattern.windows if w.enclosing_box)
        )
        if self.reach >= width:
            raise InputError(
                f"{self!r} reaches {self.reach:.6g}, and the window is only {width:.6g} wide: no place is free of the "
                "border's influence. Take a smaller r."
            )

    def to_dict(self) -> dict[str, Any]:
        return {"interaction": type(self).__name__, **{f.name: getattr(self, f.name) for f in fields(self)}}  # pyright: ignore[reportArgumentType]

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        """The interaction that `to_dict` described."""
        return cls(**{name: value for name, value in description.items() if name != "interaction"})

    @classmethod
    def examples(cls) -> tuple[Interaction, ...]:
        """Small instances for the generic tests, for points in the unit square with marks "a" and "b"."""
        return ()


REGISTRY: Registry[Interaction] = Registry("interaction", Interaction)  # filled by registry.py


PAIRWISE, GEYER, AREA = 0, 1, 2


@final
@dataclass(frozen=True, eq=False)
class Energy:
    """φᵀt(u, x∖u) in the form that compiled simulation reads.

    PAIRWISE: Σ_v of a step function of the squared distance, `steps[mark u, mark v, k]` between breaks k − 1 and k.
    GEYER: φ, r² and s; AREA: φ and r, in `numbers`, of which there are three.
    """

    kind: int
    reach: float  # of the points that t reads
    breaks: np.ndarray  # (B,) increasing squared distances; nothing beyond the last
    steps: np.ndarray  # (types, types, B)
    numbers: np.ndarray

    @property
    def near2(self) -> float:
        """The squared distance within which points count themselves."""
        return float(self.numbers[1] if self.kind == GEYER else self.reach**2)

    def scratch(self, room: int) -> tuple[np.ndarray | None, tuple[np.ndarray, ...] | None]:
        """What the kind writes in: neighbours' neighbours, and arcs of as many discs; None for what it does not."""
        more = np.empty(room, np.int64) if self.kind == GEYER else None
        wide = (room + 1, room + 1, 3 * room + 3, 3 * room + 3)
        return more, tuple(np.empty(size) for size in wide) if self.kind == AREA else None


def positive(value: Any, name: str, what: str) -> float:
    """A positive finite number, or a sentence."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 < value < np.inf:
        raise InputError(f"{name} of {what} must be a positive number; got {value!r}.")
    return float(value)


def first_duplicate(pattern: Pattern) -> str:
    """Which points are where another is, and what to do."""
    from scipy.spatial import KDTree

    for code in range(pattern.replicates):
        here = np.flatnonzero(pattern.places.replicate == code)
        pairs = KDTree(pattern.xy[here]).query_pairs(0.0, output_type="ndarray") if len(here) else np.zeros((0, 2), int)
        if len(pairs):
            x, y = pattern.xy[here[pairs[0, 0]]]
            remedy = either("Drop one, pattern.take(~pattern.duplicated())", "Remove one of them from the file")
            return (
                f"two points lie at ({x:.6g}, {y:.6g}). {remedy}, or add to the coordinates the noise that rounding "
                "took off."
            )
    return ""


def refuse_duplicates(interaction: Interaction, pattern: Pattern) -> None:
    """Refuse points in the same place, where the process has none."""
    said = first_duplicate(pattern)
    if said:
        raise DataError(f"{interaction!r} forbids points in the same place, and {said}")
