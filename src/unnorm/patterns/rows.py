"""The logistic rows of a pattern: data and dummy points with their covariates, z and t(u, x∖u) alike.

The log-odds that a row is a data point are log λ(u | x∖u) − log ρ(u), so that −log ρ is the rows' offset. Rows where
λ is known to be zero (inside a hard core) tell nothing, and rows too near the border, whose t is not known, are left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from .._base.words import option
from ..data.covariates import Covariate, CovariateSet
from ..errors import InputError, unknown
from ..terms import Terms, arithmetic, linear, parse
from .interactions import Interaction, Neighbours
from .interactions.base import WEIGHTED, Correction
from .places import Places, borders
from .point_pattern import Pattern

CORRECTIONS = ("border", "none", "periodic", *WEIGHTED)
BLOCK = 200_000  # rows whose neighbours are sought at once


@final
@dataclass(frozen=True, eq=False)
class Covaried:
    """Places with the columns that the terms read."""

    columns: dict[str, np.ndarray]
    known: np.ndarray  # (N,) the formula's offset
    allowed: np.ndarray  # (N,) bool: False where λ(u | x) = 0

    def take(self, which: np.ndarray) -> Covaried:
        columns = {name: column[which] for name, column in self.columns.items()}
        return Covaried(columns, self.known[which], self.allowed[which])


@final
@dataclass(frozen=True, eq=False)
class PatternModel:
    """log λ(u | x) = terms of covariates of u + φᵀt(u, x∖u)."""

    terms: Terms
    covariates: tuple[Covariate, ...]
    interaction: Interaction | None
    correction: Correction
    statistics: tuple[str, ...]  # names of t
    text: str = "1"  # the terms as they were given

    @classmethod
    def of(
        cls,
        pattern: Pattern,
        terms: str,
        covariates: Sequence[Covariate],
        interaction: Interaction | None,
        correction: Correction,
    ) -> PatternModel:
        """The model on patterns like this one, checked."""
        if correction not in CORRECTIONS:
            raise InputError(unknown("correction", correction, CORRECTIONS))
        if isinstance(covariates, Covariate):
            raise InputError(f"covariates must be a list: covariates=[{covariates.name}].")
        wrong = [one for one in covariates if not isinstance(one, Covariate)]
        if wrong:
            raise InputError(f"covariates must be un.Map, un.Expression and un.Function objects; got {wrong[0]!r}.")
        if interaction is not None and not isinstance(interaction, Interaction):
            raise InputError(f"interaction must be one such as un.Strauss(r=9.0), or None; got {interaction!r}.")
        if correction == "periodic" and pattern.sides is None:
            raise InputError(
                f"{option('correction', 'periodic')} joins the sides of a rectangle, and this window is none: use "
                "'border'."
            )
        if interaction is not None and correction in WEIGHTED and not interaction.weighs:
            raise InputError(
                f"{option('correction', correction)} weights pairs of points, and {interaction!r} is not made of "
                "pairs: use 'border', or 'periodic' in a rectangle."
            )
        labels = [name for name in (pattern.mark_name, pattern.replicate_name) if name is not None]
        parsed = parse(terms, table=True).labelled(labels)
        if parsed.response is not None:
            raise InputError(f"The terms of a pattern have no response: drop {parsed.response!r} and the '~'.")
        if not parsed.intercept:
            raise InputError("A pattern's model has an intercept, the log intensity's level: drop '0 +' or '- 1'.")
        names: tuple[str, ...] = ()
        if interaction is not None:
            interaction.check(pattern)
            names = interaction.names(pattern)
            for name in names:
                parsed = parsed + linear(name)
        return cls(parsed, tuple(covariates), interaction, correction, names, terms)

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """The covariates of places that terms and offsets read, arithmetic taken apart."""
        found: dict[str, None] = {}
        for name in (*self.terms.columns, *self.terms.offsets):
            if name not in self.statistics:
                found |= dict.fromkeys(arithmetic.needs(name) if arithmetic.is_arithmetic(name) else (name,))
        return tuple(found)

    @property
    def reach(self) -> float:
        return 0.0 if self.interaction is None else self.interaction.reach

    def neighbours(self, pattern: Pattern, places: Places, own: np.ndarray) -> Neighbours:
        period = self.period(pattern)
        return Neighbours(places, pattern.places, own, self.reach, period, self.correction, pattern.windows)

    def period(self, pattern: Pattern) -> np.ndarray | None:
        """(2,) side lengths, where the window's sides are joined."""
        return pattern.sides if self.correction == "periodic" else None

    def at(self, pattern: Pattern, places: Places, own: np.ndarray | None = None) -> Covaried:
        """The columns at places; own[a] is the point that place a is, −1 for none (the default)."""
        own = np.full(places.n, -1) if own is None else own
        allowed, t = np.ones(places.n, dtype=bool), np.zeros((places.n, 0))
        if self.interaction is not None:
            found = [self._interacting(pattern, places.take(s), own[s]) for s in _blocks(places.n)]
            t, allowed = (np.concatenate(part) for part in zip(*found))
        return self._covaried(pattern, places, t, allowed)

    def alone(self, pattern: Pattern, places: Places) -> Covaried:
        """The columns at places with no point anywhere near."""
        t = np.zeros((places.n, len(self.statistics)))
        return self._covaried(pattern, places, t, np.ones(places.n, dtype=bool))

    def _covaried(self, pattern: Pattern, places: Places, t: np.ndarray, allowed: np.ndarray) -> Covaried:
        columns: dict[str, np.ndarray] = {}
        if self.needs:
            obs = pattern.rows(places)
            columns |= CovariateSet(obs, self.covariates, centre=pattern.windows[0].centre).values(self.needs, obs)
        columns |= {name: np.ascontiguousarray(t[:, j]) for j, name in enumerate(self.statistics)}
        known = np.zeros(places.n)
        for name in self.terms.offsets:
            known += arithmetic.values(name, columns) if arithmetic.is_arithmetic(name) else columns[name]
        for name in self.terms.columns:
            if name not in columns:
                columns[name] = arithmetic.values(name, columns)
        return Covaried(columns, known, allowed)

    def _interacting(self, pattern: Pattern, places: Places, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert self.interaction is not None
        near = self.neighbours(pattern, places, own)
        allowed = np.ones(places.n, dtype=bool)
        if self.interaction.core:
            allowed[near.pairs.a[near.pairs.d <= self.interaction.core]] = False
        return self.interaction.statistics(near), allowed

    def inside(self, pattern: Pattern, places: Places) -> np.ndarray:
        """(N,) whether t(u, x) is known: farther from the border than the reach, with correction="border"."""
        if self.correction != "border" or self.interaction is None:
            return np.ones(places.n, dtype=bool)
        return borders(places, pattern.windows) >= self.reach


def _blocks(n: int) -> list[slice]:
    return [slice(first, min(n, first + BLOCK)) for first in range(0, max(n, 1), BLOCK)]
