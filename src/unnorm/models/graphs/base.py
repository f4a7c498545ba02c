"""What a statistic of graphs is: its value by matrix algebra, and the kernel and table of its change statistic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np

from ...domains.graphs import Graphs
from ...errors import InputError, TermError
from .attributes import Attributes
from .kernels import DYADIC


@final
@dataclass(frozen=True)
class Call:
    """A term as the user wrote it: name(arguments, option=value)."""

    name: str
    arguments: tuple[str, ...] = ()
    options: Mapping[str, str] | None = None

    @property
    def label(self) -> str:
        inside = [*self.arguments, *(f"{key}={value}" for key, value in (self.options or {}).items())]
        return f"{self.name}({', '.join(inside)})" if inside else self.name

    def take(self, least: int, most: int, what: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The arguments, after checking their number and the options' names."""
        if not least <= len(self.arguments) <= most:
            example = f"{self.name}({what})" if least else f"{self.name} or {self.name}({what})" if most else self.name
            raise TermError(f"{self.name} is written {example}; got {self.label}.")
        for key in self.options or {}:
            if key not in options:
                known = f"takes only {', '.join(options)}=" if options else "takes no options"
                raise TermError(f"{self.name} {known}; got {key}= in {self.label}.")
        return self.arguments

    def number(self, what: str, example: str, whole: bool = False, least: float = 0.0) -> float:
        """The one argument as a number."""
        (text,) = self.take(1, 1, example)
        try:
            value = float(text)
        except ValueError:
            value = np.nan
        if not (np.isfinite(value) and value >= least and (not whole or value == int(value))):
            kind = "a whole number" if whole else "a number"
            raise TermError(f"{what} must be {kind} of at least {least:g}, as in {self.name}({example}); got {text!r}.")
        return value

    @property
    def lag(self) -> int:
        """lag=0 or 1: of a covariate that varies in time, the value now or one graph before."""
        text = (self.options or {}).get("lag", "0")
        if text not in ("0", "1"):
            raise TermError(f"lag must be 0 or 1; got lag={text} in {self.label}.")
        return int(text)


@final
@dataclass(frozen=True, eq=False)
class Surroundings:
    """What the statistics of one graph see besides its ties."""

    domain: Graphs
    attributes: Attributes
    before: np.ndarray | None  # (n, n) the previous graph; None where there is none
    wave: int  # for covariates that vary in time

    @property
    def previous(self) -> np.ndarray:
        if self.before is None:
            raise InputError(
                "memory, stability and delrecip compare a graph with the one before it, and these graphs are not a "
                "sequence. Make the observations with un.networks(A, omega), of two graphs or more in order of time."
            )
        return self.before


class Statistic(ABC):
    """One number s(y|x) of a graph, and its change statistics.

    A statistic is one class in terms.py or dyadic.py and one line in registry.py. It says for which graphs it is
    defined (`on`: undirected, directed or both), which kernel forms its change statistic (`code`, in kernels.py) and
    what the kernel reads: a table over degrees or shared partners, or a weight for each dyad.
    """

    name: ClassVar[str]  # ergm's
    on: ClassVar[tuple[str, ...]] = ("undirected", "directed")
    instead: ClassVar[str] = ""  # what to write on graphs for which it is not defined
    code: ClassVar[int] = DYADIC
    paths: ClassVar[bool] = False  # whether the kernel reads two-paths
    reads_before: ClassVar[bool] = False  # whether it compares with the previous graph, y' …
    mirrors: ClassVar[bool] = False  # … and then y_ij with y'_ji
    counts: ClassVar[bool] = False  # whether it is the number of ties, which takes the levels of covariates
    label: str

    @classmethod
    @abstractmethod
    def make(cls, call: Call, domain: Graphs, attributes: Attributes) -> tuple[Self, ...]:
        """The statistics that the term stands for: mostly one, several for a factor with several levels."""

    @abstractmethod
    def value(self, A: np.ndarray, x: Surroundings) -> float:
        """s(y|x) by its definition, A the adjacency matrix."""

    def table(self, size: int) -> np.ndarray:
        """h(0), h(1), … for kernels that need one."""
        return np.zeros(size)

    def weights(self, x: Surroundings) -> np.ndarray | None:
        """(n, n) the change statistic of each dyad, where it does not depend on other ties; else None."""
        return None

    def varies(self, attributes: Attributes) -> bool:
        """Whether it reads a covariate that varies in time."""
        return False

    def centred(self, attributes: Attributes) -> tuple[Statistic, float]:
        """The statistic of its covariate about its mean, where that lies far from zero, and what a tie counts less."""
        return self, 0.0

    @classmethod
    def examples(cls) -> tuple[str, ...]:
        """Terms for the generic tests, on nodes with `age` and `sex` and dyads with `dist` (and `trend` in time)."""
        return (cls.name,)
