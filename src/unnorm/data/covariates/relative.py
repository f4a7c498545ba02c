"""Covariates relative to the window: the distance from its centre, and shares of its width and height.

With a window for each context (`un.Windows`) each row goes by its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from ..placing import Frame
from .base import Covariate, CovariateRows, Setting


@final
@dataclass(frozen=True)
class FromOwnCentre(Covariate):
    """|y_t − c|, c the centre of the window that the context has."""

    frame: Frame
    name: str = "dcenter"
    needs: tuple[str, ...] = ("x", "y")

    def values(self, rows: CovariateRows) -> np.ndarray:
        c = self.frame.centre[self.frame.window(rows.obs, rows.t)]
        return np.hypot(rows["x"] - c[:, 0], rows["y"] - c[:, 1])

    @classmethod
    def built_in(cls, setting: Setting) -> tuple[Covariate, ...]:
        """Where no centre is given and windows differ."""
        own = setting.planar and setting.centre is None and setting.frame is not None and not setting.frame.shared
        return (cls(setting.frame),) if own and setting.frame is not None else ()


@final
@dataclass(frozen=True)
class Share(Covariate):
    """(y − lower)/width along one axis: 0 at one side of the window, 1 at the other."""

    frame: Frame
    name: str
    axis: int
    needs: tuple[str, ...]
    yields: bool = True

    def values(self, rows: CovariateRows) -> np.ndarray:
        w = self.frame.window(rows.obs, rows.t)
        return (rows[self.needs[0]] - self.frame.lower[w, self.axis]) / self.frame.width[w, self.axis]

    @classmethod
    def built_in(cls, setting: Setting) -> tuple[Covariate, ...]:
        """xrel and yrel."""
        frame = setting.frame
        if not setting.planar or frame is None:
            return ()
        return tuple(cls(frame, f"{name}rel", j, (name,)) for j, name in enumerate("xy"))


@final
@dataclass(frozen=True)
class ScaledDistance(Covariate):
    """√(u² + v²), u and v the distances from the centre in half widths and half heights: 1 at the middle of a side."""

    frame: Frame
    name: str = "drel"
    needs: tuple[str, ...] = ("xrel", "yrel")
    yields: bool = True

    def values(self, rows: CovariateRows) -> np.ndarray:
        return np.hypot(2.0 * rows["xrel"] - 1.0, 2.0 * rows["yrel"] - 1.0)

    @classmethod
    def built_in(cls, setting: Setting) -> tuple[Covariate, ...]:
        return (cls(setting.frame),) if setting.planar and setting.frame is not None else ()
