"""𝓛, 𝓜 and their relatives: an objective meets a model, a normaliser and observations, and becomes a `Problem`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import numpy as np

from .._base.numerics import Rng
from .._base.registry import Registry
from ..data.observations import Observations
from ..engine.resources import Resources
from ..errors import CombinationError, InputError
from ..models.base import Model, Unnormalised
from ..models.normalisers import Normaliser
from .scores import Scores, frequency

if TYPE_CHECKING:
    from ..models.operators import Operator
    from ..references.base import Reference
    from ..references.points import PointScheme
    from .additive import AdditiveProblem
    from .rows import RowSource

LossName = Literal["poisson", "ncd", "ranking", "conditional"]
Cluster = str | tuple[str, ...] | None


@dataclass(frozen=True)
class Derivatives:
    """Value, gradient and *negative* Hessian of an objective in θ, normalising constants eliminated."""

    value: float
    gradient: np.ndarray
    information: np.ndarray
    scale: np.ndarray  # (p,) Σ w E[∂f_j²]: what the curvature would be without any normaliser; the yardstick for "flat"


@dataclass(frozen=True)
class Constants:
    """What an objective says of the normalising constants at its maximum."""

    nu: np.ndarray  # as many as the normaliser has, or one for each observation; empty where they cancel
    slope: np.ndarray | None = None  # (q, p) −dν/dθ, where ν follows from θ
    own: bool = False  # whether ν has coordinates of its own in the scores, after θ's
    known: bool = False  # given and not estimated: its error is zero
    delta: float | None = None  # of χ = −log Z + δ, where it is one number


class ChosenErrors(ABC):
    """Covariances of chosen parameters at the maximum, one solve for each."""

    @property
    @abstractmethod
    def weights(self) -> np.ndarray:
        """(n,) of the observations."""

    @abstractmethod
    def influences(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        """(n, q) w_t g_tᵀ H⁻¹ e_c, what each observation adds to the estimates; and the (q, q) covariance that
        reference points shared by all of them add."""

    def empirical(self, index: np.ndarray) -> np.ndarray:
        """(q, q) from the scores of the observations (Godambe)."""
        G, points = self.influences(index)
        return frequency(float(self.weights.sum())) * (G / np.maximum(self.weights, 1e-300)[:, None]).T @ G + points

    @abstractmethod
    def simulated(self, index: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
        """(q, q) with the scores of outcomes simulated from the model: it must be right."""


class ParametricProblem(ABC):
    """A function of the flat θ to be maximised, with what inference needs to know at the maximum."""

    lasso: np.ndarray | float = 0.0  # (p,) weight of |θ|, which the solver treats, as it has no slope at zero
    why_flat: ClassVar[str] = (
        "given the context it does not vary over the domain, so that the normaliser absorbs it. Remove it, or make it "
        "depend on y."
    )
    why_alike: ClassVar[str] = (
        "up to a function of the context, which the normaliser absorbs, one is a linear combination of the others. "
        "Remove one of them."
    )

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """One for each entry of θ."""

    @property
    @abstractmethod
    def start(self) -> np.ndarray: ...

    @property
    @abstractmethod
    def concave(self) -> bool: ...

    @property
    def linear(self) -> bool:
        """Whether f is linear in θ, so that what is not identified anywhere is not identified at the start."""
        return self.concave

    @abstractmethod
    def value(self, theta: np.ndarray) -> float: ...

    @abstractmethod
    def derivatives(self, theta: np.ndarray) -> Derivatives: ...

    @abstractmethod
    def scores(self, theta: np.ndarray) -> Scores:
        """The score's pieces at the maximum θ; its first coordinates are θ's."""

    @abstractmethod
    def constants(self, theta: np.ndarray) -> Constants:
        """The normalising constants at the maximum θ."""

    def made_of(self) -> RowSource | None:
        """Its rows, where it is a sum over rows or over choices among them."""
        return None

    def loglik(self, theta: np.ndarray) -> float:
        """𝓛(θ) where the objective is a likelihood (`Objective.is_likelihood`), else the objective itself."""
        return self.value(theta)

    def report(self, theta: np.ndarray) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Notes for the user and figures for the record, at the maximum."""
        return (), {}

    def slope(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient: what a solver for many parameters asks for."""
        now = self.derivatives(theta)
        return now.value, now.gradient

    @property
    def scale(self) -> np.ndarray:
        """(p,) Σ w E[∂f_j²], as in `Derivatives`."""
        return self.derivatives(self.start).scale

    def curvature(self, theta: np.ndarray) -> Operator | None:
        """−H by its products; None where only the matrix is known."""
        return None

    def part(self, rng: np.random.Generator) -> tuple[ParametricProblem, float] | None:
        """The problem of some of the observations, and their share; None where all of them cost little."""
        return None

    def chosen(
        self, theta: np.ndarray, curvature: Operator | None, ridge: np.ndarray | float = 0.0
    ) -> ChosenErrors | None:
        """How errors of single parameters are computed, where p × p numbers are too many; `ridge`: of a penalty."""
        return None

    def identifying(self, now: Derivatives) -> Derivatives:
        """The same with the matrix whose rank tells whether every direction of θ is determined."""
        return now

    def unbounded(self, direction: np.ndarray) -> bool:
        """Whether the objective never falls along `direction`: a certificate that no maximum exists."""
        return False

    def finer(self) -> ParametricProblem | None:
        """A more accurate version of this problem, whatever its accuracy is now; None where there is none."""
        return None

    def refined(self, theta: np.ndarray) -> ParametricProblem | None:
        """A more accurate version of this problem where its accuracy at θ is not enough; else None."""
        return None


def cluster_labels(cluster: Cluster, obs: Observations) -> np.ndarray | None:
    """(n,) the cluster of each observation, 0 … C − 1, from group columns; None where none are named.

    A cluster in which nothing weighs does not count: its observations, whose scores are zero, are put with the first.
    """
    if cluster is None:
        return None
    names = (cluster,) if isinstance(cluster, str) else tuple(cluster)
    missing = [name for name in names if name not in obs.group]
    if missing:
        raise InputError(
            f"cluster must name group columns ({', '.join(obs.group) or 'there are none'}); got {missing}."
        )
    labels = [np.unique(obs.group[name], return_inverse=True)[1] for name in names]
    label = np.unique(np.stack(labels, axis=1), axis=0, return_inverse=True)[1].ravel()
    live = np.bincount(label, obs.weights) > 0
    return np.where(live, np.cumsum(live) - 1, 0)[label]


class ModelProblem(ParametricProblem):
    """One whose θ is the model's own."""

    model: Model

    @property
    def names(self) -> tuple[str, ...]:
        return self.model.names

    @property
    def start(self) -> np.ndarray:
        return self.model.start

    @property
    def concave(self) -> bool:
        return self.model.linear


class Objective(ABC):
    """A cost function to be maximised over θ and the normalising constants. What it is, it declares here."""

    loss: LossName  # what one stochastic step estimates
    cancels: bool = False  # whether the normalising constants cancel, so that there are none to estimate
    reference: Reference | None = None  # q, where reference points are drawn
    per_point: int | None = None
    total: int | None = None
    points: PointScheme | None = None
    masks: bool = False  # whether it leaves out bits that are fixed or missing
    takes_base: bool = False  # whether f may be relative to a law (un.Tilt)
    even_points: bool = False  # whether evenly spread points (un.Lattice) suit it
    cluster: Cluster = None

    @property
    def by_products(self) -> bool:
        """Whether its problem has slopes and curvatures without a matrix of p × p."""
        return False

    @property
    def takes_missing(self) -> bool:
        """Whether outcomes may lack some of their entries."""
        return False

    @property
    def name(self) -> str:
        """As users write it."""
        return type(self).__name__

    def is_likelihood(self, obs: Observations, normaliser: Normaliser) -> bool:
        """Whether the maximum with this normaliser is that of 𝓛, so that likelihood ratios and AIC mean something."""
        return False

    def sharing(self, model: Unnormalised, obs: Observations, normaliser: Normaliser) -> tuple[Any, ...] | None:
        """What reference points are drawn from and how: objectives that say the same can share them. None for none."""
        return None

    def draw(self, model: Unnormalised, obs: Observations, normaliser: Normaliser | None, rng: Rng) -> Any:
        """The labelled rows, for objectives that contrast data with reference points."""
        raise CombinationError(f"{self.name} draws no reference points.")

    def holding(self, drawn: Any) -> Objective:
        """The same objective on points that were drawn already."""
        raise CombinationError(f"{self.name} draws no reference points.")

    def by_rows(self, obs: Observations, normaliser: Normaliser) -> bool:
        """Whether smooth terms can go through the additive engine, as rows of a likelihood (`additive`)."""
        return False

    def additive(self, model: Unnormalised, obs: Observations, normaliser: Normaliser, rng: Rng) -> AdditiveProblem:
        """The objective as rows of an additive model, for smooth terms in f or χ."""
        raise CombinationError(
            f"{self.name} takes no smooth normaliser: use un.Logistic, un.Importance or un.Poisson with it."
        )

    def finer(self, model: Unnormalised, obs: Observations, order: int) -> Objective | None:
        """The same with twice the order in `additive`, where the user left it open; else None."""
        return None

    def coarsest(self, model: Unnormalised) -> int | None:
        """The order with which `additive` begins; None where there is no rule to refine."""
        return None

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Objective:
        """The objective that `to_dict` described."""
        return cls(**{name: value for name, value in description.items() if name != "objective"})

    @classmethod
    def examples(cls) -> tuple[Objective, ...]:
        """Small instances for the generic tests, for data with contexts; `total` of them serves IID data."""
        return (cls(),)

    @abstractmethod
    def default_normaliser(self, model: Unnormalised, obs: Observations, anchored: bool = True) -> Normaliser:
        """Where the user names none; `anchored`: whether the solver can take constants that follow θ."""

    @abstractmethod
    def bind(self, model: Model, obs: Observations, normaliser: Normaliser, rng: Rng) -> ParametricProblem:
        """The objective as a function of the flat θ."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]: ...


REGISTRY: Registry[Objective] = Registry("objective", Objective)  # filled by registry.py


@final
@dataclass(frozen=True)
class Problem:
    """The parts of one estimation, met: what every solver takes. A solver asks for the form that it can climb."""

    model: Unnormalised
    obs: Observations
    objective: Objective
    normaliser: Normaliser
    resources: Resources = field(default_factory=Resources)  # where rows may live

    @property
    def smooth(self) -> bool:
        """Whether there are smooth terms, in f or in χ."""
        return self.model.additive or self.normaliser.terms is not None

    @property
    def by_rows(self) -> bool:
        """Whether its smooth terms can go through the additive engine."""
        return self.normaliser.terms is not None or self.objective.by_rows(self.obs, self.normaliser)

    @property
    def is_likelihood(self) -> bool:
        return self.objective.is_likelihood(self.obs, self.normaliser)

    def parametric(self, rng: Rng, model: Model | None = None) -> ParametricProblem:
        """As a function of the flat θ: of the model, or of another in its place (its terms as a `Basis`)."""
        return self.objective.bind(self.model.flat() if model is None else model, self.obs, self.normaliser, rng)

    def additive(self, rng: Rng) -> AdditiveProblem:
        """As rows of an additive model."""
        found = self.objective.additive(self.model, self.obs, self.normaliser, rng)
        return replace(found, resources=self.resources) if self.resources.asked else found
