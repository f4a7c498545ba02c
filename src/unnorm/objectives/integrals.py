"""∫ exp f_θ(y|x) dy over Ω for every distinct context, by one rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..domains.base import Quadrature
from ..models.base import Context, Model


@dataclass(frozen=True)
class Integrals:
    """∫ · exp f_θ(y|x_u) dy for every distinct context, by one rule on Ω."""

    model: Model
    context: Context
    rule: Quadrature
    order: int | None  # None on finite domains: enumeration
    open: bool = True  # whether the order is ours to raise
    doublings: int = 0

    @cached_property
    def log_w(self) -> np.ndarray:
        return np.log(self.rule.weights)

    def log_z(self, theta: np.ndarray) -> np.ndarray:
        return self.model.log_z(theta, self.rule.points, self.log_w, self.context)

    def moments(self, theta: np.ndarray, log_a: np.ndarray, tilt: bool) -> Any:
        return self.model.moments(theta, self.rule.points, self.log_w, self.context, log_a, tilt)

    def means(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log Z (U,) and E[∂f] (U, p)."""
        m = self.moments(theta, np.full(self.context.size, -np.inf), tilt=False)
        return m.log_z, m.mean

    def finer(self) -> Integrals:
        """The rule of twice the order."""
        order = 2 * (self.order or 1)
        return replace(self, rule=self.model.quadrature(order), order=order, doublings=self.doublings + 1)

    def finest(self) -> Integrals:
        """The yardstick: twice the order, and never below the domain's own default, to miss no narrow peak."""
        order = max(2 * (self.order or 1), self.model.domain.default_order or 1)
        return replace(self, rule=self.model.quadrature(order), order=order)

    def errors(self, theta: np.ndarray, most: int) -> np.ndarray:
        """log Z_u − log Z_u by the finest rule at up to `most` contexts, in doubt those where f is sharpest."""
        if self.rule.exact:
            return np.zeros(1)
        log_z = self.log_z(theta)
        some = telling(log_z, most)
        part = replace(self, context=Context(self.context.at(some), np.arange(len(some)), len(some)))
        return log_z[some] - part.finest().log_z(theta)

    def error(self, theta: np.ndarray, most: int = 200) -> float:
        """max_u |log Z_u − log Z_u by the finest rule| over at most `most` contexts."""
        return float(np.max(np.abs(self.errors(theta, most))))


def telling(log_z: np.ndarray, most: int) -> np.ndarray:
    """Positions at which the error of log Z is looked at: half evenly spread, half with the lowest and highest log Z.

    Where exp f has a peak that the nodes miss, or meet too rarely, log Z is far from its neighbours'.
    """
    size = len(log_z)
    if size <= most:
        return np.arange(size)
    order, ends = np.argsort(log_z), most // 4
    even = np.linspace(0, size - 1, most - 2 * ends).astype(int)
    return np.unique(np.concatenate([even, order[:ends], order[-ends:]]))
