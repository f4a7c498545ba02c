"""New rows of any kind: those of one level, one row, none."""

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import UnnormWarning

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


@pytest.mark.parametrize("formula", ["s(g, h, bs='re')", "s(x, g, h, bs='fs', k=4)"])
@pytest.mark.parametrize("new", [("z", "p"), ("b", "z"), ("z", "z")])
def test_a_combination_with_one_new_level_has_no_effect(table, formula, new):
    rng = np.random.default_rng(7)
    h = rng.choice(["p", "q"], 150)
    y = table["y"] + 2.0 * (table["g"] == "c") * (h == "q") - 1.0 * (h == "p")
    fit = un.gam("y ~ " + formula, {**table, "h": h, "y": y})
    rows = {"x": np.full(3, 0.4), "g": np.array(["b", new[0], "c"]), "h": np.array(["p", new[1], "q"])}
    with pytest.warns(un.errors.UnnormWarning, match="1 of 3 rows have levels"):
        (effect,) = fit.predict(rows, kind="terms", se=False).values()
    known = fit.predict({name: column[[0, 2]] for name, column in rows.items()}, kind="terms", se=False)
    assert effect[1] == 0.0
    assert effect[[0, 2]] == pytest.approx(next(iter(known.values())))
    assert np.abs(effect[[0, 2]]).min() > 0.0


@pytest.mark.parametrize("levels", [6, 60])
def test_a_new_level_of_curves_has_their_mean(levels):
    """Few levels are columns like others, many are not: neither gives a new level the last one's curve."""
    rng = np.random.default_rng(5)
    x, g = rng.random(600), np.arange(600) % levels
    table = {"x": x, "z": rng.random(600), "g": [f"g{i:02}" for i in g]}
    table["y"] = np.sin(6 * x) + np.cos(5 * x + g) + g / levels + 0.2 * rng.normal(size=600)
    fit = un.gam("y ~ s(z) + s(x, g, bs='fs', k=5)", table)
    assert fit.smoothed.wide == (levels > 6)
    new = {"x": x[:3], "z": table["z"][:3], "g": ["new"] * 3}
    without = fit.predict(new, exclude="s(x,g)", se=False)
    with pytest.warns(UnnormWarning, match="3 of 3 rows have levels that were not in the data"):
        found = fit.predict(new, se=False)
    np.testing.assert_allclose(found, without, rtol=1e-12)
    with pytest.warns(UnnormWarning):
        assert not np.any(fit.predict(new, kind="terms", se=False)["s(x,g)"])
