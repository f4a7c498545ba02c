"""`un.gam` against a dense brute-force fit of the same terms, and the coverage of its bands."""

import numpy as np
import pytest
from gam_dense_reference import Dense
from gam_dense_reference import fit as dense_fit

import unnorm as un


def simulate(n=250, seed=1):
    rng = np.random.default_rng(seed)
    x, z, g = rng.random(n), rng.random(n), rng.choice(["a", "b", "c", "d"], n)
    f = np.sin(5 * x) + (z - 0.5) ** 2 * 4 + np.where(g == "a", 0.4, -0.1)
    return {"x": x, "z": z, "g": g, "w": rng.uniform(0.5, 2.0, n), "o": rng.normal(scale=0.3, size=n),
            "gaussian": f + rng.normal(scale=0.4, size=n),
            "binomial": (rng.random(n) < 1 / (1 + np.exp(-f))).astype(float),
            "poisson": rng.poisson(np.exp(f / 2)).astype(float)}  # fmt: skip


@pytest.mark.parametrize("method", ["REML", "ML"])
@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson"])
def test_the_engine_finds_the_brute_force_optimum(family, method):
    data = simulate()
    weights = None if family == "binomial" else "w"
    fit = un.gam(
        f"{family} ~ s(x, bs='cr', k=8) + s(z, bs='ps', k=7) + s(g, bs='re')", data, family=family, method=method,
        weights=weights, offset="o",
    )  # fmt: skip
    w = None if weights is None else data["w"]
    brute = dense_fit(Dense(fit.terms, fit.columns), data[family], family, w, data["o"], method)
    assert fit.score == pytest.approx(brute.score, abs=2e-4)
    assert fit.edf_total == pytest.approx(brute.edf.sum(), rel=2e-3)
    assert fit.scale == pytest.approx(brute.scale, rel=1e-3)
    # the criterion's Hessian by differences of the brute-force criterion
    steps, x = 1e-3 * np.eye(3), np.log(list(fit.sp.values()))
    f = brute.criterion
    numeric = np.array([
        [(f(x + a + b) - f(x + a - b) - f(x - a + b) + f(x - a - b)) / 4e-6 for b in steps] for a in steps
    ])  # fmt: skip
    np.testing.assert_allclose(fit.criterion_hessian, numeric, atol=2e-3)
    table = fit.smoothing
    np.testing.assert_allclose(table["se"], np.sqrt(np.diag(np.linalg.inv(numeric))), rtol=0.01)


def test_cross_validation_keeps_groups_together_and_repeats():
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(40), 10)
    x = rng.random(40)[group] + 0.001 * rng.random(400)  # rows of a group are nearly copies
    data = {"x": x, "group": group, "y": np.sin(6 * x) + 0.7 * rng.normal(size=40)[group] + 0.05 * rng.normal(size=400)}
    apart = un.gam("y ~ s(x, k=20)", data, method="CV", rng=1)
    together = un.gam("y ~ s(x, k=20)", data, method="CV", groups="group", rng=1)
    assert together.edf["s(x)"] < 0.7 * apart.edf["s(x)"]
    again = un.gam("y ~ s(x, k=20)", data, method="CV", groups=group, rng=1)
    np.testing.assert_array_equal(again.linear_predictor, together.linear_predictor)


@pytest.mark.slow
def test_bands_cover_as_they_claim():
    x = np.linspace(0.0, 1.0, 300)
    truth = np.sin(2 * np.pi * x) * np.exp(-x)
    truth -= truth.mean()
    kinds = {"pointwise": {}, "unconditional": {"unconditional": True}, "simultaneous": {"simultaneous": True}}
    cover = {kind: [] for kind in kinds}
    for seed in range(200):
        y = truth + np.random.default_rng(seed).normal(scale=0.5, size=300)
        fit = un.gam("y ~ s(x, k=15)", {"x": x, "y": y})
        for kind, options in kinds.items():
            band = fit.effect("s(x)", at=x, rng=seed, **options)
            inside = (band["lower"] < truth) & (truth < band["upper"])
            cover[kind].append(inside.all() if kind == "simultaneous" else inside.mean())
    rate = {kind: float(np.mean(inside)) for kind, inside in cover.items()}
    assert 0.93 < rate["pointwise"] < 0.975, rate  # over the points (Marra & Wood 2012)
    assert rate["pointwise"] <= rate["unconditional"] < 0.99, rate
    assert 0.90 < rate["simultaneous"] < 0.995, rate
