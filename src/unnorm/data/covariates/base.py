"""What a covariate is: a named function of rows, each an outcome y_i with the context x_t[i] of one observation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..._base.registry import Registry
from ...errors import InputError
from ..observations import Observations
from ..placing import Frame


@dataclass(frozen=True)
class CovariateRows:
    """N rows (y_i, x_t[i]); `rows["step"]` is a covariate's (N,) values, computed once."""

    y: np.ndarray  # (N, d)
    obs: Observations
    t: np.ndarray  # (N,) the observation whose context each row uses
    resolve: Callable[[str, CovariateRows], np.ndarray]
    cache: dict[str, np.ndarray] = field(default_factory=dict)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.cache:
            self.cache[name] = self.resolve(name, self)
        return self.cache[name]


@dataclass(frozen=True)
class Setting:
    """The data and the options that built-in covariates are made for."""

    obs: Observations
    centre: tuple[float, float] | None = None  # of the domain
    y_down: bool = False  # y grows downwards, as pixels do
    period: float | None = None  # of the outcome's coordinates
    sphere: bool = False  # outcomes are directions, vectors of length 1
    frame: Frame | None = None  # of the domain's window, or of each context's

    @property
    def planar(self) -> bool:
        """Whether outcomes are points of the plane."""
        return self.obs.dim == 2

    @property
    def planar_chain(self) -> bool:
        """Whether each outcome also has a previous point."""
        return self.planar and self.obs.kind == "transitions"


class Covariate(ABC):
    """A named function of (y, x)."""

    name: str
    period: float | None = None  # 2π for angles
    partial: bool = False  # whether some rows have none, marked nan (the direction of a step of length zero)
    needs: tuple[str, ...] = ()  # the covariates that `values` reads from its rows
    reads_outcome: bool = False  # whether `values` reads y itself, besides what it needs
    available: bool = True  # False where `values` raises the reason why these data do not allow it
    internal: bool = False  # whether only other covariates may read it
    traces: ClassVar[bool] = False  # whether `traced` gives the values in JAX, for rows that are made on a device
    yields: bool = False  # of a built-in: whether a column of the data with its name comes first

    @property
    def column(self) -> tuple[str, str | int] | None:
        """("context", its name) or ("outcome", its number) where the covariate is that column of the data."""
        return None

    @abstractmethod
    def values(self, rows: CovariateRows) -> np.ndarray:
        """The (N,) values."""

    def traced(self, columns: Mapping[str, Any]) -> Any:
        """The same in JAX, from arrays of what it needs; where it `traces`."""
        raise NotImplementedError(f"{type(self).__name__} has values in NumPy only.")

    @classmethod
    def built_in(cls, setting: Setting) -> tuple[Covariate, ...]:
        """The covariates of this kind that every model on such data knows by name."""
        return ()

    def notes(self) -> tuple[str, ...]:
        """Sentences that a careful reader would want to see."""
        return ()

    def to_dict(self) -> dict[str, Any] | None:
        """A description from which `from_dict` rebuilds it (arrays stay arrays); None where that is not possible."""
        return None

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Covariate:
        """The covariate that `to_dict` described."""
        raise InputError(f"A {cls.__name__} is not saved: make it again and pass it in covariates=.")

    @classmethod
    def examples(cls) -> tuple[Covariate, ...]:
        """Small instances for the generic tests; every kind that users make has some.

        They are tried on planar transitions in [0, 1]² with lags=2, a number `wait` in the context and a group `image`
        with levels 0 and 1.
        """
        return ()


REGISTRY: Registry[Covariate] = Registry("covariate", Covariate)  # what users make; filled by registry.py
BUILT_INS: Registry[Covariate] = Registry("built-in covariate", Covariate)  # filled by built_ins.py
