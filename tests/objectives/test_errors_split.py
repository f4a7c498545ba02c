"""se² = se_sampling² + se_reference²: each part against what redrawing the points, or the data, does."""

import dataclasses

import numpy as np
import pytest

import unnorm as un

SLOPE = un.ExponentialFamily(lambda y: y, ("a",), un.Interval(0, 1))


def _data(rng: np.random.Generator, n: int, a: float = 1.5) -> np.ndarray:
    return np.log1p(rng.random(n) * np.expm1(a)) / a


@pytest.mark.parametrize("objective", [un.Logistic, un.Importance])
def test_reference_part_is_the_spread_over_redraws(objective) -> None:
    obs = un.iid(_data(np.random.default_rng(0), 200))
    fits = [un.fit(SLOPE, obs, objective(un.Uniform(), total=200, points=un.IID()), rng=r) for r in range(120)]
    spread = np.std([fit.estimate[0] for fit in fits])
    claimed = np.mean([np.sqrt(fit.errors.reference[0, 0]) for fit in fits])
    assert claimed == pytest.approx(spread, rel=0.25)
    nus = np.std([fit.nu[0] for fit in fits])
    assert nus < np.mean([fit.nu_se[0] for fit in fits])


@pytest.mark.parametrize(
    ("objective", "points"),
    [
        (un.Logistic, un.IID()),
        (un.Importance, un.IID()),
        (un.Logistic, un.Lattice()),
        (un.Logistic, un.Stratified()),
        (un.Importance, un.Lattice()),
    ],
    ids=lambda part: repr(part),
)
def test_total_and_nu_are_the_spread_over_data_and_points(objective, points) -> None:
    rng = np.random.default_rng(1)
    fits = [
        un.fit(SLOPE, un.iid(_data(rng, 100)), objective(un.Uniform(), total=100, points=points), rng=r)
        for r in range(150)
    ]
    assert np.mean([fit.se[0] for fit in fits]) == pytest.approx(np.std([f.estimate[0] for f in fits]), rel=0.2)
    assert np.mean([fit.nu_se[0] for fit in fits]) == pytest.approx(np.std([f.nu[0] for f in fits]), rel=0.2)


@pytest.mark.filterwarnings("ignore:χ̂ and −log:unnorm.errors.UnnormWarning")  # χ is penalised, or has few terms
def test_lattice_has_far_less_reference_error_and_says_so() -> None:
    toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
    obs = un.transitions(un.datasets.toy_chain(300, 0.5, 5.0, rng=1))
    exact = un.fit(toy, obs)

    def fits(points):
        return [
            un.fit(
                toy,
                obs,
                un.Logistic(un.Uniform(), per_point=10, points=points),
                un.Smooth("s(y_prev, k=10)", smoothing="reml"),
                rng=r,
            )
            for r in range(12)
        ]

    for points, claim in ((un.IID(), 0.4), (un.Lattice(), 0.25)):
        some = fits(points)
        spread = np.std([fit.estimate for fit in some], axis=0)
        claimed = np.mean([np.sqrt(np.diag(fit.errors.reference)) for fit in some], axis=0)
        np.testing.assert_allclose(claimed, spread, rtol=1.2, atol=0.02 * exact.se.max())
        assert np.all(spread < claim * exact.se)
    lattice, iid = np.std([f.estimate for f in fits(un.Lattice())], 0), np.std([f.estimate for f in fits(un.IID())], 0)
    assert np.all(lattice < 0.5 * iid)


def test_tidy_shows_the_parts() -> None:
    fit = un.fit(SLOPE, un.iid(_data(np.random.default_rng(0), 50)), un.Logistic(un.Uniform(), total=200), rng=1)
    table = fit.tidy()
    np.testing.assert_allclose(table["se"] ** 2, table["se_sampling"] ** 2 + table["se_reference"] ** 2, rtol=1e-10)


def test_clusters_widen_the_errors_of_repeated_data() -> None:
    """Each observation eight times over: the naive errors are too small by √8, the cluster-robust ones are not."""
    y = _data(np.random.default_rng(2), 120)
    once = un.fit(SLOPE, un.iid(y), un.Logistic(un.Uniform(), total=4000), rng=1)
    table = {"y": np.repeat(y, 8), "who": np.repeat(np.arange(120), 8)}
    obs = un.iid(table, y="y", group="who")
    eight = un.fit(SLOPE, obs, un.Logistic(un.Uniform(), total=32000, cluster="who"), rng=1)
    robust = np.sqrt(eight.covariance_robust[0, 0])
    assert eight.se[0] == pytest.approx(once.se[0] / np.sqrt(8), rel=0.1)
    assert robust == pytest.approx(once.se[0], rel=0.2)


@pytest.mark.parametrize("objective", [un.Ranking, un.ConditionalNCE])
def test_reference_part_of_choices_is_the_spread_over_redraws(objective) -> None:
    """IID points of each observation's own: from one fit, without redrawing."""
    toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
    obs = un.transitions(un.datasets.toy_chain(300, 0.5, 5.0, rng=1))
    fits = [un.fit(toy, obs, objective(un.Uniform(), per_point=6), rng=r) for r in range(80)]
    spread = np.std([fit.estimate for fit in fits], axis=0)
    claimed = np.sqrt(np.mean([np.diag(fit.errors.reference) for fit in fits], axis=0))
    np.testing.assert_allclose(claimed, spread, rtol=0.25)
    once = [np.sqrt(np.diag(fit.errors.reference)) for fit in fits[:5]]
    assert np.all(np.std(once, axis=0) < 0.2 * claimed)  # each fit knows it by itself


def _subjects() -> un.Observations:
    y = np.concatenate([un.datasets.toy_chain(40, 0.5, 5.0, rng=s) for s in range(10)])
    return un.transitions({"y": y, "who": np.repeat(np.arange(10), 41)}, y="y", group="who")


def test_robust_errors_of_the_likelihood_are_the_sandwich() -> None:
    """C/(C − 1) H⁻¹ Σ g_c g_cᵀ H⁻¹ with g_t = s(y_t) − E[s | x_t] written out; the transform has the same."""
    toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
    obs = _subjects()
    exact, poisson = (un.fit(toy, obs, one) for one in (un.Exact(cluster="who"), un.Poisson(cluster="who")))
    nodes, weights = np.polynomial.legendre.leggauss(200)
    y, x = obs.outcome[:, 0], obs.previous()[:, 0]

    def s(y: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.stack([np.broadcast_to(y, np.broadcast(y, x).shape), -0.5 * (y - x) ** 2], axis=-1)

    p = weights * np.exp(s(nodes[None], x[:, None]) @ exact.estimate)
    p /= p.sum(axis=1, keepdims=True)
    g = s(y, x) - np.einsum("tn,tnp->tp", p, s(nodes[None], x[:, None]))
    sums = np.stack([g[obs.group["who"] == c].sum(axis=0) for c in range(10)])
    expected = 10 / 9 * exact.covariance @ sums.T @ sums @ exact.covariance
    np.testing.assert_allclose(exact.covariance_robust, expected, rtol=1e-6)
    np.testing.assert_allclose(poisson.covariance_robust, expected, rtol=1e-5)
    smooth = un.fit(toy, obs, un.Poisson(cluster="who"), un.Smooth("s(y_prev, k=10)", smoothing="reml"))
    assert smooth.tidy(robust=True)["se"] == pytest.approx(np.sqrt(np.diag(expected)), rel=0.1)


@pytest.mark.filterwarnings("ignore:.* is at its limit:unnorm.errors.UnnormWarning")
@pytest.mark.parametrize(
    ("objective", "normaliser"),
    [
        (un.Exact(cluster="who"), None),
        (un.Ranking(un.Uniform(), per_point=20, cluster="who"), None),
        (un.Logistic(un.Uniform(), per_point=20, cluster="who"), un.Smooth("s(y_prev, k=6)", smoothing="reml")),
    ],
    ids=["exact", "ranking", "logistic"],
)
def test_robust_bands_of_repeated_data_are_those_of_the_data(objective, normaliser, tmp_path) -> None:
    """Each transition eight times over, as one cluster: the robust band is √8 times the naive one, also when loaded."""
    once = un.transitions(un.datasets.toy_chain(300, 0.5, 5.0, rng=1))
    copies = np.repeat(np.arange(300), 8)
    obs = dataclasses.replace(once.take(copies), group={"who": copies})
    model = un.Additive("s(gap, k=5)", un.Interval(-1, 1), covariates=[un.Expression("gap", "abs(y - y_prev)")])
    free = {"s(gap)": 1e-3} | ({} if normaliser is None else {"s(y_prev)": 1e-3})
    sp = un.Smoothing(sp=free)  # as good as no penalty, whose part of the band does not grow
    fit = un.fit(model, obs, objective, normaliser, smoothing=sp, rng=1)
    naive, robust = (fit.effect("s(gap)", robust=r)["se"] for r in (False, True))
    assert np.sqrt(np.mean(robust**2 / naive**2)) == pytest.approx(np.sqrt(8), rel=0.15)
    fit.save(tmp_path / "fit")
    np.testing.assert_array_equal(un.load(tmp_path / "fit").effect("s(gap)", robust=True)["se"], robust)
    with pytest.raises(un.errors.InputError, match="sp must be one of 's\\(gap\\)'"):
        un.fit(model, once, smoothing=un.Smoothing(sp={"s(gop)": 1.0}))
    alone = un.fit(model, once, smoothing=un.Smoothing(sp=free and {"s(gap)": 1.0}))
    both = (alone.effect("s(gap)", robust=r)["se"] for r in (False, True))  # without clusters, by observation
    np.testing.assert_allclose(*both, rtol=0.3)
