"""Checks of what is written in a term: whole numbers, flags, one value a margin, knots. Each names the term, what it
takes and what came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import TermError, listing, unknown

LARGEST = 1e60  # number that means one
MOST_COEFFICIENTS = 5000  # of one term: its penalties are then 200 MB each


def not_too_many(label: str, k: str, count: int) -> None:
    if count > MOST_COEFFICIENTS:
        raise TermError(
            f"{label}: {k} makes {count:,} coefficients, more than the limit of {MOST_COEFFICIENTS:,} for one term. "
            "Lower k."
        )


def integer(label: str, what: str, value: Any, least: int, most: int | None = None) -> int:
    whole = (
        isinstance(value, int | float | np.number)
        and not isinstance(value, bool)
        and -LARGEST < value < LARGEST  # whatever it is: an integer of 400 digits is no float
        and value == int(value)
    )
    if not whole or value < least or (most is not None and value > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise TermError(f"{label}: {what} must be a whole number {bounds}; got {value!r}.")
    return int(value)


def flag(label: str, fx: Any) -> bool:
    if not isinstance(fx, bool | np.bool_):
        raise TermError(f"{label}: fx must be True or False; got {fx!r}.")
    return bool(fx)


def sequence(value: Any) -> Sequence[Any]:
    return tuple(value) if isinstance(value, list | tuple | np.ndarray) else (value,)


def per_margin(label: str, what: str, value: Any, margins: int) -> tuple[Any, ...]:
    values = tuple(sequence(value))
    if len(values) == 1:
        values *= margins
    if len(values) != margins:
        raise TermError(f"{label}: {what} takes one value or one for each of the {margins} margins; got {len(values)}.")
    return values


def fixed_sp(label: str, sp: Any) -> tuple[float | None, ...] | None:
    if sp is None:
        return None
    out: list[float | None] = []
    for value in sequence(sp):
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int | float | np.number) or not -LARGEST < value < LARGEST
        ):
            raise TermError(
                f"{label}: sp takes numbers below {LARGEST:g}, or None where it is to be estimated; got {value!r}. "
                "For a straight line write the covariate by itself."
            )
        out.append(None if value is None or value < 0 else float(value))
    return tuple(out)


def checked_knots(label: str, names: tuple[str, ...], knots: Any) -> dict[str, tuple[float, ...]]:
    if knots is None:
        return {}
    if not isinstance(knots, Mapping):
        if len(names) == 1:
            knots = {names[0]: knots}
        elif isinstance(knots, Sequence | np.ndarray) and len(knots) == len(names):
            knots = dict(zip(names, knots))
        else:
            raise TermError(
                f"{label}: knots takes one sequence of values for each of {listing(names)}, or a mapping from names."
            )
    if strange := [name for name in knots if name not in names]:
        raise TermError(f"{label}: " + unknown("knots' names", strange[0], names))
    out = {}
    for name, values in knots.items():
        array = np.asarray(values)
        if array.ndim != 1 or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise TermError(f"{label}: knots of {name!r} must be a list of finite numbers; got {values!r}.")
        out[name] = tuple(float(v) for v in array)
    return out


def count_range(dims: tuple[int, int]) -> str:
    return str(dims[0]) if dims[0] == dims[1] else f"{dims[0]} to {dims[1]}"


def plain(value: Any) -> Any:
    """Arrays and lists within mappings as tuples, so that a term can be compared, printed and read back."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return tuple(plain(one) for one in value) if isinstance(value, list | tuple) else value
