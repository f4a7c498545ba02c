"""An additive model whose terms have met the data: f = X(y, x) β, with basis functions as statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np

from ..data.covariates import CovariateSet
from ..data.observations import Observations
from ..domains.base import Domain
from ..errors import CombinationError, hush
from ..terms.base import BuiltTerm
from .base import Context, DataTerms, Kernels, Model, Moments, Unnormalised
from .linear import LinearDataTerms
from .tilt import Tilt

BLOCK_ROWS = 65_536
KEPT_BYTES = 2**30  # basis functions at the quadrature nodes are kept between iterations up to this size


@final
@dataclass(frozen=True, eq=False)
class BuiltAdditive(Model):
    """f = Σ_j X_j β_j for terms built on given data; contexts are looked up in `obs`."""

    source: Unnormalised
    obs: Observations
    built: tuple[BuiltTerm, ...]
    names: tuple[str, ...] = field(init=False)
    context_arity: int = field(init=False, default=1)
    _blocks: dict[int, list[tuple[int, int, np.ndarray]]] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        names = [f"{t.label}.{j + 1}" if t.size > 1 else t.label for t in self.built for j in range(t.size)]
        object.__setattr__(self, "names", tuple(names))

    @property
    def domain(self) -> Domain:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.source.domain

    @property
    def base(self) -> Tilt | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.source.base

    @property
    def linear(self) -> bool:
        return True

    @property
    def start(self) -> np.ndarray:
        return np.zeros(len(self.names))

    @cached_property
    def covariate_set(self) -> CovariateSet:
        return self.source.covariates(self.obs)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for term in self.built for name in term.covariates))

    def unflatten(self, theta: np.ndarray) -> dict[str, float]:
        return dict(zip(self.names, theta.tolist()))

    def flatten(self, theta: Any) -> np.ndarray:
        return np.asarray(theta, dtype=np.float64)

    def check(self, obs: Observations) -> None:
        self.source.check(obs)

    def arguments(self, obs: Observations, at: np.ndarray) -> tuple[Any, ...]:
        """Contexts travel as positions among the observations."""
        return (at,)

    def contexts(self, obs: Observations) -> Context:
        every = np.arange(obs.n)
        if not obs.has_context:
            return Context((every[:1],), np.zeros(obs.n, dtype=np.intp), 1)
        return Context((every,), every, obs.n)

    def jacobian(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        values = self.covariate_set.values(self.columns, self.obs, y, np.asarray(arguments[0]))
        out, begin = np.empty((len(y), self.size)), 0
        for term in self.built:
            out[:, begin : begin + term.size] = term.design({name: values[name] for name in term.covariates})
            begin += term.size
        return out

    def curvature(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...], weight: np.ndarray) -> np.ndarray:
        return np.zeros((self.size, self.size))

    def log_f(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        at = np.asarray(arguments[0])
        parts = [
            self.jacobian(theta, y[begin : begin + BLOCK_ROWS], (at[begin : begin + BLOCK_ROWS],)) @ theta
            for begin in range(0, len(y), BLOCK_ROWS)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def data_terms(self, y: np.ndarray, arguments: tuple[Any, ...], weight: np.ndarray) -> DataTerms:
        return LinearDataTerms(weight @ self.jacobian(self.start, y, arguments))

    def _build_kernels(self) -> Kernels:
        raise CombinationError("Built terms are evaluated in NumPy; they have no compiled kernels.")

    def _tables(self, nodes: np.ndarray, context: Context) -> Any:
        """(first, last, X) over blocks of contexts, X of shape (c, N, p); kept between iterations where they fit."""
        key = hash((len(nodes), context.size, nodes[0].tobytes(), nodes[-1].tobytes()))
        if key in self._blocks:
            yield from self._blocks[key]
            return
        keep = 8 * context.size * len(nodes) * self.size <= KEPT_BYTES
        kept = []
        each = max(1, BLOCK_ROWS // len(nodes))
        for begin in range(0, context.size, each):
            at = np.asarray(context.arguments[0])[begin : begin + each]
            with hush():  # nodes at the far end of Ω are no rows of the user's
                X = self.jacobian(self.start, np.tile(nodes, (len(at), 1)), (np.repeat(at, len(nodes)),))
            block = (begin, begin + len(at), X.reshape(len(at), len(nodes), -1))
            if keep:
                kept.append(block)
            yield block
        if keep:
            self._blocks.clear()
            self._blocks[key] = kept

    def log_z(self, theta: np.ndarray, nodes: np.ndarray, log_w: np.ndarray, context: Context) -> np.ndarray:
        out = np.empty(context.size)
        for begin, end, X in self._tables(nodes, context):
            f = X @ theta + log_w
            top = f.max(axis=1)
            out[begin:end] = top + np.log(np.exp(f - top[:, None]).sum(axis=1))
        return out

    def moments(
        self, theta: np.ndarray, nodes: np.ndarray, log_w: np.ndarray, context: Context, log_a: np.ndarray, tilt: bool
    ) -> Moments:
        p = self.size
        log_z, mean, second = np.empty(context.size), np.empty((context.size, p)), np.zeros((p, p))
        for begin, end, X in self._tables(nodes, context):
            f = X @ theta + log_w
            top = f.max(axis=1)
            e = np.exp(f - top[:, None])
            z = e.sum(axis=1)
            log_z[begin:end] = top + np.log(z)
            density = e / z[:, None]
            mean[begin:end] = np.einsum("cn,cnp->cp", density, X, optimize=True)
            a = np.exp(log_a[begin:end] + (log_z[begin:end] if tilt else 0.0))
            flat = X.reshape(-1, p)
            second += flat.T @ (flat * (density * a[:, None]).reshape(-1, 1))
        return Moments(log_z, mean, second)

    def to_dict(self) -> dict[str, Any]:
        return self.source.to_dict()
