"""The report's figures, as SVG in data URIs: white cards that read the same in dark and light, on paper and offline."""

from __future__ import annotations

import base64
import io
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..domains.base import Domain
from ..results.planar import box_around
from .analysis import Analysis
from .interactive import Field, Frame, mapped
from .page import Picture

BLUE, GREY, ORANGE, INK = "#1f5fa8", "#9a9a9a", "#c2571a", "#222222"
FORMATS = ("svg", "pdf", "png")
_SVG, _IMAGES = 72, 110  # points to the inch, and pixels of the images inside
NEAR = 0.1  # of a figure's side: a guess of the place of its axes that is good enough to know its ticks
WANTED: ContextVar[tuple[str, ...]] = ContextVar("formats of figures as files", default=())
_RC: dict[Any, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "unnorm",  # the same figure twice is the same file
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titley": 1.0,  # where it is anyway: not looked for by asking every label where it is
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "path.simplify_threshold": 0.3,
}
_ONE = threading.RLock()  # the settings of Matplotlib are those of all threads
_SIDES = {-np.pi: "−π\nleft", -np.pi / 2: "−π/2\ndown", 0.0: "0\nright", np.pi / 2: "π/2\nup", np.pi: "π\nleft"}


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

    with _ONE, matplotlib.rc_context(_RC):
        figure = Figure(figsize=size, layout="constrained", facecolor="white", dpi=_SVG)
        canvas = FigureCanvasSVG(figure)
        paint(*figure.subplots(*grid, squeeze=False).flat)
        buffer = io.BytesIO()
        _arrange(figure)
        figure.dpi = _IMAGES
        canvas.print_svg(buffer, metadata={"Date": None})
        files = {name: _file(figure, name) for name in WANTED.get()}
        frame = _frame_of(figure.axes[0]) if grid == (1, 1) else None
    uri = "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
    return Picture(uri, alt, caption, files, frame=frame)


def _frame_of(ax: Any) -> Frame:
    """Where the axes are, once they are drawn: in pages, shares are counted from the top."""
    (left, bottom), (right, top) = ax.get_position().get_points().tolist()
    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    return Frame((left, 1.0 - top, right, 1.0 - bottom), (float(x0), float(y1), float(x1), float(y0)))


def _arrange(figure: Any) -> None:
    """Place the axes once: `savefig` would draw everything twice to do so, and the constrained layout asks twice for
    what one axes needs around it, which takes as long as drawing it."""
    if len(figure.axes) == 1:
        _place(figure, *figure.axes)
    else:
        figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")


def _place(figure: Any, ax: Any) -> None:
    """One axes, as large as its labels allow. Asked again where it was guessed badly: ticks depend on its size."""
    size, pad = figure.get_size_inches(), figure.get_layout_engine().get()
    beside = 0.06 if not ax.child_axes else 0.5  # a colour bar with its numbers
    place = np.array([(0.55, 0.5), size - (beside, 0.27)]) / size  # lower left and upper right corner, a guess
    for _ in range(2):
        ax.set_position([*place[0], *np.maximum(place[1] - place[0], 0.1)])
        labels = ax.get_tightbbox(for_layout_only=True).get_points() / figure.bbox.size
        guess, around = place, np.abs(labels - ax.get_position().get_points()) + (pad["w_pad"], pad["h_pad"]) / size
        place = np.array([around[0], 1.0 - around[1]])
        if np.abs(place - guess).max() < NEAR:
            break
    ax.set_position([*place[0], *np.maximum(place[1] - place[0], 0.1)])


@contextmanager
def wanted(formats: tuple[str, ...]) -> Iterator[None]:
    """Within, figures are made as files of these formats too."""
    token = WANTED.set(formats)
    try:
        yield
    finally:
        WANTED.reset(token)


def _file(figure: Any, name: str) -> bytes:
    """The figure as a file of this format, the same bytes each time."""
    buffer = io.BytesIO()
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(buffer, format=name, dpi=300, metadata=dates.get(name))
    return buffer.getvalue()


def label_axes(ax: Any, x: str, y: str, title: str = "") -> None:
    """Labels taken as they are: a name with dollar signs is no formula."""
    ax.set_xlabel(x, parse_math=False)
    ax.set_ylabel(y, parse_math=False)
    if title:
        ax.set_title(title, parse_math=False)


def with_gaps(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Lines (k, n) one after another, with a gap after each: they are drawn as one, which takes a tenth of the time."""
    return np.concatenate([np.concatenate([one, np.full((len(one), 1), np.nan)], axis=1) for one in parts], axis=1)


def direction_ticks(ax: Any, words: bool = True) -> None:
    ax.set_xticks(list(_SIDES), [text if words else text.partition("\n")[0] for text in _SIDES.values()])
    ax.set_xlim(-np.pi, np.pi)


# --- maps ------------------------------------------------------------------------------------------------------------

Image = tuple[np.ndarray, np.ndarray, np.ndarray]  # x, y, z (len(y), len(x))


def mesh(ax: Any, x: np.ndarray, y: np.ndarray, z: np.ndarray, limits: tuple[float, float] | None) -> None:
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
    lower, upper = box_around(domain)
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


def image(
    analysis: Analysis, shown: Image, limits: tuple[float, float] | None, alt: str, caption: str, value: str
) -> Picture:
    """An image over the window; `value` says what its numbers are."""

    def paint(ax: Any) -> None:
        mesh(ax, *shown, limits)
        _frame(analysis, ax)

    numbers = field(analysis, value, analysis.obs.outcome_names, shown)
    return mapped(draw(paint, alt, caption, map_size(analysis.model.domain)), numbers)


def map_size(domain: Domain) -> tuple[float, float]:
    """Inches of a map over a window: no empty paper around it."""
    lower, upper = box_around(domain)
    return 3.9, float(np.clip(2.8 * (upper - lower)[1] / (upper - lower)[0] + 0.65, 1.6, 6.0))


def field(analysis: Analysis, value: str, names: Sequence[str], shown: Image) -> Field:
    """The numbers of an image over two covariates."""
    first, second = names
    return Field(value, (first, second), (analysis.unit_of(first), analysis.unit_of(second)), *shown)


def _frame(analysis: Analysis, ax: Any) -> None:
    label_axes(ax, *map(analysis.named, analysis.obs.outcome_names))
    ax.set_aspect("equal")
    if analysis.model.y_down:
        ax.invert_yaxis()


def window(ax: Any, analysis: Analysis, own: Domain | None = None) -> None:
    """The window, or that of one sequence, as a bare frame."""
    lower, upper = box_around(analysis.model.domain if own is None else own)
    ax.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]), xticks=[], yticks=[])
    ax.spines[:].set_visible(True)
    ax.set_aspect("equal")
    if analysis.model.y_down:
        ax.invert_yaxis()
