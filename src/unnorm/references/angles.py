"""Laws of angles of steps, turns or headings; parameters left None are fitted by maximum likelihood."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, final

import numpy as np

from ..errors import InputError, unknown
from .base import is_number
from .directional import concentration_circle
from .kernels import log_bessel0
from .laws import Tiltable
from .quantiles import LOG_2PI, Quantile, circular_quantile


class AngleLaw(Tiltable):
    """The law of a direction, relative to `base`: the previous heading (turns) or zero (headings)."""

    @property
    def needs_heading(self) -> bool:
        """Whether the law is of the turn, so that the previous heading must be known (lags=2)."""
        return False

    @property
    def concentration(self) -> float:
        """κ, for the number of quadrature nodes."""
        return 0.0

    @property
    def flatter(self) -> AngleLaw:
        """A law with heavier tails, at whose quantiles integrals under this one converge fast."""
        return self

    @abstractmethod
    def fit(self, angle: np.ndarray, weight: np.ndarray) -> AngleLaw:
        """The law with its free parameters fitted to angles relative to their base."""

    @abstractmethod
    def log_density(self, angle: np.ndarray) -> np.ndarray:
        """log p of the angle relative to its base."""

    @abstractmethod
    def quantile(self, u: np.ndarray) -> np.ndarray:
        """A continuous map from (0, 1) with this law."""


@final
@dataclass(frozen=True)
class UniformAngle(AngleLaw):
    """All directions equally likely.

    Example:
        >>> import unnorm as un
        >>> un.StepKernel(turn="uniform").turn
        UniformAngle()
    """

    statistics = ("cos_turn", "sin_turn")

    @property
    def moved_by(self) -> tuple[str, ...]:
        return self.statistics[:1]

    def tilted(self, beta: Mapping[str, float]) -> VonMisesAngle:
        return VonMisesAngle(0.0, 0.0).tilted(beta)

    def fit(self, angle: np.ndarray, weight: np.ndarray) -> UniformAngle:
        return self

    def log_density(self, angle: np.ndarray) -> np.ndarray:
        return np.full(np.shape(angle), -LOG_2PI)

    def quantile(self, u: np.ndarray) -> np.ndarray:
        return 2.0 * np.pi * u - np.pi


@final
@dataclass(frozen=True)
class VonMisesAngle(AngleLaw):
    """exp(κ cos(φ − mean)) / 2π I₀(κ), of the turn (from the previous heading) or of the heading itself.

    Where neither is given, the mean turn is 0 or π, whichever the data are nearer to: animals go on, or turn back. With
    a given κ it is 0, and with `mean="free"` it is fitted. The mean heading is fitted unless given.

    Args:
        mean: the mean turn or heading, a number, "free" or None.
        kappa: the concentration; fitted where None.
        of: "turn" or "heading".

    Example:
        >>> import unnorm as un
        >>> un.StepKernel(turn=un.references.VonMisesAngle(kappa=2.0)).turn.kappa
        2.0
    """

    mean: Any = None
    kappa: Any = None
    of: Literal["turn", "heading"] = "turn"

    def __post_init__(self) -> None:
        if self.of not in ("turn", "heading"):
            raise InputError(unknown("of", self.of, ("turn", "heading")))
        for name, least in (("mean", -np.inf), ("kappa", 0.0)):
            value = getattr(self, name)
            if value is not None and not is_number(value, least) and (name, value) != ("mean", "free"):
                raise InputError(f"{name} of VonMisesAngle must be a finite number (kappa at least 0); got {value!r}.")

    @property
    def statistics(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (f"cos_{self._angle}", f"sin_{self._angle}")

    @property
    def moved_by(self) -> tuple[str, ...]:
        return self.statistics[:1] if self.of == "turn" and abs(np.sin(self.mean)) < 1e-9 else self.statistics

    @property
    def _angle(self) -> str:
        return "turn" if self.of == "turn" else "angle"

    def tilted(self, beta: Mapping[str, float]) -> VonMisesAngle:
        """κ e^{i mean} + β_cos + i β_sin; where nothing moves it off the axis, a mean of exactly 0 or π."""
        cos, sin = (beta.get(name, 0.0) for name in self.statistics)
        on_axis = sin == 0.0 and min(abs(self.mean), abs(abs(self.mean) - np.pi)) < 1e-12
        z = complex(self.kappa * np.cos(self.mean) + cos, 0.0 if on_axis else self.kappa * np.sin(self.mean) + sin)
        return VonMisesAngle(float(np.angle(z)), abs(z), self.of)

    def slopes(self) -> dict[str, dict[str, float]]:
        cos, sin = self.statistics
        c, s = float(np.cos(self.mean)), float(np.sin(self.mean))
        turn = {} if self.kappa == 0.0 else {"mean": {cos: -s / self.kappa, sin: c / self.kappa}}
        return {**turn, "kappa": {cos: c, sin: s}}

    @property
    def needs_heading(self) -> bool:
        return self.of == "turn"

    @property
    def concentration(self) -> float:
        return self.kappa or 0.0

    def fit(self, angle: np.ndarray, weight: np.ndarray) -> VonMisesAngle:
        resultant = np.average(np.exp(1j * angle), weights=weight)
        mean = self.mean
        if mean == "free" or (mean is None and self.of == "heading"):
            mean = float(np.angle(resultant))
        elif mean is None:
            mean = 0.0 if resultant.real >= 0.0 or self.kappa is not None else float(np.pi)
        kappa = self.kappa
        if kappa is None:
            kappa = concentration_circle(max(float(np.real(resultant * np.exp(-1j * mean))), 0.0))
        return replace(self, mean=mean, kappa=kappa)

    def log_density(self, angle: np.ndarray) -> np.ndarray:
        return -2.0 * self.kappa * np.sin(0.5 * (angle - self.mean)) ** 2 - LOG_2PI - log_bessel0(self.kappa)

    @property
    def flatter(self) -> AngleLaw:
        return self._flatter

    @cached_property
    def _flatter(self) -> VonMisesAngle:
        return replace(self, kappa=self.kappa / 3.0)

    @cached_property
    def _quantile(self) -> Quantile:
        return circular_quantile(self.kappa)

    def quantile(self, u: np.ndarray) -> np.ndarray:
        return self.mean + self._quantile(u)


def angle_law(value: Any) -> AngleLaw:
    """An angle law from its name or itself."""
    if isinstance(value, AngleLaw):
        return value
    named = {"uniform": UniformAngle(), "vonmises": VonMisesAngle(), "heading": VonMisesAngle(of="heading")}
    if not isinstance(value, str) or value not in named:
        raise InputError(unknown("turn", value, named) + " Or pass a law, e.g. VonMisesAngle(kappa=2.0).")
    return named[value]
