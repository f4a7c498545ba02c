"""Tensor products of marginal bases: every product of one function from each margin, one penalty a margin (Wood
2006, Biometrics 62(4))."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from .basis import Basis, Setup, basis_from_dict, chunked, householder, natural, saved_basis, scale_roots
from .sample import Sample

_APART = 300.0  # condition of a margin's columns from which they are taken in other coordinates: REML squares it, and
# the product of two margins squares that
_LOST = 1e8  # condition of the columns given from which they are not worth turning: some have no rows


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


@dataclass(frozen=True, eq=False)
class Margin:
    """One margin made ready. `setup`: parametrised by its values at even points, as its penalty's scale and those of
    the others ask. `seen`: where the rows see little of those points, the same functions in coordinates in which the
    rows tell them apart, and their values V at the points."""

    setup: Setup
    seen: Setup
    values: np.ndarray


def margin_setup(setup: Setup, sample: Sample, centred: bool) -> Margin:
    """One margin made ready: centred (for `ti`), then, in one dimension, parametrised by values at even points.

    That gives the penalties a meaning which does not depend on the basis (Wood 2006, section 2.2; mgcv's np=TRUE).
    S is scaled to a largest eigenvalue of one.
    """
    basis, columns, (E,), null_dim = setup.basis, setup.columns, setup.roots, setup.null_dim
    if centred:
        Z = householder(sample.mean(columns))
        basis, columns, E, null_dim = basis.times(Z), columns @ Z, E @ Z, max(null_dim - 1, 0)
    given, values = Setup(basis, columns, (E,), (basis.size - null_dim,), null_dim), np.eye(basis.size)
    if basis.dim == 1 and not setup.by_value:
        at = np.linspace(sample.lower[0], sample.upper[0], basis.size)
        values = basis.evaluate(at)
        if 1 / np.linalg.cond(values) > np.finfo(float).eps ** 0.66:  # else leave it as it is, as mgcv does
            P = np.linalg.inv(values)
            basis, columns, E = basis.times(P), columns @ P, E @ P
        else:
            values = np.eye(basis.size)
    unit = 1.0 / float(np.linalg.norm(E, 2))
    ready = replace(given, basis=basis, columns=columns, roots=(E * unit,))
    if _condition(columns) <= _APART or _condition(given.columns) > _LOST:
        return Margin(ready, ready, np.eye(basis.size))
    return _as_seen(ready, given, values, unit, sample)


def _condition(columns: np.ndarray) -> float:
    """Of columns of length one; infinite where one is zero."""
    size = np.linalg.norm(columns, axis=0)
    return float(np.linalg.cond(columns / size)) if np.all(size > 0) else np.inf


def _as_seen(ready: Setup, given: Setup, values: np.ndarray, unit: float, sample: Sample) -> Margin:
    """The margin with coordinates that are orthogonal over the rows.

    Of a skewed covariate most even points lie where there are hardly any rows. Columns by value are then nearly
    collinear (condition 10⁵ to 10⁸), and XᵀWX of the product loses all digits: the coordinates are at fault, not the
    model. What no penalty sees keeps its length, |Vb| = |b|, so that REML has the constant that it has by value.
    """
    P, rank = natural(given, sample)
    P[:, rank:] = P[:, rank:] @ np.linalg.inv(np.linalg.qr(values @ P[:, rank:], mode="r"))
    E = given.roots[0] @ P * unit
    E[:, rank:] = 0.0
    seen = replace(given, basis=given.basis.times(P), columns=given.columns @ P, roots=(E,))
    return Margin(ready, seen, values @ P)


def tensor_product(margins: Sequence[Margin], sample: Sample) -> Setup:
    """The product of prepared margins by value: S_i = I ⊗ … ⊗ S_i ⊗ … ⊗ I, and so are their roots."""
    setups = [margin.setup for margin in margins]
    return _product(setups, [np.eye(setup.basis.size) for setup in setups], sample)


def product_as_seen(margins: Sequence[Margin], sample: Sample) -> Setup:
    """The same functions, penalties and criterion in coordinates that the rows tell apart: b by value is
    (V₁ ⊗ V₂ ⊗ …) times b as seen, and V₁ᵀV₁ ⊗ … ⊗ S_i ⊗ … the penalties."""
    plain = tensor_product(margins, sample)
    if all(margin.seen is margin.setup for margin in margins):
        return plain
    scaled = scale_roots(plain.roots, plain.columns)
    scales = tuple(float(np.linalg.norm(E) / np.linalg.norm(before)) for E, before in zip(scaled, plain.roots))
    product = _product([margin.seen for margin in margins], [margin.values for margin in margins], sample)
    return replace(product, scales=scales, spectrum=plain.spectrum)


def _product(margins: Sequence[Setup], values: Sequence[np.ndarray], sample: Sample) -> Setup:
    basis = TensorProduct(tuple(margin.basis for margin in margins))
    sizes = [margin.basis.size for margin in margins]
    roots, ranks = [], []
    for i, margin in enumerate(margins):
        before, after = reduce(np.kron, values[:i], np.eye(1)), reduce(np.kron, values[i + 1 :], np.eye(1))
        roots.append(np.kron(np.kron(before, margin.roots[0]), after))
        ranks.append(int(np.prod(sizes[:i])) * margin.ranks[0] * int(np.prod(sizes[i + 1 :])))
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
