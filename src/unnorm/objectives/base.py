"""𝓛, 𝓜 and their relatives: an objective meets a model, a normaliser and observations, and becomes a `Problem`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._base.numerics import Rng
from ..data.observations import Observations
from ..errors import CombinationError, InputError
from ..inference.evidence import Later
from ..inference.sandwich import ErrorParts
from ..models.base import Model, Unnormalised
from ..models.normalisers import Normaliser
from .smooth import SmoothProblem


@dataclass(frozen=True)
class Derivatives:
    """Value, gradient and *negative* Hessian of an objective in θ, normalising constants eliminated."""

    value: float
    gradient: np.ndarray
    information: np.ndarray
    scale: np.ndarray  # (p,) Σ w E[∂f_j²]: what the curvature would be without any normaliser; the yardstick for "flat"


@dataclass(frozen=True)
class Solution:
    """What a problem knows at its maximum, in the words that every objective shares."""

    theta: np.ndarray
    covariance: np.ndarray | None  # of θ
    nu: np.ndarray  # the normalising constants, as many as the normaliser has (or one for each observation)
    nu_se: np.ndarray | None
    loglik: float  # 𝓛(θ̂), or what the objective has in its place
    value: float  # the objective itself at the maximum
    notes: tuple[str, ...] = ()
    diagnostics: dict[str, Any] = field(default_factory=dict)
    errors: ErrorParts | None = None  # where reference points were drawn: sampling and reference error apart
    evidence: Later | None = None  # what `Fit.advise` reads, worked out when asked for


@dataclass(frozen=True)
class View:
    """How a penalised problem is looked at: its penalty, and terms (functions of θ) in place of single coefficients."""

    penalty: np.ndarray  # S_λ (p, p)
    names: tuple[str, ...]
    variances: Callable[[np.ndarray], np.ndarray]  # covariance of θ → the variance of each name


class Problem(ABC):
    """A function of the flat θ to be maximised."""

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

    @abstractmethod
    def value(self, theta: np.ndarray) -> float: ...

    @abstractmethod
    def derivatives(self, theta: np.ndarray) -> Derivatives: ...

    @abstractmethod
    def solution(self, theta: np.ndarray, view: View | None = None) -> Solution:
        """What is known at the maximum θ: of this problem, or of this less ½ θᵀ S_λ θ where a view says so."""

    def unbounded(self, direction: np.ndarray) -> bool:
        """Whether the objective never falls along `direction`: a certificate that no maximum exists."""
        return False

    def finer(self) -> Problem | None:
        """A more accurate version of this problem, whatever its accuracy is now; None where there is none."""
        return None

    def refined(self, theta: np.ndarray) -> Problem | None:
        """A more accurate version of this problem where its accuracy at θ is not enough; else None."""
        return None


def cluster_labels(cluster: str | tuple[str, ...] | None, obs: Observations) -> np.ndarray | None:
    """(n,) the cluster of each observation, 0 … C − 1, from group columns; None where none are named."""
    if cluster is None:
        return None
    names = (cluster,) if isinstance(cluster, str) else tuple(cluster)
    missing = [name for name in names if name not in obs.group]
    if missing:
        raise InputError(
            f"cluster must name group columns ({', '.join(obs.group) or 'there are none'}); got {missing}."
        )
    labels = [np.unique(obs.group[name], return_inverse=True)[1] for name in names]
    return np.unique(np.stack(labels, axis=1), axis=0, return_inverse=True)[1].ravel()


class Objective(ABC):
    """A cost function to be maximised over θ and the normalising constants."""

    def sharing(self, model: Unnormalised, obs: Observations, normaliser: Normaliser) -> tuple[Any, ...] | None:
        """What reference points are drawn from and how: objectives that say the same can share them. None for none."""
        return None

    def draw(self, model: Unnormalised, obs: Observations, normaliser: Normaliser | None, rng: Rng) -> Any:
        """The labelled rows, for objectives that contrast data with reference points."""
        raise CombinationError(f"{type(self).__name__} draws no reference points.")

    def holding(self, drawn: Any) -> Objective:
        """The same objective on points that were drawn already."""
        raise CombinationError(f"{type(self).__name__} draws no reference points.")

    def by_rows(self, obs: Observations, normaliser: Normaliser) -> bool:
        """Whether smooth terms can go through the additive engine, as rows of a likelihood (`smooth`)."""
        return False

    def smooth(self, model: Unnormalised, obs: Observations, normaliser: Normaliser, rng: Rng) -> SmoothProblem:
        """The objective as rows of an additive model, for smooth terms in f or χ."""
        raise CombinationError(
            f"{type(self).__name__} takes no smooth normaliser: use un.Logistic, un.Importance or un.Poisson with it."
        )

    @abstractmethod
    def default_normaliser(self, obs: Observations) -> Normaliser: ...

    @abstractmethod
    def bind(self, model: Model, obs: Observations, normaliser: Normaliser, rng: Rng) -> Problem: ...

    @abstractmethod
    def to_dict(self) -> dict[str, Any]: ...
