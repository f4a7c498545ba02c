"""χ in an RKHS in `un.fit`: with every kind of context, as δ of anchored constants, saved, and on its path."""

import warnings
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import CombinationError, DataError, InputError, UnnormWarning

pytestmark = pytest.mark.filterwarnings(
    "ignore::unnorm.errors.UnnormWarning"
)  # penalised χ, and few functions for a curve

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
CHAIN = un.transitions(un.datasets.toy_chain(150, 0.5, 5.0, rng=1))
NCD = un.Logistic(un.Uniform(), per_point=10)


def regression(n: int = 250, seed: int = 0) -> un.Observations:
    """y on [−1, 1] with density ∝ exp((2 + u) y), u = 1 where the word `a` occurs."""
    rng = np.random.default_rng(seed)
    words = np.array([" ".join(rng.choice(list("abcde"), 2, replace=False)) for _ in range(n)])
    u = np.array(["a" in text for text in words]).astype(float)
    t = 2.0 + u
    y = np.log(np.exp(-t) + rng.random(n) * (np.exp(t) - np.exp(-t))) / t
    return un.conditional({"y": y, "u": u, "words": words}, y="y", x=("u", "words"))


SLOPE = un.ExponentialFamily(lambda y, x: (y, y * x["u"]), ("level", "slope"), un.Interval(-1, 1))


def test_a_kernel_of_sets_sees_what_f_reads() -> None:
    obs = regression()
    exact = un.fit(SLOPE, obs)
    chi = un.Kernel(un.kernels.Jaccard(), "words", lam=1e-3)
    fit = un.fit(SLOPE, obs, un.Poisson(), chi)
    np.testing.assert_allclose(fit.estimate, exact.estimate, atol=0.02 * float(exact.se.min()))
    assert "kernel(words" in str(fit.settings["normaliser"])


def test_columns_left_out_are_those_of_the_context() -> None:
    with_names = un.fit(TOY, CHAIN, NCD, un.Kernel(un.kernels.Gaussian(0.5), "y_prev"), rng=1)
    without = un.fit(TOY, CHAIN, NCD, un.Kernel(un.kernels.Gaussian(0.5)), rng=1)
    np.testing.assert_array_equal(with_names.estimate, without.estimate)
    assert repr(un.Kernel()) == "Kernel(\"kernel(…, k='gaussian')\")"
    with pytest.raises(CombinationError, match="names no columns"):
        _ = un.Kernel().terms


def test_it_is_a_term_of_smooth_and_of_anchored_too() -> None:
    kernel = un.kernel("y_prev", k="gaussian", scale=0.5, lam=0.05)
    one = un.fit(TOY, CHAIN, NCD, un.Kernel(un.kernels.Gaussian(0.5), lam=0.05), rng=1)
    other = un.fit(TOY, CHAIN, NCD, un.Smooth(kernel), rng=1)
    np.testing.assert_allclose(one.estimate, other.estimate, atol=1e-10)
    exact = un.fit(TOY, CHAIN)
    anchored = un.fit(TOY, CHAIN, NCD, un.Anchored(un.kernel("y_prev")), rng=1)
    assert np.all(np.abs(anchored.estimate - exact.estimate) < 0.5 * exact.se)


def test_saved_and_loaded(tmp_path) -> None:  # type: ignore[no-untyped-def]
    fit = un.fit(TOY, CHAIN, NCD, un.Kernel("matern", landmarks=20), rng=1)
    fit.save(tmp_path / "fit")
    again = un.load(tmp_path / "fit", TOY)
    assert again.smooths is not None
    assert fit.smooths is not None
    at = {"y_prev": np.linspace(-1, 1, 7)}
    np.testing.assert_array_equal(again.smooths.chi(at, 7), fit.smooths.chi(at, 7))


def test_lambda_by_cross_validation() -> None:
    fit = un.fit(TOY, CHAIN, NCD, un.Kernel(un.kernels.Gaussian(0.5)), rng=1, smoothing="cv")
    assert fit.smooths is not None
    assert 0 < fit.smooths.sp["kernel(y_prev)"] < np.inf


def test_it_refuses_what_it_cannot_do() -> None:
    kernel = un.Kernel("gaussian")
    with pytest.raises(CombinationError, match="cross-validation"):
        un.kernel_path(TOY, CHAIN, kernel, objective=NCD)
    with pytest.raises(InputError, match="factor"):
        un.kernel_path(TOY, CHAIN, kernel, factor=2.0)
    with pytest.raises(InputError, match=r"un\.Kernel"):
        un.kernel_path(TOY, CHAIN, un.Constant())  # type: ignore[arg-type]
    with pytest.raises(CombinationError):
        un.fit(TOY, CHAIN, un.Exact(), kernel)


# --- χ linear in many features ---


def linear_case(n: int = 300, q: int = 6, size: float = 0.3) -> tuple[un.ExponentialFamily, un.Observations, Any]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, q))
    u = X @ (size * rng.normal(size=q))
    t = 2.0 + u
    y = np.log(np.exp(-t) + rng.random(n) * (np.exp(t) - np.exp(-t))) / t
    columns = {f"x{j}": X[:, j] for j in range(q)}
    return SLOPE, un.conditional({"y": y, "u": u, **columns}, y="y", x=("u", *columns)), X


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
@pytest.mark.parametrize(
    "objective",
    [NCD, un.Logistic(un.Uniform(), per_point=5, points=un.IID()), un.Poisson(), un.Importance(un.Uniform(), 20)],
)
def test_conjugate_gradients_and_the_engine_agree(objective) -> None:  # type: ignore[no-untyped-def]
    """A ridge on the features is the linear kernel: the same θ, errors, value and constants, by two solvers."""
    model, obs, X = linear_case()
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    for lam in (3.0, 0.01):
        by_gradients = un.fit(model, obs, objective, un.Linear(X, lam=lam), rng=1)
        by_engine = un.fit(model, obs, objective, un.Kernel(un.kernels.Linear(scale=1.0), names, lam=lam), rng=1)
        np.testing.assert_allclose(by_gradients.estimate, by_engine.estimate, atol=1e-6)
        np.testing.assert_allclose(by_gradients.se, by_engine.se, rtol=1e-4)
        np.testing.assert_allclose(by_gradients.nu, by_engine.nu, atol=1e-5)
        assert by_gradients.value == pytest.approx(by_engine.value, abs=1e-5)


def test_lambda_is_small_enough_to_leave_theta_alone() -> None:
    model, obs, X = linear_case()
    chosen = un.fit(model, obs, NCD, un.Linear(X), rng=1)
    free = un.fit(model, obs, NCD, un.Linear(X, lam=1e-7), rng=1)
    away = np.abs(chosen.estimate - free.estimate) / free.se
    assert away.max() < 0.05
    assert chosen.diagnostics["bias"] == pytest.approx(away.max(), abs=0.01)


def test_a_penalty_that_biases_is_said_to() -> None:
    model, obs, X = linear_case()
    with pytest.warns(UnnormWarning, match="That is a bias"):
        heavy = un.fit(model, obs, NCD, un.Linear(X, lam=1e4), rng=1)
    free = un.fit(model, obs, NCD, un.Linear(X, lam=1e-7), rng=1)
    assert heavy.diagnostics["bias"] == pytest.approx(
        np.max(np.abs(heavy.estimate - free.estimate) / heavy.se), rel=0.3
    )


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
def test_reml_by_probes_is_the_engines() -> None:
    model, obs, X = linear_case(1000, 20, 0.2)
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    by_probes = un.fit(model, obs, un.Poisson(), un.Linear(X, lam="reml"))
    by_engine = un.fit(model, obs, un.Poisson(), un.Kernel(un.kernels.Linear(scale=1.0), names, lam="reml"))
    assert by_engine.smooths is not None
    (sp,) = by_engine.smooths.sp.values()
    assert 1e-6 < sp < 1e6
    assert by_probes.diagnostics["lam"] == pytest.approx(sp / 2, rel=0.03)


def test_rows_follow_the_table() -> None:
    """Dropped rows of the table drop rows of the features."""
    model, obs, X = linear_case()
    keep = np.arange(obs.n) % 3 != 0
    some = un.fit(model, obs.take(keep), NCD, un.Linear(X), rng=1)
    table = {"y": obs.outcome[keep, 0], "u": obs.context["u"][keep]}
    same = un.fit(model, un.conditional(table, y="y", x="u"), NCD, un.Linear(X[keep]), rng=1)
    np.testing.assert_allclose(some.estimate, same.estimate, atol=0.2 * float(same.se.min()))
    assert un.Linear(X).features(obs.take(keep)).shape == (int(keep.sum()), X.shape[1])


def test_linear_refuses_what_it_cannot_do() -> None:
    model, obs, X = linear_case()
    with pytest.raises(DataError, match="a row for each row"):
        un.fit(model, obs, NCD, un.Linear(X[:10]), rng=1)
    with pytest.raises(DataError, match="not finite"):
        un.Linear(np.full((3, 2), np.nan))
    with pytest.raises(InputError, match="lam"):
        un.Linear(X, lam=0.0)
    with pytest.raises(InputError, match="matrix of numbers"):
        un.Linear(np.array(["a"]))
    with pytest.raises(CombinationError, match="solver of its own"):
        un.fit(model, obs, NCD, un.Linear(X), solver=un.Newton())
    with pytest.raises(CombinationError, match="takes no smooth normaliser"):
        un.fit(model, obs, un.Exact(), un.Linear(X))
    with pytest.raises(CombinationError, match="ExponentialFamily"):
        un.fit(un.Energy(lambda t, y, x: t["a"] * y * x["u"], {"a": 0.0}, un.Interval(-1, 1)), obs, NCD, un.Linear(X))


# --- hashing ---


def test_minwise_estimates_the_jaccard_index() -> None:
    """E⟨x, x'⟩ = J + (1 − J) 2^−b, with the standard error of `hashes` independent trials."""
    rng = np.random.default_rng(0)
    sets = [rng.choice(200, rng.integers(20, 60), replace=False) for _ in range(40)]
    hashes, bits = 1024, 2
    X = un.minwise(sets, hashes=hashes, bits=bits)
    assert X.shape == (40, hashes << bits)
    found = (X @ X.T).toarray()
    index = np.array([[len(set(a) & set(b)) / len(set(a) | set(b)) for b in sets] for a in sets])
    expected = index + (1 - index) / 4
    z = (found - expected)[np.triu_indices(40, 1)] / np.sqrt(expected * (1 - expected) / hashes)[np.triu_indices(40, 1)]
    assert np.abs(z).max() < 4.5
    assert abs(z.mean()) < 0.5
    np.testing.assert_allclose(np.diag(found), 1.0)


def test_minwise_reads_text_and_leaves_empty_sets_empty() -> None:
    X = un.minwise(["b a", "", ["a", "b"]], hashes=8, bits=3, seed=2)
    assert (X[[0]] != X[[2]]).nnz == 0
    assert X[[1]].nnz == 0
    with pytest.raises(InputError, match="bits"):
        un.minwise(["a"], bits=0)
    with pytest.raises(DataError, match="text or whole numbers"):
        un.minwise([[0.5]])


def test_minwise_features_serve_as_chi() -> None:
    obs = regression(400)
    X = un.minwise(obs.context["words"], hashes=64, bits=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = un.fit(SLOPE, obs, NCD, un.Linear(X), rng=1)
    exact = un.fit(SLOPE, obs)
    assert np.all(np.abs(fit.estimate - exact.estimate) < 0.5 * exact.se)
