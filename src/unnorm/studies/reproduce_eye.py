"""Section 4.2 and Appendix C: the paper's figures of eye movements, drawn again.

A scanpath; the effects of direction, distance and centrality, subjects in grey and the group in blue; and five
replicates of the direction effect with fresh reference points, each with its 95 % band. The paper's data (Kienzle
et al.) are not public: the bundled simulated scanpaths stand in, or any table with the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from .._base.atomic import whole_file
from ..data.observations import Observations, transitions
from ..domains import Box
from ..errors import hush
from ..groups import FitGroup, fit_each
from ..models import Additive
from ..models.normalisers import Smooth
from ..objectives import Logistic
from ..references import IID, Lattice, Uniform

TERMS = "s(angle, bs='cc', k=20) + s(step, k=10) + s(dcenter, k=40)"  # Appendix C
NORMALISER = "s(x_prev, y_prev, k=40)"
WINDOW = (800.0, 600.0)
REPLICATES = 5
STEPS = ("group and subjects", *(f"replicate {r + 1} of {REPLICATES}" for r in range(REPLICATES)))
COLOURS = ("#1f5fa8", "#c2571a", "#2e8540", "#8a3ffc", "#b8860b")
GREY, BLUE, RED, INK = "#9a9a9a", "#1f5fa8", "#c0392b", "#222222"


@final
@dataclass(frozen=True)
class Eye:
    """The fits behind the figures."""

    obs: Observations
    each: FitGroup  # on the settings of the library: lattice points
    replicates: tuple[FitGroup, ...]  # on the paper's: independent uniform points, 20 for each

    def monte_carlo(self, label: str = "s(angle)") -> np.ndarray:
        """For each level, sd over the replicates of the effect as a share of its standard error (rms over the grid)."""
        shares = []
        for level in self.replicates[0].levels:
            tables = [one.effect(label, level) for one in self.replicates if level in one.fits]
            spread = np.std([np.asarray(table["estimate"]) for table in tables], axis=0, ddof=1)
            se = np.mean([np.asarray(table["se"]) for table in tables], axis=0)
            shares.append(np.sqrt(np.mean(spread**2) / np.mean(se**2)))
        return np.array(shares)


def observations(table: Mapping[str, np.ndarray]) -> Observations:
    """Transitions of a table with the columns subject, image, fix, x, y, in pixels."""
    return transitions(table, y=("x", "y"), order="fix", group=("subject", "image"))


def afresh(name: str, make: Callable[[], FitGroup]) -> FitGroup:
    """A stage that is not kept."""
    return make()


def run(
    table: Mapping[str, np.ndarray],
    seed: int = 1,
    k: int = 20,
    step: Callable[[str], Any] = nullcontext,
    kept: Callable[[str, Callable[[], FitGroup]], FitGroup] = afresh,
) -> Eye:
    """Fit everything. `step(name)` is a context for progress, one for each of `STEPS`; `kept(name, make)` gives the
    fits of a stage, from an earlier run or made now."""
    obs = observations(table)
    model = Additive(TERMS, Box((0.0, WINDOW[0]), (0.0, WINDOW[1])), y_down=True)
    chi = Smooth(NORMALISER, smoothing="reml")  # as in the paper
    first, *others = STEPS
    replicates = []
    with hush("The constants of"):  # that the paper's constants are smoothed too much is in the fits' notes
        with step(first):
            own = Logistic(Uniform(), per_point=k, points=Lattice())
            each = kept("subjects", lambda: fit_each(model, obs, "subject", own, chi, rng=seed))
        for r, name in enumerate(others):
            with step(name):
                paper = Logistic(Uniform(), per_point=k, points=IID())
                make = partial(fit_each, model, obs, "subject", paper, chi, rng=seed + 1 + r, group=False)
                replicates.append(kept(f"replicate-{r + 1}", make))
    return Eye(obs, each, tuple(replicates))


def draw(eye: Eye, folder: Path) -> list[Path]:
    """scanpath, effects and replicates as .png and .svg."""
    paths = []
    for name, paint in (("scanpath", _scanpath), ("effects", _effects), ("replicates", _replicates)):
        figure = paint(eye)
        for suffix in (".png", ".svg"):
            with whole_file(folder / f"{name}{suffix}") as scratch:
                figure.savefig(scratch, dpi=150)
            paths.append(folder / f"{name}{suffix}")
    return paths


def _figure(size: tuple[float, float]) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _scanpath(eye: Eye) -> Any:
    """The longest sequence: points in red, joined by lines."""
    obs = eye.obs
    assert obs.sequence is not None
    longest = int(np.argmax(np.bincount(obs.sequence)))
    rows = np.flatnonzero(obs.sequence == longest)
    path = np.vstack([obs.previous()[rows[0]], obs.outcome[rows]])
    figure = _figure((4.8, 3.7))
    ax = figure.subplots()
    ax.plot(path[:, 0], path[:, 1], "-", color="#555555", lw=0.8)
    ax.plot(path[:, 0], path[:, 1], "o", color=RED, ms=5)
    ax.set(xlim=(0, WINDOW[0]), ylim=(WINDOW[1], 0), xlabel="x (pixels)", ylabel="y (pixels)")
    ax.set_aspect("equal")
    return figure


def _ticks(ax: Any) -> None:
    ax.set_xticks(np.arange(-2, 3) * np.pi / 2, ["−π", "−π/2", "0", "π/2", "π"])
    ax.set_xlim(-np.pi, np.pi)


def _effects(eye: Eye) -> Any:
    """The three effects: subjects grey, group blue with its band, plain mean dashed."""
    figure = _figure((11, 3.4))
    titles = {"s(angle)": "saccade angle", "s(step)": "distance to previous fixation", "s(dcenter)": "centrality bias"}
    for ax, (label, title) in zip(figure.subplots(1, 3), titles.items()):
        name = label[2:-1]
        for level in eye.each.levels:
            table = eye.each.effect(label, level)
            ax.plot(table[name], table["estimate"], color=GREY, lw=0.8)
        mean = eye.each.effect(label, "mean")
        ax.plot(mean[name], mean["estimate"], color=INK, lw=1.0, ls="--", label="plain mean")
        if eye.each.group is not None:
            table = eye.each.effect(label)
            ax.fill_between(table[name], table["lower"], table["upper"], color=BLUE, alpha=0.25, lw=0)
            ax.plot(table[name], table["estimate"], color=BLUE, lw=2.0, label="group (joint fit)")
        ax.set(title=title, xlabel=name, ylabel="effect on log density")
        if name == "angle":
            _ticks(ax)
            ax.legend(frameon=False, fontsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def _replicates(eye: Eye) -> Any:
    """A panel for each subject: the direction effect of five replicates, each with its band."""
    levels = eye.replicates[0].levels
    columns = min(5, len(levels))
    rows = -(-len(levels) // columns)
    figure = _figure((2.2 * columns, 1.9 * rows + 0.3))
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for ax, level in zip(axes.flat, levels):
        for one, colour in zip(eye.replicates, COLOURS):
            if level not in one.fits:
                continue
            table = one.effect("s(angle)", level)
            ax.fill_between(table["angle"], table["lower"], table["upper"], color=colour, alpha=0.12, lw=0)
            ax.plot(table["angle"], table["estimate"], color=colour, lw=0.9)
        ax.set_title(f"subject {level}", fontsize=8, parse_math=False)
        ax.spines[["top", "right"]].set_visible(False)
        _ticks(ax)
    for ax in axes.flat[len(levels) :]:
        ax.set_visible(False)
    return figure
