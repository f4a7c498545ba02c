"""A model once more, with another start or rule: what was compiled for its f is shared, and not compiled again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from .energy import Energy
from .exponential_family import ExponentialFamily

M = TypeVar("M", Energy, ExponentialFamily)
COMPILED = {  # cached properties that read f and the shape of θ alone
    Energy: ("kernels", "_rows", "_row_slopes", "_row_kernels"),
    ExponentialFamily: ("kernels", "_rows"),
}


def anew(model: M, **changes: Any) -> M:
    """The model with another `theta0` of the same shape, or another `rule`.

    >>> import unnorm as un
    >>> first = un.Energy(lambda theta, y: theta["a"] * y, {"a": 0.0}, un.Interval(0, 1))
    >>> second = anew(first, theta0={"a": 2.0})
    >>> float(second.start[0]), second.kernels is first.kernels
    (2.0, True)
    """
    made = replace(model, **changes)
    for name in COMPILED[type(model)]:
        made.__dict__[name] = getattr(model, name)
    return made
