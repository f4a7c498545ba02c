"""Parts that memory does not hold, in a temporary file: reading a row back costs a quarter of making it again.

The file has no name: it is gone when the process ends, however it ends.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, final

import numpy as np

from .segment import ResponseRows

if TYPE_CHECKING:
    from .parts import Held

_SEGMENT = ("ptr", "u", "mult", "f", "x", "z")
_ROOM = 3.0  # times what is written that must be free


@final
@dataclass(frozen=True)
class Kept:
    """A part whose arrays are in the file."""

    bare: Held  # with empty arrays
    places: tuple[tuple[int, tuple[int, ...], np.dtype], ...]  # where, shape, type


@final
@dataclass
class Spill:
    """A nameless file of parts."""

    file: IO[bytes] | None = None
    end: int = 0
    kept: dict[int, Kept] = field(default_factory=dict)
    full: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def offer(self, i: int, part: Held) -> None:
        """Write part i, where there is room on the disk and its rows are arrays."""
        arrays = _arrays(part)
        if arrays is None or self.full or i in self.kept:
            return
        size = sum(one.nbytes for one in arrays)
        try:
            with self.lock:
                if self.file is None:
                    self.file = tempfile.TemporaryFile(prefix="unnorm-")  # noqa: SIM115  (as long as the parts)
                if shutil.disk_usage(tempfile.gettempdir()).free < _ROOM * size:
                    self.full = True
                    return
                at, self.end = self.end, self.end + size
            places = []
            for one in arrays:
                _write(self.file.fileno(), np.ascontiguousarray(one), at)
                places.append((at, one.shape, one.dtype))
                at += one.nbytes
        except OSError:  # the disk is full, or there is none: parts are made again
            self.full = True
            return
        self.kept[i] = Kept(_with(part, [np.empty((0, *one.shape[1:]), one.dtype) for one in arrays]), tuple(places))

    def part(self, i: int) -> Held | None:
        """Part i, read back; None where it was not written."""
        kept = self.kept.get(i)
        if kept is None or self.file is None:
            return None
        arrays = []
        for at, shape, kind in kept.places:
            one = np.empty(shape, kind)
            _read(self.file.fileno(), one, at)
            arrays.append(one)
        return _with(kept.bare, arrays)


def _write(descriptor: int, array: np.ndarray, at: int) -> None:
    view = array.reshape(-1).view(np.uint8).data
    while view:
        done = os.pwrite(descriptor, view, at)
        view, at = view[done:], at + done


def _read(descriptor: int, array: np.ndarray, at: int) -> None:
    view = array.reshape(-1).view(np.uint8).data
    while view:
        done = os.preadv(descriptor, [view], at)
        if done == 0:
            raise OSError("the temporary file is shorter than what was written to it")
        view, at = view[done:], at + done


def _arrays(part: Held) -> list[np.ndarray] | None:
    """The arrays that make up a part; None where dense columns are evaluated from covariates."""
    (segment,) = part.design.segments
    if segment.dense is not None:
        return None
    own = [getattr(segment, name) for name in _SEGMENT]
    product = [] if segment.product is None else [segment.product.u, segment.product.by]
    order = [] if part.design.order is None else [part.design.order]
    return [*own, part.rows.y, part.rows.weights, part.rows.offset, *product, *order]


def _with(part: Held, arrays: list[np.ndarray]) -> Held:
    """The part with these arrays."""
    (segment,) = part.design.segments
    own, given, rest = arrays[:6], arrays[6:9], arrays[9:]
    product = segment.product
    if product is not None:
        product, rest = replace(product, u=rest[0], by=rest[1]), rest[2:]
    here = replace(segment, **dict(zip(_SEGMENT, own)), product=product)
    order = rest[0] if rest else None
    return part._replace(design=replace(part.design, segments=(here,), order=order), rows=ResponseRows(*given))
