"""χ̂ against the integrals, and the density of new data."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from scipy import integrate

import unnorm as un
from unnorm.errors import InputError, OutsideError, UnnormWarning

mpl.use("Agg")

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))


@pytest.fixture(scope="module")
def chain() -> un.Observations:
    return un.transitions(un.datasets.toy_chain(800, 0.5, 5.0, rng=1))


@pytest.fixture(scope="module")
def smooth(chain: un.Observations) -> un.Fit:
    return un.fit(TOY, chain, un.Logistic(un.Uniform(), per_point=20), un.Smooth("s(y_prev, k=10)"), rng=1)


def test_the_integrals_are_those_of_scipy(smooth: un.Fit, chain: un.Observations) -> None:
    check = smooth.check_normaliser(contexts=7)
    assert len(check.rows) == 7
    for t, integral in zip(check.rows, check.integral):
        x, (a, b) = chain.context["y_prev"][t], smooth.estimate
        z = integrate.quad(lambda y, a=a, b=b, x=x: np.exp(a * y - 0.5 * b * (y - x) ** 2), -1, 1)[0]
        assert integral == pytest.approx(-np.log(z), abs=1e-9)
    np.testing.assert_allclose(check.chi, smooth.nu[check.rows])
    gap = check.chi - check.integral
    assert check.rms == pytest.approx(np.sqrt(np.mean(gap**2)))
    assert check.largest == pytest.approx(np.abs(gap).max())
    assert check.rms**2 == pytest.approx(check.level**2 + check.shape**2)


def test_a_smooth_normaliser_follows_the_constants(smooth: un.Fit) -> None:
    check = smooth.check_normaliser()
    assert check.rms < 0.06
    assert check.variation > 0.2
    assert "Good" in str(check)


def test_one_constant_for_all_contexts_is_called_wrong(chain: un.Observations) -> None:
    sharp = un.transitions(un.datasets.toy_chain(500, 2.0, 20.0, rng=2))
    with pytest.warns(UnnormWarning, match="one constant"):
        fit = un.fit(TOY, sharp, un.Logistic(un.Uniform(), per_point=20), un.Constant(), rng=1)
    check = fit.check_normaliser()
    assert check.shape == pytest.approx(check.variation)
    assert "does not follow them" in check.verdict


def test_free_constants_are_noisy_and_exact_ones_are_not(chain: un.Observations) -> None:
    free = un.fit(TOY, chain, un.Logistic(un.Uniform(), per_point=10), un.PerContext(), rng=1).check_normaliser()
    assert free.free
    assert "noisy by itself" in str(free)
    for objective in (un.Exact(), un.Poisson()):
        exact = un.fit(TOY, chain, objective=objective).check_normaliser()
        assert exact.rms < 1e-7
        assert not exact.free


def test_offsets_belong_to_the_constants() -> None:
    """With an offset o_t the intensity is exp{f + ν_t + o_t}, and it is ν_t + o_t that normalises."""
    y = un.datasets.toy_chain(60, 0.5, 5.0, rng=3)
    obs = un.transitions({"y": y, "o": np.sin(np.arange(61.0))}, y="y", offset="o")
    fit = un.fit(TOY, obs, objective=un.Poisson())
    assert np.ptp(fit.nu + obs.offsets) < np.ptp(fit.nu)
    assert fit.check_normaliser().rms < 1e-7


def test_iid_data_have_one_constant() -> None:
    y = np.random.default_rng(1).normal(0.4, 0.6, 2000)
    y = y[(y > -1) & (y < 2)]
    model = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-1, 2))
    check = un.fit(model, un.iid(y), un.Logistic(un.Uniform(), total=20_000), rng=1).check_normaliser()
    assert len(check.rows) == 1
    assert check.rms < 0.02


def test_constants_that_cancel_cannot_be_checked(chain: un.Observations) -> None:
    with pytest.raises(InputError, match="no normalising constants to check: they cancel"):
        un.fit(TOY, chain, un.Ranking(un.Uniform(), per_point=5), rng=1).check_normaliser()


def test_a_loaded_fit_needs_observations(tmp_path: Path, smooth: un.Fit, chain: un.Observations) -> None:
    smooth.save(tmp_path / "fit")
    loaded = un.load(tmp_path / "fit", model=TOY)
    with pytest.raises(InputError, match="A loaded fit has no observations: pass obs="):
        loaded.check_normaliser()
    assert loaded.check_normaliser(obs=chain).rms == pytest.approx(smooth.check_normaliser().rms, rel=1e-9)


def test_the_picture_takes_and_returns_axes(smooth: un.Fit) -> None:
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    assert smooth.check_normaliser(20).plot(ax=ax) is ax
    assert "rms" in ax.get_title()
    plt.close("all")


def test_smooth_terms_are_integrated_too() -> None:
    """An additive density on the interval: χ̂ is the constant of the fitted curve."""
    u = np.random.default_rng(1).beta(2, 5, 2000)
    fit = un.fit(
        un.Additive("s(u, k=8)", un.Interval(0, 1)),
        un.iid({"u": u}, y="u"),
        un.Logistic(un.Uniform(), total=20_000),
        rng=1,
    )
    assert fit.check_normaliser().rms < 0.01


# --- held-out data ----------------------------------------------------------------------------------------------------


def test_held_out_is_the_sum_of_log_densities(chain: un.Observations) -> None:
    fit = un.fit(TOY, chain)
    new = un.transitions(un.datasets.toy_chain(100, 0.5, 5.0, rng=9))
    found = fit.held_out(new)
    expected = fit.log_density(new.outcome, new.context["y_prev"])
    np.testing.assert_allclose(found.log_density, expected, atol=1e-9)
    assert found.loglik == pytest.approx(expected.sum())
    assert found.bits == pytest.approx((expected.mean() + np.log(2)) / np.log(2))  # against ½ on [−1, 1]
    assert found.n == 100
    assert fit.held_out(chain).loglik == pytest.approx(fit.loglik)
    assert "bits each against the uniform law" in str(found)


def test_bits_against_the_reference(chain: un.Observations) -> None:
    """A step kernel as reference: bits are the mean log₂ ratio, from a saved fit too."""
    fit = un.fit(
        TOY, chain, un.Logistic(un.Gaussian(around="context"), per_point=10), un.Smooth("s(y_prev, k=8)"), rng=1
    )
    found = fit.held_out(chain)
    q = un.Gaussian(around="context").bind(TOY.domain, chain)
    log_q = q.log_density(chain.outcome, chain, np.arange(chain.n))
    assert found.bits == pytest.approx((found.log_density - log_q).mean() / np.log(2), rel=1e-6)
    assert found.bits < found.bits_uniform
    assert "Gaussian" in found.reference


def test_the_true_model_predicts_better(chain: un.Observations) -> None:
    new = un.transitions(un.datasets.toy_chain(400, 0.5, 5.0, rng=11))
    small = un.ExponentialFamily(lambda y, x: y, ("theta1",), TOY.domain)
    assert un.fit(TOY, chain).held_out(new).bits > un.fit(small, chain).held_out(new).bits + 0.2


def test_weights_count(chain: un.Observations) -> None:
    fit = un.fit(TOY, chain)
    y = un.datasets.toy_chain(50, 0.5, 5.0, rng=12)
    weighted = un.transitions({"y": y, "w": np.full(51, 2.0)}, y="y", weight="w")
    plain = un.transitions(y)
    assert fit.held_out(weighted).loglik == pytest.approx(2 * fit.held_out(plain).loglik)
    assert fit.held_out(weighted).bits == pytest.approx(fit.held_out(plain).bits)


def test_unequal_weights_are_repetitions(chain: un.Observations) -> None:
    """Bits, against the uniform law and against the reference, are those of the rows repeated."""
    fit = un.fit(
        TOY, chain, un.Logistic(un.Gaussian(around="context"), per_point=10), un.Smooth("s(y_prev, k=8)"), rng=1
    )
    y = un.datasets.toy_chain(50, 0.5, 5.0, rng=12)
    w = np.arange(51) % 4 + 1.0
    weighted = un.transitions({"y": y, "w": w}, y="y", weight="w")
    repeated = un.transitions(y).take(np.repeat(np.arange(50), weighted.weights.astype(int)))
    assert np.ptp(weighted.weights) > 0
    one, many = fit.held_out(weighted), fit.held_out(repeated)
    for name in ("loglik", "bits", "bits_uniform"):
        assert getattr(one, name) == pytest.approx(getattr(many, name), rel=1e-12), name
    assert one.bits != pytest.approx(fit.held_out(un.transitions(y)).bits, rel=1e-3)


def test_points_outside_have_no_density(chain: un.Observations) -> None:
    fit = un.fit(TOY, chain)
    with pytest.raises(OutsideError, match=r"1 of 2 observations lie outside .* the first is row 2"):
        fit.held_out(un.transitions([0.1, 0.2, 1.4]))
    with pytest.raises(InputError, match="held_out takes observations"):
        fit.held_out(np.array([0.1, 0.2]))  # type: ignore[arg-type]


def test_without_a_rule_the_constants_are_sampled() -> None:
    """40 bits, each with the previous one's pull: log Z = Σ log(1 + e^{a + b x_j}) against annealing."""
    bits = un.BinaryVectors(40)
    model = un.ExponentialFamily(lambda y, x: (y.sum(), (y * x).sum()), ("a", "b"), bits)
    obs = un.transitions(bits.uniform(60, 1))
    fit = un.fit(model, obs, un.Ranking(un.ProductBernoulli(), per_point=20), rng=1)
    a, b = fit.estimate
    x, y = obs.previous(), obs.outcome
    truth = a * y.sum(axis=1) + b * (x * y).sum(axis=1) - np.log1p(np.exp(a + b * x)).sum(axis=1)
    found = fit.held_out(obs, rng=3)
    assert 0 < found.quadrature_error < 0.1
    assert found.loglik == pytest.approx(truth.sum(), abs=5 * found.quadrature_error * np.sqrt(obs.n))
    np.testing.assert_allclose(found.log_density, truth, atol=5 * found.quadrature_error)


def test_the_one_constant_of_many_coordinates_is_checked_on_a_sample() -> None:
    box = un.Box(*[(-1, 1)] * 6)
    model = un.ExponentialFamily(lambda y: (y[0], -0.5 * (y**2).sum()), ("a", "b"), box)
    fit = un.fit(model, un.iid(box.uniform(300, 1)), un.Logistic(un.Uniform(), total=6000), rng=1)
    with pytest.warns(UnnormWarning, match="200,000 points of uniform"):
        check = fit.check_normaliser()
    a, b = fit.estimate
    one = [integrate.quad(lambda t, c=c: np.exp(c * t - 0.5 * b * t * t), -1, 1)[0] for c in (a, *[0.0] * 5)]
    assert check.integral[0] == pytest.approx(-np.log(one).sum(), abs=5 * check.quadrature_error)
    assert check.quadrature_error < 0.01
    with pytest.raises(InputError, match="order"):
        fit.held_out(un.iid(box.uniform(10, 2)), order=1000)


# --- parts ------------------------------------------------------------------------------------------------------------


def test_evenly_spread_rows() -> None:
    from unnorm.results.held_out import evenly

    assert evenly(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert evenly(101, 5).tolist() == [0, 25, 50, 75, 100]
    assert evenly(1, 3).tolist() == [0]


def test_halves_of_sequences_are_of_all_subjects() -> None:
    """Six subjects took turns on every image: every other sequence was the same three's."""
    from unnorm.results.held_out import halves

    sequence, t = np.divmod(np.arange(6 * 40 * 3), 3)
    table = {"x": t / 4.0, "t": t, "subject": sequence % 6, "image": sequence // 6}
    obs = un.transitions(table, y="x", order="t", group=("subject", "image"))
    train, test = halves(obs)
    assert test.sum() == train.sum() == obs.n / 2
    for half in (train, test):
        assert np.bincount(obs.group["subject"][half], minlength=6).min() >= 20
    assert not np.intersect1d(np.asarray(obs.sequence)[train], np.asarray(obs.sequence)[test]).size


def test_halves_of_one_sequence_and_of_iid_data() -> None:
    from unnorm.results.held_out import halves

    train, test = halves(un.transitions(np.linspace(0, 1, 101)))
    assert np.array_equal(train, ~test)
    assert np.flatnonzero(np.diff(test)).size == 9  # ten stretches
    train, test = halves(un.iid(np.linspace(0, 1, 7)))
    assert test.tolist() == [False, True, False, True, False, True, False]


@pytest.mark.parametrize(
    ("chi", "grade", "words"),
    [
        (np.full(40, 0.04), "good", "known to 4.1 %. Good."),
        (np.full(40, 0.15), "fair", "nearly all of it a common level (0.15)"),
        (np.linspace(-0.3, 0.3, 40), "fair", "known to 19 %. Fair."),
        (np.full(40, 0.5) + np.linspace(-0.3, 0.3, 40), "poor", "known to 70 %. Poor."),
        (np.linspace(-3, 3, 40), "poor", "χ̂ does not follow them"),
    ],
)
def test_grades_and_verdicts(chi: np.ndarray, grade: str, words: str) -> None:
    from unnorm.results.normaliser_check import NormaliserCheck

    integral = np.sin(np.arange(40.0))  # sd 0.7: what there is to follow
    check = NormaliserCheck(integral + chi, integral, np.arange(40), 1e-6)
    np.testing.assert_allclose(check.gap, chi, atol=1e-12)
    assert check.level == pytest.approx(chi.mean())
    assert check.shape == pytest.approx(chi.std(), abs=1e-12)
    assert check.variation == pytest.approx(integral.std())
    assert check.grade == grade
    assert words in check.verdict
    assert len(repr(check)) < 100
    unsure = NormaliserCheck(integral + chi, integral, np.arange(40), 10.0)
    assert "nothing can be said. Raise order=." in unsure.verdict


def test_what_sampling_explains_is_no_failure() -> None:
    """√n times the excess bounds the bias: sd 0.17 over the contexts with n = 400 is 3.5 standard errors."""
    from dataclasses import replace

    from unnorm.results.normaliser_check import NormaliserCheck

    gap = np.linspace(-0.3, 0.3, 40)
    check = NormaliserCheck(gap, np.zeros(40), np.arange(40), 1e-6, n=400.0)
    assert check.bias == pytest.approx(20 * gap.std())
    assert check.failed
    assert "up to 3.6 standard errors. Use normaliser=un.Anchored()." in check.verdict
    noisy = replace(check, noise=0.15, edf=9.0)
    assert noisy.excess == pytest.approx(np.sqrt(gap.var() - 0.15**2))
    assert not noisy.failed
    assert "no more than their standard error (0.15). Fair." in noisy.verdict
    assert replace(check, noise=0.1, edf=9.0).failed
    small = NormaliserCheck(0.1 * gap, np.zeros(40), np.arange(40), 1e-6, n=10_000.0)
    assert small.bias == pytest.approx(1.78, abs=0.01)
    assert not small.failed  # 2 % is followed closely enough for a bound that is far from reached
    assert replace(small, n=1e6).failed
    common = NormaliserCheck(np.full(40, 0.5), np.zeros(40), np.arange(40), 1e-6, n=1e6)
    assert not common.failed
