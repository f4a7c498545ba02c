"""The report's advice: silent where the model is right, and the term that lacks where one does."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest
from scanpath_laws import BOX, MISSED, RIGHT, scanpaths, subjects

import unnorm as un
from unnorm.report.analysis import grouped, pooled
from unnorm.report.misfit import SURELY, advice
from unnorm.report.sections.misfit import measured

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")]
REPEATS = int(os.environ.get("UNNORM_REPS", "100"))


def missed(effect: str | None, terms: str, seed: int) -> list[str]:
    obs = scanpaths(effect, np.random.default_rng([7, seed]))
    model = un.Additive(terms, BOX)
    fit = un.fit(model, obs, un.Logistic(per_point=8), rng=seed)
    found = measured(pooled(fit, model, obs, seed=seed))
    helps = advice(found, frozenset(model.terms.columns))
    return [name for name, text in helps.items() if not text.startswith("look again")]


def test_nothing_is_missed_where_the_model_is_right() -> None:
    said = Counter(name for i in range(REPEATS) for name in missed(None, RIGHT, i))
    print(f"{REPEATS} right models: {dict(said)}")
    for count in said.values():  # each at most as often as its p says
        assert count <= SURELY * REPEATS + 3 * np.sqrt(SURELY * REPEATS)


@pytest.mark.parametrize("effect", MISSED)
def test_what_lacks_is_found(effect: str) -> None:
    feature, terms = MISSED[effect]
    runs = max(REPEATS // 5, 5)
    said = Counter(name for i in range(runs) for name in missed(effect, terms, i))
    print(f"{effect}: {dict(said)} of {runs}")
    assert said[feature] >= (0.3 if effect == "shift" else 0.9) * runs  # 1,500 steps show a shift of the centre dimly
    assert sum(said.values()) - said[feature] <= 0.2 * runs


def test_levels_that_differ_are_no_misfit() -> None:
    """Each level's points are drawn from its own fit: a mixture of subjects is not what the group's curve gives."""
    said = Counter[str]()
    runs = max(REPEATS // 10, 3)
    for i in range(runs):
        obs = subjects(np.random.default_rng([8, i]))
        model = un.Additive("s(step, k=10)", BOX)
        each = un.fit_each(model, obs, by="subject", objective=un.Logistic(per_point=8), rng=i)
        said.update(one.feature.name for one in measured(grouped(each, model, obs, seed=i)) if one.missed)
    assert sum(said.values()) <= 0.2 * runs
