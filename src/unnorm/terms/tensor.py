"""Tensor products of marginal bases: every product of one function from each margin, one penalty a margin (Wood
2006, Biometrics 62(4))."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .basis import Basis, Setup, basis_from_dict, chunked, householder, saved_basis
from .sample import Sample


@saved_basis
@dataclass(frozen=True, eq=False)
class TensorProduct(Basis):
    """(b₁(x₁) ⊗ b₂(x₂) ⊗ …)ᵀ T, the last margin's functions fastest."""

    kind: ClassVar[str] = "tensor"
    margins: tuple[Basis, ...]
    transform: np.ndarray | None = None  # T, or None for the identity

    def __post_init__(self) -> None:
        dim = sum(margin.dim for margin in self.margins)
        self._describe(dim, self.full if self.transform is None else self.transform.shape[1])

    @property
    def full(self) -> int:
        return int(np.prod([margin.size for margin in self.margins]))

    @property
    def grid(self) -> tuple[tuple[np.ndarray | None, float | None], ...] | None:
        if len(self.margins) > 3 or any(margin.breaks is None for margin in self.margins):
            return None
        return tuple((margin.breaks, margin.period) for margin in self.margins)

    @property
    def periodic(self) -> np.ndarray:
        return np.concatenate([margin.periodic for margin in self.margins])

    @property
    def larger(self) -> str:
        return f"k={int(np.ceil((2.0 * self.size) ** (1.0 / len(self.margins)))) + 1}"  # k for each of its margins

    def evaluate(self, points: np.ndarray) -> np.ndarray:
        points = np.asarray(points, dtype=np.float64).reshape(-1, self.dim)
        return chunked(points, self.size, max(64, (1 << 18) // self.full), self._rows)

    def _rows(self, points: np.ndarray) -> np.ndarray:
        out, start = np.ones((len(points), 1)), 0
        for margin in self.margins:
            columns = margin.evaluate(points[:, start : start + margin.dim])
            out = (out[:, :, None] * columns[:, None, :]).reshape(len(points), out.shape[1] * columns.shape[1])
            start += margin.dim
        return out if self.transform is None else out @ self.transform

    def times(self, transform: np.ndarray) -> TensorProduct:
        return TensorProduct(self.margins, transform if self.transform is None else self.transform @ transform)

    def to_dict(self) -> dict[str, Any]:
        transform = None if self.transform is None else self.transform.tolist()
        return {"kind": self.kind, "margins": [margin.to_dict() for margin in self.margins], "transform": transform}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> TensorProduct:
        transform = saved["transform"]
        margins = tuple(basis_from_dict(margin) for margin in saved["margins"])
        return cls(margins, None if transform is None else np.array(transform, dtype=np.float64))


def margin_setup(setup: Setup, sample: Sample, centred: bool) -> Setup:
    """One margin made ready: centred (for `ti`), then, in one dimension, parametrised by values at even points.

    That gives the penalties a meaning which does not depend on the basis (Wood 2006, section 2.2; mgcv's np=TRUE).
    S is scaled to a largest eigenvalue of one.
    """
    basis, columns, (E,), null_dim = setup.basis, setup.columns, setup.roots, setup.null_dim
    if centred:
        Z = householder(sample.mean(columns))
        basis, columns, E, null_dim = basis.times(Z), columns @ Z, E @ Z, max(null_dim - 1, 0)
    if basis.dim == 1 and not setup.by_value:
        at = np.linspace(sample.lower[0], sample.upper[0], basis.size)
        values = basis.evaluate(at)
        if 1 / np.linalg.cond(values) > np.finfo(float).eps ** 0.66:  # else leave it as it is, as mgcv does
            P = np.linalg.inv(values)
            basis, columns, E = basis.times(P), columns @ P, E @ P
    return Setup(basis, columns, (E / np.linalg.norm(E, 2),), (basis.size - null_dim,), null_dim)


def tensor_product(margins: Sequence[Setup], sample: Sample) -> Setup:
    """The product of prepared margins: S_i = I ⊗ … ⊗ S_i ⊗ … ⊗ I, and so are their roots."""
    basis = TensorProduct(tuple(margin.basis for margin in margins))
    sizes = [margin.basis.size for margin in margins]
    roots, ranks = [], []
    for i, margin in enumerate(margins):
        before, after = int(np.prod(sizes[:i])), int(np.prod(sizes[i + 1 :]))
        roots.append(np.kron(np.kron(np.eye(before), margin.roots[0]), np.eye(after)))
        ranks.append(before * margin.ranks[0] * after)
    null_dim = int(np.prod([margin.null_dim for margin in margins]))
    spectrum = _spectrum(margins, null_dim)
    columns = basis.evaluate(sample.points)
    return Setup(basis, columns, tuple(roots), tuple(ranks), null_dim, spectrum, isotropic=False)


def _spectrum(margins: Sequence[Setup], null_dim: int) -> np.ndarray | None:
    """(r, M): the eigenvalues of each S_i in the products of the margins' eigenvectors, the joint null space left out;
    None where there is none, and a constraint would cut into what is penalised."""
    if null_dim == 0:
        return None
    values = []
    for margin in margins:
        d = np.zeros(margin.basis.size)
        rank = margin.ranks[0]
        d[:rank] = np.linalg.svd(margin.roots[0], compute_uv=False)[:rank] ** 2
        values.append(d)
    joint = np.stack([grid.ravel() for grid in np.meshgrid(*values, indexing="ij")], axis=1)
    return joint[joint.any(axis=1)]
