"""Exact simulation of planar chains whose step acts through length, direction and place.

    p(y|x) ∝ exp{ r(d) + a(φ) + g(y, x) },     y = x + d (cos φ, sin φ) ∈ Ω,    dy = d dd dφ

so that the step is drawn in polar coordinates, d from d e^{r(d)} and φ from e^{a(φ)}, and kept with probability
1{y ∈ Ω} e^{g(y, x) − G}, G ≥ g. Curves of one covariate are read from tables by linear interpolation (`CELLS` cells),
and the draws are exact for the tabulated curves: a cell's own maximum bounds r and a, since they are linear there. The
error of the table itself is at most h²|f''|/8, about 1e-6 for the curves of eye movements over 1,000 pixels. The bound
G is checked at every proposal; one that exceeds it raises G and starts the simulation anew.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.numerics import Rng, floats, generator
from ..data.observations import Observations
from ..domains.base import Domain
from ..errors import CombinationError, EstimationError, InputError, OutsideError

if TYPE_CHECKING:
    from .density import SmoothDensity

CELLS = 4096
MOST_ROUNDS = 20_000  # of proposals for one step
MOST_STARTS = 30  # times that the bound may be raised
ATONCE = 100_000  # proposals in one round, at most

Curve = Callable[[np.ndarray], np.ndarray]
Rest = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (y, contexts (n, lags·2)) → g(y, x)


@dataclass(frozen=True)
class Table:
    """A curve as its values at evenly spaced points, linear in between."""

    low: float
    high: float
    values: np.ndarray  # (CELLS + 1,)

    @classmethod
    def of(cls, curve: Curve, low: float, high: float) -> Table:
        return cls(low, high, np.asarray(curve(np.linspace(low, high, CELLS + 1)), dtype=np.float64))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        u = np.clip((x - self.low) * (CELLS / (self.high - self.low)), 0.0, CELLS)
        i = np.minimum(u.astype(np.intp), CELLS - 1)
        first = self.values[i]
        return first + (u - i) * (self.values[i + 1] - first)

    def sampler(self, radial: bool) -> Sampler:
        edges = np.linspace(self.low, self.high, CELLS + 1)
        top = np.maximum(self.values[1:], self.values[:-1])
        measure = (edges[1:] ** 2 - edges[:-1] ** 2) / 2 if radial else np.diff(edges)
        weight = measure * np.exp(top - top.max())
        return Sampler(self, edges, top, np.cumsum(weight) / weight.sum(), radial)


@dataclass(frozen=True)
class Sampler:
    """Draws from e^{f(d)} dμ(d), μ = d dd (radial) or dφ: a cell, a point in it, and whether it is kept."""

    table: Table
    edges: np.ndarray
    top: np.ndarray
    cumulative: np.ndarray
    radial: bool

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        i = np.minimum(np.searchsorted(self.cumulative, rng.random(n), side="right"), CELLS - 1)
        low, high = self.edges[i], self.edges[i + 1]
        u = rng.random(n)
        x = np.sqrt(low**2 + u * (high**2 - low**2)) if self.radial else low + u * (high - low)
        return x, np.log(rng.random(n)) <= self.table(x) - self.top[i]


def polar_chains(
    domain: Domain,
    radial: Curve,
    angular: Curve,
    rest: Rest,
    starts: np.ndarray,
    steps: int,
    rng: Rng = None,
    *,
    y_down: bool = False,
    bound: float = -np.inf,
) -> np.ndarray:
    """Chains (n, lags + steps, 2) from their starts (n, lags, 2): all chains advance together.

    radial, angular: r and a, as functions of the step's length and direction; rest: g(y, contexts), the contexts being
    (n, 2·lags), latest point first. bound: a G to begin with.
    """
    random = generator(rng)
    lower, upper = _corners(domain)
    reach = float(np.hypot(*(upper - lower)))
    r = Table.of(radial, 0.0, reach).sampler(radial=True)
    a = Table.of(angular, -np.pi, np.pi).sampler(radial=False)
    sign = -1.0 if y_down else 1.0
    for _ in range(MOST_STARTS):
        found, bound = _advance(domain, r, a, rest, starts, steps, random, sign, bound)
        if found is not None:
            return found
    raise EstimationError(
        "The density could not be bounded: it keeps exceeding every bound found. Check the fitted terms."
    )


def _advance(
    domain: Domain, r: Sampler, a: Sampler, rest: Rest, starts: np.ndarray, steps: int, rng: np.random.Generator,
    sign: float, bound: float,
) -> tuple[np.ndarray | None, float]:  # fmt: skip
    """The chains, or None and a higher bound where g exceeded it."""
    n, lags, _ = starts.shape
    out = np.empty((n, lags + steps, 2))
    out[:, :lags] = starts
    share = 0.2  # of proposals kept, a running guess
    for t in range(lags, lags + steps):
        waiting = np.arange(n)
        for _ in range(MOST_ROUNDS):
            if not waiting.size:
                break
            tries = int(np.clip(np.ceil(1 / max(share, 1e-3)), 1, max(1, ATONCE // waiting.size)))
            who = np.repeat(waiting, tries)
            d, keep_d = r.draw(who.size, rng)
            phi, keep_phi = a.draw(who.size, rng)
            y = out[who, t - 1] + d[:, None] * np.stack([np.cos(phi), sign * np.sin(phi)], axis=1)
            coin = np.log(rng.random(who.size))
            good = np.flatnonzero(keep_d & keep_phi & domain.contains(y))
            contexts = out[who[good], t - lags : t][:, ::-1].reshape(good.size, 2 * lags)
            g = rest(y[good], contexts)
            if good.size and g.max() > bound:
                return None, float(g.max() + 0.1)
            kept = good[coin[good] <= g - bound]
            share = 0.5 * share + 0.5 * kept.size / who.size
            index, first = np.unique(who[kept], return_index=True)
            out[index, t] = y[kept[first]]
            waiting = np.setdiff1d(waiting, index, assume_unique=True)
        else:
            raise EstimationError(
                f"{waiting.size} of {n} chains found no next point in {MOST_ROUNDS} rounds of proposals: the density "
                "is too concentrated away from its typical steps."
            )
    return out, bound


def simulate_planar(density: SmoothDensity, starts: Any, steps: int, rng: Rng = None) -> np.ndarray:
    """Chains (n, lags + steps, 2) from a fitted additive model of a planar chain, starting at `starts` (n, 2) or
    (n, lags, 2).

    Terms of `step` alone and of `angle` alone give the proposals; all others are g.
    """
    model, part, domain = density.model, density.part, density.domain
    starts = floats(starts, "starts")
    starts = starts[:, None, :] if starts.ndim == 2 else starts
    if starts.ndim != 3 or starts.shape[2] != 2 or not np.isfinite(starts).all():
        raise InputError(f"starts must be finite points, shape (n, 2) or (n, lags, 2); got shape {np.shape(starts)}.")
    if not domain.contains(starts.reshape(-1, 2)).all():
        raise OutsideError(
            f"{int((~domain.contains(starts.reshape(-1, 2))).sum())} of the starts lie outside {domain!r}."
        )
    lags = starts.shape[1]
    names = ["x", "y"]
    labels = [name + suffix for suffix in _suffixes(lags) for name in names]
    lower, upper = _corners(domain)
    ranges = {"angle": (-np.pi, np.pi), "turn": (-np.pi, np.pi)}
    ranges |= {name: (float(a), float(b)) for name, a, b in zip(("x", "y"), lower, upper)}

    def curve(label: str, name: str) -> Curve:
        term, beta = part.term(label), part.beta[part.slices[label]]

        def at(x: np.ndarray) -> np.ndarray:
            with warnings.catch_warnings():  # the far corners of Ω: rare, and flat
                warnings.simplefilter("ignore")
                return term.design({name: x}) @ beta

        return at

    def alone(name: str) -> list[Curve]:
        return [curve(label, name) for label in part.model_labels if part.term(label).covariates == (name,)]

    def total(curves: list[Curve]) -> Curve:
        return lambda x: sum((one(x) for one in curves), np.zeros(len(x)))

    others = [label for label in part.model_labels if part.term(label).covariates not in (("step",), ("angle",))]
    needed = tuple(dict.fromkeys(name for label in others for name in part.term(label).covariates))
    probe = _observations(starts[:1, 0], starts[:1].reshape(1, -1), labels)
    known = model.covariates(probe)
    strange = [name for name in needed if name not in known]
    if strange:
        raise CombinationError(
            f"The terms read {', '.join(strange)}, which a simulated chain does not have. Simulate from a model whose "
            "terms depend on places and steps only."
        )
    centre = getattr(model, "centre", None)
    centre = domain.centre if centre is None else centre
    if centre is not None:
        far = np.array([[x, y] for x in (lower[0], upper[0]) for y in (lower[1], upper[1])]) - np.asarray(centre)
        ranges["dcenter"] = (0.0, float(np.hypot(far[:, 0], far[:, 1]).max()))
    tables: dict[str, tuple[str, Table]] = {}
    for label in others:
        covariates = part.term(label).covariates
        if len(covariates) == 1 and covariates[0] in ranges:
            tables[label] = (covariates[0], Table.of(curve(label, covariates[0]), *ranges[covariates[0]]))

    def rest(y: np.ndarray, contexts: np.ndarray) -> np.ndarray:
        if not others or not len(y):
            return np.zeros(len(y))
        obs = _observations(y, contexts, labels)
        columns = model.covariates(obs).values(needed, obs, y, np.arange(len(y)))
        g = np.zeros(len(y))
        for label in others:
            if label in tables:
                name, table = tables[label]
                g += table(columns[name])
            else:
                term = part.term(label)
                g += term.design({name: columns[name] for name in term.covariates}) @ part.beta[part.slices[label]]
        return g

    return polar_chains(
        domain, total(alone("step")), total(alone("angle")), rest, starts, steps, rng,
        y_down=bool(getattr(model, "y_down", False)),
    )  # fmt: skip


def _corners(domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    if domain.edges is None or domain.enclosing_box is None:
        raise CombinationError(f"Planar chains live in a Box or a Window of the plane; got {domain!r}.")
    return domain.enclosing_box


def _suffixes(lags: int) -> list[str]:
    return ["_prev" if lag == 1 else f"_prev{lag}" for lag in range(1, lags + 1)]


def _observations(y: np.ndarray, contexts: np.ndarray, labels: list[str]) -> Observations:
    context = {label: contexts[:, j] for j, label in enumerate(labels)}
    return Observations("transitions", y, ("x", "y"), context, lags=len(labels) // 2)
