"""Bits along a tree: each depends on one other, chosen so that the law is as close to the data as a tree can be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from ..domains import BinaryVectors
from ..errors import InputError
from .base import BoundReference, Example, Reference, is_number

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain


@final
@dataclass(frozen=True, repr=False)
class BernoulliTree(Reference):
    """q(y) = Π_i q(y_i | y_parent(i)) on the tree of largest mutual information (Chow & Liu 1968).

    Nearer to coupled bits than `ProductBernoulli`, with an exact constant still. `add` is added to each of the four
    counts of a pair, so that every vector has positive density. Parents and tables are counted where left out.

    Args:
        add: to each of the four counts of a pair.
        order: the bits, each after its parent; counted where None.
        parents: of each bit, −1 for the root; counted where None.
        p: two rows, P(y_i = 1) where the parent is 0 and where it is 1; counted where None.

    >>> from unnorm.references import BernoulliTree
    >>> BernoulliTree().add
    0.5
    """

    lives_on: ClassVar[str] = "binary vectors and graphs"

    add: float = 0.5
    order: tuple[int, ...] | None = None  # the bits, each after its parent
    parents: tuple[int, ...] | None = None  # of each bit; −1 for the root
    p: Any = None  # P(y_i = 1) after 0 and after 1 of the parent, two rows

    def __post_init__(self) -> None:
        if not is_number(self.add, 0.0, strict=True):
            raise InputError(f"add of BernoulliTree must be a positive number; got {self.add!r}.")

    @classmethod
    def takes(cls, domain: Domain) -> bool:
        return domain.free is not None

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return Example(cls(), BinaryVectors(6)), Example(cls(add=2.0), BinaryVectors(1))

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        self.check_domain(domain)
        if self.order is not None and self.parents is not None and self.p is not None:
            return BoundTree(domain, self)
        both, n = _pair_counts(obs.outcome, obs.weights), float(obs.weights.sum())
        order, parents = _tree(_information(both, n, self.add))
        table = np.empty((2, domain.dim))
        for i in order:
            j = parents[i]
            ones = both[i, i]
            if j < 0:
                table[:, i] = (ones + self.add) / (n + 2 * self.add)
            else:
                table[1, i] = (both[i, j] + self.add) / (both[j, j] + 2 * self.add)
                table[0, i] = (ones - both[i, j] + self.add) / (n - both[j, j] + 2 * self.add)
        p = tuple(tuple(row) for row in table.tolist())
        return BoundTree(domain, replace(self, order=tuple(order), parents=tuple(parents), p=p))


def _pair_counts(y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(d, d) Σ w y_i y_j."""
    out, length = np.zeros((y.shape[1], y.shape[1])), max(1, 2**22 // y.shape[1])
    for begin in range(0, len(y), length):
        part = y[begin : begin + length].astype(np.float64)
        out += part.T @ (part * weight[begin : begin + length, None])
    return out


def _information(both: np.ndarray, n: float, add: float) -> np.ndarray:
    """(d, d) mutual information of every pair, from smoothed counts."""
    one = np.diag(both)
    counts = np.stack([both, one[:, None] - both, one - both, n - one[:, None] - one + both]) + add  # 11, 10, 01, 00
    p = counts / counts.sum(axis=0)
    i, j = p[0] + p[1], p[0] + p[2]
    apart = np.stack([i * j, i * (1 - j), (1 - i) * j, (1 - i) * (1 - j)])
    return np.sum(p * np.log(p / apart), axis=0)


def _tree(information: np.ndarray) -> tuple[list[int], list[int]]:
    """Bits in the order of Prim's algorithm from bit 0, and the parent of each."""
    d = len(information)
    order, parents = [0], [-1] * d
    best, link = information[0].copy(), np.zeros(d, dtype=int)
    waiting = np.ones(d, dtype=bool)
    waiting[0] = False
    while waiting.any():
        i = int(np.flatnonzero(waiting)[np.argmax(best[waiting])])
        parents[i] = int(link[i])
        order.append(i)
        waiting[i] = False
        nearer = waiting & (information[i] > best)
        best[nearer], link[nearer] = information[i][nearer], i
    return order, parents


@final
class BoundTree(BoundReference):
    """Bits along a known tree."""

    def __init__(self, domain: Domain, reference: BernoulliTree) -> None:
        super().__init__(domain, reference)
        order, parents, table = np.asarray(reference.order), np.asarray(reference.parents), np.asarray(reference.p)
        d = domain.dim
        if sorted(order.tolist()) != list(range(d)) or parents.shape != (d,) or table.shape != (2, d):
            raise InputError(f"order, parents and p of BernoulliTree must be those of {d} bits.")
        self._order, self._parents, self._table = order, parents, table
        self._free = np.ones(d, dtype=bool) if domain.free is None else domain.free  # others are 0 for certain

    @property
    def cube_dim(self) -> int:
        return self.domain.dim

    def _after(self, y: np.ndarray, i: int) -> np.ndarray:
        """(N,) P(y_i = 1) given the parent."""
        j = self._parents[i]
        return self._table[(0 if j < 0 else y[:, j].astype(np.intp)), i]

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        y = np.zeros((len(u), self.domain.dim))
        for i in self._order:
            y[:, i] = (u[:, i] >= 1.0 - self._after(y, i)) & self._free[i]
        return y

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        """Linear in y and in products with the parent: one product and no loop over bits."""
        none = np.log1p(-self._table) * self._free
        odds = np.log(self._table) * self._free - none
        root = self._parents < 0
        before = np.where(root, 0.0, y[:, np.maximum(self._parents, 0)])
        out = y @ odds[0] + none[0].sum()
        out += np.einsum("ni,ni,i->n", before, y, odds[1] - odds[0])
        return out + before @ (none[1] - none[0])

    def describe(self) -> str:
        return f"a tree of {self.domain.dim} bits, each given one other (Chow & Liu); constant exact"
