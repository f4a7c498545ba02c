"""A claim of the paper, what it says, what we measure, and whether it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

Holds = Literal["holds", "holds, with a condition", "does not hold"]


@final
@dataclass(frozen=True)
class Verdict:
    """What was measured, and the verdict."""

    measured: str
    holds: Holds
    note: str = ""


@final
@dataclass(frozen=True)
class Claim:
    """One line of the table in README.md."""

    where: str  # in the paper
    says: str
    script: str
    expected: Holds  # the verdict that README.md prints; another one is a failure
    measure: Callable[[bool, Path], Verdict]  # of (quick, folder for figures)


CLAIMS: list[Claim] = []


def claim(where: str, says: str, expected: Holds = "holds") -> Callable:
    """Registers the function below as the measurement of a claim."""

    def register(measure: Callable[[bool, Path], Verdict]) -> Callable[[bool, Path], Verdict]:
        CLAIMS.append(Claim(where, says, f"{measure.__module__}.py", expected, measure))
        return measure

    return register


def verdict(measured: str, good: bool, otherwise: Holds = "does not hold", note: str = "") -> Verdict:
    """Holds where `good`, else `otherwise`."""
    return Verdict(measured, "holds" if good else otherwise, note)
