"""What laws of step lengths and of angles share: parameters that may be open, and statistics that tilt them."""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from ..errors import InputError
from .base import is_number, numbers, own_fields


class Law(ABC):  # noqa: B024
    """A law of step lengths or of angles; its fields are its parameters, numbers or None (frozen dataclasses)."""

    @property
    def known(self) -> bool:
        """Whether every parameter is a number."""
        return not any(value is None or value == "free" for value in own_fields(self).values())

    def __post_init__(self) -> None:
        for name, value in own_fields(self).items():
            if value is not None and not self._allowed(name, value):
                raise InputError(f"{name} of {type(self).__name__} must be a positive number; got {value!r}.")

    def _allowed(self, name: str, value: Any) -> bool:
        return is_number(value, 0.0, strict=True)

    def to_dict(self) -> dict[str, Any]:
        return {"law": type(self).__name__, **own_fields(self)}

    @property
    def called(self) -> str:
        """In words: "gamma", "von Mises"."""
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).removesuffix(" Angle")
        return name.lower().replace("mises", "Mises")

    def describe(self) -> str:
        text = ", ".join(f"{k}={v if isinstance(v, str) else numbers(v)}" for k, v in own_fields(self).items())
        return f"{type(self).__name__}({text})"


class Tiltable(Law):
    """A law p(r) ∝ exp{η·T(r)} h(r): tilted by exp{β·T(r)} it stays in its family, with η + β in place of η.

    T are covariates that a model's f may read; integrated step selection reads the movement kernel off them so (Avgar
    et al. 2016). Derivatives are those at the tilted law.
    """

    statistics: ClassVar[tuple[str, ...]] = ()  # names of T

    @property
    def moved_by(self) -> tuple[str, ...]:
        """The statistics that integrated step selection takes: all that matter at this law."""
        return self.statistics

    def wider(self, names: Collection[str]) -> Tiltable:
        """A law of a family in which these statistics may tilt it too; itself where there is none."""
        return self

    def tilted(self, beta: Mapping[str, float]) -> Tiltable:
        """The law ∝ p exp{Σ β_T T}; a sentence where that has no finite mass."""
        raise InputError(f"{self.describe()} has no statistics by which it could be tilted.")

    def slopes(self) -> dict[str, dict[str, float]]:
        """parameter → statistic → its derivative in β, at this law."""
        return {}

    def written(self) -> dict[str, str]:
        """statistic → how it is computed from the step and the turn, as an expression."""
        return {name: WRITTEN[name] for name in self.statistics}

    def _no_mass(self, what: str, beta: Mapping[str, float]) -> InputError:
        given = ", ".join(f"{name} {value:.4g}" for name, value in beta.items())
        return InputError(
            f"The updated law of steps has no finite mass: {what} (coefficients: {given}; tentative law: "
            f"{self.describe()}). Take more reference points, or another law for the steps."
        )


WRITTEN = {
    "step": "step",
    "log_step": "log(step)",
    "log_step2": "log(step) ** 2",
    "step2": "step ** 2",
    # a step after one of length zero has no turn: all directions are alike
    "cos_turn": "where(hypot(x_prev - x_prev2, y_prev - y_prev2) > 0, cos(turn), 0)",
    "sin_turn": "where(hypot(x_prev - x_prev2, y_prev - y_prev2) > 0, sin(turn), 0)",
    "cos_angle": "cos(angle)",
    "sin_angle": "sin(angle)",
}
