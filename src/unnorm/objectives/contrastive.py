"""`Logistic` (noise-contrastive divergence, 𝓡^m) and `Importance` (𝓜 with importance-sampled integrals).

Both see the observations against reference points with density q. Logistic: log-odds f + χ − log q + log(n/m) (eqs 3.2
and 3.4). Importance: Σ_i w_i (f + χ) − Σ_j w_j exp(f + χ)/(k q), the Poisson transform with ∫ replaced by an average.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, final

import numpy as np

from .._base.numerics import Rng, generator
from ..data.observations import Observations
from ..errors import CombinationError, InputError, listing
from ..models.base import Model, Unnormalised
from ..models.normalisers import Anchored, Constant, Layout, Normaliser, PerContext, Smooth
from ..references import IID, SCHEMES, Defensive, Uniform, from_dict
from ..references.base import BoundReference, Reference
from ..references.blocks import MANY, Contrasts
from ..references.by_window import bound as bound_reference
from ..references.contrast import Contrast, contrast
from ..references.points import PER_POINT, PointScheme, evenly_spread, points_wanted, wants_own_points
from ..references.relative import RelativeReference
from .additive import AdditiveProblem
from .anchor import model_anchor, say_if_slow
from .base import Cluster, Objective
from .row_problem import RowProblem
from .rows import ArrayRows, Nodes, Over, RowSource, SeededRows, importance_rows, logistic_rows
from .scores import Drawn

FREE_CONSTANTS = (
    "Each ν_t is estimated from one observation and its {k} reference points: θ is biased by an amount that falls with "
    "their number and not with n. un.Ranking has no such bias, and un.Smooth(…) far less."
)
FEW_PRIVATE = 50  # reference points of one context below which a free ν_t makes importance sampling fail (METHODS)


@dataclass(frozen=True)
class Contrastive(Objective):
    """What the objectives with reference points share: which reference, how many points, how they are drawn.

    Args:
        reference: q, e.g. `un.Uniform()`; default `un.Defensive()`, uniform unless the steps of a chain are short.
        per_point: reference points for each observation of a chain or a regression; default 20.
        total: reference points for IID data; default 20 for each observation.
        points: how they are drawn; the default depends on the objective and the normaliser.
        cluster: a group column (or columns) whose levels are independent, for robust standard errors.
    """

    reference: Reference = field(default_factory=Defensive)  # pyright: ignore[reportIncompatibleVariableOverride]
    per_point: int | None = None
    total: int | None = None
    points: PointScheme | None = None
    cluster: Cluster = None
    held: Contrast | None = field(default=None, init=False, repr=False, compare=False)  # points drawn already

    takes_base = True

    def __post_init__(self) -> None:
        if not isinstance(self.reference, Reference):
            raise InputError(f"reference must be a Reference such as un.Uniform(); got {self.reference!r}.")
        if self.points is not None and not isinstance(self.points, PointScheme):
            raise InputError(f"points must be a point scheme such as un.Lattice(); got {self.points!r}.")

    def default_normaliser(self, model: Unnormalised, obs: Observations, anchored: bool = True) -> Normaliser:
        """One constant for IID data; for chains and regressions constants that follow θ where Ω has a rule, else an
        unpenalised smooth of one or two context columns."""
        if not obs.has_context:
            return Constant()
        if anchored and model.domain.rule is not None:
            return Anchored()
        names = tuple(name for name, values in obs.context.items() if values.dtype.kind in "fiu")
        if not 1 <= len(names) <= 2 or len(names) < len(obs.context):
            raise InputError(
                f"With the context columns {listing(list(obs.context))}, {self.name} needs normaliser=…: "
                "un.Smooth('s(…)') of those that f reads, or un.PerContext(). In un.Ranking(…) and "
                "un.ConditionalNCE(…) the constants cancel."
            )
        distinct = len(np.unique(np.column_stack([obs.context[name] for name in names]), axis=0))
        k = min(10 if len(names) == 1 else 30, distinct - 1)
        if k < 4:
            return PerContext()
        return Smooth(f"s({', '.join(names)}, k={k})")

    def draw(self, model: Unnormalised, obs: Observations, normaliser: Normaliser | None, rng: Rng) -> Contrast:
        """The labelled rows."""
        return self.held if self.held is not None else self._draw(self._bound(model, obs), obs, normaliser, rng)

    def _draw(self, bound: BoundReference, obs: Observations, normaliser: Normaliser | None, rng: Rng) -> Contrast:
        if bound.given == "outcome" and not self.around_outcome:
            raise CombinationError(
                f"{self.name} needs a reference q(·|x) that does not depend on the outcome, and this one steps "
                "from each observed outcome: use un.ConditionalNCE with it."
            )
        evenly = self.points is None and normaliser is not None and normaliser.low_discrepancy
        scheme = None if evenly else self.scheme(bound, normaliser)  # None: evenly if it can be, and says so if not
        per_point, total = self.per_point, self.total
        if per_point is None and total is None:
            per_point, total = (PER_POINT, None) if wants_own_points(bound, obs) else (None, PER_POINT * obs.n)
        return contrast(obs, bound, scheme, per_point=per_point, total=total, rng=rng)

    def _bound(self, model: Unnormalised, obs: Observations) -> BoundReference:
        """q on Ω, with densities relative to the model's base where it has one."""
        bound, law = bound_reference(self.reference, model.domain, obs), model.law(obs)
        return bound if law is None else RelativeReference(bound, law)

    @property
    def around_outcome(self) -> bool:
        """Whether a kernel q(·|y_t) around the observed outcome will do."""
        return False

    def scheme(self, bound: BoundReference, normaliser: Normaliser | None) -> PointScheme:
        """How the points are drawn: as asked, or evenly where the normaliser and the reference allow it."""
        if self.points is not None:
            return self.points
        evenly = normaliser is not None and normaliser.low_discrepancy and bound.cube_dim is not None
        return evenly_spread(bound, 0) if evenly else IID()

    def sharing(self, model: Unnormalised, obs: Observations, normaliser: Normaliser) -> tuple[Any, ...] | None:
        bound = bound_reference(self.reference, model.domain, obs)
        return self.reference, self.per_point, self.total, self.scheme(bound, normaliser)

    def holding(self, drawn: Contrast) -> Self:
        same = replace(self)
        object.__setattr__(same, "held", drawn)
        return same

    def to_dict(self) -> dict[str, Any]:
        return {
            "objective": self.name,
            "reference": self.reference.to_dict(),
            "per_point": self.per_point,
            "total": self.total,
            "points": None if self.points is None else self.points.to_dict(),
            "cluster": self.cluster,
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        own = {name: value for name, value in description.items() if name != "objective"}
        own["reference"] = from_dict(own["reference"])
        own["points"] = None if own["points"] is None else SCHEMES.read(own["points"])
        return cls(**own)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(Uniform(), per_point=5), cls(Uniform(), total=400)


def drawn_as(drawn: Contrast | Contrasts) -> Drawn:
    """How the points of a contrast were drawn."""
    return Drawn.IID if drawn.scheme.iid else Drawn.EVENLY


def figures(drawn: Contrast | Contrasts, even_points: bool) -> dict[str, Any]:
    """What a report says of the reference points."""
    return {
        "reference": drawn.reference.describe(),
        "points": repr(drawn.scheme),
        "iid_points": drawn.scheme.iid,
        "even_points": even_points,
        "sets": drawn.scheme.sets,
        "k": drawn.k,
        "m": drawn.points,
        "law": drawn.reference.to_dict(),
    }


@dataclass(frozen=True)
class RowContrastive(Contrastive):
    """An objective that is a sum over rows, Σ ℓ(f + χ + offset)."""

    even_points = True
    row_by_row: ClassVar[bool] = False  # whether `rows` makes each row from its own numbers, so that blocks can be made

    @property
    def by_products(self) -> bool:
        return True

    @abstractmethod
    def rows(self, drawn: Contrast) -> ArrayRows:
        """The contrast as rows of its likelihood."""

    def check(self, drawn: Contrast, layout: Layout) -> None:
        """Refuse what is known to fail."""
        layout.check(drawn.obs)

    def _blocks(
        self, bound: BoundReference, obs: Observations, normaliser: Normaliser, rng: np.random.Generator
    ) -> Contrasts | None:
        """The labelled rows in blocks, where they are too many to be held; None where they are not."""
        k = PER_POINT if self.per_point is None else self.per_point
        if not self.row_by_row or not wants_own_points(bound, obs) or self.total is not None:
            return None
        if obs.n * (points_wanted(bound, obs, k, None) + 1) <= MANY or bound.given == "outcome":
            return None
        scheme = self.scheme(bound, normaliser)
        seed = (int(rng.integers(2**63)),)
        iid = self.points is None and normaliser.low_discrepancy and bound.cube_dim is None
        notes = ("The reference has no map from the unit cube, so its points are IID.",) if iid else ()
        return Contrasts(obs, bound, scheme, k, seed, notes)

    def _source(self, drawn: Contrast | Contrasts) -> RowSource:
        return drawn.met(self.rows, lambda blocks: SeededRows(blocks, self.rows))

    def _redraw(self, drawn: Contrast | Contrasts, seed: int) -> Callable[[int, float], RowSource] | None:
        """Rows on the i-th set of fresh points, c times as many; None for IID points, whose error is known."""
        if drawn.scheme.iid:
            return None
        return lambda i, times: self._source(drawn.fresh([seed, i], times))

    def _over(self, drawn: Contrast | Contrasts) -> Over | None:
        """Rows at the nodes of a rule; None for IID data, whose points are shared."""
        if drawn.k is None:
            return None

        def rows(y: np.ndarray, w: np.ndarray, at: np.ndarray) -> Nodes:
            nodes, mass = drawn.over(y, w, at)
            return Nodes(self.rows(nodes), mass, drawn.k or 1)

        return rows

    def bind(
        self, model: Model, obs: Observations, normaliser: Normaliser, rng: Rng = None, drawn: Contrast | None = None
    ) -> RowProblem:
        rng = generator(rng)
        drawn = self.draw(model, obs, normaliser, rng) if drawn is None else drawn
        layout = normaliser.layout(obs)
        self.check(drawn, layout)
        source = self.rows(drawn)
        anchor = model_anchor(model, obs) if normaliser.anchored else None
        if anchor is not None:
            say_if_slow(anchor, source.size)
        notes = (*drawn.notes, FREE_CONSTANTS.format(k=drawn.k)) if layout.size > 1 else drawn.notes
        return RowProblem(
            model=model,
            obs=obs,
            source=source,
            layout=layout,
            drawn=drawn_as(drawn),
            sets=drawn.randomisations,
            figures=figures(drawn, self.even_points),
            notes=notes,
            redraw=self._redraw(drawn, int(rng.integers(2**63))),
            over=self._over(drawn),
            anchor=anchor,
        )

    def by_rows(self, obs: Observations, normaliser: Normaliser) -> bool:
        return normaliser.terms is not None or normaliser.layout(obs).size == 1

    def additive(
        self,
        model: Unnormalised,
        obs: Observations,
        normaliser: Normaliser,
        rng: Rng = None,
        drawn: Contrast | None = None,
    ) -> AdditiveProblem:
        rng = generator(rng)
        made: Contrast | Contrasts | None = self.held if drawn is None else drawn
        if made is None:
            bound = self._bound(model, obs)
            made = self._blocks(bound, obs, normaliser, rng) or self._draw(bound, obs, normaliser, rng)
        return AdditiveProblem(
            model=model,
            normaliser=normaliser,
            obs=obs,
            source=self._source(made),
            drawn=drawn_as(made),
            sets=made.randomisations,
            redraw=self._redraw(made, int(rng.integers(2**63))),
            over=self._over(made),
            figures=figures(made, self.even_points),
            notes=made.notes,
        )


@final
@dataclass(frozen=True)
class Logistic(RowContrastive):
    """Noise-contrastive divergence: logistic regression of data against reference points, 𝓡^m(θ, ν) of Theorem 7.

    Args:
        reference: q, e.g. `un.Uniform()`; default `un.Defensive()`, uniform unless the steps of a chain are short.
        per_point: reference points for each observation of a chain or a regression; default 20.
        total: reference points for IID data; default 20 for each observation.
        points: how they are drawn, as `un.Lattice()`; the default depends on the normaliser.
        cluster: a group column (or columns) whose levels are independent, for robust standard errors.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), un.Interval(-1, 1))
        >>> obs = un.transitions(un.datasets.toy_chain(200, 0.5, 5.0, rng=1))
        >>> fit = un.fit(toy, obs, un.Logistic(un.Uniform(), per_point=10), rng=2)
        >>> exact = un.fit(toy, obs)
        >>> bool((abs(fit.estimate - exact.estimate) < exact.se).all())
        True
    """

    loss = "ncd"
    row_by_row = True

    def rows(self, drawn: Contrast) -> ArrayRows:
        return logistic_rows(drawn)


@final
@dataclass(frozen=True)
class Importance(RowContrastive):
    """𝓜 with its integrals by importance sampling from q: less efficient than `Logistic` for the same points.

    Args:
        reference: q, e.g. `un.Uniform()`; default `un.Defensive()`, uniform unless the steps of a chain are short.
        per_point: reference points for each observation of a chain or a regression; default 20.
        total: reference points for IID data; default 20 for each observation.
        points: how they are drawn, as `un.Lattice()`; the default depends on the normaliser.
        cluster: a group column (or columns) whose levels are independent, for robust standard errors.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), un.Interval(-1, 1))
        >>> obs = un.transitions(un.datasets.toy_chain(200, 0.5, 5.0, rng=1))
        >>> fit = un.fit(toy, obs, un.Importance(un.Uniform(), per_point=50), rng=2)
        >>> exact = un.fit(toy, obs)
        >>> bool((abs(fit.estimate - exact.estimate) < exact.se).all())
        True
    """

    loss = "poisson"
    row_by_row = True

    def rows(self, drawn: Contrast) -> ArrayRows:
        return importance_rows(drawn)

    def check(self, drawn: Contrast, layout: Layout) -> None:
        super().check(drawn, layout)
        if layout.size > 1 and drawn.k is not None and drawn.k < FEW_PRIVATE:
            raise CombinationError(
                f"Importance() with a free ν_t for each context fails with few private reference points ({drawn.k} "
                "here): it diverges at k = 1 and is far off at k = 5, as the observation is not in the denominator. "
                f"Use normaliser=un.Smooth(…), objective=un.Ranking(…) or un.Logistic(…), or per_point ≥ {FEW_PRIVATE}."
            )
