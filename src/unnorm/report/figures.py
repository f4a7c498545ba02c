"""The report's figures, as SVG in data URIs: white cards that read the same in dark and light, on paper and offline."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..domains.base import Domain
from ..engine.gam_effects import coordinates
from .run import GROUP, Run

BLUE, GREY, ORANGE, INK = "#1f5fa8", "#9a9a9a", "#c2571a", "#222222"
_RC: dict[Any, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "unnorm",  # the same figure twice is the same file
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "path.simplify_threshold": 0.3,
}
_SIDES = {-np.pi: "−π\nleft", -np.pi / 2: "−π/2\ndown", 0.0: "0\nright", np.pi / 2: "π/2\nup", np.pi: "π\nleft"}


@dataclass(frozen=True)
class Picture:
    """One figure: its image as a data URI, the text for those who do not see it, and a caption."""

    uri: str
    alt: str
    caption: str


def draw(
    paint: Callable[..., None],
    alt: str,
    caption: str,
    size: tuple[float, float] = (3.9, 3.1),
    grid: tuple[int, int] = (1, 1),
) -> Picture:
    """A figure, painted on its axes and encoded; no state of pyplot is touched."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_RC):
        figure = Figure(figsize=size, layout="constrained", facecolor="white")
        FigureCanvasSVG(figure)
        paint(*figure.subplots(*grid, squeeze=False).flat)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", dpi=110, metadata={"Date": None})
    return Picture("data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii"), alt, caption)


def label_axes(ax: Any, x: str, y: str, title: str = "") -> None:
    """Labels taken as they are: a name with dollar signs is no formula."""
    ax.set_xlabel(x, parse_math=False)
    ax.set_ylabel(y, parse_math=False)
    if title:
        ax.set_title(title, parse_math=False)


def covariates_of(run: Run, label: str) -> tuple[str, ...]:
    """What the term is a function of: not its `by`."""
    part = run.main.smooths
    assert part is not None
    return coordinates(part.term(label))


def corners(domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    """The two corners of the window's bounding box."""
    return np.asarray(domain.lower), np.asarray(domain.upper)  # pyright: ignore[reportAttributeAccessIssue]


# --- effects ---------------------------------------------------------------------------------------------------------


def effects(run: Run) -> list[Picture]:
    """A picture for each term: levels in grey, the group in blue with its band, the plain mean dashed."""
    pictures = []
    for label in run.labels:
        names = covariates_of(run, label)
        if len(names) > 2 or not _numeric(run, label):
            continue
        who = f"{len(run.fits)} levels of {run.by} in grey, the group in blue" if run.fits else "in blue"
        if len(names) == 1:
            alt = f"Effect {label} on the log density, {who}. {_in_words(run, label)}"
            pictures.append(draw(partial(effect_curve, run, label), alt, label))
        else:
            alt = f"Map of the effect {label} on the log density of the {'group' if run.fits else 'model'}."
            pictures.append(draw(partial(_effect_map, run, label), alt, label))
    return pictures


def _numeric(run: Run, label: str) -> bool:
    table = run.effect(label, next(iter(run.everything)))
    return all(np.asarray(table[name]).dtype.kind in "fi" for name in covariates_of(run, label))


def effect_curve(run: Run, label: str, ax: Any) -> None:
    (name,) = covariates_of(run, label)
    for i, which in enumerate(run.fits):
        table = run.effect(label, which)
        who = f"each {run.by}" if i == 0 else None
        ax.plot(table[name], table["estimate"], color=GREY, lw=0.7, alpha=0.8, label=who)
    if run.mean is not None:
        table = run.mean(label)
        ax.plot(table[name], table["estimate"], color=INK, lw=1.0, ls=(0, (4, 3)), label="plain mean", zorder=4)
    if run.group is not None:
        table = run.effect(label, GROUP)
        ax.fill_between(table[name], table["lower"], table["upper"], color=BLUE, alpha=0.25, lw=0, zorder=3)
        ax.plot(table[name], table["estimate"], color=BLUE, lw=1.8, label="group", zorder=5)
    ax.axhline(0.0, color="#bbbbbb", lw=0.6, zorder=0)
    label_axes(ax, name, "effect on log density")
    if run.fits:
        for text in ax.legend(frameon=False, fontsize=7, loc="best").get_texts():
            text.set_parse_math(False)
    if name in ("angle", "turn"):
        direction_ticks(ax, words=name == "angle")


def direction_ticks(ax: Any, words: bool = True) -> None:
    ax.set_xticks(list(_SIDES), [text if words else text.partition("\n")[0] for text in _SIDES.values()])
    ax.set_xlim(-np.pi, np.pi)


def _effect_map(run: Run, label: str, ax: Any) -> None:
    first, second = covariates_of(run, label)
    table = run.effect(label, next(iter(run.everything)))
    u, v = np.unique(table[first]), np.unique(table[second])
    if u.size * v.size != len(table["estimate"]):
        ax.text(0.5, 0.5, "see effects.csv", ha="center", transform=ax.transAxes)
        return
    z = np.asarray(table["estimate"]).reshape(u.size, v.size).T
    _mesh(ax, u, v, z, None)
    label_axes(ax, first, second)
    if run.model.y_down and second.startswith("y"):
        ax.invert_yaxis()


def _in_words(run: Run, label: str) -> str:
    (name,) = covariates_of(run, label)
    table = run.effect(label, next(iter(run.everything)))
    x, f = np.asarray(table[name], dtype=float), table["estimate"]
    high, low = int(np.argmax(f)), int(np.argmin(f))
    return f"It is highest, {f[high]:.2f}, at {x[high]:.3g} and lowest, {f[low]:.2f}, at {x[low]:.3g}."


# --- maps ------------------------------------------------------------------------------------------------------------

Image = tuple[np.ndarray, np.ndarray, np.ndarray]  # x, y, z (len(y), len(x))


def _mesh(ax: Any, x: np.ndarray, y: np.ndarray, z: np.ndarray, limits: tuple[float, float] | None) -> None:
    """An image with its colour bar; around zero where no limits are given."""
    bound = float(np.nanmax(np.abs(z))) or 1.0
    low, high = (-bound, bound) if limits is None else limits
    colours = "RdBu_r" if limits is None else "viridis"
    mesh = ax.pcolormesh(x, y, z, cmap=colours, vmin=low, vmax=high, shading="nearest", rasterized=True)
    bar = ax.figure.colorbar(mesh, cax=ax.inset_axes((1.03, 0.0, 0.045, 1.0)))  # as high as the map itself
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)


def plane(domain: Domain, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Axes of cells over the window's bounding box, the cells' centres (N, 2), and which of them lie inside."""
    lower, upper = corners(domain)
    size = upper - lower
    height = int(np.clip(round(width * float(size[1] / size[0])), 2, 4 * width))
    x = lower[0] + size[0] * (np.arange(width) + 0.5) / width
    y = lower[1] + size[1] * (np.arange(height) + 0.5) / height
    points = np.column_stack([a.ravel() for a in np.meshgrid(x, y)])
    return x, y, points, domain.contains(points)


def surface(x: np.ndarray, y: np.ndarray, inside: np.ndarray, values: np.ndarray) -> Image:
    """Values at the points inside as an image, NaN elsewhere."""
    z = np.full(inside.size, np.nan)
    z[inside] = values
    return x, y, z.reshape(y.size, x.size)


def image(run: Run, shown: Image, limits: tuple[float, float] | None, alt: str, caption: str) -> Picture:
    """An image over the window."""

    def paint(ax: Any) -> None:
        _mesh(ax, *shown, limits)
        _frame(run, ax)

    lower, upper = corners(run.model.domain)
    tall = float(np.clip(2.8 * (upper - lower)[1] / (upper - lower)[0] + 0.65, 1.6, 6.0))  # no empty paper around a map
    return draw(paint, alt, caption, (3.9, tall))


def _frame(run: Run, ax: Any) -> None:
    label_axes(ax, *run.obs.outcome_names)
    ax.set_aspect("equal")
    if run.model.y_down:
        ax.invert_yaxis()


# --- observed against simulated --------------------------------------------------------------------------------------

Steps = dict[str, np.ndarray]  # step, angle, x, y


def shares(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.histogram(values, edges)[0] / max(len(values), 1)


def compared(run: Run, observed: Steps, simulated: Steps) -> list[Picture]:
    """Step lengths, directions, and heat maps of points, observed and simulated."""
    longest = max(float(np.quantile(one["step"], 0.999)) for one in (observed, simulated)) or 1.0
    pictures = []
    for name, edges, what in (
        ("step", np.linspace(0, longest, 41), "Step lengths"),
        ("angle", np.linspace(-np.pi, np.pi, 37), "Directions"),
    ):
        here = {"observed": shares(observed[name], edges), "simulated": shares(simulated[name], edges)}
        gap = 100 * 0.5 * float(np.abs(here["observed"] - here["simulated"]).sum())
        middle = (
            f"median {np.median(observed[name]):.4g} observed, {np.median(simulated[name]):.4g} simulated; "
            if name == "step"
            else ""
        )
        caption = f"{what}: {middle}{gap:.2g} % of steps would have to move for the histograms to agree."
        pictures.append(draw(partial(_histograms, name, edges, here), f"Histograms. {caption}", caption))
    lower, upper = corners(run.model.domain)
    cells = [np.linspace(lower[j], upper[j], n + 1) for j, n in ((0, 32), (1, 24))]
    centres = [(c[1:] + c[:-1]) / 2 for c in cells]
    heat = [100 * np.histogram2d(one["x"], one["y"], bins=cells)[0].T / len(one["x"]) for one in (observed, simulated)]
    limits = (0.0, max(float(h.max()) for h in heat))
    for h, who in zip(heat, ("observed", "simulated")):
        j, i = np.unravel_index(int(np.argmax(h)), h.shape)
        caption = f"Points, {who}: % of points in each cell."
        alt = f"Heat map. {caption} The fullest cell, {h[j, i]:.2g} %, is at {centres[0][i]:.0f}, {centres[1][j]:.0f}."
        pictures.append(image(run, (centres[0], centres[1], h), limits, alt, caption))
    return pictures


def _histograms(name: str, edges: np.ndarray, heights: dict[str, np.ndarray], ax: Any) -> None:
    for (who, h), colour in zip(heights.items(), (INK, ORANGE)):
        ax.stairs(h, edges, color=colour, lw=1.4, label=who)
    label_axes(ax, name, "share of steps")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False, fontsize=8)
    if name == "angle":
        direction_ticks(ax)


def scanpaths(run: Run, paths: Sequence[np.ndarray], who: str, colour: str) -> Picture:
    """Four scanpaths, points joined by lines."""

    def paint(*axes: Any) -> None:
        for ax, path in zip(axes, paths):
            scanpath(ax, path, colour)
            window(ax, run)
        for ax in axes[len(paths) :]:
            ax.set_visible(False)

    lengths = [len(path) for path in paths]
    alt = f"{len(paths)} {who} scanpaths of {min(lengths)} to {max(lengths)} points."
    return draw(paint, alt, f"Scanpaths, {who}; a ring marks the first point.", grid=(2, 2))


def scanpath(ax: Any, path: np.ndarray, colour: str) -> None:
    """One path; the first point ringed."""
    ax.plot(path[:, 0], path[:, 1], "-", color="#777777", lw=0.7)
    ax.plot(path[:, 0], path[:, 1], ".", color=colour, ms=5)
    ax.plot(path[:1, 0], path[:1, 1], "o", mfc="none", mec=INK, ms=7, mew=0.9)


def window(ax: Any, run: Run) -> None:
    """The window as a bare frame."""
    lower, upper = corners(run.model.domain)
    ax.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]), xticks=[], yticks=[])
    ax.spines[:].set_visible(True)
    ax.set_aspect("equal")
    if run.model.y_down:
        ax.invert_yaxis()
