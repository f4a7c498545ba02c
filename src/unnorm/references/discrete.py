"""References on finite Ω: independent bits, one flipped bit, and the smoothed frequencies of a finite set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import numpy as np

from .._base.numerics import floats
from ..domains import BinaryVectors, FiniteSet, Graphs
from ..errors import CombinationError, InputError, OutsideError
from .alias import AliasLaw, alias_table
from .base import BoundReference, Example, Given, Reference, is_number, numbers
from .tracing import ConstantDensity, Traceable

MANY = 1000  # numbered states from which draws are made on the device, by alias tables: evenly spread points of the
# inverse distribution function (fewer than states) gain nothing then, and float32 could not resolve it

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain


@final
@dataclass(frozen=True, repr=False)
class ProductBernoulli(Reference):
    """Independent bits (or edges) with P(y_j = 1) = p_j; with `around="context"` p_j depends on the previous bit.

    Args:
        p: a number, d numbers, or with `around` a pair (p where the previous bit is 0, p where it is 1), each a number
            or d numbers. None is fitted: (ones + ½)/(n + 1), shrunk away from 0 and 1 so that every vector has positive
            density.
        around: None or "context".

    >>> from unnorm.references import ProductBernoulli
    >>> ProductBernoulli(0.3).p
    0.3
    """

    lives_on: ClassVar[str] = "binary vectors and graphs"

    p: Any = None
    around: Literal["context"] | None = None

    def __post_init__(self) -> None:
        if self.around not in (None, "context"):
            raise InputError(f"around of ProductBernoulli must be None or 'context'; got {self.around!r}.")
        if self.p is None:
            return
        pairs = self.p if self.around else (self.p,)
        if self.around and (not isinstance(self.p, tuple | list) or len(self.p) != 2):
            raise InputError("With around='context' p is a pair: (p after a 0, p after a 1).")
        checked = []
        for p in pairs:
            array = floats(p, "p of ProductBernoulli")
            if array.ndim > 1 or not ((array > 0.0) & (array < 1.0)).all():
                raise InputError(
                    "p of ProductBernoulli must lie strictly between 0 and 1, else some vectors have no density; "
                    f"got {p!r}."
                )
            checked.append(float(array) if array.ndim == 0 else tuple(array.tolist()))
        object.__setattr__(self, "p", tuple(checked) if self.around else checked[0])

    @classmethod
    def takes(cls, domain: Domain) -> bool:
        return domain.free is not None

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        chain = Example(cls(around="context"), BinaryVectors(5))
        return Example(cls(), BinaryVectors(8)), chain, Example(cls(0.3), Graphs(4))

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        self.check_domain(domain)
        d = domain.dim
        if self.around is None:
            p = (
                _frequencies(obs.outcome, np.ones_like(obs.outcome), obs.weights)
                if self.p is None
                else _each(self.p, d)
            )
            return BoundBernoulli(domain, replace(self, p=tuple(p.tolist())), np.stack([p, p]))
        if obs.kind != "transitions":
            raise CombinationError(
                f"ProductBernoulli(around='context') needs the previous vector, which {obs.kind} observations do not "
                "have. Use around=None."
            )
        before = obs.previous()
        if self.p is None:
            table = np.stack([_frequencies(obs.outcome, before == bit, obs.weights) for bit in (0.0, 1.0)])
        else:
            table = np.stack([_each(p, d) for p in self.p])
        return BoundBernoulli(domain, replace(self, p=tuple(tuple(row) for row in table.tolist())), table)


def _frequencies(y: np.ndarray, among: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(ones + ½)/(n + 1) for each column, over the rows where `among`: the posterior mean under Jeffreys' prior."""
    n = weight @ among
    return (weight @ (y * among) + 0.5) / (n + 1.0)


def _each(p: Any, d: int) -> np.ndarray:
    array = np.asarray(p, dtype=np.float64)
    if array.ndim == 1 and len(array) != d:
        raise InputError(f"p of ProductBernoulli must be a number or {d} numbers on this Ω; got {len(array)}.")
    return np.broadcast_to(array, (d,)).copy()


@final
class BoundBernoulli(BoundReference):
    """Independent bits; `table[b, j]` = P(y_j = 1) after bit b."""

    def __init__(self, domain: Domain, reference: ProductBernoulli, table: np.ndarray) -> None:
        self.domain, self.reference, self.table = domain, reference, table
        self._around = reference.around is not None
        self._free = np.ones(domain.dim, dtype=bool) if domain.free is None else domain.free  # others are 0 for certain
        self._none = np.log1p(-table) * self._free
        self._odds = np.log(table) * self._free - self._none

    @property
    def given(self) -> Given:
        return "context" if self._around else "nothing"

    @property
    def cube_dim(self) -> int:
        return self.domain.dim

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        p = np.where(obs.previous()[t] == 1.0, self.table[1], self.table[0]) if self._around else self.table[0]
        return ((u >= 1.0 - p) & self._free).astype(np.float64)

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        if not self._around:
            return y @ self._odds[0] + self._none[0].sum()
        before = obs.previous()
        base = before @ (self._none[1] - self._none[0]) + self._none[0].sum()
        slope = self._odds[1] - self._odds[0]
        return y @ self._odds[0] + np.einsum("nj,nj,j->n", y, before[t], slope) + base[t]

    def describe(self) -> str:
        if self._around:
            text = f"p = {numbers(self.table[0])} after 0 and {numbers(self.table[1])} after 1"
        else:
            text = f"p = {numbers(self.table[0])}"
        return f"independent bits with {text}; constant exact"


@final
@dataclass(frozen=True, repr=False)
class BitFlip(Reference):
    """y' = y_t with one bit (or edge) flipped: q(y'|y) = 1/d = q(y|y'). For ConditionalNCE only.

    The flips of one observation are drawn without replacement, so at most d of them; `every=True` takes each bit once,
    which is maximum pseudo-likelihood and has no reference error. Bits that Ω fixes are not flipped, nor counted in d.

    Args:
        every: whether to flip each bit once, instead of some that are drawn.

    >>> from unnorm.references import BitFlip
    >>> BitFlip(every=True)
    BitFlip(every=True)
    """

    call: ClassVar[str] = "BitFlip() (conditional NCE)"
    lives_on: ClassVar[str] = "binary vectors and graphs"

    every: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.every, bool | np.bool_):
            raise InputError(f"every of BitFlip must be True or False; got {self.every!r}.")

    @classmethod
    def takes(cls, domain: Domain) -> bool:
        return domain.free is not None

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example(cls(), Graphs(3, directed=True)),)

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        self.check_domain(domain)
        return BoundBitFlip(domain, self)


@final
class BoundBitFlip(BoundReference):
    """One flipped bit."""

    def __init__(self, domain: Domain, reference: BitFlip) -> None:
        self.domain, self.reference = domain, reference
        assert domain.free is not None
        self._bits = np.flatnonzero(domain.free)

    @property
    def given(self) -> Given:
        return "outcome"

    @property
    def cube_dim(self) -> int:
        return 1

    @property
    def distinct(self) -> int:
        return len(self._bits)

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        d = len(self._bits)
        return self._flipped(obs, t, np.minimum((u[:, 0] * d).astype(np.intp), d - 1))

    def sample(self, obs: Observations, t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Different bits for the rows of one observation, each set of bits as likely as any other."""
        d = len(self._bits)
        start = np.flatnonzero(np.diff(t, prepend=-1) != 0)
        count = np.diff(start, append=len(t))
        which = np.empty(len(t), dtype=np.intp)
        length = max(1, 2**22 // d)
        for begin in range(0, len(start), length):
            here, each = start[begin : begin + length], count[begin : begin + length]
            order = np.argsort(rng.random((len(here), d)), axis=1)
            among = np.arange(each.max())
            which[here[0] : here[-1] + each[-1]] = order[:, among % d][among < each[:, None]]
        return self._flipped(obs, t, which)

    def _flipped(self, obs: Observations, t: np.ndarray, which: np.ndarray) -> np.ndarray:
        y = obs.outcome[t]
        rows = np.arange(len(y))
        y[rows, self._bits[which]] = 1.0 - y[rows, self._bits[which]]
        return y

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        flips = np.abs(y - obs.outcome[t]).sum(axis=1)
        return np.where(flips == 1.0, -np.log(len(self._bits)), -np.inf)

    def log_density_back(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        return self.log_density(y, obs, t)  # symmetric

    def traceable(self, obs: Observations) -> Traceable | None:
        if len(self._bits) < self.domain.dim:
            return None
        return Traceable(1, {"log_q": np.asarray(-np.log(self.domain.dim))}, obs.outcome, BitFlipLaw())

    def describe(self) -> str:
        if self.reference.every:
            return f"each of {len(self._bits)} bits of the observed outcome flipped once: pseudo-likelihood"
        return f"one of {len(self._bits)} bits of the observed outcome flipped; symmetric"


@final
@dataclass(frozen=True)
class BitFlipLaw(ConstantDensity):
    """The row's own vector with one bit flipped, in JAX; as probable as the step back."""

    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        import jax.numpy as jnp

        d = rows.shape[-1]
        flipped = jnp.arange(d) == jnp.minimum((u * d).astype(jnp.int32), d - 1)
        return jnp.where(flipped, 1.0 - rows[:, None], rows[:, None])


@final
@dataclass(frozen=True, repr=False)
class Marginal(Reference):
    """The outcomes' own frequencies on a finite Ω, with one added to every count so that no state is left out.

    Args:
        add: to every count.
        probabilities: of the states in the domain's order; counted where None.

    >>> from unnorm.references import Marginal
    >>> Marginal().add
    1.0
    """

    lives_on: ClassVar[str] = "finite spaces that are small enough to enumerate"

    add: float = 1.0
    probabilities: tuple[float, ...] | None = None  # of the states in the domain's order; counted where None

    def __post_init__(self) -> None:
        if not is_number(self.add, 0.0, strict=True):
            raise InputError(
                f"add must be a positive number, so that every state has some probability; got {self.add!r}."
            )
        if self.probabilities is not None:
            p = floats(self.probabilities, "probabilities of Marginal")
            if p.ndim != 1 or not (p > 0.0).all() or abs(p.sum() - 1.0) > 1e-8:
                raise InputError("probabilities of Marginal must be positive and sum to 1, one per state.")
            object.__setattr__(self, "probabilities", tuple(p.tolist()))

    @classmethod
    def takes(cls, domain: Domain) -> bool:
        return domain.rule == "enumeration"

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return Example(cls(), FiniteSet.examples()[1]), Example(cls(add=0.5), BinaryVectors(4))

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        self.check_domain(domain)
        rule = domain.quadrature()
        states = _States(rule.points)
        if self.probabilities is None:
            counts = np.bincount(states.index(obs.outcome), weights=obs.weights, minlength=len(rule.points))
            p = (counts + self.add) / (counts + self.add).sum()
        else:
            p = np.asarray(self.probabilities)
            if len(p) != len(rule.points):
                raise InputError(f"probabilities of Marginal must be one per state ({len(rule.points)}); got {len(p)}.")
        filled = replace(self, probabilities=tuple(p.tolist()))
        return BoundMarginal(domain, filled, rule.points, states, p, np.log(p) - np.log(rule.weights))


class _States:
    """Rows of a table → their position, by binary search among the rows as byte strings."""

    def __init__(self, points: np.ndarray) -> None:
        keys = _keys(points)
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]

    def index(self, y: np.ndarray) -> np.ndarray:
        keys = _keys(y)
        place = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        wrong = np.flatnonzero(self._sorted[place] != keys)
        if wrong.size:
            raise OutsideError(
                f"{wrong.size} outcomes are not states of Ω; the first is {y[wrong[0]].tolist()}. Drop them, or add "
                "them to Ω."
            )
        return self._order[place]


def _keys(y: np.ndarray) -> np.ndarray:
    y = np.ascontiguousarray(y + 0.0)  # −0 is 0
    return y.view(np.dtype((np.void, y.dtype.itemsize * y.shape[1])))[:, 0]


@final
class BoundMarginal(BoundReference):
    """Listed states with listed probabilities."""

    def __init__(
        self,
        domain: Domain,
        reference: Marginal,
        points: np.ndarray,
        states: _States,
        p: np.ndarray,
        log_density: np.ndarray,
    ) -> None:
        self.domain, self.reference = domain, reference
        self._points, self._states, self._p, self._log = points, states, p, log_density
        self._edges = np.cumsum(p)[:-1]

    @property
    def cube_dim(self) -> int:
        return 1

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        return self._points[np.searchsorted(self._edges, u[:, 0], side="right")]

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        return self._log[self._states.index(y)]

    def traceable(self, obs: Observations) -> Traceable | None:
        numbered = self._points.shape[1] == 1 and np.array_equal(self._points[:, 0], np.arange(len(self._p)))
        if len(self._p) < MANY or not numbered:
            return None
        cut, alias = alias_table(self._p)
        params = {"cut": cut, "alias": alias.astype(np.int32), "points": self._points, "log_q": self._log}
        return Traceable(2, params, (), AliasLaw())

    def describe(self) -> str:
        return f"frequencies of the {len(self._p)} states, smoothed: {numbers(self._p)}; constant exact"
