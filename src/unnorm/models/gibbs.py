"""Gibbs sweeps over bits, and annealed importance sampling, from the change of f when one bit flips.

A sweep visits the free bits in turn and flips bit i with probability σ(Δ_i f), which leaves p(y|x) ∝ exp f(y|x) as it
is. Annealed importance sampling (Neal 2001) starts from a mixture of independent bits,

    q(y) = K⁻¹ Σ_k exp(Σ_i a_ki y_i − c_k),        c_k = Σ_i log(1 + e^{a_ki}),

and moves by such sweeps through f_β = (1 − β) log q + β f, β = 0 … 1; its weights

    log w = Σ_k (β_{k+1} − β_k) {f(y_k) − log q(y_k)}        have        E w = Z = Σ_y exp f(y|x).

`CompiledSampler` needs three small numba functions of a model and makes both loops of them:

    start(params, y, c) → state          what chain c keeps, given its vector y
    delta(params, state, y, i) → Δ_i f
    flip(params, state, y, i)            flips y[i] in place, and brings the state up to date

`params` is a tuple of arrays (θ, the contexts of the chains, …) that the model's `sampler` fills. The loops are in
gibbs_loops.py; they take 1 to 4 s to compile, and are kept on disk where a model's functions read only their arguments.
"""

from __future__ import annotations

# pyright: reportCallIssue=false
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, final

import numpy as np

from .changes import flipped
from .gibbs_loops import compiled_loops

if TYPE_CHECKING:
    from .base import Model


@final
@dataclass(frozen=True)
class Base:
    """q, a mixture of independent bits: where annealing begins. Several components, for a law of several modes."""

    log_odds: np.ndarray  # (K, d) a
    log_none: np.ndarray  # (K,) −c, the log probability of no ones

    @classmethod
    def of(cls, p: np.ndarray, free: np.ndarray) -> Base:
        """From probabilities (K, d); bits that are not free are 0 for certain."""
        none = np.log1p(-p) * free
        return cls(np.ascontiguousarray(np.log(p) * free - none), none.sum(axis=1))

    def components(self, y: np.ndarray) -> np.ndarray:
        """(n, K) log q_k(y)."""
        return y @ self.log_odds.T + self.log_none

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """(n,) log q(y)."""
        return np.logaddexp.reduce(self.components(y), axis=1) - np.log(len(self.log_none))


class ChangeSampler(ABC):
    """Updates of C vectors side by side, each in its own context, at one θ."""

    quick: bool  # whether thousands of sweeps cost little

    @abstractmethod
    def sweep(
        self,
        y: np.ndarray,
        sweeps: int,
        rng: np.random.Generator,
        free: np.ndarray | None = None,
        either_way: bool = False,
    ) -> np.ndarray:
        """(C, d) the vectors after so many sweeps over the bits that are `free`, (C, d) booleans; None for all.

        `either_way`: each sweep goes from the first bit to the last or back, with even odds, which makes it reversible.
        """

    @abstractmethod
    def anneal(
        self, y: np.ndarray, base: Base, betas: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """(C, d) vectors and (C,) sums Σ_k (β_{k+1} − β_k) (f_k − log q_k) of annealing, y drawn from q.

        Only changes of f and of log q along the way are added: the values at the start are the caller's to add.
        """


class Sampled(NamedTuple):
    """What a chain drew."""

    statistics: np.ndarray  # (draws, p)
    kept: np.ndarray  # (draws, F) the free bits, or (0, F) where they are not kept
    accepted: float  # share of the proposals
    ones: float  # share of the free bits that are one


class Chain(Protocol):
    """One outcome in its context, moved by flips: draws of its statistics without a table of outcomes."""

    @property
    def statistics(self) -> np.ndarray:
        """(p,) of the outcome where the chain is."""
        ...

    @property
    def ties(self) -> np.ndarray:
        """(d,) that outcome."""
        ...

    def score(self, theta: np.ndarray, free: np.ndarray) -> np.ndarray:
        """(p,) the score of its pseudo-likelihood over the free bits."""
        ...

    def sample(
        self,
        theta: np.ndarray,
        free: np.ndarray,
        plan: tuple[int, int],
        draws: int,
        rng: np.random.Generator,
        keep: bool = False,
    ) -> Sampled:
        """Draws of the statistics; `plan`: proposals before the first draw, and from draw to draw."""
        ...


@final
@dataclass(frozen=True)
class PlainSampler(ChangeSampler):
    """From f itself, two values for each flip, all chains at once: right for any model on bits, and slow."""

    model: Model
    theta: np.ndarray
    arguments: tuple[Any, ...]

    quick = False

    @property
    def _bits(self) -> list[int]:
        """Those that Ω does not fix."""
        free = self.model.domain.free
        return list(range(self.model.domain.dim)) if free is None else np.flatnonzero(free).tolist()

    def _f(self, y: np.ndarray) -> np.ndarray:
        return self.model.log_f(self.theta, y, self.arguments)

    def sweep(
        self,
        y: np.ndarray,
        sweeps: int,
        rng: np.random.Generator,
        free: np.ndarray | None = None,
        either_way: bool = False,
    ) -> np.ndarray:
        y = y.astype(np.float64)
        now, zero = self._f(y), np.zeros(len(y))
        for _ in range(sweeps):
            order = self._bits[::-1] if either_way and rng.random() < 0.5 else self._bits
            for i in order:
                y, now, _ = self._update(y, now, i, 1.0, zero, rng, None if free is None else free[:, i])
        return y

    def _update(
        self,
        y: np.ndarray,
        now: np.ndarray,
        i: int,
        beta: float,
        back: np.ndarray,
        rng: np.random.Generator,
        free: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The vectors and f after bit i, and by how much log q changed; `back`: by how much it would."""
        other = flipped(y, i)
        f = self._f(other)
        delta = beta * (f - now) + (1.0 - beta) * back
        moves = np.log(rng.random(len(y))) < -np.logaddexp(0.0, -delta)
        moves = moves if free is None else moves & free
        return np.where(moves[:, None], other, y), np.where(moves, f, now), np.where(moves, back, 0.0)

    def anneal(
        self, y: np.ndarray, base: Base, betas: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        y = y.astype(np.float64)
        now = start = self._f(y)
        log_q, log_w = np.zeros(len(y)), np.zeros(len(y))
        for before, beta in pairwise(betas.tolist()):
            log_w += (beta - before) * (now - start - log_q)
            for i in self._bits:
                back = base.log_density(flipped(y, i)) - base.log_density(y)
                y, now, moved = self._update(y, now, i, beta, back, rng)
                log_q = log_q + moved
        return y, log_w


@final
@dataclass(frozen=True)
class CompiledSampler(ChangeSampler):
    """From three compiled functions of a model (this module's docstring), chain after chain."""

    functions: tuple[Any, Any, Any]  # start, delta, flip
    params: tuple[Any, ...]
    closed: bool = False  # whether the functions read nothing but their arguments, so that their loops can be kept

    quick = True

    def sweep(
        self,
        y: np.ndarray,
        sweeps: int,
        rng: np.random.Generator,
        free: np.ndarray | None = None,
        either_way: bool = False,
    ) -> np.ndarray:
        y = np.array(y, dtype=np.float64, order="C")
        free = np.ones((1, y.shape[1]), dtype=np.bool_) if free is None else np.ascontiguousarray(np.atleast_2d(free))
        compiled_loops(*self.functions, self.closed)[0](self.params, y, free, sweeps, either_way, rng)
        return y

    def anneal(
        self, y: np.ndarray, base: Base, betas: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        y, log_w = np.array(y, dtype=np.float64, order="C"), np.zeros(len(y))
        compiled_loops(*self.functions, self.closed)[1](
            self.params, y, base.log_odds, base.components(y), betas, rng, log_w
        )
        return y, log_w
