"""q(·|x): the distribution of the reference points, with its log density with respect to Ω's base measure.

A `Reference` is what the user wrote, possibly with parameters left None. `bind` meets it with Ω and the observations
and gives a `BoundReference`: every parameter known, every constant computed, and `log_density` normalised.

Throughout, `t` (N,) holds for each of N rows the observation whose context x_t it uses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from .._base.registry import Registry
from ..domains._centred import Rules
from ..domains._rules import gauss_legendre
from ..errors import CombinationError
from .tracing import Traceable

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain

# What q(·|x_t) depends on: nothing, the context x_t, or (for conditional NCE only) the observed outcome y_t itself.
Given = Literal["nothing", "context", "outcome"]


@dataclass(frozen=True)
class Example:
    """A reference on an Ω that it takes, for the generic tests."""

    reference: Reference
    domain: Domain
    order: int | None = None  # of the rule that integrates its density over Ω
    tolerance: float = 1e-9  # of that integral
    lags: int = 1  # earlier points that its transitions need


class Reference(ABC):
    """A kernel q(·|x) on Ω. `bind` fits the parameters left None to the data.

    Subclasses are frozen dataclasses, with repr=False to take the repr below.
    """

    call: ClassVar[str] = ""  # how a user writes it, in messages; "" for the name and ()
    lives_on: ClassVar[str] = "any Ω"  # the spaces it takes, in messages
    chooses: ClassVar[bool] = False  # whether `bind` takes another reference in its place
    every: bool = False  # whether each of its points is taken once, so that none is drawn
    saved: ClassVar[bool] = True  # whether `to_dict` holds all of it; a user's functions are never saved

    @property
    def everywhere(self) -> bool:
        """Whether some of its points are uniform on Ω, so that more of them, not another law, reach further."""
        return False

    @classmethod
    def takes(cls, domain: Domain) -> bool:
        """Whether the reference can live on this Ω."""
        return True

    @abstractmethod
    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        """The reference made concrete on Ω for these observations (free parameters fitted, constants computed)."""

    def __repr__(self) -> str:
        """As the user would write it, long parameters by their size."""
        return f"{type(self).__name__}({', '.join(f'{k}={short(v)}' for k, v in own_fields(self).items())})"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description; `unnorm.references.from_dict` reads it."""
        values = {name: plain(value) for name, value in own_fields(self).items()}
        return {"reference": type(self).__name__, **values}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        """The reference that `to_dict` described."""
        return cls(**parameters(description))

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Small instances, each with an Ω, for the generic tests; every registered reference has some."""
        return ()

    def check_domain(self, domain: Domain) -> None:
        """Refuse an Ω that this reference does not take, with those that would do there."""
        if not self.takes(domain):
            name = type(self).__name__
            works = ", ".join(part.call or f"{part.__name__}()" for part in REGISTRY.values() if part.takes(domain))
            raise CombinationError(
                f"{name} does not work on {domain!r}: it lives on {self.lives_on}. What works there: {works}."
            )


REGISTRY: Registry[Reference] = Registry("reference", Reference)  # filled by registry.py


class BoundReference(ABC):
    """A reference on a given Ω: every parameter known. `y` is always taken to lie in Ω."""

    domain: Domain
    reference: Reference  # what was asked for, with every parameter filled in
    ratio_only: bool = False  # whether log q(y'|y) is known up to what it shares with log q(y|y'): for conditional NCE
    adapts: bool = False  # whether `refreshed` can refit it to a model as it learns

    def __init__(self, domain: Domain, reference: Reference) -> None:
        self.domain, self.reference = domain, reference

    @property
    def given(self) -> Given:
        """What q depends on."""
        return "nothing"

    @property
    @abstractmethod
    def cube_dim(self) -> int | None:
        """Dimension of the unit cube that `from_unit` takes; None when only IID draws are possible."""

    @property
    def distinct(self) -> int | None:
        """K where the points of an observation are drawn without replacement from K; None where they are IID."""
        return None

    @property
    def periodic(self) -> bool:
        """Whether `from_unit` joins smoothly at opposite faces of the cube, so that a lattice needs no tent map."""
        return False

    @property
    def moved_box(self) -> tuple[np.ndarray, np.ndarray] | None:
        """(low, width) of a box, each (d,), where `from_unit` is low + width frac(u + (x − low)/width) with the
        previous point x, and q is uniform: such points can be made on a device. None elsewhere."""
        return None

    @abstractmethod
    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        """(N, cube_dim) unit points → (N, d) outcomes, row i from q(·|x_t[i])."""

    def sample(self, obs: Observations, t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One IID draw from q(·|x_t[i]) for each entry of `t`, shape (len(t), d)."""
        assert self.cube_dim is not None, "a reference without a map from the cube has its own sample()"
        return self.from_unit(rng.random((len(t), self.cube_dim)), obs, t)

    @abstractmethod
    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        """log q(y_i | x_t[i]) with respect to the base measure, shape (N,); −∞ where q is zero."""

    def log_density_back(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        """log q(y_t[i] | y_i): of the observed outcome, had the step started at y_i. What conditional NCE needs."""
        moved = replace(obs.take(t), outcome=y)
        return self.log_density(obs.outcome[t], moved, np.arange(len(t)))

    def rule(self, obs: Observations, order: int) -> Rules | None:
        """Nodes for integrals against q(·|x_t), about order^d at the context of each observation, and weights that sum
        to one there: Gauss–Legendre on the unit cube, mapped by `from_unit`. None where there is no such map."""
        if self.cube_dim is None or self.cube_dim > 2 or self.given == "outcome":
            return None
        u, w = gauss_legendre(order)
        if self.cube_dim == 2:
            u, w = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1).reshape(-1, 2), np.outer(w, w).ravel()
        else:
            u = u[:, None]
        of = np.repeat(np.arange(obs.n), len(w))
        return self.from_unit(np.tile(u, (obs.n, 1)), obs, of), np.tile(w, obs.n), of

    def traceable(self, obs: Observations) -> Traceable | None:
        """The same law in JAX, to be drawn inside a compiled loop; None where it is drawn by NumPy only."""
        return None

    def refreshed(self, y: np.ndarray, w: np.ndarray, obs: Observations) -> BoundReference:
        """The reference refitted to points y with weights w ∝ exp f/q and to the data, where it `adapts`."""
        raise NotImplementedError(f"{type(self).__name__} does not adapt")

    @abstractmethod
    def describe(self) -> str:
        """One sentence for people: the law, its parameters (fitted or given) and how its constant is computed."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description: the reference with every parameter filled in."""
        return self.reference.to_dict()

    def __repr__(self) -> str:
        return f"<{type(self.reference).__name__} on {self.domain!r}: {self.describe()}>"


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
    """A parameter as JSON has it: arrays and tuples as lists."""
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


def used(t: np.ndarray, n: int) -> tuple[np.ndarray | slice, np.ndarray]:
    """Which of the n observations `t` names, and `t` counted among those: constants are computed once for each."""
    if len(t) >= n:
        return slice(None), t
    index, t = np.unique(t, return_inverse=True)
    return index, t


def short(value: Any) -> str:
    """A parameter's repr; arrays to six digits, or by their size where there are many numbers."""
    if not isinstance(value, tuple | list | np.ndarray) or np.asarray(value).dtype.kind not in "if":
        return repr(value)
    return f"<{' × '.join(map(str, np.shape(value)))} numbers>" if np.size(value) > 12 else numbers(value)


def numbers(values: Any) -> str:
    """Numbers as they appear in a sentence."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return f"{array:.6g}"
    if array.size > 12:
        return f"{array.size} values from {array.min():.4g} to {array.max():.4g}"
    return "(" + ", ".join(numbers(item) for item in array) + ")"
