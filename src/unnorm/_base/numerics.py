"""Scoped float64, generators from seeds, and numbers from arguments, checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import InputError

Rng = int | np.integer[Any] | np.random.Generator | np.random.SeedSequence | None


FIT = 0x666974  # "fit" in ASCII: any number will do, as long as it stays the same


@contextmanager
def x64() -> Iterator[None]:
    """Run JAX in float64 inside the block only; the user's own global setting is left alone."""
    import jax

    with jax.enable_x64(True):
        yield


def generator(rng: Rng) -> np.random.Generator:
    """A NumPy generator from an int, a generator (used as it is) or None (fresh entropy)."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, bool) or not (rng is None or isinstance(rng, int | np.integer | np.random.SeedSequence)):
        raise InputError(
            f"rng must be a non-negative integer seed or a numpy.random.Generator; got {rng!r}. Pass e.g. rng=1."
        )
    if isinstance(rng, int | np.integer) and rng < 0:
        raise InputError(f"rng must be a non-negative integer seed; got {rng}. Pass e.g. rng=1.")
    return np.random.default_rng(rng)


def stream(seed: int) -> np.random.SeedSequence:
    """The random numbers of a fit with this integer seed: others than numpy.random.default_rng(seed) gives.

    Data that were simulated with the same seed then have nothing in common with the fit's reference points.
    `default_rng(stream(1))` draws what `un.fit(…, rng=1)` drew.

    >>> bool(np.random.default_rng(stream(1)).random() == np.random.default_rng(1).random())
    False
    """
    return np.random.SeedSequence(int(seed), spawn_key=(FIT,))


def own_stream(rng: Rng) -> Rng:
    """An integer seed as a stream of the fit's own; generators as they are."""
    generator(rng)  # refuses what is no seed
    return stream(int(rng)) if isinstance(rng, int | np.integer) else rng


def whole(value: Any, what: str, least: int) -> int:
    """`value` as an int that is at least `least`, or an error that names `what`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{what} must be a whole number of at least {least}; got {value!r}.")
    return int(value)


def flag(value: Any, what: str) -> bool:
    """`value` as a bool, or an error that names `what`: any text would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{what} must be True or False; got {value!r}.")
    return bool(value)


def floats(value: Any, what: str) -> np.ndarray:
    """`value` as a float64 array, masked entries NaN, or an error that names `what`."""
    try:
        if isinstance(value, np.ma.MaskedArray):
            return np.ma.filled(value.astype(np.float64), np.nan)
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be numeric; got {type(value).__name__} ({error}).") from error


def point_text(y: np.ndarray, most: int = 6) -> str:
    """One outcome as it appears in a sentence: a number, or (a, b, …)."""
    if y.size == 1:
        return f"{y[0]:.6g}"
    return f"({', '.join(f'{value:.6g}' for value in y[:most])}{', …' if y.size > most else ''})"


def read_only(array: np.ndarray) -> np.ndarray:
    """The array, marked so that a frozen result stays frozen."""
    array = np.asarray(array)
    array.flags.writeable = False
    return array


def quadratic_forms(C: np.ndarray, V: np.ndarray) -> np.ndarray:
    """c V cᵀ for each row c of C, by a product rather than a sum over pairs."""
    return np.einsum("np,np->n", C @ V, C)


def codes_of(values: np.ndarray, place: Mapping[Any, int]) -> np.ndarray:
    """(n,) the code of each value, −1 where it has none.

    Equal values mostly come in runs (the points of one context have one image), and each run is looked up once.

    >>> codes_of(np.array(["b", "b", "a", "c"]), {"a": 0, "b": 1}).tolist()
    [1, 1, 0, -1]
    """
    if values.size == 0:
        return np.empty(0, np.intp)
    starts = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])
    codes = np.array([place.get(value, -1) for value in values[starts].tolist()], dtype=np.intp)
    return np.repeat(codes, np.diff(starts, append=values.size))
