"""New rows of any kind: those of one level, one row, none."""

import numpy as np
import pytest

import unnorm as un

FORMULAS = [
    "te(x, z, by=g, k=3) + g",
    "ti(x, z, by=g, k=4) + g",
    "t2(x, z, k=4)",
    "s(x, by=g, bs='cr') + g",
    "s(x, g, bs='fs', k=4)",
    "s(g, bs='re') + s(g, bs='re', by=z)",
    "te(x, g, bs=('cr', 're'), k=4)",
    "s(x) + g*z",
]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    n = 150
    x, z, g = rng.uniform(size=n), rng.normal(size=n), rng.choice(["a", "b", "c"], n)
    return {"x": x, "z": z, "g": g, "y": np.sin(6 * x) + z * (g == "b") + 0.3 * rng.normal(size=n)}


@pytest.mark.parametrize("formula", FORMULAS)
def test_some_rows_are_predicted_as_among_all(table, formula):
    fit = un.gam("y ~ " + formula, table)
    whole, errors = fit.predict(table)
    draws = fit.draws(3, table, kind="link", rng=1)
    X = fit.predict(table, kind="matrix")
    terms = np.column_stack(list(fit.predict(table, kind="terms", se=False).values()))
    for keep in (table["g"] == "b", np.arange(150) == 7, np.zeros(150, bool)):
        some = {name: column[keep] for name, column in table.items()}
        eta, se = fit.predict(some)
        assert eta == pytest.approx(whole[keep])
        assert se == pytest.approx(errors[keep])
        assert fit.draws(3, some, kind="link", rng=1) == pytest.approx(draws[:, keep])
        assert fit.predict(some, kind="matrix") == pytest.approx(X[keep])
        here = fit.predict(some, kind="terms", se=False)
        assert np.column_stack(list(here.values())) == pytest.approx(terms[keep])
        for term in fit.terms:
            assert len(fit.effect(term.label, at=some)["estimate"]) == keep.sum()
