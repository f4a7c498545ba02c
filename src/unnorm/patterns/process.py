"""The fitted process, and patterns drawn from it: Poisson by thinning, Gibbs by birth–death–move chains."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from .._base.numerics import Rng, generator, whole
from ..domains.base import Domain
from ..errors import EstimationError, InputError, UnnormWarning
from .interactions.base import Energy
from .metropolis import run
from .pattern import Pattern
from .places import Places

if TYPE_CHECKING:
    from .result import PatternFit

BATCH = 20_000  # steps between looks at the chain
SWEEPS = 200  # steps for each expected point before the first pattern
LEAST = 50_000
MARGIN = 1.05  # over the largest log intensity found
MOST = 5_000_000  # points of a pattern
DRIFT = 4.0  # standard errors between the halves of the trace of n that are a sign of no convergence yet


@final
@dataclass(frozen=True, eq=False)
class Process:
    """A Poisson or Gibbs process with the fitted coefficients, in the windows of the data."""

    fit: PatternFit

    def __repr__(self) -> str:
        what = "Poisson" if self.fit.poisson else repr(self.fit.fitted.model.interaction)
        return f"Process({what}, log λ = {self.fit.fitted.model.terms})"

    def log_trend(self, places: Places) -> np.ndarray:
        """log λ(u | ∅): what does not depend on other points."""
        fitted = self.fit.fitted
        return fitted.log_intensity(fitted.model.alone(fitted.pattern, places)) if places.n else np.zeros(0)

    def simulate(self, n: int = 1, rng: Rng = None) -> list[Pattern]:
        """n independent patterns (Poisson), or n states of one long chain, many steps for each point apart (Gibbs)."""
        count, rng = whole(n, "The number of patterns", 1), generator(rng)
        pattern = self.fit.pattern
        parts: list[list[Places]] = [[] for _ in range(count)]
        for code in range(pattern.replicates):
            drawn = self._poisson(code, count, rng) if self.fit.poisson else self._gibbs(code, count, rng)
            for k, one in enumerate(drawn):
                parts[k].append(one)
        return [pattern.with_places(Places.joined(one)) for one in parts]

    def _top(self, code: int, rng: np.random.Generator) -> float:
        """A bound of the log trend: the largest of many places, and a little more."""
        pattern = self.fit.pattern
        here = pattern.places.take(pattern.places.replicate == code)
        places = Places.joined(
            [
                here,
                *(Places.of(pattern.windows[code].uniform(20_000, rng), mark, code) for mark in range(pattern.types)),
            ]
        )
        return float(self.log_trend(places).max()) + np.log(MARGIN)

    def _poisson(self, code: int, count: int, rng: np.random.Generator) -> list[Places]:
        pattern, window = self.fit.pattern, self.fit.pattern.windows[code]
        top = self._top(code, rng)
        size = np.exp(top) * window.volume * pattern.types
        if not size < MOST:
            raise InputError(
                f"Thinning would propose {size:.3g} points, more than {MOST:,}: the intensity is too peaked."
            )
        out = []
        for _ in range(count):
            m = int(rng.poisson(size))
            places = Places.of(window.uniform(m, rng), rng.integers(0, pattern.types, m), code)
            log_lambda = self.log_trend(places)
            if m and log_lambda.max() > top:
                raise EstimationError(
                    "The intensity is larger somewhere than the bound that thinning found: try another rng."
                )
            out.append(places.take(np.log(rng.random(m)) < log_lambda - top))
        return out

    def _gibbs(self, code: int, count: int, rng: np.random.Generator) -> list[Places]:
        fitted, pattern = self.fit.fitted, self.fit.pattern
        interaction = fitted.model.interaction
        assert interaction is not None
        phi = np.array([self.fit.theta[name] for name in fitted.model.statistics])
        if not interaction.stable(phi):
            raise InputError(
                f"There is no process with {interaction!r} and these coefficients: points would attract each other "
                "without end. Fit un.Geyer or un.AreaInteraction, which saturate."
            )
        chain = Chain.of(self, code, interaction.energy(pattern, phi), rng)
        expected = max(20, int(np.sum(pattern.places.replicate == code)))
        chain.advance(max(LEAST, SWEEPS * expected))
        chain.look()
        out = [chain.places()]
        for _ in range(count - 1):
            chain.advance(max(LEAST // 10, SWEEPS * expected // 2))
            out.append(chain.places())
        return out


@final
class Chain:
    """A birth–death–move chain in one window; `trace` has the number of points after every step."""

    def __init__(self, process: Process, code: int, law: Energy, window: Domain, rng: np.random.Generator) -> None:
        self.process, self.code, self.law, self.window, self.rng = process, code, law, window, rng
        pattern = process.fit.pattern
        start = pattern.places.take(pattern.places.replicate == code)
        self.n = start.n
        self.state = self._roomy(start, max(64, 2 * start.n))
        self.trace: list[np.ndarray] = []
        self.grid = self._grid()
        self.law_arrays = (law.kind, float(law.reach) ** 2, law.breaks, law.steps, law.numbers)

    @classmethod
    def of(cls, process: Process, code: int, law: Energy, rng: np.random.Generator) -> Chain:
        return cls(process, code, law, process.fit.pattern.windows[code], rng)

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
        low, high = (np.asarray(one, dtype=np.float64) for one in self.window.enclosing_box)
        periodic = self.process.fit.fitted.model.correction == "periodic"
        nx, ny = (int(np.clip((high - low)[k] / self.law.reach, 1, 500)) for k in (0, 1))
        side = (high - low) / (nx, ny)
        return low, side, nx, ny, (high - low) if periodic else np.zeros(2)

    def advance(self, steps: int) -> None:
        """That many steps, in batches."""
        pattern = self.process.fit.pattern
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
            if found < 0:  # more room, and the batch once more from where it began
                if len(kept[0]) > MOST:
                    raise EstimationError(f"The simulated pattern has more than {MOST:,} points: the process explodes.")
                self.state = [np.concatenate([one, np.zeros_like(one)]) for one in kept]
                found = self._run(proposals, uniforms, log_size, trace)
                if found < 0:
                    raise EstimationError("The simulated pattern grows without end: the process explodes.")
            self.n = int(found)
            self.trace.append(trace)
            left -= b

    def _run(self, proposals: np.ndarray, uniforms: np.ndarray, log_size: float, trace: np.ndarray) -> int:
        x, y, mark, trend = self.state
        return run(x, y, mark, trend, self.n, proposals, uniforms, log_size, self.grid, self.law_arrays, trace)

    def look(self) -> None:
        """Warn where the number of points still drifts: the halves of the second half of the trace differ."""
        trace = np.concatenate(self.trace)
        trace = trace[len(trace) // 2 :]
        blocks = trace[: len(trace) // 20 * 20].reshape(20, -1).mean(axis=1)
        first, second = blocks[:10], blocks[10:]
        se = np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 10) + 1e-12
        if abs(first.mean() - second.mean()) > DRIFT * se and abs(first.mean() - second.mean()) > 0.05 * trace.mean():
            warnings.warn(
                f"The simulated number of points still drifts, from {first.mean():.1f} to {second.mean():.1f}: the "
                "chain may not have converged.",
                UnnormWarning,
                stacklevel=2,
            )

    def places(self) -> Places:
        x, y, mark, _ = (one[: self.n].copy() for one in self.state)
        return Places(np.column_stack([x, y]), mark, np.full(self.n, self.code))
