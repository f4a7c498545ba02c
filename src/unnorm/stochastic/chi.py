"""ν, (ν_t) and χ(x) as functions that JAX can trace: what stochastic estimation needs of a normaliser.

A `Normaliser` is asked what it has, in this order: `chi(obs, arguments)` (networks), `design(obs)` (a linear basis, χ
= Bβ), and `layout(obs)` (ν, ν_t or a fixed value), which every normaliser has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from .._numerics import x64
from ..data import Observations
from ..errors import CombinationError, InputError, listing
from ..models.base import context_arguments, positional
from ..models.batching import rowwise, tree_leaves
from ..normalisers import Layout, Normaliser


class Chi(ABC):
    """χ for every observation as a traceable function of its own flat parameters ("nu" in φ)."""

    size: int
    rows: Any  # a tree of arrays with first axis n, gathered for each batch

    @abstractmethod
    def at(self, nu: Any, rows: Any) -> Any:
        """(b,) values of χ for gathered rows."""

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
    def shared(self) -> bool:
        """Whether χ is one number for all, so that IID data can share their reference points."""
        return False

    def names(self) -> tuple[str, ...]:
        return ("nu",) if self.size == 1 else tuple(f"nu[{j}]" for j in range(self.size))


@final
@dataclass(frozen=True)
class LayoutChi(Chi):
    """ν, (ν_t) or a fixed value."""

    layout: Layout

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.layout.size

    @property
    def rows(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.layout.of.astype(np.int32)

    def at(self, nu: Any, rows: Any) -> Any:
        import jax.numpy as jnp

        if self.layout.fixed is not None:
            return jnp.full(rows.shape, self.layout.fixed, dtype=float)
        return jnp.broadcast_to(nu[0], rows.shape) if self.layout.size == 1 else nu[rows]

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
class LinearChi(Chi):
    """χ(x_t) = B_tᵀ β."""

    design: np.ndarray  # (n, q)

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.design.shape[1]

    @property
    def rows(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.design

    def at(self, nu: Any, rows: Any) -> Any:
        return rows @ nu

    def start(self, target: np.ndarray, at: np.ndarray) -> np.ndarray:
        return np.linalg.lstsq(self.design[at], target, rcond=1e-10)[0]

    def take(self, at: np.ndarray) -> Chi:
        return LinearChi(self.design[at])

    def total(self, weight: np.ndarray) -> np.ndarray | None:
        return weight @ self.design


@final
@dataclass(frozen=True)
class NetworkChi(Chi):
    """χ(x) = b + g_β(z), z the standardised context; the free constant b makes the start right."""

    function: Callable[[Any, Any], Any]  # (flat β, one row of z) → scalar
    z: np.ndarray  # (n, c)
    beta0: np.ndarray

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 1 + self.beta0.size

    @property
    def rows(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.z

    def at(self, nu: Any, rows: Any) -> Any:
        import jax

        return nu[0] + jax.vmap(self.function, in_axes=(None, 0))(nu[1:], rows)

    def start(self, target: np.ndarray, at: np.ndarray) -> np.ndarray:
        with x64():
            now = np.asarray(self.at(np.concatenate([[0.0], self.beta0]), self.z[at]))
        return np.concatenate([[float(np.mean(target - now))], self.beta0])

    def take(self, at: np.ndarray) -> Chi:
        return replace(self, z=self.z[at])


def chi_of(normaliser: Normaliser, obs: Observations, scalar: bool) -> Chi:
    """The normaliser as a traceable χ for these observations."""
    chi = getattr(normaliser, "chi", None)
    if chi is not None:
        return chi(obs, scalar)
    design = getattr(normaliser, "design", None)
    if design is not None:
        return LinearChi(np.asarray(design(obs), dtype=np.float64))
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

    def design(self, obs: Observations, scalar: bool | None = None) -> np.ndarray:
        """(n, q) values b(x_t)."""
        import jax
        import jax.numpy as jnp

        arguments = _contexts(obs, obs.dim == 1 if scalar is None else scalar, "Features")
        arguments = arguments[: positional(self.function, "The function of Features", 1, 2)]

        def one(_: Any, *x: Any) -> Any:
            values = self.function(*x)
            values = values if isinstance(values, tuple | list) else [values]
            return jnp.concatenate([jnp.atleast_1d(jnp.asarray(value, dtype=float)) for value in values])

        with x64():
            rows = jax.jit(lambda y, args: jax.vmap(one)(y, *args))
            B = rowwise(rows, obs.outcome, arguments, 1024)
        if not np.isfinite(B).all():
            raise InputError("The function of Features is not finite at some contexts; it must be finite at all.")
        return B

    def chi(self, obs: Observations, scalar: bool) -> Chi:
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

    Example:
        >>> import unnorm as un
        >>> import jax.numpy as jnp, numpy as np
        >>> chi = Network({"w": np.zeros(3)}, lambda b, z: b["w"] @ jnp.stack([z[0], z[0] ** 2, z[0] ** 3]))
    """

    module: Any
    function: Callable[[Any, Any], Any] | None = None

    def chi(self, obs: Observations, scalar: bool) -> Chi:
        from ..domains import Interval
        from ..models.energy import Energy

        arguments = _contexts(obs, scalar, "Network")
        columns = np.column_stack([leaf.reshape(obs.n, -1) for leaf in tree_leaves(arguments)])
        spread = columns.std(axis=0)
        z = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        call = self.function if self.function is not None else (lambda module, z: module(z))
        if self.function is None and not callable(self.module):
            raise InputError(
                "Network(module) needs a module that can be called on a vector; else pass function=g(params, z)."
            )
        flat = Energy(lambda beta, y: 0.0, self.module, Interval(0, 1))  # flattening of a tree of parameters

        def one(beta: Any, row: Any) -> Any:
            import jax.numpy as jnp

            value = jnp.asarray(call(flat.unravel(beta), row), dtype=float)
            if value.size != 1:
                raise InputError(f"χ(x) must be one number; the network returned shape {value.shape}.")
            return value.reshape(())

        return NetworkChi(one, z, flat.start)

    def layout(self, obs: Observations) -> Layout:
        raise CombinationError(
            f"Network works with solver=un.SGD(...) and un.sample; with Newton use one of "
            f"{listing(['un.PerContext()'])}."
        )

    def to_dict(self) -> dict[str, Any]:
        return {"normaliser": "Network", "module": type(self.module).__name__}
