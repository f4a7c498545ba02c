"""The data and the options of one `build`: what every term asks for when it is set up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, final

import numpy as np

from ..errors import TermError
from .base import Columns
from .basis import Basis
from .kinds import Ends, Orders, Request
from .levels import Category, levels_of
from .partial import present
from .sample import Sample, drawn, gathered, most_knots, numeric, quantile_knots, summarise

_MGCV_KNOTS = 2000  # thin-plate knots: every distinct row up to so many, as mgcv's max.knots
_SMALL = 5_000  # rows up to which that costs little beside the fit
Boundary = Callable[[tuple[str, ...]], Any]  # covariates → the loops of the domain that they are a place in, or None


@final
class Meeting:
    """Columns, knots, periods and levels; what several terms need is computed once."""

    # long: what `Terms.build` takes
    def __init__(
        self,
        columns: Columns,
        knots: Mapping[str, Any],
        periods: Mapping[str, Any],
        partial: Collection[str],
        max_knots: int | None,
        categories: Mapping[str, Category],
        boundary: Boundary,
        ends: Ends,
    ) -> None:
        self.categories = categories
        self.columns = columns
        self.knots = knots
        self.periods = periods
        self.partial = frozenset(partial)
        self.max_knots = max_knots
        self.boundary = boundary
        self.ends = ends
        self._samples: dict[tuple[str, ...], Sample] = {}

    def on(self, columns: Columns) -> Meeting:
        """The same options on other rows."""
        return Meeting(
            columns, self.knots, self.periods, self.partial, self.max_knots, self.categories, self.boundary, self.ends
        )

    def sample(self, names: tuple[str, ...], what: str) -> Sample:
        if names not in self._samples:
            self._samples[names] = summarise(present(self.columns, names, self.partial, what), names, what)
        return self._samples[names]

    def levels(self, name: str, what: str) -> tuple[Any, ...]:
        return levels_of(self.columns, name, what, self.categories.get(name))

    def edges(self, names: tuple[str, ...], basis: Basis) -> tuple[np.ndarray, np.ndarray]:
        """The box of the data, infinite where a covariate is periodic."""
        periodic, sample = basis.periodic, self.sample(names, "")
        return np.where(periodic, -np.inf, sample.lower), np.where(periodic, np.inf, sample.upper)

    def lacked(self, names: tuple[str, ...], basis: Basis) -> tuple[str, ...]:
        """The periodic covariates that a row may lack."""
        return tuple(name for name, round_ in zip(names, basis.periodic) if round_ and name in self.partial)

    # ---- knots ----

    def given_knots(self, name: str, own: Mapping[str, tuple[float, ...]], what: str) -> np.ndarray | None:
        values = own.get(name, self.knots.get(name))
        if values is None:
            return None
        array = np.asarray(values, dtype=np.float64) if np.asarray(values).dtype.kind in "iuf" else None
        if array is None or array.ndim != 1 or not np.isfinite(array).all():
            raise TermError(f"{what}: knots of {name!r} must be a list of finite numbers; got {values!r}.")
        return array

    def period_ends(self, name: str, sample: Sample, what: str) -> np.ndarray | None:
        """(low, high) of the covariate's declared period, or of the domain that it is a coordinate of; None where
        neither is known."""
        if self.periods.get(name) is None:
            ends = self.ends(name)
            return None if ends is None else np.array(ends[:2])
        given = self.periods[name]
        numbers = all(isinstance(one, int | float | np.number) for one in np.asarray(given, dtype=object).ravel())
        period = np.asarray(given, dtype=np.float64) if numbers else np.empty(0)
        if period.shape == (2,) and np.isfinite(period).all() and period[1] > period[0]:
            return period
        if period.shape != () or not np.isfinite(period) or period <= 0:
            raise TermError(f"{what}: the period of {name!r} must be a positive number or (low, high); got {given!r}.")
        length, low, high = float(period), sample.lower[0], sample.upper[0]
        slack = 1e-9 * length
        for start in (-length / 2, 0.0):  # (−π, π) and (0, 2π) before anything else
            if start - slack <= low and high <= start + length + slack:
                return np.array([start, start + length])
        return np.array([0.0, length])  # rows beyond wrap round: the ends must not depend on them

    def even(self, name: str) -> bool:
        """Whether knots go round a circle in even steps: quantiles are for covariates of the context, whose rows are
        the data's, so that each function has rows where the data leave much of the domain empty."""
        ends = self.ends(name) if self.periods.get(name) is None else None
        return ends is None or ends[2]

    def knot_rows(self, names: tuple[str, ...], sample: Sample, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Thin-plate knots and their shares. In small tables, and where `max_knots` asks for it, mgcv's: every distinct
        row, or that many drawn at random where there are more. In large ones means of groups of rows."""
        rows = len(self.columns[names[0]])
        most = self.max_knots if self.max_knots is not None else _MGCV_KNOTS
        if sample.exact and sample.distinct <= most and (rows <= _SMALL or self.max_knots is not None):
            return sample.points, np.ones(len(sample.points))
        if self.max_knots is None:
            return gathered(sample, most_knots(sample.dim, k, rows))
        knots = drawn(self.columns, names, most)
        return knots, np.ones(len(knots))

    def quantile_knots(
        self, name: str, sample: Sample, k: int, ends: tuple[float, float] | None, what: str
    ) -> np.ndarray:
        """k knots at quantiles; between `ends`, rows beyond them wrapped round."""
        columns = present(self.columns, (name,), self.partial, what)
        if ends is not None and (sample.lower[0] < ends[0] or sample.upper[0] > ends[1]):
            columns = {name: ends[0] + np.mod(numeric(columns, name, what) - ends[0], ends[1] - ends[0])}
        return quantile_knots(columns, name, what, k, ends)

    # ---- one basis ----

    # long: what a term says of its basis
    def request(
        self, names: tuple[str, ...], k: int | None, m: Orders, own: Mapping[str, tuple[float, ...]], what: str,
        xt: Any = None, sample: Sample | None = None,
    ) -> Request:  # fmt: skip
        sample = self.sample(names, what) if sample is None else sample
        return Request(
            what,
            names,
            k,
            m,
            sample,
            lambda name: self.given_knots(name, own, what),
            lambda name: self.period_ends(name, sample, what),
            lambda k, ends: self.quantile_knots(names[0], sample, k, ends, what),
            lambda k: self.knot_rows(names, sample, k),
            lambda: np.column_stack([numeric(self.columns, name, what) for name in names]),
            self.boundary,
            xt,
            1.0 / len(self.columns[names[0]]),
            lambda name: self.sample((name,), what),
            self.even,
        )
