"""What follows a fit: saving and reading back, concurvity, appraisal, exact posterior draws."""

import json
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import unnorm as un
from unnorm.errors import InputError

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
DATA = pd.read_csv(HERE / "fits_rows.csv")
CHECKS = json.loads((HERE / "checks.json").read_text())

SAVED = [
    ("y ~ s(x1, k=8) + s(ang, bs='cc', k=7) + lin + g", {"knots": {"ang": (-np.pi, np.pi)}}),
    ("count ~ s(x1, by=g, k=5) + g*lin + offset(log(w))", {"family": "poisson"}),
    ("cls ~ te(x1, x2, k=4) + s(g, bs='re')", {"family": "binomial", "weights": "trials"}),
    ("y ~ s(x1, g, bs='fs', k=5) + s(log(x2 + 1))", {}),
    ("count ~ s(x1) + s(x2)", {"family": "nb", "offset": DATA["off"].to_numpy()}),
    ("cls ~ s(x1) + s(x2, bs='ts')", {"family": "binomial", "link": "probit", "method": "ML"}),
    ("y ~ kernel(x1)", {}),
    ("count ~ s(x1, x2, k=20, bs='ts') + ti(x1, x3)", {"family": "quasipoisson", "select": True}),
]


@pytest.mark.parametrize(("formula", "options"), SAVED, ids=lambda v: v if isinstance(v, str) else "")
def test_what_is_read_back_says_the_same(formula, options, tmp_path):
    fit = un.gam(formula, DATA, **options)
    fit.save(tmp_path / "fit")
    again = un.load(tmp_path / "fit")
    assert isinstance(again, un.Gam)
    new = DATA.head(7)
    offset = 0.1 if fit.offset_names is None else None
    for one, other in zip(again.predict(new, offset=offset), fit.predict(new, offset=offset)):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert again.summary() == fit.summary()
    assert again.coefficients == fit.coefficients
    np.testing.assert_allclose(again.covariance, fit.covariance, rtol=1e-10, atol=1e-14 * fit.covariance.max())
    if fit.method in ("REML", "ML"):
        np.testing.assert_allclose(again.vcov(unconditional=True), fit.vcov(unconditional=True), rtol=1e-8, atol=1e-12)
    assert again.aic == pytest.approx(fit.aic, rel=1e-12, nan_ok=True)
    assert (again.formula, again.theta, again.notes) == (fit.formula, fit.theta, fit.notes)
    np.testing.assert_array_equal(again.draws(3, rng=5), fit.draws(3, rng=5))
    assert isinstance(again.effect(fit.smooths[0].label), pd.DataFrame)
    assert again.compare(fit).df == 0.0
    again.save(tmp_path / "fit")  # over itself
    assert un.load(tmp_path / "fit").score == fit.score


def test_damaged_and_foreign_folders_are_refused(tmp_path):
    fit = un.gam("y ~ s(x1)", DATA)
    fit.save(tmp_path / "fit")
    about = tmp_path / "fit" / "fit.json"
    text = about.read_text()
    about.write_text(text.replace("gaussian", "poisson"))
    with pytest.raises(InputError, match="damaged"):
        un.load(tmp_path / "fit")
    about.write_text(text)
    (tmp_path / "fit" / "arrays.npz").write_bytes(b"no arrays")
    with pytest.raises(InputError, match="damaged"):
        un.load(tmp_path / "fit")
    with pytest.raises(InputError, match="not a saved fit"):
        un.load(tmp_path)
    fit.save(tmp_path / "other")
    with pytest.raises(InputError, match="needs no model"):
        un.load(tmp_path / "other", model=un.Additive("s(y)", un.Interval(0, 1)))
    from unnorm._base.storage import read_folder, write_folder
    from unnorm.engine.gam_saving import load

    described, arrays = read_folder(tmp_path / "other")
    described.pop("terms")
    write_folder(tmp_path / "other", described, arrays)
    with pytest.raises(InputError, match=r"damaged \(KeyError"):
        un.load(tmp_path / "other")
    write_folder(tmp_path / "draws", {"class": "Draws"}, {})
    with pytest.raises(InputError, match="holds a Draws, not a Gam"):
        load(tmp_path / "draws")


def test_a_saved_fit_is_read_in_another_process(tmp_path):
    fit = un.gam("count ~ s(x1) + s(g, bs='re')", DATA, "poisson")
    fit.save(tmp_path / "fit")
    code = f"import unnorm as un; f = un.load({str(tmp_path / 'fit')!r}); print(repr(float(f.predict().estimate[3])))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(said) == pytest.approx(fit.predict().estimate[3], rel=1e-12)


@pytest.mark.parametrize("one", CHECKS["checks"], ids=lambda one: one["formula"])
def test_concurvity_is_mgcvs(one):
    knots = {name: np.asarray(v, float) for name, v in one["knots"].items() if name in one["formula"]}
    fit = un.gam(one["formula"], DATA, one["family"], knots=knots)
    table = fit.concurvity()
    assert table["term"].tolist()[1:] == [label.replace(" ", "") for label in one["concurvity_terms"][1:]]
    for name in ("worst", "observed", "estimate"):
        np.testing.assert_allclose(table[name], one[name], atol=0.02)


def test_pairwise_concurvity_by_projection():
    fit = un.gam("y ~ s(x1, k=6, bs='cr') + s(x2, k=5, bs='cr') + lin", DATA)
    table = fit.concurvity(pairwise=True).set_index(["term", "with"])
    X = fit.predict(kind="matrix")
    one, two = X[:, fit.index("s(x1)")], X[:, fit.index("s(x2)")]
    onto = two @ np.linalg.lstsq(two, one, rcond=None)[0]
    beta = fit.smoothed.beta[fit.index("s(x1)")]
    row = table.loc[("s(x1)", "s(x2)")]
    assert row["observed"] == pytest.approx(np.sum((onto @ beta) ** 2) / np.sum((one @ beta) ** 2), rel=1e-8)
    assert row["estimate"] == pytest.approx(np.sum(onto**2) / np.sum(one**2), rel=1e-8)
    q1, q2 = np.linalg.qr(one)[0], np.linalg.qr(two)[0]
    assert row["worst"] == pytest.approx(np.linalg.norm(q1.T @ q2, 2) ** 2, rel=1e-8)
    assert len(table) == 6


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "nb", "quasipoisson"])
def test_appraisal(family):
    plt = pytest.importorskip("matplotlib.pyplot")
    response = {"gaussian": "y", "binomial": "cls"}.get(family, "count")
    fit = un.gam(f"{response} ~ s(x1)", DATA, family)
    figure, axes = fit.appraise(repeats=30)
    assert axes.shape == (2, 2)
    assert len({ax.get_title() for ax in axes.flat}) == 4
    plt.close(figure)
    with pytest.raises(InputError, match="at least 20"):
        fit.appraise(repeats=1)


def test_quantiles_of_residuals_hold_the_truth_and_find_overdispersion():
    from unnorm.engine.gam_appraisal import quantiles

    rng = np.random.default_rng(8)
    x = rng.random(500)
    mu = np.exp(1 + np.sin(6 * x))
    right = un.gam("y ~ s(x)", {"x": x, "y": rng.poisson(mu)}, "poisson")
    wrong = un.gam("y ~ s(x)", {"x": x, "y": rng.negative_binomial(1.0, 1 / (1 + mu))}, "poisson")
    outside = []
    for fit in (right, wrong):
        residuals, _, low, high = quantiles(fit, np.arange(500), 200, 0.95, 1)
        outside.append(np.mean((residuals < low) | (residuals > high)))
    assert outside[0] < 0.35 < outside[1]
    normal = un.gam("y ~ s(x)", {"x": x, "y": rng.normal(size=500)})
    _, reference, _, _ = quantiles(normal, np.arange(500), 200, 0.95, 1)
    expected = np.sqrt(normal.scale) * stats.norm.ppf((np.arange(500) + 0.5) / 500)
    np.testing.assert_allclose(reference[50:450], expected[50:450], atol=0.05)


def test_metropolis_draws_have_the_posteriors_moments():
    # one coefficient, Bernoulli: the posterior by quadrature
    y = np.array([1.0] * 9 + [0.0])
    fit = un.gam("y ~ 1", {"y": y, "x": y}, "binomial")
    grid = np.linspace(-4, 12, 4001)
    density = np.exp(9 * grid - 10 * np.logaddexp(0, grid))
    density /= density.sum()
    mean = np.sum(grid * density)
    sd = np.sqrt(np.sum((grid - mean) ** 2 * density))
    draws = fit.draws(6000, method="metropolis", rng=3)[:, 0]
    assert draws.mean() == pytest.approx(mean, abs=0.1)
    assert draws.std() == pytest.approx(sd, rel=0.08)
    gaussian = fit.draws(6000, rng=3)[:, 0]
    assert abs(gaussian.mean() - mean) > 0.1  # the posterior is skewed


def test_metropolis_draws_of_a_gaussian_response_are_gaussian():
    fit = un.gam("y ~ s(x1, k=6)", DATA)
    draws = fit.draws(4000, method="metropolis", rng=2)
    np.testing.assert_allclose(
        draws.mean(axis=0), fit.smoothed.beta, atol=5 * np.sqrt(np.diag(fit.covariance) / 1000).max()
    )
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt(np.diag(fit.covariance)), rtol=0.12)
    with pytest.raises(InputError, match="'metropolis'"):
        fit.draws(10, method="hmc")


def test_notes_and_the_number_of_rows_are_kept(tmp_path):
    rng = np.random.default_rng(1)
    table = {"x": np.where(np.arange(60) < 3, np.nan, rng.random(60)), "y": rng.normal(size=60)}
    fit = replace(un.gam("y ~ s(x, k=4)", table, missing="drop"), whole=57)
    assert any("3 of 60 rows were left out" in note for note in fit.notes)
    fit.save(tmp_path / "fit")
    again = un.load(tmp_path / "fit")
    assert (again.notes, again.whole) == (fit.notes, 57)


def test_appraisal_leaves_out_rows_of_no_weight():
    plt = pytest.importorskip("matplotlib.pyplot")
    rng = np.random.default_rng(1)
    table = {"x": rng.random(80), "y": rng.normal(size=80), "w": (np.arange(80) >= 30) * 1.0}
    _, axes = un.gam("y ~ s(x, k=4)", table, weights="w").appraise(repeats=20)
    assert axes[1, 1].lines[-1].get_xdata().size == 50
    plt.close("all")


def test_metropolis_says_when_it_hardly_moves(monkeypatch):
    fit = un.gam("y ~ x", {"x": np.arange(30.0), "y": np.tile([0.0, 1.0], 15)}, family="binomial")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit.draws(50, method="metropolis")
    smoothed = replace(fit.smoothed, beta=fit.smoothed.beta + 9.0)  # proposals far from where the posterior is
    with pytest.warns(un.errors.UnnormWarning, match="were accepted"):
        replace(fit, smoothed=smoothed).draws(200, method="metropolis")


def test_rows_of_no_weight_have_no_part_in_the_k_index():
    rng = np.random.default_rng(8)
    x = rng.random(400)
    y = np.sin(40 * x) + 0.1 * rng.normal(size=400)
    w = (np.arange(400) < 100).astype(float)
    with_them = un.gam("y ~ s(x, k=4, bs='ps')", {"x": x, "y": y}, weights=w).check().basis["k_index"]
    without = un.gam("y ~ s(x, k=4, bs='ps')", {"x": x[:100], "y": y[:100]}).check().basis["k_index"]
    assert with_them == pytest.approx(without, rel=0.02)


@pytest.mark.parametrize("family", ["quasipoisson", "poisson", "nb"])
def test_metropolis_draws_know_scale_penalty_weights_and_offset(family):
    # two coefficients: the posterior by quadrature
    rng = np.random.default_rng(5)
    x, off, w = rng.normal(size=30), rng.normal(size=30), rng.uniform(0.3, 2.0, 30)
    y = rng.negative_binomial(0.5, 0.5 / (0.5 + np.exp(0.7 * x + off))).astype(float)
    table = {"x": x, "off": off, "w": w, "y": y}
    theta = 0.5 if family == "nb" else None
    fit = un.gam("y ~ s(x, bs='re', sp=6)", table, family, offset="off", weights="w", theta=theta)
    assert (fit.scale > 1.5) == (family == "quasipoisson")
    beta, root = fit.smoothed.beta, np.linalg.cholesky(fit.covariance)
    steps = np.linspace(-6.0, 6.0, 61)
    at = beta + np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2) @ root.T
    eta = at[:, :1] + at[:, 1:] * x + off
    loss = (y + theta) * np.log(theta + np.exp(eta)) if theta else np.exp(eta)
    penalty = at[:, 1] ** 2 * fit.S[1, 1]
    log = ((w * (y * eta - loss)).sum(axis=1) - 0.5 * penalty) / fit.scale
    weight = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
    mean = weight @ at
    sd = np.sqrt(weight @ (at - mean) ** 2)
    draws = fit.draws(8000, method="metropolis", rng=1)
    np.testing.assert_allclose((draws.mean(axis=0) - mean) / sd, 0.0, atol=0.07)
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.05)
    assert np.abs((beta - mean) / sd).max() > 0.03  # the posterior is skewed


def test_the_band_of_the_residuals_quantiles_is_that_of_order_statistics():
    from unnorm.engine.gam_appraisal import quantiles

    n = len(DATA["y"])
    fit = un.gam("y ~ s(x1)", DATA, weights=0.2 + np.arange(n) % 5)
    _, middle, low, high = quantiles(fit, np.arange(n), 2000, 0.8, 3)
    at = np.arange(1, n + 1)
    for found, share in ((low, 0.1), (high, 0.9)):
        expected = np.sqrt(fit.scale) * stats.norm.ppf(stats.beta.ppf(share, at, n + 1 - at))
        np.testing.assert_allclose(found[20:-20], expected[20:-20], atol=0.02 * np.sqrt(fit.scale))
    assert (low < middle).all()
    assert (middle < high).all()
