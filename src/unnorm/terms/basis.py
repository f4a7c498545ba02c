"""What every basis has in common: p functions of d covariates, evaluated at points; and its penalties on the data
it was set up on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from .._base.threads import cores, run_tasks
from ..errors import InputError, unknown
from .sample import Sample

_LARGE = 200_000  # values from which another thread is worth waking


class Basis(ABC):
    """p functions of d covariates. `times(T)` are the functions b(x)ᵀT: constraints and reparametrisations fold in."""

    kind: ClassVar[str]
    dim: int
    size: int
    breaks: np.ndarray | None  # where the functions are C² cubic splines of one covariate
    period: float | None

    def _describe(self, dim: int, size: int, breaks: np.ndarray | None = None, period: float | None = None) -> None:
        """Set what a frozen basis works out from its own arrays."""
        for name, value in (("dim", dim), ("size", size), ("breaks", breaks), ("period", period)):
            object.__setattr__(self, name, value)

    @property
    def grid(self) -> tuple[tuple[np.ndarray | None, float | None], ...] | None:
        """See `BuiltTerm.grid`."""
        return None

    @property
    def periodic(self) -> np.ndarray:
        """(d,) which of the covariates are."""
        return np.full(self.dim, self.period is not None)

    def nearest(self, points: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """The same places written as near the box as they can be: a longitude of 370° is 10°."""
        return points

    @property
    def larger(self) -> str:
        """What to write for about twice as many functions."""
        return f"k={2 * (self.size + 1)}"

    @property
    def outline(self) -> tuple[np.ndarray, ...]:
        """Loops (m, 2) outside which the functions are nan; none where they are defined everywhere."""
        return ()

    @property
    def mesh(self) -> float:
        """How far apart the nodes are between which functions are straight lines; 0 for curves."""
        return 0.0

    def fixed(self, points: np.ndarray) -> np.ndarray | None:
        """(n,) a known function that is added to whatever the coefficients make; None where there is none."""
        return None

    def known(self, points: np.ndarray) -> np.ndarray | None:
        """See `BuiltTerm.known`."""
        return None

    @abstractmethod
    def evaluate(self, points: np.ndarray) -> np.ndarray:
        """(n, d) points → (n, p) values."""

    @abstractmethod
    def times(self, transform: np.ndarray) -> Basis:
        """The basis b(x)ᵀT for T (p, q)."""

    def scaled(self, factors: np.ndarray) -> Basis:
        """Each function times a number."""
        return self.times(np.diag(factors))

    @abstractmethod
    def to_dict(self) -> dict[str, Any]: ...

    @classmethod
    @abstractmethod
    def from_dict(cls, saved: dict[str, Any]) -> Basis: ...


@dataclass(frozen=True, eq=False)
class PlainBasis(Basis):
    """A basis that is its own `raw` functions times a matrix, and saves its fields: what most new bases need.

    Fields are numbers, or arrays of them; `transform` is the last.
    """

    transform: np.ndarray | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._describe(self.raw_shape[0], self.raw_shape[1] if self.transform is None else self.transform.shape[1])

    @property
    @abstractmethod
    def raw_shape(self) -> tuple[int, int]:
        """Covariates, functions."""

    @abstractmethod
    def raw(self, points: np.ndarray) -> np.ndarray:
        """(n, d) points → (n, functions)."""

    def evaluate(self, points: np.ndarray) -> np.ndarray:
        columns = self.raw(np.asarray(points, dtype=np.float64).reshape(-1, self.dim))
        return columns if self.transform is None else columns @ self.transform

    def times(self, transform: np.ndarray) -> Basis:
        return replace(self, transform=transform if self.transform is None else self.transform @ transform)

    def to_dict(self) -> dict[str, Any]:
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        plain = {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in values.items()}
        return {"kind": self.kind, **plain}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Basis:
        values = {name: v for name, v in saved.items() if name != "kind"}
        return cls(**{name: np.array(v, dtype=np.float64) if isinstance(v, list) else v for name, v in values.items()})


B = TypeVar("B", bound=Basis)
_KINDS: dict[str, type[Basis]] = {}


def saved_basis(cls: type[B]) -> type[B]:
    """Register a basis under its `kind`, so that it can be read back."""
    _KINDS[cls.kind] = cls
    return cls


def basis_from_dict(saved: dict[str, Any]) -> Basis:
    """The basis that `to_dict` described."""
    from . import registry, tensor  # noqa: F401  (each basis registers itself)

    if saved.get("kind") not in _KINDS:
        raise InputError(unknown("A saved basis's kind", saved.get("kind"), _KINDS))
    return _KINDS[saved["kind"]].from_dict(saved)


@dataclass(frozen=True, eq=False)
class Setup:
    """A basis met with data: penalties S = EᵀE before scaling and constraint, by their roots E; their ranks; and the
    joint null space's dimension. Ranks are declared, not estimated."""

    basis: Basis
    columns: np.ndarray  # the basis at the sample's points
    roots: tuple[np.ndarray, ...]  # E (r, p), one per penalty
    ranks: tuple[int, ...]
    null_dim: int
    spectrum: np.ndarray | None = None  # (r, M) eigenvalues of penalties that commute, in common eigenvectors
    by_value: bool = False  # already parametrised by function values: tensor products do not reparametrise it
    mean: np.ndarray | None = None  # of the columns over all rows, where the basis has taken it itself
    isotropic: bool = True  # whether the covariates are on one scale, as in a thin plate; not in a tensor product
    centred: bool = True  # whether the term is to sum to zero over the rows; not where its level is known
    scales: tuple[float, ...] | None = None  # of the roots, where they are taken in coordinates that are not these


def chunked(points: np.ndarray, size: int, rows: int, fill: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """`fill` over blocks of `rows` points, so that temporaries stay in cache and memory is n·p; on every core where
    they are many."""
    if len(points) <= rows:
        return fill(points)
    out = np.empty((len(points), size))

    def work(start: int) -> None:
        out[start : start + rows] = fill(points[start : start + rows])

    run_tasks(work, [(start,) for start in range(0, len(points), rows)], cores() if out.size >= _LARGE else 1)
    return out


def householder(c: np.ndarray) -> np.ndarray:
    """Z (p, p−1) with orthonormal columns and cᵀZ = 0: all but the first column of the QR of c (Wood 2017, section
    1.8.1)."""
    return reflected(np.eye(c.size), c)


def reflected(E: np.ndarray, c: np.ndarray) -> np.ndarray:
    """E Z with Z as in `householder`, which takes no product of matrices."""
    v = c.astype(np.float64).copy()
    v[0] += np.copysign(np.linalg.norm(v), v[0])
    return (E - np.outer(E @ v, 2 * v / (v @ v)))[:, 1:]


def scale_roots(roots: tuple[np.ndarray, ...], columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Roots of S‖X‖∞²/‖S‖₁, which makes smoothing parameters comparable among terms, and with mgcv's (`smoothCon`,
    scale.penalty)."""
    size = (np.abs(columns) @ np.ones(columns.shape[1])).max()
    return tuple(E * (size / np.sqrt(np.abs(E.T @ E).sum(axis=0).max())) for E in roots)


def roots_of(setup: Setup) -> tuple[np.ndarray, ...]:
    """The setup's roots, scaled as `scale_roots` does it in the coordinates in which mgcv has them."""
    if setup.scales is None:
        return scale_roots(setup.roots, setup.columns)
    return tuple(E * scale for E, scale in zip(setup.roots, setup.scales))


def natural(setup: Setup, sample: Sample) -> tuple[np.ndarray, int]:
    """P (k, k): wiggly functions with XᵀX diagonal and S the identity, then the unpenalised; each group of unit
    mean square (mgcv's nat.param)."""
    from scipy.linalg import solve_triangular

    X, (E,), rank = setup.columns, setup.roots, setup.ranks[0]
    R = np.linalg.qr(np.sqrt(sample.weights)[:, None] * X, mode="r")
    V, d, _ = np.linalg.svd(solve_triangular(R, E.T, trans=1))
    P = solve_triangular(R, V)
    P[:, :rank] /= d[:rank]
    null = X @ P[:, rank:]
    if null.shape[1] > 1:  # by variance over the data; the constant comes last
        centred = null - sample.mean(null)
        P[:, rank:] = P[:, rank:] @ np.linalg.eigh((centred * sample.weights[:, None]).T @ centred)[1][:, ::-1]
    for group in (slice(0, rank), slice(rank, None)):
        P[:, group] /= np.sqrt(np.mean(sample.mean((X @ P[:, group]) ** 2)))
    return P, rank
