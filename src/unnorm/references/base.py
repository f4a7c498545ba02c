"""q(·|x): the distribution of the reference points, with its log density with respect to Ω's base measure.

A `Reference` is what the user wrote, possibly with parameters left None. `bind` meets it with Ω and the observations
and gives a `BoundReference`: every parameter known, every constant computed, and `log_density` normalised.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain

# What q(·|x_t) depends on: nothing, the context x_t, or (for conditional NCE only) the observed outcome y_t itself.
Given = Literal["nothing", "context", "outcome"]


class Reference(ABC):
    """A kernel q(·|x) on Ω. Subclasses are frozen dataclasses; `bind` fits the parameters left None to the data."""

    @abstractmethod
    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        """The reference made concrete on Ω for these observations (free parameters fitted, constants computed)."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description; `unnorm.references.from_dict` reads it."""
        values = {name: plain(value) for name, value in own_fields(self).items()}
        return {"reference": type(self).__name__, **values}


class BoundReference(ABC):
    """A reference on a given Ω: every parameter known. `y` is always taken to lie in Ω."""

    domain: Domain
    reference: Reference  # what was asked for, with every parameter filled in

    @property
    def given(self) -> Given:
        """What q depends on."""
        return "nothing"

    @property
    @abstractmethod
    def cube_dim(self) -> int | None:
        """Dimension of the unit cube that `from_unit` takes; None when only IID draws are possible."""

    @property
    def periodic(self) -> bool:
        """Whether `from_unit` joins smoothly at opposite faces of the cube, so that a lattice needs no tent map."""
        return False

    @abstractmethod
    def from_unit(self, u: np.ndarray, obs: Observations, at: np.ndarray) -> np.ndarray:
        """(n, cube_dim) unit points, and the observation index `at` (n,) whose context each uses → (n, d) outcomes."""

    def sample(self, obs: Observations, at: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One IID draw for each entry of `at`, shape (len(at), d)."""
        assert self.cube_dim is not None, "a reference without a map from the cube has its own sample()"
        return self.from_unit(rng.random((len(at), self.cube_dim)), obs, at)

    @abstractmethod
    def log_density(self, y: np.ndarray, obs: Observations, at: np.ndarray) -> np.ndarray:
        """log q(y_i | x_at[i]) with respect to the base measure, shape (n,); −∞ where q is zero."""

    def log_density_back(self, y: np.ndarray, obs: Observations, at: np.ndarray) -> np.ndarray:
        """log q(y_at[i] | y_i): of the observed outcome, had the step started at y_i. What conditional NCE needs."""
        moved = replace(obs.take(at), outcome=y)
        return self.log_density(obs.outcome[at], moved, np.arange(len(at)))

    @abstractmethod
    def describe(self) -> str:
        """One sentence for people: the law, its parameters (fitted or given) and how its constant is had."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description: the reference with every parameter filled in."""
        return self.reference.to_dict()


def own_fields(instance: Any) -> dict[str, Any]:
    """The fields of a frozen dataclass, by name."""
    return {field.name: getattr(instance, field.name) for field in fields(instance)}


def is_number(value: Any, least: float = -np.inf, strict: bool = False) -> bool:
    """Whether `value` is one finite number, at least (or above) `least`."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return bool(np.isfinite(value) and (value > least if strict else value >= least))


def root(function: Callable[[float], Any], low: float, high: float) -> float:
    """The zero of an increasing or decreasing function between two points."""
    from scipy.optimize import brentq

    value: Any = brentq(function, low, high, xtol=1e-13)
    return float(value)


def plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def frozen(value: Any) -> Any:
    """The inverse of `plain` for numbers: lists as tuples, so that specifications compare and hash."""
    return tuple(frozen(item) for item in value) if isinstance(value, list) else value


def parameters(description: Mapping[str, Any]) -> dict[str, Any]:
    """The constructor's arguments in a description."""
    return {key: frozen(value) for key, value in description.items() if key not in ("reference", "law")}


def used(at: np.ndarray, n: int) -> tuple[np.ndarray | slice, np.ndarray]:
    """Which of the n observations `at` names, and `at` counted among those: constants are computed once for each."""
    if len(at) >= n:
        return slice(None), at
    index, at = np.unique(at, return_inverse=True)
    return index, at


def numbers(values: Any) -> str:
    """Numbers as they stand in a sentence."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return f"{array:.6g}"
    if array.size > 12:
        return f"{array.size} values from {array.min():.4g} to {array.max():.4g}"
    return "(" + ", ".join(numbers(item) for item in array) + ")"
