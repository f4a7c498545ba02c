"""Exact simulation of planar chains whose step acts through length, direction and place.

    p(y|x) ∝ exp{ r(d) + a(φ) + g(y, x) },     y = x + d (cos φ, sin φ) ∈ Ω,    dy = d dd dφ

so that the step is drawn in polar coordinates, d from d e^{r(d)} and φ from e^{a(φ)}, and kept with probability
1{y ∈ Ω} e^{g(y, x) − G}, G ≥ g. Curves of one covariate are read from tables by linear interpolation (`CELLS` cells),
and the draws are exact for the tabulated curves: a cell's own maximum bounds r and a, since they are linear there. The
error of the table itself is at most h²|f''|/8, about 1e-6 for the curves of eye movements over 1,000 pixels. The bound
G is checked at every proposal; one that exceeds it raises G and starts the simulation anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from .._base.numerics import Rng, floats, generator
from ..data.observations import Observations
from ..domains.base import Domain
from ..errors import CombinationError, EstimationError, InputError, OutsideError, hush
from ..models.base import Unnormalised
from .density import Density
from .smooths import SmoothPart

CELLS = 4096
MOST_ROUNDS = 20_000  # of proposals for one step
MOST_EACH, MOST_AT_LEAST = 2_000, 10_000_000  # proposals: for each step wanted, restarts included, and for any run
MOST_BOUNDS = 30  # times that the bound may be raised
AT_ONCE = 100_000  # proposals in one round, at most

TOO_FEW_KEPT = (
    "Simulation by rejection keeps too few of its proposals: f̂ rises without bound at short steps, or puts its steps "
    "far from where they were observed. Fit relative to a kernel (base=un.Tilt(un.StepKernel(…)))."
)

Curve = Callable[[np.ndarray], np.ndarray]
Rest = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (y, contexts (n, lags·2)) → g(y, x)


@final
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
        gone = np.isnan(x)  # a turn after a step of length zero: there is none, and the term is zero
        if gone.any():
            return np.where(gone, 0.0, self(np.where(gone, self.low, x)))
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


@final
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


@final
@dataclass(frozen=True)
class PolarLaw:
    """The three parts of a planar step's density: r of its length, a of its direction, and g of all else."""

    domain: Domain
    radial: Curve
    angular: Curve
    rest: Rest  # contexts are (n, 2·lags), latest point first
    y_down: bool = False

    @cached_property
    def lengths(self) -> Sampler:
        """d ~ d e^{r(d)} up to the diagonal of Ω's box."""
        lower, upper = box_around(self.domain)
        return Table.of(self.radial, 0.0, float(np.hypot(*(upper - lower)))).sampler(radial=True)

    @cached_property
    def directions(self) -> Sampler:
        """φ ~ e^{a(φ)}."""
        return Table.of(self.angular, -np.pi, np.pi).sampler(radial=False)

    def propose(self, x: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """One y from each x by r and a alone, and which of them are kept so far: in Ω, and under their tables."""
        d, keep_d = self.lengths.draw(len(x), rng)
        phi, keep_phi = self.directions.draw(len(x), rng)
        sign = -1.0 if self.y_down else 1.0
        y = x + d[:, None] * np.stack([np.cos(phi), sign * np.sin(phi)], axis=1)
        return y, keep_d & keep_phi & self.domain.contains(y)


def polar_chains(
    law: PolarLaw, starts: np.ndarray, steps: int, rng: Rng = None, *, bound: float = -np.inf
) -> np.ndarray:
    """Chains (n, lags + steps, 2) from their starts (n, lags, 2): all chains advance together.

    Args:
        law: r, a and g.
        starts: the first points, in the order of time.
        steps: of each chain.
        rng: seed or generator.
        bound: a G to begin with.
    """
    random = generator(rng)
    left = MOST_EACH * len(starts) * steps + MOST_AT_LEAST
    for _ in range(MOST_BOUNDS):
        found, bound, left = _advance(law, starts, steps, random, bound, left)
        if found is not None:
            return found
    raise EstimationError(
        "The density could not be bounded: it keeps exceeding every bound found. Check the fitted terms."
    )


def _advance(
    law: PolarLaw, starts: np.ndarray, steps: int, rng: np.random.Generator, bound: float, left: int
) -> tuple[np.ndarray | None, float, int]:
    """The chains, or None and a higher bound where g exceeded it; and how many of the proposals are `left`."""
    n, lags, _ = starts.shape
    out = np.empty((n, lags + steps, 2))
    out[:, :lags] = starts
    share = 0.2  # of proposals kept, a running guess
    for t in range(lags, lags + steps):
        waiting = np.arange(n)
        for _ in range(MOST_ROUNDS):
            if not waiting.size:
                break
            tries = int(np.clip(np.ceil(1 / max(share, 1e-3)), 1, max(1, AT_ONCE // waiting.size)))
            who = np.repeat(waiting, tries)
            left -= who.size
            if left < 0:
                raise EstimationError(TOO_FEW_KEPT)
            y, keep = law.propose(out[who, t - 1], rng)
            coin = np.log(rng.random(who.size))
            good = np.flatnonzero(keep)
            contexts = out[who[good], t - lags : t][:, ::-1].reshape(good.size, 2 * lags)
            g = law.rest(y[good], contexts)
            if good.size and g.max() > bound:
                return None, float(g.max() + 0.1), left
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
    return out, bound, left


def simulate_planar(density: Density, starts: Any, steps: int, rng: Rng = None) -> np.ndarray:
    """Chains (n, lags + steps, 2) from a fitted additive model of a planar chain, starting at `starts` (n, 2) or
    (n, lags, 2).

    Terms of `step` alone and of `angle` alone give the proposals; all others are g.
    """
    domain = density.domain
    starts = floats(starts, "starts")
    starts = starts[:, None, :] if starts.ndim == 2 else starts
    if starts.ndim != 3 or starts.shape[2] != 2 or not np.isfinite(starts).all():
        raise InputError(f"starts must be finite points, shape (n, 2) or (n, lags, 2); got shape {np.shape(starts)}.")
    if not domain.contains(starts.reshape(-1, 2)).all():
        raise OutsideError(
            f"{int((~domain.contains(starts.reshape(-1, 2))).sum())} of the starts lie outside {domain!r}."
        )
    fitted = density.additive()
    if fitted is None:
        raise CombinationError("Planar chains are drawn term by term, and this model is not a sum of smooth terms.")
    return polar_chains(_FittedTerms(*fitted, starts.shape[1]).law(), starts, steps, rng)


@final
@dataclass(frozen=True, eq=False)
class _FittedTerms:
    """A fitted additive model of a planar chain, taken apart into r, a and g."""

    model: Unnormalised
    part: SmoothPart
    lags: int

    def law(self) -> PolarLaw:
        assert self.needed is not None  # asked first: a covariate that a chain does not have is an error
        upwards = self.columns(np.zeros((1, 2 * self.lags)), np.array([[0.0, 1.0]]), ("angle",))["angle"]
        y_down = bool(np.sin(upwards[0]) < 0)
        return PolarLaw(self.model.domain, self.total("step"), self.total("angle"), self.rest, y_down)

    def total(self, name: str) -> Curve:
        """The sum of the curves of this covariate alone."""
        alone = [
            self.curve(label, name) for label in self.part.model_labels if self.part.term(label).covariates == (name,)
        ]
        return lambda x: sum((curve(x) for curve in alone), np.zeros(len(x)))

    def curve(self, label: str, name: str) -> Curve:
        term, beta = self.part.term(label), self.part.beta[self.part.slices[label]]

        def values(x: np.ndarray) -> np.ndarray:
            with hush():  # the far corners of Ω: rare, and flat
                return term.design({name: x}) @ beta

        return values

    @cached_property
    def others(self) -> dict[str, Callable[[dict[str, np.ndarray]], np.ndarray]]:
        """The terms of g: label → function of the columns; those of one covariate of known range from a table."""
        proposals = (("step",), ("angle",))
        labels = [label for label in self.part.model_labels if self.part.term(label).covariates not in proposals]
        return {label: self.term(label) for label in labels}

    def term(self, label: str) -> Callable[[dict[str, np.ndarray]], np.ndarray]:
        term = self.part.term(label)
        names = term.covariates
        ends = self.range_of(names[0]) if len(names) == 1 else None
        if ends is not None:
            table = Table.of(self.curve(label, names[0]), *ends)
            return lambda columns: table(columns[names[0]])
        beta = self.part.beta[self.part.slices[label]]
        return lambda columns: term.design({name: columns[name] for name in names}) @ beta

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The covariates of g, all of which a simulated chain must have."""
        names = tuple(dict.fromkeys(name for label in self.others for name in self.part.term(label).covariates))
        covariates = self.model.covariates(self.observations(np.zeros((1, 2 * self.lags)), np.zeros((1, 2))))
        if strange := [name for name in names if name not in covariates]:
            raise CombinationError(
                f"The terms read {', '.join(strange)}, which a simulated chain does not have. Simulate from a model "
                "whose terms depend on places and steps only."
            )
        return names

    def range_of(self, name: str) -> tuple[float, float] | None:
        """Between which values a covariate lies over Ω, where that is known."""
        lower, upper = box_around(self.model.domain)
        if name in ("angle", "turn"):
            return -np.pi, np.pi
        if name in ("x", "y"):
            j = ("x", "y").index(name)
            return float(lower[j]), float(upper[j])
        if name == "dcenter":  # a convex function: largest at a corner
            corners = np.array([[x, y] for x in (lower[0], upper[0]) for y in (lower[1], upper[1])])
            return 0.0, float(self.columns(np.zeros((4, 2 * self.lags)), corners, ("dcenter",))["dcenter"].max())
        return None

    def rest(self, y: np.ndarray, contexts: np.ndarray) -> np.ndarray:
        """g(y, x)."""
        if not self.needed or not len(y):
            return np.zeros(len(y))
        columns = self.columns(contexts, y, self.needed)
        return sum((term(columns) for term in self.others.values()), np.zeros(len(y)))

    def columns(self, contexts: np.ndarray, y: np.ndarray, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Covariates of outcomes y after these contexts."""
        obs = self.observations(contexts, y)
        return dict(self.model.covariates(obs).values(names, obs, y, np.arange(len(y))))

    def observations(self, contexts: np.ndarray, y: np.ndarray) -> Observations:
        suffixes = ["_prev" if lag == 1 else f"_prev{lag}" for lag in range(1, self.lags + 1)]
        labels = [name + suffix for suffix in suffixes for name in ("x", "y")]
        context = {label: contexts[:, j] for j, label in enumerate(labels)}
        return Observations("transitions", y, ("x", "y"), context, lags=self.lags)


def box_around(domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    """The two corners of the box around a region of the plane."""
    corners = domain.enclosing_box
    if domain.dim != 2 or corners is None:
        raise CombinationError(f"Planar chains live in a Box or a Window of the plane; got {domain!r}.")
    return corners
