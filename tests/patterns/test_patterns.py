"""Patterns, their fits and simulations: closed forms, equivalences, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import unnorm as un
from unnorm import patterns
from unnorm.patterns.functions.envelope import extremeness, summarised
from unnorm.patterns.interactions import Neighbours
from unnorm.patterns.places import Places

SQUARE = un.Box((0, 1), (0, 1))
ISLAND = un.Window([(0, 0), (4, 0), (4, 3), (0, 3)], holes=[[(1, 1), (2, 1), (2, 2), (1, 2)]])


def poisson(beta: float, slope: float, seed: int, window: un.domains.Domain = SQUARE) -> un.Pattern:
    """A Poisson pattern with log λ = beta + slope x."""
    rng = np.random.default_rng(seed)
    high = window.enclosing_box[1][0]
    top = np.exp(beta + max(slope, 0.0) * high)
    xy = window.uniform(rng.poisson(top * window.volume), rng)
    keep = rng.random(len(xy)) < np.exp(beta + slope * xy[:, 0]) / top
    return un.pattern({"x": xy[keep, 0], "y": xy[keep, 1]}, y=("x", "y"), window=window)


@pytest.mark.parametrize("design", ["stratified", "poisson", "binomial"])
def test_constant_intensity(design: str) -> None:
    """log λ̂ = log(n/|W|), with variance 1/n: the dummy points matter only where their number varies."""
    points = poisson(5.5, 0.0, 1)
    fit = un.fit_pattern(points, design=design, dummies=1000, rng=2)
    m = int((~fit.fitted.data).sum())
    want = np.log(points.n) - (np.log(m / 1000) if design == "poisson" else 0.0)
    assert fit.theta["(Intercept)"] == pytest.approx(want, abs=1e-6)
    variance = 1 / points.n + (1 / m if design == "poisson" else 0.0)
    assert fit.se[0] ** 2 == pytest.approx(variance, rel=0.02 if design == "poisson" else 1e-6)


def test_log_linear_against_maximum_likelihood() -> None:
    """Σ log λ − ∫ λ has a closed form for log λ = β₀ + β₁ x on the unit square."""
    from scipy.optimize import minimize

    points = poisson(5.0, 1.0, 3)
    x = points.xy[:, 0]

    def minus(beta: np.ndarray) -> float:
        return float(-np.sum(beta[0] + beta[1] * x) + np.exp(beta[0]) * np.expm1(beta[1]) / beta[1])

    ml = minimize(minus, [5.0, 0.5], method="BFGS", options={"gtol": 1e-9}).x
    fit = un.fit_pattern(points, "x", dummies=40_000, rng=4)
    np.testing.assert_allclose(fit.estimate, ml, atol=0.01)
    fisher = np.array([[np.exp(ml[0]) * _moment(ml[1], i + j) for j in (0, 1)] for i in (0, 1)])
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(fisher), rtol=0.02)


def _moment(b: float, k: int) -> float:
    x = (np.arange(100_000) + 0.5) / 100_000
    return float(np.mean(x**k * np.exp(b * x)))


def test_as_the_poisson_transform() -> None:
    """ν + log n is ppm's intercept: the same model by un.fit, given how many points there are."""
    points = poisson(5.0, 1.0, 3)
    fit = un.fit_pattern(points, "x", dummies=40_000, rng=4)
    model = un.ExponentialFamily(lambda y: (y[0],), ("x",), SQUARE)
    given = un.fit(model, points.observations(), un.Exact())
    assert given.theta["x"] == pytest.approx(fit.theta["x"], abs=0.01)
    assert float(given.nu[0]) + np.log(points.n) == pytest.approx(fit.theta["(Intercept)"], abs=0.01)


def test_stratified_error_is_measured() -> None:
    """The spread of estimates over draws of the dummy points is what se_reference says."""
    points = poisson(5.0, 1.0, 3)
    fits = [un.fit_pattern(points, "x", dummies=900, rng=k) for k in range(60)]
    spread = np.std([fit.estimate for fit in fits], axis=0, ddof=1)
    said = np.sqrt(np.mean([np.diag(fit.errors.reference) for fit in fits], axis=0))
    np.testing.assert_allclose(said, spread, rtol=0.3)


def test_intensity_and_offset() -> None:
    """exp(offset) is exposure; the table has λ̂ with its error, on a window with a hole."""
    points = poisson(3.0, 0.4, 5, ISLAND)
    fit = un.fit_pattern(points, "x", rng=1)
    table = fit.intensity([[0.5, 0.5], [3.0, 2.0]])
    np.testing.assert_allclose(table["intensity"], np.exp(fit.estimate[0] + fit.estimate[1] * table["x"]))
    X = np.column_stack([np.ones(2), table["x"]])
    np.testing.assert_allclose(table["se"] / table["intensity"], np.sqrt(np.diag(X @ fit.covariance @ X.T)))
    other = un.fit_pattern(points, "x + offset(0.7 * x)", rng=1)
    assert other.theta["x"] == pytest.approx(fit.theta["x"] - 0.7, abs=1e-6)
    total = np.mean(fit.intensity(200)["intensity"]) * ISLAND.volume
    assert total == pytest.approx(points.n, rel=0.01)


def test_smooth_terms_have_their_band() -> None:
    points = poisson(6.0, 1.0, 6)
    fit = un.fit_pattern(points, "s(x)", rng=1)
    curve = fit.effect("s(x)")
    truth = curve["x"] - curve["x"].mean()
    assert np.mean(np.abs(curve["estimate"] - curve["estimate"].mean() - truth) < 2.5 * curve["se"] + 0.05) > 0.9


def test_types_alone() -> None:
    """A type's own intercept and slope are those of its points alone."""
    a, b = poisson(5.0, 1.0, 7), poisson(4.5, -1.0, 8)
    xy = np.concatenate([a.xy, b.xy])
    both = un.pattern(
        {"x": xy[:, 0], "y": xy[:, 1], "type": np.repeat(["a", "b"], [a.n, b.n])},
        y=("x", "y"), window=SQUARE, marks="type",
    )  # fmt: skip
    fit = un.fit_pattern(both, "factor(type) * x", dummies=40_000, rng=9)
    single = un.fit_pattern(both.split()["b"], "x", dummies=20_000, rng=10)
    theta = fit.theta
    assert theta["(Intercept)"] + theta["typeb"] == pytest.approx(single.theta["(Intercept)"], abs=0.02)
    assert theta["x"] + next(v for k, v in theta.items() if ":" in k) == pytest.approx(single.theta["x"], abs=0.03)


def test_replicates() -> None:
    """Replicates share λ: n over the area of all windows, those without points too; they do not interact."""
    rng = np.random.default_rng(11)
    xy = rng.random((90, 2))
    labels = np.repeat(["r1", "r2"], [50, 40])
    windows = {"r1": SQUARE, "r2": SQUARE, "empty": un.Box((0, 2), (0, 1))}
    points = un.pattern({"x": xy[:, 0], "y": xy[:, 1], "site": labels}, y=("x", "y"), window=windows, replicate="site")
    assert points.area == 4.0
    fit = un.fit_pattern(points, rng=12)
    assert fit.theta["(Intercept)"] == pytest.approx(np.log(90 / 4), abs=0.02)
    fit = un.fit_pattern(points, interaction=un.Geyer(0.05, 100.0), correction="none", rng=12)
    close = [
        np.sum(np.hypot(*(xy[labels == s][:, None] - xy[labels == s][None]).T) <= 0.05) - np.sum(labels == s)
        for s in ("r1", "r2")
    ]
    assert fit.fitted.gam.columns["geyer"][fit.fitted.data].sum() == 2 * sum(close)  # each pair seen from both ends
    drawn = fit.simulate(2, rng=1)[0]
    assert set(np.unique(drawn.places.replicate)) <= {0, 1, 2}


# --- simulation ------------------------------------------------------------------------------------------------------


GIBBS = {
    "strauss": (un.Strauss(0.08), (4.5, -1.5), "none"),
    "strauss, periodic": (un.Strauss(0.08), (4.5, -1.5), "periodic"),
    "geyer": (un.Geyer(0.07, 2.0), (3.3, 0.4), "none"),
    "area": (un.AreaInteraction(0.06), (4.2, -1.5), "none"),
    "hard core": (un.HardCore(0.07), (4.5,), "none"),
    "types": (un.MultiStrauss([[0.08, 0.05], [0.05, 0.1]]), (4.0, -1.0, -0.5, -2.0), "none"),
}


@pytest.mark.parametrize("name", GIBBS)
def test_simulations_obey_their_conditional_intensity(name: str) -> None:
    """Georgii–Nguyen–Zessin: E n = E ∫ λ(u | x) du, and E Σ t(x_i) = E ∫ t(u) λ(u | x) du."""
    interaction, (level, *phi), correction = GIBBS[name]
    start = un.pattern(
        {"x": [0.1, 0.9], "y": [0.5, 0.5], "type": ["a", "b"]},
        y=("x", "y"),
        window=SQUARE,
        marks="type" if name == "types" else None,
    )
    process = patterns.Process(
        start, lambda places: np.full(places.n, level), interaction, tuple(phi), correction == "periodic"
    )
    period, rng = np.ones(2) if correction == "periodic" else None, np.random.default_rng(14)

    def statistics(u: Places, x: Places, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        near = Neighbours(u, x, own, interaction.reach, period)
        free = np.ones(u.n)
        free[near.pairs.a[near.pairs.d <= interaction.core]] = 0.0
        return interaction.statistics(near), free

    left, right = [], []
    for one in process.simulate(150, rng=15):
        u = Places.of(rng.random((4000, 2)), rng.integers(0, one.types, 4000))
        t, _ = statistics(one.places, one.places, np.arange(one.n))
        tu, free = statistics(u, one.places, np.full(u.n, -1))
        lam = free * np.exp(level + tu @ phi) * one.types
        left.append([one.n, *t.sum(axis=0)])
        right.append([lam.mean(), *(tu * lam[:, None]).mean(axis=0)])
    gap = np.array(left) - np.array(right)
    se = gap.std(axis=0, ddof=1) / np.sqrt(len(gap))
    assert np.all(np.abs(gap.mean(axis=0)) < 4 * se)
    assert np.all(se < 0.1 * np.abs(np.mean(left, axis=0)) + 0.1)


def test_a_core_is_kept() -> None:
    process = patterns.process(SQUARE, 5.0, un.HardCore(0.07))
    assert all(un.HardCore.largest(one) * (one.n + 1) / one.n > 0.07 for one in process.simulate(20, rng=2))


def test_strauss_by_weights() -> None:
    """In a small window, where E n and its spread follow from Poisson patterns weighted by γ^pairs."""
    beta, gamma, r = 6.0, 0.3, 0.4
    rng = np.random.default_rng(20)
    n = rng.poisson(beta, 40_000)
    xy = rng.random((len(n), n.max(), 2))
    d = np.hypot(*(xy[:, :, None] - xy[:, None]).transpose(3, 0, 1, 2))
    here = np.arange(n.max()) < n[:, None]
    close = np.sum((d <= r) & here[:, :, None] & here[:, None] & ~np.eye(n.max(), dtype=bool), axis=(1, 2)) / 2
    w = gamma**close
    mean = w @ n / w.sum()
    variance = w @ (n - mean) ** 2 / w.sum()
    drawn = np.array(
        [one.n for one in patterns.process(SQUARE, np.log(beta), un.Strauss(r), [np.log(gamma)]).simulate(400, rng=21)]
    )
    assert abs(drawn.mean() - mean) < 4 * np.sqrt(variance / 400) + 0.03
    assert drawn.var() == pytest.approx(variance, rel=0.3)


def test_poisson_simulations() -> None:
    points = poisson(5.0, 1.0, 3)
    fit = un.fit_pattern(points, "x", rng=1)
    drawn = fit.simulate(200, rng=2)
    n = np.array([one.n for one in drawn])
    assert abs(n.mean() - points.n) < 4 * np.sqrt(points.n / 200) + 0.5
    assert 0.7 < n.var() / n.mean() < 1.4
    x = np.concatenate([one.xy[:, 0] for one in drawn])
    assert x.mean() == pytest.approx(points.xy[:, 0].mean(), abs=0.01)


# --- checks ----------------------------------------------------------------------------------------------------------


def test_residuals_show_what_is_missing() -> None:
    points = poisson(6.0, 2.0, 17)
    flat, right = un.fit_pattern(points, rng=1), un.fit_pattern(points, "x", rng=1)
    z = flat.residuals(32).z
    assert np.nanmean(z[:, -8:]) > 50 > -50 > np.nanmean(z[:, :8])
    for fit, wrong in ((flat, True), (right, False)):
        curve = fit.lurking("x")
        assert (np.mean(np.abs(curve.residual) > curve.limit + 1e-9) > 0.5) == wrong
        assert (fit.quadrat_test(4).p_value < 0.001) == wrong
    assert right.envelope("L", 39, rng=2).p > 0.02
    assert flat.envelope("L", 39, rng=2).p <= 0.05


def test_extreme_rank_lengths() -> None:
    """The curve that is least or largest most often comes first; equal curves share a place."""
    curves = np.array([[5.0, 5.0, 5.0], [1.0, 2.0, 2.0], [2.0, 1.0, 1.0], [3.0, 3.0, 3.0], [4.0, 4.0, 4.0]])
    assert np.argsort(extremeness(curves))[:2].tolist() == [0, 2]
    places = extremeness(np.array([[1.0, 9.0], [1.0, 9.0], [2.0, 5.0], [3.0, 6.0]]))
    assert places[0] == places[1]


def test_the_most_extreme_of_all() -> None:
    """p = 1/(n + 1) where the data leave all simulations behind, and 1 in their middle."""
    own = patterns.Summary("L", "none", np.arange(3.0), np.full(3, 100.0), np.zeros(3))
    curves = np.random.default_rng(1).normal(size=(39, 3))
    found = summarised("L", own, curves, 0.95)
    assert found.p == pytest.approx(1 / 40)
    assert found.global_upper.max() < 100.0
    np.testing.assert_allclose(found.lower, curves.min(axis=0))
    middle = summarised("L", replace(own, value=np.median(curves, axis=0)), curves, 0.95)
    assert middle.p == 1.0


def test_lurking_limits_end_at_zero() -> None:
    """Over the whole window a fitted constant has no residual, and no variance of one."""
    points = poisson(6.0, 0.0, 17)
    curve = un.fit_pattern(points, rng=1).lurking("x")
    assert abs(curve.residual[-1]) < 1e-3 * points.n
    assert curve.limit[-1] < 0.05 * np.sqrt(points.n)
    middle = len(curve.limit) // 2
    assert curve.limit[middle] == pytest.approx(2 * np.sqrt(points.n / 4), rel=0.05)


def test_envelopes_have_their_size() -> None:
    """The global test rejects a Poisson pattern 1 time in 20, about."""
    p = [
        patterns.envelope(
            un.pattern(np.random.default_rng(k).random((40, 2)), window=SQUARE),
            "L",
            39,
            r=np.linspace(0, 0.2, 41),
            rng=1000 + k,
        ).p
        for k in range(60)
    ]
    assert np.mean(np.array(p) <= 0.1) < 0.25
    assert np.mean(p) > 0.35


def test_robust_errors_of_a_clustered_pattern() -> None:
    """Parents with ten children each: the variance of n is about eleven times the Poisson one."""
    rng = np.random.default_rng(18)
    ratio = []
    for _ in range(6):
        parents = rng.random((rng.poisson(40), 2))
        xy = np.concatenate([p + 0.02 * rng.normal(size=(rng.poisson(10), 2)) for p in parents]) % 1.0
        fit = un.fit_pattern(un.pattern(xy, window=SQUARE), rng=int(rng.integers(1e6)))
        ratio.append(fit.covariance_robust[0, 0] / fit.covariance[0, 0])
    assert 5 < np.mean(ratio) < 20


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: un.pattern([[0.5, 0.5], [1.5, 0.5]], window=SQUARE), "1 of 2 points lie outside the window"),
        (lambda: un.pattern({"x": [0.1], "y": [0.2], "m": [None]}, y=("x", "y"), window=SQUARE, marks="m"), "missing"),
        (lambda: un.pattern([[0.5, 0.5]], window=un.Interval(0, 1)), "window must be a region of the plane"),
        (lambda: un.pattern({"x": [0.1]}, y="x", window=SQUARE), "two coordinates"),
        (lambda: un.Strauss(0.0), "r of Strauss must be a positive number"),
        (lambda: un.Geyer(-1.0, 2.0), "r of Geyer must be a positive number"),
        (lambda: un.HardCore(2.0, strauss=1.0), "larger than r"),
        (lambda: un.MultiStrauss([[1.0, 2.0], [3.0, 1.0]]), "symmetric"),
        (lambda: un.fit_pattern(poisson(5.0, 0.0, 1), interaction=un.Strauss(2.0)), "only 1 wide"),
        (lambda: un.fit_pattern(poisson(5.0, 0.0, 1), interaction=un.HardCore(0.2)), "forbids points 0.2 or less"),
        (lambda: un.fit_pattern(poisson(5.0, 0.0, 1), interaction=un.Strauss(0.49), rng=1), "farther than|smaller r"),
        (lambda: un.fit_pattern(poisson(5.0, 0.0, 1), interaction=un.MultiStrauss([[0.1]])), "types of points"),
        (lambda: un.fit_pattern(poisson(3.0, 0.0, 1, ISLAND), correction="periodic"), "rectangle"),
        (lambda: un.fit_pattern(poisson(5.0, 0.0, 1), "0 + x"), "intercept"),
        (lambda: un.fit_pattern(poisson(5.0, 0.0, 1), "z ~ x"), "no response"),
        (lambda: un.fit_pattern(poisson(5.0, 0.0, 1), "elev"), "no covariate 'elev'"),
        (
            lambda: un.fit_pattern(
                poisson(5.0, 0.0, 1), "elev", covariates=[un.Map("elev", np.eye(2), [0.2, 0.4], [0.2, 0.4])],
            ),
            "has no value at",
        ),
        (lambda: un.fit_pattern(poisson(5.0, 0.0, 1), points=un.Dummies([[2.0, 0.5]], rho=1.0)), "dummy points lie"),
        (lambda: un.fit_pattern(poisson(5.0, 0.0, 1), rng=1).aic, "fit.wald"),
        (lambda: un.fit_pattern(poisson(5.0, 0.0, 1), rng=1).held_out(None), "likelihood"),
        (lambda: un.fit_pattern(poisson(5.0, 0.0, 1), interaction=un.Strauss(0.05), rng=1).intensity(), "fit.trend"),
        (lambda: patterns.G(poisson(5.0, 0.0, 1), correction="km", intensity=np.ones(len(poisson(5.0, 0.0, 1).xy))),
         "'border' only"),
        (lambda: patterns.F(poisson(5.0, 0.0, 1), intensity=np.ones(len(poisson(5.0, 0.0, 1).xy)), least=2.0),
         "must be positive and below 1"),
        (lambda: patterns.J(poisson(5.0, 0.0, 1), intensity=[1.0]), "one for each point"),
        (lambda: un.fit_pattern(poisson(5.0, 0.0, 1), interaction=un.AreaInteraction(0.05), correction="isotropic"),
         "not made of pairs"),
        (lambda: patterns.K(poisson(5.0, 0.0, 1), r=[0.2, 0.1]), "increasing"),
    ],
)  # fmt: skip
def test_bad_input(make, says: str) -> None:
    with pytest.raises(un.errors.UnnormError, match=says):
        make()


def test_outside_and_duplicates_are_noted() -> None:
    xy = [[0.5, 0.5], [0.5, 0.5], [1.5, 0.5], [0.2, 0.3]]
    points = un.pattern(xy, window=SQUARE, outside="drop")
    assert points.n == 3
    assert "1 of 4 points lie outside the window; the first is row 2" in points.notes[0]
    assert "1 point with the same coordinates as an earlier one, first row 1" in points.notes[1]


@pytest.mark.filterwarnings("ignore:The estimated interaction attracts")
def test_no_process_is_simulated_where_there_is_none() -> None:
    rng = np.random.default_rng(19)
    xy = (rng.random((20, 1, 2)) + 0.01 * rng.normal(size=(20, 6, 2))).reshape(-1, 2) % 1.0
    fit = un.fit_pattern(un.pattern(xy, window=SQUARE), interaction=un.Strauss(0.05), rng=1)
    assert any("attracts" in note for note in fit.notes)
    with pytest.raises(un.errors.InputError, match="There is no process"):
        fit.simulate()
