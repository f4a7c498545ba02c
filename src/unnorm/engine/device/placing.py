"""A design's rows put on a device: which designs can be, and how runs become a rectangle."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...errors import CombinationError
from ..design import Design
from ..segment import ResponseRows, Segment
from .rows import DeviceParts, DeviceRows, turn_of
from .spec import Device, require_room

if TYPE_CHECKING:
    from .passes import Rows

_UNEVEN = 1.25  # times the mean length: the longest run up to which shorter ones are filled up


def on_device(design: Design, rows: ResponseRows, device: Device) -> Design:
    """The design with its rows on the device, met with this response; segments stay as they are."""
    _refuse_columns(design)
    parts = [laid_out(segment, rows, device) for segment in design.segments]
    require_room(sum(part.bytes for part in parts), max(part.tile for part in parts), device.free)
    return replace(design, elsewhere=DeviceParts(tuple(part.put() for part in parts), rows))


def laid_out(segment: Segment, rows: ResponseRows, device: Device) -> DeviceRows:
    """A segment's rows in the device's layout, still here."""
    own = slice(segment.lo, segment.hi)
    mine = ResponseRows(*(a[own] if a.size else a for a in (rows.y, rows.weights, rows.offset)))
    place = _rectangle(segment)
    alone = place is not None and place.shape[1] == 1
    run = np.repeat(np.arange(segment.runs), np.diff(segment.ptr)) if alone else None
    made = _made(segment, mine, place, run)
    return DeviceRows(device, turn_of(segment), made, mine, place, segment.hi - segment.lo, run)


def refuse(method: str, link: str | None, parts: bool) -> None:
    """What the device's pass cannot do, in a sentence."""
    if parts:
        raise CombinationError(
            "device= takes rows that were set up in memory here, and not in parts: leave memory= and workers= out, or "
            "device=."
        )
    if method == "CV":
        raise CombinationError("method='CV' runs on the processor: leave device out, or use method='REML'.")
    if link is not None:
        raise CombinationError(f"link={link!r} runs on the processor: leave device out, or use the family's own link.")


def _refuse_columns(design: Design) -> None:
    """What the device's pass cannot hold, in a sentence."""
    if design.levels or design.own is not None:
        raise CombinationError(
            "Terms with a block of columns for each level (by=, bs='re', bs='fs') run on the processor: leave device "
            "out."
        )
    if any(segment.product is not None or segment.dense is not None for segment in design.segments):
        label = [name for name, kind in design.kinds.items() if kind in ("product", "dense")]
        raise CombinationError(
            f"{', '.join(label)} has too many columns in each row for the device's pass: leave device out, or write it "
            "as a sum of terms of one covariate."
        )


def _rectangle(segment: Segment) -> np.ndarray | None:
    """(runs, R) rows; shorter runs repeat their first row; rows by themselves where runs are too uneven. None: in
    order."""
    lengths = np.diff(segment.ptr)
    longest, runs, n = int(lengths.max(initial=0)), lengths.size, segment.hi - segment.lo
    if runs * longest == n:
        return None
    if runs * longest > _UNEVEN * n:
        return np.arange(n)[:, None]
    at = np.arange(longest)
    return segment.ptr[:-1, None] + np.where(at < lengths[:, None], at, 0)


def _made(segment: Segment, rows: ResponseRows, place: np.ndarray | None, run: np.ndarray | None) -> Rows:
    """Host arrays in the device's layout."""
    from .passes import Rows

    n, (_, d, _) = segment.hi - segment.lo, segment.sizes
    uneven = place is not None and place.size > n
    each = n // segment.runs if place is None else place.shape[1]

    def grid(column: np.ndarray) -> np.ndarray:
        return column.reshape(-1, each, *column.shape[1:]) if place is None else column[place]

    z = segment.z if run is None else segment.z[run]
    weights = rows.weights
    weight = None
    if weights.size or uneven:
        weight = grid(weights if weights.size else np.ones(n))
        if uneven:
            assert place is not None
            weight = np.where((np.arange(each) > 0) & (place == place[:, :1]), 0.0, weight)
    starts = [block.raw.start for block in segment.blocks]
    n_local = segment.u.shape[1]
    return Rows(
        u=tuple(grid(np.ascontiguousarray(segment.u[:, b])) for b in range(n_local)),
        f=tuple(grid((segment.f[:, j] - starts[n_local + j]).astype(np.int32)) for j in range(segment.f.shape[1])),
        mult=tuple(grid(np.ascontiguousarray(segment.mult[:, j])) for j in range(segment.mult.shape[1])),
        x=grid(segment.x) if d else None,
        z=z,
        y=grid(rows.y),
        weight=weight,
        offset=grid(rows.offset) if rows.offset.size else None,
    )
