"""Where the iterations for two dependent angles begin: the likelihood of their five parameters may have several peaks.

f is η(θ)·s with s = (u₁, u₂, u₁ ⊗ u₂), u = (cos y, sin y), and η a curved function of θ = (κ₁, κ₂, λ, μ₁, μ₂).
Candidates are laws in which some of κ₁, κ₂ and λ are 0, from resultants of y₁, y₂ and y₁ − y₂, and the normal law of
deviations from the means. All climb together by Fisher's scoring on one coarse rule, with the data's means of s; the
highest begins, and another peak that is nearly as high.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..domains import Quadrature
from ..references.directional import concentration_circle
from .torus_reading import NAMES

ORDER = 32  # of the coarse rule
_SHARES = (0.0, 0.5, -0.5)  # of the third number's own size
_STEPS = 12
_NEAR, _APART = 1.0, 0.05  # nats below the highest peak at which another is tried too; nats between different peaks
_LEAST = 1e-2
_SEEN = 0.5  # probability of one node beyond which a rule does not see a law


def statistics(y: np.ndarray) -> np.ndarray:
    """(n, 8) s = (u₁, u₂, u₁ ⊗ u₂)."""
    u1, u2 = (np.column_stack([np.cos(one), np.sin(one)]) for one in y.T)
    return np.column_stack([u1, u2, (u1[:, :, None] * u2[:, None, :]).reshape(-1, 4)])


def natural(theta: np.ndarray, *, sine: bool) -> tuple[np.ndarray, np.ndarray]:
    """η (m, 8) of the rows of θ, and its derivatives (m, 8, 5)."""
    k1, k2, lam, m1, m2 = (column[:, None] for column in theta.T)
    e1, e2 = (np.column_stack([np.cos(m), np.sin(m)]) for m in (m1, m2))
    n1, n2 = (np.column_stack([-np.sin(m), np.cos(m)]) for m in (m1, m2))  # de/dμ; dn/dμ = −e

    def times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (a[:, :, None] * b[:, None, :]).reshape(-1, 4)

    if sine:  # (n₁·u₁)(n₂·u₂)
        together, turn1, turn2 = times(n1, n2), -times(e1, n2), -times(n1, e2)
    else:  # (e₁·u₁)(e₂·u₂) + (n₁·u₁)(n₂·u₂)
        together = times(e1, e2) + times(n1, n2)
        turn1 = times(n1, e2) - times(e1, n2)
        turn2 = -turn1
    none2, none4 = np.zeros_like(e1), np.zeros_like(together)
    eta = np.column_stack([k1 * e1, k2 * e2, lam * together])
    columns = (
        (e1, none2, none4), (none2, e2, none4), (none2, none2, together),
        (k1 * n1, none2, lam * turn1), (none2, k2 * n2, lam * turn2),
    )  # fmt: skip
    return eta, np.stack([np.column_stack(parts) for parts in columns], axis=2)


def started(y: np.ndarray, weights: np.ndarray, rule: Quadrature, *, sine: bool) -> tuple[dict[str, float], ...]:
    """θ to begin at: one, or two where another peak is nearly as high."""
    n, mean = float(weights.sum()), (weights / weights.sum()) @ statistics(y)
    first = np.array(list(_candidates(y, weights / weights.sum(), sine)))
    with np.errstate(over="ignore", invalid="ignore"):  # steps that go too far are not taken
        theta, height = climbed(first, mean, n, rule, sine=sine)
    order = np.argsort(-height, kind="stable")
    best = order[0]
    others = [k for k in order if height[best] - _NEAR < height[k] < height[best] - _APART]
    return tuple({name: float(x) for name, x in zip(NAMES, theta[k])} for k in (best, *others[:1]))


def climbed(
    theta: np.ndarray, mean: np.ndarray, n: float, rule: Quadrature, *, sine: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Each row of θ after some steps of Fisher's scoring, damped where they do not rise, and its log-likelihood."""
    s, log_w = statistics(rule.points), np.log(rule.weights)

    def at(theta: np.ndarray) -> tuple[np.ndarray, ...]:
        eta, slope = natural(theta, sine=sine)
        f = eta @ s.T + log_w
        top = f.max(axis=1, keepdims=True)
        p = np.exp(f - top)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        seen = p.max(axis=1) < _SEEN
        moments = p @ s
        height = np.where(seen, n * (eta @ mean - top[:, 0] - np.log(total[:, 0])), -np.inf)
        spread = np.einsum("mi,ij,ik->mjk", p, s, s, optimize=True) - moments[:, :, None] * moments[:, None, :]
        score = n * np.einsum("mjk,mj->mk", slope, mean - moments)
        return height, score, n * np.einsum("mja,mjk,mkb->mab", slope, spread, slope, optimize=True)

    height, score, information = at(theta)
    damping = np.full(len(theta), 1e-3)
    for _ in range(_STEPS):
        size = np.maximum(np.einsum("maa->ma", information), 1e-8 * n)
        damped = information + (damping[:, None] * size)[:, :, None] * np.eye(5)
        trial = theta + np.linalg.solve(damped, score[:, :, None])[:, :, 0]
        found = at(trial)
        up = found[0] > height
        theta = np.where(up[:, None], trial, theta)
        height = np.where(up, found[0], height)
        score = np.where(up[:, None], found[1], score)
        information = np.where(up[:, None, None], found[2], information)
        damping = np.where(up, damping / 5.0, damping * 10.0)
    return theta, height


def _candidates(y: np.ndarray, w: np.ndarray, sine: bool) -> Iterator[list[float]]:
    u = np.exp(1j * y)
    z = w @ u
    (k1, k2), (m1, m2) = (_kappa(one) for one in z), np.angle(z)
    for share in _SHARES:
        yield [k1, k2, share * np.sqrt(k1 * k2), m1, m2]
    yield from _normal(np.angle(u * np.exp(-1j * np.angle(z))), w, m1, m2, sine)
    if not sine:
        between = w @ (u[:, 0] * u[:, 1].conj())
        k3, m3 = _kappa(between), np.angle(between)
        for share in _SHARES:
            yield [k1, share * k2, k3, m1, m1 - m3]
            yield [share * k1, k2, k3, m2 + m3, m2]
        return
    # the covariance of sin(y₁ − μ₁) and sin(y₂ − μ₂) is nᵀ₁ M n₂
    first, second = (np.stack([one.real, one.imag]) for one in u.T - z[:, None])
    M = (w * first) @ second.T
    left, _, right = np.linalg.svd(M)
    n1, n2 = (np.array([-np.sin(m), np.cos(m)]) for m in (m1, m2))
    for a, b in ((left[:, 0], right[0]), (left[:, 1], right[1]), (n1, n1 @ M), (M @ n2, n2)):
        mu1, mu2 = np.arctan2(-a[0], a[1]), np.arctan2(-b[0], b[1])
        product = float((np.sin(y[:, 0] - mu1) * np.sin(y[:, 1] - mu2)) @ w)
        lam = 2.0 * _kappa(min(2.0 * abs(product), 0.9)) * np.sign(product)
        for share in (0.1, 0.8):
            yield [k1 * np.cos(m1 - mu1) * share, k2 * np.cos(m2 - mu2) * share, lam, mu1, mu2]


def _normal(x: np.ndarray, w: np.ndarray, m1: float, m2: float, sine: bool) -> Iterator[list[float]]:
    """κ and λ from the precision matrix of deviations x, as where they are small."""
    S = (w[:, None] * x).T @ x
    if np.linalg.det(S) <= 1e-12 * S[0, 0] * S[1, 1]:
        return
    P = np.linalg.inv(S)
    rest = 0.0 if sine else P[0, 1]
    yield [P[0, 0] + rest, P[1, 1] + rest, -P[0, 1], m1, m2]


def _kappa(resultant: Any) -> float:
    return max(concentration_circle(float(abs(resultant))), _LEAST)
