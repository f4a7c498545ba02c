"""Section S of the outside review of 0.1.0, each case as it must be.

Over repetitions: tests/slow/test_standard_errors.py, test_reference_error.py and test_sizes.py.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import chi2

import unnorm as un
from unnorm.errors import InputError

U = un.Uniform()
UNIT = un.Interval(0, 1)
SLOPE = un.ExponentialFamily(lambda y: (y,), ("y",), UNIT)
SQUARE = un.ExponentialFamily(lambda y: (y, y**2), ("y", "y2"), UNIT)
SQUARE_TERMS = un.Additive("y + y2", UNIT, covariates=[un.Expression("y2", "y**2")])
WALK = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
WAVY = un.ExponentialFamily(
    lambda y, x: (y, -0.5 * (y - x) ** 2, jnp.cos(3 * y)), ("theta1", "theta2", "wave"), un.Interval(-1, 1)
)
CHI = un.Smooth("s(y_prev, bs='cr', k=8, fx=True)")


def _chain(n: int = 300, rng: int = 1) -> un.Observations:
    return un.transitions(un.datasets.toy_chain(n, 0.5, 5.0, rng=rng))


def _parts(fit: un.Fit) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = fit.tidy()
    return tuple(np.array(table[name]) for name in ("se", "se_sampling", "se_reference"))  # pyright: ignore


# --- S1: weights are frequencies --------------------------------------------------------------------------------------

WITH_CONTEXT: dict[str, tuple[Any, Any]] = {
    "exact": (un.Exact(), None),
    "poisson": (un.Poisson(), None),
    "logistic iid": (un.Logistic(U, per_point=5, points=un.IID()), CHI),
    "logistic stratified": (un.Logistic(U, per_point=5, points=un.Stratified()), CHI),
    "logistic lattice": (un.Logistic(U, per_point=5, points=un.Lattice()), CHI),
    "logistic sobol": (un.Logistic(U, per_point=5, points=un.Sobol()), CHI),
    "logistic lattice ×2": (un.Logistic(U, per_point=6, points=un.Lattice(randomisations=2)), CHI),
    "logistic per context": (un.Logistic(U, per_point=5, points=un.IID()), un.PerContext()),
    "logistic per context, lattice": (un.Logistic(U, per_point=5, points=un.Lattice()), un.PerContext()),
    "importance iid": (un.Importance(U, per_point=5, points=un.IID()), CHI),
    "importance lattice": (un.Importance(U, per_point=5, points=un.Lattice()), CHI),
    "importance per context": (un.Importance(U, per_point=60, points=un.IID()), un.PerContext()),
    "ranking": (un.Ranking(U, per_point=5), None),
    "ranking k=1": (un.Ranking(U, per_point=1), None),
    "conditional nce": (un.ConditionalNCE(U, per_point=5), None),
}


@pytest.mark.filterwarnings("ignore:χ̂ and −log:unnorm.errors.UnnormWarning")  # χ is penalised, or has few terms
@pytest.mark.parametrize("name", WITH_CONTEXT)
@pytest.mark.parametrize("w", [5.0, 20.0])
def test_s1_one_weight_for_all(name: str, w: float) -> None:
    """w copies of every row that share its points: 1/w of the data's variance, all of the points'."""
    objective, normaliser = WITH_CONTEXT[name]
    once = _chain()
    weighted = dataclasses.replace(once, weight=np.full(once.n, w))
    first, many = (un.fit(WALK, obs, objective, normaliser, rng=3) for obs in (once, weighted))
    np.testing.assert_allclose(many.estimate, first.estimate, rtol=1e-6)
    if "se_reference" not in first.tidy():
        np.testing.assert_allclose(many.se * np.sqrt(w), first.se, rtol=1e-6)
        return
    for fit in (first, many):
        se, sampling, reference = _parts(fit)
        np.testing.assert_allclose(se**2, sampling**2 + reference**2, rtol=1e-9)
    _, sampling, reference = _parts(first)
    _, sampling_w, reference_w = _parts(many)
    exact = 1e-5 if name != "conditional nce" else 2e-3  # whose errors are empirical, with N/(N − 1) for N = Σ w
    np.testing.assert_allclose(sampling_w * np.sqrt(w), sampling, rtol=exact)
    once_measured, measured = (fit.solution.scores.measured_spread() for fit in (first, many))
    if once_measured is None:
        np.testing.assert_allclose(reference_w, reference, rtol=1e-5)
    else:  # from more redraws where the points are more of the variance: on the same ones
        np.testing.assert_allclose(measured, w**2 * once_measured, rtol=1e-5, atol=1e-7 * np.abs(measured).max())
        np.testing.assert_allclose(reference_w, reference, rtol=0.5)


POINTS = [un.IID(), un.Stratified(), un.Lattice(), un.Sobol()]


@pytest.mark.parametrize("points", POINTS, ids=repr)
@pytest.mark.parametrize("objective", [un.Logistic, un.Importance])
@pytest.mark.parametrize("model", [SQUARE, SQUARE_TERMS], ids=["family", "additive"])
def test_s1_integer_weights_repeat_iid_rows(model: Any, objective: Any, points: Any) -> None:
    """IID data share their points, so that counts and copies are the same data on the same points."""
    y = np.random.default_rng(0).beta(2, 3, 200)
    w = np.random.default_rng(1).integers(1, 6, 200)
    same = objective(U, total=4000, points=points)
    counts, copies = (un.fit(model, obs, same, rng=1) for obs in (un.iid(y, weight=w), un.iid(np.repeat(y, w))))
    np.testing.assert_allclose(counts.estimate, copies.estimate, rtol=1e-6)
    for of_counts, of_copies in zip(_parts(counts), _parts(copies)):
        np.testing.assert_allclose(of_counts, of_copies, rtol=1e-6, atol=1e-9)
    assert counts.ncic == pytest.approx(copies.ncic, rel=1e-6)


def test_s1_integer_weights_repeat_rows_of_the_likelihood() -> None:
    """Without reference points there is nothing to share: everything is equal, robust errors included."""
    once = _chain(80)
    w = np.random.default_rng(2).integers(1, 5, 80)
    herd = np.arange(80) // 8
    counts = dataclasses.replace(once, weight=w.astype(float), group={"herd": herd})
    copies = dataclasses.replace(once.take(np.repeat(np.arange(80), w)), group={"herd": np.repeat(herd, w)})
    for objective in (un.Exact(cluster="herd"), un.Poisson(cluster="herd")):
        a, b = (un.fit(WALK, obs, objective) for obs in (counts, copies))
        np.testing.assert_allclose(a.covariance, b.covariance, rtol=1e-6)
        np.testing.assert_allclose(a.covariance_robust, b.covariance_robust, rtol=1e-6)
        assert a.aic == pytest.approx(b.aic, rel=1e-9)


# --- S2: clusters of IID data -----------------------------------------------------------------------------------------


def _four_clusters() -> un.Observations:
    rng = np.random.default_rng(3)
    who = np.repeat(np.arange(4), 50)
    return un.iid({"y": 0.6 * rng.beta(2, 2, 200) + 0.1 * who, "who": who}, y="y", group="who")


@pytest.mark.parametrize("points", [un.IID(), un.Lattice()], ids=repr)
@pytest.mark.parametrize("objective", [un.Logistic, un.Importance])
@pytest.mark.parametrize("model", [SLOPE, un.Additive("y", UNIT)], ids=["family", "additive"])
def test_s2_shared_points_are_no_clusters(model: Any, objective: Any, points: Any) -> None:
    """With points in plenty, four clusters have the likelihood's robust error, 4/3 and all."""
    obs = _four_clusters()
    exact = un.fit(SLOPE, obs, un.Exact(cluster="who"))
    fit = un.fit(model, obs, objective(U, total=40_000, points=points, cluster="who"), rng=1)
    np.testing.assert_allclose(fit.tidy(robust=True)["se"], exact.tidy(robust=True)["se"], rtol=0.02)


# --- S3: likelihood ratios of fits that are no likelihoods ------------------------------------------------------------

NO_LIKELIHOOD = {
    "logistic": (un.Logistic(U, per_point=10), CHI),
    "importance": (un.Importance(U, per_point=10), CHI),
    "ranking": (un.Ranking(U, per_point=10), None),
    "conditional nce": (un.ConditionalNCE(U, per_point=10), None),
}


@pytest.mark.parametrize("name", NO_LIKELIHOOD)
def test_s3_no_likelihood_ratio_with_reference_points(name: str) -> None:
    objective, normaliser = NO_LIKELIHOOD[name]
    larger, smaller = (un.fit(model, _chain(), objective, normaliser, rng=1) for model in (WAVY, WALK))
    with pytest.raises(InputError, match="wald"):
        larger.likelihood_ratio(smaller)
    test = larger.wald(("wave",))
    z = larger.estimate[2] / larger.se[2]
    assert test.df == 1
    assert test.statistic == pytest.approx(z**2, rel=1e-9)
    assert test.p_value == pytest.approx(chi2.sf(z**2, 1), rel=1e-9)
    again = larger.wald(smaller)
    assert (again.statistic, again.df) == pytest.approx((test.statistic, test.df))


def test_s3_wald_of_several_parameters_and_clusters() -> None:
    obs = dataclasses.replace(_chain(), group={"who": np.arange(300) // 10})
    fit = un.fit(WAVY, obs, un.Exact(cluster="who"))
    for robust, V in ((False, fit.covariance), (True, fit.covariance_robust)):
        b, V = fit.estimate[1:], V[1:, 1:]
        test = fit.wald(("theta2", "wave"), robust=robust)
        assert test.statistic == pytest.approx(b @ np.linalg.solve(V, b), rel=1e-9)
        assert test.df == 2
        assert not robust or test.p_value >= chi2.sf(test.statistic, 2) * (1 - 1e-9)  # few clusters: not smaller
    with pytest.raises(InputError, match="wavy"):
        fit.wald(("wavy",))


def test_s3_the_likelihood_keeps_its_ratio() -> None:
    larger, smaller = (un.fit(model, _chain(), un.Exact()) for model in (WAVY, WALK))
    test = larger.likelihood_ratio(smaller)
    assert test.statistic == pytest.approx(2 * (larger.loglik - smaller.loglik))
    assert test.p_value == pytest.approx(larger.wald(smaller).p_value, abs=0.1)


# --- S4: one model, one set of points, one standard error -------------------------------------------------------------


@pytest.mark.parametrize(
    "objective",
    [
        un.Exact(),
        un.Poisson(),
        un.Logistic(U, total=4000, points=un.Lattice()),
        un.Logistic(U, total=4000, points=un.IID()),
        un.Importance(U, total=4000, points=un.Lattice()),
        un.Importance(U, total=4000, points=un.IID()),
    ],
    ids=["exact", "poisson", "logistic lattice", "logistic iid", "importance lattice", "importance iid"],
)
def test_s4_the_same_model_twice_under_misspecification(objective: Any) -> None:
    """U-shaped data, a monotone model: written as a family or as terms it is one model."""
    obs = un.iid(np.random.default_rng(0).beta(0.5, 0.5, 300))
    family, additive = (un.fit(model, obs, objective, rng=1) for model in (SLOPE, un.Additive("y", UNIT)))
    np.testing.assert_allclose(additive.estimate, family.estimate, rtol=1e-6)
    np.testing.assert_allclose(additive.se, family.se, rtol=1e-3)
    if "se_sampling" in family.tidy():
        np.testing.assert_allclose(_parts(additive)[1], _parts(family)[1], rtol=1e-3)


# --- S5: fewer independent units than parameters ----------------------------------------------------------------------


def _refused(fitted: Callable[[], un.Fit]) -> None:
    """No error from fewer units than parameters: the fit says so, and has none."""
    with pytest.warns(un.errors.UnnormWarning, match=r"No standard errors: .* independent observations?.*un.Exact"):
        fit = fitted()
    assert not fit.has_covariance
    assert "without standard errors" in fit.summary()
    with pytest.raises(InputError, match="independent"):
        _ = fit.se


def test_s5_one_graph() -> None:
    """12 of 45 edges: the information of the edge parameter is 45 p (1 − p)."""
    omega = un.Graphs(10)
    edges = un.ExponentialFamily(lambda y: (y.sum(),), ("edges",), omega)
    one = un.iid((np.arange(45) < 12).astype(float)[None])
    flips = un.ConditionalNCE(un.BitFlip(), per_point=40)
    _refused(lambda: un.fit(edges, one, flips, rng=1))


def test_s5_two_observations_of_four_parameters() -> None:
    bits = un.ExponentialFamily(lambda y: tuple(y), tuple("abcd"), un.BinaryVectors(4))
    two = un.iid(np.array([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]]))
    flips = un.ConditionalNCE(un.BitFlip(), per_point=4)
    _refused(lambda: un.fit(bits, two, flips, rng=1))


def test_s5_fewer_clusters_than_parameters() -> None:
    obs = dataclasses.replace(_chain(), group={"who": np.arange(300) // 150})
    fit = un.fit(WAVY, obs, un.Exact(cluster="who"))
    with pytest.raises(InputError, match="cluster"):
        fit.tidy(robust=True)


# --- S6: 𝓜 with one constant for many contexts is no likelihood -------------------------------------------------------


def test_s6_ignored_constants_are_no_likelihood() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit, smaller = (un.fit(model, _chain(), un.Poisson(), un.Constant()) for model in (WAVY, WALK))
    assert not fit.is_likelihood
    with pytest.raises(InputError):
        _ = fit.aic
    with pytest.raises(InputError):
        fit.likelihood_ratio(smaller)
    assert "AIC" not in fit.summary()
    exact = un.fit(WAVY, _chain(), un.Poisson())
    assert exact.is_likelihood
    assert np.isfinite(exact.aic)


# --- S7: the reference error when the smoothing is chosen again -------------------------------------------------------


@pytest.mark.filterwarnings("ignore:χ̂ and −log:unnorm.errors.UnnormWarning")  # χ is penalised, or has few terms
@pytest.mark.parametrize("points", [un.IID(), un.Lattice()], ids=repr)
def test_s7_reference_error_of_a_penalised_curve_is_its_spread(points: Any) -> None:
    """Over 25 redraws for each of two data sets, whose spread is known to a tenth; the slow suite has more."""
    curve = un.Additive("s(gap, k=10)", un.Interval(-1, 1), covariates=[un.Expression("gap", "abs(y - y_prev)")])
    at, objective = {"gap": np.linspace(0.05, 1.2, 12)}, un.Logistic(U, per_point=5, points=points)
    how = {"normaliser": un.Smooth("s(y_prev, k=8)", smoothing="reml"), "smoothing": un.Smoothing("reml", threads=1)}
    spread, claimed = [], []
    for seed in (1, 2):
        fits = [un.fit(curve, _chain(240, seed), objective, rng=r, **how) for r in range(25)]
        effects = [fit.effect("s(gap)", at=at, centre="observations") for fit in fits]
        spread.append(np.var([effect["estimate"] for effect in effects], axis=0, ddof=1))
        claimed.append(np.mean([effect["se_reference"] ** 2 for effect in effects], axis=0))
    # first order in the points: short of the truth where λ jumps to infinity and back, as with IID points and seed 1;
    # with λ held fixed it would be .45 (IID) and .8
    assert (0.6 if points == un.IID() else 0.8) < np.sqrt(np.mean(claimed) / np.mean(spread)) < 1.4


# --- S8: points from a kernel, a density that is not the kernel's -----------------------------------------------------


def _near(rng: np.random.Generator, n: int, x: np.ndarray) -> np.ndarray:
    """N(x, 0.3²) truncated to [−1, 1]."""
    low, high = ndtr((-1 - x) / 0.3), ndtr((1 - x) / 0.3)
    return np.clip(x + 0.3 * ndtri(low + rng.random(n) * (high - low)), -1, 1)


def _habitat_walk(n: int) -> un.Observations:
    """Steps from the kernel, accepted in proportion to exp(cos 3y)."""
    rng, y = np.random.default_rng(5), [0.0]
    while len(y) <= n:
        new = float(_near(rng, 1, np.array(y[-1:]))[0])
        if rng.random() < np.exp(np.cos(3 * new) - 1):
            y.append(new)
    return un.transitions(np.array(y))


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("objective", [un.Ranking, un.ConditionalNCE])
def test_s8_parts_add_up_where_f_is_relative_to_the_kernel(objective: Any, k: int) -> None:
    """A uniform density claimed for the kernel's points makes f relative to the kernel: habitat-only step selection.

    Refused unless check=False takes the claim on trust.
    """
    kernel = un.Custom(_near, lambda y, x: np.full(len(y), -np.log(2.0)), name="kernel", check=False)
    habitat = un.ExponentialFamily(lambda y, x: (jnp.cos(3 * y),), ("habitat",), un.Interval(-1, 1))
    obs = _habitat_walk(200)
    fits = [un.fit(habitat, obs, objective(kernel, per_point=k), rng=r) for r in range(100)]
    se, sampling, reference = (np.array([_parts(fit)[part][0] for fit in fits]) for part in range(3))
    np.testing.assert_allclose(se**2, sampling**2 + reference**2, rtol=1e-9)
    assert np.all(sampling > 0.25 * se)
    spread = np.std([fit.estimate[0] for fit in fits], ddof=1)
    assert np.mean(reference) == pytest.approx(spread, rel=0.25)  # 100 redraws know it to 7 %


# --- S9: a stochastic run that has not arrived ------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [100, 300])
def test_s9_a_short_run_does_not_call_itself_converged(steps: int) -> None:
    """Steps of 0.001 from 0 towards fields of 2: two to six blocks, nearly two away from the maximum."""
    optax = pytest.importorskip("optax")
    fields = un.ExponentialFamily(lambda y: (y,), tuple(f"h{j}" for j in range(6)), un.BinaryVectors(6))
    obs = un.iid((np.random.default_rng(0).random((500, 6)) < 1 / (1 + np.exp(-2.0))).astype(float))
    exact = un.fit(fields, obs)
    solver = un.SGD(optax.adam(1e-3), steps=steps, batch=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = un.fit(fields, obs, un.Logistic(U, total=500), solver=solver, rng=1)
    assert np.max(np.abs(fit.estimate - exact.estimate)) > 1.0
    assert not fit.converged
    assert "steps" in fit.reason
