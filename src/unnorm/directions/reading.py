"""A family from its text, "kent", "generalisedvonmises(1, 2)", "bivariatevonmises(cosine)": the shell's `--family`."""

from __future__ import annotations

import inspect
import re
from typing import Any

from .._base.words import either
from ..domains import Axis, Sphere
from ..errors import InputError, unknown
from .family import MAKERS, Family

_SHAPE = re.compile(r"\s*([A-Za-z_\- ]+?)\s*(?:\(([^()]*)\))?\s*")
_LONGEST = 200  # characters


def read_family(
    text: str, *, axes: bool = False, space: bool = False, x: tuple[str, ...] = (), dispersion: tuple[str, ...] = ()
) -> Family:
    """The family of this name.

    Args:
        text: a function of `un.directions`, with or without underscores, and what it takes in brackets.
        axes: of axes, not directions.
        space: whether the data are directions in space, for families that live in the plane and in space.
        x, dispersion: covariates of a regression.

    >>> read_family("vonmises", axes=True)
    von Mises on Axis()
    """
    words = {name.replace("_", ""): name for name in MAKERS}
    found = _SHAPE.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise InputError(f"A family is written as kent or generalisedvonmises(1, 2); got {text[:80]!r}.")
    word = re.sub(r"[_\- ]", "", found[1]).lower()
    if word not in words:
        raise InputError(unknown("The family", found[1], sorted(words)))
    name = words[word]
    takes = inspect.signature(MAKERS[name]).parameters
    given: dict[str, Any] = _numbers(name, found[2], list(takes))
    if "dispersion" in takes:
        given |= {"x": x, "dispersion": dispersion}
    elif x or dispersion:
        raise InputError(f"Covariates belong to the family regression; {word} has none.")
    return _on(name, given, "domain" in takes, axes, space)


def _numbers(name: str, text: str | None, takes: list[str]) -> dict[str, Any]:
    """What stands in brackets: folds, or the name of a model."""
    parts = [part.strip() for part in text.split(",")] if text and text.strip() else []
    if not parts:
        return {}
    if takes[0] == "folds" and all(part.isdecimal() for part in parts):
        return {"folds": tuple(int(part) for part in parts)}
    if takes[0] == "model" and len(parts) == 1:
        return {"model": parts[0].strip("'\"")}
    what = {"folds": "whole numbers, its folds", "model": "sine or cosine"}.get(takes[0] if takes else "", "nothing")
    raise InputError(f"{name.replace('_', '')} takes {what} in brackets; got ({text}).")


def _on(name: str, given: dict[str, Any], choice: bool, axes: bool, space: bool) -> Family:
    """The family on its own Ω, or on that of axes or of directions in space where it can live there."""
    family, word = MAKERS[name](**given), name.replace("_", "")
    if axes and not choice:
        raise InputError(f"{word} is a law of directions, not of axes: leave {either('axes=True', '--axes')} out.")
    if family.domain.sphere:
        return MAKERS[name](**given, domain=Axis(3)) if axes else family
    if not space:
        return MAKERS[name](**given, domain=Axis()) if axes else family
    try:
        return MAKERS[name](**given, domain=Axis(3) if axes else Sphere())
    except (InputError, TypeError) as error:
        raise InputError(
            f"{word}{' of axes' if axes else ''} is a law of angles, and these are directions in space: take "
            "vonmisesfisher, kent, fisherbingham, watson or bingham."
        ) from error
