"""One draw of y from p(y|x) ∝ exp f(y|x) for each of many contexts, on any domain.

- Finite domains: enumeration, exact.
- Domains with one coordinate (intervals, circles): inverse of the distribution function of a log-linear table, which is
  refined until its total variation error is below `TOLERANCE`.
- Other domains of up to three coordinates, and wherever a bound of f is given: rejection from the uniform law. A bound
  that is not given is searched for in every context, and every proposal is checked against it.
- Bits with too many states, where f̂ has change statistics: Gibbs sweeps (gibbs_draws.py), checked by their starts.
- What is left (many coordinates, too many states, acceptance too rare): sampling–importance–resampling, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np

from ..data.observations import Observations
from ..domains.base import Domain, Quadrature
from ..errors import EstimationError, InputError, warn
from ..references.base import BoundReference
from .density import ROWS_AT_ONCE, Density
from .gibbs_draws import gibbs_draws

TOLERANCE = 1e-5  # total variation between the table and the density: invisible below 10¹⁰ draws
FIRST_CELLS, MOST_CELLS = 256, 2**14
SEARCH, ROUNDS, STARTS, TRIALS = 1024, 10, 4, 32  # the search for the largest f in each context
MARGIN = float(np.log(1.05))  # an estimated bound is 5 % above the largest density found
MOST_COORDINATES = 3  # with more, a search for the largest f covers too little of Ω
LEAST_ACCEPTED = 2e-4  # of the proposals; below this rejection is hopeless
CANDIDATES = 4000  # for each draw by resampling
LOWEST = -690.0  # log of the smallest density kept, relative to the largest: exp of it is still a float

Proposal = Callable[[Observations], BoundReference]


@final
class Drawer:
    """y ~ exp f(·|x) / Z(x), one for each observation's context. Refined tables are kept between calls.

    Args:
        density: f.
        rng: where randomness comes from.
        bound: an upper bound of f over Ω and all contexts, for rejection; None to have one estimated.
        proposal: contexts → the reference to resample from; None for the uniform law.
    """

    def __init__(
        self, density: Density, rng: np.random.Generator, bound: float | None = None, proposal: Proposal | None = None
    ) -> None:
        if bound is not None and not np.isfinite(bound):
            raise InputError(f"bound must be a finite number, an upper bound of f; got {bound!r}.")
        self._density, self._domain, self._rng = density, density.domain, rng
        self._bound, self._proposal = bound, proposal
        self._cells = FIRST_CELLS
        self._warned = False
        self.error = 0.0  # largest total variation error of the tables used
        self._rule = _states(self._domain)
        self.method = self._choose()

    def _choose(self) -> str:
        if self._rule is not None:
            return "enumeration"
        if self._bound is not None:
            return "rejection"
        if self._domain.free is not None and self._density.sweeps:
            return "gibbs"
        if self._domain.finite or self._domain.cube_dim > MOST_COORDINATES:
            return "resampling"
        return "inverse" if self._domain.cube_dim == 1 else "rejection"

    def __call__(self, contexts: Observations) -> np.ndarray:
        """(n, d): one draw for each of the n observations' contexts (their outcomes are not read)."""
        first, of = self._density.contexts(contexts)
        draw = {
            "enumeration": self._enumerate,
            "inverse": self._invert,
            "rejection": self._reject,
            "gibbs": self._sweep,
            "resampling": self._resample,
        }[self.method]
        return self._domain.wrap(draw(contexts, first, of))

    def _f(self, contexts: Observations, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        f = self._density.log_f(contexts, y, rows)
        bad = np.isnan(f) | (f == np.inf)
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"f must be finite or −∞ on {self._domain!r}; it is {f[i]} at {int(bad.sum()):,} of {len(f):,} points, "
                f"the first y = {y[i].tolist()}."
            )
        return f

    def _table(self, contexts: Observations, nodes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(len(rows), len(nodes)) values of f, less the largest of each row."""
        f = self._f(contexts, np.tile(nodes, (len(rows), 1)), np.repeat(rows, len(nodes))).reshape(len(rows), -1)
        top = f.max(axis=1, keepdims=True)
        if not np.isfinite(top).all():
            raise InputError(f"f is −∞ on all of {self._domain!r} in some context: there is nothing to draw.")
        return np.maximum(f - top, LOWEST)

    def _enumerate(self, contexts: Observations, first: np.ndarray, of: np.ndarray) -> np.ndarray:
        rule = self._rule
        assert rule is not None
        log_w = np.log(rule.weights)
        out = np.empty((contexts.n, self._domain.dim))
        for begin, end in _blocks(len(first), len(rule.points)):
            p = np.exp(self._table(contexts, rule.points, first[begin:end]) + log_w)
            who = np.flatnonzero((of >= begin) & (of < end))
            cell, _ = _inverse(p, of[who] - begin, self._rng.random(len(who)))
            out[who] = rule.points[cell]
        return out

    def _sweep(self, contexts: Observations, first: np.ndarray, of: np.ndarray) -> np.ndarray:
        y, doubt = gibbs_draws(self._density, contexts, self._rng)
        if doubt is not None:
            self._warn(doubt)
        return y

    def _invert(self, contexts: Observations, first: np.ndarray, of: np.ndarray) -> np.ndarray:
        out = np.empty((contexts.n, self._domain.dim))
        for begin, end in _blocks(len(first), self._cells):
            f, mass, error = self._refined(contexts, first[begin:end])
            self.error = max(self.error, error)
            who = np.flatnonzero((of >= begin) & (of < end))
            row = of[who] - begin
            cell, left = _inverse(mass, row, self._rng.random(len(who)))
            slope = f[row, cell + 1] - f[row, cell]
            out[who] = self._domain.from_unit(np.clip((cell + _within(left, slope)) / mass.shape[1], 0, 1)[:, None])
        return out

    def _refined(self, contexts: Observations, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """f at the edges of the cells, their masses, and the error; the cells are halved until it is small enough."""
        while True:
            edges = self._domain.from_unit(np.linspace(0.0, 1.0, self._cells + 1)[:, None])
            f = self._table(contexts, edges, rows)
            mass, coarse = _masses(f), _masses(f[:, ::2])
            mass /= mass.sum(axis=1, keepdims=True)
            coarse /= coarse.sum(axis=1, keepdims=True)
            pairs = mass[:, ::2] + mass[:, 1::2]
            # The error of a log-linear table falls as the square of the cell's width: a third of the change is left.
            error = float(np.max(0.5 * np.abs(pairs - coarse).sum(axis=1))) / 3
            if error <= TOLERANCE or self._cells >= MOST_CELLS:
                break
            self._cells *= 2
        if error > 100 * TOLERANCE:
            self._warn(
                f"The density changes too fast for a table of {self._cells:,} cells: draws are off by {error:.1g} in "
                "total variation. Pass bound= (an upper bound of f) to draw by rejection."
            )
        return f, mass, error

    def _reject(self, contexts: Observations, first: np.ndarray, of: np.ndarray) -> np.ndarray:
        if self._bound is not None:
            top, accepted = np.full(len(first), self._bound), np.full(len(first), 0.05)
        else:
            top, accepted = self._search(contexts, first)
            if accepted.min() < LEAST_ACCEPTED:
                hard = accepted[of] < LEAST_ACCEPTED
                out = np.empty((contexts.n, self._domain.dim))
                out[hard] = self._resample(contexts, first, of, np.flatnonzero(hard))
                easy = np.flatnonzero(~hard)
                out[easy] = self._proposed(contexts, first, of, easy, top, accepted)
                return out
        return self._proposed(contexts, first, of, np.arange(contexts.n), top, accepted)

    def _search(self, contexts: Observations, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The largest f found in each context plus a margin, and the share of uniform proposals it would accept."""
        d = self._domain.cube_dim
        lattice = _lattice(SEARCH, d)
        nodes = self._domain.from_unit(lattice)
        random = np.random.default_rng(0)  # a search, not a simulation: its own stream
        top, accepted = np.empty(len(rows)), np.empty(len(rows))
        for begin, end in _blocks(len(rows), SEARCH):
            here = rows[begin:end]
            f = self._f(contexts, np.tile(nodes, (len(here), 1)), np.repeat(here, SEARCH)).reshape(len(here), -1)
            best = np.argsort(-f, axis=1, kind="stable")[:, :STARTS]
            u, value = lattice[best], np.take_along_axis(f, best, axis=1)  # (c, STARTS, d), (c, STARTS)
            for step in 2.0 * SEARCH ** (-1.0 / d) * 0.5 ** np.arange(ROUNDS):
                noise = random.uniform(-step, step, (len(here), STARTS, TRIALS, d))
                near = np.clip(u[:, :, None] + noise, 0.0, 1.0).reshape(len(here), -1, d)
                y = self._domain.from_unit(near.reshape(-1, d))
                new = self._f(contexts, y, np.repeat(here, STARTS * TRIALS)).reshape(len(here), -1)
                u, value = np.concatenate([u, near], axis=1), np.concatenate([value, new], axis=1)
                best = np.argsort(-value, axis=1, kind="stable")[:, :STARTS]
                u, value = np.take_along_axis(u, best[:, :, None], axis=1), np.take_along_axis(value, best, axis=1)
            top[begin:end] = value[:, 0] + MARGIN
            accepted[begin:end] = np.exp(f - top[begin:end, None]).mean(axis=1)
        return top, accepted

    def _proposed(
        self,
        contexts: Observations,
        first: np.ndarray,
        of: np.ndarray,
        waiting: np.ndarray,
        top: np.ndarray,
        accepted: np.ndarray,
    ) -> np.ndarray:
        """Uniform proposals, kept with probability exp(f − top)."""
        out = np.empty((contexts.n, self._domain.dim))
        wanted, proposed = waiting, 0
        share = float(np.mean(accepted[of[waiting]])) if len(waiting) else 1.0
        while len(waiting):
            tries = int(np.clip(np.ceil(1.0 / share), 1, max(1, ROWS_AT_ONCE // len(waiting))))
            who = np.repeat(waiting, tries)[:ROWS_AT_ONCE]
            y = self._domain.uniform(len(who), self._rng)
            f = self._f(contexts, y, first[of[who]])
            self._check(y, f, top[of[who]])
            keep = np.log(self._rng.random(len(who))) < f - top[of[who]]
            settled, chosen = np.unique(who[keep], return_index=True)
            out[settled] = y[keep][chosen]
            waiting = np.setdiff1d(waiting, settled, assume_unique=True)
            proposed += len(who)
            share = max(0.5 * (share + float(keep.mean())), LEAST_ACCEPTED / 10)
            if proposed * LEAST_ACCEPTED / 10 > 100 + len(wanted):
                raise EstimationError(
                    f"Rejection accepts too little: {len(wanted) - len(waiting):,} of {len(wanted):,} draws after "
                    f"{proposed:,} proposals. Pass a lower bound= (no larger than the largest f), or leave it out."
                )
        return out[wanted] if len(wanted) < contexts.n else out

    def _check(self, y: np.ndarray, f: np.ndarray, top: np.ndarray) -> None:
        worst = int(np.argmax(f - top))
        if f[worst] <= top[worst] + 1e-9:  # rounding may exceed a bound that is the maximum itself
            return
        found = f"f = {f[worst]:.6g} at y = {y[worst].tolist()}"
        remedy = f"Pass bound={f[worst] + 0.1:.6g} or more, which f must nowhere exceed."
        if self._bound is None:
            raise EstimationError(f"The estimated bound of f, {top[worst]:.6g}, is too low: {found}. {remedy}")
        raise InputError(f"bound={self._bound:.6g} is not a bound of f: {found}. {remedy}")

    def _resample(
        self, contexts: Observations, first: np.ndarray, of: np.ndarray, only: np.ndarray | None = None
    ) -> np.ndarray:
        """Each draw is picked from many candidates by their importance weights."""
        q = None if self._proposal is None else self._proposal(contexts)
        wanted = np.arange(contexts.n) if only is None else only
        out = np.empty((len(wanted), self._domain.dim))
        effective = np.inf
        for begin, end in _blocks(len(wanted), CANDIDATES):
            rows = np.repeat(first[of[wanted[begin:end]]], CANDIDATES)
            if q is None:
                y, log_q = self._domain.uniform(len(rows), self._rng), -self._domain.log_volume
            else:
                y = q.sample(contexts, rows, self._rng)
                log_q = q.log_density(y, contexts, rows)
            w = (self._f(contexts, y, rows) - log_q).reshape(end - begin, CANDIDATES)
            w = np.exp(w - w.max(axis=1, keepdims=True))
            effective = min(effective, float(np.min(w.sum(axis=1) ** 2 / (w**2).sum(axis=1))))
            pick, _ = _inverse(w, np.arange(end - begin), self._rng.random(end - begin))
            out[begin:end] = y.reshape(end - begin, CANDIDATES, -1)[np.arange(end - begin), pick]
        name = "the uniform law" if q is None else q.describe()
        self._warn(
            f"Draws on {self._domain!r} are approximate: each is resampled from {CANDIDATES:,} candidates of {name}, "
            f"{effective:.0f} of them effective at the worst. Pass bound= (an upper bound of f) to draw by rejection."
        )
        return out

    def _warn(self, sentence: str) -> None:
        if not self._warned:
            warn(sentence, stacklevel=6)
        self._warned = True


def _states(domain: Domain) -> Quadrature | None:
    """The states of a finite domain where they can be listed."""
    if not domain.finite:
        return None
    try:
        return domain.quadrature()
    except InputError:  # too many
        return None


def _blocks(total: int, each: int) -> Iterator[tuple[int, int]]:
    length = max(1, ROWS_AT_ONCE // max(each, 1))
    for begin in range(0, total, length):
        yield begin, min(begin + length, total)


def _inverse(mass: np.ndarray, row: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For uniform numbers v, the cell that each picks in its row of masses, and where in that cell, in [0, 1]."""
    edges = np.cumsum(mass, axis=1)
    total = edges[:, -1:]
    edges = edges / total
    edges[:, -1] = 1.0
    flat = (edges + np.arange(len(edges))[:, None]).ravel()  # one increasing list: row r lies in (r, r + 1]
    position = np.clip(np.searchsorted(flat, v + row, side="right"), row * mass.shape[1], (row + 1) * mass.shape[1] - 1)
    cell = position - row * mass.shape[1]
    before = np.where(cell > 0, edges[row, np.maximum(cell - 1, 0)], 0.0)
    share = edges[row, cell] - before
    return cell, np.clip((v - before) / np.maximum(share, 1e-300), 0.0, 1.0)


def _masses(f: np.ndarray) -> np.ndarray:
    """∫ over each cell of the function that is log-linear between its edges: h e^a (e^δ − 1)/δ."""
    a, delta = f[:, :-1], np.diff(f, axis=1)
    small = np.abs(delta) < 1e-6
    safe = np.where(small, 1.0, delta)
    return np.exp(a) * np.where(small, 1 + 0.5 * delta, np.expm1(safe) / safe) / delta.shape[1]


def _within(v: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Where in its cell a log-linear density of that slope has mass v to the left: log(1 + v (e^δ − 1))/δ."""
    small = np.abs(slope) < 1e-6
    safe = np.where(small, 1.0, slope)
    up = safe > 0  # mirrored, so that e^δ does not overflow
    w = np.where(up, 1 - v, v)
    t = np.log1p(w * np.expm1(-np.abs(safe))) / -np.abs(safe)
    return np.where(small, v, np.where(up, 1 - t, t))


def _lattice(n: int, d: int) -> np.ndarray:
    """n points of the additive recurrence with powers of the generalised golden ratio (Roberts 2018)."""
    g = 1.5
    for _ in range(60):
        g = (1.0 + g) ** (1.0 / (d + 1))
    return (0.5 + np.outer(np.arange(1, n + 1), g ** -np.arange(1.0, d + 1.0))) % 1.0


def reference_on(domain: Domain, description: Any) -> Proposal | None:
    """The reference of a fit, saved or not, as a proposal; None where there is none, or only in the user's code."""
    from ..errors import UnnormError
    from ..references import from_dict
    from ..references.by_window import bound

    if not description:
        return None
    try:
        reference = from_dict(description)
    except UnnormError:
        return None
    return lambda contexts: bound(reference, domain, contexts)
