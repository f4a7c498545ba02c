"""Maximum likelihood of two dependent angles in their own parameters, with SciPy and the product trapezoid rule."""

from __future__ import annotations

import numpy as np
from scipy import optimize

NAMES = ("kappa1", "kappa2", "lambda", "mean1", "mean2")
_G = (np.arange(48) + 0.5) * (2 * np.pi / 48)
GRID = np.stack(np.meshgrid(_G, _G, indexing="ij"), axis=-1).reshape(-1, 2)


def log_f(theta: np.ndarray, y: np.ndarray, model: str) -> np.ndarray:
    k1, k2, lam, m1, m2 = theta
    d1, d2 = y[:, 0] - m1, y[:, 1] - m2
    return k1 * np.cos(d1) + k2 * np.cos(d2) + lam * (np.sin(d1) * np.sin(d2) if model == "sine" else np.cos(d1 - d2))


def log_likelihood(theta: np.ndarray, y: np.ndarray, model: str) -> float:
    f = log_f(theta, GRID, model)
    log_z = f.max() + np.log(np.exp(f - f.max()).mean() * (2 * np.pi) ** 2)
    return float(log_f(theta, y, model).sum() - len(y) * log_z)


def climbed(
    start: np.ndarray, y: np.ndarray, model: str, fixed: dict[int, float] | None = None
) -> tuple[np.ndarray, float]:
    """The peak above a start, with some parameters held."""
    held = fixed or {}
    free = [j for j in range(5) if j not in held]

    def whole(x: np.ndarray) -> np.ndarray:
        theta = np.zeros(5)
        theta[free] = x
        for j, value in held.items():
            theta[j] = value
        return theta

    found = optimize.minimize(lambda x: -log_likelihood(whole(x), y, model), np.asarray(start)[free], tol=1e-9)
    return whole(found.x), -float(found.fun)


def highest(y: np.ndarray, model: str, tries: int = 8) -> tuple[np.ndarray, float]:
    """The highest of the peaks above random starts."""
    rng = np.random.default_rng(0)
    starts = [np.r_[1.5 * rng.normal(size=3), rng.uniform(-np.pi, np.pi, 2)] for _ in range(tries)]
    return max((climbed(start, y, model) for start in starts), key=lambda one: one[1])


def standard_errors(theta: np.ndarray, y: np.ndarray, model: str) -> np.ndarray:
    """From second differences."""
    step = 1e-3 * np.eye(5)
    H = np.empty((5, 5))
    for i in range(5):
        for j in range(5):
            corners = [
                sign * log_likelihood(theta + a * step[i] + b * step[j], y, model)
                for a, b, sign in ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
            ]
            H[i, j] = sum(corners) / 4e-6
    return np.sqrt(np.diag(np.linalg.inv(-H)))


def alike(theta: np.ndarray) -> list[np.ndarray]:
    """The four θ of one law."""
    k1, k2, lam, m1, m2 = theta
    signs = [(a, b) for a in (1, -1) for b in (1, -1)]
    return [
        np.array([a * k1, b * k2, a * b * lam, m1 + (a < 0) * np.pi, m2 + (b < 0) * np.pi], dtype=float)
        for a, b in signs
    ]
