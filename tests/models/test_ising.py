"""un.Ising against its statistics, enumeration, stacked regressions and closed forms."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

import unnorm as un
from unnorm.errors import InputError, NoEstimateError, UnnormWarning

EVERY = un.ConditionalNCE(un.BitFlip(every=True))


def _model(lag: int, covariates: tuple[str, ...], d: int = 4) -> tuple[un.Ising, np.ndarray]:
    model = un.Ising(d, lag=lag, covariates=covariates)
    rng = np.random.default_rng(3)
    return model, rng.normal(0, 0.6, model.size)


def _obs(model: un.Ising, n: int = 60, seed: int = 4) -> un.Observations:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, (n, model.domain.dim)).astype(float)
    z = {name: rng.normal(size=n) for name in model.columns}
    if model.lag:
        return un.transitions(y, extra=z or None, group=np.arange(n) // 20)
    return un.conditional(y, x=z) if z else un.iid(y)


SHAPES = [(0, ()), (1, ()), (0, ("a", "b")), (1, ("a",))]


def _f(model: un.Ising, theta: np.ndarray, y: np.ndarray, x: np.ndarray | None, z: np.ndarray) -> float:
    """f by its formula, in loops."""
    h, J, K, B = model.parts(theta)
    d = len(y)
    out = sum(h[i] * y[i] for i in range(d)) + sum(J[i, j] * y[i] * y[j] for i in range(d) for j in range(i + 1, d))
    if K is not None:
        assert x is not None
        out += sum(K[i, j] * y[i] * x[j] for i in range(d) for j in range(d))
    if B is not None:
        out += sum(B[i, c] * y[i] * z[c] for i in range(d) for c in range(len(z)))
    return float(out)


@pytest.mark.parametrize(("lag", "covariates"), SHAPES)
def test_energy_gradient_and_changes_by_the_formula(lag: int, covariates: tuple[str, ...]) -> None:
    model, theta = _model(lag, covariates)
    obs = _obs(model, 24)
    y, at = obs.outcome, np.arange(obs.n)
    arguments = model.arguments(obs, at)
    x = obs.previous() if lag else np.zeros_like(y)
    z = np.column_stack([obs.context[name] for name in covariates]) if covariates else np.zeros((obs.n, 0))
    f = np.array([_f(model, theta, *row) for row in zip(y, x, z)])
    np.testing.assert_allclose(model.log_f(theta, y, arguments), f, atol=1e-12)
    np.testing.assert_allclose(model.jacobian(theta, y, arguments) @ theta, f, atol=1e-12)
    np.testing.assert_allclose(model._family.statistics_at(y, arguments), model.jacobian(theta, y, arguments))
    changes = model.change_products(y, arguments)
    table = model.changes(y, arguments)
    for i in range(4):
        other = y.copy()
        other[:, i] = 1 - other[:, i]
        expected = model.jacobian(theta, other, arguments) - model.jacobian(theta, y, arguments)
        np.testing.assert_allclose(table[:, i], expected, atol=1e-12)
    v = np.random.default_rng(1).normal(size=y.shape)
    np.testing.assert_allclose(changes.times(theta), table @ theta, atol=1e-12)
    np.testing.assert_allclose(changes.total(v), np.einsum("ti,tip->p", v, table), atol=1e-12)
    np.testing.assert_allclose(changes.by_outcome(v), np.einsum("ti,tip->tp", v, table), atol=1e-12)
    H = np.einsum("ti,tip,tiq->pq", v**2, table, table)
    np.testing.assert_allclose(changes.cross(v**2), H, atol=1e-10)
    np.testing.assert_allclose(changes.squares(v**2), np.diag(H), atol=1e-10)
    operator = changes.operator(v**2)
    np.testing.assert_allclose(operator.times(theta), H @ theta, atol=1e-10)
    np.testing.assert_allclose(operator.plus(operator).scaled(0.25).diagonal(), np.diag(H) / 2, atol=1e-10)
    np.testing.assert_allclose(changes.times(model.from_parts(*model.parts(theta))), changes.times(theta))
    np.testing.assert_allclose(model.data_terms(y, arguments, np.ones(obs.n)).value(theta), f.sum())


@pytest.mark.parametrize(("lag", "covariates"), SHAPES)
def test_lbfgs_and_newton_agree_with_the_dense_model(lag: int, covariates: tuple[str, ...]) -> None:
    """The same estimate from the statistics alone; and chosen errors are the diagonal blocks of all errors."""
    model, _ = _model(lag, covariates)
    obs = _obs(model, 900)
    plain = un.fit(model._family, obs, EVERY)
    newton, lbfgs = (un.fit(model, obs, EVERY, solver=s, rng=1) for s in (un.Newton(), un.LBFGS(tolerance=1e-15)))
    np.testing.assert_allclose(newton.estimate, plain.estimate, atol=1e-8)
    np.testing.assert_allclose(lbfgs.estimate, plain.estimate, atol=1e-6)
    np.testing.assert_allclose(newton.covariance, plain.covariance, rtol=1e-6, atol=1e-12)
    which = list(model.names[-3:])
    for fit in (newton, dataclasses.replace(lbfgs, errors=None)):
        np.testing.assert_allclose(fit.errors_of(which)["se"], plain.se[-3:], rtol=1e-4)
    bare = un.fit(model, obs, EVERY, solver=un.LBFGS(), rng=1)
    np.testing.assert_allclose(bare.estimate, plain.estimate, atol=0.01 * plain.se.min())


def test_a_part_of_the_data_first_ends_at_the_same_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    model, theta = _model(0, (), d=6)
    rng = np.random.default_rng(8)
    y = model.sampler(theta, ()).sweep(np.zeros((4000, 6)), 20, rng)
    monkeypatch.setattr("unnorm.objectives.flips.LEAST_PART", 500)
    newton = un.fit(model, un.iid(y), EVERY)
    monkeypatch.setattr("unnorm.objectives.flips.SINGLE", 1)  # in float32
    monkeypatch.setattr("unnorm.objectives.flips.BLOCK", 2000)  # in many blocks
    monkeypatch.setattr("unnorm.objectives.flips.KEPT", 1)  # made again at every pass
    fit = un.fit(model, un.iid(y), EVERY, solver=un.LBFGS(), rng=2)
    assert fit.converged
    assert np.abs((fit.estimate - newton.estimate) / newton.se).max() < 0.005
    np.testing.assert_allclose(fit.errors_of("J[1,2]")["se"], newton.errors_of("J[1,2]")["se"], rtol=1e-3)


def test_draws_have_the_moments_of_enumeration() -> None:
    """d = 10: P(y_i = 1, y_j = 1) over 20,000 draws against the sum over 1,024 states."""
    model, theta = _model(0, (), d=10)
    states = model.domain.quadrature().points
    f = model.log_f(theta, states, ())
    p = np.exp(f - logsumexp(f))
    y = model.sampler(theta, ()).sweep(np.zeros((20_000, 10)), 40, np.random.default_rng(2))
    expected = states.T @ (p[:, None] * states)
    assert np.abs(y.T @ y / len(y) - expected).max() < 4.5 * 0.5 / np.sqrt(len(y))


def test_pseudo_likelihood_is_close_to_the_maximum_of_the_likelihood() -> None:
    model, theta = _model(0, (), d=5)
    y = model.sampler(theta, ()).sweep(np.zeros((3000, 5)), 30, np.random.default_rng(6))
    exact, flips = un.fit(model, un.iid(y)), un.fit(model, un.iid(y), EVERY)
    assert np.abs((flips.estimate - exact.estimate) / exact.se).max() < 1.0
    assert np.all(flips.se > 0.95 * exact.se)
    assert np.abs(np.log(flips.se / exact.se)).max() < 0.3


def test_simulated_errors_follow_the_model_where_observations_are_fewer_than_parameters() -> None:
    model, theta = _model(0, (), d=8)
    big = model.sampler(theta, ()).sweep(np.zeros((3000, 8)), 30, np.random.default_rng(9))
    fit = un.fit(model, un.iid(big), EVERY)
    se = fit.errors_of(list(model.names), simulated=20_000, rng=1)["se"]
    np.testing.assert_allclose(se, fit.se, rtol=0.12)
    with pytest.warns(UnnormWarning, match=r"No standard errors.*simulated=4000"):
        few = un.fit(model, un.iid(big[:36]), EVERY, solver=un.LBFGS(tolerance=1e-4), rng=1)
    with pytest.raises(InputError, match="simulated=4000"):
        few.errors_of("J[1,2]")
    assert few.errors_of("J[1,2]", simulated=2000, rng=1)["se"][0] > 0


def test_names_of_bits_and_covariates() -> None:
    model = un.Ising(("left", "right"), lag=1, covariates="dose")
    assert model.names[:3] == ("h[left]", "h[right]", "J[left,right]")
    assert model.names[3:7] == tuple(f"K[{a},{b}]" for a, b in product(("left", "right"), repeat=2))
    assert model.names[7:] == ("B[left,dose]", "B[right,dose]")


def test_bad_input_is_named() -> None:
    y = np.random.default_rng(0).integers(0, 2, (50, 3)).astype(float)
    with pytest.raises(InputError, match="whole number"):
        un.Ising(0)
    with pytest.raises(InputError, match="0 or 1"):
        un.Ising(3, lag=2)
    with pytest.raises(InputError, match="distinct"):
        un.Ising(("a", "a"))
    with pytest.raises(InputError, match=r"un\.transitions"):
        un.fit(un.Ising(3, lag=1), un.iid(y), EVERY)
    with pytest.raises(InputError, match=r"'dose'.*x= of un\.conditional"):
        un.fit(un.Ising(3, covariates="dose"), un.iid(y), EVERY)
    with pytest.raises(InputError, match="holds text"):
        un.fit(un.Ising(3, covariates="dose"), un.conditional(y, x={"dose": ["a"] * 50}), EVERY)
    with pytest.raises(InputError, match="symmetric"):
        un.Ising(2).from_parts([0, 0], [[0, 1], [2, 0]])
    with pytest.raises(InputError, match="'J\\[1,9\\]'"):
        un.fit(un.Ising(3), un.iid(y), EVERY).errors_of("J[1,9]")
    spins = 2 * y - 1
    with pytest.raises(un.errors.OutsideError, match=r"y1 = -1. Entries must be 0 or 1; recode spins by \(s \+ 1\)/2"):
        un.fit(un.Ising(3), un.iid(spins), EVERY)
    still = y.copy()
    still[:, 2] = 0
    for solver in (un.Newton(), un.LBFGS()):
        with pytest.raises(NoEstimateError, match=r"h\[3\] → −∞"):
            un.fit(un.Ising(3), un.iid(still), EVERY, solver=solver, rng=1)
    y[:, 1] = 1 - y[:, 0]
    for solver in (un.Newton(), un.LBFGS()):
        with pytest.raises(NoEstimateError, match=r"h\[|J\["):
            un.fit(un.Ising(3), un.iid(y), EVERY, solver=solver, rng=1)
