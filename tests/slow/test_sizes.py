"""Tests of a true null hypothesis reject it as often as they say: 5 %."""

from __future__ import annotations

import pytest
from calibration import Case, run, suited

pytestmark = pytest.mark.slow

LIKELIHOODS = [
    Case(law, recipe, "plain", "likelihood ratio")
    for law, recipe in (
        ("interval", "exact"),
        ("walk", "poisson"),
        ("steep", "exact"),
        ("circle", "exact"),
        ("regression", "exact"),
        ("ising", "poisson"),
        ("words", "exact"),
    )
]
WALD = [
    Case("interval", recipe, "plain", "wald")
    for recipe in ("exact", "logistic iid", "logistic lattice", "importance iid", "cnce flips")
] + [
    Case(law, recipe, "plain", "wald")
    for law in ("walk", "circle", "regression", "words")
    for recipe in ("exact", "logistic iid", "logistic lattice", "importance iid", "ranking", "cnce")
]
WEIGHTED = [
    Case(law, recipe, "weighted", test)
    for law, recipe, test in (
        ("ising", "exact", "likelihood ratio"),
        ("words", "poisson", "likelihood ratio"),
        ("ising", "logistic lattice", "wald"),
        ("words", "logistic iid", "wald"),
        ("words", "ranking", "wald"),
        ("table", "cnce", "wald"),
        ("grid walk", "importance iid", "wald"),
    )
]
CLUSTERED = [
    Case(law, recipe, "clustered", "wald")
    for law, recipe in (
        ("interval", "exact"),
        ("interval", "logistic iid"),
        ("walk", "ranking"),
        ("words", "logistic lattice"),
        ("table", "cnce"),
    )
]
SMOOTH = [
    Case("walk", recipe, "plain", "smooth")
    for recipe in ("logistic iid", "logistic lattice", "importance iid", "importance lattice", "poisson smooth")
]
CASES = suited([*LIKELIHOODS, *WALD, *WEIGHTED, *CLUSTERED, *SMOOTH])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_size(case: Case) -> None:
    report = run(case)
    print(f"\n{report}")
    assert not report.wrong
