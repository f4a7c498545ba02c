"""Sections 1 and 5: relatives of the Poisson transform, generality, and contexts in high dimension."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from claims import Verdict, claim, verdict
from section_2 import log_z
from section_3 import M, data, f

import unnorm as un


@claim("Section 1, Baker", "The multinomial–Poisson transform is the special case of a finite Ω")
def baker(quick: bool, out: Path) -> Verdict:
    counts = np.array([13, 25, 9, 3])
    score = np.array([0.0, 1.0, 2.0, 3.0])
    y = np.repeat(np.arange(4), counts)
    model = un.ExponentialFamily(lambda y: (y, y**2), ("a", "b"), un.FiniteSet(range(4)))
    ours = un.fit(model, un.iid(y), un.Poisson()).estimate
    X = np.stack([np.ones(4), score, score**2], axis=1)  # Poisson regression of the counts, by Newton's method
    b = np.array([np.log(counts.mean()), 0.0, 0.0])
    for _ in range(50):
        mu = np.exp(X @ b)
        b = b + np.linalg.solve((X.T * mu) @ X, X.T @ (counts - mu))
    gap = float(np.max(np.abs(ours - b[1:])))
    return verdict(f"log-linear Poisson regression of the counts gives the same θ̂ to {gap:.0e}", gap < 1e-7)


@claim("Section 1, generalised KL", "𝓜 is an empirical generalised Kullback–Leibler divergence, up to constants")
def divergence(quick: bool, out: Path) -> Verdict:
    y, rng, found = data(), np.random.default_rng(9), []
    for _ in range(2):
        theta, nu = rng.normal(0, 1, 2), float(rng.normal())
        # KL(p̂ ‖ g) = E_p̂ log(p̂/g) − ∫ p̂ + ∫ g, g = exp(f + ν); its part that depends on (θ, ν)
        part = -np.mean(f(theta, y) + nu) + np.exp(log_z(lambda v, t=theta: f(t, v)) + nu)
        found.append(float(M(theta, nu, y) + len(y) * part))
    return verdict(f"𝓜 + n KL is constant: {abs(found[0] - found[1]):.0e}", abs(found[0] - found[1]) < 1e-8)


@claim("Abstract", "Sequences of graphs and of binary vectors are covered")
def sequences(quick: bool, out: Path) -> Verdict:
    rng, model = np.random.default_rng(5), un.Ising(6, lag=1)
    truth = rng.normal(0, 0.4, len(model.names))
    y = [rng.integers(0, 2, 6)]
    for _ in range(2000):
        y.append(model.sampler(truth, (y[-1][None].astype(float),)).sweep(y[-1][None].astype(float), 20, rng)[0])
    fit = un.fit(model, un.transitions(np.array(y)), un.PseudoLikelihood(), rng=1)
    z = (fit.estimate - truth) / fit.se
    return verdict(
        f"binary vectors: {len(z)} parameters, z has mean {z.mean():.2f}, sd {z.std():.2f}", 0.6 < z.std() < 1.5
    )


@claim("Section 5", "Contexts in high dimension: leverage hashing for the constants", "holds, with a condition")
def hashing(quick: bool, out: Path) -> Verdict:
    rng, n, words = np.random.default_rng(6), 400 if quick else 1500, 200
    sets = [frozenset(rng.choice(words, 8, replace=False).tolist()) for _ in range(n)]
    strong = np.array([len(s & set(range(40))) for s in sets], dtype=float)
    t = 0.5 * (strong - strong.mean())
    u = rng.random(n)
    y = np.where(np.abs(t) < 1e-9, u, np.log1p(u * np.expm1(t)) / np.where(np.abs(t) < 1e-9, 1, t))
    obs = un.conditional(y, x={"t": t})
    model = un.ExponentialFamily(lambda y, x: (x["t"] * y,), ("slope",), un.Interval(0, 1))
    ml, found = un.fit(model, obs), []
    for hashes, bits in ((64, 2), (512, 4)):
        chi = un.Linear(un.minwise(sets, hashes=hashes, bits=bits, seed=1))
        fit = un.fit(model, obs, un.Logistic(un.Uniform(), per_point=10), chi, rng=2)
        found.append((float(abs(fit.estimate[0] - ml.estimate[0]) / ml.se[0]), fit.constants_failed))
    (few, told), (many, quiet) = found
    return Verdict(
        f"χ of b-bit minwise hashes of sets of words: 64 × 2 bits {few:.1f} standard errors from ML, "
        f"512 × 4 bits {many:.2f}",
        "holds, with a condition" if many < 0.2 and few > many and told and not quiet else "does not hold",
        note="There must be enough of them; a fit with too few says so.",
    )
