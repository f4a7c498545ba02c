"""Monte Carlo maximum likelihood (Geyer & Thompson 1992), for models that simulate themselves but cannot be summed.

With M draws y_m of every context at θ₀, s centred at their mean s̄ and δ = θ − θ₀,

    ℓ(θ) − ℓ(θ₀) ≈ Σ_t w_t { δᵀ (s(y_t) − s̄_t) − log M⁻¹ Σ_m exp δᵀ (s(y_tm) − s̄_t) },

which is concave and good near θ₀. Far from the maximum the observed statistics are replaced by a point on the way from
s̄ to them (Hummel, Hunter & Handcock 2012), as far as the draws can see: log weights may have a standard deviation of
`REACH`. Then θ₀ moves on, until the whole way is one step and the draws' error is small beside the
sampling error. The draws enter the scores as reference points do: se² = se_sampling² + se_reference².

Ties that are missing are summed over (Handcock & Gile 2010): s(y_t) becomes a second set of draws, of the missing ties
given the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from .._base.numerics import Rng, flag, generator, whole
from ..data.observations import Observations
from ..errors import CombinationError, ConvergenceError, InputError, NoEstimateError, listing
from ..models.base import Model, Unnormalised
from ..models.normalisers import Normaliser, PerContext
from .base import Cluster, Constants, Derivatives, Objective, ParametricProblem
from .flips import FlipProblem, pseudo_maximum
from .scores import Drawn, Reselection, Scores, frequency, sum_by
from .simulations import Draws, Simulator, beyond, path_loglik

FIRST = 250  # draws over all contexts while θ₀ is on its way
REACH = 1.5  # sd of the log weights of one context that a step may cause
LEASH, LAST_LEASH = 0.05, 1e-3  # of the information at θ₀: half its square is taken off, 3e-4 se at the last step
NEAR = 0.3  # … at the last step, for estimates that need no further draws
STAGES = 40
ALIKE = 1e-8  # least eigenvalue of the draws' correlations
DEGENERATE = (
    "The model is degenerate near the data: graphs simulated from it are all but empty or all but complete, and the "
    "observed ones are neither. Terms such as triangle, ttriple and kstar do this: use gwesp(0.25) and gwdegree(0.5) "
    "in their place, or un.PseudoLikelihood(), whose estimates then describe no likely graph."
)


@final
@dataclass(frozen=True)
class MonteCarloML(Objective):
    """Maximum likelihood with simulated moments, for models that give change statistics (`un.GraphStatistics`).

    Args:
        draws: graphs simulated for the last step, over all contexts together; doubled until `precision` is met.
        precision: largest Monte Carlo error of an estimate, as a share of its standard error.
        thin: toggles proposed from draw to draw; default as many as there are free dyads.
        loglik: whether to compute the log-likelihood at the estimate too, by path sampling.
        cluster: group column or columns whose observations depend on each other, for robust errors.

    Standard errors are from the simulated Fisher information: they assume the model, whatever the number of graphs.

    Example:
        >>> import numpy as np, unnorm as un
        >>> A = np.zeros((6, 6), int); A[[0, 0, 1, 2, 3, 4], [1, 2, 2, 3, 4, 5]] = 1
        >>> model = un.GraphStatistics("edges + triangle", omega := un.Graphs(6))
        >>> fit = un.fit(model, un.networks(A + A.T, omega), un.MonteCarloML(draws=500), rng=1)
        >>> fit.names
        ('edges', 'triangle')
    """

    draws: int = 2000
    precision: float = 0.1
    thin: int | None = None
    loglik: bool = True
    cluster: Cluster = None

    loss = "poisson"
    cancels = True
    masks = True

    def __post_init__(self) -> None:
        whole(self.draws, "draws of MonteCarloML", least=100)
        object.__setattr__(self, "loglik", flag(self.loglik, "loglik of MonteCarloML"))
        if self.thin is not None:
            whole(self.thin, "thin of MonteCarloML", least=1)
        if not 0 < self.precision <= 1:
            raise InputError(
                f"precision must lie in (0, 1], the Monte Carlo error as a share of se; got {self.precision}."
            )

    def is_likelihood(self, obs: Observations, normaliser: Normaliser) -> bool:
        return self.loglik

    def default_normaliser(self, model: Unnormalised, obs: Observations, anchored: bool = True) -> Normaliser:
        return PerContext()

    def bind(self, model: Model, obs: Observations, normaliser: Normaliser, rng: Rng = None) -> MonteCarloProblem:
        if normaliser.layout(obs).size != obs.n:
            raise CombinationError(f"{self.name} needs no normaliser: leave it out (got {normaliser!r}).")
        if not model.simulates:
            raise CombinationError(
                f"{self.name} simulates from the model, which {type(model).__name__} does not offer: use "
                "un.GraphStatistics(…), or objective=un.Exact() or un.ConditionalNCE(un.BitFlip(every=True))."
            )
        if extreme := model.extremes(obs):
            raise NoEstimateError(
                f"The estimate does not exist: {listing(extreme)} is as small or as large as it can be in every "
                "observation, so that the likelihood rises without end. Remove it, or add data."
            )
        if way := model.separated(obs):
            raise NoEstimateError(
                f"The estimate does not exist: the likelihood rises without end as {', '.join(way)}, as these separate "
                "the ties from the gaps (a kind of dyad that never has a tie, or always has one). Remove one of them, "
                "or add data."
            )
        simulator = Simulator(model, obs, self.thin, generator(rng))
        begun = [
            self._begun(simulator, theta)
            for theta in (pseudo_maximum(FlipProblem(model, obs)), model.independent(obs)[0])
        ]
        near = [one.bounded() for one in begun if one is not None and not one.lost]
        if not near:
            raise _no_estimate(simulator, [one.drawn for one in begun if one is not None])
        return max(near, key=lambda one: one.gamma)

    def _begun(self, simulator: Simulator, theta: np.ndarray | None) -> MonteCarloProblem | None:
        """The problem with draws at θ, from chains that start at the data."""
        if theta is None:
            return None
        return MonteCarloProblem(self, simulator.restarted(), simulator(theta, FIRST, first=True))

    @classmethod
    def examples(cls) -> tuple[MonteCarloML, ...]:
        return ()

    def to_dict(self) -> dict[str, Any]:
        names = ("draws", "precision", "thin", "loglik", "cluster")
        return {"objective": self.name, **{name: getattr(self, name) for name in names}}


@final
@dataclass(frozen=True)
class MonteCarloProblem(ParametricProblem):
    """ℓ(θ) − ℓ(θ₀) from draws at θ₀, towards a share γ of the way to the observed statistics."""

    objective: MonteCarloML
    simulator: Simulator
    drawn: Draws
    gamma: float = 1.0
    stage: int = 0
    stages: tuple[float, ...] = field(default=())  # γ of each stage so far

    why_flat: ClassVar[str] = "it is the same in every graph that was drawn. Remove it."
    why_alike: ClassVar[str] = (
        "in the graphs that were drawn one is a linear combination of the others. Remove one of them."
    )

    @property
    def names(self) -> tuple[str, ...]:
        return self.simulator.model.names

    @property
    def start(self) -> np.ndarray:
        return self.drawn.theta

    @property
    def concave(self) -> bool:
        return self.drawn.given is None  # a difference of two convex functions where ties are missing

    @property
    def linear(self) -> bool:
        return True

    @cached_property
    def _gap(self) -> np.ndarray:
        """Σ_t w_t (s(y_t) − s̄_t), the score at θ₀."""
        return self.drawn.weight @ (self.drawn.observed - self.drawn.mean)

    @property
    def lost(self) -> bool:
        """Whether the draws are unlike the data altogether, or do not vary."""
        still = np.ptp(self.drawn.centred, axis=(0, 1)) == 0.0
        return self.simulator.degenerate(self.drawn) or bool(still.any())

    @property
    def alike(self) -> bool:
        """Whether statistics that varied by themselves at an earlier θ₀ no longer do: draws on their way to an edge."""
        V = np.cov(self.drawn.centred.reshape(-1, len(self.start)).T).reshape(len(self.start), -1)
        root = np.sqrt(np.diag(V))
        return bool(root.all()) and float(np.linalg.eigvalsh(V / np.outer(root, root))[0]) < ALIKE

    def bounded(self) -> MonteCarloProblem:
        """The same, with γ as large as the draws can see."""
        now = self.derivatives(self.start)
        V = np.linalg.pinv(now.information, hermitian=True)
        step = V @ self._gap
        worst = float(np.sqrt(np.max(np.var(self.drawn.centred @ step, axis=1))))
        gamma = 1.0 if worst <= REACH else REACH / worst
        return replace(self, gamma=gamma, stages=(*self.stages, gamma))

    @cached_property
    def _leash(self) -> np.ndarray:
        """A little of the information at θ₀: keeps steps finite where the observed statistics lie beyond the draws."""
        zero = np.zeros_like(self.start)
        return (LEASH if self.gamma < 1.0 else LAST_LEASH) * self.drawn.tilted(zero)[2]

    def _parts(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, gradient, information."""
        d, delta = self.drawn, theta - self.start
        value, mean, cov = d.tilted(delta)
        pull = self._leash @ delta
        value = self.gamma * (self._gap @ delta) - value - 0.5 * (delta @ pull)
        gradient, cov = self.gamma * self._gap - mean - pull, cov + self._leash
        if d.given is not None:
            more, other, within = d.given.tilted(delta)
            value, gradient, cov = value + more, gradient + other, cov - within
        return float(value), gradient, cov

    def value(self, theta: np.ndarray) -> float:
        return self._parts(theta)[0]

    def derivatives(self, theta: np.ndarray) -> Derivatives:
        scale = self.drawn.weight @ np.mean(self.drawn.centred**2, axis=1) + 1e-300
        return Derivatives(*self._parts(theta), scale)

    def refined(self, theta: np.ndarray) -> ParametricProblem | None:
        step = theta - self.start
        moved = float(np.sqrt(np.max(np.var(self.drawn.centred @ step, axis=1))))
        if self.stage >= STAGES and beyond([self.drawn], self.simulator.others()) is not None:
            raise _no_estimate(self.simulator, [self.drawn])
        if self.stage >= STAGES:
            raise ConvergenceError(
                f"Monte Carlo maximum likelihood has not reached the observed statistics after {STAGES} sets of draws. "
                f"{DEGENERATE}"
            )
        if self.gamma < 1.0:
            return self._again(theta, self.drawn.size)
        final = self.drawn.size >= self.objective.draws
        share = self.share(theta)
        if final and moved <= NEAR and share <= self.objective.precision:
            return None
        if final and moved <= NEAR:  # draws enough for the precision, and a little more
            more = min(max(1.2 * (share / self.objective.precision) ** 2, 2.0), 8.0)
            return self._again(theta, int(more * self.drawn.size))
        return self._again(theta, max(self.objective.draws, self.drawn.size))

    def _again(self, theta: np.ndarray, size: int) -> MonteCarloProblem:
        """The same with draws at θ, or nearer to θ₀ where those at θ are lost."""
        tried = [self.drawn]
        for _ in range(6):
            there = replace(self, drawn=self.simulator(theta, size), gamma=1.0, stage=self.stage + 1)
            if not there.lost and not (there.alike and not self.alike):
                return there.bounded()
            tried.append(there.drawn)
            self.simulator.restart()
            theta = self.start + 0.5 * (theta - self.start)
        raise _no_estimate(self.simulator, tried)

    def share(self, theta: np.ndarray) -> float:
        """The largest Monte Carlo error of an estimate, as a share of its standard error."""
        information = self._parts(theta)[2]
        V = np.linalg.pinv(information, hermitian=True)
        return float(np.sqrt(np.max(np.diag(V @ self.monte_carlo(theta) @ V) / np.diag(V))))

    def monte_carlo(self, theta: np.ndarray) -> np.ndarray:
        """(p, p) variance of the score over draws."""
        delta = theta - self.start
        out = self.drawn.error(delta)
        return out if self.drawn.given is None else out + self.drawn.given.error(delta)

    def constants(self, theta: np.ndarray) -> Constants:
        return Constants(np.zeros(0))

    @cached_property
    def _path(self) -> tuple[float, float]:
        return path_loglik(self.simulator, self.start)

    def loglik(self, theta: np.ndarray) -> float:
        """ℓ(θ): by path sampling to θ₀, and from there by the draws at hand."""
        if not self.objective.loglik:
            return float("nan")
        return self._path[0] + self.value(theta)

    def report(self, theta: np.ndarray) -> tuple[tuple[str, ...], dict[str, Any]]:
        size, share = self.drawn.size, self.share(theta)
        notes = [
            f"Monte Carlo maximum likelihood: {len(self.stages)} sets of draws, the last of {size:,} graphs; Monte "
            f"Carlo error at most {share:.2g} of a standard error. Standard errors are from the simulated Fisher "
            "information."
        ]
        if absent := self.simulator.left_absent:
            notes.append(
                f"{absent:,} of the missing ties were missing or absent in the graph before too, which the model "
                "reads: these count as absent in every draw, and are not summed over."
            )
        figures: dict[str, Any] = {"draws": size, "stages": list(self.stages), "accepted": self.drawn.accepted}
        if self.objective.loglik:
            figures["loglik_se"] = self._path[1]
            notes.append(f"The log-likelihood is by path sampling, with a Monte Carlo error of {self._path[1]:.2g}.")
        return tuple(notes), figures

    def scores(self, theta: np.ndarray) -> MonteCarloScores:
        d = self.drawn
        mean = d.means(theta - self.start) + d.mean
        seen = d.observed if d.given is None else d.given.means(theta - self.start) + d.given.mean
        return MonteCarloScores(
            information=self._parts(theta)[2],
            draws=self.monte_carlo(theta),
            by_context=seen - mean,
            weights=d.weight,
        )


def _no_estimate(simulator: Simulator, draws: list[Draws]) -> NoEstimateError:
    """Whether the data lie at the edge of what the statistics can be, or the model is degenerate near them."""
    way, names = beyond(draws, simulator.others()), simulator.model.names
    if way is None:
        return NoEstimateError(DEGENERATE)
    loading = way * np.std(np.concatenate([one.centred.reshape(-1, len(way)) for one in draws]), axis=0)
    signs = [
        f"{name} → {'+' if v > 0 else '−'}∞" for name, v in zip(names, loading) if abs(v) > 0.05 * np.abs(loading).max()
    ]
    return NoEstimateError(
        f"The estimate does not seem to exist: of {sum(one.size for one in draws):,} graphs drawn none goes further "
        f"than the data in one direction, along which the likelihood then rises without end: {', '.join(signs)}. "
        "Remove one of these statistics, or add data."
    )


@final
@dataclass(frozen=True)
class MonteCarloScores(Scores):
    """s(y_t) − E s by observation, E from draws."""

    information: np.ndarray
    draws: np.ndarray  # (p, p) the draws' part of the variance
    by_context: np.ndarray  # (n, p)
    weights: np.ndarray
    penalty: np.ndarray | None = None
    reselection: Reselection | None = None
    smoothing: np.ndarray | None = None

    drawn = Drawn.IID
    shared = False
    model_based = True
    counts_points = False

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.information)

    @property
    def weight(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return float(self.weights.sum())

    def points_spread(self, power: int) -> np.ndarray:
        return self.draws

    def data_spread(self) -> np.ndarray:
        return self.information

    def empirical_spread(self) -> np.ndarray:
        g = self.by_context
        return frequency(self.weight) * (g.T @ (self.weights[:, None] * g)) - self.draws

    def cluster_sums(self, label: np.ndarray, count: int) -> np.ndarray:
        return sum_by(self.weights[:, None] * self.by_context, label, count)

    def cluster_weights(self, label: np.ndarray, count: int) -> np.ndarray:
        return np.bincount(label, self.weights, count)
