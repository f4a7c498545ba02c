"""Directions with a context: regression, chains; other objectives than the likelihood; smooth densities; pictures."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from scipy import stats

import unnorm as un
from unnorm.errors import InputError

mpl.use("Agg")
d = un.directions
N = 800


def within(fit: un.DirectionFit, truth: dict[str, float], most: float = 4.0) -> None:
    rows = {row.name: row for row in fit.rows()}
    for name, value in truth.items():
        assert abs(rows[name].estimate - value) < most * rows[name].se, (name, rows[name])


@pytest.mark.parametrize("kappa", [1.0, 1e4])
def test_fisher_and_lee(kappa: float) -> None:
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(2, N))
    y = 1.0 + 2 * np.arctan(0.8 * x - 0.3 * z) + rng.vonmises(0.0, kappa * np.exp(0.3 * z))
    obs = un.conditional({"y": np.degrees(y), "x": x, "z": z}, "y", ("x", "z"), unit="degrees")
    fit = un.fit_direction(d.regression(("x", "z"), dispersion="z"), obs)
    within(fit, {"mean": np.degrees(1.0), "kappa": kappa, "x": 0.8, "z": -0.3, "log kappa: z": 0.3})
    # the density is von Mises about the fitted direction
    p = fit.parameters
    centre = np.radians(p["mean"]) + 2 * np.arctan(p["x"] * x + p["z"] * z)
    size = p["kappa"] * np.exp(p["log kappa: z"] * z)
    expected = stats.vonmises(size, loc=centre).logpdf(y)
    np.testing.assert_allclose(fit.log_density(np.degrees(y), {"x": x, "z": z}), expected, rtol=1e-7, atol=1e-6)
    np.testing.assert_allclose(fit.log_density(np.degrees(y), np.column_stack([x, z])), expected, rtol=1e-7, atol=1e-6)
    with pytest.raises(InputError, match="a column for each of 'x', 'z'; got ndarray"):
        fit.log_density(np.degrees(y), x)


@pytest.mark.parametrize("kappa", [2.0, 1e4])
def test_spherical_regression(kappa: float) -> None:
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(2, N))
    m, east, north = np.array([0.6, 0.0, 0.8]), np.array([0.0, 1.0, 0.0]), np.array([-0.8, 0.0, 0.6])
    u = np.column_stack([0.5 * x - 0.2 * z, 0.3 * z])
    s = (u**2).sum(axis=1, keepdims=True)
    mu = ((1 - s) * m + 2 * (u[:, :1] * east + u[:, 1:] * north)) / (1 + s)
    np.testing.assert_allclose(np.arccos(mu @ m), 2 * np.arctan(np.sqrt(s[:, 0])), atol=1e-7)
    y = np.array([stats.vonmises_fisher(one, kappa).rvs(1, random_state=rng)[0] for one in mu])
    fit = un.fit_direction(d.regression(("x", "z"), domain=un.Sphere()), un.conditional(y, x={"x": x, "z": z}))
    within(fit, {"kappa": kappa, "x east": 0.5, "x north": 0.0, "z east": -0.2, "z north": 0.3, "mean[0]": 0.6})


def test_chains_on_the_circle() -> None:
    rng = np.random.default_rng(4)
    y = [0.0]
    for _ in range(1500):
        v = 2.0 * np.exp(1j * (y[-1] + 0.5)) + np.exp(2.0j)
        y.append(rng.vonmises(np.angle(v), abs(v)))
    fit = un.fit_direction(d.chain(), un.transitions(np.degrees(y), unit="degrees"))
    truth = {"turn": np.degrees(0.5), "kappa turn": 2.0, "mean": np.degrees(2.0), "kappa": 1.0}
    within(fit, truth)
    more = fit.simulate(200, chains=20, rng=1)
    again = un.fit_direction(d.chain(), un.transitions(more, "y", order="step", group="chain", unit="degrees"))
    within(again, fit.parameters)
    compass = un.fit_direction(d.chain(), un.transitions(np.degrees(y), unit="bearings"))
    assert compass.parameters["turn"] == pytest.approx(fit.parameters["turn"])
    logistic = un.fit_direction(
        d.chain(), un.transitions(np.degrees(y), unit="degrees"), un.Logistic(per_point=10), rng=1
    )
    assert np.all(np.abs(logistic.fit.estimate - fit.fit.estimate) < 0.5 * fit.fit.se)
    assert logistic.fit.errors is not None


def test_chains_on_the_sphere() -> None:
    rng = np.random.default_rng(5)
    y = [np.array([1.0, 0.0, 0.0])]
    for _ in range(1000):
        v = 3.0 * y[-1] + np.array([0.0, 0.0, 1.5])
        y.append(stats.vonmises_fisher(v / np.linalg.norm(v), np.linalg.norm(v)).rvs(1, random_state=rng)[0])
    fit = un.fit_direction(d.chain(un.Sphere()), un.transitions(np.array(y)))
    within(fit, {"kappa turn": 3.0, "kappa": 1.5, "mean[0]": 0.0, "mean[1]": 0.0})
    persistent = un.fit_direction(d.chain(un.Sphere(), mean=False), un.transitions(np.array(y)))
    assert persistent.fit.loglik < fit.fit.loglik


def test_other_objectives_agree_with_the_likelihood() -> None:
    y = np.random.default_rng(6).vonmises(1.0, 3.0, 500)
    ml = un.fit_direction(d.von_mises(), un.iid(y))
    poisson = un.fit_direction(d.von_mises(), un.iid(y), un.Poisson())
    np.testing.assert_allclose(poisson.fit.estimate, ml.fit.estimate, rtol=1e-7)
    for reference in (un.VonMises(), un.Mixture((0.7, un.VonMises()), (0.3, un.Uniform()))):
        logistic = un.fit_direction(d.von_mises(), un.iid(y), un.Logistic(reference, total=20_000), rng=1)
        assert np.all(np.abs(logistic.fit.estimate - ml.fit.estimate) < 0.2 * ml.fit.se)
        assert logistic.rows()[1].se >= 0.98 * ml.rows()[1].se
    robust = ml.rows(robust=True)
    assert robust[1].se == pytest.approx(ml.rows()[1].se, rel=0.3)
    assert robust[1].se != ml.rows()[1].se
    sphere = un.iid(stats.vonmises_fisher([0, 0, 1], 20).rvs(400, random_state=1))
    ml = un.fit_direction(d.kent(), sphere)
    logistic = un.fit_direction(d.kent(), sphere, un.Logistic(un.VonMisesFisher(), total=20_000), rng=1)
    assert abs(logistic.parameters["kappa"] - ml.parameters["kappa"]) < 0.3 * ml.rows()[6].se


def test_kent_and_its_kin_are_nested() -> None:
    y = un.iid(stats.vonmises_fisher([0, 0.6, 0.8], 8).rvs(400, random_state=3))
    logliks = [un.fit_direction(f(), y).fit.loglik for f in (d.von_mises_fisher, d.kent, d.fisher_bingham)]
    assert logliks[0] <= logliks[1] <= logliks[2]
    assert 2 * (logliks[2] - logliks[0]) < stats.chi2.ppf(0.9999, 5)
    pair = np.array([[0.8, 0.0, 0.6], [0.0, 0.0, 1.0]])
    both = np.concatenate([stats.vonmises_fisher(one, 60).rvs(100, random_state=k) for k, one in enumerate(pair)])
    assert any(note.startswith("2β > κ") for note in un.fit_direction(d.kent(), un.iid(both)).notes)
    axes = [un.fit_direction(f(), y).fit.loglik for f in (d.watson, d.bingham)]
    assert axes[0] <= axes[1] <= logliks[2]


def test_axes_on_the_sphere_and_as_axes_agree() -> None:
    from unnorm.directions.sampling import draws

    y = draws(np.zeros(3), np.diag([-6.0, -2.0, 0.0]), 300, np.random.default_rng(1))
    whole, half = (un.fit_direction(d.bingham(domain), un.iid(y)) for domain in (un.Sphere(), un.Axis(3)))
    np.testing.assert_allclose(whole.fit.estimate, half.fit.estimate, atol=1e-6)
    assert half.fit.loglik - whole.fit.loglik == pytest.approx(300 * np.log(2.0))


def test_smooths_of_an_angle_go_round() -> None:
    y = np.random.default_rng(7).vonmises(3.0, 2.0, 400)
    ends = np.array([-np.pi + 1e-9, np.pi - 1e-9])
    for domain, angles in ((un.Circle(), y), (un.Axis(), y / 2)):
        fit = un.fit(un.Additive("s(y, k=12)", domain), un.iid(angles))
        effect = fit.effect("s(y)", at=ends * domain.period / (2 * np.pi))
        assert effect["estimate"][0] == pytest.approx(effect["estimate"][1], abs=1e-6)
        assert np.exp(fit.log_density(domain.quadrature(400).points[:, 0])).mean() * domain.period == pytest.approx(1.0)
    told = un.fit(un.Additive("s(y, k=12, bs='tp')", un.Circle()), un.iid(y))
    effect = told.effect("s(y)", at=ends)
    assert abs(effect["estimate"][0] - effect["estimate"][1]) > 1e-4
    assert str(un.s("y", bs="tp")) == "s(y, bs='tp')"
    assert str(un.s("y")) == "s(y)"


def test_a_chain_on_the_torus_and_smooth_terms_there() -> None:
    y = np.random.default_rng(8).vonmises(0.0, 1.0, (300, 2))
    fit = un.fit(un.Additive("s(y1, k=8) + s(y2, k=8)", un.Torus()), un.iid(y))
    for name in ("s(y1)", "s(y2)"):
        effect = fit.effect(name, at=np.array([-np.pi, np.pi]))
        assert effect["estimate"][0] == pytest.approx(effect["estimate"][1], abs=1e-6)


@pytest.mark.parametrize(("model", "kappa"), [("sine", 1e4), ("cosine", 1.0)])
def test_draws_on_the_torus(model: Any, kappa: float) -> None:
    """20,000 draws against the model's own moments by its rule, in standard errors; also where κ is large."""
    rng = np.random.default_rng(10)
    y = rng.vonmises(0.0, kappa, (300, 2)) + np.array([1.0, 3.0])
    fit = un.fit_direction(d.bivariate_von_mises(model), un.iid(y, unit="radians"))
    table = fit.simulate(20_000, rng=1)
    drawn = np.column_stack([table["y1"], table["y2"]])
    rule = fit.fit.density.quadrature(128)
    p = rule.weights * np.exp(fit.fit.log_density(rule.points))
    assert p.sum() == pytest.approx(1.0)

    def g(y: np.ndarray) -> np.ndarray:
        from_means = y - np.array([1.0, 3.0])
        return np.column_stack([np.cos(from_means), np.sin(from_means), np.sin(from_means).prod(axis=1)])

    mean = p @ g(rule.points)
    se = np.sqrt(p @ (g(rule.points) - mean) ** 2 / len(drawn))
    assert np.all(np.abs(g(drawn).mean(axis=0) - mean) < 4.5 * se)


def test_pictures() -> None:
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(9)
    bearings = un.iid(np.degrees(rng.vonmises(1.0, 3.0, 100)) % 360, unit="bearings")
    ax = un.fit_direction(d.von_mises(), bearings).plot()
    assert [label.get_text() for label in ax.get_xticklabels()][:3] == ["E", "NE", "N"]
    area = sum(bar.get_width() * bar.get_height() ** 2 for bar in ax.patches)
    assert area == pytest.approx(1.0)  # r² dϕ is the density
    line = ax.lines[-1].get_xydata()
    assert np.sum(line[:-1, 1] ** 2 * np.diff(line[:, 0])) == pytest.approx(1.0, rel=1e-3)
    axial = d.rose(un.iid([10.0, 20.0, 170.0], unit="degrees"), domain=un.Axis(), bins=18)
    heights = np.array([bar.get_height() for bar in axial.patches])
    np.testing.assert_allclose(heights[:9], heights[9:])  # both ends of each axis
    sphere = un.iid(stats.vonmises_fisher([0, 0, 1], 20).rvs(50, random_state=1))
    assert un.fit_direction(d.von_mises_fisher(), sphere).plot().name == "mollweide"
    torus = un.fit_direction(d.bivariate_von_mises(), un.iid(rng.vonmises(1, 3, (100, 2))))
    assert torus.plot().get_xlabel() == "y1"
    chain = un.fit_direction(d.chain(), un.transitions(rng.vonmises(1, 3, 100)))
    assert len(chain.plot().get_yticklabels()) == 4
    with pytest.raises(InputError, match="projection 'polar'"):
        d.rose(bearings, ax=plt.subplots()[1])
    with pytest.raises(InputError, match="unit='lonlat'"):
        d.sphere_map(bearings)
    plt.close("all")
