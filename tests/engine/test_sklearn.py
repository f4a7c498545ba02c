"""`unnorm.sklearn.GAM`: scikit-learn's own checks, and that it is `un.gam`."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import unnorm as un

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.base import clone, is_classifier, is_regressor  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from unnorm.errors import DataError, InputError  # noqa: E402
from unnorm.sklearn import GAM  # noqa: E402

ESTIMATORS = [GAM(), GAM(family="binomial"), GAM(family="poisson"), GAM(family="binomial", link="probit", k=5)]


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # the checks have separated classes, and few rows
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def simulated(n=300):
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"a": rng.random(n), "two words": rng.normal(size=n), "flag": rng.integers(0, 2, n)})
    f = np.sin(6 * X["a"]) + 0.5 * X["flag"]
    return X, f + 0.2 * rng.normal(size=n), (rng.random(n) < 1 / (1 + np.exp(-3 * f))).astype(int)


def test_it_is_un_gam():
    X, y, _ = simulated()
    estimator = GAM("s(a, k=8) + flag").fit(X, y)
    fit = un.gam("y ~ s(a, k=8) + flag", X.assign(y=y))
    np.testing.assert_allclose(estimator.predict(X), fit.predict(X).estimate, atol=1e-10)
    np.testing.assert_allclose(estimator.predict_with_errors(X).se, fit.predict(X).se, rtol=1e-8)
    assert isinstance(estimator.gam_, un.Gam)
    plain = GAM("s(x0, k=8) + x2").fit(X.to_numpy(), y)
    np.testing.assert_allclose(plain.predict(X.to_numpy()), estimator.predict(X), atol=1e-10)


def test_default_terms_find_the_curve_and_leave_out_the_rest():
    X, y, z = simulated()
    estimator = GAM().fit(X, y)
    assert estimator.gam_.edf["s(a)"] > 3
    assert estimator.gam_.edf["s(two words)"] < 1
    assert "s(flag)" in estimator.gam_.edf
    classifier = GAM(family="binomial").fit(X, np.where(z, "yes", "no"))
    assert classifier.classes_.tolist() == ["no", "yes"]
    p = classifier.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    for link in ("logit", "probit", "cloglog"):
        other = GAM(family="binomial", link=link).fit(X, z)
        assert ((other.decision_function(X) > 0) == (other.predict_proba(X)[:, 1] > 0.5)).all()
        assert other.score(X, z) > 0.75
    assert np.array_equal(classifier.predict(X) == "yes", p[:, 1] > 0.5)


def test_tags_and_methods_follow_the_family():
    assert is_regressor(GAM()) and not hasattr(GAM(), "predict_proba")  # noqa: PT018
    assert is_classifier(GAM(family="binomial")) and hasattr(GAM(family="binomial"), "predict_proba")  # noqa: PT018
    assert clone(GAM("s(a)", k=7)).get_params() == {
        "terms": "s(a)", "family": "gaussian", "link": None, "method": "REML", "k": 7,
    }  # fmt: skip


def test_pickles_hold_numbers_only():
    X, y, _ = simulated()
    estimator = GAM("s(a) + s(flag, bs='re')").fit(X, y)
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.predict(X), estimator.predict(X))
    assert again.gam_.summary() == estimator.gam_.summary()


def test_errors():
    X, y, z = simulated()
    with pytest.raises(InputError, match="'quasipoisson'"):
        GAM(family="gamma").fit(X, y)
    with pytest.raises(ValueError, match="binary"):
        GAM(family="binomial").fit(X, np.arange(300) % 3)
    with pytest.raises(ValueError, match="one class"):
        GAM(family="binomial").fit(X, np.zeros(300, int))
    with pytest.raises(DataError, match="nothing to explain"):
        GAM().fit(X, np.ones(300))
    assert z.size == 300


def test_importing_unnorm_does_not_import_sklearn():
    code = "import sys, unnorm; assert not any(name.split('.')[0] == 'sklearn' for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_any_name_of_a_feature_will_do():
    X, y, _ = simulated()
    odd = X.set_axis(["response", 'it\'s "so": ~ ^', "as.factor(x"], axis=1)
    np.testing.assert_array_equal(GAM().fit(odd, y).predict(odd), GAM().fit(X, y).predict(X))
    assert GAM("s(response)").fit(odd, y).gam_.response == "response_"


def test_many_features_are_no_long_formula():
    rng = np.random.default_rng(1)
    X = rng.random((40, 600))
    assert len(GAM(k=3).fit(X, rng.normal(size=40)).gam_.terms) == 600


def test_categories_are_refused_with_the_remedy():
    X, y, _ = simulated()
    for column in (X["flag"].astype("category"), pd.Categorical(np.where(X["a"] > 0.5, "p", "q"))):
        with pytest.raises(InputError, match=r"'flag' are categories.*OneHotEncoder"):
            GAM().fit(X.assign(flag=column), y)
    polars = pytest.importorskip("polars")
    table = polars.DataFrame(
        {"a": X["a"].to_numpy(), "e": polars.Series(["p", "q"] * 150, dtype=polars.Enum(["p", "q"]))}
    )
    with pytest.raises(InputError, match="'e' are categories"):
        GAM().fit(table, y)


@pytest.mark.parametrize("k", [0, -5, 2.5, "a", None, True])
def test_k_is_a_number_of_functions(k):
    X, y, _ = simulated()
    with pytest.raises(InputError, match="k must be a whole number"):
        GAM(k=k).fit(X, y)


def test_new_levels_are_said_and_extrapolation_is_not():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"x": rng.random(100), "g": rng.integers(0, 5, 100)})
    fit = GAM("s(x) + s(factor(g), bs='re')").fit(X, rng.normal(size=100))
    with pytest.warns(un.errors.UnnormWarning, match="levels that were not in the data"):
        fit.predict(X.assign(g=9))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit.predict(X.assign(x=9.0))


def test_small_tables_get_small_bases():
    rng = np.random.default_rng(1)
    fit = GAM().fit(rng.random((30, 4)), rng.normal(size=30)).gam_
    assert sum(term.size for term in fit.terms) < 30
    for family, positive in (("gaussian", False), ("poisson", True), ("nb", True), ("binomial", False)):
        assert GAM(family=family).__sklearn_tags__().target_tags.positive_only == positive


def test_terms_are_of_the_features():
    """The response stands in the same table: s(response) once fitted y by y."""
    X, y = np.random.default_rng(1).random((60, 2)), np.arange(60.0)
    for terms in ("s(response)", "x0 + log(response + 1)", "x0 + offset(response)", un.s("x0", by="response")):
        with pytest.raises(DataError, match=r"no feature 'response' .*terms=.*the features are 'x0', 'x1'"):
            GAM(terms).fit(X, y)
    with pytest.raises(InputError, match=r"right side of a formula.*got the response 'y'. Leave it"):
        GAM("y ~ s(x0)").fit(X, y)
    GAM("s(log(x0 + 1)) + offset(x1) + x0:x1").fit(X, y)
