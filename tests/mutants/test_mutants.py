"""The list of mutants fits the source (fast), and none of them survives (slow)."""

from __future__ import annotations

import ast

import pytest
from nearest import NEAREST
from run import ROOT, run

from mutants import MUTANTS


@pytest.mark.parametrize("module", sorted({mutant.module for mutant in MUTANTS}))
def test_each_mutant_has_its_place(module: str) -> None:
    """Its text occurs once in the module, and what comes in its place is another program."""
    source = (ROOT / "src" / "unnorm" / module).read_text(encoding="utf-8")
    sound = ast.dump(ast.parse(source))
    for mutant in MUTANTS:
        if mutant.module == module:
            assert ast.dump(ast.parse(mutant.planted(source))) != sound, mutant


def test_each_module_names_tests_that_exist() -> None:
    assert {mutant.module for mutant in MUTANTS} == set(NEAREST)
    for tests in NEAREST.values():
        for test in tests:
            assert (ROOT / test.split("::")[0]).is_file(), test
    assert len(set(MUTANTS)) == len(MUTANTS) >= 60


@pytest.mark.slow
def test_none_survives() -> None:
    """Under half an hour on two cores; the same from the shell: python tests/mutants/run.py."""
    outcomes = run(MUTANTS, workers=2)
    alive = [f"{one.mutant} (pytest ended with {one.status})" for one in outcomes if not one.killed]
    print(f"{len(outcomes)} mutants, {len(outcomes) - len(alive)} killed")
    assert not alive, "\n".join(alive)
