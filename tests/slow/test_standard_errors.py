"""se / sd and coverage over repetitions: laws × objectives × points × {plain, weighted, clustered}.

The whole table by hand, with more or fewer repetitions: `python tests/slow/calibration.py --reps 5000`.
"""

from __future__ import annotations

import pytest
from calibration import Case, run, suited

pytestmark = pytest.mark.slow

INTEGRALS = ("exact", "poisson")
SCHEMES = ("logistic iid", "logistic stratified", "logistic lattice", "logistic sobol")
IMPORTANCE = ("importance iid", "importance stratified", "importance lattice")
CANCEL = ("ranking", "cnce")

PLAIN = [
    Case(law, recipe) for law in ("interval", "ising") for recipe in (*INTEGRALS, *SCHEMES, *IMPORTANCE, "cnce flips")
] + [
    Case(law, recipe)
    for law in ("walk", "steep", "circle", "regression", "box", "words")
    for recipe in (*INTEGRALS, *SCHEMES, "importance iid", "importance lattice", *CANCEL)
]
# few points, several randomisations, free and known constants
CORNERS = [
    Case("walk", "poisson smooth"),
    Case("circle", "poisson smooth"),
    Case("walk", "importance stratified"),
    Case("words", "poisson", "weighted"),
    Case("words", "logistic sobol", "weighted"),
    Case("grid walk", "importance lattice", "weighted"),
    Case("walk", "poisson", "clustered"),
    Case("table", "importance iid", "clustered"),
    Case("interval", "importance lattice", "clustered"),
    Case("walk", "logistic lattice ×4"),
    Case("words", "logistic lattice ×4"),
    Case("walk", "logistic iid k=1"),
    Case("walk", "logistic lattice k=2"),
    Case("circle", "logistic lattice k=2"),
    Case("walk", "logistic lattice k=1", "clustered"),
    Case("walk", "logistic lattice k=2", "clustered"),
    Case("table", "logistic stratified k=4", "weighted"),
    Case("walk", "logistic per context"),
    Case("interval", "logistic known"),
    Case("interval", "logistic known lattice"),
    Case("interval", "importance known"),
    Case("walk", "logistic known"),
    Case("walk", "logistic known lattice"),
    Case("walk", "importance known"),
    Case("walk", "ranking k=1"),
    Case("words", "ranking k=1"),
    Case("walk", "cnce k=1"),
]
ANCHORED = [
    Case(law, recipe, variant)
    for law in ("walk", "steep", "circle", "regression", "box", "words")
    for recipe in ("anchored", "anchored iid", "anchored k=2", "anchored iid k=2")
    for variant in ("plain",)
] + [
    Case("walk", "anchored stratified"),
    Case("words", "anchored", "weighted"),
    Case("grid walk", "anchored iid", "weighted"),
    Case("walk", "anchored", "clustered"),
    Case("table", "anchored", "clustered"),
]
WEIGHTED = [
    Case("ising", recipe, "weighted")
    for recipe in (*INTEGRALS, *SCHEMES, "importance iid", "importance lattice", "cnce flips")
] + [
    Case(law, recipe, "weighted")
    for law in ("words", "grid walk", "grid steep", "grid circle", "table")
    for recipe in ("exact", "logistic iid", "logistic stratified", "logistic lattice", "importance iid", *CANCEL)
]
CLUSTERED = [
    Case(law, recipe, "clustered")
    for law in ("interval", "ising")
    for recipe in ("exact", "logistic iid", "logistic lattice", "importance iid", "cnce flips")
] + [
    Case(law, recipe, "clustered")
    for law in ("walk", "steep", "words", "table")
    for recipe in ("exact", "logistic iid", "logistic lattice", *CANCEL)
]
FEW = [
    Case(law, recipe, "few clusters")
    for law in ("walk", "words")
    for recipe in ("exact", "logistic lattice", "ranking")
    if (law, recipe) != ("words", "logistic lattice")  # as many coordinates as clusters: refused
]
CASES = suited([*PLAIN, *CORNERS, *ANCHORED, *WEIGHTED, *CLUSTERED, *FEW])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_errors_are_what_they_claim(case: Case) -> None:
    report = run(case)
    print(f"\n{report}")
    assert not report.wrong
