"""Do a sampler and a log density belong together? Two tests, cheap enough to run on every pair that a user brings.

Let Y be draws of the sampler at contexts x, and q the density that is claimed. If the claim holds, then for every
function g of (y, x) with values in [0, 1]

    by a rule of Ω that resolves q:     E g(Y)            =  ∫ g q dμ,
    by uniform points U, on any Ω:      E (1 − ρ(Y)) g(Y)  =  (M/N) E ρ(U) g(U),      ρ = N q / (N q + M/|Ω|),

with N draws and M uniform points. The second line is the score of the logistic regression that tells draws from uniform
points (eq. 3.2): its terms are bounded whatever q is. The mean of n independent terms in [0, 1] with sample variance V
is further than √(2 V L/n) + 7 L/(3 (n − 1)) from its expectation with probability at most 4 exp(−L) (Maurer & Pontil
2009, "Empirical Bernstein bounds and sample-variance penalization", Theorem 4). L is such that a pair that belongs
together is refused in fewer than one run in a million, whatever its law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..domains import Quadrature
from ..errors import InputError
from .base import BoundReference, root

if TYPE_CHECKING:
    from ..data.observations import Observations

FALSE_ALARM = 1e-6
DRAWS, UNIFORM, PILOT = 4_000, 16_000, 500
MOST_CONTEXTS = 200
MOST_NODES = 40_000  # nodes of a rule, times contexts
MOST_COORDINATES = 8
RESOLVED = 0.01  # two rules that differ by less in ∫ q, relative, resolve it
MASS_TOLERANCE = 0.02  # of the integral of q: users' own constants are seldom exact
_REMEDY = (
    "Let log_density return the log density, normalised on Ω, of the points that sample draws: for a kernel, the "
    "kernel's own density given x. Custom(…, check=False) takes a pair on trust, for points handed out from a table."
)


@dataclass(frozen=True)
class Evaluated:
    """Rows (y, x_t) with the claimed log q there."""

    y: np.ndarray  # (N, d)
    t: np.ndarray  # (N,)
    log_q: np.ndarray  # (N,)


@dataclass(frozen=True)
class Feature:
    """A quantity φ(y, x), and two functions g ∈ [0, 1] of z = (φ − middle)/scale."""

    what: str  # in words
    of: Callable[[Evaluated], np.ndarray]
    middle: float = 0.0
    scale: float = 1.0

    def bounded(self, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(1 + tanh z)/2, which moves with the mean of φ, and exp(−z²/2), which moves with its spread."""
        with np.errstate(over="ignore"):
            z = (phi - self.middle) / self.scale
            return 0.5 * (1.0 + np.tanh(z)), np.exp(-0.5 * z**2)


@dataclass(frozen=True)
class Pair:
    """A reference whose `sample` and `log_density` are to be compared at some contexts of these observations."""

    q: BoundReference
    obs: Observations
    contexts: np.ndarray  # (T,) observations
    rng: np.random.Generator
    name: str  # in messages

    def evaluated(self, y: np.ndarray, t: np.ndarray) -> Evaluated:
        """The claimed density at these rows, after refusing what no log density can be."""
        with np.errstate(divide="ignore"):
            log_q = self.q.log_density(y, self.obs, t)
        if (wrong := np.flatnonzero(np.isnan(log_q) | (log_q == np.inf))).size:
            raise InputError(
                f"log_density of {self.name} must be a number or −inf everywhere on {self.q.domain!r}; it is "
                f"{log_q[wrong[0]]} at {y[wrong[0]].tolist()}. Return −inf where the density is zero."
            )
        return Evaluated(y, t, log_q)

    def drawn(self, n: int, contexts: np.ndarray) -> Evaluated:
        """n draws, as many at each context, after refusing those where the claimed density is zero."""
        t = np.resize(contexts, n)
        sample = self.evaluated(self.q.sample(self.obs, t, self.rng), t)
        if (zero := np.flatnonzero(sample.log_q == -np.inf)).size:
            raise InputError(
                f"sample and log_density of {self.name} do not belong together: the density is zero at {zero.size:,} "
                f"of {n:,} points that sample drew, the first {sample.y[zero[0]].tolist()}. {_REMEDY}"
            )
        return sample


@dataclass(frozen=True)
class Difference:
    """A quantity whose mean differs by `excess` times as much as it may."""

    excess: float
    what: str
    phi: np.ndarray  # of the draws
    claimed: np.ndarray  # φ under q, with weights
    weight: np.ndarray

    def sentence(self) -> str:
        """In means where these differ visibly, else in standard deviations."""
        mean = float(self.weight @ self.claimed / self.weight.sum())
        sd = float(np.sqrt(self.weight @ (self.claimed - mean) ** 2 / self.weight.sum()))
        shifted = abs(self.phi.mean() - mean) > 0.1 * max(sd, float(self.phi.std()))
        name, got, expected = ("mean", self.phi.mean(), mean) if shifted else ("standard deviation", self.phi.std(), sd)
        return (
            f"the {name} of {self.what} is {got:.3g} among {len(self.phi):,} points that sample drew, and "
            f"{expected:.3g} under log_density"
        )


def check_agreement(q: BoundReference, obs: Observations, name: str) -> None:
    """Refuse a reference whose draws do not follow its density; `name` is what messages call it."""
    every = np.arange(obs.n) if obs.has_context else np.zeros(1, dtype=np.intp)
    # a check, not a simulation: its own stream, so that the user's is left alone and the answer is always the same
    pair = Pair(q, obs, _some(every, MOST_CONTEXTS), np.random.default_rng(0), name)
    pilot = pair.drawn(PILOT, pair.contexts)
    features = [_scaled(feature, pilot) for feature in _features(pair)]
    L = float(np.log(12.0 * (2 * len(features) + 1) / FALSE_ALARM))  # at most 3 (2F + 1) means
    found = _by_rule(pair, features, L) or _by_uniform_points(pair, features, L)
    if found:
        worst = max(found, key=lambda difference: difference.excess)
        raise InputError(f"sample and log_density of {name} do not belong together: {worst.sentence()}. {_REMEDY}")


def _some(values: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the values, evenly spaced."""
    return values[np.unique(np.linspace(0, len(values) - 1, most).astype(np.intp))]


def _half_width(g: np.ndarray, L: float) -> float:
    """√(2 V L/n) + 7 L/(3 (n − 1))."""
    n = len(g)
    return float(np.sqrt(2.0 * np.var(g, ddof=1) * L / n) + 7.0 * L / (3.0 * (n - 1)))


# --- what is compared ------------------------------------------------------------------------------------------------


def _features(pair: Pair) -> list[Feature]:
    """Coordinates and their sum, the step from the previous point and its length, and log q itself."""
    domain, names = pair.q.domain, pair.obs.outcome_names
    some = _some(np.arange(domain.dim), MOST_COORDINATES).tolist()
    made = [Feature("log_density", lambda s: s.log_q)]
    if domain.period is not None:
        turn = 2.0 * np.pi / domain.period
        made.append(Feature(f"cos {names[0]}", lambda s: np.cos(turn * s.y[:, 0])))
        made.append(Feature(f"sin {names[0]}", lambda s: np.sin(turn * s.y[:, 0])))
    else:
        made += [Feature(names[j], lambda s, j=j: s.y[:, j]) for j in some]
    if domain.dim > 1:
        made.append(Feature("the sum of all coordinates", lambda s: s.y.sum(axis=1)))
    if pair.obs.kind != "transitions":
        return made
    before = pair.obs.previous()

    def step(s: Evaluated) -> np.ndarray:
        return s.y - before[s.t] if domain.period is None else domain.wrap(s.y - before[s.t])

    made += [Feature(f"the step to {names[j]} from the previous one", lambda s, j=j: step(s)[:, j]) for j in some]
    made.append(Feature("the distance from the previous point", lambda s: np.linalg.norm(step(s), axis=1)))
    return made


def _scaled(feature: Feature, pilot: Evaluated) -> Feature:
    """The feature with middle and scale of the pilot draws, which are not used again."""
    phi = feature.of(pilot)
    low, middle, high = np.quantile(phi, [0.25, 0.5, 0.75])
    scale = (high - low) / 1.35 or float(np.std(phi)) or 1.0
    return replace(feature, middle=float(middle), scale=float(scale))


# --- E g(Y) = ∫ g q dμ ------------------------------------------------------------------------------------------------


def _by_rule(pair: Pair, features: list[Feature], L: float) -> list[Difference]:
    """What differs by the domain's rule, at the contexts where it resolves q."""
    domain = pair.q.domain
    if domain.rule is None:
        return []
    rules = [domain.quadrature()]
    if domain.default_order is not None:
        rules.append(domain.quadrature(domain.default_order + domain.default_order // 2 + 1))
    some = _some(pair.contexts, max(1, MOST_NODES // len(rules[-1].weights)))
    by_rules = [at_nodes for t in some.tolist() if (at_nodes := _resolved(pair, rules, t)) is not None]
    if not by_rules:
        return []  # q is too narrow, or too rough, for the rule
    draws = pair.drawn(DRAWS, np.array([at_nodes[0].t[0] for at_nodes in by_rules]))
    share = np.bincount(np.resize(np.arange(len(by_rules)), DRAWS)) / DRAWS
    found = []
    for feature in features:
        phi = feature.of(draws)
        integrals = np.zeros((len(rules), 2))
        for part, at_nodes in zip(share, by_rules):
            for r, (rule, nodes) in enumerate(zip(rules, at_nodes)):
                w = _masses(rule, nodes)
                integrals[r] += [part * (w @ np.where(w > 0.0, g, 0.0)) for g in feature.bounded(feature.of(nodes))]
        slack = 3.0 * np.abs(integrals[-1] - integrals[0]) + (0.0 if rules[0].exact else RESOLVED)
        for g, integral, more in zip(feature.bounded(phi), integrals[-1], slack):
            if (excess := abs(g.mean() - integral) / (_half_width(g, L) + more)) > 1.0:
                values = np.concatenate([feature.of(at_nodes[-1]) for at_nodes in by_rules])
                weight = np.concatenate([part * _masses(rules[-1], nodes[-1]) for part, nodes in zip(share, by_rules)])
                found.append(Difference(excess, feature.what, phi, values[weight > 0.0], weight[weight > 0.0]))
    return found


def _resolved(pair: Pair, rules: list[Quadrature], t: int) -> list[Evaluated] | None:
    """q(·|x_t) at the nodes of each rule; None where the rules differ, refused where they agree that ∫ q is not 1."""
    at_nodes = [pair.evaluated(rule.points, np.full(len(rule.points), t)) for rule in rules]
    with np.errstate(over="ignore"):
        totals = [float(rule.weights @ np.exp(nodes.log_q)) for rule, nodes in zip(rules, at_nodes)]
    error = abs(totals[0] - totals[-1])
    if not error < RESOLVED * totals[-1]:  # relative: rules that both miss a narrow peak differ in what is left of it
        return None
    if abs(totals[-1] - 1.0) > MASS_TOLERANCE + 3.0 * error:
        raise InputError(
            f"exp(log_density) of {pair.name} integrates to {totals[-1]:.4g} over {pair.q.domain!r}"
            f"{f' at observation {t}' if pair.obs.has_context else ''}, and must integrate to 1: "
            "subtract the log of that integral."
        )
    return at_nodes


def _masses(rule: Quadrature, nodes: Evaluated) -> np.ndarray:
    """The share of q at each node."""
    w = rule.weights * np.exp(nodes.log_q)
    return w / w.sum()


# --- E (1 − ρ(Y)) g(Y) = (M/N) E ρ(U) g(U) ----------------------------------------------------------------------------


def _by_uniform_points(pair: Pair, features: list[Feature], L: float) -> list[Difference]:
    """What differs by uniform points: on any Ω, for any q."""
    domain, ratio = pair.q.domain, UNIFORM / DRAWS
    draws = pair.drawn(DRAWS, pair.contexts)
    uniform = pair.evaluated(domain.uniform(UNIFORM, pair.rng), np.resize(pair.contexts, UNIFORM))
    log_odds, log_odds_uniform = (s.log_q + domain.log_volume - np.log(ratio) for s in (draws, uniform))
    off, on = _logistic(-log_odds), _logistic(log_odds_uniform)  # 1 − ρ(Y), ρ(U)
    inside = on > 0.0
    weight = np.exp(log_odds_uniform[inside] - log_odds_uniform.max(initial=-np.inf))
    found = []
    for feature in features:
        phi, phi_uniform = feature.of(draws), feature.of(uniform)
        for g, h in zip(feature.bounded(phi), feature.bounded(phi_uniform)):
            a, b = off * g, np.where(inside, on * h, 0.0)
            excess = abs(a.mean() - ratio * b.mean()) / (_half_width(a, L) + ratio * _half_width(b, L))
            if excess > 1.0 and inside.any():
                found.append(Difference(excess, feature.what, phi, phi_uniform[inside], weight))
    if not found and abs(off.mean() - ratio * on.mean()) > _half_width(off, L) + ratio * _half_width(on, L):
        raise InputError(
            f"sample and log_density of {pair.name} do not belong together: by the {DRAWS:,} points that sample drew, "
            f"exp(log_density) integrates to {_mass(log_odds, log_odds_uniform, ratio)} over {domain!r}. {_REMEDY}"
        )
    return found


def _mass(log_odds: np.ndarray, log_odds_uniform: np.ndarray, ratio: float) -> str:
    """∫ exp(log_density) by noise-contrastive estimation: the constant that balances the two means."""
    finite = np.concatenate([log_odds, log_odds_uniform[np.isfinite(log_odds_uniform)]])

    def imbalance(log_mass: float) -> float:
        return float(_logistic(log_mass - log_odds).mean() - ratio * _logistic(log_odds_uniform - log_mass).mean())

    low, high = finite.min() - 40.0, finite.max() + 40.0
    if not imbalance(low) < 0.0 < imbalance(high):
        return "0"  # no uniform point where q is positive
    return f"{np.exp(root(imbalance, low, high)):.2g}"


def _logistic(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-x))
