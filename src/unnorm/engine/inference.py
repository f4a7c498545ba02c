"""Inference for penalised fits: tests of terms, the tail of Σ λ_j χ²_j, smoothing-parameter uncertainty, bands.

Throughout, A = XᵀWX, S_λ = Σ λ_k S_k, H = A + S_λ, and φ is the scale. Bayesian covariance V_β = φ H⁻¹, frequentist
V_e = φ H⁻¹ A H⁻¹, F = H⁻¹A, edf = diag F, edf₁ = diag(2F − FF) (Wood 2017, Generalized Additive Models, §6.1.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import linalg
from scipy.special import chdtrc, fdtrc, ndtri

Block = tuple[int, np.ndarray]  # where one penalty sits: its first coefficient, and S_k on its own coefficients


@dataclass(frozen=True)
class Test:
    """A test of "this term is zero": the statistic, its reference degrees of freedom, and the p-value."""

    __test__ = False  # not for pytest

    statistic: float
    df: float
    p: float


# --- the tail of a weighted sum of chi-squares --------------------------------------------------------------------


_TOGETHER, _MOST = 16, 128  # points of the contour taken at once, and in all, before steps are halved
_ZERO = -1e3  # log of the integrand's peak: e⁻⁷⁴⁵ is zero in double precision
_HELD = 10_000_000  # points times weights: levels' weights are thousands, and what rounding leaves does not get smaller
_DEAR = 512  # points with log_ratio, each of which costs n r² where r columns are shared
_ROUNDING = 1e-4  # of the tail: with thousands of weights log_ratio has so many digits
LogRatio = Callable[[np.ndarray], np.ndarray]


def _saddle(slope: Callable[[float], float]) -> float:
    """Where an increasing slope changes its sign in (0, ½)."""
    low, c, high = 0.0, 0.25, 0.5
    for _ in range(200):
        c = 0.5 * (low + high)
        low, high = (c, high) if slope(c) < 0.0 else (low, c)
        if high - low < 1e-6 * min(c, 0.5 - c):
            break
    return c


def mixture_tail(
    q: float, weights: np.ndarray, df: np.ndarray | None = None, log_ratio: LogRatio | None = None, most: float = 1.0
) -> float:
    """P(Σ_j λ_j χ²_{h_j} > q), to about ten digits even where it is tiny.

        P = (1/2πi) ∫_C exp{K(t) − tq} dt/t,   K(t) = −½ Σ h_j log(1 − 2 λ_j t),

    on a contour C that crosses the real axis at the saddle point of the integrand, in (0, 1/(2 max λ)), and for q > 0
    bends to the right around the branch cut, where the integrand falls like e^{−tq}. The trapezoid rule converges
    geometrically there. Davies (1980), which mgcv uses, inverts on the imaginary axis: an absolute error of 2e-5.

    `log_ratio`: where the weights are not the λ_j but near them, log Π(1 − 2tμ_i)/Π(1 − 2tλ_i) along a path of t; no μ
    may be above the larger of `most` and max λ then.
    """
    lam = np.asarray(weights, dtype=np.float64)
    h = np.ones_like(lam) if df is None else np.asarray(df, dtype=np.float64)
    lam, h = lam[lam != 0.0], h[lam != 0.0]
    if lam.size == 0 or lam.max() <= 0.0:
        return float(q < 0.0)
    if lam.min() > 0.0:
        if q <= 0.0:
            return 1.0
        if np.ptp(lam) <= 1e-12 * lam[0] and log_ratio is None:
            return float(chdtrc(h.sum(), max(q / lam[0], 0.0)))
    top = lam.max() if log_ratio is None else max(float(lam.max()), most)
    lam, q = lam / top, q / top  # now the nearest branch point is at t = ½

    def log_integrand(t: np.ndarray | complex | float) -> np.ndarray:
        return -0.5 * (h * np.log1p(-2.0 * np.multiply.outer(np.asarray(t), lam))).sum(axis=-1) - t * q - np.log(t)

    def slope(t: float) -> float:  # the integrand is log-convex on (0, ½): one stationary point
        return float(np.sum(h * lam / (1.0 - 2.0 * lam * t)) - q - 1.0 / t)

    c = _saddle(slope)  # any crossing point would do; the saddle keeps the integrand free of cancellation
    curvature = float(np.sum(2.0 * h * lam**2 / (1.0 - 2.0 * lam * c) ** 2) + 1.0 / c**2)
    width = 1.0 / np.sqrt(curvature)  # of the peak across the contour
    bend = 0.5 * q / (1.0 + q * width) if q > 0.0 else 0.0
    peak = float(np.real(log_integrand(c)))
    if log_ratio is not None:
        peak -= 0.5 * float(np.real(log_ratio(np.array([c / top], complex))[0]))

    def along(u: np.ndarray) -> np.ndarray:
        # y = w sinh(u) resolves the peak and reaches the algebraic tail in few points; the contour leaves like a
        # parabola, then like a ray, and is analytic and even in u, or halving would not square the error
        sinh, cosh = np.sinh(u), np.cosh(u)
        with np.errstate(over="ignore", invalid="ignore"):
            t = c + bend * width**2 * sinh**2 / cosh + 1j * width * sinh
            log_value = log_integrand(t) - peak
            if log_ratio is not None:
                log_value -= 0.5 * log_ratio(t / top)
            value = np.exp(log_value) * (bend * width**2 * sinh * (2.0 - (sinh / cosh) ** 2) + 1j * width * cosh)
        return np.imag(np.where(np.isfinite(value), value, 0.0))  # symmetric: ∫_C = 2i ∫_{upper half} Im

    step, last = 0.2, np.inf
    first = along(step * np.arange(_TOGETHER))
    total, end = 0.5 * first[0] + first[1:].sum(), _TOGETHER
    while end < _MOST and np.abs(first).max() > 1e-25:  # with many χ² all of it is near the peak
        first = along(step * np.arange(end, end + _TOGETHER))
        total, end = total + first.sum(), end + _TOGETHER
    points, total, change = end, float(step * total) / np.pi, np.inf
    if peak < _ZERO:
        return 0.0
    few = max(min(_HELD // lam.size, _DEAR if log_ratio is not None else _HELD), 4 * end)
    while abs(total - last) > 1e-9 * abs(total) and step > 1e-4 and points < few:  # 1e-9 is 1e-18 next
        between = float(along(step * (0.5 + np.arange(points))).sum())
        last, total, before = total, 0.5 * (total + step * between / np.pi), change
        step, points, change = step / 2.0, 2 * points, abs(total - last)
        if log_ratio is not None and 0.5 * before < change < _ROUNDING * abs(total):  # halving no longer helps
            break
    return float(min(1.0, max(0.0, total * np.exp(peak))))


# --- tests of whole terms -----------------------------------------------------------------------------------------


def smooth_test(beta: np.ndarray, A: np.ndarray, V: np.ndarray, edf1: float, residual_df: float | None) -> Test:
    """Is a smooth term zero? Wood (2013, Biometrika 100: 221–228), as in mgcv's `summary.gam`.

        T = f̂ᵀ V_f^{r−} f̂,   f̂ = Rβ̂,  V_f = R V_β Rᵀ,  RᵀR = A = X_jᵀWX_j,   r = edf₁,

    with V_f^{r−} a pseudo-inverse of fractional rank r. Under the null T is Σ λ_i χ²₁ with ⌊r⌋ − 1 unit weights and two
    that share 1 + (r − ⌊r⌋); `residual_df` is given where the scale was estimated, and T is then set against its
    ratio to χ²_df / df. The fractional pseudo-inverse depends on an arbitrary sign: both are used and p averaged.
    """
    w, U = np.linalg.eigh(A)
    R = np.asarray(np.linalg.qr(np.sqrt(np.maximum(w, 0.0))[:, None] * U.T, mode="r"))
    value, vector = np.linalg.eigh(R @ V @ R.T)
    value, vector = value[::-1], vector[:, ::-1]
    sign = np.where(vector[0] < 0.0, -1.0, 1.0)
    d = (vector * sign).T @ (R @ beta)

    rank = min(edf1, beta.size)
    positive = int(np.sum(value > value[0] * np.finfo(float).eps ** 0.9))
    k, nu = int(np.floor(rank)), float(rank - np.floor(rank))
    if positive < k + (nu > 0.0):
        k, nu, rank = positive, 0.0, float(positive)
    if nu > 0.0 and k > 0:
        whole = float(np.sum(d[: k - 1] ** 2 / value[: k - 1]))
        b = np.sqrt(max(0.0, 0.5 * nu * (1.0 - nu)))
        scale = value[k - 1 : k + 1] ** -0.5
        B = scale[:, None] * np.array([[1.0, b], [b, nu]]) * scale
        pair = d[k - 1 : k + 1]
        mirrored = pair * np.array([-1.0, 1.0])
        T, T_mirrored = whole + float(pair @ B @ pair), whole + float(mirrored @ B @ mirrored)
        rho = 1.0 + nu
        first = 0.5 * (rho + np.sqrt(rho * (2.0 - rho)))
        weights = np.concatenate([np.ones(k - 1), [first, rho - first]])
    else:
        k = max(k, 1)  # an edf below one is tested on the leading direction
        T = T_mirrored = float(np.sum(d[:k] ** 2 / value[:k]))
        weights = np.ones(k)
        rank = rank if nu > 0.0 else float(k)
    p = 0.5 * (tail(T, weights, residual_df) + tail(T_mirrored, weights, residual_df))
    return Test(float(T), float(rank), min(1.0, p))


@final
@dataclass(frozen=True)
class Curvature:
    """What tests of penalised coefficients read: A = XᵀWX, the penalty S, H⁻¹ = (A + S)⁻¹ and the scale φ.

    `V_e` is the covariance of β̂ over repetitions divided by φ: H⁻¹AH⁻¹ unless given.
    """

    A: np.ndarray
    S: np.ndarray
    H_inv: np.ndarray
    phi: float = 1.0
    V_e: np.ndarray | None = None


def random_test(
    index: np.ndarray, beta: np.ndarray, curvature: Curvature, others: np.ndarray, residual_df: float | None
) -> Test:
    """Is a term without an unpenalised part (random effect, cyclic) zero? Wood (2013, Biometrika 100: 1005–1010).

    `index` are the term's coefficients; `others` those of the other random effects, which are integrated out rather
    than held at their estimates. With C = A + A_{·2} S_2⁻ A_{2·} and 1 = everything but 2,

        T = β̂ᵀ M β̂ / φ,   M = [(C_11 + S_11)⁻¹]_index⁻¹,   V_e = φ H⁻¹ C H⁻¹,

    and T is Σ λ_i χ²₁ with λ the eigenvalues of M V_e / φ on the term's block.
    """
    A, S, H_inv, phi = curvature.A, curvature.S, curvature.H_inv, curvature.phi
    here = np.ix_(index, index)
    V_e = H_inv[index] @ A @ H_inv[:, index] if curvature.V_e is None else curvature.V_e[here]
    if others.size == 0:
        block = H_inv[here]
    else:
        value, vector = np.linalg.eigh(S[np.ix_(others, others)])
        keep = value > value[-1] * np.finfo(float).eps ** 0.8
        Z = A[:, others] @ (vector[:, keep] / np.sqrt(value[keep]))  # C = A + ZZᵀ
        first = np.setdiff1d(np.arange(beta.size), others)
        own = np.searchsorted(first, index)
        block = np.linalg.inv((A + S + Z @ Z.T)[np.ix_(first, first)])[np.ix_(own, own)]
        V_e = V_e + (H_inv[index] @ Z) @ (H_inv[index] @ Z).T
    return block_test(beta[index], block, V_e, phi, residual_df)


def block_test(beta: np.ndarray, block: np.ndarray, V_e: np.ndarray, phi: float, residual_df: float | None) -> Test:
    """`random_test` from the term's own M⁻¹ = block and V_e (divided by φ)."""
    root = _whitening(block)  # M = rootᵀ root
    T = float(np.sum((root @ beta) ** 2)) / phi
    weights = np.maximum(np.linalg.eigvalsh(root @ V_e @ root.T), 0.0)
    rank = int(np.sum(weights > weights.max() * 1e-12))
    return Test(T, float(rank), tail(T, weights, residual_df))


def _whitening(block: np.ndarray) -> np.ndarray:
    """R with R block Rᵀ = I, on the directions that vary but for rounding: where λ is infinite in effect, the estimate
    and its share of the weights are as good as zero too."""
    try:
        return linalg.solve_triangular(linalg.cholesky(block, lower=True), np.eye(len(block)), lower=True)
    except linalg.LinAlgError:
        unit = 1.0 / np.sqrt(np.maximum(np.diag(block), 1e-300))
        value, vector = np.linalg.eigh(block * np.outer(unit, unit))
        keep = value > value[-1] * np.finfo(float).eps ** 0.8
        return (vector[:, keep] / np.sqrt(value[keep])).T * unit


def wald_test(beta: np.ndarray, V: np.ndarray, residual_df: float | None) -> Test:
    """Are these (parametric) coefficients all zero? βᵀ V⁻ β against χ²_r, or over r against F_{r, df}. Each in units of
    its own standard error: a well-known one beside another that is hardly known is no direction without variance."""
    unit = 1.0 / np.sqrt(np.maximum(np.diag(V), 1e-300))
    value, vector = np.linalg.eigh(V * np.outer(unit, unit))
    keep = value > value[-1] * np.finfo(float).eps ** 0.5
    T = float(np.sum((vector.T @ (unit * beta))[keep] ** 2 / value[keep]))
    rank = int(keep.sum())
    return Test(T, float(rank), tail(T, np.ones(rank), residual_df))


def tail(
    T: float, weights: np.ndarray, residual_df: float | None, log_ratio: LogRatio | None = None, most: float = 1.0
) -> float:
    """P(Σ λ_i χ²₁ > T), or P(Σ λ_i χ²₁ > T χ²_df / df) where the scale has df residual degrees of freedom; `log_ratio`
    and `most` as in `mixture_tail`."""
    if residual_df is None:
        return mixture_tail(T, weights, None, log_ratio, most)
    df = max(residual_df, 1.0)
    if np.all(weights == 1.0) and log_ratio is None:
        return float(fdtrc(weights.size, df, max(T / weights.size, 0.0)))
    return mixture_tail(0.0, np.append(weights, -T / df), np.append(np.ones_like(weights), df), log_ratio, most)


# --- what not knowing the smoothing parameters adds ---------------------------------------------------------------


def joint_hessian(hessian: np.ndarray, energy: np.ndarray, penalised_deviance: float, df: float) -> np.ndarray:
    """The criterion's Hessian in (ρ, log φ) from that in ρ with φ profiled out, φ = D_p / df.

    D_p = D + Σ_k λ_k βᵀS_kβ, `energy` are the terms of the sum for the ρ at hand, df is n − M (REML, M the dimension of
    the unpenalised space) or n (ML). The corner is df/2, the border −energy/(2φ), and `hessian` their Schur complement.
    """
    border, corner = -0.5 * energy * df / penalised_deviance, 0.5 * df
    return np.block(
        [[hessian + np.outer(border, border) / corner, border[:, None]], [border[None, :], np.array([[corner]])]]
    )


@dataclass(frozen=True)
class Unconditional:
    """V_c, which includes the uncertainty of ρ = log λ; edf₂ = diag(V_c A)/φ; and V_ρ itself."""

    covariance: np.ndarray
    edf2: np.ndarray
    rho_covariance: np.ndarray


def unconditional(
    H: np.ndarray, A: np.ndarray, blocks: Sequence[Block], lam: np.ndarray, beta: np.ndarray, phi: float,
    hessian: np.ndarray, edf1: np.ndarray,
) -> Unconditional:  # fmt: skip
    """V_c = V_β + J V_ρ Jᵀ + V″ (Wood, Pya & Säfken 2016, JASA 111: 1548–1563), mgcv's `vcov(unconditional=TRUE)`.

    J = ∂β̂/∂ρ with columns −H⁻¹ λ_k S_k β̂, and V″ = φ Σ_kl V_ρ,kl ∂_k P ∂_l Pᵀ with PPᵀ = H⁻¹, P the inverse of H's
    Cholesky factor and W held fixed. V_ρ is the inverse of `hessian`, that of the criterion in ρ (and in log φ, last,
    where that is a parameter of it): for J its positive part, for V″ with 1/10 added to its eigenvalues, which is a
    vague prior that keeps directions with a flat criterion (λ → ∞) finite. edf₂ is not let above edf₁.
    """
    m, p = len(blocks), beta.size
    R = linalg.cholesky(H)
    P = linalg.solve_triangular(R, np.eye(p))  # H⁻¹ = PPᵀ
    J = np.empty((p, m))
    for k, (start, S) in enumerate(blocks):
        here = slice(start, start + S.shape[0])
        J[:, k] = -lam[k] * (P @ (P[here].T @ (S @ beta[here])))
    value, vector = np.linalg.eigh(hessian)
    root = vector * np.where(value > 0.0, 1.0 / np.sqrt(np.where(value > 0.0, value, 1.0)), 0.0)
    J_root = J @ root[:m]
    V_rho = ((vector / (np.maximum(value, 0.0) + 0.1)) @ vector.T)[:m, :m]

    # With V_ρ = Σ_e v_e v_eᵀ, V″ = φ Σ_e D_e D_eᵀ where D_e = Σ_k v_ek ∂_k P = −P Φ(Pᵀ dH_e P): Φ keeps the upper
    # triangle and halves the diagonal (the derivative of a Cholesky factor), dH_e = Σ_k v_ek λ_k S_k.
    second = np.zeros((p, p))
    size, direction = np.linalg.eigh(V_rho)
    for v in (direction * np.sqrt(np.maximum(size, 0.0))).T:
        inner = np.zeros((p, p))
        for k, (start, S) in enumerate(blocks):
            rows = P[start : start + S.shape[0], start:]  # P is upper triangular
            inner[start:, start:] += rows.T @ (v[k] * lam[k] * S) @ rows
        inner = np.triu(inner)
        inner[np.diag_indices(p)] *= 0.5
        D = P @ inner
        second += D @ D.T
    V_c = phi * (P @ P.T) + J_root @ J_root.T + phi * second
    edf2 = np.sum(V_c * A, axis=1) / phi
    return Unconditional(V_c, edf1 if edf2.sum() > edf1.sum() else edf2, V_rho)


# --- bands --------------------------------------------------------------------------------------------------------


def standard_errors(C: np.ndarray, V: np.ndarray) -> np.ndarray:
    """√diag(C V Cᵀ) without forming it."""
    return np.sqrt(np.maximum(np.einsum("ij,ij->i", C @ V, C), 0.0))


def covariance_root(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R (p, r) with RRᵀ = V and L (r, p) with LR = I, on the directions that vary. In units of the standard errors: a
    slope per second may be 10⁻⁹ beside an intercept of 10⁰, and its square what rounding leaves of that."""
    unit = np.sqrt(np.maximum(np.diag(V), 0.0))
    per = np.where(unit > 0.0, 1.0 / np.where(unit > 0.0, unit, 1.0), 0.0)
    value, vector = np.linalg.eigh(V * np.outer(per, per))
    live = value > 1e-14 * value[-1]
    vector, scale = vector[:, live], np.sqrt(value[live])
    return unit[:, None] * vector * scale, (vector / scale).T * per


def simultaneous_multiplier(
    C: np.ndarray, V: np.ndarray, level: float, rng: np.random.Generator, draws: int = 10_000
) -> float:
    """The `level` quantile of max_i |C_i(β − β̂)| / se_i under the posterior (Ruppert, Wand & Carroll 2003, §6.5), over
    the rows that are numbers: others lie outside a boundary."""
    C = C[~np.isnan(C).any(axis=1)]
    if not len(C):  # a band of no points holds none
        return float(ndtri(0.5 * (1.0 + level)))
    se = standard_errors(C, V)
    scaled = (C / np.where(se > 0.0, se, np.inf)[:, None]) @ covariance_root(V)[0]
    largest = np.empty(draws)
    chunk = max(1, 4_000_000 // max(1, C.shape[0]))
    for first in range(0, draws, chunk):
        last = min(draws, first + chunk)
        largest[first:last] = np.abs(scaled @ rng.standard_normal((scaled.shape[1], last - first))).max(axis=0)
    return float(np.quantile(largest, level))
