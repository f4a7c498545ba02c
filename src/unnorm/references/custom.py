"""A user's own pair of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from .._base.numerics import flag
from ..domains import Interval
from ..errors import CombinationError, InputError
from .agreement import check_agreement
from .base import BoundReference, Example, Given, Reference

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain


@final
@dataclass(frozen=True, repr=False)
class Custom(Reference):
    """Your own q: `sample(rng, n, x)` draws n outcomes, `log_density(y, x)` gives log q(y|x), normalised on Ω.

    Both are vectorised over rows: y has shape (n,) on intervals and circles, else (n, d). x is None for IID data; for
    transitions the previous points, of y's shape (with lags=2 and more, (n, lags) or (n, lags, d)); for a regression a
    mapping from names to (n,) columns. Points are IID: without a map from the unit cube there are no lattices. `bind`
    draws some thousand points and refuses a pair whose points do not follow its density, or whose density does not
    integrate to one; `check=False` leaves that out, for points that are handed out from a table and not drawn (the
    standard errors then rest on your word). A saved fit remembers the name only: to use it again, give the functions
    again.

    Args:
        sample: (rng, n, x) → n outcomes.
        log_density: (y, x) → (n,) values of log q.
        name: what summaries and saved fits call it.
        check: whether `bind` compares points with density.

    >>> import numpy as np
    >>> from unnorm.references import Custom
    >>> ramp = Custom(lambda rng, n, x: np.sqrt(rng.random(n)), lambda y, x: np.log(2 * y), name="ramp on [0, 1]")
    """

    call: ClassVar[str] = "Custom(sample, log_density)"
    saved: ClassVar[bool] = False

    sample: Callable[[np.random.Generator, int, Any], Any]
    log_density: Callable[[Any, Any], Any]
    name: str = "custom"
    check: bool = True

    def __post_init__(self) -> None:
        for what in ("sample", "log_density"):
            if not callable(getattr(self, what)):
                raise InputError(f"{what} of Custom must be a function; got {getattr(self, what)!r}.")
        flag(self.check, "check of Custom")

    def __repr__(self) -> str:
        return f"Custom(…, name={self.name!r})"

    def to_dict(self) -> dict[str, Any]:
        return {"reference": "Custom", "name": self.name}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Custom:
        raise CombinationError(
            f"The reference {description.get('name')!r} is a user's own pair of functions, which are not saved: "
            "make it again with Custom(sample, log_density)."
        )

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        ramp = cls(lambda rng, n, x: 2.0 * np.sqrt(rng.random(n)) - 1.0, _log_ramp, name="ramp")
        return (Example(ramp, Interval(-1, 1)),)

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        bound = BoundCustom(domain, self)
        if self.check:
            check_agreement(bound, obs, f"Custom {self.name!r}")
        return bound


def _log_ramp(y: np.ndarray, x: Any) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(0.5 * (y + 1.0))


@final
class BoundCustom(BoundReference):
    """A pair of functions on a given Ω."""

    def __init__(self, domain: Domain, reference: Custom) -> None:
        super().__init__(domain, reference)
        self._name, self._sample, self._log_density = reference.name, reference.sample, reference.log_density

    @property
    def given(self) -> Given:
        return "context"

    @property
    def cube_dim(self) -> None:
        return None

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        raise NotImplementedError("a pair (sample, log density) has no map from the unit cube")

    def _x(self, obs: Observations, t: np.ndarray) -> Any:
        if not obs.has_context:
            return None
        if obs.kind == "conditional":
            return {name: column[t] for name, column in obs.context.items()}
        lags = [obs.previous(lag)[t] for lag in range(1, obs.lags + 1)]
        lags = [points[:, 0] if self.domain.scalar else points for points in lags]
        return lags[0] if obs.lags == 1 else np.stack(lags, axis=1)

    def sample(self, obs: Observations, t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        y = np.asarray(self._sample(rng, len(t), self._x(obs, t)), dtype=np.float64)
        shape = (len(t),) if self.domain.scalar else (len(t), self.domain.dim)
        if y.shape != shape and y.shape != (len(t), self.domain.dim):
            raise InputError(f"sample of Custom {self._name!r} must give an array of shape {shape}; got {y.shape}.")
        y = y.reshape(len(t), self.domain.dim)
        if not (inside := self.domain.contains(y)).all():
            raise InputError(
                f"sample of Custom {self._name!r} gave {np.sum(~inside):,} of {len(y):,} points outside "
                f"{self.domain!r}, the first {y[~inside][0].tolist()}. Truncate it to Ω, with the density normalised "
                "there."
            )
        return y

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        value = self._log_density(y[:, 0] if self.domain.scalar else y, self._x(obs, t))
        value = np.asarray(value, dtype=np.float64)
        if value.ndim == 0:
            value = np.full(len(y), value)
        if value.shape != (len(y),):
            raise InputError(
                f"log_density of Custom {self._name!r} must give one number per row, shape ({len(y)},); got "
                f"{value.shape}."
            )
        return value

    def describe(self) -> str:
        return f"{self._name}, a user's own pair of functions; IID points only"
