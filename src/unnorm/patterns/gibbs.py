"""The fitted process, and patterns drawn from it: Poisson by thinning, Gibbs by birth–death–move chains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np

from .._base.numerics import Rng, floats, generator, whole
from ..domains.base import Domain
from ..errors import EstimationError, InputError, listing, unknown, warn
from .interactions.base import Energy, Interaction
from .metropolis import run
from .places import Places
from .point_pattern import Pattern

BATCH = 20_000  # steps between looks at the chain
ROUND = 20  # steps for each point between looks at whether the chain has settled
LEAST = 2_000  # steps of a round
FEWEST_ROUNDS, MOST_ROUNDS = 5, 50
APART = 3.0  # autocorrelation times of the number of points between patterns, within these steps for each point:
NEAREST, FARTHEST = 20, 200
LOOKED = 20_000  # places at which a bound of the intensity is sought
MARGIN = 1.05  # over the largest log intensity found
MOST = 5_000_000  # points that thinning proposes
EXPLODED = 30  # times as many points as the data, or the trend alone, would have
LEAST_ROOM = 1000
DRIFT, SMALL = 3.0, 0.03  # standard errors, and share of n, between quarters of the trace of n that are a sign of drift


@final
@dataclass(frozen=True, eq=False, repr=False)
class Process:
    """A Poisson or Gibbs process with known coefficients: λ(u | x) = exp{trend(u) + φᵀt(u, x∖u)}."""

    pattern: Pattern  # windows and types; a chain starts from its points
    trend: Callable[[Places], np.ndarray]  # log λ(u | ∅)
    interaction: Interaction | None = None
    phi: tuple[float, ...] = ()
    periodic: bool = False
    words: str = "a function of places"  # the trend's

    def __repr__(self) -> str:
        what = "Poisson" if self.interaction is None else f"{self.interaction!r}, φ = {np.round(self.phi, 6).tolist()}"
        return f"Process({what}; log trend: {self.words})"

    def log_trend(self, places: Places) -> np.ndarray:
        """log λ(u | ∅): what does not depend on other points."""
        return self.trend(places) if places.n else np.zeros(0)

    def simulate(self, n: int = 1, rng: Rng = None) -> list[Pattern]:
        """n independent patterns (Poisson), or n states of one long chain, some autocorrelation times apart (Gibbs)."""
        count, rng = whole(n, "The number of patterns", 1), generator(rng)
        pattern = self.pattern
        parts: list[list[Places]] = [[] for _ in range(count)]
        for code in range(pattern.replicates):
            drawn = self._poisson(code, count, rng) if self.interaction is None else self._gibbs(code, count, rng)
            for k, one in enumerate(drawn):
                parts[k].append(one)
        return [pattern.with_places(Places.joined(one)) for one in parts]

    def _top(self, code: int, rng: np.random.Generator) -> float:
        """A bound of the log trend: the largest of many places, and a little more."""
        pattern = self.pattern
        here = pattern.places.take(pattern.places.replicate == code)
        places = Places.joined(
            [
                here,
                *(Places.of(pattern.windows[code].uniform(LOOKED, rng), mark, code) for mark in range(pattern.types)),
            ]
        )
        return float(self.log_trend(places).max()) + np.log(MARGIN)

    def _poisson(self, code: int, count: int, rng: np.random.Generator) -> list[Places]:
        pattern, window = self.pattern, self.pattern.windows[code]
        top = self._top(code, rng)
        size = np.exp(top) * window.volume * pattern.types
        if not size < MOST:
            raise InputError(
                f"Thinning would propose {size:.3g} points, more than {MOST:,}: the intensity is too high, or too "
                "peaked. Check its unit: points for each unit of area."
            )
        out = []
        for _ in range(count):
            m = int(rng.poisson(size))
            places = Places.of(window.uniform(m, rng), rng.integers(0, pattern.types, m), code)
            log_lambda = self.log_trend(places)
            if m and log_lambda.max() > top:
                x, y = places.xy[int(np.argmax(log_lambda))]
                raise InputError(
                    f"The log intensity is {log_lambda.max():.4g} at ({x:.6g}, {y:.6g}), above {top:.4g}, the largest "
                    f"at {LOOKED:,} other places: a sharp peak, or a pole whose integral may be infinite. Bound it: "
                    "np.minimum(log_trend, …)."
                )
            out.append(places.take(np.log(rng.random(m)) < log_lambda - top))
        return out

    def _gibbs(self, code: int, count: int, rng: np.random.Generator) -> list[Places]:
        pattern, interaction, phi = self.pattern, self.interaction, np.array(self.phi)
        assert interaction is not None
        if not interaction.stable(phi):
            raise InputError(
                f"There is no process with {interaction!r} and these coefficients: points would attract each other "
                "without end. Fit un.Geyer or un.AreaInteraction, which saturate."
            )
        window = pattern.windows[code]
        alone = self.log_trend(Places.of(window.uniform(2000, rng), rng.integers(0, pattern.types, 2000), code))
        poisson = min(float(np.mean(np.exp(alone)) * window.volume * pattern.types), 1e5)
        expected = max(20, round(poisson), int(np.sum(pattern.places.replicate == code)))
        chain = Chain(self, code, interaction.energy(pattern, phi), expected, rng)
        chain.settle()
        out, apart = [chain.places()], chain.apart()
        for _ in range(count - 1):
            chain.advance(apart)
            out.append(chain.places())
        return out


@final
class Chain:
    """A birth–death–move chain in one window; `trace` has the number of points after every step."""

    def __init__(self, process: Process, code: int, law: Energy, usual: int, rng: np.random.Generator) -> None:
        self.process, self.code, self.law, self.rng = process, code, law, rng
        self.window = process.pattern.windows[code]
        pattern = process.pattern
        start = pattern.places.take(pattern.places.replicate == code)
        self.n, self.usual = start.n, usual
        self.state = self._roomy(start, max(64, 2 * start.n))
        self.trace: list[np.ndarray] = []
        self.grid = self._grid()

    def _roomy(self, places: Places, room: int) -> list[np.ndarray]:
        trend = self.process.log_trend(places)
        arrays = (places.xy[:, 0], places.xy[:, 1], places.mark, trend)
        out = []
        for one in arrays:
            full = np.zeros(room, dtype=one.dtype)
            full[: len(one)] = one
            out.append(full)
        return out

    def _grid(self) -> tuple[Any, ...]:
        assert self.window.enclosing_box is not None
        low, high = (np.array(one, dtype=np.float64) for one in self.window.enclosing_box)
        nx, ny = (int(np.clip((high - low)[k] / self.law.reach, 1, 500)) for k in (0, 1))
        side = (high - low) / (nx, ny)
        return low, side, nx, ny, (high - low) if self.process.periodic else np.zeros(2)

    def advance(self, steps: int) -> None:
        """That many steps, in batches."""
        pattern = self.process.pattern
        log_size = float(np.log(self.window.volume * pattern.types))
        left = steps
        while left > 0:
            b = min(BATCH, left)
            places = Places.of(self.window.uniform(b, self.rng), self.rng.integers(0, pattern.types, b), self.code)
            proposals = np.column_stack([places.xy, places.mark, self.process.log_trend(places)])
            uniforms = self.rng.random((b, 3))
            trace = np.empty(b)
            kept = [one.copy() for one in self.state]
            found = self._run(proposals, uniforms, log_size, trace)
            while found < 0:  # more room, and the batch once more from where it began
                if len(kept[0]) > EXPLODED * max(self.usual, LEAST_ROOM):
                    raise EstimationError(f"The simulated pattern has more than {len(kept[0]):,} points: it explodes.")
                kept = [np.concatenate([one, np.zeros_like(one)]) for one in kept]
                self.state = [one.copy() for one in kept]
                found = self._run(proposals, uniforms, log_size, trace)
            self.n = int(found)
            self.trace.append(trace)
            left -= b

    def _run(self, proposals: np.ndarray, uniforms: np.ndarray, log_size: float, trace: np.ndarray) -> int:
        return run(self.state, self.n, (proposals, uniforms), log_size, self.grid, self.law, trace)

    def settle(self) -> None:
        """Rounds of steps until the number of points no longer drifts; a warning where it still does at the end."""
        drift = None
        for k in range(MOST_ROUNDS):
            self.advance(max(LEAST, ROUND * self.n))
            if k + 1 >= FEWEST_ROUNDS:
                drift = self._drift()
                if drift is None:
                    return
        assert drift is not None
        warn(
            f"The simulated number of points still drifts, from {drift[0]:.1f} to {drift[1]:.1f}: the chain may not "
            "have converged.",
            stacklevel=2,
        )

    def _late(self) -> np.ndarray:
        """(20, B) the second half of the trace, in blocks."""
        trace = np.concatenate(self.trace)
        trace = trace[len(trace) // 2 :]
        return trace[: len(trace) // 20 * 20].reshape(20, -1)

    def _drift(self) -> tuple[float, float] | None:
        """The means of n in the third and fourth quarter of the trace, where they differ; None where they do not."""
        means = self._late().mean(axis=1)
        first, second = means[:10], means[10:]
        se = np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 10) + 1e-12
        step = abs(first.mean() - second.mean())
        moved = step > DRIFT * se and step > SMALL * max(means.mean(), 1.0)
        return (float(first.mean()), float(second.mean())) if moved else None

    def apart(self) -> int:
        """Steps between patterns: a few autocorrelation times of n, from the variance of block means."""
        blocks = self._late()
        spread = float(blocks.var())
        time = blocks.shape[1] * float(blocks.mean(axis=1).var(ddof=1)) / spread if spread else 0.0
        n = max(float(blocks.mean()), 1.0)
        return max(LEAST, int(np.clip(APART * time, NEAREST * n, FARTHEST * n)))

    def places(self) -> Places:
        x, y, mark, _ = (one[: self.n].copy() for one in self.state)
        return Places(np.column_stack([x, y]), mark, np.full(self.n, self.code))


Trend = float | Callable[[np.ndarray], np.ndarray]


def process(
    window: Domain,
    log_trend: Trend | Mapping[Any, Trend],
    interaction: Interaction | None = None,
    phi: Sequence[float] = (),
    correction: Literal["none", "periodic"] = "none",
) -> Process:
    """A process with given coefficients, to simulate from.

    Args:
        window: where.
        log_trend: log λ where no other point is near: a number, or a function of (N, 2) places; of several types of
            points a mapping from each type to its own, {"on": 4.0, "off": 4.5}.
        interaction: between points; None for a Poisson process.
        phi: its coefficients: log γ of `un.Strauss`.
        correction: "periodic" joins the sides of a rectangle.

    >>> import numpy as np, unnorm as un
    >>> strauss = un.patterns.process(un.Box((0, 1), (0, 1)), np.log(100), un.Strauss(0.05), [np.log(0.2)])
    >>> 40 < strauss.simulate(rng=1)[0].n < 95
    True
    """
    if not isinstance(window, Domain) or window.edges is None:
        raise InputError(
            f"window must be a region of the plane, un.Window(…) or un.Box((0, 4), (0, 3)); got {window!r}."
        )
    if correction not in ("none", "periodic"):
        raise InputError(unknown("correction of a process", correction, ("none", "periodic")))
    if correction == "periodic" and window.sides is None:
        raise InputError("correction='periodic' joins the sides of a rectangle, and this window is none.")
    empty = Pattern(Places.of(np.zeros((0, 2))), ("x", "y"), (window,))
    trends: list[Any] = [log_trend]
    if isinstance(log_trend, Mapping):
        empty, trends = replace(empty, mark_name="type", mark_levels=tuple(log_trend)), list(log_trend.values())
    if not trends:
        raise InputError("log_trend must name one or more types of points; it is empty.")
    coefficients = tuple(floats(phi, "phi").ravel().tolist())
    if interaction is not None:
        interaction.check(empty)
        names = interaction.names(empty)
        if len(coefficients) != len(names):
            raise InputError(
                f"{interaction!r} has {len(names)} coefficients ({listing(names)}); phi has {len(coefficients)}."
            )
    parts = [_checked(one) for one in trends]

    def trend(places: Places) -> np.ndarray:
        values = np.empty(places.n)
        for mark, part in enumerate(parts):
            here = places.mark == mark
            values[here] = part(places.xy[here])
        return values

    constant = [f"{float(one):.6g}" for one in trends if not callable(one)]
    words = ", ".join(constant) if len(constant) == len(trends) else "a function of places"
    return Process(empty, trend, interaction, coefficients, correction == "periodic", words)


def _checked(log_trend: Any) -> Callable[[np.ndarray], np.ndarray]:
    """A trend as a function of places that refuses what is no log intensity."""
    constant = np.zeros(()) if callable(log_trend) else floats(log_trend, "log_trend")
    if constant.ndim:
        raise InputError(f"log_trend must be a number or a function of places; got an array of shape {constant.shape}.")

    def values(xy: np.ndarray) -> np.ndarray:
        found = log_trend(xy) if callable(log_trend) else np.full(len(xy), float(constant))
        found = np.asarray(found, dtype=np.float64)
        if found.shape != (len(xy),):
            raise InputError("log_trend must give a number for each of N places, an array of shape (N,).")
        wrong = np.flatnonzero(np.isnan(found) | (found == np.inf))
        if wrong.size:
            x, y = xy[wrong[0]]
            raise InputError(
                f"log_trend is {found[wrong[0]]} at ({x:.6g}, {y:.6g}): the log intensity must be finite, or −∞ where "
                "there are no points."
            )
        return found

    return values
