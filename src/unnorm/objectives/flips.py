"""Every bit flipped once: conditional NCE without a reference error, which is maximum pseudo-likelihood (Besag 1975).

    Σ_t w_t Σ_i log σ( f(y_t) − f(y_t with bit i flipped) )  =  Σ_t w_t Σ_i log p_θ(y_ti | the other bits, x_t),

as σ(−Δ_i f) is the probability of y_ti given the rest: d logistic regressions that share θ. The terms of one
observation are dependent: −H is not the variance of the score, and errors are H⁻¹ M H⁻¹ with M = Σ_t w_t g_t g_tᵀ
over independent observations (Godambe 1960). Within a chain g_t has mean zero given the past, so that M needs no lags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, final

import numpy as np

from .._base.blas import single_threaded
from .._base.threads import cores, run_tasks
from ..data.observations import Observations
from ..models.base import Model
from ..models.batching import tree_take
from ..models.changes import Changes
from ..models.operators import Operator, solved_rows
from .base import ChosenErrors, Constants, Derivatives, ModelProblem
from .scores import Drawn, Reselection, Scores, frequency, sum_by

BLOCK = 2**22  # numbers that the changes of one block hold
CERTAIN = 15.0  # log-odds of one bit beyond which a maximum is as good as at infinity
LEAST_PART, PER_PARAMETER = 5000, 50  # observations in a part: in all, and for each coefficient of a bit
SINGLE = 2**24  # numbers of all changes from which float32 will do
SOLVED = 2e-3  # relative residual of H⁻¹ e_c: the error of se is its square
SWEEPS = 50  # from the data to draws of the model, in simulated errors
FEW, PER = 50, 10  # observations in all, and for each parameter, below which errors from their scores are corrected
AFFORDED = 1e9  # multiplications that the correction may take
ALONE = 0.95  # the most of the information along a direction that one observation is taken to hold
KEPT = 2**29  # bytes of changes that may be kept between iterations; beyond it blocks are made again


T = TypeVar("T", bound=Any)


class FlipBlock(NamedTuple):
    """Some observations and the changes that flips of their bits make."""

    at: np.ndarray  # (b,) which observations
    changes: Changes
    weight: np.ndarray  # (b, d) w_t, and 0 where a bit cannot flip


class SimulatedSpread(Protocol):
    """Var(score) under the model, from simulations."""

    def spread(self, theta: np.ndarray) -> np.ndarray | None:
        """(p, p); None where simulations at θ are unlike the data."""
        ...

    def notes(self, theta: np.ndarray) -> tuple[str, ...]:
        """What there is to say of it."""
        ...


@final
@dataclass(frozen=True)
class FlipProblem(ModelProblem):
    """Σ_t w_t Σ_i log σ(−θᵀ Δ_i s(y_t|x_t)) over the bits that can flip."""

    model: Model
    obs: Observations
    figures: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    simulated: SimulatedSpread | None = None

    why_flat: ClassVar[str] = (
        "no flip of a single bit changes it, in any of the observed outcomes, so that the pseudo-likelihood says "
        "nothing of it. Remove it, or use another objective: un.MonteCarloML() of graphs, un.Logistic(…) of vectors."
    )
    why_alike: ClassVar[str] = (
        "whichever bit of the observed outcomes flips, the change of one is a linear combination of the changes of the "
        "others. Remove one of them."
    )

    @property
    def single(self) -> bool:
        """Whether products may be in float32: sums over so many rows hide their rounding behind sampling error."""
        return self.obs.n * self.model.change_width >= SINGLE

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        return self.model.arguments(self.obs, np.arange(self.obs.n))

    @cached_property
    def _starts(self) -> list[int]:
        return list(range(0, self.obs.n, max(1, BLOCK // self.model.change_width)))

    @cached_property
    def _kept(self) -> dict[int, FlipBlock] | None:
        """The blocks once for all, where they are small enough together."""
        first = self._made(0)
        held = first.changes.nbytes + (0 if 0 in first.weight.strides else first.weight.nbytes)
        if held * len(self._starts) > KEPT:
            return None
        return {0: first, **{i: self._made(i) for i in range(1, len(self._starts))}}

    def _made(self, i: int) -> FlipBlock:
        begin, end = self._starts[i], (*self._starts, self.obs.n)[i + 1]
        at = np.arange(begin, end)
        changes = self.model.change_products(self.obs.outcome[at], tree_take(self.arguments, at), self.single)
        w = np.ones(len(at)) if self.obs.weight is None else self.obs.weight[at]
        w = w.astype(np.float32) if self.single else w
        free = self.model.free_bits(self.obs, at)
        weight = np.broadcast_to(w[:, None], (len(at), self.obs.dim)) if free is None else w[:, None] * free
        return FlipBlock(at, changes, weight)

    def blocks(self, which: Iterable[int] | None = None) -> Iterator[FlipBlock]:
        """The observations, block by block: all blocks, or those in `which`."""
        kept = self._kept
        for i in range(len(self._starts)) if which is None else which:
            yield self._made(i) if kept is None else kept[i]

    def summed(self, work: Callable[[FlipBlock], T]) -> T:
        """Σ work(block), on as many threads as there are cores, with BLAS on one each."""
        _ = self._kept  # made before the threads ask for it

        def over(mine: list[int]) -> Any:
            total: Any = None
            for b in self.blocks(mine):
                one = work(b)
                total = one if total is None else total + one
            return total

        every = list(range(len(self._starts)))
        threads = min(cores(), len(every))
        with single_threaded():
            parts = run_tasks(over, [(every[t::threads],) for t in range(threads)], threads)
        for other in parts[1:]:
            parts[0] = parts[0] + other
        return parts[0]

    def value(self, theta: np.ndarray) -> float:
        return -self.summed(lambda b: weighted_sum(b.weight, softplus(b.changes.times(theta))))

    def slope(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient: one pass, and no matrix of p × p."""

        def work(b: FlipBlock) -> np.ndarray:
            eta = b.changes.times(theta)
            return np.append(b.changes.total(b.weight * expit(eta)), weighted_sum(b.weight, softplus(eta)))

        both = -self.summed(work)
        return float(both[-1]), both[:-1]

    def information(self, theta: np.ndarray) -> np.ndarray:
        """(p, p) −H = Σ w σ(η) σ(−η) Δ Δᵀ."""
        return self.summed(lambda b: b.changes.cross(b.weight * variance(b.changes.times(theta))))

    def curvature(self, theta: np.ndarray) -> Operator:
        return self.summed(lambda b: b.changes.operator(b.weight * variance(b.changes.times(theta))))

    def curvature_times(self, theta: np.ndarray, V: np.ndarray) -> np.ndarray:
        """(q, p) −H v for each row of V, in one pass over the data."""

        def work(b: FlipBlock) -> np.ndarray:
            w = b.weight * variance(b.changes.times(theta))
            return np.stack([b.changes.total(w * b.changes.times(v)) for v in V])

        return self.summed(work)

    def part(self, rng: np.random.Generator) -> tuple[FlipProblem, float] | None:
        d = self.obs.dim
        some = max(LEAST_PART, PER_PARAMETER * self.model.size // d)
        if self.obs.n <= 3 * some:
            return None
        at = np.sort(rng.choice(self.obs.n, some, replace=False))
        obs = self.obs.take(at)
        return FlipProblem(self.model, obs), float(obs.weights.sum() / self.obs.weights.sum())

    def chosen(self, theta: np.ndarray, curvature: Operator | None, ridge: np.ndarray | float = 0.0) -> FlipErrors:
        return FlipErrors(self, theta, curvature, ridge)

    @cached_property
    def _scale(self) -> np.ndarray:
        return self.summed(lambda b: b.changes.squares(b.weight))

    @property
    def scale(self) -> np.ndarray:
        return self._scale

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        return Derivatives(*self.slope(theta), self.information(theta), self.scale)

    def unbounded(self, direction: np.ndarray) -> bool:
        """Whether no flip raises the statistics along `direction`, and some lower them."""
        most, least = -np.inf, np.inf
        for b in self.blocks():
            eta = b.changes.times(direction)[b.weight > 0]
            most, least = max(most, float(eta.max(initial=-np.inf))), min(least, float(eta.min(initial=np.inf)))
        return least < 0 and most <= 1e-9 * abs(least)

    def constants(self, theta: np.ndarray) -> Constants:
        return Constants(np.zeros(0))

    def report(self, theta: np.ndarray) -> tuple[tuple[str, ...], dict[str, Any]]:
        known = self.simulated is not None and self.simulated.spread(theta) is not None  # else the scores' refusal
        more = self.simulated.notes(theta) if self.simulated is not None and known else ()
        return (*self.notes, *more), dict(self.figures)

    def scores(self, theta: np.ndarray) -> FlipScores:
        information, weight, simulated = self.information(theta), float(self.obs.weights.sum()), self.simulated
        if simulated is None:
            return FlipScores(self, theta, information, weight)
        spread = simulated.spread(theta)
        refusal = None if spread is not None else " ".join(simulated.notes(theta))
        return FlipScores(self, theta, information, weight, spread, refusal=refusal)

    def by_observation(self, theta: np.ndarray) -> Iterator[tuple[FlipBlock, np.ndarray]]:
        """(b, p) scores w_t g_t of the observations, block by block."""
        for b in self.blocks():
            yield b, -b.changes.by_outcome(b.weight * expit(b.changes.times(theta)))


def pseudo_maximum(problem: FlipProblem) -> np.ndarray | None:
    """The maximum, by full Newton steps, for other methods to start from; None where they do not find it."""
    theta = problem.start
    for _ in range(25):
        now = problem.derivatives(theta)
        step = np.linalg.pinv(now.information, hermitian=True) @ now.gradient
        if float(now.gradient @ step) < 1e-10 * (1 + abs(now.value)):
            return theta
        theta = theta + step
        if max(float(np.max(np.abs(b.changes.times(theta)), initial=0.0)) for b in problem.blocks()) > CERTAIN:
            break
    return None


def softplus(eta: np.ndarray) -> np.ndarray:
    """log(1 + e^η) = −log σ(−η), in η's own precision."""
    e = np.exp(-np.abs(eta))
    return np.maximum(eta, 0) + (np.log(1 + e) if eta.dtype == np.float32 else np.log1p(e))  # log is quicker


def variance(eta: np.ndarray) -> np.ndarray:
    """σ(η) σ(−η)."""
    p = expit(eta)
    return p * (1.0 - p)


def weighted_sum(w: np.ndarray, x: np.ndarray) -> float:
    """Σ w x in float64."""
    return float(np.einsum("ti,ti->", w, x, dtype=np.float64))


def expit(eta: np.ndarray) -> np.ndarray:
    """σ(η), in η's own precision."""
    return 0.5 + 0.5 * np.tanh(0.5 * eta)


@final
@dataclass(frozen=True)
class FlipScores(Scores):
    """Scores of a pseudo-likelihood, by observation."""

    problem: FlipProblem
    theta: np.ndarray
    information: np.ndarray
    weight: float
    spread: np.ndarray | None = None  # Var(score) under the model, from simulations
    penalty: np.ndarray | None = None
    reselection: Reselection | None = None
    smoothing: np.ndarray | None = None
    refusal: str | None = None

    drawn = Drawn.NONE
    shared = False

    @property
    def model_based(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.spread is not None

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.theta)

    def points_spread(self, power: int) -> np.ndarray:
        return np.zeros((self.size, self.size))

    def data_spread(self) -> np.ndarray:
        return self.empirical_spread() if self.spread is None else self.spread

    @property
    def _few(self) -> bool:
        cheap = self.problem.obs.n * self.size**3 <= AFFORDED
        return cheap and self.spread is None and self.weight < max(FEW, PER * self.size)

    @property
    def df(self) -> float | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.weight - 1.0 if self._few else None

    def empirical_spread(self) -> np.ndarray:
        """Σ_t w_t g_t g_tᵀ n/(n − 1); of few observations Σ_t w_t ĝ_t ĝ_tᵀ (CR2; Bell & McCaffrey 2002).

        At the estimate Var(g_t) is about H_t − H_t H⁻¹ H_t, too small by what t itself does to the estimate; that of
        ĝ_t = L (I − A_t)^(−½) L⁻¹ g_t is about H_t, with H = L Lᵀ and H_t = L A_t Lᵀ.
        """
        out, weights = np.zeros((self.size, self.size)), self.problem.obs.weights
        for b, g in self.problem.by_observation(self.theta):
            w = weights[b.at]
            one = g / np.maximum(w, 1e-300)[:, None]
            one = self._widened(b, one) if self._few else one
            out += (w[:, None] * one).T @ one
        return out if self._few else frequency(self.weight) * out

    def _widened(self, b: FlipBlock, g: np.ndarray) -> np.ndarray:
        """(b, p) ĝ."""
        H = self.information if self.penalty is None else self.information + self.penalty
        L = np.linalg.cholesky(H)
        eta, out = b.changes.times(self.theta), np.empty_like(g, dtype=np.float64)
        for t in range(len(g)):
            at = slice(t, t + 1)
            H_t = b.changes.take(at).cross((b.weight[at] > 0) * variance(eta[at]))
            A = np.linalg.solve(L, np.linalg.solve(L, H_t).T)
            share, U = np.linalg.eigh((A + A.T) / 2)
            left = 1.0 - np.minimum(share, ALONE)
            out[t] = L @ (U @ ((U.T @ np.linalg.solve(L, g[t])) / np.sqrt(left)))
        return out

    def cluster_sums(self, label: np.ndarray, count: int) -> np.ndarray:
        out = np.zeros((count, self.size))
        for b, g in self.problem.by_observation(self.theta):
            out += sum_by(g, label[b.at], count)
        return out

    def cluster_weights(self, label: np.ndarray, count: int) -> np.ndarray:
        return np.bincount(label, self.problem.obs.weights, count)


@final
@dataclass(frozen=True)
class FlipErrors(ChosenErrors):
    """Covariances c H⁻¹ M H⁻¹ cᵀ of chosen parameters: H⁻¹ e_c by conjugate gradients over passes through the data."""

    problem: FlipProblem
    theta: np.ndarray
    given: Operator | None  # curvature of a part, scaled: the preconditioner; None for that of all the data
    ridge: np.ndarray | float = 0.0  # diagonal of a penalty

    @cached_property
    def curvature(self) -> Operator:
        if self.given is not None:
            return self.given
        return self.problem.curvature(self.theta).shifted(np.broadcast_to(self.ridge, self.theta.shape))

    def columns(self, index: np.ndarray) -> np.ndarray:
        """(q, p) H⁻¹ e_c."""
        unit = np.zeros((len(index), len(self.theta)))
        unit[np.arange(len(index)), index] = 1.0
        return self.solved(unit)

    def solved(self, B: np.ndarray) -> np.ndarray:
        """(q, p) H⁻¹ b for each row of B."""
        inner = self.curvature
        return solved_rows(self._times, B, lambda v: inner.solve(v, SOLVED), SOLVED)

    def _times(self, V: np.ndarray) -> np.ndarray:
        return self.problem.curvature_times(self.theta, V) + self.ridge * V

    @property
    def weights(self) -> np.ndarray:
        return self.problem.obs.weights

    def influences(self, index: np.ndarray) -> tuple[np.ndarray, float]:
        return projections(self.problem, self.theta, self.columns(index)), 0.0

    def simulated(self, index: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
        V, obs, model = self.columns(index), self.problem.obs, self.problem.model
        at = rng.choice(obs.n, draws, p=obs.weights / obs.weights.sum())
        like = obs.take(at)
        sampler = model.sampler(self.theta, model.arguments(like, np.arange(draws)))
        y = sampler.sweep(like.outcome, SWEEPS, rng, model.free_bits(like, np.arange(draws)))
        again = FlipProblem(model, replace(like, outcome=y, weight=None))
        G = projections(again, self.theta, V)
        return float(obs.weights.sum()) * (G.T @ G) / draws


def projections(problem: FlipProblem, theta: np.ndarray, V: np.ndarray) -> np.ndarray:
    """(n, q) w_t g_tᵀ v_c of all observations."""
    return np.concatenate([projected(b, theta, V) for b in problem.blocks()])


def projected(b: FlipBlock, theta: np.ndarray, V: np.ndarray) -> np.ndarray:
    """(b, q) g_tᵀ v_c for each row of V."""
    r = -b.weight * expit(b.changes.times(theta))
    return np.stack([np.einsum("ti,ti->t", r, b.changes.times(v), dtype=np.float64) for v in V], axis=1)
