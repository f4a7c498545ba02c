"""Every domain, registered once: `from_dict` reads them back, and the generic tests run over their examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError, unknown
from .base import Domain
from .boxes import Box, Interval
from .finite import BinaryVectors, FiniteSet
from .graphs import Graphs
from .round import Circle, Sphere
from .window import Window


@dataclass(frozen=True)
class Registered:
    """A domain's class and constructors of examples, small enough to integrate over."""

    cls: type[Domain]
    examples: tuple[Callable[[], Domain], ...]


def _star() -> Window:
    """A star with a hole and an island: concave, hollow, in two pieces."""
    from shapely import MultiPolygon, Polygon

    angle = np.arange(14) * np.pi / 7
    r = np.where(np.arange(14) % 2, 1.0, 2.2)
    star = np.column_stack([r * np.cos(angle), r * np.sin(angle)])
    hole = 0.4 * np.column_stack([np.cos(angle[::2]), np.sin(angle[::2])])
    return Window(MultiPolygon([Polygon(star, [hole]), Polygon([(3, -1), (3.5, 1), (4, -0.5)])]))


REGISTRY: Mapping[str, Registered] = {
    entry.cls.__name__: entry
    for entry in (
        Registered(Interval, (lambda: Interval(-1, 1), lambda: Interval(2.5, 7))),
        Registered(Box, (lambda: Box((0, 800), (0, 600)), lambda: Box((-1, 1), (0, 1), (2, 5)), lambda: Box((0, 2)))),
        Registered(Window, (lambda: Window([(0, 0), (4, 0), (4, 3), (0, 3)], [[(1, 1), (2, 1), (2, 2)]]), _star)),
        Registered(Circle, (Circle,)),
        Registered(Sphere, (Sphere,)),
        Registered(
            FiniteSet,
            (lambda: FiniteSet(range(1, 7)), lambda: FiniteSet([[0, 1], [2, 3.5], [-1, 0]], weights=[1, 2.5, 0.5])),
        ),
        Registered(BinaryVectors, (lambda: BinaryVectors(8), lambda: BinaryVectors(1))),
        Registered(Graphs, (lambda: Graphs(4), lambda: Graphs(3, directed=True))),
    )
}


def from_dict(description: Mapping[str, Any]) -> Domain:
    """The domain that `to_dict` described.

    >>> from_dict({"domain": "Interval", "lower": -1.0, "upper": 1.0})
    Interval(-1, 1)
    """
    name = description.get("domain")
    if not isinstance(name, str) or name not in REGISTRY:
        raise InputError(unknown("The 'domain' of a description", name, REGISTRY))
    try:
        return REGISTRY[name].cls.from_dict(description)
    except KeyError as missing:
        raise InputError(f"The description of a {name} lacks {missing}; it has {sorted(description)}.") from None
