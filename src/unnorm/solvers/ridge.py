"""χ(x) = b + xᵀβ in thousands of sparse features: penalised Newton steps by conjugate gradients.

The rows of a context share its features x_t, so that with w_r = −ℓ''_r, W_t = Σ_r w_r and C_t = Σ_r w_r [s_r; 1] over
the rows of context t, a product with the Hessian

    J [u; v] = [A u + Cᵀ(Xv);  Xᵀ(C u + W ∘ Xv) + 2λ v],      A = Σ_r w_r [s_r; 1][s_r; 1]ᵀ,

costs the non-zeros of X, however many reference points there are. θ's errors need no more than the columns of J⁻¹ that
belong to θ: in the coordinates s̃ = s − xᵀB, B = J_ββ⁻¹ J_βθ, to which β is orthogonal, they are those of p parametric
columns.

λ falls by tenths until a Newton step without it moves θ by less than .05 standard errors. REML is there when asked for
(Fellner and Schall's step, 2λ ← (q − 2λ tr(J⁻¹)_ββ)/βᵀβ, the trace by Hutchinson's ±1 probes: with q = 10⁴ four know it
to 1 %), but it is no choice for χ: it weighs q coefficients against what the likelihood gains by them, not against the
bias of θ (10⁴ contexts × 10³ features: REML makes χ constant, and θ is 12 standard errors off; benchmarks/contexts.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from .._base.numerics import Rng
from ..errors import CombinationError, ConvergenceError, warn
from ..objectives.additive import AdditiveProblem
from ..objectives.base import Constants, Problem
from ..objectives.redraws import Probe, Redraws, points_only
from ..objectives.rows import Rows, RowSource
from ..objectives.scores import DenseDesign, RowScores, ScoreRows, sum_by
from .base import Solution, Solver

MOST_STEPS = 60  # of Newton, at one λ
MOST_UPDATES = 40  # of λ
MOST_PRODUCTS = 2000  # of one system
SETTLED = 0.02  # change of log λ
BIAS = 0.05  # standard errors that the penalty may move θ
LARGEST, SMALLEST = 1e-1, 1e-9  # 2λ, as a share of the mean curvature of a feature
RANGE = 1e-8, 1e10  # of 2λ


@final
@dataclass(frozen=True, eq=False)
class RidgeRows:
    """η = [s; 1]ᵀu + x_tᵀβ + offset on the rows; coefficients c = (u, β), u = (θ, b)."""

    S: np.ndarray  # (N, p + 1), ones last
    at: np.ndarray  # (N,) the context of each row
    offset: np.ndarray  # (N,)
    X: Any  # (n, q), a scipy.sparse.csr_array
    rows: Rows

    @cached_property
    def back(self) -> Any:
        """Xᵀ."""
        return self.X.T.tocsr()

    @property
    def split(self) -> int:
        return self.S.shape[1]

    def eta(self, c: np.ndarray) -> np.ndarray:
        return self.S @ c[: self.split] + (self.X @ c[self.split :])[self.at] + self.offset

    def value(self, c: np.ndarray, sp: float) -> float:
        """The objective less ½ sp βᵀβ, sp = 2λ."""
        beta = c[self.split :]
        return self.rows.likelihood.value(self.eta(c)) - 0.5 * sp * float(beta @ beta)

    def sums(self, v: np.ndarray) -> np.ndarray:
        """(n, …) Σ_r v_r over the rows of each context."""
        n = self.X.shape[0]
        if v.ndim == 1:
            return np.bincount(self.at, v, n)
        return np.stack([np.bincount(self.at, column, n) for column in v.T], axis=1)

    def gradient(self, slope: np.ndarray, c: np.ndarray, sp: float) -> np.ndarray:
        return np.concatenate([slope @ self.S, self.back @ self.sums(slope) - sp * c[self.split :]])

    def curved(self, curvature: np.ndarray, sp: float) -> Curved:
        weighted = curvature[:, None] * self.S
        squares = self.back.copy()
        squares.data = squares.data**2
        W = self.sums(curvature)
        return Curved(self, self.S.T @ weighted, self.sums(weighted), W, squares @ W + sp, sp)


@final
@dataclass(frozen=True, eq=False)
class Curved:
    """J, known by its products with (p + 1 + q, k) arrays."""

    of: RidgeRows
    A: np.ndarray  # (p + 1, p + 1)
    C: np.ndarray  # (n, p + 1)
    W: np.ndarray  # (n,)
    diagonal: np.ndarray  # (q,) of the ββ block
    sp: float

    def __call__(self, v: np.ndarray) -> np.ndarray:
        k = self.of.split
        u, beta = v[:k], v[k:]
        through = self.of.X @ beta
        below = self.of.back @ (self.C @ u + self.W[:, None] * through) + self.sp * beta
        return np.concatenate([self.A @ u + self.C.T @ through, below])

    def inner(self, v: np.ndarray) -> np.ndarray:
        """The same with θ held: (1 + q, k) arrays of b and β."""
        k = self.of.split - 1
        return self(np.concatenate([np.zeros((k, v.shape[1])), v]))[k:]

    @cached_property
    def _block(self) -> np.ndarray:
        return np.linalg.pinv(self.A, hermitian=True)

    def precondition(self, v: np.ndarray) -> np.ndarray:
        k = self.of.split
        return np.concatenate([self._block @ v[:k], v[k:] / self.diagonal[:, None]])

    def precondition_inner(self, v: np.ndarray) -> np.ndarray:
        return np.concatenate([v[:1] / self.A[-1, -1], v[1:] / self.diagonal[:, None]])

    def solve(self, b: np.ndarray, tolerance: float) -> np.ndarray:
        return conjugate_gradients(self, self.precondition, b, tolerance)

    def solve_inner(self, b: np.ndarray, tolerance: float) -> np.ndarray:
        return conjugate_gradients(self.inner, self.precondition_inner, b, tolerance)


Product = Callable[[np.ndarray], np.ndarray]


def conjugate_gradients(product: Product, precondition: Product, b: np.ndarray, tolerance: float) -> np.ndarray:
    """(p, k) solutions of a positive definite system for k right sides at once, each to a relative residual."""
    x, r = np.zeros_like(b), b.copy()
    z = precondition(r)
    d, rz = z, np.sum(r * z, axis=0)
    first = np.maximum(rz, 1e-300)
    for _ in range(MOST_PRODUCTS):
        if np.all(rz <= tolerance**2 * first):
            return x
        Jd = product(d)
        curvature = np.sum(d * Jd, axis=0)
        step = np.divide(rz, curvature, out=np.zeros_like(rz), where=curvature > 0)
        x, r = x + step * d, r - step * Jd
        z = precondition(r)
        new = np.sum(r * z, axis=0)
        d, rz = z + np.divide(new, rz, out=np.zeros_like(rz), where=rz > 0) * d, new
    raise ConvergenceError(
        f"A linear system of {b.shape[0]:,} coefficients was not solved in {MOST_PRODUCTS:,} products. Scale the "
        "features to similar sizes, drop those that repeat others, or use a larger lam=."
    )


@final
@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Where the climb ended."""

    c: np.ndarray
    sp: float
    curved: Curved
    steps: int
    converged: bool
    edf: float | None = None  # of χ's features, where REML chose λ

    @cached_property
    def crossed(self) -> np.ndarray:
        """(1 + q, p) B = J_zz⁻¹ J_zθ, z = (b, β)."""
        return self.curved.solve_inner(self._across, 1e-5)

    @cached_property
    def _across(self) -> np.ndarray:
        p = self.curved.of.split - 1
        unit = np.zeros((len(self.c), p))
        unit[:p] = np.eye(p)
        return self.curved(unit)[p:]

    @cached_property
    def bias(self) -> np.ndarray:
        """(p,) how far θ would move without the penalty (a thousandth of it, for the sake of features that repeat
        others), in standard errors: one Newton step."""
        k = self.curved.of.split
        typical = float(np.mean(self.curved.diagonal)) - self.sp
        less = 1e-3 * min(self.sp, max(typical, 1e-300))
        curved = replace(self.curved, sp=less, diagonal=self.curved.diagonal - self.sp + less)
        gradient = np.concatenate([np.zeros(k), (self.sp - less) * self.c[k:]])
        step = curved.solve(gradient[:, None], 1e-3)[: k - 1, 0]
        V = np.linalg.inv(self.curved.A[: k - 1, : k - 1] - self._across.T @ self.crossed)
        return step / np.sqrt(np.diag(V))


@final
@dataclass(frozen=True)
class Ridge(Solver):
    """Newton steps by conjugate gradients for θ and a χ that is linear in very many features (un.Linear)."""

    tolerance: float = 1e-9
    smooth_normaliser = True
    anchors = False

    def to_dict(self) -> dict[str, Any]:
        return {"solver": "Ridge", "tolerance": self.tolerance}

    def solve(self, problem: Problem, rng: Rng) -> Solution:
        X = problem.normaliser.features(problem.obs)
        assert X is not None
        rng = np.random.default_rng(rng)
        additive = problem.additive(rng)
        rows = ridge_rows(additive, additive.source, X)
        found = self._climb(rows, problem.normaliser.lam, rng)
        eta = rows.eta(found.c)
        names = tuple(additive.model.flat().names)
        p = len(names)
        chi = found.c[p] + X @ found.c[p + 1 :]
        worst = float(np.abs(found.bias).max())
        note = (
            f"χ is linear in {X.shape[1]:,} features with λ = {found.sp / 2:.3g}; without the penalty no parameter "
            f"would move by more than about {worst:.2g} standard errors."
        )
        if worst > 2 * BIAS:
            note += " That is a bias: use a smaller lam=, or leave it out."
            warn(note, stacklevel=3)
        return Solution(
            names=names,
            estimate=found.c[:p],
            index=np.arange(p),
            constants=Constants(chi),
            value=additive.value(eta),
            loglik=additive.loglik(additive.value(eta)),
            converged=found.converged,
            reason="the gain of a Newton step is below the tolerance" if found.converged else "still rising",
            iterations=found.steps,
            solver=self.to_dict(),
            scores=_scores(additive, rows, found, X),
            notes=(*additive.notes, note),
            figures={
                **additive.figures,
                "rows": len(eta),
                "features": X.shape[1],
                "nonzeros": int(X.nnz),
                "lam": found.sp / 2,
                "bias": worst,
                **({} if found.edf is None else {"edf": found.edf}),
            },
        )

    def _climb(self, rows: RidgeRows, lam: float | str | None, rng: np.random.Generator) -> RidgeFit:
        """The maximum, at the given λ, with λ by REML, or with the largest λ that leaves θ alone."""
        start = np.zeros(rows.split + rows.X.shape[1])
        if isinstance(lam, float):
            return self._newton(rows, start, 2 * lam)
        found = self._newton(rows, start, 2.0)
        if lam == "reml":
            return self._reml(rows, found, rng)
        share, typical = LARGEST, float(np.mean(found.curved.diagonal)) - found.sp
        while True:
            found = self._newton(rows, found.c, share * max(typical, 1e-300))
            share /= 10
            if np.abs(found.bias).max() < BIAS or share < SMALLEST:
                return found

    def _reml(self, rows: RidgeRows, found: RidgeFit, rng: np.random.Generator) -> RidgeFit:
        q = rows.X.shape[1]
        probes = np.zeros((rows.split + q, int(np.clip(40_000 // q, 4, 64))))
        probes[rows.split :] = rng.choice((-1.0, 1.0), (q, probes.shape[1]))
        for _ in range(MOST_UPDATES):
            beta = found.c[rows.split :]
            trace = float(np.mean(np.sum(probes * found.curved.solve(probes, 1e-2), axis=0)))
            edf = float(np.clip(q - found.sp * trace, 1e-6 * q, q))
            sp = float(np.clip(edf / max(float(beta @ beta), 1e-300), *RANGE))
            moved = abs(np.log(sp / found.sp))
            found = replace(self._newton(rows, found.c, sp), edf=edf)
            if moved < SETTLED or sp in RANGE:
                return found
        return replace(found, converged=False)

    def _newton(self, rows: RidgeRows, c: np.ndarray, sp: float) -> RidgeFit:
        value = rows.value(c, sp)
        gain, steps = np.inf, 0
        for steps in range(1, MOST_STEPS + 1):
            slope, curvature = rows.rows.likelihood.slopes(rows.eta(c))
            gradient = rows.gradient(slope, c, sp)
            curved = rows.curved(curvature, sp)
            step = curved.solve(gradient[:, None], float(np.clip(1e-2 * np.sqrt(gain), 1e-6, 1e-2)))[:, 0]
            gain = 0.5 * float(step @ gradient)
            if gain <= self.tolerance * (1 + 1e-3 * abs(value)):
                return RidgeFit(c + step, sp, curved, steps, True)
            length = 1.0
            while not (new := rows.value(c + length * step, sp)) >= value + 1e-4 * length * gain:
                length /= 2
                if length < 1e-10:
                    return RidgeFit(c, sp, curved, steps, gain < 1e-6 * (1 + abs(value)))
            c, value = c + length * step, new
        curved = rows.curved(rows.rows.likelihood.slopes(rows.eta(c))[1], sp)
        return RidgeFit(c, sp, curved, steps, False)


def ridge_rows(problem: AdditiveProblem, source: RowSource, X: Any) -> RidgeRows:
    """The rows of an objective, χ's features apart."""
    if problem.model.additive or not problem.model.flat().linear:
        raise CombinationError(
            f"{problem.normaliser!r} goes with un.ExponentialFamily, whose f is linear in θ. For un.Energy use "
            "solver=un.SGD(…) with un.Network(…); for smooth terms of f, un.Kernel('linear')."
        )
    names = problem.model.flat().names
    statistics, offsets = [], []
    for rows in source.blocks():
        _, part = problem.predictor(rows)
        statistics.append(np.column_stack([*(part.columns[name] for name in names), np.ones(len(rows))]))
        offsets.append(np.zeros(len(rows)) if part.offset is None else part.offset)
    every = source.vectors()
    return RidgeRows(np.concatenate(statistics), every.context, np.concatenate(offsets), X, every)


def _scores(problem: AdditiveProblem, rows: RidgeRows, found: RidgeFit, X: Any) -> RowScores:
    """Scores of θ, in coordinates to which b and β are orthogonal: columns s̃ = s − [1; x]ᵀB."""
    p, eta, B = rows.split - 1, rows.eta(found.c), found.crossed
    curvature = rows.rows.likelihood.slopes(eta)[1]
    shift = B[0] + X @ B[1:]  # (n, p)
    own = rows.S[:, :p] - shift[rows.at]
    inner = rows.rows

    def blocks() -> Iterator[ScoreRows]:
        sets = inner.randomisation if problem.sets > 1 else None
        ratio = None if inner.log_q is None else eta - inner.offset - inner.log_q
        yield ScoreRows(DenseDesign(own), inner.likelihood, eta, inner.data, inner.at, inner.weight, sets, ratio)

    def again(i: int, times: float) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
        assert problem.redraw is not None
        fresh = ridge_rows(problem, problem.redraw(i, times), X)
        slopes = points_only(fresh.rows.likelihood.slopes(fresh.eta(found.c)), fresh.rows.data)
        return slopes, fresh.S[:, :p] - shift[fresh.at], fresh.at

    def sums(i: int, times: float, probe: Probe | None) -> tuple[np.ndarray, np.ndarray | None]:
        slopes, own, at = again(i, times)
        return slopes[0] @ own, None if probe is None else probe.read(at, probe.K @ own.T) @ slopes[0]

    def by_label(i: int, times: float, label: np.ndarray, count: int) -> np.ndarray:
        slopes, own, at = again(i, times)
        return sum_by(slopes[0][:, None] * own, label[at], count)

    weights = problem.obs.weights
    return RowScores(
        blocks=blocks,
        size=p,
        weight=float(weights.sum()),
        drawn=problem.drawn,
        shared=problem.source.shared,
        information=own.T @ (curvature[:, None] * own),
        counts_points=problem.likelihood.cumulant.counts_points,
        penalty=found.sp * (B[1:].T @ B[1:]),
        redraw=None if problem.redraw is None else Redraws(sums, by_label),
        sets=problem.sets,
        centred=False,
    )
