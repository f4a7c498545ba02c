"""The contract between terms and the engine: what a built term tells, and nothing about how it is fitted.

A *specification* (`s("step", k=10)`) is what the user wrote. `build` meets it with the data and gives one *built term*
for each smooth (a `by=` factor gives one for each level), with its constraint absorbed and its penalties scaled as
mgcv does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Penalty:
    """½ λ βᵀ S β on one term's coefficients: S (p, p), its rank, and its label among the smoothing parameters.

    The rank is known from how the penalty is made, and is never estimated: the smallest positive eigenvalue of ∫f″²
    on skewed knots can lie below the rounding error of the largest. `root` is E with S = EᵀE, where the penalty was
    made from one: its singular values have twice the digits of S's eigenvalues.
    """

    block: np.ndarray  # S itself, or what is repeated on its diagonal
    rank: int  # of S
    label: str
    root: np.ndarray | None = None  # E (r, p) of the block, r ≥ its rank
    copies: int = 1  # S = I ⊗ block: one equal block for each level of a factor

    @cached_property
    def matrix(self) -> np.ndarray:
        """S (p, p), dense."""
        return self.block if self.copies == 1 else np.kron(np.eye(self.copies), self.block)

    @cached_property
    def block_root(self) -> np.ndarray:
        """E with EᵀE = block: the given one, or that of the largest eigenvalues."""
        return self.root if self.root is not None else spectral_root(self.block, self.rank // self.copies)

    @property
    def square_root(self) -> np.ndarray:
        """E with EᵀE = S."""
        return self.block_root if self.copies == 1 else np.kron(np.eye(self.copies), self.block_root)


def spectral_root(matrix: np.ndarray, rank: int) -> np.ndarray:
    """E (rank, p) with EᵀE = S, from the `rank` largest eigenvalues of S."""
    values, vectors = np.linalg.eigh(matrix)
    first = len(values) - rank
    return np.sqrt(np.maximum(values[first:], 0.0))[:, None] * vectors[:, first:].T


class BuiltTerm(ABC):
    """A term on given data: p columns, zero or more penalties, centred so that it means what it means in mgcv."""

    label: str  # "s(step)", "s(x,y)", "s(step):subject3", "te(a,b)", "angle"
    covariates: tuple[str, ...]  # every column that `design` reads, `by` included
    size: int  # p
    penalties: tuple[Penalty, ...]  # empty for parametric and fx=True terms
    fixed_sp: tuple[float | None, ...]  # one per penalty: the user's fixed smoothing parameter, or None
    null_dim: int  # dimension of the penalties' joint null space after the constraint
    parametric: bool  # un.linear, un.factor: reported with z-tests, not as a smooth
    level: tuple[str, object] | None  # (factor column, level): the term is zero on rows of other levels
    by: str | None  # numeric multiplier column
    # Where the penalties commute (tensor products): eigenvalues (r, M) in common eigenvectors, less the null space.
    # log|Σλ_jS_j|₊ is then Σ log(Σ_j λ_j d_j) and a constant, whatever constraint was absorbed. None otherwise.
    spectrum: np.ndarray | None
    factor_levels: tuple[str, tuple[object, ...]] | None  # `re`/`fs`/factor: (column, levels), one equal block a level

    # Where the columns are cubic splines of ONE covariate, C² (periodic if `period`), with these break points
    # (exactly, or to an error stated by the class), the engine uses four non-zeros a row instead of p. None otherwise.
    breaks: np.ndarray | None
    period: float | None
    link: str | None  # terms with the same one have their smoothing parameters in common, penalty by penalty
    partial: tuple[str, ...]  # covariates that a row may lack (nan): the columns are zero there
    isotropic: bool  # covariates on one scale, where there are several; False for tensor products

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        """A name for each column, for tables of coefficients."""
        return (self.label,) if self.size == 1 else tuple(f"{self.label}.{j + 1}" for j in range(self.size))

    @property
    def remark(self) -> str | None:
        """A sentence for the user where the term is not quite what was asked for (an approximation)."""
        return None

    @property
    def grid(self) -> tuple[tuple[np.ndarray | None, float | None], ...] | None:
        """Breaks and period of each smooth covariate, where there are two or three and the columns are products of
        cubic splines with these breaks; breaks None: smooth enough that even ones may do. None: neither."""
        return None

    @property
    def smooth_covariates(self) -> tuple[str, ...]:
        """The covariates that `functions` takes, first among `covariates`; none for parametric and random terms."""
        return ()

    def functions(self, points: np.ndarray) -> np.ndarray:
        """The functions of the smooth covariates alone, at (r,) or (r, d) points: no `by`, no level, one block of many.

        Rows of `design` are these, times `by`, on the rows of `level`, or in the block of the row's own level.
        """
        raise NotImplementedError(f"{self.label} has no smooth covariates.")

    def known(self, points: np.ndarray) -> np.ndarray | None:
        """`functions` at these points, to rounding, where the term was evaluated at all of them when it was set up."""
        return None

    @property
    def blocks_alike(self) -> bool:
        """Whether `level_design` gives every level's block, whatever level a row has: the same functions for all."""
        return False

    @property
    def larger(self) -> str | None:
        """What to write for about twice as many functions; None where the data decide how many there are."""
        return None

    @property
    def outline(self) -> tuple[np.ndarray, ...]:
        """Loops (m, 2) of a boundary outside which `design` is nan; none where it is defined everywhere."""
        return ()

    @property
    def own_levels(self) -> Mapping[str, tuple[object, ...]]:
        """Factors among the covariates → all levels that the data had, in their order."""
        return {}

    @property
    def mesh(self) -> float:
        """How far apart the nodes are between which the functions are straight lines; 0 for curves."""
        return 0.0

    def fixed(self, columns: Columns) -> np.ndarray | None:
        """(n,) a known part of the term, added to `design` times the coefficients; None where there is none."""
        return None

    def warn_if_far(self, columns: Columns) -> None:
        """Say how many rows lie far outside the data, as `design` does."""
        return

    def level_design(self, columns: Columns, at: int) -> np.ndarray:
        """The block of columns of level number `at` of `factor_levels`, on rows that all have that level."""
        assert self.factor_levels is not None
        block = self.size // len(self.factor_levels[1])
        return self.design(columns)[:, at * block : (at + 1) * block]

    def level_rows(self, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        """`design` without its zeros, where blocks are alike: the number (n,) of each row's level, −1 for none, and its
        block (n, p / levels)."""
        raise NotImplementedError(f"{self.label} has no block of columns for each level.")

    @abstractmethod
    def design(self, columns: Columns) -> np.ndarray:
        """The (n, p) columns at new points; rows far outside the data warn once, with the count."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description (arrays as lists or npz keys) from which the term is rebuilt without the data."""
