"""`Logistic` (noise-contrastive divergence, 𝓡^m) and `Importance` (𝓜 with importance-sampled integrals).

Both see the observations against reference points with density q. Logistic: log-odds f + χ − log q + log(n/m) (eqs 3.2
and 3.4). Importance: Σ_i w_i (f + χ) − Σ_j w_j exp(f + χ)/(k q), the Poisson transform with ∫ replaced by an average.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Self, final

import numpy as np

from .._base.numerics import Rng, generator
from ..data.observations import Observations
from ..errors import CombinationError, InputError
from ..models.base import Model, Unnormalised
from ..models.normalisers import Constant, Layout, Normaliser
from ..references import IID, Lattice
from ..references.base import BoundReference, Reference
from ..references.contrast import Contrast, contrast
from ..references.points import PointScheme
from .base import Objective, Problem, cluster_labels
from .rows import LogisticRows, PoissonRows, RowLikelihood, RowProblem, Rows
from .smooth import SmoothProblem, SmoothRows, poisson_rows

FREE_CONSTANTS = (
    "Each ν_t is estimated from one observation and its {k} reference points: θ is biased by an amount that falls with "
    "their number and not with n. un.Ranking has no such bias, and un.Smooth(…) far less."
)
FEW_PRIVATE = 50  # reference points of one context below which a free ν_t makes importance sampling fail (METHODS)


@dataclass(frozen=True)
class Contrastive(Objective):
    """What the objectives with reference points share: which reference, how many points, how they are drawn.

    Args:
        reference: q, e.g. `un.Uniform()`.
        per_point: reference points for each observation of a chain or a regression.
        total: reference points for IID data.
        points: how they are drawn; the default depends on the objective and the normaliser.
        cluster: a group column (or columns) whose levels are independent, for robust standard errors.
    """

    reference: Reference
    per_point: int | None = None
    total: int | None = None
    points: PointScheme | None = None
    cluster: str | tuple[str, ...] | None = None
    held: Contrast | None = field(default=None, init=False, repr=False, compare=False)  # points drawn already

    def __post_init__(self) -> None:
        if not isinstance(self.reference, Reference):
            raise InputError(f"reference must be a Reference such as un.Uniform(); got {self.reference!r}.")
        if self.points is not None and not isinstance(self.points, PointScheme):
            raise InputError(f"points must be a point scheme such as un.Lattice(); got {self.points!r}.")

    def default_normaliser(self, obs: Observations) -> Normaliser:
        if obs.has_context:
            raise InputError(
                f"With a context, {type(self).__name__} needs normaliser=…: un.Smooth('s(…)') (recommended), "
                "un.PerContext(), or un.Constant() to see what ignoring the constants does."
            )
        return Constant()

    def draw(self, model: Unnormalised, obs: Observations, normaliser: Normaliser | None, rng: Rng) -> Contrast:
        """The labelled rows."""
        if self.held is not None:
            return self.held
        bound = self.reference.bind(model.domain, obs)
        if bound.given == "outcome" and not self.around_outcome:
            raise CombinationError(
                f"{type(self).__name__} needs a reference q(·|x) that does not look at the outcome, and this one steps "
                "from each observed outcome: use un.ConditionalNCE with it."
            )
        evenly = self.points is None and normaliser is not None and normaliser.low_discrepancy
        scheme = None if evenly else self.scheme(bound, normaliser)  # None: evenly if it can be, and says so if not
        per_point, total = self.per_point, self.total
        if per_point is None and total is None:
            raise InputError(
                f"{type(self).__name__} needs the number of reference points: "
                + ("per_point=20." if obs.has_context else f"total={20 * obs.n}.")
            )
        return contrast(obs, bound, scheme, per_point=per_point, total=total, rng=rng)

    @property
    def around_outcome(self) -> bool:
        """Whether a kernel q(·|y_t) around the observed outcome will do."""
        return False

    def scheme(self, bound: BoundReference, normaliser: Normaliser | None) -> PointScheme:
        """How the points are drawn: as asked, or evenly where the normaliser and the reference allow it."""
        if self.points is not None:
            return self.points
        evenly = normaliser is not None and normaliser.low_discrepancy and bound.cube_dim is not None
        return Lattice() if evenly else IID()

    def sharing(self, model: Unnormalised, obs: Observations, normaliser: Normaliser) -> tuple[Any, ...] | None:
        bound = self.reference.bind(model.domain, obs)
        return self.reference, self.per_point, self.total, self.scheme(bound, normaliser)

    def holding(self, drawn: Contrast) -> Self:
        same = replace(self)
        object.__setattr__(same, "held", drawn)
        return same

    def clusters(self, obs: Observations) -> np.ndarray | None:
        """(n,) cluster labels, or None."""
        return cluster_labels(self.cluster, obs)

    def to_dict(self) -> dict[str, Any]:
        return {
            "objective": type(self).__name__,
            "reference": self.reference.to_dict(),
            "per_point": self.per_point,
            "total": self.total,
            "points": None if self.points is None else repr(self.points),
        }


@dataclass(frozen=True)
class RowContrastive(Contrastive):
    """An objective that is a sum over rows, Σ ℓ(f + χ + offset)."""

    @abstractmethod
    def likelihood(self, drawn: Contrast) -> tuple[RowLikelihood, np.ndarray]:
        """ℓ and the offset of each row."""

    @property
    @abstractmethod
    def information_equality(self) -> bool:
        """Whether −H is the variance of the score for IID points and a correct model."""

    def check(self, drawn: Contrast, layout: Layout) -> None:
        """Refuse what is known to fail."""
        layout.check(drawn.obs)

    def bind(
        self, model: Model, obs: Observations, normaliser: Normaliser, rng: Rng = None, drawn: Contrast | None = None
    ) -> Problem:
        rng = generator(rng)
        drawn = self.draw(model, obs, normaliser, rng) if drawn is None else drawn
        layout = normaliser.layout(obs)
        self.check(drawn, layout)
        seeds = rng.integers(2**63, size=4)

        def redraws(times: float) -> list[RowProblem]:
            """On fresh reference points from independent randomisations, to see how much they move the score."""
            again = (drawn.redraw(np.random.default_rng(seed), times) for seed in seeds)
            return [self.problem(model, one, layout, None) for one in again]

        problem = self.problem(model, drawn, layout, self.clusters(obs))
        if layout.size > 1:
            problem = replace(problem, notes=(*problem.notes, FREE_CONSTANTS.format(k=drawn.k)))
        return problem if drawn.scheme.iid or drawn.randomisations > 1 else replace(problem, redraws=redraws)

    def problem(self, model: Model, drawn: Contrast, layout: Layout, group: np.ndarray | None) -> RowProblem:
        """The rows of a contrast with their likelihood."""
        likelihood, offset = self.likelihood(drawn)
        return RowProblem(
            model=model,
            rows=rows_of(drawn, model, offset, group),
            likelihood=likelihood,
            layout=replace(layout, of=layout.of[np.maximum(drawn.at, 0)]),
            information_equality=self.information_equality,
            about=about(drawn),
            notes=drawn.notes,
        )

    def by_rows(self, obs: Observations, normaliser: Normaliser) -> bool:
        return normaliser.terms is not None or normaliser.layout(obs).size == 1

    def smooth(
        self,
        model: Unnormalised,
        obs: Observations,
        normaliser: Normaliser,
        rng: Rng = None,
        drawn: Contrast | None = None,
    ) -> SmoothProblem:
        rng = generator(rng)
        drawn = self.draw(model, obs, normaliser, rng) if drawn is None else drawn
        seeds = rng.integers(2**63, size=4)

        def redraws(times: float) -> list[SmoothRows]:
            return [self.smooth_rows(drawn.redraw(np.random.default_rng(seed), times)) for seed in seeds]

        return SmoothProblem(
            model=model,
            normaliser=normaliser,
            obs=obs,
            family=self.family,
            rows=self.smooth_rows(drawn),
            iid_points=drawn.scheme.iid,
            redraws=redraws,
            clusters=self.clusters(obs),
            about=about(drawn),
            notes=drawn.notes,
        )

    @property
    @abstractmethod
    def family(self) -> str:
        """The likelihood of the rows: "binomial" or "poisson"."""

    @abstractmethod
    def smooth_rows(self, drawn: Contrast) -> SmoothRows:
        """Rows for the additive engine."""


def about(drawn: Contrast) -> dict[str, Any]:
    """What a report says of the reference points."""
    return {
        "reference": drawn.reference.describe(),
        "points": repr(drawn.scheme),
        "sets": drawn.scheme.sets,
        "k": drawn.k,
        "m": int(np.sum(~drawn.z)),
        "law": drawn.reference.to_dict(),
    }


def rows_of(drawn: Contrast, model: Model, offset: np.ndarray, group: np.ndarray | None) -> Rows:
    """The contrast as rows of a problem, with the contexts as f sees them."""
    at = np.maximum(drawn.at, 0)
    arguments = model.arguments(drawn.obs, at)
    if drawn.k is None:  # shared points are one unit each
        at = np.arange(len(drawn.z))
        group = (
            None if group is None else np.concatenate([group, group.max(initial=0) + 1 + np.arange((~drawn.z).sum())])
        )
    return Rows(
        drawn.outcome,
        arguments,
        offset,
        drawn.z,
        at,
        drawn.randomisation,
        "iid" if drawn.scheme.iid else type(drawn.scheme).__name__,
        drawn.k is not None,
        group,
        drawn.log_q,
        None if drawn.obs.weight is None else drawn.weight,
    )


@final
@dataclass(frozen=True)
class Logistic(RowContrastive):
    """Noise-contrastive divergence: logistic regression of data against reference points, 𝓡^m(θ, ν) of Theorem 7."""

    @property
    def information_equality(self) -> bool:
        return True

    def likelihood(self, drawn: Contrast) -> tuple[RowLikelihood, np.ndarray]:
        return LogisticRows(drawn.z.astype(np.float64), drawn.weight), drawn.known

    @property
    def family(self) -> str:
        return "binomial"

    def smooth_rows(self, drawn: Contrast) -> SmoothRows:
        weights = None if drawn.obs.weight is None else drawn.weight
        at = np.maximum(drawn.at, 0)
        return SmoothRows(drawn.outcome, at, drawn.z, drawn.z.astype(np.float64), weights, drawn.known)


@final
@dataclass(frozen=True)
class Importance(RowContrastive):
    """𝓜 with its integrals by importance sampling from q: less efficient than `Logistic` for the same points."""

    @property
    def information_equality(self) -> bool:
        return False

    def likelihood(self, drawn: Contrast) -> tuple[PoissonRows, np.ndarray]:
        a = np.where(drawn.z, drawn.weight, 0.0)
        share = 1.0 / drawn.k if drawn.k is not None else drawn.n / drawn.m
        b = np.where(drawn.z, 0.0, share * drawn.weight * np.exp(-drawn.log_q))
        offset = np.zeros(len(a)) if drawn.offset is None else drawn.offset
        return PoissonRows(a, b), offset

    @property
    def family(self) -> str:
        return "poisson"

    def smooth_rows(self, drawn: Contrast) -> SmoothRows:
        likelihood, offset = self.likelihood(drawn)
        response, weights = poisson_rows(likelihood.a, likelihood.b)
        return SmoothRows(drawn.outcome, np.maximum(drawn.at, 0), drawn.z, response, weights, offset)

    def check(self, drawn: Contrast, layout: Layout) -> None:
        super().check(drawn, layout)
        if layout.size > 1 and drawn.k is not None and drawn.k < FEW_PRIVATE:
            raise CombinationError(
                f"Importance() with a free ν_t for each context fails with few private reference points ({drawn.k} "
                "here): it diverges at k = 1 and is far off at k = 5, as the observation is not in the denominator. "
                f"Use normaliser=un.Smooth(…), objective=un.Ranking(…) or un.Logistic(…), or per_point ≥ {FEW_PRIVATE}."
            )
