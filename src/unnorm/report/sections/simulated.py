"""Observed scanpaths against simulated ones that start where they start and are as long."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...data.observations import Observations
from ...data.placing import window_codes
from ...domains.base import Domain
from ...results.planar import box_around
from ...results.simulation import held_columns
from .. import figures
from ..analysis import Analysis
from ..curves import histogram_chart
from ..figures import BLUE, INK, ORANGE, draw, image, label_axes
from ..interactive import charted
from ..page import Picture, Section

MOST_STEPS = 10_000  # simulated for the comparison
LONGEST = 50  # longer sequences are compared in pieces
SHOWN = 4  # scanpaths drawn

Steps = dict[str, np.ndarray]  # step, angle, x, y


def section(analysis: Analysis) -> Section:
    obs, lags = analysis.obs, analysis.obs.lags
    paths, first, length = simulate_like(analysis)
    here, there = _observed(analysis), _steps(analysis, paths)
    typical = np.argsort(np.abs(length - np.median(length)), kind="stable")[:SHOWN]
    real = [np.vstack([obs.previous()[first[i]], obs.outcome[first[i] : first[i] + length[i]]]) for i in typical]
    domain = analysis.model.domain
    windows = [domain.windows[code] for code in window_codes(domain, obs)[first[typical]]]
    text = (
        f"{len(here['step']):,} observed steps against {len(there['step']):,} simulated from the "
        f"{'group' if analysis.fits else 'fitted model'}, from the same starting points and as long."
    )
    pictures = (
        *_histogram_pictures(analysis, here, there),
        *_heat_maps(analysis, here, there),
        _scanpaths(analysis, real, windows, "observed", BLUE),
        _scanpaths(analysis, [paths[i][lags - 1 :] for i in typical], windows, "simulated", ORANGE),
    )
    return Section((text,), pictures, pairs=True)


def simulate_like(analysis: Analysis) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Chains from the main fit, the first transition of the observed piece that each copies, and its length."""
    if "simulated" not in analysis.kept:
        analysis.kept["simulated"] = _simulate_like(analysis)
    return analysis.kept["simulated"]


def _simulate_like(analysis: Analysis) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    obs = analysis.obs
    first, length = _pieces(obs)
    random = np.random.default_rng(analysis.seed)
    order = random.permutation(len(first))
    chosen = np.sort(order[: max(1, int(np.searchsorted(np.cumsum(length[order]), MOST_STEPS)))])
    first, length = first[chosen], length[chosen]
    starts = np.stack([obs.previous(lag)[first] for lag in range(obs.lags, 0, -1)], axis=1)
    held = held_columns(analysis.model, obs, first)
    table = analysis.main.simulate(int(length.max()), x0=starts, x=held, rng=random)
    points = np.column_stack([np.asarray(table[name], dtype=float) for name in obs.outcome_names])
    points = points.reshape(len(first), obs.lags + int(length.max()), 2)
    return [path[: obs.lags + n] for path, n in zip(points, length)], first, length


def _pieces(obs: Observations) -> tuple[np.ndarray, np.ndarray]:
    """First transitions of pieces of sequences, and the pieces' lengths."""
    begin = np.flatnonzero(np.concatenate([[True], ~goes_on(obs)]))  # also after points that were dropped
    place = np.arange(obs.n) - np.repeat(begin, np.diff(begin, append=obs.n))
    first = np.flatnonzero(place % LONGEST == 0)
    return first, np.diff(first, append=obs.n)


def goes_on(obs: Observations) -> np.ndarray:
    """(n − 1,) whether each transition begins where the one before it ended, in the same sequence."""
    same = True if obs.sequence is None else np.diff(obs.sequence) == 0
    return same & np.all(obs.previous()[1:] == obs.outcome[:-1], axis=1)


def _observed(analysis: Analysis) -> Steps:
    obs = analysis.obs
    steps = dict(analysis.model.covariates(obs).values(("step", "angle"), obs))
    return {**steps, "x": obs.outcome[:, 0], "y": obs.outcome[:, 1]}


def _steps(analysis: Analysis, paths: Sequence[np.ndarray]) -> Steps:
    lags = analysis.obs.lags
    sign = -1.0 if analysis.model.y_down else 1.0
    moves = np.concatenate([np.diff(path[lags - 1 :], axis=0) for path in paths])
    after = np.concatenate([path[lags:] for path in paths])
    return {
        "step": np.hypot(moves[:, 0], moves[:, 1]),
        "angle": np.arctan2(sign * moves[:, 1], moves[:, 0]),
        "x": after[:, 0],
        "y": after[:, 1],
    }


def _histogram_pictures(analysis: Analysis, observed: Steps, simulated: Steps) -> list[Picture]:
    """Step lengths and directions."""
    longest = max(float(np.quantile(one["step"], 0.999)) for one in (observed, simulated)) or 1.0
    pictures = []
    for name, edges, what in (
        ("step", np.linspace(0, longest, 41), "Step lengths"),
        ("angle", np.linspace(-np.pi, np.pi, 37), "Directions"),
    ):
        both = {"observed": _shares(observed[name], edges), "simulated": _shares(simulated[name], edges)}
        moved = 100 * 0.5 * float(np.abs(both["observed"] - both["simulated"]).sum())
        middle = (
            f"median {np.median(observed[name]):.4g} observed, {np.median(simulated[name]):.4g} simulated; "
            if name == "step"
            else ""
        )
        caption = f"{what}: {middle}{moved:.2g} % of steps would have to move for the histograms to agree."
        picture = draw(partial(_histograms, analysis.named(name), edges, both), f"Histograms. {caption}", caption)
        pictures.append(charted(picture, histogram_chart(analysis, name, edges, both)))
    return pictures


def _shares(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    values = values[~np.isnan(values)]  # a step of length zero has no direction
    return np.histogram(values, edges)[0] / max(len(values), 1)


def _histograms(name: str, edges: np.ndarray, heights: dict[str, np.ndarray], ax: Any) -> None:
    for (who, h), colour in zip(heights.items(), (INK, ORANGE)):
        ax.stairs(h, edges, color=colour, lw=1.4, label=who)
    label_axes(ax, name, "share of steps")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False, fontsize=8)
    if name == "angle":
        figures.direction_ticks(ax)


def _heat_maps(analysis: Analysis, observed: Steps, simulated: Steps) -> list[Picture]:
    lower, upper = box_around(analysis.model.domain)
    cells = [np.linspace(lower[j], upper[j], n + 1) for j, n in ((0, 32), (1, 24))]
    centres = [(c[1:] + c[:-1]) / 2 for c in cells]
    heat = [100 * np.histogram2d(one["x"], one["y"], bins=cells)[0].T / len(one["x"]) for one in (observed, simulated)]
    limits = (0.0, max(float(h.max()) for h in heat))
    pictures = []
    for h, who in zip(heat, ("observed", "simulated")):
        j, i = np.unravel_index(int(np.argmax(h)), h.shape)
        caption = f"Points, {who}: % of points in each cell."
        alt = f"Heat map. {caption} The fullest cell, {h[j, i]:.2g} %, is at {centres[0][i]:.0f}, {centres[1][j]:.0f}."
        pictures.append(image(analysis, (centres[0], centres[1], h), limits, alt, caption, "% of points"))
    return pictures


def _scanpaths(
    analysis: Analysis, paths: Sequence[np.ndarray], windows: Sequence[Domain], who: str, colour: str
) -> Picture:
    """A few scanpaths, each in its window, points joined by lines, the first one ringed."""

    def paint(*axes: Any) -> None:
        for ax, path, own in zip(axes, paths, windows):
            ax.plot(path[:, 0], path[:, 1], "-", color="#777777", lw=0.7)
            ax.plot(path[:, 0], path[:, 1], ".", color=colour, ms=5)
            ax.plot(path[:1, 0], path[:1, 1], "o", mfc="none", mec=INK, ms=7, mew=0.9)
            figures.window(ax, analysis, own)
        for ax in axes[len(paths) :]:
            ax.set_visible(False)

    lengths = [len(path) for path in paths]
    alt = f"{len(paths)} {who} scanpaths of {min(lengths)} to {max(lengths)} points."
    return draw(paint, alt, f"Scanpaths, {who}; a ring marks the first point.", grid=(2, 2))
