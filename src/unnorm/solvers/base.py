"""The protocol of solvers, `solve(problem, rng) -> Solution`: Newton, the additive engine, penalised Newton, conjugate
gradients and SGD."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from .._base.numerics import Rng
from ..engine import gam_effects
from ..models.centring import Centred
from ..objectives.anchor import Integrated
from ..objectives.base import ChosenErrors, Constants, Problem
from ..objectives.rows import RowSource
from ..objectives.scores import Scores

if TYPE_CHECKING:
    from ..data.covariates.resolve import CovariateSet
    from ..engine.gam_result import Gam
    from ..terms.base import BuiltTerm


@final
@dataclass(frozen=True)
class FittedTerms:
    """f and χ as terms with their coefficients: η = β₀ + Σ_j f_j; the scores' coordinates are these coefficients."""

    terms: tuple[BuiltTerm, ...]  # f's, then χ's
    model_labels: tuple[str, ...]
    normaliser_labels: tuple[str, ...]
    slices: Mapping[str, slice]
    beta: np.ndarray
    grids: Mapping[str, Mapping[str, np.ndarray]]  # label → where to look at the effect
    edf: Mapping[str, float]
    edf1: Mapping[str, float]  # by smooth term, like edf: tr(2F − FF), the rank of its test (Wood 2013)
    sp: Mapping[str, float]
    score: float
    method: str
    gam: Gam | None = None  # the additive fit itself, where the engine made it
    anchored: AnchoredRows | None = None  # where the constants follow f
    within: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # label → covariates of the context, as in te(y, z)


def levels_unseen(terms: Sequence[BuiltTerm], known: CovariateSet) -> dict[str, tuple[str, ...]]:
    """Smooths that vary with y and with the context, as te(y, z), and the latter's covariates: where each context has a
    constant, functions of z alone cannot be told from it, and effects are shown without a level at each z. Products,
    as y:g, and curves of levels are shown as they are."""
    out = {}
    for term in terms:
        names = gam_effects.coordinates(term)
        fixed = tuple(name for name in names if name in known and known.context_only(name))
        if fixed and len(fixed) < len(names) and set(names) <= set(term.smooth_covariates):
            out[term.label] = fixed
    return out


@final
@dataclass(frozen=True)
class AnchoredRows:
    """The engine's rows before their context's mean was taken off, and the integrals at the estimate."""

    context: np.ndarray  # (N,)
    offset: np.ndarray | None  # (N,) without the context's part
    integrated: Integrated  # mean in the coordinates of all coefficients


@final
@dataclass(frozen=True)
class Solution:
    """What a solver found; how far to trust it is for `inference` to say, from the scores."""

    names: tuple[str, ...]  # of the parameters
    estimate: np.ndarray  # θ̂
    index: np.ndarray  # their coordinates in the scores
    constants: Constants
    value: float  # the objective at the maximum
    loglik: float  # 𝓛(θ̂), or what the objective has in its place
    converged: bool
    reason: str
    iterations: int
    solver: Mapping[str, Any]  # in words
    scores: Scores | None  # None where there are none to be trusted; a note then says why
    terms: FittedTerms | None = None
    notes: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)  # for the record
    chosen: ChosenErrors | None = None  # errors of single parameters, where there are too many for all at once
    no_errors: str | None = None  # why there are none at all
    source: RowSource | None = None  # the rows, where the objective is a sum over rows or over choices
    centred: Centred | None = None  # where scores, `chosen` and dν/dθ are those of covariates about their means


class Solver(ABC):
    """Anything that maximises a problem. What it can take, it declares here."""

    smooth_terms: bool = False  # whether it fits smooth terms of f
    smooth_normaliser: bool = False  # whether it fits a smooth χ
    imputes: bool = False  # whether it takes outcomes with missing entries
    takes_base: bool = True  # whether f may be relative to a law (un.Tilt)
    anchors: bool = True  # whether it takes constants that follow θ (un.Anchored)

    @abstractmethod
    def solve(self, problem: Problem, rng: Rng) -> Solution:
        """The maximum."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]: ...
