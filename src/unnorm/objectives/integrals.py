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

    def error(self, theta: np.ndarray, most: int = 200) -> float:
        """max_u |log Z_u − log Z_u by the finest rule| over at most `most` contexts spread over the data."""
        if self.rule.exact:
            return 0.0
        some = np.unique(np.linspace(0, self.context.size - 1, min(most, self.context.size)).astype(int))
        part = replace(self, context=Context(self.context.at(some), np.arange(len(some)), len(some)))
        return float(np.max(np.abs(part.log_z(theta) - part.finest().log_z(theta))))
