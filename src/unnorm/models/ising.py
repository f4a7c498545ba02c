"""The Ising model of binary vectors, alone or in time: fields, couplings, couplings to the step before, covariates.

    f_θ(y_t|x_t) = Σ_i y_ti { h_i + Σ_{j>i} J_ij y_tj + Σ_j K_ij y_{t−1,j} + Σ_c B_ic z_tc },      y ∈ {0, 1}^d,

so that given the others bit i has log-odds h_i + Σ_j J_ij y_j + …: θ is on the scale of logistic regressions. With
spins σ = 2y − 1 a coupling is J_ij/4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from .._base.blas import single_threaded
from .._base.numerics import floats, whole
from .._base.threads import cores, run_tasks
from ..data.observations import Observations
from ..domains import BinaryVectors
from ..errors import InputError, listing
from .base import Context, DataTerms, Kernels, Moments
from .centring import Centred, level
from .changes import Changes
from .exponential_family import ExponentialFamily
from .gibbs import ChangeSampler, CompiledSampler
from .ising_changes import IsingChanges, IsingShape, energies, outcome_sums
from .linear import LinearDataTerms, LinearModel

PIECE = 2**19  # numbers of a piece of rows
JACOBIAN = 2**31  # bytes above which a table of rows × parameters is refused
TABLE, BLOCK = 2**28, 2**14  # bytes of all states' statistics above which sums take so many states at a time


class IsingParts(NamedTuple):
    """θ as arrays."""

    h: np.ndarray  # (d,) fields
    J: np.ndarray  # (d, d) couplings, symmetric, zero on the diagonal
    K: np.ndarray | None  # (d, d): K[i, j] from bit j at the step before to bit i
    B: np.ndarray | None  # (d, c): B[i, c] of covariate c on bit i


@final
class Ising(LinearModel):  # long: each of the answers of `Model` as matrix products
    """Binary vectors with pairwise couplings; the parameters are called h[i], J[i,j], K[i,j] and B[i,name].

    Args:
        d: how many bits, or their names, by which the parameters are then called.
        lag: 1 for couplings to the previous step (observations from `un.transitions`; trials are its `group`).
        covariates: columns that act on the fields (`x` of `un.conditional`, `extra` of `un.transitions`).

    Maximum pseudo-likelihood, for any d: `un.fit(un.Ising(d), obs, un.ConditionalNCE(un.BitFlip(every=True)))`.

    Example:
        >>> import numpy as np, unnorm as un
        >>> y = np.random.default_rng(0).integers(0, 2, (500, 3))
        >>> fit = un.fit(un.Ising(3), un.iid(y), un.ConditionalNCE(un.BitFlip(every=True)))
        >>> fit.names
        ('h[1]', 'h[2]', 'h[3]', 'J[1,2]', 'J[1,3]', 'J[2,3]')
    """

    def __init__(self, d: int | Sequence[str], lag: int = 0, covariates: str | Sequence[str] = ()) -> None:
        bits, columns = _bits(d), _columns(covariates)
        if lag not in (0, 1) or isinstance(lag, bool):
            raise InputError(f"lag of Ising must be 0 or 1; got {lag!r}.")
        self.bits, self.lag, self.columns = bits, int(lag), columns
        self.domain = BinaryVectors(len(bits))
        self._origin = np.zeros(len(columns))  # from which covariates count: see `centred`
        pairs = [f"J[{bits[i]},{bits[j]}]" for i in range(len(bits)) for j in range(i + 1, len(bits))]
        before = [f"K[{a},{b}]" for a in bits for b in bits] if lag else []
        self.names = (*(f"h[{a}]" for a in bits), *pairs, *before, *(f"B[{a},{c}]" for a in bits for c in columns))
        self.context_arity = (1 if lag or columns else 0) + (1 if lag and columns else 0)
        if len(set(self.names)) < len(self.names):
            twice = next(name for i, name in enumerate(self.names) if name in self.names[:i])
            raise InputError(
                f"The names of the bits make two parameters of one name, {twice!r}: leave commas out of them."
            )

    def __repr__(self) -> str:
        return f"Ising({self.domain.dim}, lag={self.lag}, covariates={self.columns!r})"

    @cached_property
    def shape(self) -> IsingShape:
        return IsingShape(self.domain.dim, self.lag, len(self.columns))

    @property
    def size(self) -> int:
        return self.shape.size

    def parts(self, theta: Any) -> IsingParts:
        """θ (a fit's `estimate` or `theta`) as arrays h, J, K, B."""
        h, J, W = self.shape.arrays(self.flatten(theta))
        split = self.lag * self.domain.dim
        return IsingParts(h, J, W[:, :split] if self.lag else None, W[:, split:] if self.columns else None)

    def from_parts(self, h: Any, J: Any, K: Any = None, B: Any = None) -> np.ndarray:
        """The flat θ of arrays h (d,), J (d, d) symmetric, K (d, d) and B (d, c)."""
        d, c = self.domain.dim, len(self.columns)
        given = {"h": (h, (d,)), "J": (J, (d, d))}
        given |= {"K": (K, (d, d))} if self.lag else {}
        given |= {"B": (B, (d, c))} if c else {}
        arrays = {name: floats(np.nan if value is None else value, name) for name, (value, _) in given.items()}
        for name, (_, shape) in given.items():
            if arrays[name].shape != shape:
                raise InputError(f"{name} must have shape {shape}; got {arrays[name].shape}.")
        if not np.array_equal(arrays["J"], arrays["J"].T):
            raise InputError("J must be symmetric: J[i, j] and J[j, i] are one coupling.")
        W = np.concatenate([arrays.get("K", np.zeros((d, 0))), arrays.get("B", np.zeros((d, 0)))], axis=1)
        return self.shape.flat(arrays["h"], arrays["J"], W)

    @cached_property
    def _family(self) -> ExponentialFamily:
        """The same model by its statistics in JAX: enumeration and stochastic steps compile it."""
        import jax.numpy as jnp

        i, j = self.shape.upper

        def statistics(y: Any, *arguments: Any) -> Any:
            parts = [y, y[i] * y[j]]
            if self.lag:
                parts.append(jnp.outer(y, arguments[0]).ravel())
            if self.columns:
                z = jnp.stack([jnp.asarray(arguments[-1][name], dtype=float) for name in self.columns]) - self._origin
                parts.append(jnp.outer(y, z).ravel())
            return (jnp.concatenate(parts),)

        takes = {0: lambda y: statistics(y), 1: lambda y, x: statistics(y, x), 2: lambda y, x, z: statistics(y, x, z)}
        return ExponentialFamily(takes[self.context_arity], self.names, self.domain)

    def one(self, theta: Any, y: Any, *arguments: Any) -> Any:
        return self._family.one(theta, y, *arguments)

    def _build_kernels(self) -> Kernels:
        return self._family.kernels

    def _context(self, arguments: tuple[Any, ...], dtype: Any = np.float64) -> np.ndarray | None:
        """(n, lag·d + c) what acts on the fields."""
        parts = [np.asarray(arguments[0], dtype=dtype)] if self.lag else []
        if self.columns:
            z = [np.asarray(arguments[-1][name]) - m if m else arguments[-1][name] for name, m in self._origins]
            parts.append(np.stack([np.asarray(each, dtype=dtype) for each in z], axis=1))
        return None if not parts else parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    @property
    def _origins(self) -> list[tuple[str, float]]:
        return list(zip(self.columns, self._origin.tolist()))

    def centred(self, obs: Observations) -> Centred | None:
        """Covariates about their means: each field takes B_i times the mean."""
        levels = np.array([level(obs.context[name]) for name in self.columns])
        if not levels.any():
            return None
        model = Ising(self.bits, self.lag, self.columns)
        model._origin = levels
        d, c = self.domain.dim, len(self.columns)
        return Centred(model, np.repeat(np.arange(d), c), np.arange(self.size - d * c, self.size), np.tile(levels, d))

    def log_f(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        X, y = self._context(arguments), y.astype(np.float64, copy=False)
        length = max(256, PIECE // self.domain.dim)
        pieces = [(slice(begin, begin + length),) for begin in range(0, len(y), length)]

        def work(at: slice) -> np.ndarray:
            return energies(self.shape, theta, y[at], None if X is None else X[at])

        with single_threaded():
            return np.concatenate(run_tasks(work, pieces, cores())) if pieces else np.zeros(0)

    def log_z(self, theta: np.ndarray, nodes: np.ndarray, log_w: np.ndarray, context: Context) -> np.ndarray:
        if 8 * len(nodes) * self.size <= TABLE:
            return super().log_z(theta, nodes, log_w, context)
        out = np.full(context.size, -np.inf)
        for y, each in _blocks(nodes, log_w):
            for u in range(context.size):
                out[u] = np.logaddexp(out[u], np.logaddexp.reduce(self._at(theta, y, context, u) + each))
        return out

    def moments(
        self, theta: np.ndarray, nodes: np.ndarray, log_w: np.ndarray, context: Context, log_a: np.ndarray, tilt: bool
    ) -> Moments:
        """Where all states with their statistics are a large table, block by block of states."""
        if 8 * len(nodes) * self.size <= TABLE:
            return super().moments(theta, nodes, log_w, context, log_a, tilt)
        log_z = self.log_z(theta, nodes, log_w, context)
        mean, second = np.zeros((context.size, self.size)), np.zeros((self.size, self.size))
        a = np.exp(log_a + log_z) if tilt else np.exp(log_a)
        for y, each in _blocks(nodes, log_w):
            for u in range(context.size):
                density = np.exp(self._at(theta, y, context, u) + each - log_z[u])
                s = self.jacobian(theta, y, context.at(np.full(len(y), u)))
                mean[u] += density @ s
                second += a[u] * (s.T @ (density[:, None] * s))
        return Moments(log_z, mean, second)

    def _at(self, theta: np.ndarray, y: np.ndarray, context: Context, u: int) -> np.ndarray:
        """(N,) f of states in the u-th context."""
        return self.log_f(theta, y, context.at(np.full(len(y), u)))

    def jacobian(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        if 8 * len(y) * self.size > JACOBIAN:
            raise InputError(
                f"A table of {len(y):,} rows × {self.size:,} parameters is too large. Use "
                "objective=un.ConditionalNCE(un.BitFlip(every=True)), which needs none."
            )
        i, j = self.shape.upper
        X = self._context(arguments)
        parts = [y, y[:, i] * y[:, j]]
        split = self.lag * self.domain.dim
        if X is not None:
            parts += [(y[:, :, None] * part[:, None]).reshape(len(y), -1) for part in (X[:, :split], X[:, split:])]
        return np.concatenate(parts, axis=1)

    @property
    def penalised(self) -> np.ndarray:
        """The couplings, within a step and to the one before: not the fields, and not what covariates add to them."""
        at = np.arange(self.size)
        return (at >= self.domain.dim) & (at < self.size - self.domain.dim * len(self.columns))

    by_products = True

    def row_sums(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...], v: np.ndarray) -> np.ndarray:
        X = self._context(arguments)
        return self._in_pieces(lambda at: outcome_sums(self.shape, v[at], y[at], None if X is None else X[at]), y)

    def row_squares(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...], v: np.ndarray) -> np.ndarray:
        X = self._context(arguments)  # bits are their own squares
        return self._in_pieces(lambda at: outcome_sums(self.shape, v[at], y[at], None if X is None else X[at] ** 2), y)

    def _in_pieces(self, work: Callable[[slice], np.ndarray], y: np.ndarray) -> np.ndarray:
        """Σ work(rows) over pieces that stay in the cache, on all cores."""
        length = max(256, PIECE // self.domain.dim)
        pieces = [(slice(begin, begin + length),) for begin in range(0, len(y), length)]
        with single_threaded():
            return np.sum(run_tasks(work, pieces, cores()), axis=0)

    def data_terms(self, y: np.ndarray, arguments: tuple[Any, ...], weight: np.ndarray) -> DataTerms:
        return LinearDataTerms(outcome_sums(self.shape, weight, y, self._context(arguments)))

    def changes(self, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        found = self.change_products(y, arguments)
        each = np.eye(self.domain.dim)
        return np.stack([found.by_outcome(np.broadcast_to(one, y.shape)) for one in each], axis=1)

    def change_products(self, y: np.ndarray, arguments: tuple[Any, ...], single: bool = False) -> Changes:
        dtype = np.float32 if single else np.float64
        return IsingChanges(self.shape, y.astype(dtype), self._context(arguments, dtype))

    @property
    def change_width(self) -> int:
        return 4 * self.shape.width

    def sampler(self, theta: np.ndarray, arguments: tuple[Any, ...]) -> ChangeSampler:
        from .ising_kernels import FUNCTIONS

        h, J, W = self.shape.arrays(theta)
        X = self._context(arguments)
        base = h[None].copy() if X is None else h + X @ W.T
        return CompiledSampler(FUNCTIONS, (np.ascontiguousarray(J), base), closed=True)

    def check(self, obs: Observations) -> None:
        """Refuse observations without the previous step or the covariates that f reads."""
        if self.lag and obs.kind != "transitions":
            raise InputError(
                f"Ising(lag=1) reads the previous step, which {obs.kind} observations do not have. Use un.transitions."
            )
        if self.bits != obs.outcome_names and set(self.bits) == set(obs.outcome_names):
            raise InputError(
                f"The bits of Ising are {listing(self.bits)}, and the outcome's columns come in another order: "
                f"{listing(obs.outcome_names)}. Name both alike, y={list(self.bits)!r}."
            )
        if missing := [name for name in self.columns if name not in obs.context]:
            raise InputError(
                f"The covariates {listing(missing)} are not in the observations' context "
                f"({listing(list(obs.context)) or 'there is none'}). Pass them as x= of un.conditional, or extra= of "
                "un.transitions."
            )
        if text := [name for name in self.columns if obs.context[name].dtype.kind not in "biuf"]:
            raise InputError(f"The covariates of Ising must be numbers; {listing(text)} holds text.")
        super().check(obs)

    def no_estimate(self, obs: Observations, said: str) -> str:
        """A bit that never changes, whose field no ridge holds back; else the ridge, as it is written."""
        y = obs.outcome.astype(np.float64)
        least, most = np.nanmin(y, axis=0, initial=1.0), np.nanmax(y, axis=0, initial=0.0)
        if (still := np.flatnonzero(least == most)).size:
            i, value = int(still[0]), int(least[still[0]])
            more = f", and so are {still.size - 1} others," if still.size > 1 else ""
            return (
                f"The estimate does not exist: the bit {obs.outcome_names[i]!r}{more} is {value} in every observation, "
                f"so that h[{self.bits[i]}] → {'+' if value else '−'}∞. Leave its column out of the outcome; a ridge "
                "does not help, as it leaves the fields."
            )
        return f"{said} A ridge on couplings is solver=un.LBFGS(ridge=0.01), with the pseudo-likelihood."

    def to_dict(self) -> dict[str, Any]:
        about = {"model": "Ising", "bits": list(self.bits), "lag": self.lag, "covariates": list(self.columns)}
        return {**about, "names": list(self.names), "domain": self.domain.to_dict()}


def _blocks(nodes: np.ndarray, log_w: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for begin in range(0, len(nodes), BLOCK):
        yield nodes[begin : begin + BLOCK], log_w[begin : begin + BLOCK]


def _bits(d: Any) -> tuple[str, ...]:
    """The bits' names: 1 … d where none are given."""
    if isinstance(d, str) or not isinstance(d, Sequence):
        return tuple(str(i + 1) for i in range(whole(d, "The number d of bits of Ising", least=1)))
    names = tuple(str(name) for name in d)
    if not names or len(set(names)) != len(names):
        raise InputError(f"The names of the bits must be distinct; got {listing(names) or 'none'}.")
    return names


def _columns(names: Any) -> tuple[str, ...]:
    given = (names,) if isinstance(names, str) else tuple(names)
    if len(set(given)) != len(given) or not all(isinstance(name, str) for name in given):
        raise InputError(f"covariates of Ising must be distinct column names; got {listing(given)}.")
    return given
