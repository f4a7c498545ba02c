"""The report's figures, as SVG in data URIs: white cards that read the same in dark and light, on paper and offline."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..domains.base import Domain
from .run import GROUP, Run

BLUE, GREY, ORANGE, INK = "#1f5fa8", "#9a9a9a", "#c2571a", "#222222"
_RC = {
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
    wide: bool = True


def draw(
    size: tuple[float, float], grid: tuple[int, int], paint: Callable[[Any, Any], None], alt: str, caption: str
) -> Picture:
    """A figure of rows × columns panels, painted and encoded; no state of pyplot is touched."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_RC):
        figure = Figure(figsize=size, layout="constrained", facecolor="white")
        FigureCanvasSVG(figure)
        paint(figure, figure.subplots(*grid, squeeze=False))
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
    part = run.main.smooths
    assert part is not None
    return part.term(label).covariates


def corners(domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    """The two corners of the window's bounding box."""
    return np.asarray(domain.lower), np.asarray(domain.upper)  # pyright: ignore[reportAttributeAccessIssue]


# --- effects ---------------------------------------------------------------------------------------------------------


def effects(run: Run) -> Picture | None:
    """A panel for each term: levels in grey, the group in blue with its band, the plain mean dashed."""
    curves = [label for label in run.labels if len(covariates_of(run, label)) == 1]
    maps = [label for label in run.labels if len(covariates_of(run, label)) == 2]
    shown = [label for label in (*curves, *maps) if _numeric(run, label)]
    if not shown:
        return None
    columns = min(len(shown), 3)
    rows = -(-len(shown) // columns)

    def paint(figure: Any, axes: Any) -> None:
        for ax, label in zip(axes.flat, shown):
            (effect_curve if label in curves else _effect_map)(run, label, ax)
        for ax in axes.flat[len(shown) :]:
            ax.set_visible(False)
        handles, names = axes.flat[0].get_legend_handles_labels()
        if len(names) > 1:
            figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False, fontsize=8)

    who = f"{len(run.fits)} levels of {run.by} in grey, the group in blue" if run.fits else "the pooled model in blue"
    alt = f"Effects of {', '.join(shown)} on the log density, {who}. " + " ".join(
        _in_words(run, label) for label in curves
    )
    band = f"{100 * run.level:g} % pointwise bands"
    mean = (
        " The group is the main effect of a joint fit, its band that of the population's mean; dashed, the plain mean of "
        "the separate fits, whose smoothing bias does not average out."
        if run.mean is not None and run.group is not None
        else ""
    )
    return draw(
        (3.3 * columns + 0.2, 2.9 * rows + 0.3), (rows, columns), paint, alt, f"Estimated effects, {band}.{mean}"
    )


def _numeric(run: Run, label: str) -> bool:
    table = run.effect(label, next(iter(run.everything)))
    return all(np.asarray(table[name]).dtype.kind in "fi" for name in covariates_of(run, label))


def effect_curve(run: Run, label: str, ax: Any) -> None:
    (name,) = covariates_of(run, label)
    for i, which in enumerate(run.fits):
        table = run.effect(label, which)
        ax.plot(
            table[name], table["estimate"], color=GREY, lw=0.7, alpha=0.8, label=f"each {run.by}" if i == 0 else None
        )
    if run.mean is not None:
        table = run.mean(label)
        ax.plot(table[name], table["estimate"], color=INK, lw=1.0, ls=(0, (4, 3)), label="plain mean", zorder=4)
    if run.group is not None:
        table = run.effect(label, GROUP)
        ax.fill_between(table[name], table["lower"], table["upper"], color=BLUE, alpha=0.25, lw=0, zorder=3)
        ax.plot(table[name], table["estimate"], color=BLUE, lw=1.8, label="group" if run.fits else "estimate", zorder=5)
    ax.axhline(0.0, color="#bbbbbb", lw=0.6, zorder=0)
    label_axes(ax, name, "effect on log density", label)
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
    _mesh(ax, u, v, z, diverging=True)
    label_axes(ax, first, second, label)
    if run.model.y_down and second.startswith("y"):
        ax.invert_yaxis()


def _in_words(run: Run, label: str) -> str:
    (name,) = covariates_of(run, label)
    table = run.effect(label, next(iter(run.everything)))
    x, f = np.asarray(table[name], dtype=float), table["estimate"]
    high, low = int(np.argmax(f)), int(np.argmin(f))
    return f"{label} is highest, {f[high]:.2f}, at {x[high]:.3g} and lowest, {f[low]:.2f}, at {x[low]:.3g}."


# --- maps ------------------------------------------------------------------------------------------------------------


def _mesh(ax: Any, x: np.ndarray, y: np.ndarray, z: np.ndarray, diverging: bool = False, limits: Any = None) -> Any:
    bound = float(np.nanmax(np.abs(z))) or 1.0
    low, high = (-bound, bound) if diverging else limits or (float(np.nanmin(z)), float(np.nanmax(z)))
    mesh = ax.pcolormesh(
        x, y, z, cmap="RdBu_r" if diverging else "viridis", vmin=low, vmax=high, shading="nearest", rasterized=True
    )
    bar = ax.figure.colorbar(mesh, ax=ax, shrink=0.85, pad=0.02)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
    return mesh


def plane(domain: Domain, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Axes of cells over the window's bounding box, the cells' centres (N, 2), and which of them lie inside."""
    lower, upper = corners(domain)
    size = upper - lower
    height = max(2, round(width * float(size[1] / size[0])))
    x = lower[0] + size[0] * (np.arange(width) + 0.5) / width
    y = lower[1] + size[1] * (np.arange(height) + 0.5) / height
    points = np.column_stack([a.ravel() for a in np.meshgrid(x, y)])
    return x, y, points, domain.contains(points)


def surface(x: np.ndarray, y: np.ndarray, inside: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values at the points inside as an image, NaN elsewhere."""
    z = np.full(inside.size, np.nan)
    z[inside] = values
    return z.reshape(y.size, x.size)


def maps(run: Run, panels: Sequence[tuple[str, Any]], diverging: Sequence[bool], alt: str, caption: str) -> Picture:
    """Images side by side: panels of (title, (x, y, z))."""
    shared = [z for (_, (_, _, z)), one in zip(panels, diverging) if not one]
    limits = (min(np.nanmin(z) for z in shared), max(np.nanmax(z) for z in shared)) if shared else None

    def paint(figure: Any, axes: Any) -> None:
        for ax, (title, (x, y, z)), one in zip(axes.flat, panels, diverging):
            _mesh(ax, x, y, z, diverging=one, limits=limits)
            _frame(run, ax, title)

    return draw((3.6 * len(panels) + 0.3, 2.9), (1, len(panels)), paint, alt, caption)


def _frame(run: Run, ax: Any, title: str) -> None:
    names = run.obs.outcome_names
    label_axes(ax, names[0], names[1], title)
    ax.set_aspect("equal")
    if run.model.y_down:
        ax.invert_yaxis()


# --- observed against simulated --------------------------------------------------------------------------------------


def shares(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.histogram(values, edges)[0] / max(len(values), 1)


def compared(run: Run, observed: dict[str, np.ndarray], simulated: dict[str, np.ndarray]) -> Picture:
    """Step lengths, directions, and heat maps of points, observed and simulated."""
    domain = run.model.domain
    lower, upper = corners(domain)
    longest = max(float(np.quantile(observed["step"], 0.999)), float(np.quantile(simulated["step"], 0.999)), 1e-9)
    step_edges, angle_edges = np.linspace(0, longest, 41), np.linspace(-np.pi, np.pi, 37)
    cells = [np.linspace(lower[j], upper[j], n + 1) for j, n in ((0, 40), (1, 30))]
    heat = [np.histogram2d(one["x"], one["y"], bins=cells)[0].T / len(one["x"]) for one in (observed, simulated)]
    top = max(float(h.max()) for h in heat)

    def paint(figure: Any, axes: Any) -> None:
        for ax, name, edges, text in (
            (axes[0, 0], "step", step_edges, "step length"),
            (axes[0, 1], "angle", angle_edges, "direction of the step"),
        ):
            for one, colour, who in ((observed, INK, "observed"), (simulated, ORANGE, "simulated")):
                ax.stairs(shares(one[name], edges), edges, color=colour, lw=1.4, label=who)
            label_axes(ax, name, "share of steps", text)
            ax.set_ylim(bottom=0)
        axes[0, 0].legend(frameon=False, fontsize=8)
        direction_ticks(axes[0, 1])
        for ax, h, who in zip(axes[1], heat, ("observed", "simulated")):
            centres = [(c[1:] + c[:-1]) / 2 for c in cells]
            _mesh(ax, *centres, 100 * h, limits=(0.0, 100 * top))
            _frame(run, ax, f"points, {who} (% of points)")

    gap = {
        name: 0.5 * float(np.abs(shares(observed[name], e) - shares(simulated[name], e)).sum())
        for name, e in (("step", step_edges), ("angle", angle_edges))
    }
    both = 0.5 * float(np.abs(heat[0] - heat[1]).sum())
    alt = (
        f"Observed and simulated scanpaths. Median step {np.median(observed['step']):.4g} observed, "
        f"{np.median(simulated['step']):.4g} simulated. The histograms differ by {100 * gap['step']:.2g} % of steps in "
        f"length, {100 * gap['angle']:.2g} % in direction, and {100 * both:.2g} % of points in place."
    )
    caption = (
        f"{len(observed['step']):,} observed steps against {len(simulated['step']):,} simulated from the "
        f"{'group' if run.fits else 'fitted model'}, from the same starting points and of the same lengths. Share of the "
        f"histograms that differs: {100 * gap['step']:.2g} % (length), {100 * gap['angle']:.2g} % (direction), "
        f"{100 * both:.2g} % (place)."
    )
    return draw((7.4, 5.8), (2, 2), paint, alt, caption)


def scanpaths(run: Run, observed: Sequence[np.ndarray], simulated: Sequence[np.ndarray]) -> Picture:
    """A few scanpaths, points joined by lines; observed above, simulated below."""
    domain = run.model.domain
    lower, upper = corners(domain)
    columns = max(len(observed), 1)

    def paint(figure: Any, axes: Any) -> None:
        for row, paths, who in ((0, observed, "observed"), (1, simulated, "simulated")):
            for ax, path in zip(axes[row], paths):
                scanpath(ax, path, BLUE if row == 0 else ORANGE)
                ax.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]), xticks=[], yticks=[])
                ax.spines[:].set_visible(True)
                ax.set_title(who, fontsize=8)
                ax.set_aspect("equal")
                if run.model.y_down:
                    ax.invert_yaxis()

    lengths = [len(path) for path in observed]
    alt = f"{len(observed)} observed scanpaths of {min(lengths)} to {max(lengths)} points, and as many simulated ones."
    return draw((2.1 * columns + 0.2, 3.6), (2, columns), paint, alt, "Scanpaths: the first point is marked by a ring.")


def scanpath(ax: Any, path: np.ndarray, colour: str) -> None:
    """One path; the first point ringed."""
    ax.plot(path[:, 0], path[:, 1], "-", color="#777777", lw=0.7)
    ax.plot(path[:, 0], path[:, 1], ".", color=colour, ms=5)
    ax.plot(path[:1, 0], path[:1, 1], "o", mfc="none", mec=INK, ms=7, mew=0.9)


def against(observed: np.ndarray, computed: np.ndarray, x: str, y: str, alt: str, caption: str) -> Picture:
    """Points against the diagonal."""

    def paint(figure: Any, axes: Any) -> None:
        ax = axes[0, 0]
        ends = [min(observed.min(), computed.min()), max(observed.max(), computed.max())]
        ax.plot(ends, ends, color="#999999", lw=0.8)
        ax.plot(observed, computed, ".", color=BLUE, ms=4, alpha=0.7)
        label_axes(ax, x, y)

    return draw((3.6, 3.1), (1, 1), paint, alt, caption)
