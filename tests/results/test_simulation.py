"""Draws from models and fits on every domain, against densities known in another way."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

import unnorm as un
from unnorm.data.observations import Observations
from unnorm.domains import REGISTRY, Domain
from unnorm.errors import CombinationError, EstimationError, InputError, OutsideError, UnnormWarning
from unnorm.results.density import ParametricDensity
from unnorm.results.draws import Drawer, _masses, _within
from unnorm.results.simulation import simulate

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))


def _array(columns: dict[str, np.ndarray]) -> np.ndarray:
    return np.column_stack([values for name, values in columns.items() if name not in ("chain", "step", "draw")])


@pytest.mark.parametrize("domain", REGISTRY.examples(), ids=repr)
def test_means_of_draws_are_the_integrals_on_every_domain(domain: Domain) -> None:
    """E y by quadrature or enumeration, against 4,000 draws: within 4.5 Monte Carlo standard errors."""
    rule = domain.quadrature()
    centre = rule.weights @ rule.points / rule.weights.sum()
    scale = float(np.sqrt(rule.weights @ ((rule.points - centre) ** 2).sum(axis=1) / rule.weights.sum())) or 1.0
    if domain.coordinate_period is not None:
        turn = 2 * np.pi / domain.coordinate_period
        model = un.ExponentialFamily(lambda y: (jnp.cos(turn * y).sum(), jnp.sin(turn * y).sum()), ("a", "b"), domain)
        theta, seen = (0.8, -0.5), lambda y: np.column_stack([np.cos(turn * y), np.sin(turn * y)])
    else:
        model = un.ExponentialFamily(lambda y: jnp.sum(jnp.atleast_1d(y)) / scale, ("a",), domain)
        theta, seen = (0.9,), lambda y: y
    density = ParametricDensity(model, model.flatten(theta))
    one = Observations("iid", np.zeros((1, domain.dim)), tuple(f"y{j}" for j in range(domain.dim)))
    f = density.log_f(one, rule.points, np.zeros(len(rule.points), dtype=int))
    p = rule.weights * np.exp(f - f.max())
    truth = p @ seen(rule.points) / p.sum()
    y = _array(simulate(model, theta, 4000, rng=1))
    assert domain.contains(y).all()
    error = seen(y).std(axis=0) / np.sqrt(len(y))
    assert np.all(np.abs(seen(y).mean(axis=0) - truth) < 4.5 * error + 1e-9)


def test_an_interval_passes_a_kolmogorov_smirnov_test() -> None:
    """A sharp two-peaked density: 20,000 draws against its distribution function by adaptive quadrature."""
    f = lambda y: -0.5 * ((y - 0.3) / 0.01) ** 2  # noqa: E731
    g = lambda y: -0.5 * ((y - 0.7) / 0.1) ** 2  # noqa: E731
    model = un.Energy(lambda th, y: jnp.logaddexp(f(y), g(y) + th), 0.0, un.Interval(0, 1))
    y = simulate(model, 0.0, 20_000, rng=2)["y"]
    z = 0.01 * np.sqrt(2 * np.pi) * (stats.norm.cdf(70) - stats.norm.cdf(-30)), 0.1 * np.sqrt(2 * np.pi)
    low, high = stats.norm.cdf([-7, 3])

    def cdf(v: np.ndarray) -> np.ndarray:
        first, second = z[0] * stats.norm.cdf((v - 0.3) / 0.01), z[1] * (stats.norm.cdf((v - 0.7) / 0.1) - low)
        return (first + second) / (z[0] + z[1] * (high - low))

    assert stats.kstest(y, cdf).pvalue > 0.001


def test_von_mises_and_circular_wrapping() -> None:
    model = un.ExponentialFamily(lambda y: jnp.cos(y - 3.0), ("kappa",), un.Circle())
    y = simulate(model, (4.0,), 5000, rng=3)["y"]
    assert y.min() >= -np.pi
    assert y.max() < np.pi
    assert stats.kstest((y - 3.0 + np.pi) % (2 * np.pi) - np.pi, stats.vonmises(4.0).cdf).pvalue > 0.001


def test_log_linear_cells_are_exact() -> None:
    """A density that is log-linear on each cell is drawn without any error, whatever the slope."""
    slope = np.array([-800.0, -3.0, -1e-9, 0.0, 1e-9, 3.0, 800.0])
    v = np.array([0.1, 0.5, 0.9])[:, None]
    t = _within(np.broadcast_to(v, (3, 7)), np.broadcast_to(slope, (3, 7)))
    with np.errstate(over="ignore", invalid="ignore"):
        back = np.where(np.abs(slope) < 1e-6, t, np.expm1(slope * t) / np.expm1(slope))
    np.testing.assert_allclose(back[:, :-1], np.broadcast_to(v, (3, 6)), rtol=1e-6)
    np.testing.assert_allclose(1 - t[:, -1], t[::-1, 0], rtol=1e-9)
    edges = np.linspace(0, 1, 5)
    np.testing.assert_allclose(_masses(np.log(edges[None] * 0 + 2.0))[0], 0.5)
    np.testing.assert_allclose(_masses(3 * edges[None]).sum(), np.expm1(3) / 3)


def test_the_chain_is_that_of_the_data_set() -> None:
    """The toy chain: stationary law of 400 parallel chains against 400 exact ones."""
    ours = simulate(TOY, (0.5, 5.0), 30, x0=np.zeros(400), rng=4)
    last = ours["y"].reshape(400, 31)[:, -1]
    exact = np.array([un.datasets.toy_chain(30, 0.5, 5.0, rng=100 + i)[-1] for i in range(400)])
    assert stats.ks_2samp(last, exact).pvalue > 0.001
    table = un.transitions(ours, y="y", order="step", group="chain")
    assert table.n == 400 * 30
    fit = un.fit(TOY, table)
    np.testing.assert_array_less(np.abs(fit.estimate - [0.5, 5.0]), 4 * fit.se)


def test_a_chain_of_two_lags_keeps_its_order_in_time() -> None:
    """y_t ≈ 0.8 y_{t−1} − 0.5 y_{t−2}: the fitted coefficients come back where the lags are right."""
    model = un.ExponentialFamily(
        lambda y, x: (-0.5 * y**2, y * x[0], y * x[1]), ("tau", "first", "second"), un.Interval(-4, 4)
    )
    truth = np.array([4.0, 3.2, -2.0])
    table = simulate(model, truth, 60, x0=np.zeros((50, 2, 1)), lags=2, rng=5)
    assert table["step"].max() == 61
    obs = un.transitions(table, y="y", order="step", group="chain", lags=2)
    assert obs.n == 50 * 60
    fit = un.fit(model, obs)
    np.testing.assert_array_less(np.abs(fit.estimate - truth), 4 * fit.se)


def test_a_regression_is_drawn_at_the_given_covariates() -> None:
    values = np.arange(8.0)
    domain = un.FiniteSet(values, weights=1 / np.exp(gammaln(values + 1)))
    model = un.ExponentialFamily(lambda y, x: (y, y * x["age"]), ("a", "b"), domain)
    table = simulate(model, (0.3, 0.8), 3000, x={"age": [-1.0, 1.0]}, rng=6)
    assert list(table) == ["age", "draw", "y"]
    for age in (-1.0, 1.0):
        p = np.exp((0.3 + 0.8 * age) * values - gammaln(values + 1))
        p /= p.sum()
        counts = np.bincount(table["y"][table["age"] == age].astype(int), minlength=8)
        assert stats.chisquare(counts[:6], 3000 * p[:6] * counts[:6].sum() / (3000 * p[:6].sum())).pvalue > 0.001


def test_rejection_with_a_given_bound_and_with_an_estimated_one_agree() -> None:
    model = un.ExponentialFamily(lambda y: (y[0] * y[1], -(y[0] ** 2)), ("a", "b"), un.Box((0, 2), (0, 1)))
    given, found = (_array(simulate(model, (2.0, 1.0), 4000, bound=b, rng=7)) for b in (4.0, None))
    for j in range(2):
        assert stats.ks_2samp(given[:, j], found[:, j]).pvalue > 0.001
    with pytest.raises(InputError, match=r"bound=0\.1 is not a bound of f: f = .* Pass bound="):
        simulate(model, (2.0, 1.0), 100, bound=0.1, rng=7)
    with pytest.raises(InputError, match="bound must be a finite number"):
        simulate(model, (2.0, 1.0), 100, bound=np.inf, rng=7)


def test_a_bound_given_on_an_interval_is_used() -> None:
    model = un.ExponentialFamily(lambda y: y, ("a",), un.Interval(0, 1))
    y = simulate(model, (2.0,), 4000, bound=2.0, rng=8)["y"]
    assert stats.kstest(y, lambda v: np.expm1(2 * v) / np.expm1(2)).pvalue > 0.001


def test_an_estimated_bound_that_is_passed_raises_with_the_remedy() -> None:
    """A needle that the search cannot see: a draw that lands on it says what to do."""
    inside = lambda y: jnp.all(jnp.abs(y - 0.3719) < 0.004)  # noqa: E731
    model = un.Energy(lambda th, y: th * jnp.where(inside(y), 5.0, 0.0), 1.0, un.Box((0, 1), (0, 1)))
    with pytest.raises(EstimationError, match=r"estimated bound of f, .* is too low: f = 5 .* Pass bound=5\.1"):
        simulate(model, 1.0, 200_000, rng=1)


def test_hopeless_rejection_stops() -> None:
    model = un.ExponentialFamily(lambda y: y[0], ("a",), un.Box((0, 1), (0, 1)))
    with pytest.raises(EstimationError, match="Rejection accepts too little"):
        simulate(model, (1.0,), 10, bound=40.0, rng=1)


def test_many_coordinates_are_resampled_with_a_warning() -> None:
    model = un.ExponentialFamily(lambda y: jnp.sum(y), ("a",), un.Box(*[(0, 1)] * 6))
    with pytest.warns(UnnormWarning, match="approximate: each is resampled from 4,000 candidates of the uniform law"):
        y = _array(simulate(model, (1.0,), 300, rng=1))
    assert abs(y.mean() - 1 / (np.e - 1)) < 5 * np.sqrt(0.08 / y.size)  # E y = e/(e − 1) − 1


def test_the_reference_of_a_fit_is_the_proposal() -> None:
    """Six coordinates far from uniform: candidates come from the fitted normal law, and most are effective."""
    rng = np.random.default_rng(0)
    data = np.clip(rng.normal(0.5, 0.05, (400, 6)), 0.0, 1.0)
    model = un.ExponentialFamily(lambda y: -50 * jnp.sum((y - 0.5) ** 2), ("a",), un.Box(*[(0, 1)] * 6))
    fit = un.fit(model, un.iid(data), un.Logistic(un.Gaussian(), total=4000), rng=1)
    with pytest.warns(UnnormWarning, match=r"[34][0-9]{3} of them effective"):
        y = _array(fit.simulate(200, rng=1))
    assert abs(y.std() - 0.05) < 0.005


def test_a_density_with_no_support_is_an_error() -> None:
    model = un.Energy(lambda th, y: jnp.where(y > 2, th, -jnp.inf), 0.0, un.Interval(0, 1))
    with pytest.raises(InputError, match="there is nothing to draw"):
        simulate(model, 0.0, 3, rng=1)
    model = un.Energy(lambda th, y: th * jnp.log(y - 0.5), 1.0, un.Interval(0, 1))
    with pytest.raises(InputError, match="f must be finite or −∞"):
        simulate(model, 1.0, 3, rng=1)


def test_a_density_that_is_zero_on_half_of_the_domain() -> None:
    model = un.Energy(lambda th, y: jnp.where(y > 0.5, th, -jnp.inf), 0.0, un.Interval(0, 1))
    y = simulate(model, 0.0, 2000, rng=1)["y"]
    assert (y > 0.5 - 1e-3).all()


def test_tables_state_their_error() -> None:
    density = ParametricDensity(TOY, np.array([-2.0, 50.0]))
    drawer = Drawer(density, np.random.default_rng(1))
    context = {"y_prev": np.linspace(-1, 1, 50)}
    drawer(Observations("transitions", np.zeros((50, 1)), ("y",), context, lags=1))
    assert drawer.method == "inverse"
    assert 0 < drawer.error <= 1e-5


# --- fits ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def toy_fit() -> un.Fit:
    y = un.datasets.toy_chain(300, 0.5, 5.0, rng=1)
    return un.fit(TOY, un.transitions(pd.DataFrame({"pos": y}), y="pos"))


def test_a_fit_simulates_in_the_users_kind(toy_fit: un.Fit) -> None:
    table = toy_fit.simulate(20, chains=3, rng=1)
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == ["chain", "step", "pos"]
    assert len(table) == 3 * 21
    np.testing.assert_array_equal(table, toy_fit.simulate(20, chains=3, rng=1))
    assert table.groupby("chain")["pos"].first().isin(toy_fit.obs.context["pos_prev"]).all()  # type: ignore[union-attr]


def test_starts_are_checked(toy_fit: un.Fit) -> None:
    assert len(toy_fit.simulate(4, x0=0.2, chains=5, rng=1)) == 25
    with pytest.raises(OutsideError, match=r"1 of 2 points of x0 lie outside Interval\(-1, 1\)"):
        toy_fit.simulate(4, x0=[0.2, 3.0])
    with pytest.raises(InputError, match="x0 gives 2 starts for chains=3"):
        toy_fit.simulate(4, x0=[0.2, 0.3], chains=3)
    with pytest.raises(InputError, match="n must be a whole number"):
        toy_fit.simulate(0)
    model = un.ExponentialFamily(lambda y: y, ("a",), un.Interval(0, 1))
    with pytest.raises(InputError, match="belong to chains"):
        un.fit(model, un.iid(np.linspace(0.1, 1, 30))).simulate(3, x0=0.1)


def test_a_chain_with_extra_context() -> None:
    """The drift depends on a column: held constant, given by step, or missing."""
    model = un.ExponentialFamily(
        lambda y, x, extra: (y * extra["wind"], -0.5 * (y - x) ** 2), ("drift", "tau"), un.Interval(-1, 1)
    )
    rng = np.random.default_rng(0)
    data = {"y": un.datasets.toy_chain(300, 0.0, 5.0, rng=1), "wind": rng.normal(size=301)}
    fit = un.fit(model, un.transitions(pl.DataFrame(data), y="y", extra="wind"))
    blown = fit.simulate(50, x0=0.0, x={"wind": 30 / fit.theta["drift"]}, chains=4, rng=1)
    assert isinstance(blown, pl.DataFrame)
    assert blown.columns == ["chain", "step", "y", "wind"]
    assert (blown.filter(pl.col("step") > 0)["y"].to_numpy() > 0.5).mean() > 0.9
    each = fit.simulate(6, x0=0.0, x={"wind": np.arange(6.0)}, rng=1)
    assert each["wind"].to_list() == [0.0, *range(6)]
    with pytest.raises(InputError, match=r"x must give 'wind', which f reads; missing 'wind'"):
        fit.simulate(5, x0=0.0, rng=1)
    with pytest.raises(InputError, match=r"x\['wind'\] must be one value"):
        fit.simulate(5, x0=0.0, x={"wind": [1.0, 2.0]}, rng=1)


def test_a_regression_simulates_at_its_own_covariates_by_default() -> None:
    domain = un.FiniteSet([0.0, 1.0])
    rng = np.random.default_rng(0)
    age = rng.normal(size=400)
    y = (rng.random(400) < 1 / (1 + np.exp(-2 * age))).astype(float)
    model = un.ExponentialFamily(lambda y, x: (y, y * x["age"]), ("a", "b"), domain)
    fit = un.fit(model, un.conditional({"y": y, "age": age}, y="y", x="age"))
    table = fit.simulate(1, rng=1)
    np.testing.assert_array_equal(table["age"], age)
    again = un.fit(model, un.conditional(table, y="y", x="age"))
    np.testing.assert_array_less(np.abs(again.estimate - fit.estimate), 4 * fit.se)
    with pytest.raises(InputError, match="x must give 'age'"):
        fit.simulate(1, x={"height": [1.0]})


def test_un_simulate_says_what_it_needs() -> None:
    with pytest.raises(InputError, match=r"pass x0= .* or x="):
        simulate(TOY, (0.5, 5.0), 10)
    with pytest.raises(CombinationError, match="Of an additive model, simulate its fit"):
        simulate(un.Additive("s(y)", un.Interval(0, 1)), (0.5,), 10)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"names must name the 1 column\(s\)"):
        simulate(TOY, (0.5, 5.0), 10, x0=0.0, names=("a", "b"))


# --- additive fits ---------------------------------------------------------------------------------------------------


def _bump(domain: Any) -> un.Observations:
    rng = np.random.default_rng(1)
    y = rng.beta(2, 5, 600)
    return un.iid({"u": y}, y="u")


def test_an_additive_density_on_an_interval() -> None:
    """Draws follow the fitted curve: Kolmogorov–Smirnov against ∫ exp(log_density)."""
    domain = un.Interval(0, 1)
    fit = un.fit(un.Additive("s(u, k=8)", domain), _bump(domain), un.Logistic(un.Uniform(), total=6000), rng=1)
    u = fit.simulate(4000, rng=2)["u"]
    grid = np.linspace(0, 1, 2001)
    cumulative = integrate.cumulative_trapezoid(np.exp(fit.log_density(grid)), grid, initial=0)
    assert cumulative[-1] == pytest.approx(1.0, abs=1e-4)
    assert stats.kstest(u, lambda v: np.interp(v, grid, cumulative)).pvalue > 0.001


def test_planar_chains_by_both_ways_agree() -> None:
    """The fast way for planar chains and plain rejection draw the same next points."""
    rng = np.random.default_rng(3)
    box = un.Box((0, 8), (0, 6))
    points = np.empty((15, 40, 2))
    points[:, 0] = rng.uniform((0, 0), (8, 6), (15, 2))
    for t in range(1, 40):
        step = points[:, t - 1] + rng.normal(0, 1.2, (15, 2))
        points[:, t] = np.clip(step, 0.01, (7.99, 5.99))
    data = {"chain": np.repeat(np.arange(15), 40), "x": points[..., 0].ravel(), "y": points[..., 1].ravel()}
    obs = un.transitions(data, y=("x", "y"), group="chain")
    model = un.Additive("s(step, k=6) + s(dcenter, k=5)", box)
    fit = un.fit(model, obs, un.Logistic(un.Uniform(), per_point=10), rng=1)
    start = np.tile([2.0, 4.0], (1500, 1))
    fast = fit.simulate(1, x0=start, rng=1)
    slow = fit.simulate(1, x0=start, bound=float(_largest(fit)) + 0.1, rng=2)
    for name in ("x", "y"):
        a, b = (table[name][table["step"] == 1] for table in (fast, slow))
        assert stats.ks_2samp(a, b).pvalue > 0.001
    assert box.contains(np.column_stack([fast["x"], fast["y"]])).all()


def _largest(fit: un.Fit) -> float:
    grid = np.stack(np.meshgrid(np.linspace(0, 8, 161), np.linspace(0, 6, 121)), axis=-1).reshape(-1, 2)
    one = Observations("transitions", grid[:1], ("x", "y"), {"x_prev": np.array([2.0]), "y_prev": np.array([4.0])}, 1)
    return float(fit.density.log_f(one, grid, np.zeros(len(grid), dtype=int)).max())
