"""Smoothing by K-fold cross-validation: folds of whole contexts (or groups), held-out log-likelihood, its exact
gradient in ρ.

    CV(ρ) = −Σ_k ℓ_k(β_{−k}(ρ)),   ∂CV/∂ρ_j = −Σ_k s_kᵀ ∂β_{−k}/∂ρ_j,   ∂β_{−k}/∂ρ_j = −(XᵀWX + S)⁻¹_{−k} λ_j S_j
    β_{−k},

ℓ_k and s_k being the log-likelihood and the score of fold k's rows. Rows leave a fit by their weight being zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._base.blas import single_threaded
from .._base.numerics import generator
from .._base.workers import as_finished, kept_by
from ..errors import InputError
from .criteria import Criterion, Value, Working, solve
from .outer import Found, PenalisedRows, smooth
from .segment import ResponseRows


def fold_of_rows(problem: PenalisedRows, groups: np.ndarray | None, folds: int, rng: Any) -> np.ndarray:
    """(n,) the fold of each row in the design's order: whole groups, or whole contexts, or single rows."""
    design = problem.design
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != (design.rows,):
            raise InputError(
                f"groups must have one value for each of the {design.rows} rows; got shape {groups.shape}."
            )
        ids = np.unique(design.sort(groups), return_inverse=True)[1]
    elif design.run_ids is not None:
        ids = np.concatenate([np.repeat(np.arange(s.runs), np.diff(s.ptr)) + k for k, s in _numbered(design.segments)])
    else:
        ids = np.arange(design.rows)
    units = int(ids.max()) + 1
    if isinstance(folds, bool) or not isinstance(folds, int | np.integer) or not 2 <= folds <= units:
        remedy = f" Pass folds={min(units, 10)}." if units > 1 else ""
        raise InputError(
            f"folds must be a whole number from 2 to the number of rows, contexts or groups, {units}; got {folds!r}."
            + remedy
        )
    of_unit = generator(rng).permutation(np.arange(units) % folds)
    return of_unit[ids]


def _numbered(segments):
    first = 0
    for segment in segments:
        yield first, segment
        first += segment.runs


@dataclass
class _Folds:
    """CV(ρ) and its gradient; each fold's β is kept to start the next evaluation from."""

    problem: PenalisedRows
    fold: np.ndarray
    folds: int
    beta: list[np.ndarray]
    client: Any = None  # of workers that share the folds
    sent: tuple[Any, ...] = ()  # problem and folds, with these workers

    def evaluate(self, rho: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = 0.0, np.zeros(rho.size)
        tasks = [(k, self.beta[k], rho) for k in range(self.folds)]
        for k, (loglik, slope, beta) in enumerate(self._found(tasks)):
            self.beta[k] = beta
            value -= loglik
            gradient -= slope
        return value, np.where(self.problem.free, gradient, 0.0)

    def _found(self, tasks: list[tuple[Any, ...]]) -> list[Any]:
        if self.client is None:
            return [_left_out(self.problem, self.fold, *task) for task in tasks]
        found = dict(as_finished(self.client, [(_left_out_elsewhere, *self.sent, *task) for task in tasks]))
        return [found[k] for k in range(len(tasks))]


def _left_out(
    problem: PenalisedRows, fold: np.ndarray, k: int, beta: np.ndarray, rho: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """ℓ_k at β_{−k}(ρ), its gradient in ρ, and β_{−k}."""
    rows, out = problem.rows, fold == k
    ones = rows.weights if rows.weights.size else np.ones(rows.y.size)
    fixed = replace(problem, free=np.zeros(rho.size, bool))
    kept = ResponseRows(rows.y, np.where(out, 0.0, ones), rows.offset)
    state = smooth(replace(fixed, rows=kept), _Held(), beta, rho, 1e-6, 100).at.state
    left_out = ResponseRows(rows.y, np.where(out, ones, 0.0), rows.offset)
    loglik, score, _ = problem.design.sweep(left_out, problem.code, state.beta, problem.threads)
    return loglik, score @ state.slopes, state.beta


def _left_out_elsewhere(problem: PenalisedRows, *task: Any) -> tuple[float, np.ndarray, np.ndarray]:
    """The same with a worker, whose copies of the rows the kernels must be allowed to write to."""
    own = problem.rows
    rows = ResponseRows(*(np.require(a, requirements=("C", "W")) for a in (own.y, own.weights, own.offset)))
    with single_threaded():
        return _left_out(replace(problem, rows=rows), *task)


class _Held(Criterion):
    """No criterion: ρ is given."""

    @property
    def name(self) -> str:
        return "fixed"

    def value(self, working: Working, penalties: Any, rho: np.ndarray) -> float:
        return 0.0

    def full(self, working: Working, penalties: Any, rho: np.ndarray) -> Value:
        m = rho.size
        return Value(0.0, solve(working, penalties, rho), lambda: (np.zeros(m), np.zeros((m, m))))

    def lever(self, working: Working, penalties: Any, state: Any) -> Any:
        raise AssertionError("nothing asks for a slope where no ρ is free")


# long: what a choice needs
def choose(
    problem: PenalisedRows, found: Found, groups: np.ndarray | None, folds: int, rng: Any, tolerance: float, most: int,
    client: Any = None,
) -> tuple[Found, float, np.ndarray, np.ndarray]:  # fmt: skip
    """ρ that minimises CV, from the UBRE/GCV solution `found`: BFGS that starts from that criterion's Hessian. The
    workers of `client` share the folds.

    Returns the fit at that ρ, CV there, and CV's gradient and (quasi-Newton) Hessian.
    """
    fold = fold_of_rows(problem, groups, folds, rng)
    sent = () if client is None else (kept_by(client, problem), kept_by(client, fold))
    cv = _Folds(problem, fold, folds, [found.at.state.beta.copy() for _ in range(folds)], client, sent)
    free = np.flatnonzero(problem.free)
    rho = found.at.state.rho.copy()
    centre = rho.copy()
    values, vectors = np.linalg.eigh(found.at.hessian[np.ix_(free, free)])
    hessian = (
        vectors * np.maximum(np.abs(values), 0.05)
    ) @ vectors.T  # flat directions: no more than a step of 20 gradients
    value, gradient = cv.evaluate(rho)
    scale = max(found.at.state.beta.size, 1.0) * 1e-4  # nats that matter
    for _ in range(30):
        slope = gradient[free]
        step = -np.linalg.solve(hessian, slope)
        step *= min(1.0, 3.0 / np.abs(step).max())
        if -0.5 * float(slope @ step) < min(1e-4, scale):
            break
        accepted, trial, new_value, new_gradient = False, rho, value, gradient
        for _ in range(8):
            trial = rho.copy()
            trial[free] = np.clip(trial[free] + step, centre[free] - 15.0, centre[free] + 15.0)
            new_value, new_gradient = cv.evaluate(trial)
            if new_value <= value + 1e-9 * abs(value):
                accepted = True
                break
            step = 0.3 * step
        if not accepted:
            break
        moved, turned = trial[free] - rho[free], new_gradient[free] - slope
        gain = value - new_value
        if moved @ turned > 1e-10 * np.linalg.norm(moved) * np.linalg.norm(turned):
            h = hessian @ moved
            hessian += np.outer(turned, turned) / (moved @ turned) - np.outer(h, h) / (moved @ h)
        rho, value, gradient = trial, new_value, new_gradient
        if gain < 1e-6 * max(1.0, 1e-3 * abs(value)):
            break
    fixed = replace(problem, free=np.zeros(rho.size, bool))
    final = smooth(fixed, _Held(), found.at.state.beta, rho, tolerance, most)
    full = np.zeros((rho.size, rho.size))
    full[np.ix_(free, free)] = hessian
    return final, value, gradient, full
