"""Two dependent angles where a concentration is 0 or nearly so: the dependence still tells the mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from torus_oracle import GRID, NAMES, alike, climbed, highest, log_f, standard_errors

import unnorm as un
from unnorm.data.units import RADIANS
from unnorm.directions.quantities import Angle, Number, Signed
from unnorm.directions.torus_reading import reading
from unnorm.directions.torus_start import natural, statistics
from unnorm.errors import NotIdentifiedError

d = un.directions


def law(model: Any) -> d.Family:
    return d.bivariate_von_mises(model)


def fitted(model: str, y: np.ndarray, **how: Any) -> un.DirectionFit:
    return un.fit_direction(law(model), un.iid(y, **{"unit": "radians", **how}))


def drawn(model: str, kappas: tuple[float, float, float], n: int, seed: int) -> np.ndarray:
    k1, k2, lam = kappas
    values = [np.array([np.cos(1.0), np.sin(1.0)]), [k1], np.array([np.cos(3.0), np.sin(3.0)]), [k2], [lam]]
    draw = law(model).draw
    assert draw is not None
    return draw([np.asarray(one) for one in values], n, np.random.default_rng(seed))


def leaning() -> np.ndarray:
    """40 pairs b = a + N(0, 1), which the cosine model refused: "a concentration is 0"."""
    rng = np.random.default_rng(4)
    a = rng.vonmises(1.0, 2.0, 40)
    return np.column_stack([a, a + rng.normal(size=40)])


CASES = {
    "leaning, cosine": ("cosine", leaning()),
    "leaning, sine": ("sine", leaning()),
    "cosine, κ₂ = 0": ("cosine", drawn("cosine", (1.0, 0.0, 1.2), 120, 1)),
    "cosine, κ₁ = 0": ("cosine", drawn("cosine", (0.0, 1.0, -1.2), 120, 2)),
    "sine, κ₂ = 0": ("sine", drawn("sine", (1.0, 0.0, 1.8), 120, 3)),
    "sine, both 0": ("sine", drawn("sine", (0.0, 0.0, 2.0), 120, 4)),
    "cosine, away from it": ("cosine", drawn("cosine", (2.0, 1.5, -0.6), 120, 5)),
}


@pytest.mark.parametrize("name", CASES)
def test_estimates_and_errors_are_those_of_maximum_likelihood(name: str) -> None:
    model, y = CASES[name]
    fit = fitted(model, y)
    rows = {row.name: row for row in fit.rows()}
    theta, height = highest(y, model)
    assert fit.fit.loglik == pytest.approx(height, abs=1e-6)
    mine = np.array([rows[key].estimate for key in NAMES])

    def away(other: np.ndarray) -> np.ndarray:
        gap = mine - other
        return np.r_[gap[:3], np.angle(np.exp(1j * gap[3:]))]

    nearest = min(alike(theta), key=lambda one: np.abs(away(one)).max())
    np.testing.assert_allclose(away(nearest), 0.0, atol=2e-4)
    np.testing.assert_allclose([rows[key].se for key in NAMES], standard_errors(nearest, y, model), rtol=2e-3)
    density = fit.log_density(GRID)
    assert np.exp(density).mean() * (2 * np.pi) ** 2 == pytest.approx(1.0, rel=1e-7)
    np.testing.assert_allclose(np.diff(density), np.diff(log_f(mine, GRID, model)), atol=1e-7)


@pytest.mark.parametrize(("name", "at", "key"), [("cosine, κ₂ = 0", 1, "kappa2"), ("sine, κ₂ = 0", 1, "kappa2")])
def test_intervals_are_those_of_the_profile_likelihood(name: str, at: int, key: str) -> None:
    """At the ends of an interval the profile is about χ²₁'s quantile below its peak; also for the mean."""
    model, y = CASES[name]
    fit = fitted(model, y)
    rows = {row.name: row for row in fit.rows()}
    start = np.array([rows[one].estimate for one in NAMES])
    drop = stats.chi2.ppf(0.95, 1)
    for j, row in ((at, rows[key]), (4, rows["mean2"])):
        assert row.note is None
        for end in (row.lower, row.upper):
            value = start[j] + np.angle(np.exp(1j * (end - start[j]))) if j > 2 else end
            _, height = climbed(start, y, model, fixed={j: value})
            assert 2 * (fit.fit.loglik - height) == pytest.approx(drop, rel=0.3), (row.name, end)
    assert rows[key].lower < 0.0 < rows[key].upper


@pytest.mark.parametrize("model", ["cosine", "sine"])
def test_estimates_are_continuous_where_kappa_is_zero(model: str) -> None:
    """Weights that lean the data to μ₂ or away from it move κ₂ through 0; means, λ and errors make no jump."""
    y = drawn(model, (1.0, 0.0, 1.8), 150, 6)
    found = []
    for tilt in np.linspace(-0.25, 0.25, 6):
        table = {"a": y[:, 0], "b": y[:, 1], "w": np.exp(tilt * np.cos(y[:, 1] - 3.0))}
        fit = un.fit_direction(law(model), un.iid(table, ("a", "b"), weight="w", unit="radians"))
        found.append({row.name: row for row in fit.rows()})
    kappa = [rows["kappa2"].estimate for rows in found]
    assert kappa[0] < -0.05 < 0.05 < kappa[-1]
    assert np.all(np.diff(kappa) > 0)
    for name in ("mean1", "mean2", "lambda", "kappa1"):
        values = np.array([rows[name].estimate for rows in found])
        assert np.abs(np.diff(np.unwrap(values))).max() < 0.3 * found[0][name].se, name
        errors = np.array([rows[name].se for rows in found])
        assert np.abs(np.diff(errors)).max() < 0.1 * errors.mean(), name


def test_a_kappa_well_below_zero_is_the_usual_law() -> None:
    y = drawn("cosine", (2.0, -1.5, 1.5), 400, 7)
    fit = fitted("cosine", y)
    p = fit.parameters
    assert p["kappa1"] > 0
    assert p["kappa2"] > 0
    assert p["lambda"] < 0
    assert np.cos(p["mean2"] - 3.0 - np.pi) > 0.9
    assert not any("sign" in note for note in fit.notes)


@pytest.mark.parametrize("model", ["cosine", "sine"])
def test_rotations_reflections_exchange_and_order(model: str) -> None:
    y = CASES[f"{model}, κ₂ = 0"][1]
    rows = {row.name: row for row in fitted(model, y).rows()}
    assert any("kappa2 is within three standard errors" in note for note in fitted(model, y).notes)

    def same(other: un.DirectionFit, shifts: tuple[float, float], sign: float = 1.0, swap: bool = False) -> None:
        for row in other.rows():
            digit = {"1": "2", "2": "1"}.get(row.name[-1], "") if swap else row.name[-1]
            one = rows[row.name[:-1] + digit if row.name != "lambda" else "lambda"]
            assert row.se == pytest.approx(one.se, rel=1e-5), row.name
            if not row.name.startswith("mean"):
                assert row.estimate == pytest.approx(one.estimate, abs=1e-6)
                assert (row.lower, row.upper) == pytest.approx((one.lower, one.upper), abs=1e-5)
                continue
            moved = sign * one.estimate + shifts[int(row.name[-1]) - 1]
            assert np.cos(row.estimate - moved) == pytest.approx(1.0, abs=1e-10)

    same(fitted(model, y + np.array([2.0, -2.5])), (2.0, -2.5))
    same(fitted(model, -y), (0.0, 0.0), -1.0)
    same(fitted(model, y[:, ::-1]), (0.0, 0.0), swap=True)
    same(fitted(model, y[np.random.default_rng(8).permutation(len(y))]), (0.0, 0.0))
    degrees = fitted(model, np.degrees(y), unit="degrees").parameters
    assert degrees["mean2"] == pytest.approx(np.degrees(rows["mean2"].estimate), abs=1e-5)
    assert degrees["kappa2"] == pytest.approx(rows["kappa2"].estimate, abs=1e-7)


def test_weights_are_repeated_rows() -> None:
    y = CASES["cosine, κ₂ = 0"][1][:60]
    times = np.random.default_rng(9).integers(1, 4, 60)
    table = {"a": y[:, 0], "b": y[:, 1], "w": times}
    weighted = un.fit_direction(law("cosine"), un.iid(table, ("a", "b"), weight="w", unit="radians"))
    for one, two in zip(weighted.rows(), fitted("cosine", np.repeat(y, times, axis=0)).rows()):
        np.testing.assert_allclose([one.estimate, one.se, one.lower], [two.estimate, two.se, two.lower], atol=1e-6)


class TestWhatIsNotKnown:
    def test_both_ways_are_closed(self) -> None:
        """y₂ uniform and independent: its mean is any angle, its κ holds 0, and λ's sign is not known."""
        for seed in range(3):
            rng = np.random.default_rng(10 + seed)
            y = np.column_stack([rng.vonmises(1.0, 2.0, 100), rng.uniform(0, 2 * np.pi, 100)])
            rows = {row.name: row for row in fitted("cosine", y).rows()}
            assert "whole circle" in str(rows["mean2"].note)
            assert rows["mean1"].note is None
            assert rows["kappa2"].lower == 0.0
            assert rows["lambda"].lower == -rows["lambda"].upper

    def test_the_difference_alone(self) -> None:
        a = np.random.default_rng(20).uniform(0, 2 * np.pi, 200)
        y = np.column_stack([a, a - 1.0 + 0.7 * np.random.default_rng(21).normal(size=200)])
        fit = fitted("cosine", y)
        assert any("fit y1 − y2 with un.directions.von_mises()" in note for note in fit.notes)
        assert all("whole circle" in str(row.note) for row in fit.rows() if row.name.startswith("mean"))
        remedy = un.fit_direction(d.von_mises(), un.iid(y[:, 0] - y[:, 1], unit="radians"))
        assert remedy.parameters["mean"] == pytest.approx(1.0, abs=0.2)

    def test_balanced_data(self) -> None:
        """Exactly balanced: a sentence that says what is lost, and a remedy."""
        g = np.arange(8) * np.pi / 4
        grid = np.stack(np.meshgrid(g, g, indexing="ij"), axis=-1).reshape(-1, 2)
        turning = np.array([[x, x - 1 + e] for x in g for e in (-0.6, -0.2, 0.2, 0.6, 0.0)])
        a = np.array([0.2, -0.3, 0.5, 0.0, 0.9, -1.0])
        beside = np.stack(np.meshgrid(a, g, indexing="ij"), axis=-1).reshape(-1, 2)
        for model in ("sine", "cosine"):
            with pytest.raises(NotIdentifiedError, match=r"lambda is 0, and mean1 and mean2 can be any angle"):
                fitted(model, grid)
            with pytest.raises(NotIdentifiedError, match=r"mean2 can be any angle.*Fit the first angle alone"):
                fitted(model, beside)
            with pytest.raises(NotIdentifiedError, match=r"both means may turn together. Fit y1 − y2 with un\.dir"):
                fitted(model, turning)
        with pytest.raises(NotIdentifiedError, match=r"Fit y1 \+ y2"):
            fitted("sine", turning * [1, -1])

    def test_without_an_estimate(self) -> None:
        a = np.random.default_rng(50).vonmises(1.0, 2.0, 30)
        with pytest.raises(NotIdentifiedError, match=r"y1 − y2 is the same in all rows.*un\.directions\.von_mises"):
            fitted("cosine", np.column_stack([a, a + 4.0]))
        assert fitted("sine", np.column_stack([a, a + 4.0])).fit.converged
        for model in ("sine", "cosine"):
            with pytest.raises(NotIdentifiedError, match=r"but two different pairs of angles.*Add data"):
                fitted(model, np.array([[0.1, 0.2], [1.0, 0.7], [0.1, 0.2 + 2 * np.pi]]))

    def test_laws_on_the_sphere_say_what_is_lost(self) -> None:
        from unnorm.directions.sampling import draws

        y = draws(np.zeros(3), np.diag([2.0, 0.0, -2.0]), 60, np.random.default_rng(1))
        both = un.iid(np.concatenate([y, -y]))
        with pytest.raises(NotIdentifiedError, match=r"kappa is 0, and the mean has no sense.*un\.directions\.bingham"):
            un.fit_direction(d.kent(), both)
        assert un.fit_direction(d.bingham(), both).fit.converged


def test_quantities_of_either_sign() -> None:
    (row,) = Signed("kappa").rows(np.array([-0.1]), np.array([[0.04]]), 0.95, RADIANS)
    assert row.lower == pytest.approx(np.sinh(np.arcsinh(-0.1) - 1.959964 * 0.2 / np.hypot(1, 0.1)))
    assert row.upper == pytest.approx(np.sinh(np.arcsinh(-0.1) + 1.959964 * 0.2 / np.hypot(1, 0.1)))
    (row,) = Signed("kappa", 2).rows(np.array([-0.44]), np.array([[0.04]]), 0.95, RADIANS)
    assert row.upper == 0.0  # 2.2² < 5.99
    (row,) = Number("lambda", either=True).rows(np.array([-0.1]), np.array([[0.04]]), 0.95, RADIANS)
    assert row.upper == -row.lower == pytest.approx(0.1 + 1.959964 * 0.2)
    (row,) = Angle("mean", lost=True).rows(np.array([5.0, 0.0]), 0.01 * np.eye(2), 0.95, RADIANS)
    assert (row.lower, row.upper) == (-np.pi, np.pi)


def test_the_reading_is_a_smooth_map() -> None:
    """Its slope against differences, in each region: usual signs, λ ≥ 0, means read through the dependence."""
    V = np.diag([0.0, 0.0, 0.01, 0.0, 0.0, 0.01, 0.01])

    def values(k1: float, k2: float, lam: float, m1: float, m2: float) -> np.ndarray:
        return np.array([np.cos(m1), np.sin(m1), k1, np.cos(m2), np.sin(m2), k2, lam])

    for theta in ((1.0, 0.8, -0.7, 1.0, 3.0), (-1.0, 0.02, 0.9, 1.0, 3.0), (1.2, -0.03, -0.9, 1.0, 3.0)):
        for sine in (True, False):
            at = values(*theta)
            read = reading(at, V, sine=sine)
            for j in range(5):
                step = np.eye(5)[j] * 1e-6
                up, down = (values(*(np.array(theta) + sign * step)) for sign in (1, -1))
                slope = (reading(up, V, sine=sine).values - reading(down, V, sine=sine).values) / 2e-6
                np.testing.assert_allclose(read.slope @ (up - down) / 2e-6, slope, atol=1e-6)
            k1, k2, lam = read.values[[2, 5, 6]]
            assert np.sign(k1 * k2 * lam) == np.sign(np.prod(theta[:3]))  # the law is the same
            assert k1 > 0
            assert (lam if abs(theta[1]) < 0.1 else k2) > 0
            through = lam if sine else min(lam, k1)
            assert np.hypot(*read.values[3:5]) == pytest.approx(k2 if abs(k2) > 0.1 else through)


@pytest.mark.parametrize("model", ["sine", "cosine"])
def test_draws_with_a_negative_kappa(model: str) -> None:
    theta = np.array([0.8, -0.6, 1.5, 1.0, 3.0])
    y = drawn(model, (0.8, -0.6, 1.5), 20_000, 30)
    p = np.exp(log_f(theta, GRID, model))
    p /= p.sum()

    def g(y: np.ndarray) -> np.ndarray:
        return np.column_stack([np.cos(y), np.sin(y), np.cos(y[:, 0] - y[:, 1]), np.sin(y[:, 0] + y[:, 1])])

    mean = p @ g(GRID)
    se = np.sqrt(p @ (g(GRID) - mean) ** 2 / len(y))
    assert np.all(np.abs(g(y).mean(axis=0) - mean) < 4.5 * se)


def test_spherical_regression_at_a_pole() -> None:
    """The chart has no poles: turned data have the same likelihood and errors, also about the z axis."""
    rng = np.random.default_rng(40)
    x = rng.normal(size=80)
    y = np.column_stack([0.3 * x + 0.2 * rng.normal(size=80), 0.1 * x + 0.2 * rng.normal(size=80), np.ones(80)])
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    y, x = np.concatenate([y, y * [-1, -1, 1]]), np.concatenate([x, -x])  # the mean is the pole exactly
    family = d.regression("x", domain=un.Sphere())
    pole, aside = (un.fit_direction(family, un.conditional(z, x={"x": x})) for z in (y, y[:, [2, 0, 1]]))
    assert pole.fit.converged
    assert pole.fit.loglik == pytest.approx(aside.fit.loglik, abs=1e-8)
    sizes = [next(row for row in fit.rows() if row.name == "kappa") for fit in (pole, aside)]
    assert (sizes[0].estimate, sizes[0].se) == pytest.approx((sizes[1].estimate, sizes[1].se), rel=1e-6)
    slopes = [np.hypot(fit.parameters["x east"], fit.parameters["x north"]) for fit in (pole, aside)]
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-6)


def test_a_mean_that_two_weak_links_tell_is_lost() -> None:
    """κ₂ is 2.1 errors from 0 and λ one: κ₂ alone would tell mean2, but the larger of two is so far by chance."""
    V = np.diag([0.0, 0.0, 0.01, 0.0, 0.0, 0.01, 0.01])
    read = reading(np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.21, 0.1]), V, sine=True)
    clear = reading(np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.8, 0.1]), V, sine=True)
    assert [one.lost for one in read.quantities if isinstance(one, Angle)] == [False, True]
    assert [one.lost for one in clear.quantities if isinstance(one, Angle)] == [False, False]


@pytest.mark.parametrize("sine", [True, False], ids=["sine", "cosine"])
def test_the_starts_natural_parameters(sine: bool) -> None:
    """ηᵀs is f, and its slopes are differences."""
    theta, h = np.array([[1.1, -0.4, 0.8, 0.3, 2.0]]), 1e-6
    eta, slope = natural(theta, sine=sine)
    d1, d2 = np.array([0.7, -1.3]) - theta[0, 3:]
    f = 1.1 * np.cos(d1) - 0.4 * np.cos(d2) + 0.8 * (np.sin(d1) * np.sin(d2) if sine else np.cos(d1 - d2))
    assert float(eta[0] @ statistics(np.array([[0.7, -1.3]]))[0]) == pytest.approx(f, abs=1e-12)
    for j in range(5):
        up, down = (natural(theta + sign * h * np.eye(5)[j], sine=sine)[0][0] for sign in (1, -1))
        np.testing.assert_allclose(slope[0, :, j], (up - down) / (2 * h), atol=1e-8)
