"""Step kernels in the plane: a law for the length of the step and one for its direction, as in step selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from .._base.words import at_row
from ..domains import Box, Window
from ..domains._centred import Rules
from ..domains._rules import gauss_legendre
from ..errors import CombinationError, EstimationError, InputError, OutsideError
from . import polygon, rejection
from .angles import AngleLaw, VonMisesAngle, angle_law
from .base import BoundReference, Example, Given, Reference, used
from .steps import Gamma, LogNormal, StepLaw, Weibull, law_from_dict, step_law

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain

TOLERANCE = 1e-8  # of the constants, relative; stated in `describe`
RARE = 0.05  # mass inside Ω below which rejection would take long: an animal at the edge that heads outwards
NEAR = 0.7  # of the mass inside Ω below which a rule takes the directions of steps that end there
FLATTENED = 0.5  # power of the law of directions at whose quantiles a rule has its rays near the edge
LEAST_MASS = 1e-12  # below which the context is refused


@final
@dataclass(frozen=True, repr=False)
class StepKernel(Reference):
    """q(y|x) = p(r) p(φ) / (r Z(x)): the step from x to y has length r and direction φ, and ends in Ω.

    Free parameters are fitted by maximum likelihood to the observed steps, before truncation. Z(x), the mass inside Ω,
    is an integral along Ω's edges by Gauss–Legendre, refined until two rules agree to 1e-8. A step of length 0 has no
    direction: such observations are refused. Where the previous step has length 0, all turns are equally likely.

    Args:
        step: the law of r: "gamma", "exponential", "weibull", "lognormal", "halfnormal", or a law with its parameters
            (`Gamma(2.0, 30.0)`).
        turn: the law of φ: "uniform"; "vonmises", of the turn from the previous heading (needs transitions with
            lags=2); "heading", of the direction itself; or `VonMisesAngle(mean, kappa, of="turn"|"heading")`.

    >>> from unnorm.references import StepKernel
    >>> StepKernel(step="exponential", turn="uniform").step
    Exponential(scale=None)
    """

    lives_on: ClassVar[str] = "a box or a window in the plane"

    step: Any = "gamma"
    turn: Any = "uniform"

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", step_law(self.step))
        object.__setattr__(self, "turn", angle_law(self.turn))

    def to_dict(self) -> dict[str, Any]:
        return {"reference": "StepKernel", "step": self.step.to_dict(), "turn": self.turn.to_dict()}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> StepKernel:
        return cls(law_from_dict(description["step"]), law_from_dict(description["turn"]))

    @classmethod
    def takes(cls, domain: Domain) -> bool:
        return domain.edges is not None

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        # the density is r^(shape − 2) at the context: with these laws it is bounded, with a kink that slows the rule
        screen, star = Box((0, 8), (0, 6)), Window.examples()[1]
        return (
            Example(cls(Gamma(3.0, 0.8)), screen, 240, 2e-5),
            Example(cls(), screen, 240, 2e-3),
            Example(cls(Weibull(2.0, 2.0), "heading"), screen, 240, 2e-3),
            Example(cls(LogNormal(0.7, 0.4), VonMisesAngle(kappa=2.0)), screen, 240, 1e-4, lags=2),
            Example(cls(Gamma(4.0, 0.3), "vonmises"), star, 160, 1e-4, lags=2),
        )

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        self.check_domain(domain)
        if obs.kind != "transitions":
            raise CombinationError(
                f"StepKernel steps from the previous point, which {obs.kind} observations do not have. "
                "Use transitions(…), or Gaussian(around=(columns of the context)), or Uniform()."
            )
        if self.step.known and self.turn.known:  # contexts alone will do
            _headings(self.turn, obs)
            return BoundStepKernel(domain, self, obs)
        r, phi = _polar(obs.outcome - obs.previous())
        if (zero := np.flatnonzero(r == 0.0)).size:
            row = zero[0] if obs.row is None else obs.row[zero[0]]
            raise OutsideError(
                f"{zero.size} observed steps have length 0, the first at {at_row(row)}: a step kernel has no direction "
                "there. Drop them, join them to the previous point (un.track(…, zero_steps='join')), or use "
                "Gaussian(around='context')."
            )
        heading, moving = _headings(self.turn, obs)
        step = self.step.fit(r, obs.weights)
        angle, weight = (phi - heading)[moving], obs.weights[moving]
        turn = self.turn.fit(angle, weight) if moving.any() else self.turn.fit(np.zeros(1), np.ones(1))
        return BoundStepKernel(domain, replace(self, step=step, turn=turn), obs)


@final
class BoundStepKernel(BoundReference):
    """A step kernel with known laws on a polygon."""

    def __init__(self, domain: Domain, reference: StepKernel, obs: Observations) -> None:
        assert domain.edges is not None
        self.domain, self.reference, self.edges = domain, reference, domain.edges
        self._memo = rejection.Memo()
        self.step: StepLaw = reference.step
        self.turn: AngleLaw = reference.turn
        self.nodes, self.error = self._accuracy(obs)

    @property
    def given(self) -> Given:
        return "context"

    @property
    def cube_dim(self) -> int:
        return 2

    def _mass(self, c: np.ndarray, heading: np.ndarray, moving: np.ndarray, nodes: int) -> np.ndarray:
        def angle_density(phi: np.ndarray, i: np.ndarray) -> np.ndarray:
            wide = (slice(None),) + (None,) * (phi.ndim - 1)
            return np.exp(self._log_angle(phi - heading[i][wide], moving[i][wide]))

        return polygon.polar_mass(self.edges, c, self.step.cdf, angle_density, nodes)

    def _log_mass(self, c: np.ndarray, heading: np.ndarray, moving: np.ndarray) -> np.ndarray:
        mass = self._memo(lambda: self._mass(c, heading, moving, self.nodes), c, heading, moving)
        return np.log(rejection.check_mass(mass, LEAST_MASS))

    def _log_angle(self, angle: np.ndarray, moving: np.ndarray) -> np.ndarray:
        return np.where(moving, self.turn.log_density(angle), -np.log(2.0 * np.pi))

    def _accuracy(self, obs: Observations) -> tuple[int, float]:
        """The nodes per edge at which two rules agree on some contexts, those nearest to the boundary among them."""
        c = obs.previous()
        heading, moving = _headings(self.turn, obs)
        _, h, s1, s2, _ = polygon.edge_frames(self.edges, c[:20_000])
        near = np.where((s1 < 0.0) & (s2 > 0.0), h, np.inf).min(axis=1)
        some = np.unique(np.concatenate([np.argsort(near)[:50], np.linspace(0, obs.n - 1, 50).astype(int)]))
        nodes, error = 24 + 4 * int(np.sqrt(self.turn.concentration)), np.inf
        coarse = self._mass(c[some], heading[some], moving[some], nodes)
        while nodes < 800:
            fine = self._mass(c[some], heading[some], moving[some], 2 * nodes)
            error = float(np.max(np.abs(coarse - fine) / fine))
            if error < TOLERANCE:
                return nodes, error
            nodes, coarse = 2 * nodes, fine
        if error > 1e-3:
            raise EstimationError(
                f"The constant of this StepKernel cannot be computed (two rules differ by {error:.1e}, relative). "
                "Its laws are too concentrated for Ω: take a larger scale or a smaller kappa, or Gaussian(…)."
            )
        return nodes, error

    def _context(self, obs: Observations, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The distinct previous points, headings and whether there is one, and which of them each row uses."""
        index, i = used(t, obs.n)
        heading, moving = _headings(self.turn, obs)
        return obs.previous()[index], heading[index], moving[index], i

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        c, heading, moving, i = self._context(obs, t)
        rare = np.flatnonzero(self._log_mass(c, heading, moving) < np.log(RARE))
        place = np.full(len(c), -1)
        place[rare] = np.arange(rare.size)
        rays = Rays(self, c[rare], heading[rare], moving[rare]) if rare.size else None

        def propose(v: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            here = i[rows]
            r = self.step.quantile(v[:, 0])
            phi = heading[here] + np.where(moving[here], self.turn.quantile(v[:, 1]), 2.0 * np.pi * v[:, 1])
            if rays is not None:
                some = np.flatnonzero(place[here] >= 0)
                r[some], phi[some] = rays.draw(v[some], place[here[some]])
            y = c[here] + r[:, None] * np.column_stack([np.cos(phi), np.sin(phi)])
            return y, self.domain.contains_interior(y) & (r > 0.0)

        return rejection.fill(u, propose, 2)

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        c, heading, moving, i = self._context(obs, t)
        log_mass = self._log_mass(c, heading, moving)
        r, phi = _polar(y - c[i])
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self.step.log_density(r) + self._log_angle(phi - heading[i], moving[i]) - np.log(r) - log_mass[i]
        return np.where(r > 0.0, value, -np.inf)

    def rule(self, obs: Observations, order: int) -> Rules:
        """Gauss–Legendre along rays, each up to the edge of Ω.

        Directions are at evenly spread quantiles of a flatter law g, with weights p/g: at those of p itself the tails
        would be missed, and the error would fall as 1/order (two angles in u = 0 and 1 meet, steeply). Near the edge of
        Ω they are those of steps that end there, flattened likewise: of an animal that heads outwards the few that turn
        back weigh most. Lengths are at F(r) = s²(3 − 2s), which takes the singularity of F⁻¹ at its ends away.
        """
        c = obs.previous()
        heading, moving = _headings(self.turn, obs)
        v = (np.arange(order) + 0.5) / order
        g = self.turn.flatter
        angle = np.where(moving[:, None], g.quantile(v), 2.0 * np.pi * v)
        weigh = np.where(moving[:, None], np.exp(self.turn.log_density(angle) - g.log_density(angle)), 1.0)
        phi = heading[:, None] + angle
        within = self.step.cdf(polygon.reach(self.edges, c, phi))  # (n, order) mass of the lengths up to the edge
        mass = weigh * within
        near = np.flatnonzero(mass.sum(axis=1) < NEAR * weigh.sum(axis=1))
        if near.size:
            rays = Rays(self, c[near], heading[near], moving[near], FLATTENED)
            k = np.repeat(np.arange(near.size), order)
            to, ratio = rays.directions(np.tile(v, near.size), k)
            phi[near] = to.reshape(-1, order)
            within[near] = self.step.cdf(polygon.reach(self.edges, c[near], phi[near]))
            mass[near] = ratio.reshape(-1, order) * (within[near] > 0.0)
        s, w = gauss_legendre(order)
        u, w = s**2 * (3.0 - 2.0 * s), 6.0 * s * (1.0 - s) * w
        lost, far = within <= 0.0, within.argmax(axis=1)[:, None]
        if lost.any():  # from the edge outwards: nodes of the longest ray, which weigh nothing here
            phi = np.where(lost, np.take_along_axis(phi, far, axis=1), phi)
            within = np.where(lost, np.take_along_axis(within, far, axis=1), within)
        r = self.step.quantile((within[:, :, None] * u).ravel()).reshape(*within.shape, order)
        ray = np.stack([np.cos(phi), np.sin(phi)], axis=-1)
        y = (c[:, None, None] + r[..., None] * ray[:, :, None]).reshape(-1, 2)
        weight = (mass[:, :, None] * w).ravel()
        weight = weight * self.domain.contains(y)  # a ray may leave Ω and come back
        weight = weight.reshape(obs.n, -1)
        low, high = self.edges.min(axis=(0, 1)), self.edges.max(axis=(0, 1))
        return (
            np.clip(y, low, high),
            (weight / weight.sum(axis=1, keepdims=True)).ravel(),
            np.repeat(np.arange(obs.n), order**2),
        )

    @cached_property
    def _text(self) -> str:
        return f"step lengths {self.step.describe()}, directions {self.turn.describe()}"

    def describe(self) -> str:
        return (
            f"step kernel around the previous point: {self._text}; constant by quadrature along the edges of Ω, "
            f"{self.nodes} nodes each, relative error about {max(self.error, 1e-16):.0e}"
        )


@final
class Rays:
    """Steps that end in Ω: a direction by p(φ) F(reach of φ), or a power of that; a length up to the edge of Ω.

    For contexts where rejection would wait too long, and quantiles of p(φ) would miss the steps that matter. Directions
    are spread evenly within bins of the circle; lengths are exact.
    """

    BINS = 1024

    def __init__(
        self, law: BoundStepKernel, c: np.ndarray, heading: np.ndarray, moving: np.ndarray, power: float = 1.0
    ) -> None:
        self.law, self.c, self.heading = law, c, heading
        angle = 2.0 * np.pi * (np.arange(self.BINS) + 0.5) / self.BINS - np.pi
        log_p = law._log_angle(angle[None, :], moving[:, None])
        within = law.step.cdf(polygon.reach(law.edges, c, heading[:, None] + angle))
        weight = np.exp(log_p - log_p.max(axis=1, keepdims=True)) * within
        flat = weight**power
        self.ratio = (weight / np.maximum(flat, 1e-300)).ravel()  # of the law to the one that directions are drawn from
        ends = np.cumsum(flat, axis=1)
        ends /= ends[:, -1:]
        self.ends = (ends + np.arange(len(c))[:, None]).ravel()  # increasing: those of context k lie in k … k + 1

    def directions(self, u: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """φ at the quantiles u of the contexts k (of the law to a power), and the weights that make up for it."""
        at = np.clip(np.searchsorted(self.ends, u + k), k * self.BINS, (k + 1) * self.BINS - 1)
        low = np.where(at % self.BINS, self.ends[at - 1], k)
        share = (u + k - low) / np.maximum(self.ends[at] - low, 1e-300)
        angle = 2.0 * np.pi * (at % self.BINS + np.clip(share, 0.0, 1.0)) / self.BINS - np.pi
        return self.heading[k] + angle, self.ratio[at]

    def draw(self, v: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """r and φ of unit points v, of the contexts k."""
        phi, _ = self.directions(v[:, 1], k)
        most = self.law.step.cdf(polygon.reach(self.law.edges, self.c[k], phi[:, None])[:, 0])
        return self.law.step.quantile(v[:, 0] * most), phi


def _polar(step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.hypot(step[:, 0], step[:, 1]), np.arctan2(step[:, 1], step[:, 0])


def _headings(turn: AngleLaw, obs: Observations) -> tuple[np.ndarray, np.ndarray]:
    """The direction that angles are counted from, and whether there is one, for every observation."""
    if not turn.needs_heading:
        return np.zeros(obs.n), np.ones(obs.n, dtype=bool)
    if obs.lags < 2:
        raise InputError(
            "A law of turns needs the heading of the previous step: make the observations with transitions(…, lags=2), "
            "or use turn='uniform' or turn='heading'."
        )
    r, heading = _polar(obs.previous(1) - obs.previous(2))
    return heading, r > 0.0
