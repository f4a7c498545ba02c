"""Dummy points: a process of known intensity ρ that the data are told from, drawn here or brought from elsewhere.

The design decides what the dummy points add to the errors, Σ2: "poisson" and "binomial" points have closed forms;
"stratified" points, one in each tile of a grid, far less, measured against a second draw in the same tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from .._base.numerics import Rng, floats, generator, whole
from ..errors import InputError, OutsideError, unknown, warn
from .places import Places
from .point_pattern import Pattern

Design = Literal["stratified", "poisson", "binomial"]
DESIGNS = ("stratified", "poisson", "binomial")
FEWEST = 10_000
PLENTY = 400_000  # stratified points beyond which four for each data point are more than needed: one will do
LOOKED = 4096  # places at which the intensity of brought points is averaged
FAR, ROUGH = 6.0, 0.05  # standard deviations, and share, by which their number may differ from it without a word
Rho = float | Callable[[np.ndarray], np.ndarray]


@final
@dataclass(frozen=True, eq=False)
class Dummies:
    """Dummy points from elsewhere, with the design that they came from.

    Args:
        points: a table or mapping with the pattern's coordinate columns (and marks, and replicate), or (m, 2) numbers.
        rho: their intensity: points for each unit of area and each mark; a number, or a function of (N, 2) places.
        design: "poisson" (a Poisson process) or "binomial" (a fixed number of independent points).

    >>> import unnorm as un
    >>> un.Dummies([[0.1, 0.2], [0.6, 0.9]], rho=2.0).design
    'poisson'
    """

    points: Any
    rho: Rho
    design: Literal["poisson", "binomial"] = "poisson"

    def __post_init__(self) -> None:
        if self.design not in ("poisson", "binomial"):
            raise InputError(unknown("design of Dummies", self.design, ("poisson", "binomial")))
        if not callable(self.rho) and not (np.ndim(self.rho) == 0 and 0.0 < float(self.rho) < np.inf):
            raise InputError(f"rho must be a positive number or a function of places; got {self.rho!r}.")

    def drawn(self, pattern: Pattern) -> DrawnDummies:
        """As places of this pattern's windows."""
        from .point_pattern import pattern as read

        given = self.points
        bare = not isinstance(given, Mapping) and isinstance(given, list | tuple | np.ndarray)
        if bare:
            xy = floats(given, "points of Dummies")
            if xy.ndim != 2 or xy.shape[1] != 2:
                raise InputError(f"points of Dummies must have shape (m, 2); got {xy.shape}.")
            if pattern.types > 1 or pattern.replicates > 1:
                raise InputError(
                    "Dummy points of a pattern with marks or replicates have them too: pass a table with the columns "
                    f"{', '.join(n for n in (*pattern.names, pattern.mark_name, pattern.replicate_name) if n)}."
                )
            places = Places.of(xy)
            outside = np.flatnonzero(~pattern.windows[0].contains(xy))
            if outside.size:
                raise OutsideError(
                    f"{outside.size:,} of {len(xy):,} dummy points lie outside the window, first "
                    f"({xy[outside[0], 0]:.6g}, {xy[outside[0], 1]:.6g})."
                )
        else:
            windows = dict(zip(pattern.replicate_levels, pattern.windows))
            places = read(
                given,
                pattern.names,
                window=pattern.windows[0] if pattern.replicate_name is None else windows,
                marks=pattern.mark_name,
                replicate=pattern.replicate_name,
                types=None if pattern.mark_name is None else pattern.mark_levels,
            ).places
        drawn = DrawnDummies(places, self.rho, self.design, None, brought=True)
        _doubt(pattern, drawn)
        return drawn


def _doubt(pattern: Pattern, drawn: DrawnDummies) -> None:
    """Warn where the number of dummy points is not what their intensity says: estimates are off by the ratio."""
    if not drawn.places.n:
        return
    expected, rng = 0.0, np.random.default_rng(0)
    for code, window in enumerate(pattern.windows):
        at = Places.of(window.uniform(LOOKED if callable(drawn.rho) else 1, rng), 0, code)
        expected += float(np.exp(drawn.log_rho(at)).mean()) * window.volume * pattern.types
    off = abs(drawn.places.n - expected)
    if off > FAR * np.sqrt(expected) + 1.0 and off > ROUGH * expected:
        types = "" if pattern.types == 1 else f" for {pattern.types} types"
        warn(
            f"There are {drawn.places.n:,} dummy points, and rho says {expected:.6g} in windows of area "
            f"{pattern.area:.6g}{types}: the log intensity is off by the log of their ratio. rho is the number of "
            "points for each unit of area and each type.",
            stacklevel=4,
        )


@final
@dataclass(frozen=True, eq=False)
class DrawnDummies:
    """Dummy points as places; of stratified ones also a second draw, and the tile of each point."""

    places: Places
    rho: Rho
    design: Design
    second: Strata | None
    brought: bool = False  # from elsewhere

    def log_rho(self, places: Places) -> np.ndarray:
        """(N,) log ρ at any places."""
        if not callable(self.rho):
            return np.full(places.n, np.log(self.rho))
        values = np.asarray(self.rho(places.xy), dtype=np.float64)
        if values.shape != (places.n,) or not np.all(np.isfinite(values) & (values > 0.0)):
            raise InputError("rho must give a positive number for each of N places, an array of shape (N,).")
        return np.log(values)


@final
@dataclass(frozen=True, eq=False)
class Strata:
    """A second draw in the same tiles, to measure what the first one adds to the errors."""

    places: Places
    first: np.ndarray  # the tile of each of the first points
    tile: np.ndarray  # the tile of each of the second
    tiles: int


def draw(pattern: Pattern, design: Design = "stratified", total: int | None = None, rng: Rng = None) -> DrawnDummies:
    """Dummy points in all windows, for every mark: about `total`; default four for each point, 10,000 at least, and
    one for each point of large patterns."""
    if design not in DESIGNS:
        raise InputError(unknown("design", design, DESIGNS))
    count = max(FEWEST, min(4 * pattern.n, PLENTY), pattern.n) if total is None else whole(total, "dummies", 1)
    rng = generator(rng)
    rho = count / (pattern.area * pattern.types)
    if design == "stratified":
        return _stratified(pattern, rho, rng)
    parts = []
    sizes = np.array([window.volume for window in pattern.windows for _ in range(pattern.types)])
    if design == "poisson":
        counts = rng.poisson(rho * sizes)
    else:
        counts = np.round(rho * sizes).astype(int)
        rho = float(counts.sum() / sizes.sum())
    at = 0
    for replicate, window in enumerate(pattern.windows):
        for mark in range(pattern.types):
            parts.append(Places.of(window.uniform(int(counts[at]), rng), mark, replicate))
            at += 1
    return DrawnDummies(Places.joined(parts), rho, design, None)


def _stratified(pattern: Pattern, rho: float, rng: np.random.Generator) -> DrawnDummies:
    """One point in each tile of a grid over each window's box, kept where it falls inside."""
    parts: list[list[Places]] = [[], []]
    labels: list[list[np.ndarray]] = [[], []]
    shapes = []
    for window in pattern.windows:
        assert window.enclosing_box is not None
        low, high = window.enclosing_box
        width, height = high - low
        nx = max(1, round(width * np.sqrt(rho)))
        shapes.append(
            (
                low,
                width / nx,
                height / max(1, round(rho * width * height / nx)),
                nx,
                max(1, round(rho * width * height / nx)),
            )
        )
    if len({w * h for _, w, h, _, _ in shapes}) > 1:  # windows of different sizes: tiles of one size that cover them
        side = 1.0 / np.sqrt(rho)
        boxes = [window.enclosing_box for window in pattern.windows if window.enclosing_box is not None]
        shapes = [
            (low, side, side, int(np.ceil((high - low)[0] / side)), int(np.ceil((high - low)[1] / side)))
            for low, high in boxes
        ]
    tiles = 0
    for replicate, (window, (low, w, h, nx, ny)) in enumerate(zip(pattern.windows, shapes)):
        corner = np.stack(np.meshgrid(np.arange(nx), np.arange(ny), indexing="ij"), axis=-1).reshape(-1, 2)
        for mark in range(pattern.types):
            for which in (0, 1):
                xy = low + (corner + rng.random(corner.shape)) * (w, h)
                inside = window.contains(xy)
                parts[which].append(Places.of(xy[inside], mark, replicate))
                labels[which].append(tiles + np.flatnonzero(inside))
            tiles += len(corner)
    first, second = (np.concatenate(one) for one in labels)
    _, w, h, _, _ = shapes[0]
    strata = Strata(Places.joined(parts[1]), first, second, tiles)
    return DrawnDummies(Places.joined(parts[0]), 1.0 / (w * h), "stratified", strata)
