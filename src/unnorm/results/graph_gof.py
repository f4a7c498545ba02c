"""Goodness of fit of graphs (Hunter, Goodreau & Handcock 2008): properties that were not fitted, observed and
simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .._base.numerics import Rng, generator, whole
from ..errors import CombinationError, InputError, unknown, warn
from ..models.batching import tree_take
from ..models.graphs import GraphStatistics
from ..models.graphs.counts import counts
from .fit import NO_MODEL, Fit

BURN, THIN = 20, 5  # sweeps from the data to the first draw, and from draw to draw
UNLIKE = 0.05  # of the observed ties, or gaps: with fewer, simulated graphs count as empty, or complete
DEGENERATE = (
    "The model is degenerate at its estimate: simulated graphs are all but {what} ({simulated:.1%} of dyads tied, "
    "observed {observed:.1%}), so that it describes no graph like the data. Use gwesp(0.25) and gwdegree(0.5) in place "
    "of triangle, ttriple and kstar."
)


@final
@dataclass(frozen=True, eq=False)
class Compared:
    """One property: observed counts by level, summed over graphs, and those of each simulation."""

    levels: tuple[str, ...]
    observed: np.ndarray  # (L,)
    simulated: np.ndarray  # (draws, L)

    @property
    def p(self) -> np.ndarray:
        """(L,) two-sided Monte Carlo p-values, twice the smaller tail; the data count as a draw: none is 0."""
        m = len(self.simulated)
        below = (1 + np.sum(self.simulated <= self.observed, axis=0)) / (m + 1)
        above = (1 + np.sum(self.simulated >= self.observed, axis=0)) / (m + 1)
        return np.minimum(1.0, 2 * np.minimum(below, above))

    @property
    def overall(self) -> float:
        """The Monte Carlo p-value of Mahalanobis' distance of the data from data and simulations together.

        Centre and covariance come from all of them alike: those of the simulations alone would fit the simulations
        better than the data. A ridge of levels / simulations keeps the covariance away from singularity.
        """
        every = np.vstack([self.observed, self.simulated]).astype(np.float64)
        spread = every.std(axis=0)
        if not spread.any():
            return 1.0
        away = (every - every.mean(axis=0))[:, spread > 0] / spread[spread > 0]
        N, L = away.shape
        V = away.T @ away / N + L / N * np.eye(L)
        distance = np.einsum("ij,ij->i", away, np.linalg.solve(V, away.T).T)
        return float(np.mean(distance >= distance[0] * (1 - 1e-9)))


@final
@dataclass(frozen=True, eq=False)
class GraphGof:
    """Observed and simulated degrees, shared partners, distances, triads and statistics."""

    parts: Mapping[str, Compared]
    draws: int
    graphs: int
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Compared:
        if name not in self.parts:
            raise InputError(unknown("The property", name, self.parts))
        return self.parts[name]

    def table(self, name: str) -> dict[str, np.ndarray]:
        """level, observed, mean, min and max of the simulations, and the p-value, for levels that occur."""
        one = self[name]
        seen = (one.observed != 0) | (one.simulated != 0).any(axis=0)
        columns = {
            "level": np.array(one.levels),
            "observed": one.observed,
            "mean": one.simulated.mean(axis=0),
            "min": one.simulated.min(axis=0),
            "max": one.simulated.max(axis=0),
            "p": one.p,
        }
        return {key: value[seen] for key, value in columns.items()}

    def summary(self) -> str:
        """The tables as a text."""
        lines = [f"Goodness of fit: {self.draws:,} simulations of {self.graphs:,} graph(s)"]
        for name, one in self.parts.items():
            lines += ["", f"{name} (all levels: p = {one.overall:.3g})"]
            lines.append(f"{'':<16} {'observed':>10} {'mean':>10} {'min':>10} {'max':>10} {'p':>7}")
            rows = zip(*self.table(name).values())
            lines += [f"{v!s:<16} {o:>10.5g} {m:>10.5g} {a:>10.5g} {b:>10.5g} {p:>7.3g}" for v, o, m, a, b, p in rows]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def __str__(self) -> str:
        return self.summary()

    def plot(self) -> Any:
        """One panel for each property: boxes of the simulations, a line for the data. Returns (Figure, axes)."""
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(2, -(-len(self.parts) // 2), figsize=(13, 8), layout="constrained", squeeze=False)
        for ax, (name, one) in zip(axes.flat, self.parts.items()):
            _panel(ax, name, one)
        for ax in axes.flat[len(self.parts) :]:
            ax.set_axis_off()
        return figure, axes


def _panel(ax: Any, name: str, one: Compared) -> None:
    seen = np.flatnonzero((one.observed != 0) | (one.simulated != 0).any(axis=0))
    simulated, observed = one.simulated[:, seen].astype(float), one.observed[seen].astype(float)
    if name == "statistics":  # in their own units: standardised
        mean, sd = simulated.mean(axis=0), simulated.std(axis=0)
        sd = np.where(sd > 0, sd, 1.0)
        simulated, observed = (simulated - mean) / sd, (observed - mean) / sd
    at = np.arange(len(seen))
    quiet = {"color": "0.45", "linewidth": 0.8}
    ax.boxplot(
        simulated, positions=at, widths=0.6, whis=(2.5, 97.5), showfliers=False, boxprops=quiet, whiskerprops=quiet,
        capprops=quiet, medianprops={"color": "0.3"}, manage_ticks=False,
    )  # fmt: skip
    ax.plot(at, observed, color="tab:red", marker="o", markersize=3, linewidth=1.2)
    words = max(len(one.levels[k]) for k in seen) > 2
    shown = at if words else np.unique(np.r_[at[:: max(1, len(at) // 8)], at[-1]])
    ax.set_xticks(shown, [one.levels[seen[k]] for k in shown], rotation=90 if words else 0, fontsize=8)
    if name != "statistics" and observed.max() > 30 * np.median(observed[observed > 0]):
        ax.set_yscale("symlog", linthresh=1.0)
        ax.set_ylim(0, None)
    ax.set_title(name)
    ax.set_ylabel("sd from the mean" if name == "statistics" else "number")


def graph_gof(fit: Fit, draws: int = 100, rng: Rng = None) -> GraphGof:
    """Compare fitted graphs with simulations, each in the context of the observed graph before it.

    Args:
        fit: of a `GraphStatistics` model, by any objective.
        draws: simulations of every graph.
        rng: seed or generator.

    Example:
        >>> import numpy as np, unnorm as un
        >>> A = np.zeros((6, 6), int); A[[0, 0, 1, 2, 3, 4], [1, 2, 2, 3, 4, 5]] = 1
        >>> model = un.GraphStatistics("edges", omega := un.Graphs(6))
        >>> gof = un.graph_gof(un.fit(model, un.networks(A + A.T, omega)), rng=1)
        >>> gof["degree"].observed.tolist()
        [0, 1, 4, 1, 0, 0]
    """
    model, obs = fit.model, fit.obs
    if model is None:
        raise InputError(NO_MODEL)
    if not isinstance(model, GraphStatistics):
        raise CombinationError(f"graph_gof takes fits of un.GraphStatistics; got one of {type(model).__name__}.")
    if obs is None:
        raise InputError("graph_gof needs the observations, which a loaded fit does not have: fit again.")
    whole(draws, "draws", least=20)
    graphs, statistics = simulated_graphs(model, obs, fit.estimate, draws, generator(rng))
    parts = {"statistics": Compared(model.names, observed_statistics(model, obs), statistics)}
    A, B = model.domain.adjacency(obs.outcome), model.domain.adjacency(graphs)
    for name, (levels, count) in counts(model.domain.directed, model.domain.n).items():
        here = np.sum([count(one) for one in A], axis=0)
        there = np.stack([np.sum([count(B[t, m]) for t in range(len(B))], axis=0) for m in range(draws)])
        parts[name] = Compared(levels, here, there)
    return GraphGof(parts, draws, obs.n, _notes(model, obs, graphs))


def simulated_graphs(
    model: GraphStatistics, obs: Any, theta: np.ndarray, draws: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(T, draws, d) graphs, each in the context of its observation, and (draws, p) statistics summed over them.

    Ties that are missing in the data are drawn with the others, and count as absent afterwards, as they do in the data.
    """
    at = np.arange(obs.n)
    free, arguments = ~model.held_bits(obs, at), model.arguments(obs, at)
    missing = np.zeros_like(free) if obs.masks is None else obs.masks.missing & free
    graphs = np.repeat(obs.outcome[:, None], draws, axis=1)
    total = np.zeros((draws, model.size))
    for t, (chain, mask) in enumerate(zip(model.chains(obs, at), free)):
        F = int(mask.sum())
        drawn = chain.sample(theta, mask, (BURN * F, THIN * F), draws, rng, keep=True)
        graphs[t][:, mask] = drawn.kept
        if missing[t].any():
            graphs[t][:, missing[t]] = 0.0
            total += model.statistics_at(graphs[t], tree_take(arguments, np.full(draws, t)))
        else:
            total += drawn.statistics
    return graphs, total


def observed_statistics(model: GraphStatistics, obs: Any) -> np.ndarray:
    """(p,) summed over graphs."""
    return np.sum([chain.statistics for chain in model.chains(obs, np.arange(obs.n))], axis=0)


def _notes(model: GraphStatistics, obs: Any, graphs: np.ndarray) -> tuple[str, ...]:
    free = ~model.held_bits(obs, np.arange(obs.n))
    observed, there = float(obs.outcome[free].mean()), float(graphs.swapaxes(1, 2)[free].mean())
    notes = []
    if obs.masks is not None and obs.masks.missing.any():
        notes.append("Missing ties count as absent in the data and in the simulations alike.")
    if not UNLIKE * observed <= there <= 1 - UNLIKE * (1 - observed):
        what = "empty" if there < observed else "complete"
        note = DEGENERATE.format(what=what, simulated=there, observed=observed)
        warn(note, stacklevel=3)
        notes.append(note)
    return tuple(notes)
