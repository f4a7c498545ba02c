"""Families for the theorems: each a model, simulated observations, and an independent log-likelihood in plain NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from scipy import integrate
from scipy.special import i0e, log_ndtr, logsumexp

import unnorm as un


@dataclass(frozen=True)
class Family:
    model: un.ExponentialFamily
    obs: un.Observations
    energy: un.Energy  # the same f, as a JAX function: autodiff instead of closed forms
    loglik: Callable[[np.ndarray], float]  # 𝓛(θ) by an oracle that shares no code with unnorm
    truth: np.ndarray


def _observations(y: np.ndarray) -> un.Observations:
    return un.iid(np.asarray(y, dtype=float))


def truncated_gaussian() -> Family:
    """exp(a y − ½ b y²) on [−1, 2]; ∫ by log_ndtr."""
    rng = np.random.default_rng(1)
    y = rng.normal(0.4, 0.6, 2000)
    y = y[(y > -1) & (y < 2)][:400]
    domain = un.Interval(-1, 2)

    def loglik(theta: np.ndarray) -> float:
        a, b = theta
        mean, sd = a / b, b**-0.5
        hi, lo = log_ndtr((2 - mean) / sd), log_ndtr((-1 - mean) / sd)
        log_z = a**2 / (2 * b) + 0.5 * np.log(2 * np.pi / b) + hi + np.log1p(-np.exp(lo - hi))
        return float(a * y.sum() - 0.5 * b * (y**2).sum() - len(y) * log_z)

    model = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), domain)
    energy = un.Energy(lambda th, y: th[0] * y - 0.5 * th[1] * y**2, np.array([0.0, 1.0]), domain)
    return Family(model, _observations(y), energy, loglik, np.array([0.4 / 0.36, 1 / 0.36]))


def toy_chain() -> Family:
    """The chain of eq. 4.1; ∫ by adaptive quadrature, one context at a time."""
    chain = un.datasets.toy_chain(60, 0.5, 5.0, rng=2)
    now, before = chain[1:], chain[:-1]
    domain = un.Interval(-1, 1)

    def loglik(theta: np.ndarray) -> float:
        def f(y: float, x: float) -> float:
            return theta[0] * y - 0.5 * theta[1] * (y - x) ** 2

        return float(
            sum(
                f(y, x) - np.log(integrate.quad(lambda u, x=x: np.exp(f(u, x)), -1, 1, epsabs=1e-13)[0])
                for y, x in zip(now, before)
            )
        )

    model = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), domain)
    energy = un.Energy(lambda th, y, x: th[0] * y - 0.5 * th[1] * (y - x) ** 2, np.array([0.0, 1.0]), domain)
    return Family(model, un.transitions(chain), energy, loglik, np.array([0.5, 5.0]))


def von_mises() -> Family:
    """exp(a cos y + b sin y) on the circle; ∫ = 2π I0(√(a²+b²))."""
    y = np.random.default_rng(3).vonmises(0.7, 2.0, 300)
    domain = un.Circle()

    def loglik(theta: np.ndarray) -> float:
        kappa = float(np.hypot(*theta))
        return float(theta @ [np.cos(y).sum(), np.sin(y).sum()] - len(y) * (np.log(2 * np.pi * i0e(kappa)) + kappa))

    model = un.ExponentialFamily(lambda y: (jnp.cos(y), jnp.sin(y)), ("cos", "sin"), domain)
    energy = un.Energy(lambda th, y: th[0] * jnp.cos(y) + th[1] * jnp.sin(y), np.array([0.5, 0.5]), domain)
    return Family(model, _observations(y), energy, loglik, 2.0 * np.array([np.cos(0.7), np.sin(0.7)]))


def fisher_bingham() -> Family:
    """exp(κ z + β (x² − y²)) on the sphere (FB5, Kent); ∫ = ∫ 2π I0(β(1−z²)) e^{κz} dz."""
    rng = np.random.default_rng(4)
    u = rng.normal(size=(6000, 3))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    kappa, beta = 2.0, 0.8
    f = kappa * u[:, 2] + beta * (u[:, 0] ** 2 - u[:, 1] ** 2)
    y = u[np.log(rng.random(len(u))) < f - (kappa + beta)][:250]
    domain = un.Sphere()

    def loglik(theta: np.ndarray) -> float:
        k, b = theta

        def ring(z: float) -> float:
            c = abs(b) * (1 - z * z)
            return np.exp(k * z + c) * i0e(c)

        log_z = np.log(2 * np.pi * integrate.quad(ring, -1, 1, epsabs=1e-13)[0])
        return float(k * y[:, 2].sum() + b * (y[:, 0] ** 2 - y[:, 1] ** 2).sum() - len(y) * log_z)

    model = un.ExponentialFamily(lambda y: (y[2], y[0] ** 2 - y[1] ** 2), ("kappa", "beta"), domain)
    energy = un.Energy(lambda th, y: th[0] * y[2] + th[1] * (y[0] ** 2 - y[1] ** 2), np.array([0.5, 0.1]), domain)
    return Family(model, _observations(y), energy, loglik, np.array([kappa, beta]))


def graph() -> Family:
    """Edges and triangles on 4 nodes; ∫ = Σ over the 64 graphs, counted from the definition."""
    pairs = list(itertools.combinations(range(4), 2))
    triples = list(itertools.combinations(range(4), 3))
    states = np.array(list(itertools.product((0, 1), repeat=6)), dtype=float)

    def counts(graphs: np.ndarray) -> np.ndarray:
        triangles = sum(
            graphs[:, pairs.index((a, b))] * graphs[:, pairs.index((a, c))] * graphs[:, pairs.index((b, c))]
            for a, b, c in triples
        )
        return np.column_stack([graphs.sum(axis=1), triangles])

    truth = np.array([-0.5, 0.4])
    weights = np.exp(counts(states) @ truth)
    domain = un.Graphs(4, directed=False)
    drawn = states[np.random.default_rng(5).choice(64, 200, p=weights / weights.sum())]
    adjacency = np.zeros((200, 4, 4))
    for j, (a, b) in enumerate(pairs):
        adjacency[:, a, b] = adjacency[:, b, a] = drawn[:, j]
    y = np.stack([domain.edges_from_adjacency(one) for one in adjacency])

    def loglik(theta: np.ndarray) -> float:
        return float(counts(drawn).sum(axis=0) @ theta - 200 * logsumexp(counts(states) @ theta))

    def statistics(y: jnp.ndarray) -> tuple[jnp.ndarray, jnp.ndarray]:
        a = domain.adjacency(y)
        return jnp.sum(y), jnp.trace(a @ a @ a) / 6

    model = un.ExponentialFamily(statistics, ("edges", "triangles"), domain)
    energy = un.Energy(lambda th, y: th[0] * statistics(y)[0] + th[1] * statistics(y)[1], np.zeros(2), domain)
    return Family(model, _observations(y), energy, loglik, truth)


def ising() -> Family:
    """A ring of 8 spins, exp(h Σ s + J Σ s s'), s = 2y − 1; ∫ by the transfer matrix."""
    states = np.array(list(itertools.product((0, 1), repeat=8)), dtype=float)

    def totals(y: np.ndarray) -> np.ndarray:
        spins = 2 * y - 1
        return np.column_stack([spins.sum(axis=1), (spins * np.roll(spins, 1, axis=1)).sum(axis=1)])

    truth = np.array([0.1, 0.3])
    weights = np.exp(totals(states) @ truth)
    y = states[np.random.default_rng(6).choice(256, 300, p=weights / weights.sum())]

    def loglik(theta: np.ndarray) -> float:
        h, j = theta
        transfer = np.exp([[j + h, -j], [-j, j - h]])
        log_z = np.log(np.trace(np.linalg.matrix_power(transfer, 8)))
        return float(totals(y).sum(axis=0) @ theta - 300 * log_z)

    domain = un.BinaryVectors(8)

    def statistics(y: jnp.ndarray) -> tuple[jnp.ndarray, jnp.ndarray]:
        s = 2 * y - 1
        return jnp.sum(s), jnp.sum(s * jnp.roll(s, 1))

    model = un.ExponentialFamily(statistics, ("field", "coupling"), domain)
    energy = un.Energy(
        lambda th, y: th["h"] * statistics(y)[0] + th["j"] * statistics(y)[1], {"h": 0.0, "j": 0.0}, domain
    )
    return Family(model, _observations(y), energy, loglik, truth)


def regression() -> Family:
    """Poisson-like counts 0..7 with a covariate, exp(a y + b y age) / y!; ∫ as a sum, one row at a time."""
    rng = np.random.default_rng(7)
    values = np.arange(8.0)
    from scipy.special import gammaln

    age = rng.uniform(-1, 1, 150)
    weights = np.exp(np.outer(0.3 + 0.8 * age, values) - gammaln(values + 1))
    y = np.array([rng.choice(values, p=w / w.sum()) for w in weights])
    domain = un.FiniteSet(values, weights=1 / np.exp(gammaln(values + 1)))

    def loglik(theta: np.ndarray) -> float:
        slope = theta[0] + theta[1] * age
        return float((slope * y).sum() - logsumexp(np.outer(slope, values) - gammaln(values + 1), axis=1).sum())

    model = un.ExponentialFamily(lambda y, x: (y, y * x["age"]), ("a", "b"), domain)
    energy = un.Energy(lambda th, y, x: y * (th["a"] + th["b"] * x["age"]), {"a": 0.0, "b": 0.0}, domain)
    obs = un.conditional({"y": y, "age": age}, y="y", x="age")
    return Family(model, obs, energy, loglik, np.array([0.3, 0.8]))


FAMILIES = {
    make.__name__: make for make in (truncated_gaussian, toy_chain, von_mises, fisher_bingham, graph, ising, regression)
}
