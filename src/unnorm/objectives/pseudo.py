"""Maximum pseudo-likelihood by name, with errors that one graph allows.

The estimates are those of `ConditionalNCE(BitFlip(every=True))`. Its score Σ_t g_t is no sum over independent bits, so
that −H alone gives errors that are too small. Their variance is taken

- from the scores of independent observations, Σ_t g_t g_tᵀ, where there are many more of these than parameters;
- else from simulations at the estimate: Σ_t Var(g_t | x_t), each y_t drawn anew in its own context. That assumes the
  model, and needs one observation only (a Godambe matrix; Schmid & Hunter 2023).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np

from .._base.numerics import Rng, generator, whole
from ..data.observations import Observations
from ..errors import CombinationError, InputError, unknown
from ..models.base import Model, Unnormalised
from ..models.normalisers import Normaliser, PerContext
from .base import Cluster, Objective
from .flips import FlipProblem

MANY = 10  # independent observations for each parameter, from which their own scores tell the variance
BURN, THIN, LEAST = 10, 2, 20  # sweeps before the first and between simulations, and simulations at least
Errors = Literal["auto", "scores", "simulated"]
UNLIKE = 0.05  # of the observed ones, or zeros: with fewer, simulations are unlike the data
OFTEN = 0.1  # of the draws
LAG, HELD = 10, 2**21  # rounds before a chain left that are not counted, where n × p is at most so many
KNOWN, MOST = 0.03, 16  # relative error of a simulated standard error at which more draws are made, up to so many times
FEW = 50  # bits below which an empty or a full outcome may be chance
DEGENERATE = (
    "The model is degenerate at the estimate: {simulated:.1%} of bits are one in simulations, {observed:.1%} in the "
    "data, so that it describes no outcome like those observed, and has no standard errors. Of graphs, use gwesp(0.25) "
    "and gwdegree(0.5) in place of triangle, ttriple and kstar."
)
SIMULATED = (
    "Standard errors are from {draws:,} simulated outcomes at the estimate (a Godambe matrix): they assume the model."
)
ESCAPED = (
    " Simulations of {lost} of {n} outcomes became empty or complete and were left out: at the estimate the model is "
    "nearly degenerate, and the errors hold near the data only."
)


@final
@dataclass(frozen=True)
class PseudoLikelihood(Objective):
    """Σ_t Σ_i log p_θ(y_ti | the other bits, x_t): logistic regression on change statistics (Besag 1975).

    Args:
        errors: "scores" (robust, from independent observations), "simulated" (a Godambe matrix from simulations at the
            estimate, which assumes the model), or "auto": scores where there are ten observations for each parameter.
        draws: simulated outcomes, over all contexts together; up to 16 times as many where a standard error would be
            known to no better than 3 %, as that of a rare state is.
        cluster: group column or columns whose observations depend on each other, for robust errors.

    Example:
        >>> import numpy as np, unnorm as un
        >>> A = np.zeros((6, 6), int); A[[0, 0, 1, 2, 3, 4], [1, 2, 2, 3, 4, 5]] = 1
        >>> model = un.GraphStatistics("edges + triangle", omega := un.Graphs(6))
        >>> un.fit(model, un.networks(A + A.T, omega), un.PseudoLikelihood(), rng=1).estimate.round(4).tolist()
        [-0.5108, 0.2231]
    """

    errors: Errors = "auto"
    draws: int = 1000
    cluster: Cluster = None

    loss = "conditional"
    cancels = True
    masks = True

    def __post_init__(self) -> None:
        if self.errors not in ("auto", "scores", "simulated"):
            raise InputError(unknown("errors", self.errors, ("auto", "scores", "simulated")))
        whole(self.draws, "draws of PseudoLikelihood", least=LEAST)

    def default_normaliser(self, model: Unnormalised, obs: Observations, anchored: bool = True) -> Normaliser:
        return PerContext()

    def bind(self, model: Model, obs: Observations, normaliser: Normaliser, rng: Rng = None) -> FlipProblem:
        if normaliser.layout(obs).size != obs.n:
            raise CombinationError(
                f"In {self.name} the normalising constants cancel: leave normaliser out (got {normaliser!r})."
            )
        if model.domain.free is None or not model.linear:
            raise CombinationError(
                f"{self.name} is for models of bits that are linear in their parameters, such as un.GraphStatistics; "
                f"got {type(model).__name__} on {model.domain!r}. Use un.Exact(), or un.Logistic(…)."
            )
        few = float(obs.weights.sum()) < MANY * model.size
        flips = int(model.domain.free.sum())
        reference = {"reference": f"each of {flips} bits of the observed outcome flipped once", "drawn": False}
        if self.errors == "scores" or (self.errors == "auto" and not few):
            return FlipProblem(model, obs, reference)
        rounds = max(LEAST, -(-self.draws // obs.n))
        return FlipProblem(model, obs, reference, simulated=Godambe(model, obs, rounds, generator(rng)))

    @classmethod
    def examples(cls) -> tuple[PseudoLikelihood, ...]:
        return ()

    def to_dict(self) -> dict[str, Any]:
        return {"objective": self.name, "errors": self.errors, "draws": self.draws, "cluster": self.cluster}


@final
class Godambe:
    """Σ_t w_t Var(g_t | x_t) at θ, from `rounds` outcomes of each context.

    g_t has mean zero, but for graphs with missing ties: these count as absent in the change statistics of others.
    """

    def __init__(self, model: Model, obs: Observations, rounds: int, rng: np.random.Generator) -> None:
        self._model, self._obs, self._rounds, self._rng = model, obs, rounds, rng
        self._known: tuple[bytes, np.ndarray | None, str] | None = None

    def spread(self, theta: np.ndarray) -> np.ndarray | None:
        return self._at(theta)[1]

    def notes(self, theta: np.ndarray) -> tuple[str, ...]:
        return (self._at(theta)[2],)

    def _at(self, theta: np.ndarray) -> tuple[bytes, np.ndarray | None, str]:
        if self._known is None or self._known[0] != theta.tobytes():
            self._known = (theta.tobytes(), *self._simulated(theta))
        return self._known

    def _simulated(self, theta: np.ndarray) -> tuple[np.ndarray | None, str]:
        model, obs, rng = self._model, self._obs, self._rng
        at = np.arange(obs.n)
        free = ~model.held_bits(obs, at)
        sampler = model.sampler(theta, model.arguments(obs, at))
        hidden = np.zeros_like(free) if obs.masks is None else obs.masks.missing
        y, ones, rounds = obs.outcome, [], self._rounds
        observed = float(obs.outcome[free & ~hidden].mean())
        squares = SquaresNearData(obs.n, model.size, observed, free, centred=np.any(hidden & free, axis=1))
        V = np.linalg.pinv(FlipProblem(model, obs).information(theta), hermitian=True)
        fourth = np.zeros((2, model.size))  # Σ u² and Σ u⁴ of u = V g, which a standard error is made of
        root = np.sqrt(np.maximum(obs.weights, 1e-300))[:, None]
        while len(ones) < rounds:
            y = sampler.sweep(y, THIN if ones else BURN, rng, free)
            ones.append(float(y[free].mean()))
            again = FlipProblem(model, replace(obs, outcome=np.where(hidden, 0.0, y)))
            g = np.concatenate([g for _, g in again.by_observation(theta)]) / root
            squares.add(y, g)
            fourth += [np.sum((g @ V) ** power, axis=0) for power in (2, 4)]
            if len(ones) == rounds < MOST * self._rounds and _noise(fourth[0], fourth[1], rounds * obs.n) > KNOWN:
                rounds *= 2
        for _ in range(squares.lag):  # those that are on their way arrive
            y = sampler.sweep(y, THIN, rng, free)
            squares.add(y, None)
        late = np.array(ones[rounds // 2 :])  # the chains begin at the data, and may take a while to leave them
        unlike = unlike_data(late, observed)
        often = OFTEN if free.sum() >= FEW else 0.9
        if np.mean(unlike) > often:
            return None, DEGENERATE.format(observed=observed, simulated=late[unlike].mean())
        if squares.share > OFTEN:
            return None, DEGENERATE.format(observed=observed, simulated=squares.density)
        lost = int(squares.lost.sum())
        more = ESCAPED.format(lost=lost, n=obs.n) if lost else ""
        return squares.total(), SIMULATED.format(draws=int(squares.kept.sum())) + more


def _noise(squares: np.ndarray, fourths: np.ndarray, n: int) -> float:
    """The largest relative Monte Carlo error of √Σ u_j², of n independent draws."""
    known = squares > 0.0
    return float(np.sqrt(np.max(fourths[known] / squares[known] ** 2 - 1.0 / n, initial=0.0)) / 2.0)


def unlike_data(ones: np.ndarray, observed: float) -> np.ndarray:
    """Whether a share of ones is that of an empty or a complete outcome, and the data's is not."""
    return (ones < UNLIKE * observed) | (ones > 1 - UNLIKE * (1 - observed))


@final
class SquaresNearData:
    """Σ_t mean g_t g_tᵀ over the draws of each context, from chains that start at the data, up to where they leave it.

    Near degeneracy a chain may stay for a long time where the data are, and then become complete within a few sweeps:
    some such draws would make up nearly all of the sum. What a chain gave just before it left is not counted either.
    """

    def __init__(self, n: int, size: int, observed: float, free: np.ndarray, centred: np.ndarray | None = None) -> None:
        self._observed, self._free = observed, free
        self._centred = np.zeros(n, dtype=bool) if centred is None else centred  # contexts where g has another mean
        self._means = np.zeros((n, size))
        self._judged = free.sum(axis=1) >= FEW  # smaller outcomes are empty or complete by chance
        self._sums = np.zeros((size, size))
        self._pending: deque[np.ndarray] = deque()
        self.lag = LAG if n * size <= HELD else 0
        self.kept, self.lost = np.zeros(n), np.zeros(n, dtype=bool)
        self._rounds, self._gone, self._dense = 0, 0, 0.0

    def add(self, y: np.ndarray, g: np.ndarray | None) -> None:
        """The chains' outcomes and scores, one round more; without scores, what is pending is judged."""
        ones = (y * self._free).sum(axis=1) / np.maximum(self._free.sum(axis=1), 1)
        self.lost |= self._judged & unlike_data(ones, self._observed)
        self._rounds += 1
        self._gone += int(self.lost.sum())
        self._dense += float(ones[self.lost].sum())
        if g is not None:
            self._pending.append(g)
        if self._pending and (g is None or len(self._pending) > self.lag):
            self._count(self._pending.popleft())

    def _count(self, g: np.ndarray) -> None:
        here = ~self.lost
        self._sums += g[here].T @ g[here]
        self._means[here] += g[here]
        self.kept += here

    @property
    def share(self) -> float:
        """Of draws after a chain had left."""
        return self._gone / (self._rounds * len(self.lost))

    @property
    def density(self) -> float:
        """Share of ones in these."""
        return self._dense / max(self._gone, 1)

    def total(self) -> np.ndarray:
        """(p, p), as if each context had as many draws."""
        off, kept = self._means[self._centred], np.maximum(self.kept[self._centred], 1.0)
        sums = self._sums - (off.T / kept) @ off
        return sums * (len(self.kept) / max(self.kept.sum() - self._centred.sum(), 1.0))
