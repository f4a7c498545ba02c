"""How much noise the reference points bring: Monte Carlo sd of fitted effects, scheme by scheme, at equal totals.

    python benchmarks/points.py [--redraws 40] [--seed 1] [--planar]

Two experiments, each with the data fixed and the reference points redrawn. The toy chain of Section 4.1 (n = 500, χ by
cubic B-splines), θ1 and θ2; and a planar chain (630 fixations; distance, angle and centrality by splines, χ a tensor
spline in the previous point). Noise-contrastive divergence is fitted by Newton's method on the rows of a `Contrast`,
with small fixed penalties, so that nothing but the points differs between the lines.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import cho_factor, cho_solve

import unnorm as un
from unnorm.contrast import Contrast, contrast
from unnorm.references import IID, Lattice, PointScheme, Sobol, Stratified, Uniform

SCHEMES: tuple[PointScheme, ...] = (IID(), Stratified(), Sobol(), Lattice(), Lattice(2), Lattice(5))


def bspline(x: np.ndarray, low: float, high: float, size: int) -> np.ndarray:
    """Cubic B-splines on equally spaced knots, (n, size)."""
    h = (high - low) / (size - 3)
    knots = low + h * np.arange(-3, size + 1)
    return BSpline.design_matrix(np.clip(x, low, high - 1e-9 * h), knots, 3, extrapolate=True).toarray()[:, :size]


def second_differences(size: int) -> np.ndarray:
    D = np.diff(np.eye(size), 2, axis=0)
    return D.T @ D


def ncd(X: np.ndarray, S: np.ndarray, rows: Contrast) -> tuple[np.ndarray, np.ndarray]:
    """argmax of the penalised logistic likelihood, and its covariance."""
    beta, z = np.zeros(X.shape[1]), rows.z.astype(float)
    known = rows.known
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-(X @ beta + known)))
        factor = cho_factor((X * (p * (1.0 - p))[:, None]).T @ X + S)
        step = cho_solve(factor, X.T @ (z - p) - S @ beta)
        beta = beta + step * min(1.0, 5.0 / np.abs(step).max())
        if np.abs(step).max() < 1e-9:
            return beta, cho_solve(factor, np.eye(len(S)))
    raise RuntimeError("Newton's method did not converge")


def toy_design(rows: Contrast) -> tuple[np.ndarray, np.ndarray]:
    y, x = rows.outcome[:, 0], rows.obs.previous()[rows.at, 0]
    X = np.column_stack([y, -0.5 * (y - x) ** 2, bspline(x, -1.0, 1.0, 9)])
    S = np.zeros((11, 11))
    S[2:, 2:] = 0.1 * second_differences(9) + 1e-6 * np.eye(9)
    return X, S


def toy(redraws: int, rng: np.random.Generator, k: int) -> None:
    """rms over 12 data sets of the sd of θ̂ over redraws."""
    noise = {scheme: [] for scheme in SCHEMES}
    omega = un.Interval(-1, 1)
    for _ in range(12):
        theta = rng.uniform(-1, 1), rng.uniform(0.1, 10)
        y = np.asarray(un.datasets.toy_chain(501, *theta, rng=rng)).reshape(-1, 1)
        obs = un.Observations("transitions", y[1:], ("y",), {"y_prev": y[:-1, 0]}, lags=1)
        q = Uniform().bind(omega, obs)
        for scheme in SCHEMES:
            fits = []
            for _ in range(redraws):
                rows = contrast(obs, q, scheme, per_point=k, rng=rng)
                fits.append(ncd(*toy_design(rows), rows)[0][:2])
            noise[scheme].append(np.var(fits, axis=0))
    report(
        f"toy chain, n = 500, k = {k}", ("theta1", "theta2"), {s: np.sqrt(np.mean(v, axis=0)) for s, v in noise.items()}
    )


def planar_columns(y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    step = y - x
    return np.hypot(*step.T), np.arctan2(step[:, 1], step[:, 0]), np.hypot(y[:, 0] - 400.0, y[:, 1] - 300.0)


def planar_f(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    step, angle, centre = planar_columns(y, x)
    return -step / 120.0 - (centre / 250.0) ** 2 + 0.4 * np.cos(4.0 * angle) + 0.3 * np.cos(2.0 * angle)


def effects(step: np.ndarray, angle: np.ndarray, centre: np.ndarray) -> tuple[np.ndarray, ...]:
    turns = np.arange(1, 7) * angle[:, None]
    return (
        np.column_stack([np.cos(turns), np.sin(turns)]),
        bspline(centre, 0.0, 510.0, 10)[:, 1:],
        bspline(step, 0.0, 1000.0, 12)[:, 1:],
    )


def planar_design(rows: Contrast) -> tuple[np.ndarray, np.ndarray]:
    x = rows.obs.previous()[rows.at]
    parts = effects(*planar_columns(rows.outcome, x))
    a, b = bspline(x[:, 0], 0.0, 800.0, 6), bspline(x[:, 1], 0.0, 600.0, 6)
    X = np.column_stack([*parts, (a[:, :, None] * b[:, None, :]).reshape(len(x), -1)])
    S = 1e-3 * np.eye(X.shape[1])
    at = parts[0].shape[1]
    S[:at, :at] += 0.5 * np.diag(np.tile(np.arange(1.0, 7.0), 2) ** 2)
    for part in parts[1:]:
        size = part.shape[1]
        S[at : at + size, at : at + size] += 2.0 * second_differences(size)
        at += size
    one, penalty = np.eye(6), second_differences(6)
    S[at:, at:] += np.kron(penalty, one) + np.kron(one, penalty)
    return X, S


def planar(redraws: int, rng: np.random.Generator, k: int) -> None:
    """sd over redraws of each centred curve, as a share of its standard error, rms over the observed values."""
    omega = un.Box((0, 800), (0, 600))
    path = [np.array([400.0, 300.0])]
    for _ in range(630):
        candidates = omega.uniform(2000, rng)
        p = np.exp(planar_f(candidates, np.tile(path[-1], (2000, 1))))
        path.append(candidates[rng.choice(2000, p=p / p.sum())])
    y = np.array(path)
    obs = un.Observations("transitions", y[1:], ("x", "y"), {"x_prev": y[:-1, 0], "y_prev": y[:-1, 1]}, lags=1)
    curves = [part - part.mean(axis=0) for part in effects(*planar_columns(obs.outcome, obs.previous()))]
    places = np.cumsum([0, *(curve.shape[1] for curve in curves)])
    table = {}
    lines = [(scheme, "steps") for scheme in SCHEMES] + [(Lattice(), "places"), (Sobol(), "places")]
    for scheme, along in lines:
        q = Uniform(along).bind(omega, obs)
        fits, error = [], None
        for _ in range(redraws):
            rows = contrast(obs, q, scheme, per_point=k, rng=rng)
            beta, cov = ncd(*planar_design(rows), rows)
            fits.append(beta)
            error = cov if error is None else error
        assert error is not None
        spread = np.cov(np.array(fits), rowvar=False)
        shares = []
        for curve, low, high in zip(curves, places[:-1], places[1:]):
            noise = np.einsum("ni,ij,nj->n", curve, spread[low:high, low:high], curve)
            total = np.einsum("ni,ij,nj->n", curve, error[low:high, low:high], curve)
            shares.append(np.sqrt(np.mean(noise / total)))
        table[scheme if along == "steps" else f"{scheme!r} along places"] = np.array(shares)
    report(f"planar chain, n = 630, k = {k}: sd as a share of the se", ("angle", "centrality", "distance"), table)


def report(title: str, names: tuple[str, ...], table: dict[Any, np.ndarray]) -> None:
    print(
        f"\n{title}\n{'scheme':30}" + "".join(f"{name:>12}" for name in names) + f"{'share of IID':>{14 * len(names)}}"
    )
    for scheme, values in table.items():
        label = str(scheme).replace("randomisations=", "")
        share = values / table[IID()]
        cells = "".join(f"{value:12.4f}" for value in values) + "   " + "".join(f"{value:10.3f}" for value in share)
        print(f"{label:30}{cells}   mean {share.mean():.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--redraws", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--planar", action="store_true", help="the planar chain only")
    options = parser.parse_args()
    start = time.perf_counter()
    for k in () if options.planar else (10, 30):
        toy(options.redraws, np.random.default_rng(options.seed), k)
    for k in (5, 20):
        planar(options.redraws, np.random.default_rng(options.seed), k)
    omega = un.Box((0, 800), (0, 600))
    y, x = omega.uniform(100_000, 1), omega.uniform(100_000, 2)
    obs = un.Observations("transitions", y, ("x", "y"), {"x_prev": x[:, 0], "y_prev": x[:, 1]}, lags=1)
    q = Uniform().bind(omega, obs)
    print("\n10^5 contexts × 20 points in the plane, seconds (best of 3)")
    for scheme in SCHEMES:
        times = []
        for _ in range(3):
            began = time.perf_counter()
            contrast(obs, q, scheme, per_point=20, rng=1)
            times.append(time.perf_counter() - began)
        print(f"{scheme!r:30}{min(times):12.2f}")
    print(f"\n{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
