"""Frames and arrays → `Observations`: IID points, transitions of a chain, or outcomes with covariates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

Kind = Literal["iid", "transitions", "conditional"]


@dataclass(frozen=True)
class Observations:
    """n outcomes y_t, each with its context x_t, group, weight and the input row that it came from.

    For transitions the context's columns are the outcome's names with `_prev` (and `_prev2`, … with more lags), then `extra`.
    """

    kind: Kind
    outcome: np.ndarray  # (n, d) float64
    outcome_names: tuple[str, ...]
    context: Mapping[str, np.ndarray] = field(default_factory=dict)  # name → (n,); empty for IID data
    lags: int = 0  # transitions only
    extra: tuple[str, ...] = ()  # transitions only: the context columns that are not earlier points
    group: Mapping[str, np.ndarray] = field(default_factory=dict)  # grouping columns, name → (n,)
    sequence: np.ndarray | None = None  # (n,) int: which unbroken sequence; transitions only
    weight: np.ndarray | None = None  # (n,) or None for all one
    offset: np.ndarray | None = None  # (n,) known part of f; None for zero
    row: np.ndarray | None = None  # (n,) position in the input table of y_t
    notes: tuple[str, ...] = ()  # sentences: what was dropped or skipped, how many, why
    backend: Any = None  # narwhals implementation of the input table, for output tables of the same kind

    @property
    def n(self) -> int:
        return self.outcome.shape[0]

    @property
    def dim(self) -> int:
        return self.outcome.shape[1]

    @property
    def has_context(self) -> bool:
        return self.kind != "iid"

    @property
    def weights(self) -> np.ndarray:
        """(n,) weights, ones where none were given."""
        return np.ones(self.n) if self.weight is None else self.weight

    @property
    def offsets(self) -> np.ndarray:
        """(n,) offsets, zeros where none were given."""
        return np.zeros(self.n) if self.offset is None else self.offset

    def previous(self, lag: int = 1) -> np.ndarray:
        """(n, d) points `lag` steps before y_t."""
        suffix = "_prev" if lag == 1 else f"_prev{lag}"
        return np.column_stack([self.context[name + suffix] for name in self.outcome_names])

    def take(self, index: np.ndarray) -> Observations:
        """The observations at `index` (booleans or positions), with everything that belongs to them."""

        def pick(array: np.ndarray | None) -> np.ndarray | None:
            return None if array is None else array[index]

        return replace(
            self,
            outcome=self.outcome[index],
            context={name: column[index] for name, column in self.context.items()},
            group={name: column[index] for name, column in self.group.items()},
            sequence=pick(self.sequence),
            weight=pick(self.weight),
            offset=pick(self.offset),
            row=pick(self.row),
        )
