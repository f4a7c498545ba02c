"""How a term is written: names, quoted where they are no plain words or arithmetic, and options that were given."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Any, Protocol

from .arithmetic import as_term, is_arithmetic


def written(name: str, factors: frozenset[str] = frozenset()) -> str:
    """The name as a formula has it."""
    plain = (name.isidentifier() and not keyword.iskeyword(name)) or is_arithmetic(name)
    text = name if plain else repr(name)
    return f"factor({text})" if name in factors else text


def alone(name: str, factors: frozenset[str] = frozenset()) -> str:
    """The name as a formula has it where it is a term, or a part of a product."""
    return as_term(name) if is_arithmetic(name) else written(name, factors)


class Bare(str):
    """Text that is written without quotes."""

    def __repr__(self) -> str:
        return str(self)


class Written(Protocol):
    """A smooth, as far as it is written here."""

    @property
    def covariates(self) -> tuple[str, ...]: ...
    @property
    def by(self) -> str | None: ...
    @property
    def factors(self) -> frozenset[str]: ...
    @property
    def knots(self) -> Mapping[str, tuple[float, ...]]: ...


def by_text(term: Written) -> Bare | None:
    return None if term.by is None else Bare(written(term.by, term.factors))


def knots_text(term: Written) -> Any:
    if not term.knots:
        return None
    return term.knots[term.covariates[0]] if len(term.covariates) == 1 else dict(term.knots)


def options_of(**options: Any) -> list[str]:
    return [f"{name}={value!r}" for name, value in options.items() if value is not None]
