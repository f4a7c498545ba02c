"""An interaction from its text, "strauss(7)", "geyer(5, sat=2)": read with Python's `ast`, never evaluated."""

from __future__ import annotations

import ast
import inspect

from ...errors import InputError, unknown
from .base import REGISTRY, Interaction

_LONGEST = 500  # characters


def read_interaction(text: str) -> Interaction:
    """The interaction of this name with these numbers.

    >>> read_interaction("strauss(7)")
    Strauss(r=7)
    """
    from . import registry

    _ = registry
    names = {name.lower(): name for name in REGISTRY}
    shape = f"An interaction is written as strauss(7) or geyer(5, sat=2); got {text[:80]!r}."
    try:
        call = ast.parse(text.strip(), mode="eval").body if len(text) <= _LONGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(shape) from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise InputError(shape)
    word = call.func.id.lower().replace("_", "")
    if word not in names:
        raise InputError(unknown("The interaction", call.func.id, sorted(names)))
    part = REGISTRY[names[word]]
    try:
        given = [ast.literal_eval(one) for one in call.args]
        named = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
        inspect.signature(part).bind(*given, **named)
    except (ValueError, TypeError) as error:
        wanted = ", ".join(inspect.signature(part).parameters)
        raise InputError(f"{names[word]} takes numbers ({wanted}); got {text.strip()!r}.") from error
    return part(*given, **named)
