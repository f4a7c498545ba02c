"""FiniteSet and BinaryVectors: enumerated outcomes under a counting or weighted measure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, final

import numpy as np

from .._base.numerics import floats, read_only, whole
from ..errors import InputError
from ._rules import MOST_STATES
from .base import Domain, Quadrature, outcomes, unit_points


@final
class FiniteSet(Domain):
    """K listed outcomes, each with base measure 1, or with the weights given.

    Densities are with respect to the weights w, so p(y) ∝ w(y) exp f(y). Membership is exact equality.
    `quadrature()` is the list itself, so sums are exact; an order has nothing to set and is not used.

    Args:
        values: a flat list of numbers (outcomes are then scalars), or an array of shape (K, d).
        weights: of the values, positive; default 1 each.

    >>> dice = FiniteSet([1, 2, 3, 4, 5, 6])
    >>> dice.volume, dice.contains(np.array([3.0, 3.5])).tolist()
    (6.0, [True, False])
    """

    finite = True

    def __init__(self, values: Any, weights: Any = None) -> None:
        array = floats(values, "The values of a FiniteSet")
        if array.ndim not in (1, 2) or array.size == 0:
            raise InputError(
                "The values of a FiniteSet must be a non-empty list of numbers or an array of shape (K, d); "
                f"got shape {array.shape}."
            )
        self.scalar = array.ndim == 1
        array = np.array(array[:, None] if self.scalar else array) + 0.0  # a copy, and −0.0 becomes 0.0
        if not np.isfinite(array).all():
            row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
            raise InputError(f"The values of a FiniteSet must be finite; value {row} is {array[row].tolist()}.")
        distinct, first, counts = np.unique(array, axis=0, return_index=True, return_counts=True)
        if len(distinct) < len(array):
            twice = array[first[counts > 1].min()].tolist()
            raise InputError(
                f"The values of a FiniteSet must be distinct; {twice} occurs more than once. "
                "Give a value that counts k times the weight k."
            )
        w = np.ones(len(array)) if weights is None else floats(weights, "The weights of a FiniteSet").copy()
        if w.shape != (len(array),):
            raise InputError(f"A FiniteSet needs one weight per value, shape ({len(array)},); got shape {w.shape}.")
        if not (np.isfinite(w).all() and (w > 0).all()):
            row = int(np.flatnonzero(~(np.isfinite(w) & (w > 0)))[0])
            raise InputError(
                f"The weights of a FiniteSet must be finite and positive; weight {row} is {w[row]}. "
                "Leave out values of weight zero."
            )
        self._values, self._weights, self._weighted = read_only(array), read_only(w), weights is not None
        self.dim = array.shape[1]

    @property
    def values(self) -> np.ndarray:
        """The outcomes, shape (K, d)."""
        return self._values

    @property
    def weights(self) -> np.ndarray:
        """Their base measure, shape (K,)."""
        return self._weights

    @property
    def cube_dim(self) -> int:
        return 1

    @property
    def volume(self) -> float:
        """Σ w: the number of values when no weights were given."""
        return float(self._weights.sum())

    def index(self, y: np.ndarray) -> np.ndarray:
        """(n, d) outcomes → (n,) positions in `values`, −1 for those that are not members."""
        y = outcomes(y, self)
        both = np.concatenate([self._values, y + 0.0])
        _, first, name = np.unique(both, axis=0, return_index=True, return_inverse=True)
        first = first[name.reshape(-1)[len(self._values) :]]  # the first row equal to each outcome
        return np.where(first < len(self._values), first, -1)

    def contains(self, y: np.ndarray) -> np.ndarray:
        """Whether each outcome equals one of the values."""
        return self.index(y) >= 0

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """The inverse of the distribution function of the weights, in the order of `values`."""
        u = unit_points(u, self)[:, 0]
        edges = np.cumsum(self._weights)
        return self._values[np.searchsorted(edges[:-1] / edges[-1], u, side="right")]

    def quadrature(self, order: int | None = None) -> Quadrature:
        """The values and their weights: exact."""
        return Quadrature(self._values, self._weights, exact=True, rule=f"enumeration of {len(self._values):,} values")

    def to_dict(self) -> dict[str, Any]:
        values = self._values[:, 0] if self.scalar else self._values
        weights = self._weights.tolist() if self._weighted else None
        return {"domain": "FiniteSet", "values": values.tolist(), "weights": weights}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        return cls(description["values"], description["weights"])

    @classmethod
    def examples(cls) -> tuple[FiniteSet, ...]:
        return cls(range(1, 7)), cls([[0, 1], [2, 3.5], [-1, 0]], weights=[1, 2.5, 0.5])

    def __repr__(self) -> str:
        k, d = self._values.shape
        weighted = ", weighted" if self._weighted else ""
        if d > 4:
            return f"FiniteSet({k:,} values of dimension {d}{weighted})"
        shown = (self._values[:, 0] if self.scalar else self._values)[:6].tolist()
        text = ", ".join(f"{v:g}" if self.scalar else str(tuple(v)) for v in shown) + (", …" if k > 6 else "")
        return f"FiniteSet([{text}]{weighted}){f' ({k:,} values)' if k > 6 else ''}"


class Bits(Domain):
    """{0, 1}^d with counting measure, whatever the d indicators stand for."""

    finite = True
    instead_of_sums: ClassVar[str] = (
        "un.ConditionalNCE(un.BitFlip(every=True)), the pseudo-likelihood, or reference points, un.Logistic(…),"
    )

    @property
    def bits(self) -> int:
        return self.dim

    @property
    def free(self) -> np.ndarray:
        return np.ones(self.dim, dtype=bool)

    @property
    def volume(self) -> float:
        """2^d (infinity where that overflows; `log_volume` does not)."""
        return 2.0**self.dim if self.dim < 1024 else np.inf

    @property
    def log_volume(self) -> float:
        """d log 2."""
        return self.dim * float(np.log(2.0))

    @property
    def rule(self) -> Literal["enumeration"] | None:
        return "enumeration" if self.dim < 64 and 2**self.dim <= MOST_STATES else None

    def contains(self, y: np.ndarray) -> np.ndarray:
        """Whether every entry is 0 or 1."""
        y = y if isinstance(y, np.ndarray) and y.dtype == np.int8 and y.ndim == 2 else outcomes(y, self)
        return ((y == 0.0) | (y == 1.0)).all(axis=1)

    def outside_words(self, y: np.ndarray, names: tuple[str, ...]) -> tuple[str, str]:
        j = int(np.argmin((y == 0) | (y == 1)))
        spins = "; recode spins by (s + 1)/2" if y[j] == -1 else ""
        return f"{names[j]} = {y[j]:g}", f"Entries must be 0 or 1{spins}. Correct the data"

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """One coordinate per indicator: 1 where u ≥ ½."""
        return (unit_points(u, self) >= 0.5).astype(np.float64)

    def quadrature(self, order: int | None = None) -> Quadrature:
        """All 2^d states, the first indicator changing slowest: exact. At most 2²⁰ states; an order is not used."""
        d = self.dim
        if self.rule is None:
            count = f"2**{d} = {2**d:,}" if d <= 64 else f"2**{d} (about 1e{int(d * np.log10(2.0))})"
            raise InputError(
                f"{self!r} has {count} states, more than the {MOST_STATES:,} that are enumerated. Use "
                f"{self.instead_of_sums} in place of an exact objective."
            )
        states = np.arange(2**d)[:, None] >> np.arange(d)[::-1] & 1
        return Quadrature(states.astype(np.float64), np.ones(2**d), exact=True, rule=f"enumeration of {2**d:,} states")


@final
class BinaryVectors(Bits):
    """{0, 1}^d with counting measure: spins, spike words, presences; outcomes have shape (d,).

    `quadrature()` enumerates all 2^d states, and refuses above 2²⁰ of them.

    Args:
        d: the number of bits.

    >>> BinaryVectors(2).quadrature().points.tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """

    def __init__(self, d: int) -> None:
        self.dim = whole(d, "The length d of BinaryVectors", least=1)

    def to_dict(self) -> dict[str, Any]:
        return {"domain": "BinaryVectors", "d": self.dim}

    @classmethod
    def examples(cls) -> tuple[BinaryVectors, ...]:
        return cls(8), cls(1)

    def __repr__(self) -> str:
        return f"BinaryVectors({self.dim})"
