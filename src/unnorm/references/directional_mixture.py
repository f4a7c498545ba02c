"""Mixtures of von Mises or von Mises–Fisher laws, fitted by EM: references for directions with several modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from .._base.numerics import whole
from ..domains import Axis, Circle, Sphere
from ..errors import InputError
from .base import BoundReference, Example, Reference, is_number
from .directional import VonMises, VonMisesFisher, concentration_circle, concentration_sphere
from .mixture import Mixture
from .uniform import Uniform

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain

_STEPS = 100
_SETTLED = 1e-8  # of the mean log-likelihood
_LEAST = 1e-6  # weight below which a component is left out


@final
@dataclass(frozen=True, repr=False)
class DirectionalMixture(Reference):
    """Some von Mises laws (von Mises–Fisher on the sphere) fitted by EM, with a share of uniform points.

    Each component counts one uniform direction beside its own, so that none closes in on a single point.

    Args:
        components: how many.
        uniform: the share of the uniform law, which keeps q from being too thin anywhere.

    >>> import numpy as np, unnorm as un
    >>> two = np.concatenate([np.random.default_rng(1).vonmises(m, 20.0, 100) for m in (0.0, 2.0)])
    >>> q = un.DirectionalMixture(2).bind(un.Circle(), un.iid(two)).reference
    >>> [round(part.mu) for part in q.components[:2]]
    [0, 2]
    """

    lives_on: ClassVar[str] = "a circle or the unit sphere"
    chooses: ClassVar[bool] = True

    components: int = 3
    uniform: float = 0.1

    def __post_init__(self) -> None:
        whole(self.components, "components of DirectionalMixture", 1)
        if not is_number(self.uniform, 0.0, strict=True) or self.uniform >= 1.0:
            raise InputError(f"uniform of DirectionalMixture is a share between 0 and 1, as 0.1; got {self.uniform!r}.")

    @property
    def everywhere(self) -> bool:
        return True

    @classmethod
    def takes(cls, domain: Domain) -> bool:
        return domain.sphere or domain.period is not None

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return Example(cls(2), Circle()), Example(cls(), Axis()), Example(cls(2), Sphere())

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        self.check_domain(domain)
        vectors, turn = obs.outcome, 1.0
        if domain.period is not None:
            turn = 2.0 * np.pi / domain.period
            vectors = np.column_stack([np.cos(turn * obs.outcome[:, 0]), np.sin(turn * obs.outcome[:, 0])])
        share, means, kappa = fitted(vectors, obs.weights, self.components)
        parts: list[tuple[float, Reference]] = []
        order = np.lexsort(means.T) if domain.sphere else np.argsort(np.arctan2(means[:, 1], means[:, 0]))
        for j in order:
            law: Reference = (
                VonMisesFisher(tuple(means[j].tolist()), float(kappa[j]))
                if domain.sphere
                else VonMises(float(np.arctan2(means[j, 1], means[j, 0]) / turn), float(kappa[j]))
            )
            if share[j] > _LEAST:
                parts.append((float((1.0 - self.uniform) * share[j]), law))
        return Mixture(*parts, (self.uniform, Uniform())).bind(domain, obs)


def fitted(y: np.ndarray, weights: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights (K,), unit means (K, d) and κ (K,) of a mixture by EM, from starts far apart."""
    concentration = concentration_circle if y.shape[1] == 2 else concentration_sphere
    w = weights / weights.sum()
    means = _far_apart(y, w, count)
    share, kappa = np.full(len(means), 1.0 / len(means)), np.full(len(means), 2.0)
    before = -np.inf
    for _ in range(_STEPS):
        log_p = np.log(np.maximum(share, 1e-300)) + kappa * (y @ means.T) - _log_z(kappa, y.shape[1])
        top = log_p.max(axis=1, keepdims=True)
        p = np.exp(log_p - top)
        total = p.sum(axis=1, keepdims=True)
        now = float(w @ (top + np.log(total))[:, 0])
        p = w[:, None] * p / total
        share = p.sum(axis=0)
        resultant = p.T @ y
        length = np.linalg.norm(resultant, axis=1)
        means = np.where(length[:, None] > 1e-12, resultant / np.maximum(length, 1e-300)[:, None], means)
        one = 1.0 / weights.sum()  # a uniform direction beside them
        kappa = np.array([concentration(float(r / (s + one))) for r, s in zip(length, share)])
        if now - before < _SETTLED:
            break
        before = now
    return share, means, kappa


def _far_apart(y: np.ndarray, w: np.ndarray, count: int) -> np.ndarray:
    """The direction nearest to the mean, then each time the one that is farthest from those taken."""
    first = y[int(np.argmax(y @ (w @ y)))]
    taken = [first]
    for _ in range(count - 1):
        nearest = np.max(y @ np.array(taken).T, axis=1)
        taken.append(y[int(np.argmin(nearest))])
    return np.array(taken)


def _log_z(kappa: np.ndarray, d: int) -> np.ndarray:
    """log ∫ exp(κ μ·y) dy on the circle (d = 2) or the sphere (d = 3)."""
    from scipy.special import i0e

    if d == 2:
        return np.log(2.0 * np.pi * i0e(kappa)) + kappa
    small = np.maximum(kappa, 1e-6)
    return np.log(4.0 * np.pi) + small + np.log(-np.expm1(-2.0 * small) / (2.0 * small))
