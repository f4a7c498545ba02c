"""Objectives as rows of an additive model: f and χ are terms, the objective a binomial or Poisson likelihood.

Logistic: response z, offset −log q + log(n/m). Importance and quadrature: Σ_r a_r η_r − b_r e^{η_r} is a Poisson
likelihood with weights b and response a/b; data rows (b = 0) get a weight so small that their e^η does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.observations import Observations
from ..errors import CombinationError, InputError, TermError, listing
from ..models.base import LinearPart, Unnormalised
from ..models.normalisers import Normaliser
from ..terms import Terms

if TYPE_CHECKING:
    from ..engine.design import Design
    from ..terms.base import BuiltTerm

TINY = 1e-10  # weight of a data row in a Poisson likelihood: its e^η then adds less than 1e-10 of itself


@dataclass(frozen=True)
class SmoothRows:
    """Rows for the additive engine, those of one context together."""

    y: np.ndarray  # (N, d)
    at: np.ndarray  # (N,) the observation whose context the row uses
    data: np.ndarray  # (N,) bool
    response: np.ndarray  # (N,)
    weights: np.ndarray | None  # (N,) prior weights; None for all one
    offset: np.ndarray  # (N,)


@dataclass(frozen=True)
class SmoothProblem:
    """max over (f, χ) of a penalised binomial or Poisson likelihood, its smoothing chosen from the data."""

    model: Unnormalised
    normaliser: Normaliser
    obs: Observations
    family: str  # "binomial" or "poisson"
    rows: SmoothRows
    iid_points: bool | None  # None: no reference points were drawn (quadrature)
    redraws: Callable[[float], list[SmoothRows]] | None = None  # fresh points, c times as many
    clusters: np.ndarray | None = None
    about: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def value(self, eta: np.ndarray) -> float:
        """The objective, without penalty: 𝓡^m for logistic rows, 𝓜 (or its importance sample) for Poisson ones."""
        rows = self.rows
        weights = np.ones(len(eta)) if rows.weights is None else rows.weights
        if self.family == "binomial":
            return float(weights @ (rows.response * eta - np.logaddexp(0, eta)))
        mass = np.where(rows.data, 0.0, weights * np.exp(np.minimum(eta, 700.0)))
        return float((weights * rows.response) @ eta - mass.sum())

    def loglik(self, eta: np.ndarray) -> float:
        """𝓛 = 𝓜 + n where the integrals are exact (Theorem 1); the contrast's own value with reference points."""
        value = self.value(eta)
        return value if self.iid_points is not None else value + float(self.obs.weights.sum())

    def normaliser_columns(self, at: np.ndarray, obs: Observations | None = None) -> dict[str, np.ndarray]:
        """The covariates of χ at the contexts of observations `at`."""
        return context_columns(self.model, self.normaliser, self.obs if obs is None else obs, at)

    @cached_property
    def linear(self) -> tuple[tuple[BuiltTerm, ...], LinearPart, Design]:
        """The terms built on these rows, their columns, and the design; for an energy, linearised at its start."""
        terms, part = self.predictor(self.rows)
        built = self.build(terms, part)
        return built, part, self.design(built, part)

    def build(self, terms: Terms, part: LinearPart) -> tuple[BuiltTerm, ...]:
        """The terms on the rows' columns, with the knots and periods that model and normaliser declare."""
        known = self.model.covariates(self.obs)
        periods = {name: known.period(name) for name in terms.columns if name in known and known.period(name)}
        knots = {**getattr(self.model, "knots", {}), **self.normaliser.knots}
        return tuple(terms.build(part.columns, knots=knots, periods=periods))

    def design(self, built: tuple[BuiltTerm, ...], part: LinearPart) -> Design:
        """The rows in the engine's form."""
        from ..engine.core import build_design

        context = self.rows.at if self.obs.has_context else None
        return build_design(built, part.columns, intercept=True, context=context)

    def predictor(self, rows: SmoothRows, theta: np.ndarray | None = None) -> tuple[Terms, LinearPart]:
        """Terms of f and χ together, with the columns and the offset on these rows."""
        f = self.model.linear_part(self.obs, rows.y, rows.at, theta)
        chi = self.normaliser_columns(rows.at)
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


def poisson_rows(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Response and weights of a Poisson likelihood with Σ a η − b e^η."""
    data = b <= 0
    weights = np.where(data, TINY, b)
    return np.where(data, a / TINY, a / weights), weights
