"""Bits in turn, each a logistic regression on the bits before it and on the context: near to coupled bits, and exact.

    q(y|x) = Π_i σ(±η_i),    η_i = a_i + Σ_{j<i} B_ij y_j + Σ_c C_ic x_c,

with + where y_i = 1. Any such q has constant one, so that a rough fit will do. The coefficients are those of penalised
regressions, all d of them at once: −H_i ≤ v_i DᵀD with v_i = ¼ at most (Böhning & Lindsay 1988), and with the
regressors in the order D = (1, x, y_1 … y_d) the bound of bit i is a leading block of one matrix, whose Cholesky factor
is a leading block of the whole one's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from .._base.blas import single_threaded
from ..domains import BinaryVectors
from ..errors import InputError
from .base import BoundReference, Example, Given, Reference, is_number

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain

STEPS, SMALL = 60, 0.01  # of the regressions: at most, and a step of η after which they stop
ROWS = 30_000  # observations to fit them to, at most
EACH = 20  # observations for each parameter's worth of freedom, at least
WIDER = 1.5  # times the mean curvature of a bit is tried before the bound that holds everywhere


@final
@dataclass(frozen=True, repr=False)
class LogisticBernoulli(Reference):
    """Bits (or edges), each with log-odds linear in the bits before it and in the context's columns.

    Nearer to coupled bits than `BernoulliTree`, with an exact constant still. `chained=False` leaves out the other
    bits: independent bits, logistic on the whole of y_{t−1} and on covariates. `ridge` is a penalty ½ ridge Σ B² on
    the coefficients; left out, it leaves them the freedom of n/20 parameters at most: a law that follows the very data
    that it is compared with biases the estimate. `coefficients` (d rows: constant, context, bits) are fitted where left
    out.

    Args:
        chained: whether a bit's log-odds read the bits before it.
        ridge: the penalty's weight; chosen where None.
        coefficients: d rows, (constant, context, bits); fitted where None.

    >>> from unnorm.references import LogisticBernoulli
    >>> LogisticBernoulli(chained=False)
    LogisticBernoulli(chained=False, ridge=None, coefficients=None)
    """

    lives_on: ClassVar[str] = "binary vectors and graphs"

    chained: bool = True
    ridge: float | None = None
    coefficients: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.chained, bool | np.bool_):
            raise InputError(f"chained of LogisticBernoulli must be True or False; got {self.chained!r}.")
        if self.ridge is not None and not is_number(self.ridge, 0.0, strict=True):
            raise InputError(f"ridge of LogisticBernoulli must be a positive number, or None; got {self.ridge!r}.")

    @classmethod
    def takes(cls, domain: Domain) -> bool:
        return domain.free is not None

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return Example(cls(), BinaryVectors(5)), Example(cls(chained=False, ridge=5.0), BinaryVectors(4))

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        self.check_domain(domain)
        if self.coefficients is not None:
            return BoundLogistic(domain, self, np.asarray(self.coefficients, dtype=np.float64), _columns(obs))
        some = obs.take(np.linspace(0, obs.n - 1, ROWS).astype(np.intp)) if obs.n > ROWS else obs
        free = np.ones(domain.dim, dtype=bool) if domain.free is None else domain.free
        most = float(obs.weights.sum()) / EACH
        with single_threaded():
            B = _regressions(_context(some), some.outcome.astype(np.float64), some.weights, self, most)
        B[~free] = 0.0
        filled = replace(self, coefficients=tuple(tuple(row) for row in B.tolist()))
        return BoundLogistic(domain, filled, B, _columns(obs))


def _columns(obs: Observations) -> tuple[str, ...]:
    """The context's columns of numbers."""
    return tuple(name for name, values in obs.context.items() if values.dtype.kind in "fiub")


def _context(obs: Observations) -> np.ndarray:
    """(n, c) the context's numbers."""
    columns = [obs.context[name].astype(np.float64) for name in _columns(obs)]
    return np.column_stack(columns) if columns else np.zeros((obs.n, 0))


def _regressions(X: np.ndarray, Y: np.ndarray, w: np.ndarray, spec: LogisticBernoulli, most: float) -> np.ndarray:
    """(d, 1 + c + d) coefficients of all bits by steps that no bit's likelihood falls on; `most`: their freedom."""
    n, d = Y.shape
    centre, scale = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-12)
    scale = np.where(scale > 1e-9 * (1.0 + np.abs(centre)), scale, np.inf)  # a constant column says nothing
    D = np.concatenate([np.ones((n, 1)), (X - centre) / scale, Y], axis=1)
    first, m = 1 + X.shape[1], D.shape[1]
    uses = np.tile(np.arange(m) < first, (d, 1))
    if spec.chained:
        uses |= np.arange(m) < first + np.arange(d)[:, None]
    gram = D.T @ (D * w[:, None])
    p = (w @ Y + 0.5) / (w.sum() + 1.0)
    ridge = _enough(gram, p * (1.0 - p), uses, most) if spec.ridge is None else spec.ridge
    penalty = np.where(np.arange(m) > 0, ridge, 1e-6 * w.sum())
    root = np.linalg.cholesky(4.0 * np.diag(penalty) + gram)  # ¼ of it bounds every −H
    B = np.zeros((d, m))
    B[:, 0] = np.log(p / (1.0 - p))
    bound, value, step = 4.0 * p * (1.0 - p) * WIDER, np.full(d, -np.inf), np.zeros((d, m))
    for _ in range(STEPS):
        eta = D @ B.T
        now = w @ (Y * eta - np.logaddexp(0.0, eta)) - 0.5 * (B[:, 1:] ** 2).sum(axis=1) * ridge
        fell = now < value - 1e-9 * np.abs(value, where=np.isfinite(value), out=np.zeros(d))
        B[fell] -= step[fell]
        bound = np.where(fell, 1.0, np.minimum(bound, 1.0))
        eta = D @ B.T if fell.any() else eta
        value = np.where(fell, value, now)
        slope = ((Y - 1.0 / (1.0 + np.exp(-eta))) * w[:, None]).T @ D - np.where(np.arange(m) > 0, ridge * B, 0.0)
        step = _solved(root, slope, uses) * (4.0 / bound)[:, None]
        B = B + step
        if np.abs(step).max(initial=0.0) < SMALL:
            break
    inside = B[:, 1:first] / scale
    return np.concatenate([B[:, :1] - (inside @ centre)[:, None], inside, B[:, first:]], axis=1)


def _enough(gram: np.ndarray, variance: np.ndarray, uses: np.ndarray, most: float) -> float:
    """The least ridge, from 1 up, with which the coefficients have the freedom of `most` parameters.

    Of a regressor with weighted variance c the ridge λ leaves c/(c + λ) of a parameter; correlations are ignored.
    """
    spread = np.maximum(np.diag(gram) - gram[0] ** 2 / gram[0, 0], 0.0)
    c = variance[:, None] * spread * uses
    ridge = 1.0
    while np.sum(c / (c + ridge)) > most and ridge < 1e12:
        ridge *= 2.0
    return ridge


def _solved(root: np.ndarray, slope: np.ndarray, uses: np.ndarray) -> np.ndarray:
    """(d, m) (L L')⁻¹ of each bit's leading block times its slope, zero beyond the block."""
    from scipy.linalg import solve_triangular

    out = np.zeros_like(slope)
    for i, size in enumerate(uses.sum(axis=1).tolist()):
        L = root[:size, :size]
        half = solve_triangular(L, slope[i, :size], lower=True, check_finite=False)
        out[i, :size] = solve_triangular(L, half, lower=True, trans=1, check_finite=False)
    return out


@final
class BoundLogistic(BoundReference):
    """Bits with known coefficients."""

    def __init__(
        self, domain: Domain, reference: LogisticBernoulli, coefficients: np.ndarray, columns: tuple[str, ...]
    ) -> None:
        super().__init__(domain, reference)
        d, c = domain.dim, len(columns)
        if coefficients.shape != (d, 1 + c + d):
            raise InputError(
                f"coefficients of LogisticBernoulli must be {d} rows of {1 + c + d}: a constant, {c} of the context, "
                f"{d} of the bits; got shape {coefficients.shape}."
            )
        self._a, self._C, self._B = coefficients[:, 0], coefficients[:, 1 : 1 + c], coefficients[:, 1 + c :]
        self._free = np.ones(d, dtype=bool) if domain.free is None else domain.free
        self._columns = columns

    @property
    def given(self) -> Given:
        return "context" if self._columns else "nothing"

    @property
    def cube_dim(self) -> int:
        return self.domain.dim

    def _base(self, obs: Observations, t: np.ndarray) -> np.ndarray:
        """(N, d) η less what the other bits add."""
        if not self._columns:
            return np.broadcast_to(self._a, (len(t), self.domain.dim))
        return (self._a + _context(obs) @ self._C.T)[t]

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        base, y = self._base(obs, t), np.zeros((self.domain.dim, len(u)))
        with single_threaded():
            for i in np.flatnonzero(self._free):
                eta = base[:, i] + self._B[i, :i] @ y[:i]
                y[i] = u[:, i] * (1.0 + np.exp(eta)) >= 1.0  # u ≥ 1 − σ(η)
        return y.T.copy()

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        out, length = np.empty(len(y)), max(1, 2**21 // self.domain.dim)
        for begin in range(0, len(y), length):
            at = slice(begin, begin + length)
            eta = self._base(obs, t[at]) + y[at] @ self._B.T
            each = np.where(y[at] > 0.5, -np.logaddexp(0.0, -eta), -np.logaddexp(0.0, eta))
            out[at] = each[:, self._free].sum(axis=1)
        return out

    def describe(self) -> str:
        what = ["the bits before it"] if self.reference.to_dict()["chained"] else []
        what += [f"{len(self._columns)} columns of the context"] if self._columns else []
        given = f", each given {' and '.join(what)}" if what else ", independent"
        return f"{self.domain.dim} bits{given} by a logistic regression; constant exact"
