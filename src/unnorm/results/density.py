"""p(y|x) ∝ exp f̂(y|x) as a fit knows it: f̂ on any rows, and log Z by quadrature.

Every number that needs the normalised density (log_density, held-out bits, the check of χ̂, the report) takes log Z from
here. Smooth terms of a chain are functions of the step, with a kink at y = x: their rule is centred at the previous
point (domains/_centred.py). Parametric models are smooth in y and take the domain's own rule.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from ..data.observations import Observations
from ..data.placing import by_window, placed
from ..domains.base import Domain, Quadrature
from ..models.base import Model, Unnormalised
from ..models.gibbs import ChangeSampler
from ..objectives.integrals import own_rules
from ..references.base import BoundReference
from .smooths import SmoothPart

ROWS_AT_ONCE = 400_000  # rows of f̂ held at once
CONTEXTS_AT_ONCE = 250  # of a centred rule, about as many rows


class Density(ABC):
    """An estimated or given unnormalised log density."""

    domain: Domain

    sweeps: bool = False  # whether `sampler` gives Gibbs sweeps on bits

    @abstractmethod
    def f(self, obs: Observations, y: np.ndarray, at: np.ndarray) -> np.ndarray:
        """f̂(y_i | context of observation at[i]), (N,), relative to the model's base."""

    @abstractmethod
    def law(self, obs: Observations) -> BoundReference | None:
        """k, where the model is k exp f̂; else None."""

    def log_f(self, obs: Observations, y: np.ndarray, at: np.ndarray) -> np.ndarray:
        """log of the unnormalised density with respect to Ω's own measure: f̂, or f̂ + log k."""
        f, law = self.f(obs, y, at), self.law(obs)
        return f if law is None else f + law.log_density(y, obs, at)

    @abstractmethod
    def contexts(self, obs: Observations) -> tuple[np.ndarray, np.ndarray]:
        """Representatives of the distinct contexts (U,), and which of them each observation has (n,)."""

    def additive(self) -> tuple[Unnormalised, SmoothPart] | None:
        """The model and its fitted terms, where f̂ is the sum of these; None where it is not."""
        return None

    def on(self, window: Domain) -> Density:
        """The same f̂ on another Ω: on the window of one context, where each has its own."""
        raise NotImplementedError(f"{type(self).__name__} has one domain")

    def sampler(self, obs: Observations, at: np.ndarray) -> ChangeSampler | None:
        """Gibbs sweeps over bits, one chain for each entry of `at`; None where Ω is not bits or f̂ has no such thing."""
        return None

    def log_z(self, obs: Observations, order: int | None = None) -> np.ndarray:
        """(n,) log ∫ exp f̂(y|x_t) dy by quadrature or enumeration, once for each distinct context.

        Args:
            obs: whose contexts x_t.
            order: of the rule; default the domain's own.
        """
        centred = obs.kind == "transitions" and self.domain.centred(obs.previous()[:1], order) is not None
        return self._own(obs, order) if centred or self.law(obs) is not None else self._by(self.quadrature(order), obs)

    def _own(self, obs: Observations, order: int | None) -> np.ndarray:
        """Nodes that crowd towards the previous point, where a chain's density may be sharp, or follow its kernel."""
        out, law = np.empty(obs.n), self.law(obs)
        for begin, end in _blocks(obs.n, CONTEXTS_AT_ONCE):
            points, weights, of = own_rules(self.domain, law, obs.take(np.arange(begin, end)), order)
            f = self.f(obs, points, begin + of)
            starts = np.searchsorted(of, np.arange(end - begin))
            top = np.maximum.reduceat(f, starts)
            out[begin:end] = top + np.log(np.add.reduceat(weights * np.exp(f - top[of]), starts))
        return out

    def quadrature(self, order: int | None) -> Quadrature:
        """The rule of that order: the domain's, unless the model has its own."""
        return self.domain.quadrature(order)

    def _by(self, rule: Quadrature, obs: Observations) -> np.ndarray:
        """The same nodes for all contexts."""
        first, of = self.contexts(obs)
        nodes, log_w = rule.points, np.log(rule.weights)
        out = np.empty(len(first))
        for begin, end in _blocks(len(first), max(1, ROWS_AT_ONCE // len(nodes))):
            at = np.repeat(first[begin:end], len(nodes))
            f = self.log_f(obs, np.tile(nodes, (end - begin, 1)), at).reshape(end - begin, -1) + log_w
            top = f.max(axis=1, keepdims=True)
            out[begin:end] = (top + np.log(np.exp(f - top).sum(axis=1, keepdims=True)))[:, 0]
        return out[of]


def _blocks(total: int, length: int) -> Iterator[tuple[int, int]]:
    for begin in range(0, total, length):
        yield begin, min(begin + length, total)


@final
@dataclass(frozen=True)
class ParametricDensity(Density):
    """f_θ̂ of a parametric model."""

    model: Model
    theta: np.ndarray

    sweeps = True

    @property
    def domain(self) -> Domain:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.model.domain

    def on(self, window: Domain) -> Density:
        return replace(self, model=self.model.on(window))

    def quadrature(self, order: int | None) -> Quadrature:
        return self.model.quadrature(order)

    def log_z(self, obs: Observations, order: int | None = None) -> np.ndarray:
        if self.model.log_partition is None:
            return super().log_z(obs, order)
        context = self.model.contexts(obs)
        nothing = np.zeros((1, self.domain.dim)), np.zeros(1)
        return self.model.log_z(self.theta, *nothing, context)[context.of]

    def law(self, obs: Observations) -> BoundReference | None:
        return self.model.law(obs)

    def f(self, obs: Observations, y: np.ndarray, at: np.ndarray) -> np.ndarray:
        return self.model.log_f(self.theta, y, self.model.arguments(obs, at))

    def sampler(self, obs: Observations, at: np.ndarray) -> ChangeSampler | None:
        if self.domain.free is None:
            return None
        return self.model.sampler(self.theta, self.model.arguments(obs, at))

    def contexts(self, obs: Observations) -> tuple[np.ndarray, np.ndarray]:
        of = self.model.contexts(obs).of
        return np.unique(of, return_index=True)[1], of


@final
@dataclass(frozen=True)
class SmoothDensity(Density):
    """f̂ as a sum of fitted terms."""

    model: Unnormalised
    part: SmoothPart

    @property
    def domain(self) -> Domain:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.model.domain

    def on(self, window: Domain) -> Density:
        return replace(self, model=self.model.on(window))

    def additive(self) -> tuple[Unnormalised, SmoothPart]:
        return self.model, self.part

    def law(self, obs: Observations) -> BoundReference | None:
        return self.model.law(obs)

    def f(self, obs: Observations, y: np.ndarray, at: np.ndarray) -> np.ndarray:
        columns = self.model.linear_part(obs, y, at, None).columns
        return self.part.f(columns)

    def contexts(self, obs: Observations) -> tuple[np.ndarray, np.ndarray]:
        if not obs.has_context:
            return np.zeros(1, dtype=np.intp), np.zeros(obs.n, dtype=np.intp)
        every = np.arange(obs.n)
        return every, every


@final
@dataclass(frozen=True)
class WindowsDensity(Density):
    """f̂ where each context has its own window: given the window, the model is one on an ordinary Ω."""

    inner: Density

    @property
    def domain(self) -> Domain:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.domain

    def on(self, window: Domain) -> Density:
        return self.inner.on(window)

    def law(self, obs: Observations) -> BoundReference | None:
        return self.inner.law(placed(self.domain, obs))

    def f(self, obs: Observations, y: np.ndarray, at: np.ndarray) -> np.ndarray:
        return self.inner.f(placed(self.domain, obs), y, at)

    def contexts(self, obs: Observations) -> tuple[np.ndarray, np.ndarray]:
        every = np.arange(obs.n)
        return every, every

    def additive(self) -> tuple[Unnormalised, SmoothPart] | None:
        return self.inner.additive()

    def quadrature(self, order: int | None) -> Quadrature:
        return self.on(self.domain.windows[0]).quadrature(order)

    def log_z(self, obs: Observations, order: int | None = None) -> np.ndarray:
        out = np.empty(obs.n)
        for window, rows in by_window(self.domain, obs):
            out[rows] = self.on(window).log_z(obs.take(rows), order)
        return out


def density_of(model: Unnormalised, estimate: np.ndarray, part: SmoothPart | None) -> Density:
    """The density of a fit: parametric where f is, else the fitted terms."""
    density: Density
    if model.parametric:
        density = ParametricDensity(model.flat(), estimate)
    else:
        assert part is not None
        density = SmoothDensity(model.read_alone(), part)
    return density if model.domain.key is None else WindowsDensity(density)
