"""Objectives as rows of an additive model: f and χ are terms, the objective a binomial or Poisson likelihood.

The engine takes a response and prior weights: Σ_r a η − b A(η) is its likelihood with weights b and response a/b. Data
rows of a Poisson likelihood have b = 0; they get a weight so small that their e^η does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from ..data.observations import Observations
from ..errors import CombinationError, InputError, NotIdentifiedError, TermError, listing
from ..models.base import LinearPart, Unnormalised
from ..models.normalisers import Normaliser
from ..terms import Terms
from .likelihood import RowLikelihood
from .rows import Rows, RowSource
from .scores import Drawn

if TYPE_CHECKING:
    from ..engine.design import Design
    from ..terms.base import BuiltTerm

TINY = 1e-10  # weight of a data row in a Poisson likelihood: its e^η then adds less than 1e-10 of itself


class Response(NamedTuple):
    """A likelihood of rows in the engine's words."""

    y: np.ndarray  # (N,)
    weights: np.ndarray | None  # (N,); None for all one


def response(likelihood: RowLikelihood) -> Response:
    """The response a/b and the weights b."""
    a, b = likelihood.a, likelihood.b
    weights = np.where(b > 0, b, TINY) if likelihood.cumulant.family == "poisson" else b
    y = np.divide(a, weights, out=np.zeros(len(a)), where=weights > 0)
    return Response(y, None if np.all(weights == 1.0) else weights)


@final
@dataclass(frozen=True)
class AdditiveProblem:
    """max over (f, χ) of a penalised binomial or Poisson likelihood, its smoothing chosen from the data."""

    model: Unnormalised
    normaliser: Normaliser
    obs: Observations
    source: RowSource
    drawn: Drawn
    sets: int = 1  # independent sets of reference points
    redraw: Callable[[int, float], RowSource] | None = None  # the i-th set of fresh points, c times as many
    figures: dict[str, Any] = field(default_factory=dict)  # for the record
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> Rows:
        return self.source.whole()

    @property
    def likelihood(self) -> RowLikelihood:
        return self.rows.likelihood

    @property
    def family(self) -> str:
        """The engine's name of the likelihood."""
        return self.likelihood.cumulant.family

    @cached_property
    def response(self) -> Response:
        return response(self.likelihood)

    def value(self, eta: np.ndarray) -> float:
        """The objective, without penalty: 𝓡^m for logistic rows, 𝓜 (or its importance sample) for Poisson ones."""
        return self.likelihood.value(eta)

    def loglik(self, eta: np.ndarray) -> float:
        """𝓛 = 𝓜 + n where the integrals are exact (Theorem 1); the contrast's own value with reference points."""
        value = self.value(eta)
        return value if self.drawn is not Drawn.NONE else value + float(self.obs.weights.sum())

    def normaliser_columns(self, at: np.ndarray, obs: Observations | None = None) -> dict[str, np.ndarray]:
        """The covariates of χ at the contexts of observations `at`."""
        return context_columns(self.model, self.normaliser, self.obs if obs is None else obs, at)

    @cached_property
    def delta_labels(self) -> frozenset[str]:
        """The labels of the normaliser's own terms among those built."""
        chi = self.normaliser.terms
        own = set() if chi is None else {term.label for term in chi}
        built = self.linear[0]
        return frozenset(t.label for t in built if t.label in own or any(t.label.startswith(f"{o}:") for o in own))

    @cached_property
    def linear(self) -> tuple[tuple[BuiltTerm, ...], LinearPart, Design]:
        """The terms built on these rows, their columns, and the design; for an energy, linearised at its start."""
        terms, part = self.predictor(self.rows)
        self._refuse_context_terms()
        built = self.build(terms, part)
        return built, part, self.design(built, part)

    def _refuse_context_terms(self) -> None:
        """A term of f that does not read y is part of the normalising constant, and cannot be told from it."""
        f = self.model.terms
        if f is None or not self.obs.has_context:
            return
        known = self.model.covariates(self.obs)
        same = [term.label for term in f if term.columns and all(known.context_only(name) for name in term.columns)]
        if same:
            verb = "depends" if len(same) == 1 else "depend"
            raise NotIdentifiedError(
                f"{listing(same)} {verb} on the context only, and the normalising constants absorb what does not vary "
                "with y. Remove it, or let it change the effect of something that does (by=, te(…), an expression)."
            )

    def build(self, terms: Terms, part: LinearPart) -> tuple[BuiltTerm, ...]:
        """The terms on the rows' columns, with the knots and periods that model and normaliser declare."""
        known = self.model.covariates(self.obs)
        periods = {name: known.period(name) for name in terms.columns if name in known and known.period(name)}
        knots = {**self.model.knots, **self.normaliser.knots}
        return tuple(terms.build(part.columns, knots=knots, periods=periods))

    def design(self, built: tuple[BuiltTerm, ...], part: LinearPart) -> Design:
        """The rows in the engine's form."""
        from ..engine.core import build_design

        context = self.rows.context if self.obs.has_context else None
        whole = self.normaliser.anchored
        return build_design(built, part.columns, intercept=True, context=context, whole_contexts=whole)

    def predictor(self, rows: Rows, theta: np.ndarray | None = None) -> tuple[Terms, LinearPart]:
        """Terms of f and χ together, with the columns and the offset on these rows."""
        f = self.model.linear_part(self.obs, rows.y, rows.context, theta)
        chi = self.normaliser_columns(rows.context)
        both = [name for name in chi if name in f.columns and f.columns[name] is not chi[name]]
        clash = [name for name in both if not np.array_equal(f.columns[name], chi[name])]
        if clash:
            raise InputError(
                f"{listing(clash)} names both a statistic of the model and a covariate of the normaliser: rename one."
            )
        terms = f.terms if self.normaliser.terms is None else f.terms + self.normaliser.terms
        offset = rows.offset if f.offset is None else rows.offset + f.offset
        return terms, LinearPart(terms, {**f.columns, **chi}, offset, f.theta)


def context_columns(
    model: Unnormalised, normaliser: Normaliser, obs: Observations, at: np.ndarray
) -> dict[str, np.ndarray]:
    """The covariates of a smooth χ at the contexts of observations `at`; those that depend on y are refused."""
    terms = normaliser.terms
    if terms is None:
        return {}
    known = model.covariates(obs)
    wrong = [name for name in terms.columns if name in known and not known.context_only(name)]
    if not obs.has_context:
        raise CombinationError(
            f"{normaliser!r} is a function of the context, and IID data have none: their normalising constant is one "
            "number. Use un.Constant(), or leave normaliser out."
        )
    if wrong:
        verb = "depends" if len(wrong) == 1 else "depend"
        raise TermError(
            f"The normaliser χ(x) is a function of the context, and {listing(wrong)} {verb} on the outcome y. "
            f"Use {listing([name for name in known.names if known.context_only(name)])}."
        )
    return known.values(terms.columns, obs, obs.outcome[at], at)
