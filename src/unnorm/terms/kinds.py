"""What `bs=` names: a kind of basis, which turns a request (covariates, k, knots, data) into functions and penalties.

A new one is a file with a `Basis` and a `BasisKind`, and a line in `registry.py`; CONTRIBUTING.md has an example that
the tests run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..errors import TermError, listing
from .arguments import integer, plain
from .basis import Setup
from .sample import Sample

Orders = int | tuple[int, ...] | None
# covariate → the ends of the domain that it is a coordinate of, and whether reference points are among its rows
Ends = Callable[[str], tuple[float, float, bool] | None]
MOST_ORDER = 20  # m: the derivatives in a penalty


def nowhere(name: str) -> None:
    """The `Ends` of columns that are no coordinates."""


@dataclass(frozen=True)
class Request:
    """One smooth, or one margin of a tensor product, to be set up on data."""

    label: str  # for messages
    names: tuple[str, ...]  # the covariates
    k: int | None
    m: Orders
    sample: Sample  # the covariates' rows, summarised
    given_knots: Callable[[str], np.ndarray | None]  # covariate → knots that the user gave
    period_ends: Callable[[str], np.ndarray | None]  # covariate → (low, high) of its period or domain
    quantile_knots: Callable[[int, tuple[float, float] | None], np.ndarray]  # k knots at quantiles, between given ends
    knot_rows: Callable[[int], tuple[np.ndarray, np.ndarray]]  # k → rows to be knots, and their shares
    rows: Callable[[], np.ndarray]  # the covariates' rows themselves (n, d)
    boundary: Callable[[tuple[str, ...]], Any]  # covariates → loops of the domain that they are a place in, or None
    xt: Any = None  # what else the user gave
    unit: float = 1.0  # the weight of one row
    along: Callable[[str], Sample] | None = None  # one of the covariates → its rows, summarised
    even: Callable[[str], bool] = lambda name: True  # covariate → whether knots between those ends are evenly spaced

    def margin(self, i: int, k: int, m: Orders) -> Request:
        """The request for the i-th covariate alone."""
        assert self.along is not None
        names = (self.names[i],)
        return replace(self, names=names, k=k, m=m, sample=self.along(names[0]))

    @property
    def name(self) -> str:
        """The covariate, where there is one."""
        (name,) = self.names
        return name


class BasisKind(ABC):
    """A kind of basis for s() and, where `margin`, for te() and ti()."""

    name: ClassVar[str]  # what `bs=` says
    covariates: ClassVar[tuple[int, int]] = (1, 1)  # fewest and most
    usage: ClassVar[str] = ""  # how a term with it is written, where that is not plain
    takes_m: ClassVar[bool] = False
    takes_xt: ClassVar[bool] = False
    margin: ClassVar[bool] = True
    cyclic: ClassVar[bool] = False  # closes a circle: a direction, which a row may lack (nan), adds nothing there
    categorical: ClassVar[bool] = False  # the covariate holds labels, and points are their positions in `levels`

    def checked_m(self, label: str, m: Any) -> Any:
        """m as the user wrote it, checked."""
        if isinstance(m, Sequence | np.ndarray):
            return tuple(integer(label, "m", i, 0, MOST_ORDER) for i in m)
        return integer(label, "m", m, 0, MOST_ORDER)

    def checked_xt(self, label: str, names: tuple[str, ...], xt: Any) -> Any:
        """xt as the user wrote it, checked and in numbers, tuples and mappings."""
        return plain(xt)

    def levels(self, xt: Any, label: str) -> tuple[Any, ...]:
        """The labels of a categorical covariate, in order."""
        raise NotImplementedError(f"{self.name} takes numbers.")

    def lacking(self, xt: Any, label: str, lost: Sequence[Any]) -> TermError:
        """The error where the data have labels, `lost`, that xt does not."""
        raise NotImplementedError(f"{self.name} takes numbers.")

    @abstractmethod
    def setup(self, request: Request) -> Setup:
        """The basis on these data, with the roots of its penalties, their ranks and the null space's dimension."""

    @abstractmethod
    def examples(self) -> tuple[str, ...]:
        """Terms of this kind on the columns x, z, w (numbers), angle (period 2π), lat, lon (degrees) and region (a to
        e), for the tests that all kinds pass: columns finite and centred, penalties semidefinite with the declared
        ranks, saved and read back the same."""


def with_order(request: Request, k: int, m: Orders) -> Request:
    """The request with another k and m."""
    return replace(request, k=k, m=m)


def increasing(knots: np.ndarray, k: int, name: str, what: str, other: str = "") -> np.ndarray:
    """k different knots in order, or an error."""
    knots = np.sort(knots)
    if knots.size != k:
        raise TermError(f"{what}: {name!r} takes {other}{k} knots; got {knots.size}.")
    if (np.diff(knots) <= 0).any():
        raise TermError(f"{what}: the knots of {name!r} must all differ; got {listing(knots.tolist())}.")
    return knots
