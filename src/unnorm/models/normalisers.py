"""ν, (ν_t), χ: the log normalising constant as one more thing to estimate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from ..data.observations import Observations
from ..errors import CombinationError, InputError
from ..terms import Terms, parse
from ..terms.specs import Term

CONSTANT_WITH_CONTEXT = (
    "normaliser=Constant() gives one constant to all contexts, and f_θ(·|x) normalises to a different one in each: "
    "estimates do not converge to the truth (Section 4.1 of the paper). "
    "Leave normaliser out, or use un.Smooth(...) or un.PerContext(); keep Constant() only to compare."
)


@dataclass(frozen=True)
class Layout:
    """Which ν each observation uses: ν_t = ν[of[t]], with `size` free values; all equal `fixed` where that is given."""

    of: np.ndarray
    size: int
    fixed: float | None = None

    def check(self, obs: Observations) -> None:
        """Refuse free constants ν_t for data without a context."""
        if not obs.has_context and self.size > 1:
            raise CombinationError(
                "PerContext() needs a context: IID data have one normalising constant. Use un.Constant()."
            )


class Normaliser(ABC):
    """How the log normalising constants −log ∫ exp f_θ(y|x_t) dy are represented."""

    @property
    def terms(self) -> Terms | None:
        """The terms of a smooth χ(x); None for constants."""
        return None

    @property
    def knots(self) -> Mapping[str, Any]:
        """Covariate → knots, for smooth ones."""
        return {}

    anchored: bool = False  # whether −log ∫ exp f_θ(y|x) dy is part of χ, which then follows θ
    of_context: bool = False  # whether χ is a function of the context; else there are constants, and a `layout` of them
    weakly: bool = False  # whether λ of its terms, left open, is to be so small that θ does not notice it
    many: bool = False  # whether χ is linear in very many `features`, with a ridge `lam`

    @property
    def lam(self) -> float | Literal["reml"] | None:
        """λ of a ridge on the features: given, by REML, or the solver's choice."""
        return None

    def features(self, obs: Observations) -> Any | None:
        """(n, q) features of the contexts, a scipy.sparse.csr_array, where `many`."""
        return None

    def traced(self, obs: Observations, scalar: bool) -> Any | None:
        """χ as a function that JAX can trace, where that is its only form (networks, a basis of the user's own)."""
        return None

    def bound(self, obs: Observations) -> Normaliser:
        """The same, with what it left open (its columns) taken from these observations."""
        return self

    @property
    def low_discrepancy(self) -> bool:
        """Whether evenly spread reference points are the default with it."""
        return True

    @property
    def known(self) -> bool:
        """Whether the constants are given and not estimated, so that f must have its level by itself."""
        return False

    @abstractmethod
    def layout(self, obs: Observations) -> Layout:
        """Which constant belongs to which observation."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]: ...

    def warning(self, obs: Observations) -> str | None:
        """A sentence for the user where this choice is known to mislead."""
        return None


@final
@dataclass(frozen=True)
class Constant(Normaliser):
    """One ν for all observations: right for IID data (Theorem 1).

    Example:
        >>> import unnorm as un
        >>> model = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(-1, 1))
        >>> fit = un.fit(model, un.iid([0.1, 0.5, 0.7]), un.Poisson(), un.Constant())
        >>> fit.nu.shape
        (1,)
    """

    def layout(self, obs: Observations) -> Layout:
        return Layout(np.zeros(obs.n, dtype=np.intp), 1)

    def to_dict(self) -> dict[str, Any]:
        return {"normaliser": "Constant"}

    def warning(self, obs: Observations) -> str | None:
        return CONSTANT_WITH_CONTEXT if obs.has_context else None


@final
@dataclass(frozen=True)
class PerContext(Normaliser):
    """One ν_t for each observation (Theorem 2).

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), un.Interval(-1, 1))
        >>> chain = un.datasets.toy_chain(100, 0.5, 5.0, rng=1)
        >>> un.fit(toy, un.transitions(chain), un.Poisson(), un.PerContext()).nu.shape
        (100,)
    """

    @property
    def low_discrepancy(self) -> bool:
        return False

    def layout(self, obs: Observations) -> Layout:
        return Layout(np.arange(obs.n), obs.n)

    def to_dict(self) -> dict[str, Any]:
        return {"normaliser": "PerContext"}


@final
@dataclass(frozen=True)
class Fixed(Normaliser):
    """ν known beforehand, e.g. Fixed(0.0) for a model that is normalised already.

    Args:
        value: of every ν.

    Example:
        >>> import unnorm as un
        >>> normal = un.Energy(lambda theta, y: -0.5 * (y - theta) ** 2 - 0.9189385, 0.0, un.Interval(-8, 8))
        >>> fit = un.fit(normal, un.iid([0.4, 0.6, 0.8]), un.Poisson(), un.Fixed(0.0))
        >>> fit.estimate.round(3)
        array([0.6])
    """

    value: float = 0.0

    def __post_init__(self) -> None:
        if not np.isfinite(self.value):
            raise InputError(f"Fixed(value) needs a finite number; got {self.value!r}.")

    @property
    def known(self) -> bool:
        return True

    def layout(self, obs: Observations) -> Layout:
        return Layout(np.zeros(obs.n, dtype=np.intp), 0, float(self.value))

    def to_dict(self) -> dict[str, Any]:
        return {"normaliser": "Fixed", "value": float(self.value)}


@final
class Smooth(Normaliser):
    """χ(x): the constants as a smooth function of the context (Corollary 3), estimated with θ.

    The right choice where Ω has no rule for `Anchored`, or where there are very many contexts. Its terms must be able
    to follow −log ∫ exp f(y|x) dy: they read what f reads of the context.

    Args:
        terms: "s(x_prev, y_prev, k=40)", or terms; they may name context columns only.
        knots: covariate → knots; without them bs='cc' of an earlier point closes at the ends of Ω, with the other knots
            at quantiles of the rows.
        smoothing: None for no penalty, since a χ that is shrunk towards a constant biases θ; "reml" for one whose
            weight is chosen with that of f's terms, as in the paper. A term's own sp= holds in either case.

    Example:
        >>> import unnorm as un
        >>> un.Smooth("s(y_prev, k=10)")
        Smooth('s(y_prev, k=10)')
    """

    of_context = True

    def __init__(
        self,
        terms: str | Term | Terms,
        *,
        knots: Mapping[str, Any] | None = None,
        smoothing: Literal["reml"] | None = None,
    ) -> None:
        parsed = parse(terms)
        if parsed.response is not None or not parsed.terms:
            raise InputError(f"Smooth takes terms of the context, e.g. un.Smooth('s(y_prev, k=10)'); got {terms!r}.")
        if smoothing not in (None, "reml"):
            raise InputError(
                f"smoothing of un.Smooth must be None (no penalty) or 'reml' (chosen with f's); got {smoothing!r}."
            )
        self._written = parsed
        self._terms = parsed if smoothing == "reml" else parsed.unpenalised()
        self._knots = dict(knots or {})
        self._smoothing = smoothing

    def __repr__(self) -> str:
        more = "" if self._smoothing is None else f", smoothing={self._smoothing!r}"
        return f"Smooth({str(self._written)!r}{more})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Smooth) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(str(self._terms))

    @property
    def terms(self) -> Terms:
        return self._terms

    @property
    def knots(self) -> Mapping[str, Any]:
        return self._knots

    def layout(self, obs: Observations) -> Layout:
        raise CombinationError(
            "Smooth() is estimated with reference points or quadrature rows: use it with un.Logistic, un.Importance or "
            "un.Poisson. In un.Exact, un.Ranking and un.ConditionalNCE the constants are integrated out or cancel."
        )

    def to_dict(self) -> dict[str, Any]:
        knots = {name: np.asarray(values).tolist() for name, values in self._knots.items()}
        about = {"normaliser": "Smooth", "terms": str(self._terms), "knots": knots}
        return about if self._smoothing is None else {**about, "smoothing": self._smoothing}


@final
class Anchored(Normaliser):
    """χ(x) = −log ∫ exp f_θ(y|x) dy + δ(x): the constants follow θ, and δ, a constant or a small smooth, what is left.

    The contrast is then the likelihood of the normalised model, and θ̂ is not biased by constants that are smoothed too
    much or cannot see what f reads. Needs a domain that has a rule or can be enumerated.

    Args:
        terms: of δ, e.g. "s(x_prev, y_prev, k=10)", or a kernel, un.Kernel("matern"); default a constant.
        knots: covariate → knots, for δ.

    Example:
        >>> import unnorm as un
        >>> un.Anchored(), un.Anchored("s(y_prev, k=6)")
        (Anchored(), Anchored('s(y_prev, k=6)'))
    """

    anchored = True
    of_context = True

    def __init__(
        self, terms: str | Term | Terms | Normaliser | None = None, *, knots: Mapping[str, Any] | None = None
    ) -> None:
        self._delta = terms if isinstance(terms, Normaliser) else None  # χ's own representation, here of δ
        self._terms = None if terms is None or isinstance(terms, Normaliser) else parse(terms)
        self._knots = dict(knots or {})
        wrong = self._terms is not None and (self._terms.response is not None or not self._terms.terms)
        given = self._delta
        if wrong or (given is not None and (not given.of_context or given.many or given.anchored)):
            raise InputError(
                f"Anchored takes terms of the context, e.g. un.Anchored('s(y_prev)'), or un.Kernel(…); got {terms!r}."
            )

    def __repr__(self) -> str:
        if self._delta is not None:
            return f"Anchored({self._delta!r})"
        return "Anchored()" if self._terms is None else f"Anchored({str(self._terms)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Anchored) and repr(self) == repr(other) and self.knots == other.knots

    def __hash__(self) -> int:
        return hash(repr(self))

    @property
    def terms(self) -> Terms | None:
        return self._terms if self._delta is None else self._delta.terms

    @property
    def knots(self) -> Mapping[str, Any]:
        return self._knots if self._delta is None else self._delta.knots

    def bound(self, obs: Observations) -> Anchored:
        if self._delta is None:
            return self
        delta = self._delta.bound(obs)
        if delta.terms is None:
            raise CombinationError(f"δ of un.Anchored is made of terms or a kernel; {delta!r} has neither.")
        return Anchored(delta)

    def layout(self, obs: Observations) -> Layout:
        """δ, one number."""
        if self._terms is not None or self._delta is not None:
            raise CombinationError(f"{self!r} has a smooth δ, which un.Logistic and un.Importance estimate.")
        return Layout(np.zeros(obs.n, dtype=np.intp), 1)

    def to_dict(self) -> dict[str, Any]:
        knots = {name: np.asarray(values).tolist() for name, values in self.knots.items()}
        about = {} if self.terms is None else {"terms": str(self.terms), "knots": knots}
        return {"normaliser": "Anchored", **about}
