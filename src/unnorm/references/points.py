"""How reference points are drawn: IID, stratified, along a lattice, or a scrambled Sobol net.

For chains and regressions k points are drawn for each context; for IID data, m points in all. The low-discrepancy
schemes put the contexts in order (`ordering`) and give them consecutive points of one sequence, so that the points are
evenly spread over contexts and outcomes together: Σ_t Σ_j g(r_tj, x_t) then has a far smaller variance than with IID
points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from .._base.lattices import kronecker
from .._base.numerics import Rng, generator, whole
from .._base.registry import Registry
from ..errors import CombinationError, InputError
from .base import BoundReference, own_fields
from .ordering import context_order
from .tracing import FreshPoints, JaxPoints

if TYPE_CHECKING:
    from ..data.observations import Observations

MOST_NET, MOST_SOBOL = 2**27, 21_201  # numbers of a default Sobol net; its coordinates at most
_LEAST = 2.0**-53  # unit points are kept this far from 0 and 1, where quantiles are infinite


@dataclass(frozen=True)
class Points:
    """Reference points, those of one context together and in the order of the observations."""

    outcome: np.ndarray  # (M, d)
    t: np.ndarray  # (M,) the observation whose context each uses; −1 for IID data
    randomisation: np.ndarray  # (M,) 1 … R: points of different numbers are independent

    def __repr__(self) -> str:
        m, d = self.outcome.shape
        return f"Points({m:,} points of dimension {d}; independent sets: {int(self.randomisation.max(initial=0))})"


class PointScheme(ABC):
    """How the points of a reference are drawn. Final subclasses are frozen dataclasses."""

    @property
    @abstractmethod
    def sets(self) -> int:
        """R: the number of independent sets that the points of each context are split into."""

    @property
    def iid(self) -> bool:
        """Whether all points are independent."""
        return False

    @property
    def even_pairs(self) -> bool:
        """Whether every pair of coordinates is spread evenly over the square: what couplings of bits need."""
        return True

    @abstractmethod
    def unit(self, rank: np.ndarray | None, k: int, d: int, periodic: bool, rng: np.random.Generator) -> np.ndarray:
        """One set of points in the unit cube, (n, k, d), for contexts of this rank; (1, k, d) for None, IID data."""

    def lattice_shift(self, d: int, rng: np.random.Generator) -> np.ndarray | None:
        """(d,) where `unit` gives context t (in order) the points frac(shift + (t k + j) α), j = 0 … k − 1, with the
        shift drawn as it draws it: such points can be made on a device. None elsewhere."""
        return None

    def draw(
        self,
        reference: BoundReference,
        obs: Observations,
        *,
        per_point: int | None = None,
        total: int | None = None,
        rng: Rng = None,
    ) -> Points:
        """Points of `reference`: `per_point` for each observation, or `total` in all for IID data."""
        k = points_wanted(reference, obs, per_point, total)
        each = total is None
        if not self.even_pairs and reference.domain.free is not None and (reference.cube_dim or 0) > 1:
            raise CombinationError(
                f"{type(self).__name__} points do not suit bits: some pairs of coordinates fill the square unevenly "
                "(of 14 bits that are 1 one time in ten, the worst pair coincided 2.4 times as often as it should). "
                "Use points=un.Sobol() or un.IID()."
            )
        sizes = self._sizes(k)
        rng = generator(rng)
        n = obs.n if each else 1
        t = np.repeat(np.arange(n), k)  # IID data: any observation will do, there is no context to look up
        randomisation = np.repeat(np.arange(1, len(sizes) + 1, dtype=np.int16), sizes)
        outcome = self._outcomes(reference, obs, t, sizes, rng)
        return Points(outcome, t if each else np.full(k, -1), np.tile(randomisation, n))

    def fresh(self, b: int, k: int, d: int, periodic: bool, dtype: Any) -> FreshPoints:
        """(b, k, d) points made anew at every step of a compiled loop: one draw of the scheme, shifted afresh."""
        return self._shifted(b, k, d, False, dtype)

    def _shifted(self, b: int, k: int, d: int, tent: bool, dtype: Any) -> FreshPoints:
        """One draw of the scheme (no tent map), moved by one random shift at every step.

        A fixed set moved by a random shift modulo one (Cranley & Patterson 1976) stays evenly spread and every point of
        it is uniform, so that sums over it are unbiased.
        """
        rank = None if b == 1 else np.arange(b)
        base = self.unit(rank, k, d, True, np.random.default_rng(0)).reshape(b, k, d)
        return FreshPoints(base.astype(dtype), d, ShiftedPoints(tent))

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description; `SCHEMES.read` reads it."""
        return {"points": type(self).__name__, **own_fields(self)}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        """The scheme that `to_dict` described."""
        return cls(**{name: value for name, value in description.items() if name != "points"})

    @classmethod
    def examples(cls) -> tuple[PointScheme, ...]:
        """Instances for the generic tests; every registered scheme has some."""
        return ()

    def _outcomes(
        self,
        reference: BoundReference,
        obs: Observations,
        t: np.ndarray,
        sizes: list[int],
        rng: np.random.Generator,
    ) -> np.ndarray:
        """`sizes` points for each of the observations that `t` lists in turn (one observation for IID data)."""
        d = reference.cube_dim
        if d is None:
            raise CombinationError(
                f"{type(self).__name__} needs a map from the unit cube, which a pair (sample, log density) does not "
                "have. Draw its points with points=IID()."
            )
        rank = None
        if wants_own_points(reference, obs):
            along = context_order(obs, around_outcome=reference.given == "outcome")
            rank = np.empty(obs.n, dtype=np.intp)
            rank[along] = np.arange(obs.n)
        parts = [self.unit(rank, size, d, reference.periodic, rng) for size in sizes]
        u = (parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)).reshape(-1, d)
        return reference.from_unit(np.clip(u, _LEAST, 1.0 - _LEAST, out=u), obs, t)

    def shares(self, k: int) -> list[int]:
        """How many of a context's k points each randomisation has."""
        return self._sizes(k)

    def _sizes(self, k: int) -> list[int]:
        R = self.sets
        if k < R:
            raise InputError(
                f"{R} randomisations need at least {R} reference points (of each context); got {k}. Ask for more "
                f"points, or for randomisations={k} at most."
            )
        return [k // R + (r < k % R) for r in range(R)]


def evenly_spread(reference: BoundReference, points: int) -> PointScheme:
    """The best scheme for a reference: a lattice; on bits a Sobol net, unless it is larger than it is worth; or IID."""
    d = reference.cube_dim
    if d is None:
        return IID()
    if reference.domain.free is None or d == 1:
        return Lattice()
    return Sobol() if points * (d + 1) <= MOST_NET and d < MOST_SOBOL else IID()


SCHEMES: Registry[PointScheme] = Registry("points", PointScheme)  # filled by registry.py


def wants_own_points(reference: BoundReference, obs: Observations) -> bool:
    """Whether every observation has its own reference points; else all share the same."""
    return obs.has_context or reference.given == "outcome"


# Reference points for each observation where the user names no number, as in the paper's application. With them the
# Monte Carlo sd of an effect over redraws is at most 0.08 of its standard error on the bundled data (group 0.01 to
# 0.03, subjects' medians 0.03 to 0.05; `benchmarks/eye.py redraws --times 10`); IID points at the same k: 0.2 to 0.37.
PER_POINT = 20


def points_wanted(reference: BoundReference, obs: Observations, per_point: Any, total: Any) -> int:
    """The number asked for, or an error that says which of per_point and total these observations take."""
    each = wants_own_points(reference, obs)
    wanted, other, name, remedy = (
        (per_point, total, "per_point", f"per_point={PER_POINT}")
        if each
        else (total, per_point, "total", f"total={PER_POINT * max(obs.n, 1)}")
    )
    if wanted is None or other is not None:
        why = (
            "every context has its own reference points"
            if obs.has_context
            else "the reference is a kernel around each observed outcome"
            if each
            else "IID data have no context, and share all reference points"
        )
        got = f"got per_point={per_point!r}, total={total!r}"
        raise InputError(f"With {obs.kind} observations give {name}: {why}; {got}. For instance {remedy}.")
    if obs.n == 0:
        raise InputError("There are no observations to draw reference points for.")
    return whole(wanted, name, 1)


def _randomisations(R: Any) -> None:
    if whole(R, "randomisations", 1) >= 2**15:
        raise InputError(f"randomisations must be below {2**15:,}; got {R:,}. Four to twenty are enough.")


@final
@dataclass(frozen=True)
class IID(PointScheme):
    """Independent points: what the paper uses, and the only scheme for ranking and for a user's own functions.

    Example:
        >>> import unnorm as un
        >>> un.Ranking(un.Uniform(), per_point=50, points=un.IID()).points
        IID()
    """

    @property
    def sets(self) -> int:
        return 1

    @property
    def iid(self) -> bool:
        return True

    def unit(self, rank: np.ndarray | None, k: int, d: int, periodic: bool, rng: np.random.Generator) -> np.ndarray:
        return rng.random((1 if rank is None else len(rank), k, d))

    def fresh(self, b: int, k: int, d: int, periodic: bool, dtype: Any) -> FreshPoints:
        return FreshPoints((), b * k * d, IndependentPoints(b, k, d))

    @classmethod
    def examples(cls) -> tuple[IID, ...]:
        return (cls(),)

    def _outcomes(
        self,
        reference: BoundReference,
        obs: Observations,
        t: np.ndarray,
        sizes: list[int],
        rng: np.random.Generator,
    ) -> np.ndarray:
        return reference.sample(obs, t, rng)


@final
@dataclass(frozen=True)
class Stratified(PointScheme):
    """One uniform point in each of k cells of equal volume, afresh for every context.

    In one dimension the cells are k intervals; in more, the cube is halved again and again across its longest side (a
    cell that is to hold c points is cut in proportion c//2 : c − c//2), with the axes in random order for each context.
    The variance is never above that of IID points.

    Args:
        randomisations: independent sets that the points of every context are split into.

    Example:
        >>> import unnorm as un
        >>> un.Logistic(un.Uniform(), per_point=20, points=un.Stratified()).points
        Stratified(randomisations=1)
    """

    randomisations: int = 1

    def __post_init__(self) -> None:
        _randomisations(self.randomisations)

    @property
    def sets(self) -> int:
        return self.randomisations

    def unit(self, rank: np.ndarray | None, k: int, d: int, periodic: bool, rng: np.random.Generator) -> np.ndarray:
        n = 1 if rank is None else len(rank)
        low, width = cells(k, d)
        u = low + width * rng.random((n, k, d))
        if d > 1:
            axes = rng.permuted(np.tile(np.arange(d), (n, 1)), axis=1)
            u = np.take_along_axis(u, axes[:, None, :], axis=2)
        return u

    def fresh(self, b: int, k: int, d: int, periodic: bool, dtype: Any) -> FreshPoints:
        low, width = cells(k, d)
        need = b * k * d + (b * d if d > 1 else 0)
        return FreshPoints((low.astype(dtype), width.astype(dtype)), need, StratifiedPoints(b, k, d))

    @classmethod
    def examples(cls) -> tuple[Stratified, ...]:
        return cls(), cls(2)


def cells(k: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """k boxes of volume 1/k that fill the unit cube: lower corners and widths, each (k, d)."""
    low, width, count = np.zeros((1, d)), np.ones((1, d)), np.array([k])
    while count.max() > 1:
        split = count > 1
        rows = np.flatnonzero(split)
        axis = np.argmax(width[rows], axis=1)
        first = count[rows] // 2
        cut = width[rows, axis] * first / count[rows]
        times = 1 + split
        start = np.cumsum(times) - times  # where each cell, or its first half, goes
        low, width, count = np.repeat(low, times, axis=0), np.repeat(width, times, axis=0), np.repeat(count, times)
        a, b = start[rows], start[rows] + 1
        width[a, axis], width[b, axis] = cut, width[b, axis] - cut
        low[b, axis] += cut
        count[b] -= first
        count[a] = first
    return low, width


@final
@dataclass(frozen=True)
class Lattice(PointScheme):
    """A lattice over contexts and outcomes together, with a random shift; neighbouring contexts take neighbours of it.

    In more than one dimension context t (in order) has the points frac(shift + (t k + j) α), j = 0 … k − 1, where α are
    the powers of the generalised golden ratio. In one dimension its points are equally spaced, (j + δ_t)/k, and
    contexts come in pairs with δ and 1 − δ, δ advancing by the golden ratio from pair to pair: the error at the ends of
    Ω cancels within a pair. Measured on the toy chain, n = 50 to 5,000, k = 4 to 30: a half to a fiftieth of the noise
    of frac(shift + i α) folded by the tent map; in the plane neither pairs nor equal spacing helped. For IID data the
    points are a rank-1 lattice, first coordinate i/m, folded by the tent map 1 − |2u − 1|, which removes the jump
    between u = 0 and u = 1 (Hickernell 2002); not on the circle, which has none.

    The points of every context are split into `randomisations` independent sets. One set is the most precise (R sets
    have about √R times its Monte Carlo standard deviation); several let their variance be estimated.

    Args:
        randomisations: independent sets that the points of every context are split into.

    Example:
        >>> import unnorm as un
        >>> un.Logistic(un.Uniform(), per_point=20, points=un.Lattice()).points
        Lattice(randomisations=1)
    """

    randomisations: int = 1

    def __post_init__(self) -> None:
        _randomisations(self.randomisations)

    @property
    def sets(self) -> int:
        return self.randomisations

    @property
    def even_pairs(self) -> bool:
        return False

    def unit(self, rank: np.ndarray | None, k: int, d: int, periodic: bool, rng: np.random.Generator) -> np.ndarray:
        if rank is None:
            alpha = np.concatenate([[1.0 / k], kronecker(d - 1)]) if d > 1 else np.array([1.0 / k])
            u = np.arange(k)[None, :, None] * alpha + rng.random(d)
            u -= np.floor(u)
            return u if periodic else 1.0 - np.abs(2.0 * u - 1.0)
        if d == 1:
            delta = (rank // 2) * kronecker(1)[0] + rng.random()
            delta -= np.floor(delta)
            delta = np.where(rank % 2 == 1, 1.0 - delta, delta)
            return ((np.arange(k) + delta[:, None]) / k)[..., None]
        u = (rank[:, None] * k + np.arange(k))[..., None] * kronecker(d)
        u += rng.random(d)
        u -= np.floor(u)
        return u

    def lattice_shift(self, d: int, rng: np.random.Generator) -> np.ndarray | None:
        return rng.random(d) if d > 1 and self.randomisations == 1 else None

    def fresh(self, b: int, k: int, d: int, periodic: bool, dtype: Any) -> FreshPoints:
        return self._shifted(b, k, d, d == 1 and not periodic, dtype)

    @classmethod
    def examples(cls) -> tuple[Lattice, ...]:
        return cls(), cls(3)


@final
@dataclass(frozen=True)
class Sobol(PointScheme):
    """A scrambled Sobol net whose first coordinate is the rank of the context, the others the outcome's.

    `randomisations` independent scramblings split the points of every context between them. For IID data the net is in
    the outcome's cube alone.

    Args:
        randomisations: independent sets that the points of every context are split into.

    Example:
        >>> import unnorm as un
        >>> un.Logistic(un.Uniform(), per_point=20, points=un.Sobol()).points
        Sobol(randomisations=1)
    """

    randomisations: int = 1

    def __post_init__(self) -> None:
        _randomisations(self.randomisations)

    @property
    def sets(self) -> int:
        return self.randomisations

    def unit(self, rank: np.ndarray | None, k: int, d: int, periodic: bool, rng: np.random.Generator) -> np.ndarray:
        from scipy.stats import qmc

        dims = d if rank is None else d + 1
        if dims > qmc.Sobol.MAXDIM:
            raise InputError(
                f"Sobol points have at most {qmc.Sobol.MAXDIM:,} coordinates; {dims:,} are needed. Use Lattice()."
            )
        size = k if rank is None else k * len(rank)
        net = qmc.Sobol(dims, scramble=True, bits=53, rng=rng).random_base2(max(int(np.ceil(np.log2(size))), 0))[:size]
        if rank is None:
            return net[None]
        net = net[np.argsort(net[:, 0]), 1:].reshape(len(rank), k, d)
        return net[rank]

    @classmethod
    def examples(cls) -> tuple[Sobol, ...]:
        return cls(), cls(2)


# --- points inside a compiled loop -----------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class IndependentPoints(JaxPoints):
    """b × k independent points."""

    b: int
    k: int
    d: int

    def __call__(self, v: Any, fixed: Any) -> Any:
        return v.reshape(self.b, self.k, self.d)


@final
@dataclass(frozen=True)
class StratifiedPoints(JaxPoints):
    """One point in each of k cells, the cells' axes in random order for each context."""

    b: int
    k: int
    d: int

    def __call__(self, v: Any, fixed: Any) -> Any:
        import jax.numpy as jnp

        b, k, d = self.b, self.k, self.d
        u = fixed[0] + fixed[1] * v[: b * k * d].reshape(b, k, d)
        if d == 1:
            return u
        axes = jnp.argsort(v[b * k * d :].reshape(b, 1, d), axis=-1)
        return jnp.take_along_axis(u, jnp.broadcast_to(axes, u.shape), axis=-1)


@final
@dataclass(frozen=True)
class ShiftedPoints(JaxPoints):
    """The fixed set moved by one shift, then folded where `tent`."""

    tent: bool

    def __call__(self, v: Any, fixed: Any) -> Any:
        import jax.numpy as jnp

        u = fixed + v
        u = u - jnp.floor(u)
        return 1.0 - jnp.abs(2.0 * u - 1.0) if self.tent else u
