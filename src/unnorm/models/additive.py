"""f(y|x) as a sum of smooth terms of covariates: the spatial Markov chains of Section 4.2, and their relatives."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from .._base.numerics import flag
from ..data.covariates import Covariate, CovariateSet
from ..data.observations import Observations
from ..domains.base import Domain
from ..engine.ahead import compile_ahead
from ..errors import InputError, TermError
from ..terms import Terms, parse
from ..terms.specs import Term
from .base import LinearPart, Unnormalised
from .tilt import Tilt, checked


@final
@dataclass(frozen=True, eq=False)
class Additive(Unnormalised):
    """f(y|x) = Σ_j f_j(covariates of (y, x)), each f_j a smooth, linear or factor term.

    Args:
        terms: "s(step, k=10) + s(dcenter, k=40) + s(angle, bs='cc', k=20)", or un.s("step", k=10) + …
        domain: Ω.
        covariates: `un.Map`, `un.Expression` and `un.Function` objects that the terms may name, besides the built-ins.
        centre: the point that `dcenter` is measured from; default the domain's own.
        y_down: whether y grows downwards, as pixels do; angles are then as seen on the screen.
        knots: covariate → knots; without them a cyclic smooth of a coordinate closes at the ends of Ω.
        base: `un.Tilt(kernel)` for p(y|x) ∝ k(y|x) exp f(y|x), f relative to the law k of a kernel; default Ω's own
            measure.

    Example:
        >>> import unnorm as un
        >>> model = un.Additive("s(step, k=10) + s(angle, bs='cc', k=20)", un.Box((0, 800), (0, 600)))
        >>> [term.label for term in model.terms]
        ['s(step)', 's(angle)']
    """

    terms: Terms = field()  # pyright: ignore[reportIncompatibleVariableOverride]
    domain: Domain
    covariate_objects: tuple[Covariate, ...] = field(default=())
    centre: tuple[float, ...] | None = None
    y_down: bool = False
    knots: Mapping[str, Any] = field(default_factory=dict)
    base: Tilt | None = None

    def __init__(
        self,
        terms: str | Term | Terms,
        domain: Domain,
        *,
        covariates: Sequence[Covariate] = (),
        centre: Sequence[float] | None = None,
        y_down: bool = False,
        knots: Mapping[str, Any] | None = None,
        base: Tilt | None = None,
    ) -> None:
        if not isinstance(domain, Domain):
            raise InputError(f"domain must be a Domain such as un.Box((0, 800), (0, 600)); got {domain!r}.")
        wrong = [one for one in covariates if not isinstance(one, Covariate)]
        if isinstance(covariates, Mapping) or wrong:
            raise InputError(
                "covariates must be a list of un.Expression, un.Function and un.Map objects, each with its name; "
                f"got {type(covariates).__name__}{f' with {wrong[0]!r}' if wrong else ''}."
            )
        compile_ahead()  # an additive model is made to be fitted
        parsed = parse(terms)
        if parsed.response is not None:
            raise InputError(f"The terms of a model have no response: drop {parsed.response!r} and the '~'.")
        if not parsed.terms:
            raise InputError("An additive model needs at least one term, e.g. un.Additive('s(step)', domain).")
        object.__setattr__(self, "terms", parsed)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "covariate_objects", tuple(covariates))
        object.__setattr__(self, "centre", None if centre is None else tuple(float(c) for c in centre))
        object.__setattr__(self, "y_down", flag(y_down, "y_down"))
        object.__setattr__(self, "knots", dict(knots or {}))
        object.__setattr__(self, "base", checked(base))

    def _anew(self, covariates: tuple[Covariate, ...], base: Tilt | None) -> Additive:
        return Additive(
            self.terms, self.domain, covariates=covariates, centre=self.centre, y_down=self.y_down, knots=self.knots,
            base=base,
        )  # fmt: skip

    def over(self, base: Tilt) -> Additive:
        return self._anew(self.covariate_objects, base)

    def read_alone(self) -> Additive:
        names = list(self.terms.columns)
        for name in names:  # grows as it goes
            names += [need for need in self.needs(name) if need not in names]
        return self._anew(tuple(one for one in self.covariate_objects if one.name in names), self.base)

    @property
    def additive(self) -> bool:
        return True

    def needs(self, name: str) -> tuple[str, ...]:
        return next((one.needs for one in self.covariate_objects if one.name == name), ())

    def covariates(self, obs: Observations) -> CovariateSet:
        centre = self.centre
        if centre is None and self.domain.dim == 2:
            centre = self.domain.centre
        return CovariateSet(obs, self.covariate_objects, centre=centre, y_down=self.y_down, domain=self.domain)

    def check(self, obs: Observations) -> None:
        super().check(obs)
        for term in self.terms if self.domain.sphere else ():
            if term.isotropic and set(obs.outcome_names) <= set(term.columns):
                squares = " + ".join(f"{name}²" for name in obs.outcome_names)
                raise TermError(
                    f"{term.label}: on the unit sphere {squares} = 1, so that a smooth function in space is not unique "
                    "there. Use s(latitude, longitude, bs='sos'), in degrees, which are known on a Sphere."
                )

    def linear_part(self, obs: Observations, y: np.ndarray, at: np.ndarray, theta: np.ndarray | None) -> LinearPart:
        return LinearPart(self.terms, self.covariates(obs).values(self.terms.columns, obs, y, at), None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": "Additive",
            "terms": str(self.terms),
            "domain": self.domain.to_dict(),
            "centre": None if self.centre is None else list(self.centre),
            "y_down": self.y_down,
            "knots": {name: np.asarray(values).tolist() for name, values in self.knots.items()},
            "covariates": [_fingerprint(covariate.to_dict()) for covariate in self.covariate_objects],
            **({} if self.base is None else {"base": self.base.to_dict()}),
        }


def _fingerprint(given: Any) -> Any:
    """A description with its arrays (a map's grids) replaced by shape and digest: small, and tells other maps apart."""
    if isinstance(given, np.ndarray):
        plain = np.ascontiguousarray(given)
        return {"shape": list(plain.shape), "sha256": hashlib.sha256(plain.tobytes()).hexdigest()}
    if isinstance(given, Mapping):
        return {name: _fingerprint(value) for name, value in given.items()}
    return [_fingerprint(value) for value in given] if isinstance(given, list | tuple) else given
