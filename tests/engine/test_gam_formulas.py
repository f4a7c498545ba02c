"""Formulas as R's users write them: computed columns, offset(), a:b, a*b, cbind(); figures in tests/oracles/mgcv."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unnorm as un
from unnorm.errors import CombinationError, DataError, TermError
from unnorm.terms import from_dict, parse

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
FITS = json.loads((HERE / "formulas.json").read_text())["fits"]


def rows():
    table = pd.read_csv(HERE / "fits_rows.csv")
    x3 = table["x3"]
    table["h"] = np.where(x3 < -0.3, "low", np.where(x3 < 0.3, "mid", "high"))
    table["e"] = np.exp(table["off"])
    return table


DATA = rows()


@pytest.mark.parametrize("one", FITS, ids=lambda one: one["formula"])
def test_formulas_mean_what_they_mean_in_mgcv(one):
    fit = un.gam(one["formula"], DATA, family=one["family"])
    eta, se = fit.predict(DATA)
    at = np.array(one["rows"], int)
    assert np.abs((eta[at] - one["eta"]) / one["se"]).max() < 0.005
    np.testing.assert_allclose(se[at], one["se"], rtol=2e-3)
    assert fit.score == pytest.approx(one["score"], abs=1e-3)
    assert fit.aic == pytest.approx(one["aic"], abs=0.01)
    # the same coefficients by the same names, R's order within a product apart
    theirs = dict(zip(one["names"], one["coefficients"]))
    ours = {name: value for name, value in fit.coefficients.items() if not name.startswith("s(")}
    renamed = {frozenset(name.replace("I(x2^2)", "x2 ** 2").split(":")): value for name, value in theirs.items()}
    assert {frozenset(name.split(":")) for name in ours} == set(renamed)
    for name, value in ours.items():
        assert value == pytest.approx(renamed[frozenset(name.split(":"))], abs=5e-3), name


def test_a_computed_column_is_the_column_computed_beforehand():
    table = DATA.assign(lx=np.log(DATA["x1"] + 0.1), squared=DATA["x2"] ** 2)
    inside = un.gam("y ~ s(log(x1 + .1)) + I(x2^2)", DATA)
    before = un.gam("y ~ s(lx) + squared", table)
    np.testing.assert_allclose(inside.predict(DATA).estimate, before.predict(table).estimate, rtol=1e-10)
    np.testing.assert_allclose(
        inside.effect("s(log(x1 + 0.1))", at=DATA.head(5))["estimate"],
        before.effect("s(lx)", at=table.head(5))["estimate"],
        rtol=1e-10,
    )


def test_offsets_of_formula_and_argument_add_up_and_are_read_again():
    both = un.gam("count_off ~ s(x1) + offset(log(e))", DATA, family="poisson", offset="x3")
    array = un.gam("count_off ~ s(x1)", DATA, family="poisson", offset=np.log(DATA["e"]) + DATA["x3"])
    np.testing.assert_allclose(both.linear_predictor, array.linear_predictor, atol=1e-10)
    new = DATA.head(4).assign(e=2 * DATA["e"].head(4))
    shift = both.predict(new, se=False) - both.predict(DATA.head(4), se=False)
    np.testing.assert_allclose(shift, np.log(2.0), atol=1e-12)


def test_successes_and_failures_are_proportions_with_trials():
    counts = un.gam("cbind(successes, trials - successes) ~ s(x1)", DATA, family="binomial")
    table = DATA.assign(p=DATA["successes"] / DATA["trials"])
    shares = un.gam("p ~ s(x1)", table, family="binomial", weights="trials")
    np.testing.assert_array_equal(counts.linear_predictor, shares.linear_predictor)
    twin = un.gam(un.s("x1"), DATA, family="binomial", response="cbind(successes, trials - successes)")
    np.testing.assert_array_equal(twin.linear_predictor, shares.linear_predictor)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("y ~ a*b", "y ~ a + b + a:b"),
        ("y ~ a*b:c", "y ~ a + b:c + a:b:c"),
        ("y ~ (a*b):c", "y ~ a:c + b:c + a:b:c"),
        ("y ~ (a + b)*c + s(x)", "y ~ a + b + c + a:c + b:c + s(x)"),
        ("y ~ a + a*factor(g)", "y ~ a + factor(g) + a:factor(g)"),
        ("y ~ a:a", "y ~ a"),
        ("y ~ s(I(x ^ 2), k=5) + offset(log( e ))", "y ~ s(x**2, k=5) + offset(log(e))"),
        ("log(y+1) ~ x", "log(y + 1) ~ x"),
        ("y ~ a*b + a", "y ~ a + b + a:b"),  # whichever comes first
        ("y ~ a*g + factor(g)", "y ~ a + factor(g) + a:g"),
        ("y ~ I(a*b)", "y ~ I( a * b )"),  # not a + b + a:b
        ("y ~ I(a + b):c + log(a):b", "y ~ I(a+b):c + log(a):b"),
    ],
)
def test_products_expand_as_in_R_and_are_read_back(text, same):
    terms = parse(text, table=True)
    assert str(terms) == str(parse(same, table=True))
    assert str(parse(str(terms), table=True)) == str(terms)


def test_the_formula_of_a_fit_is_that_model():
    for text in ("y ~ I(x1 * x2)", "y ~ I(x1 > 0.5) + I(x1^2):g", "y ~ s(x1 / 2) + I(x1 - x2)"):
        fit = un.gam(text, DATA)
        again = un.gam(fit.formula, DATA)
        assert list(again.coefficients) == list(fit.coefficients)
        np.testing.assert_array_equal(again.fitted, fit.fitted)


def test_an_interaction_is_saved_and_read_back():
    built = parse("y ~ g*lin").build({"g": DATA["g"].to_numpy(), "lin": DATA["lin"].to_numpy()})
    term = built[-1]
    assert term.label == "g:lin"
    columns = {"g": DATA["g"].to_numpy(), "lin": DATA["lin"].to_numpy()}
    again = from_dict(json.loads(json.dumps(term.to_dict())))
    np.testing.assert_array_equal(again.design(columns), term.design(columns))
    assert str(un.interaction("lin", un.factor("g"))) == "lin:factor(g)"


@pytest.mark.parametrize(
    ("formula", "family", "error", "says"),
    [
        ("y ~ s(log(x3))", "gaussian", DataError, "not finite in"),
        ("y ~ x1^2", "gaussian", TermError, "Write I(x1^2)"),
        ("y ~ s(x1):g", "gaussian", TermError, "use by="),
        ("y ~ log(g)", "gaussian", DataError, "arithmetic needs numbers"),
        ("y ~ log(nothing)", "gaussian", DataError, "no column 'nothing'"),
        ("y ~ s(__import__('os'))", "gaussian", TermError, "column names"),
        ("y ~ I(__import__('os'))", "gaussian", TermError, "may use"),
        ("y ~ offset(x1, x2)", "gaussian", TermError, "one column"),
        ("cbind(successes) ~ s(x1)", "binomial", TermError, "successes and failures"),
        ("cbind(successes, trials) ~ s(x1)", "poisson", CombinationError, "binomial response"),
        ("cbind(x3, trials) ~ s(x1)", "binomial", DataError, "must not be negative"),
    ],
)
def test_errors(formula, family, error, says):
    with pytest.raises(error, match=None) as caught:
        un.gam(formula, DATA, family=family)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("formula", "columns"),  # columns: the rank of R's model matrix
    [
        ("y ~ x1:g + x1:h", 9),  # R: 1 + 6 + 2: contrasts in the second
        ("y ~ linear(x1, x2) + x1:g", 8),
        ("y ~ x1 + g + h + x1:g:h", 26),  # R's has 27 columns, one of them aliased
        ("y ~ x1*g:h", 36),
        ("y ~ x1:g + x1:h:g + x2", 20),
        ("y ~ x1:h:g + x2:g - 1", 24),
        ("y ~ 0 + factor(x3) + g:h", 20),  # a constant is in both
        ("y ~ 0 + g:h + h:factor(x3)", 24),
    ],
)
def test_products_have_the_columns_that_the_rows_tell_apart(formula, columns):
    rng = np.random.default_rng(1)
    n = 400
    table = {"x1": rng.normal(size=n), "x2": rng.normal(size=n), "y": rng.normal(size=n)}
    table["x3"] = rng.integers(0, 3, n)
    table |= {"g": rng.choice(list("abcdef"), n), "h": rng.choice(list("uvw"), n)}
    fit = un.gam(formula, table)
    X = fit.predict(kind="matrix")
    assert X.shape[1] == columns == np.linalg.matrix_rank(X)


def test_combinations_without_rows_are_named():
    table = DATA[~((DATA["g"] == "a") & (DATA["h"] == "low"))]
    with pytest.raises(TermError, match=r"1 of 18 combinations.*g = 'a', h = 'low'"):
        un.gam("y ~ g*h", table)


def test_models_without_a_table_refuse_arithmetic():
    with pytest.raises(TermError, match="column names"):
        un.Additive("s(log(step))", un.Box((0, 1), (0, 1)))
    with pytest.raises(TermError, match=r"un\.gam"):
        un.Additive("s(step) + offset(x)", un.Box((0, 1), (0, 1)))


def plain():
    """A table that R makes to the last digit too."""
    i = np.arange(150)
    x, z = (i * 0.6180339887) % 1, (i * 0.4142135623) % 1
    y = np.sin(6 * x) + 0.3 * z + ((i * 7919) % 101) / 101
    return {"x": x, "z": z, "y": y, "k": np.maximum(np.floor(3 * y + 2), 0), "e": np.full(150, 8.0)}


def test_comparisons_as_in_mgcv():
    table = plain()
    curve = un.gam("y ~ s(x)", table).compare(un.gam("y ~ s(x) + s(z)", table))
    assert curve.df == pytest.approx(1.054570, abs=0.003)  # anova(a, b, test="F")
    assert curve.statistic == pytest.approx(18.22771, rel=2e-3)
    assert curve.p == pytest.approx(2.538415e-05, rel=5e-3)
    line = un.gam("k ~ s(x)", table, "poisson").compare(un.gam("k ~ s(x) + z", table, "poisson"))
    assert line.df == pytest.approx(0.976425, abs=0.001)
    assert line.p == pytest.approx(0.05176539, rel=2e-3)
    np.testing.assert_allclose(line.table["residual_df"], [141.77485, 140.79843], atol=0.01)


def test_errors_of_means_as_in_mgcv():
    mean, se = un.gam("k ~ s(x)", plain(), "poisson").predict(kind="response")
    np.testing.assert_allclose(mean[:5], [3.3557046, 1.8193955, 6.4394104, 0.87950586, 4.3564473], rtol=1e-4)
    np.testing.assert_allclose(se[:5], [0.67270536, 0.24905607, 0.54010757, 0.15832033, 0.42675877], rtol=1e-3)


def test_weights_and_trials_multiply_as_in_mgcv():
    table = plain() | {"w": np.tile([1.0, 2.0], 75)}
    fit = un.gam("cbind(k, e) ~ s(x)", table, "binomial", weights="w")
    expected = [-0.84764491, -1.4982744, -0.21886153, -2.2401657, -0.60574698]
    np.testing.assert_allclose(fit.linear_predictor[:5], expected, atol=1e-4)
    errors = [0.042429886, 0.019024664, 0.022546256, 0.014227263, 0.022780288]
    np.testing.assert_allclose(fit.predict(kind="response").se[:5], errors, rtol=1e-3)


def test_missing_weights_of_successes_and_failures_are_missing():
    table = {"k": np.arange(1, 41) % 7, "f": np.arange(40) % 5 + 1, "x": np.linspace(0, 1, 40), "w": np.ones(40)}
    table["w"][3] = np.nan
    with pytest.raises(DataError, match="1 of 40 rows have missing"):
        un.gam("cbind(k, f) ~ x", table, "binomial", weights="w")
    kept = un.gam("cbind(k, f) ~ x", table, "binomial", weights="w", missing="drop")
    assert kept.n == 39
