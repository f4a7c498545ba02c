"""Symmetric positive matrices of p × p known by their products alone, and solved by conjugate gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from .._base.blas import single_threaded
from .._base.threads import cores, run_tasks
from ..errors import NotIdentifiedError

RIDGE = 1e-8  # of a block's diagonal, in the preconditioner alone


class Operator(ABC):
    """A symmetric matrix A of p × p."""

    size: int

    @abstractmethod
    def times(self, v: np.ndarray) -> np.ndarray:
        """A v, of one vector (p,)."""

    @abstractmethod
    def plus(self, other: Operator) -> Operator:
        """The sum with one of its own kind."""

    def __add__(self, other: Operator) -> Operator:
        return self.plus(other)

    @abstractmethod
    def scaled(self, factor: float) -> Operator: ...

    @abstractmethod
    def shifted(self, ridge: np.ndarray) -> Operator:
        """A + diag(ridge)."""

    @abstractmethod
    def diagonal(self) -> np.ndarray: ...

    @abstractmethod
    def nearly_inverse(self, v: np.ndarray) -> np.ndarray:
        """About A⁻¹ v, by a symmetric positive matrix: the preconditioner."""

    @abstractmethod
    def dense(self) -> np.ndarray: ...

    def solve(self, b: np.ndarray, tolerance: float = 1e-10) -> np.ndarray:
        """A⁻¹ b by preconditioned conjugate gradients."""
        with single_threaded():  # thousands of small products: BLAS threads would wait for each other
            return conjugate_gradients(self.times, b, self.nearly_inverse, tolerance)


def conjugate_gradients(
    times: Callable[[np.ndarray], np.ndarray],
    b: np.ndarray,
    nearly_inverse: Callable[[np.ndarray], np.ndarray],
    tolerance: float,
    most: int = 500,
) -> np.ndarray:
    """x with A x = b to a relative residual, in the preconditioner's norm."""
    return solved_rows(lambda P: times(P[0])[None], b[None], nearly_inverse, tolerance, most)[0]


def solved_rows(
    times: Callable[[np.ndarray], np.ndarray],
    B: np.ndarray,
    nearly_inverse: Callable[[np.ndarray], np.ndarray],
    tolerance: float,
    most: int = 500,
) -> np.ndarray:
    """(q, p) A⁻¹ b for each row b of B, side by side: `times` takes the rows that are not solved yet all at once, so
    that a pass over the data serves them all."""
    X, R = np.zeros_like(B), B.copy()
    P = np.stack([nearly_inverse(r) for r in R])
    rz = np.einsum("qp,qp->q", R, P)
    goal, live = tolerance**2 * rz, np.arange(len(B))
    for _ in range(most):
        live = live[rz[live] > goal[live]]
        if not live.size:
            break
        AP = times(P[live])
        curvature = np.einsum("qp,qp->q", P[live], AP)
        if (curvature <= 0.0).any():
            raise NotIdentifiedError(
                "The curvature of the objective is not positive along some direction of the parameters: two bits that "
                "are always equal, or one that never changes. Remove it, or add a ridge penalty."
            )
        step = (rz[live] / curvature)[:, None]
        X[live] += step * P[live]
        R[live] -= step * AP
        Z = np.stack([nearly_inverse(r) for r in R[live]])
        after = np.einsum("qp,qp->q", R[live], Z)
        P[live] = Z + (after / rz[live])[:, None] * P[live]
        rz[live] = after
    return X


@final
@dataclass(frozen=True)
class DenseOperator(Operator):
    """The matrix itself."""

    A: np.ndarray

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.A)

    def times(self, v: np.ndarray) -> np.ndarray:
        return self.A @ v

    def plus(self, other: Operator) -> Operator:
        return DenseOperator(self.A + other.dense())

    def scaled(self, factor: float) -> Operator:
        return DenseOperator(factor * self.A)

    def shifted(self, ridge: np.ndarray) -> Operator:
        return DenseOperator(self.A + np.diag(ridge))

    def diagonal(self) -> np.ndarray:
        return np.diag(self.A)

    @cached_property
    def _inverse(self) -> np.ndarray:
        return np.linalg.inv(self.A + RIDGE * np.diag(np.diag(self.A)))

    def nearly_inverse(self, v: np.ndarray) -> np.ndarray:
        return self._inverse @ v

    def dense(self) -> np.ndarray:
        return self.A


@final
@dataclass(frozen=True)
class NodeBlocks(Operator):
    """Σ_i E_iᵀ A_i E_i: the curvature of d regressions of m coefficients each, which share some of them.

    The preconditioner solves each regression for its own share of the residual, Σ_i E_iᵀ C A_i⁻¹ C E_i with
    C = 1/(regressions that a coefficient is in): the inverse itself where nothing is shared.
    """

    index: np.ndarray  # (d, m) the parameter of each coefficient; −1 for those that do not exist
    size: int
    blocks: np.ndarray  # (d, m, m)

    @cached_property
    def _at(self) -> np.ndarray:
        return np.where(self.index < 0, self.size, self.index)

    @cached_property
    def _share(self) -> np.ndarray:
        """(d, m) C, and 0 where there is no coefficient."""
        times = np.bincount(self._at.ravel(), minlength=self.size + 1)
        return np.where(self.index < 0, 0.0, 1.0 / np.maximum(times, 1)[self._at])

    def _gather(self, parts: np.ndarray) -> np.ndarray:
        return np.bincount(self._at.ravel(), parts.ravel(), self.size + 1)[:-1]

    def _spread(self, v: np.ndarray) -> np.ndarray:
        return np.append(v, 0.0)[self._at]

    def times(self, v: np.ndarray) -> np.ndarray:
        each = self._spread(v).astype(self.blocks.dtype)
        return self._gather(np.matmul(self.blocks, each[:, :, None])[:, :, 0].astype(np.float64))

    def plus(self, other: Operator) -> Operator:
        assert isinstance(other, NodeBlocks)  # sums are of one kind
        return NodeBlocks(self.index, self.size, self.blocks + other.blocks)

    def scaled(self, factor: float) -> Operator:
        return NodeBlocks(self.index, self.size, (factor * self.blocks).astype(self.blocks.dtype))

    def shifted(self, ridge: np.ndarray) -> Operator:
        blocks, each = self.blocks.copy(), np.arange(self.blocks.shape[1])
        blocks[:, each, each] += (self._share * self._spread(ridge)).astype(blocks.dtype)
        return NodeBlocks(self.index, self.size, blocks)

    def diagonal(self) -> np.ndarray:
        return self._gather(np.diagonal(self.blocks, axis1=1, axis2=2).astype(np.float64))

    @cached_property
    def _inverses(self) -> np.ndarray:
        inverses = np.empty_like(self.blocks)

        def invert(i: int) -> None:
            A, gone = self.blocks[i].astype(np.float64), self.index[i] < 0
            A[gone], A[:, gone] = 0.0, 0.0
            diagonal = np.diag(A)
            inverses[i] = np.linalg.inv(A + np.diag(np.where(diagonal > 0, RIDGE * diagonal, 1.0)))

        with single_threaded():
            run_tasks(invert, [(i,) for i in range(len(inverses))], cores())
        return inverses

    def nearly_inverse(self, v: np.ndarray) -> np.ndarray:
        each = (self._share * self._spread(v)).astype(self.blocks.dtype)
        return self._gather(self._share * np.matmul(self._inverses, each[:, :, None])[:, :, 0])

    def dense(self) -> np.ndarray:
        out = np.zeros((self.size + 1, self.size + 1))
        for A, at in zip(self.blocks, self._at):
            out[np.ix_(at, at)] += A
        return out[:-1, :-1]
