"""ν, (ν_t) and χ(x) as functions that JAX can trace: what stochastic estimation needs of a normaliser.

A `Normaliser` has one of three forms: `traced(obs, scalar)` (networks, bases of the user's own), `terms` (penalised
smooths), or `layout(obs)` (ν, ν_t or a fixed value).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from ..._base.numerics import x64
from ...data.observations import Observations
from ...errors import CombinationError, InputError, listing
from ...models.base import Model, context_arguments, positional
from ...models.batching import rowwise, tree_leaves
from ...models.normalisers import Layout, Normaliser
from ...objectives.additive import context_columns
from ...terms.base import BuiltTerm
from ..fellner_schall import PlacedPenalty, placed_penalties, total_penalty


class Curve(ABC):
    """χ as a traceable function of its own flat parameters ("nu" in φ). It holds no arrays: equal ones compile once."""

    @abstractmethod
    def __call__(self, nu: Any, rows: Any) -> Any:
        """(b,) values of χ for gathered rows."""


class Chi(ABC):
    """χ for every observation: the curve, and the rows that it is evaluated on."""

    size: int
    rows: Any  # a tree of arrays with first axis n, gathered for each batch
    curve: Curve
    linear: bool = False  # whether χ is linear in its parameters
    layout: Layout | None = None  # which constant each observation uses, where χ is made of constants

    @abstractmethod
    def start(self, target: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Parameters for which χ is near `target`, rough values of −log Z_t at the observations `at`."""

    @abstractmethod
    def take(self, at: np.ndarray) -> Chi:
        """The same χ on some of the observations."""

    def total(self, weight: np.ndarray) -> np.ndarray | None:
        """(q,) Σ_t w_t ∂χ_t/∂ν where χ is linear in ν: its data term needs no minibatch. None where it is not."""
        return None

    @property
    def constant(self) -> float:
        """The value of χ apart from its parameters."""
        return 0.0

    @property
    def penalties(self) -> tuple[PlacedPenalty, ...]:
        """½ λ_j βᵀ S_j β on the parameters; none where χ is not a penalised smooth."""
        return ()

    def penalty(self, lam: np.ndarray) -> np.ndarray:
        """(q, q) S_λ = Σ_j λ_j S_j."""
        return total_penalty(self.penalties, lam, self.size)

    @property
    def shared(self) -> bool:
        """Whether χ is one number for all, so that IID data can share their reference points."""
        return False

    def names(self) -> tuple[str, ...]:
        return ("nu",) if self.size == 1 else tuple(f"nu[{j}]" for j in range(self.size))


@final
@dataclass(frozen=True)
class Constants(Curve):
    """ν, (ν_t) or a fixed value."""

    size: int
    fixed: float | None

    def __call__(self, nu: Any, rows: Any) -> Any:
        import jax.numpy as jnp

        if self.fixed is not None:
            return jnp.full(rows.shape, self.fixed, dtype=nu.dtype)
        return jnp.broadcast_to(nu[0], rows.shape) if self.size == 1 else nu[rows]


@final
@dataclass(frozen=True)
class LayoutChi(Chi):
    """ν, (ν_t) or a fixed value."""

    layout: Layout  # pyright: ignore[reportIncompatibleVariableOverride]
    linear = True

    @property
    def curve(self) -> Curve:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Constants(self.layout.size, self.layout.fixed)

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.layout.size

    @property
    def rows(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.layout.of.astype(np.int32)

    def start(self, target: np.ndarray, at: np.ndarray) -> np.ndarray:
        of, size = self.layout.of[at], max(self.layout.size, 1)
        mean = np.bincount(of, target, size) / np.maximum(np.bincount(of, minlength=size), 1)
        return mean[: self.layout.size]

    def take(self, at: np.ndarray) -> Chi:
        return LayoutChi(replace(self.layout, of=self.layout.of[at]))

    def total(self, weight: np.ndarray) -> np.ndarray | None:
        return np.bincount(self.layout.of, weight, max(self.layout.size, 1))[: self.layout.size]

    @property
    def constant(self) -> float:
        return 0.0 if self.layout.fixed is None else self.layout.fixed

    @property
    def shared(self) -> bool:
        return self.layout.size <= 1


@final
@dataclass(frozen=True)
class DeltaChi(Chi):
    """δ of χ(x) = −log Z_θ(x) + δ; a step subtracts log Z_θ itself, by quadrature."""

    n: int
    size = 1
    curve: Curve = Constants(1, None)

    @property
    def rows(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return np.zeros(self.n, dtype=np.int32)

    def start(self, target: np.ndarray, at: np.ndarray) -> np.ndarray:
        return np.zeros(1)

    def take(self, at: np.ndarray) -> Chi:
        return DeltaChi(len(at))

    def names(self) -> tuple[str, ...]:
        return ("delta",)


@final
@dataclass(frozen=True)
class Linear(Curve):
    """χ(x_t) = B_tᵀ β."""

    def __call__(self, nu: Any, rows: Any) -> Any:
        return rows @ nu


@dataclass(frozen=True)
class DesignChi(Chi):
    """χ(x_t) = B_tᵀ β."""

    design: np.ndarray  # (n, q)
    linear = True

    @property
    def curve(self) -> Curve:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Linear()

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.design.shape[1]

    @property
    def rows(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.design

    def take(self, at: np.ndarray) -> Chi:
        return replace(self, design=self.design[at])

    def total(self, weight: np.ndarray) -> np.ndarray | None:
        return weight @ self.design


@final
@dataclass(frozen=True)
class LinearChi(DesignChi):
    """The user's own columns, without a penalty."""

    def start(self, target: np.ndarray, at: np.ndarray) -> np.ndarray:
        return np.linalg.lstsq(self.design[at], target, rcond=1e-10)[0]


@final
@dataclass(frozen=True)
class Shifted(Curve):
    """χ(x) = b + g_β(z); the free constant b makes the start right."""

    function: Callable[[Any, Any], Any]  # (flat β, one row of z) → scalar

    def __call__(self, nu: Any, rows: Any) -> Any:
        import jax
        import jax.numpy as jnp

        nu = jnp.asarray(nu)  # NumPy's arrays cannot be indexed by what is traced
        return nu[0] + jax.vmap(self.function, in_axes=(None, 0))(nu[1:], rows)


@final
@dataclass(frozen=True)
class NetworkChi(Chi):
    """χ(x) = b + g_β(z), z the standardised context."""

    function: Callable[[Any, Any], Any]
    z: np.ndarray  # (n, c)
    beta0: np.ndarray

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 1 + self.beta0.size

    @property
    def rows(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.z

    @property
    def curve(self) -> Curve:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Shifted(self.function)

    def start(self, target: np.ndarray, at: np.ndarray) -> np.ndarray:
        with x64():
            now = np.asarray(self.curve(np.concatenate([[0.0], self.beta0]), self.z[at]))
        return np.concatenate([[float(np.mean(target - now))], self.beta0])

    def take(self, at: np.ndarray) -> Chi:
        return replace(self, z=self.z[at])


@final
@dataclass(frozen=True)
class SmoothChi(DesignChi):
    """χ(x_t) = β₀ + Σ_j s_j(x_t), penalised: ½ λ_j βᵀ S_j β (eq. 2.7). A column of ones comes first."""

    terms: tuple[BuiltTerm, ...]

    @property
    def penalties(self) -> tuple[PlacedPenalty, ...]:
        return tuple(
            replace(p, span=slice(p.span.start + 1, p.span.stop + 1)) for p in placed_penalties(self.terms, None)
        )

    def start(self, target: np.ndarray, at: np.ndarray) -> np.ndarray:
        B = self.design[at]
        ridge = 1e-6 * len(B) * np.eye(self.size)  # few rows may not see every coefficient
        return np.linalg.solve(B.T @ B + ridge, B.T @ target)

    def names(self) -> tuple[str, ...]:
        return ("nu", *(name for term in self.terms for name in term.coefficient_names))


def chi_of(normaliser: Normaliser, obs: Observations, model: Model, anchors: bool = False) -> Chi:
    """The normaliser as a traceable χ for these observations; `anchors`: whether constants may follow θ."""
    own = normaliser.traced(obs, model.domain.scalar)
    if own is not None:
        return own
    if normaliser.anchored and anchors:
        if normaliser.terms is not None or not obs.has_context or model.domain.rule is None:
            raise CombinationError(
                f"{normaliser!r} is sampled with a constant δ, for data with a context, on a domain that has a rule or "
                "can be enumerated: use un.Anchored() there, and un.Smooth('s(…)'), un.Features(…) or, for data "
                "without a context, un.Constant() elsewhere."
            )
        return DeltaChi(obs.n)
    if normaliser.anchored:
        raise CombinationError(
            f"{normaliser!r} needs an integral for each context and step, which a stochastic run is there to avoid. "
            "Leave solver out, or use normaliser=un.Smooth('s(…)') or un.Network(…)."
        )
    if normaliser.terms is not None:
        columns = context_columns(model, normaliser, obs, np.arange(obs.n))
        known = model.covariates(obs)
        periods = {name: known.period(name) for name in columns if known.period(name)}
        options: dict[str, Any] = {"knots": normaliser.knots, "periods": periods, "categories": obs.categories}
        options |= {"boundary": known.boundary, "ends": known.ends}
        terms = tuple(normaliser.terms.build(columns, **options, intercept=True))
        parts = [term.design({name: columns[name] for name in term.covariates}) for term in terms]
        return SmoothChi(np.column_stack([np.ones(obs.n), *parts]), terms)
    return LayoutChi(normaliser.layout(obs))


# --- normalisers that only stochastic estimation has
# -------------------------------------------------------------------


def _contexts(obs: Observations, scalar: bool, what: str) -> tuple[Any, ...]:
    if not obs.has_context:
        raise CombinationError(
            f"{what} is a function χ(x) of the context, and the observations are IID: they have none. Use "
            f"un.Constant()."
        )
    return context_arguments(obs, scalar, 2 if obs.extra else 1)


@final
@dataclass(frozen=True)
class Features(Normaliser):
    """χ(x) = βᵀ b(x) with a basis of the user's own, for un.SGD and un.sample.

    Args:
        function: b(x) for one context, JAX-traceable, returning q numbers; x as the model's f sees it. Include a
            constant.

    Example:
        >>> import unnorm as un
        >>> chi = Features(lambda x: (1.0, x, x**2, x**3))
    """

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        positional(self.function, "The function of Features", 1, 2)

    @cached_property
    def _rows(self) -> Callable[..., Any]:
        """b at many contexts, compiled once."""
        import jax
        import jax.numpy as jnp

        def one(_: Any, *x: Any) -> Any:
            values = self.function(*x)
            values = values if isinstance(values, tuple | list) else [values]
            return jnp.concatenate([jnp.atleast_1d(jnp.asarray(value, dtype=float)) for value in values])

        return jax.jit(lambda y, args: jax.vmap(one)(y, *args))

    def design(self, obs: Observations, scalar: bool | None = None) -> np.ndarray:
        """(n, q) values b(x_t)."""
        arguments = _contexts(obs, obs.dim == 1 if scalar is None else scalar, "Features")
        arguments = arguments[: positional(self.function, "The function of Features", 1, 2)]
        with x64():
            B = rowwise(self._rows, obs.outcome, arguments, 1024)
        if not np.isfinite(B).all():
            raise InputError("The function of Features is not finite at some contexts; it must be finite at all.")
        return B

    of_context = True

    def traced(self, obs: Observations, scalar: bool) -> Chi:
        return LinearChi(self.design(obs, scalar))

    def layout(self, obs: Observations) -> Layout:
        raise CombinationError(
            "Features works with solver=un.SGD(...) and with un.sample; for Newton use un.PerContext()."
        )

    def to_dict(self) -> dict[str, Any]:
        return {"normaliser": "Features", "name": getattr(self.function, "__name__", "function")}


@final
@dataclass(frozen=True, eq=False)
class Network(Normaliser):
    """χ(x) as a network, for un.SGD (un.sample's Langevin too, at the price of a χ that has no exact marginal).

    The context's columns, in their order, are standardised to mean 0 and sd 1 and passed as one vector; a free
    constant is added to the output.

    Args:
        module: a pytree that can be called on a (c,) vector and returns one number, such as an `equinox.nn.MLP`; or any
            tree of parameters, with `function`.
        function: g(parameters, z) for one (c,) vector z; default `module(z)`.
        standardise: False passes the columns as they are, e.g. numbers of words.

    Example:
        >>> import unnorm as un
        >>> import jax.numpy as jnp, numpy as np
        >>> chi = Network({"w": np.zeros(3)}, lambda b, z: b["w"] @ jnp.stack([z[0], z[0] ** 2, z[0] ** 3]))
    """

    module: Any
    function: Callable[[Any, Any], Any] | None = None
    standardise: bool = True

    of_context = True

    def traced(self, obs: Observations, scalar: bool) -> Chi:
        arguments = _contexts(obs, scalar, "Network")
        columns = np.column_stack([leaf.reshape(obs.n, -1) for leaf in tree_leaves(arguments)])
        if not self.standardise:
            return NetworkChi(self._call, columns, self._flat.start)
        spread = columns.std(axis=0)
        z = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        return NetworkChi(self._call, z, self._flat.start)

    @cached_property
    def _flat(self) -> Any:
        """The flattening of a tree of parameters."""
        from ...domains import Interval
        from ...models.energy import Energy

        return Energy(lambda beta, y: 0.0, self.module, Interval(0, 1))

    @cached_property
    def _call(self) -> Callable[[Any, Any], Any]:
        """g of flat parameters: one function for every fit, so that it is compiled once."""
        call = self.function if self.function is not None else (lambda module, z: module(z))
        if self.function is None and not callable(self.module):
            raise InputError(
                "Network(module) needs a module that can be called on a vector; else pass function=g(params, z)."
            )
        unravel = self._flat.unravel

        def one(beta: Any, row: Any) -> Any:
            import jax.numpy as jnp

            value = jnp.asarray(call(unravel(beta), row), dtype=float)
            if value.size != 1:
                raise InputError(f"χ(x) must be one number; the network returned shape {value.shape}.")
            return value.reshape(())

        return one

    def layout(self, obs: Observations) -> Layout:
        raise CombinationError(
            f"Network works with solver=un.SGD(...) and un.sample; with Newton use one of "
            f"{listing(['un.PerContext()'])}."
        )

    def to_dict(self) -> dict[str, Any]:
        return {"normaliser": "Network", "module": type(self.module).__name__}
