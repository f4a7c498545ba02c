"""Appendices A and B: derivatives, confidence intervals, log-concavity."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from claims import Verdict, claim, verdict
from section_2 import TOY, chain
from section_3 import M, data

import unnorm as un

NODE, W = np.polynomial.legendre.leggauss(100)
S = np.stack([NODE, NODE**2], axis=1)


def moments(theta: np.ndarray, nu: float) -> tuple[float, np.ndarray, np.ndarray]:
    """∫ e^{f+ν}, ∫ s e^{f+ν}, ∫ s sᵀ e^{f+ν}."""
    mass = np.exp(S @ theta + nu) * W
    return float(mass.sum()), mass @ S, (S.T * mass) @ S


def hessian(theta: np.ndarray, nu: float, n: int) -> np.ndarray:
    """Of 𝓜, Appendix A."""
    m0, m1, m2 = moments(theta, nu)
    return -n * np.block([[m2, m1[:, None]], [m1[None, :], np.array([[m0]])]])


@claim("Appendix A", "Derivatives of 𝓜 in closed form")
def derivatives(quick: bool, out: Path) -> Verdict:
    y, x, h = data(), np.array([0.7, -0.5, -0.3]), 1e-4
    at = lambda v: M(v[:2], float(v[2]), y)  # noqa: E731
    E = np.eye(3) * h
    second = [[(at(x + a + b) - at(x + a - b) - at(x - a + b) + at(x - a - b)) / (4 * h * h) for b in E] for a in E]
    H = hessian(x[:2], float(x[2]), len(y))
    gap = float(np.max(np.abs(np.array(second) - H)) / np.abs(H).max())
    return verdict(f"Hessian against differences: {gap:.0e} of its largest entry", gap < 1e-5)


@claim("Appendix B.1", "The Hessian of 𝓜 gives the confidence intervals of 𝓛: C_𝓜 = C_𝓛")
def intervals(quick: bool, out: Path) -> Verdict:
    obs = un.transitions(chain(300))
    ml, poisson = un.fit(TOY, obs), un.fit(TOY, obs, un.Poisson(), un.PerContext())
    gap = float(np.max(np.abs(poisson.covariance - ml.covariance)) / np.max(np.abs(ml.covariance)))
    return verdict(f"covariances differ by {gap:.0e}, relatively", gap < 1e-6)


@claim(
    "Appendix B.2", "In exponential families 𝓜 is jointly concave; −(1/n) 𝓛'' = E_θ(s sᵀ)", "holds, with a condition"
)
def concavity(quick: bool, out: Path) -> Verdict:
    rng, worst, excess = np.random.default_rng(8), -np.inf, 0.0
    for _ in range(500):
        theta, nu = rng.normal(0, 3, 2), float(rng.normal(0, 2))
        H = hessian(theta, nu, 1)
        worst = max(worst, float(np.linalg.eigvalsh(H)[-1] / np.abs(H).max()))
        m0, m1, _ = moments(theta, 0.0)
        excess = max(excess, float(np.max(np.abs(np.outer(m1, m1))) / m0**2))
    return Verdict(
        f"largest eigenvalue over 500 (θ, ν): {worst:.1e} of the largest entry; "
        f"the printed 𝓛'' is off by up to {excess:.2f}",
        "holds, with a condition" if worst < 1e-9 else "does not hold",
        note="𝓜 is concave. −(1/n) 𝓛'' is the covariance of s, E_θ(s sᵀ) − E_θ(s) E_θ(s)ᵀ; the second part is missing.",
    )
