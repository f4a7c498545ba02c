"""Logistic, Importance, Ranking and ConditionalNCE against direct maximisation of their formulas."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

import unnorm as un
from unnorm._base.numerics import stream
from unnorm.errors import CombinationError, InputError, NoEstimateError
from unnorm.references import BitFlip

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
TOY_ENERGY = un.Energy(
    lambda th, y, x: th["a"] * y - 0.5 * th["b"] * (y - x) ** 2, {"a": 0.0, "b": 1.0}, un.Interval(-1, 1)
)
CHAIN = un.datasets.toy_chain(120, 0.5, 5.0, rng=3)
OBS = un.transitions(CHAIN)
SLOPE = un.ExponentialFamily(lambda y: y, ("a",), un.Interval(0, 1))
IID_OBS = un.iid(np.log1p(np.random.default_rng(0).random(80) * np.expm1(1.5)) / 1.5)


def _rows(objective, model=TOY, obs=OBS, normaliser=None, rng=1):
    """The very rows that a fit with this seed sees."""
    return objective.draw(model, obs, normaliser, np.random.default_rng(stream(rng)))


def _stats(drawn):
    x = drawn.obs.previous()[drawn.at, 0]
    y = drawn.outcome[:, 0]
    return np.column_stack([y, -0.5 * (y - x) ** 2])


def _maximise(f, start):
    found = minimize(lambda v: -f(v), start, method="BFGS", options={"gtol": 1e-9})
    return minimize(lambda v: -f(v), found.x, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x


def test_logistic_with_one_nu_is_logistic_regression() -> None:
    objective = un.Logistic(un.Uniform(), total=400, points=un.IID())
    fit = un.fit(SLOPE, IID_OBS, objective, rng=1)
    drawn = _rows(objective, SLOPE, IID_OBS, un.Constant())
    y, z = drawn.outcome[:, 0], drawn.z

    def loglik(v):
        eta = v[0] * y + v[1] + np.log(80 / 400)  # log q = 0 on [0, 1]
        return np.sum(z * eta - np.logaddexp(0, eta))

    np.testing.assert_allclose([fit.estimate[0], fit.nu[0]], _maximise(loglik, np.zeros(2)), atol=1e-5)
    assert fit.value == pytest.approx(loglik([fit.estimate[0], fit.nu[0]]), rel=1e-12)


def test_per_context_constants_are_separate_intercepts() -> None:
    obs = OBS.take(np.arange(12))
    objective = un.Logistic(un.Uniform(), per_point=6)
    fit = un.fit(TOY, obs, objective, un.PerContext(), rng=1)
    drawn = _rows(objective, TOY, obs, un.PerContext())
    S = _stats(drawn)

    def loglik(v):
        eta = S @ v[:2] + v[2:][drawn.at] + np.log(2) - np.log(6)
        return np.sum(drawn.z * eta - np.logaddexp(0, eta))

    v = np.concatenate([fit.estimate, fit.nu])
    best = minimize(lambda u: -loglik(u), v + 0.1, method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(v, best, atol=2e-4)


def test_ranking_is_conditional_logistic() -> None:
    objective = un.Ranking(un.Uniform(), per_point=8)
    fit = un.fit(TOY, OBS, objective, rng=1)
    drawn = _rows(objective, normaliser=un.PerContext())
    d = _stats(drawn).reshape(OBS.n, 9, 2)

    def loglik(v):
        f = d @ v
        return np.sum(f[:, 0] - logsumexp(f, axis=1))

    np.testing.assert_allclose(fit.estimate, _maximise(loglik, np.array([0.0, 1.0])), atol=1e-5)
    assert fit.value == pytest.approx(loglik(fit.estimate), rel=1e-12)


def test_conditional_nce_by_enumeration_of_its_pairs() -> None:
    rng = np.random.default_rng(6)
    domain = un.BinaryVectors(4)
    y = (rng.random((150, 4)) < 0.6).astype(float)
    model = un.ExponentialFamily(lambda y: (y.sum(), y[0] * y[1]), ("sum", "pair"), domain)
    obs = un.iid(y)
    objective = un.ConditionalNCE(BitFlip(), per_point=4)
    fit = un.fit(model, obs, objective, rng=1)
    drawn = objective.draw(model, obs, un.PerContext(), np.random.default_rng(stream(1)))
    s = np.column_stack([drawn.outcome.sum(axis=1), drawn.outcome[:, 0] * drawn.outcome[:, 1]]).reshape(150, 5, 2)

    def loglik(v):  # the flip is symmetric: log q cancels
        margin = (s[:, :1] - s[:, 1:]) @ v
        return -np.sum(np.logaddexp(0, -margin))

    np.testing.assert_allclose(fit.estimate, _maximise(loglik, np.zeros(2)), atol=1e-5)
    exact = un.fit(model, obs)
    assert np.all(np.abs(fit.estimate - exact.estimate) < 3 * fit.se)


@pytest.mark.parametrize(
    ("objective", "normaliser"),
    [
        (un.Logistic(un.Uniform(), per_point=8), un.PerContext()),
        (un.Logistic(un.Uniform(), per_point=8), un.Smooth("s(y_prev, k=6)")),
        (un.Logistic(un.Uniform(), per_point=8), un.Fixed(0.0)),
        (un.Importance(un.Uniform(), per_point=8), un.Smooth("s(y_prev, k=6)")),
        (un.Importance(un.Uniform(), per_point=60), un.PerContext()),
        (un.Ranking(un.Uniform(), per_point=8), None),
        (un.Poisson(), un.Smooth("s(y_prev, k=6)")),
        (un.Poisson(), un.PerContext()),
    ],
    ids=lambda part: "" if part is None else repr(part)[:32],
)
def test_energies_and_exponential_families_agree(objective, normaliser) -> None:
    family = un.fit(TOY, OBS, objective, normaliser, rng=1)
    energy = un.fit(TOY_ENERGY, OBS, objective, normaliser, rng=1)
    np.testing.assert_allclose(energy.estimate, family.estimate, atol=1e-4 * family.se.max())
    np.testing.assert_allclose(energy.se, family.se, rtol=1e-3)


@pytest.mark.parametrize("objective", [un.Logistic, un.Importance, un.Ranking])
def test_many_reference_points_reach_the_exact_estimate(objective) -> None:
    normaliser = None if objective is un.Ranking else un.Smooth("s(y_prev, k=10)")
    exact = un.fit(TOY, OBS)
    many = un.fit(TOY, OBS, objective(un.Uniform(), per_point=300), normaliser, rng=1)
    assert np.all(np.abs(many.estimate - exact.estimate) < 0.25 * exact.se)
    np.testing.assert_allclose(many.se, exact.se, rtol=0.08)
    assert np.all(np.sqrt(np.diag(many.errors.reference)) < 0.2 * many.se)


def test_other_references_give_the_same_estimate() -> None:
    exact = un.fit(TOY, OBS)
    kernel = un.Gaussian(around="context")
    fit = un.fit(TOY, OBS, un.Logistic(kernel, per_point=100), un.Smooth("s(y_prev, k=10)"), rng=1)
    assert np.all(np.abs(fit.estimate - exact.estimate) < 0.3 * exact.se)


def test_integer_weights_repeat_rows() -> None:
    weight = np.random.default_rng(1).integers(1, 4, OBS.n).astype(float)
    again = np.repeat(np.arange(OBS.n), weight.astype(int))
    from dataclasses import replace

    heavy = replace(OBS, weight=weight)
    for objective in (un.Exact(), un.Poisson()):
        one, two = un.fit(TOY, heavy, objective), un.fit(TOY, OBS.take(again), objective)
        np.testing.assert_allclose(one.estimate, two.estimate, rtol=1e-8)
        np.testing.assert_allclose(one.covariance, two.covariance, rtol=1e-8)
    # with reference points: the repeated rows' points, given to the weighted rows
    objective = un.Logistic(un.Uniform(), per_point=200)
    one = un.fit(TOY, heavy, objective, un.Smooth("s(y_prev, k=8)"), rng=1)
    two = un.fit(TOY, OBS.take(again), objective, un.Smooth("s(y_prev, k=8)"), rng=1)
    np.testing.assert_allclose(one.estimate, two.estimate, atol=0.3 * two.se.max())
    np.testing.assert_allclose(one.se, two.se, rtol=0.1)


def test_what_is_known_to_fail_is_refused() -> None:
    with pytest.raises(CombinationError, match="few private reference points"):
        un.fit(TOY, OBS, un.Importance(un.Uniform(), per_point=5), un.PerContext(), rng=1)
    with pytest.raises(CombinationError, match="IID reference points"):
        un.fit(TOY, OBS, un.Ranking(un.Uniform(), per_point=5, points=un.Stratified()), rng=1)
    many = {name: OBS.outcome[:, 0] + i for i, name in enumerate("abc")}
    crowded = un.conditional({"y": OBS.outcome[:, 0], **many}, y="y", x=tuple("abc"))
    model = un.ExponentialFamily(lambda y, x: (y, y * x["a"]), ("t", "u"), un.Interval(-1, 1))
    assert un.fit(model, crowded, un.Logistic(un.Uniform(), per_point=5), rng=1).anchored
    with pytest.raises(InputError, match=r"context columns 'a', 'b', 'c', Logistic needs normaliser=…: un.Smooth"):
        un.fit(model, crowded, un.Logistic(un.Uniform(), per_point=5), solver=un.SGD(), rng=1)
    with pytest.raises(InputError, match="per_point"):
        un.fit(TOY, OBS, un.Logistic(un.Uniform(), total=5), un.PerContext(), rng=1)
    with pytest.raises(CombinationError, match="IID data have one"):
        un.fit(SLOPE, IID_OBS, un.Logistic(un.Uniform(), total=500), un.PerContext(), rng=1)
    with pytest.raises(CombinationError, match="of its own"):
        un.fit(SLOPE, IID_OBS, un.Ranking(un.Uniform(), total=500), rng=1)
    with pytest.raises(CombinationError, match="cancel"):
        un.fit(TOY, OBS, un.Ranking(un.Uniform(), per_point=5), un.Fixed(0.0), rng=1)


def test_separation_is_named() -> None:
    step = un.ExponentialFamily(lambda y: (y > 0.5) * 1.0, ("above",), un.Interval(0, 1))
    with pytest.raises(NoEstimateError, match="above"):
        un.fit(step, un.iid(np.linspace(0.6, 0.9, 30)), un.Logistic(un.Uniform(), total=300), rng=1)


def test_defaults_of_the_points() -> None:
    assert _rows(un.Logistic(un.Uniform(), per_point=4), normaliser=un.Constant()).scheme == un.Lattice()
    assert _rows(un.Logistic(un.Uniform(), per_point=4), normaliser=un.PerContext()).scheme == un.IID()
    assert _rows(un.Ranking(un.Uniform(), per_point=4), normaliser=un.PerContext()).scheme == un.IID()


def test_the_same_seed_gives_the_same_numbers() -> None:
    objective = un.Logistic(un.Uniform(), per_point=8)
    one, two, other = (un.fit(TOY, OBS, objective, un.PerContext(), rng=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.estimate, two.estimate)
    assert one.seed == 1
    assert np.any(one.estimate != other.estimate)


def test_ignoring_the_constants_warns() -> None:
    with pytest.warns(un.errors.UnnormWarning, match="one constant to all contexts"):
        un.fit(TOY, OBS, un.Logistic(un.Uniform(), per_point=4), un.Constant(), rng=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        un.fit(SLOPE, IID_OBS, un.Logistic(un.Uniform(), total=400), un.Constant(), rng=1)


def test_a_hundred_thousand_contexts_are_no_problem() -> None:
    chain = un.datasets.toy_chain(100_000, 0.5, 5.0, rng=4)
    fit = un.fit(TOY, un.transitions(chain), un.Logistic(un.Uniform(), per_point=3), un.PerContext(), rng=1)
    assert fit.nu.shape == (100_000,)
    assert fit.converged


def test_twenty_points_for_each_observation_unless_told():
    """The same default for chains, IID data and kernels around the outcome, and in `fit_each`."""
    for objective in (un.Logistic, un.Importance, un.Ranking):
        assert _rows(objective(un.Uniform()), normaliser=un.Constant()).k == 20
    shared = _rows(un.Logistic(un.Uniform()), SLOPE, IID_OBS, un.Constant())
    assert shared.k is None
    assert shared.rows == 21 * IID_OBS.n
    np.testing.assert_array_equal(
        un.fit(TOY, OBS, un.Logistic(), rng=1).estimate, un.fit(TOY, OBS, un.Logistic(per_point=20), rng=1).estimate
    )
