"""How a run ends: where its estimate is, how far that is from the maximum, and what its own randomness adds.

At the averaged iterate φ̄, fresh gradients g_1, …, g_M of the objective and its curvature H predict the move that is
left,

    δ = H⁻¹ ḡ,      Var(δ − E δ) = V_1/M,      V_1 = H⁻¹ Var(g) H⁻¹,

in units of the standard errors √diag(H⁻¹). A preconditioned run forgets its start within a few steps, so that its
average over T steps has Monte Carlo variance V_1/T (Polyak & Juditsky 1992); of any other run nothing is known. The
estimate is the best combination of the two, φ̂ = φ̄ + δ M/(M + T) with T = 0 for other runs, and its Monte Carlo variance
is V_1/(M + T) whatever the optimiser did. It has converged when δ is small, or explained by Monte Carlo noise.

Where there are too many parameters for a matrix, H is known by its products with vectors. The gain that is left,
½ gᵀH⁻¹g, is estimated by ½ ḡ_2ᵀ H⁻¹ ḡ_1 from two independent halves of the gradients, whose noise then adds nothing on
average; H⁻¹ ḡ_1 comes by conjugate gradients. As sampling error is worth ½ per parameter, √(2 gain/p) is the move in
standard errors, root mean square over p directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .estimator import Estimator
from .loop import Trace
from .renewal import MOST_DENSE, information

DRAWS = 16  # fresh steps for the curvature, at least
MOST_DRAWS = 256
ROWS = 40  # rows for each parameter of the curvature: fewer would overstate its inverse
STEPS = 64  # fresh gradients
MOST_LINEAR = 2000  # parameters for which a matrix is formed, where f and χ are linear
MOST_NONLINEAR = 100  # … where f is not: beyond it, weights are not identified one by one
MOST_CELLS = 2**27  # parameters × rows of a step, for that matrix
SMALL = 0.1  # a move in standard errors that does not matter
NEAR = 0.5  # … up to which one Newton step ends at the maximum
SIGMAS = 4.0  # Monte Carlo noise of the largest of a few hundred coordinates
FINE = 0.02  # Monte Carlo error, in standard errors, below which no more gradients are drawn
NOISY = 0.5  # … above which the run is too short
RMS = 0.3  # root mean square move of many parameters, in standard errors
GROUPS = 16  # of fresh gradients, where there are many parameters
PRODUCTS = 30  # conjugate-gradient iterations
PRODUCT_DRAWS = 4  # fresh steps for each product with the curvature


@final
@dataclass(frozen=True)
class Curvature:
    """−∂²𝓜 and −∂² log π at φ̄, and the variance of one step's gradient there."""

    information: np.ndarray  # (p, p)
    penalty: np.ndarray | None  # (p, p)
    noise: np.ndarray  # (p, p)
    steps: float  # how many independent steps the estimate is worth

    @property
    def total(self) -> np.ndarray:
        return self.information if self.penalty is None else self.information + self.penalty


@final
@dataclass(frozen=True)
class Ending:
    """The estimate φ̂ of a run, and what is known there."""

    phi: np.ndarray
    value: float  # the objective, without the prior
    value_se: float  # its Monte Carlo error
    health: dict[str, float]
    left: float  # the move that is left, in standard errors: of the worst parameter, or root mean square over many
    obstacle: str  # why the run has not converged; empty where it has
    curvature: Curvature | None
    note: str = ""  # why there is no curvature


def most_dense(e: Estimator) -> int:
    """How many parameters may have a curvature matrix."""
    if not e.model.linear:
        return MOST_NONLINEAR
    fits = e.size * e.plan.rows * e.plan.k <= MOST_CELLS
    return MOST_LINEAR if e.chi.linear and fits else MOST_DENSE


def ending(trace: Trace, seed: int) -> Ending:
    """Where the run ended, by the curvature matrix where there can be one."""
    e, most = trace.estimator, most_dense(trace.estimator)
    if e.size > most:
        note = f"No standard errors: {e.size:,} parameters, and the limit is {most:,} here."
        if not e.model.linear:
            note += " A network's weights are not identified one by one; for smaller models use the draws of un.sample."
        return _by_products(e, trace, seed, note)
    S = e.prior_hessian(trace.phi)
    draws = np.clip(-(-ROWS * e.size // (e.plan.rows * e.plan.k)), DRAWS, MOST_DRAWS)
    H = information(e, trace.phi, seed, 0, int(draws))
    total = H - S
    trouble = _indefinite(total)
    if trouble:
        return _by_products(e, trace, seed, f"No standard errors: the curvature at the estimate is {trouble}.")
    return _by_newton(e, trace, seed, H, None if np.ndim(S) == 0 else -np.asarray(S))


def _indefinite(H: np.ndarray) -> str:
    """What keeps H from being the curvature at a maximum; nothing where it is one."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-300))
    H = H / np.outer(scale, scale)
    try:
        if np.diag(np.linalg.cholesky(H)).min() > 1e-5:
            return ""
    except np.linalg.LinAlgError:
        pass
    least = float(np.linalg.eigvalsh(H)[0])
    return "not that of a maximum" if least < -1e-6 else "singular; some parameters are not identified"


def _by_newton(e: Estimator, trace: Trace, seed: int, H: np.ndarray, penalty: np.ndarray | None) -> Ending:
    """One Newton step on fresh gradients, where it is short; what is left after it."""
    V = np.linalg.inv(H if penalty is None else H + penalty)
    # a coefficient that is smoothed away has next to no error of its own: the scale is then that of the data alone
    se = np.sqrt(np.maximum(np.diag(V), 1 / np.maximum(np.diag(H), 1e-300)))
    run = float(trace.averaged)  # T
    known = run if trace.P is not None else 0.0
    parts: list[tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]] = []
    while True:
        parts.append(e.gradients(trace.phi, seed, STEPS, first=STEPS * len(parts)))
        g = np.concatenate([part[1] for part in parts])
        M = float(len(g))
        moves = (g + e.prior_gradient(trace.phi)) @ V
        delta, spread = moves.mean(axis=0), moves.var(axis=0, ddof=1)
        own = np.sqrt(spread / (M + known))
        if M + known >= run or (own <= FINE * se).all():
            break
    noise = np.sqrt(spread * (1 / M + 1 / max(run, 1.0)))
    near = bool((np.abs(delta) <= NEAR * se + SIGMAS * noise).all())
    share = M / (M + known) if near else 0.0
    left = (1 - share) * np.abs(delta)
    worst = int(np.argmax(left / se))
    obstacle = ""
    if (left > SMALL * se + SIGMAS * (1 - share) * noise).any():
        obstacle = f"{e.names[worst]} is predicted to move by {left[worst] / se[worst]:.2g} standard errors more"
    elif (own > NOISY * se).any():
        noisy = int(np.argmax(own / se))
        obstacle = f"the Monte Carlo error of {e.names[noisy]} is {own[noisy] / se[noisy]:.2g} standard errors"
    value = np.concatenate([part[0] for part in parts])
    step = share * delta
    gain = float(step @ g.mean(axis=0) - 0.5 * step @ H @ step)
    return Ending(
        trace.phi + step,
        float(value.mean()) + gain,
        float(value.std(ddof=1) / np.sqrt(M)),
        _health([part[2] for part in parts]),
        float(left[worst] / se[worst]),
        obstacle,
        Curvature(H, penalty, np.atleast_2d(np.cov(g, rowvar=False)), M + known),
    )


def _by_products(e: Estimator, trace: Trace, seed: int, note: str) -> Ending:
    """The averaged iterate itself, and the gain that is left there."""
    phi = trace.phi
    value, g, health = e.grouped_gradients(phi, seed, GROUPS, STEPS // GROUPS)
    scale = g.var(axis=0, ddof=1)
    g = g + e.prior_gradient(phi)
    half = GROUPS // 2
    delta = conjugate_gradients(
        lambda v: e.curvature_product(phi, seed, PRODUCT_DRAWS, v),
        g[:half].mean(axis=0),
        _known(scale, g),
    )
    gains = 0.5 * g[half:] @ delta
    gain, error = float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(half))
    left = float(np.sqrt(max(2 * gain, 0.0) / e.size))
    obstacle = ""
    if not gain + 2 * error <= 0.5 * e.size * RMS**2:
        obstacle = (
            f"the objective is predicted to rise by {gain:.3g} more (Monte Carlo error {error:.2g}), a move of "
            f"{left:.2g} standard errors for the average of {e.size:,} parameters"
        )
    error = float(value.std(ddof=1) / np.sqrt(value.size))
    return Ending(phi, float(value.mean()), error, _health([health]), left, obstacle, None, note)


def _known(variance: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Variances that can be divided by: those of gradients that do not vary (all rows in a step, or weights that are
    saturated) are known to the rounding of the gradients and no better."""
    rounding = (np.finfo(np.float64).eps * np.abs(g).max(initial=0.0)) ** 2
    return np.maximum(variance, max(1e-12 * variance.max(initial=0.0), rounding, np.finfo(np.float64).tiny))


def conjugate_gradients(product: Any, g: np.ndarray, scale: np.ndarray, most: int = PRODUCTS) -> np.ndarray:
    """H⁻¹ g from products with H, in coordinates of unit `scale`, to a tenth of the residual; stops where H is flat."""
    x, r = np.zeros_like(g), g.copy()
    z = r / scale
    direction, size = z, float(r @ z)
    enough = 0.01 * size
    for _ in range(most):
        if size <= enough:
            break
        bent = product(direction)
        curvature = float(direction @ bent)
        if not curvature > 1e-12 * size:
            break
        length = size / curvature
        x, r = x + length * direction, r - length * bent
        z = r / scale
        before, size = size, float(r @ z)
        direction = z + (size / before) * direction
    return x


def _health(parts: list[dict[str, np.ndarray]]) -> dict[str, float]:
    return {name: float(np.mean([part[name].mean() for part in parts])) for name in ("mass", "ess")}
