"""Covariates in JAX: what `CovariateSet.traced` gives, for rows that are made where they are met.

A `Traced` holds names and formulas and no numbers, so that equal ones share what was compiled for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from .base import Covariate


@final
@dataclass(frozen=True)
class Traced:
    """Some covariates as functions of the outcomes' coordinates (n, r) and of the contexts' columns (n,)."""

    wanted: tuple[str, ...]
    outcomes: tuple[tuple[str, int], ...]  # name and coordinate of y
    contexts: tuple[tuple[str, str], ...]  # name and column of the context
    formulas: tuple[Covariate, ...]  # each after those that it needs

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the context that are read."""
        return tuple(dict.fromkeys(column for _, column in self.contexts))

    def __call__(self, y: Sequence[Any], context: Mapping[str, Any]) -> dict[str, Any]:
        """(n, r) values, or (n,) of the context's own columns."""
        found = {name: y[j] for name, j in self.outcomes}
        found |= {name: context[column][:, None] for name, column in self.contexts}
        for one in self.formulas:
            found[one.name] = one.traced(found)
        of_context = {name for name, _ in self.contexts}
        return {name: found[name][:, 0] if name in of_context else found[name] for name in self.wanted}
