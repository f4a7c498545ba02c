"""Faults to plant, one at a time, in the code of standard errors, tests and criteria; `run.py` sees that each is found.

A mutant is a module, a text that occurs in it once, what to put in its place, and what that breaks.
"""

from __future__ import annotations

from typing import NamedTuple

import of_directions
import of_discrete
import of_engine
import of_inference
import of_objectives
import of_patterns
import of_scanpaths
import of_solvers


class Mutant(NamedTuple):
    module: str  # below src/unnorm
    old: str
    new: str
    breaks: str

    def __str__(self) -> str:
        return f"{self.module}: {self.breaks} [{self.old.strip()[:50]!r}]"

    def planted(self, source: str) -> str:
        """The module's source with the fault in it."""
        assert source.count(self.old) == 1, f"{self} occurs {source.count(self.old)} times"
        return source.replace(self.old, self.new)


MUTANTS = [
    Mutant(module, *fault)
    for faults in (
        of_objectives.MUTANTS,
        of_inference.MUTANTS,
        of_scanpaths.MUTANTS,
        of_solvers.MUTANTS,
        of_engine.MUTANTS,
        of_patterns.MUTANTS,
        of_directions.MUTANTS,
        of_discrete.MUTANTS,
    )
    for module, some in faults.items()
    for fault in some
]
