"""edges + gwesp(0.25) + nodematch(sex): a formula of statistics → `Statistic`s."""

from __future__ import annotations

import re

from ...domains.graphs import Graphs
from ...errors import TermError, listing, unknown
from .attributes import Attributes
from .base import Call, Statistic
from .registry import STATISTICS

_TERM = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\(([^()]*)\))?\s*")


def calls(formula: str) -> list[Call]:
    """The terms of a formula as they are written."""
    if not isinstance(formula, str) or not formula.strip():
        raise TermError(f"The statistics must be a formula such as 'edges + mutual + gwesp(0.25)'; got {formula!r}.")
    return [_call(text, formula) for text in formula.split("+")]


def _call(text: str, formula: str) -> Call:
    found = _TERM.fullmatch(text)
    if found is None:
        raise TermError(
            f"{text.strip()!r} in {formula!r} is not a term: write name or name(argument, …), with + between terms, as "
            "in 'edges + gwesp(0.25) + nodematch(sex)'."
        )
    name, inside = found.group(1), found.group(2)
    arguments: list[str] = []
    options: dict[str, str] = {}
    for part in (inside or "").split(",") if inside else []:
        key, equals, value = part.partition("=")
        if equals:
            options[key.strip()] = value.strip().strip("'\"")
        else:
            arguments.append(part.strip().strip("'\""))
    return Call(name, tuple(arguments), options)


def parse(formula: str, domain: Graphs, attributes: Attributes) -> tuple[Statistic, ...]:
    """The statistics of a formula on graphs of this kind."""
    out: list[Statistic] = []
    kind = "directed" if domain.directed else "undirected"
    for call in calls(formula):
        if call.name not in STATISTICS:
            raise TermError(unknown("A statistic of graphs", call.name, STATISTICS))
        part = STATISTICS[call.name]
        if kind not in part.on:
            other = f" Use {part.instead}." if part.instead else ""
            raise TermError(f"{call.label} is not defined for {kind} graphs.{other}")
        out += part.make(call, domain, attributes)
    labels = [one.label for one in out]
    if twice := [label for label in dict.fromkeys(labels) if labels.count(label) > 1]:
        raise TermError(f"Each statistic may occur once; {listing(twice)} occurs more than once in {formula!r}.")
    return tuple(out)
