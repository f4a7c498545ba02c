"""What reference points cost: predictions against refits, NCIC against what it estimates."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import unnorm as un
from unnorm.errors import InputError
from unnorm.inference.advice import needed
from unnorm.objectives.scores import auc
from unnorm.results.comparison import compare

TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))


@pytest.fixture(scope="module")
def chain() -> un.Observations:
    return un.transitions(un.datasets.toy_chain(600, 0.5, 5.0, rng=1))


CASES: list[tuple[Any, Any]] = [
    (un.Logistic, un.PerContext()),
    (un.Logistic, un.Smooth("s(y_prev, k=8)")),
    (un.Importance, un.Smooth("s(y_prev, k=8)")),
    (un.Ranking, None),
]


@pytest.mark.parametrize(("objective", "normaliser"), CASES)
def test_the_advised_number_brings_the_share_to_five_percent(
    chain: un.Observations, objective: Any, normaliser: Any
) -> None:
    """Fit with few IID points, take the number advised, fit again: the worst share lies between 3 and 7 %."""
    few = un.fit(TOY, chain, objective(un.Uniform(), per_point=4, points=un.IID()), normaliser, rng=1)
    advice = few.advise()
    assert advice.worst is not None
    assert advice.worst > 0.1
    assert advice.needed is not None
    assert f"per_point={advice.needed}" in str(advice)
    enough = un.fit(TOY, chain, objective(un.Uniform(), per_point=advice.needed, points=un.IID()), normaliser, rng=2)
    assert enough.advise().worst == pytest.approx(0.05, abs=0.02)


CURVE = un.Additive(
    "y + s(gap, k=6)",
    un.Interval(-1, 1),
    covariates=[
        un.Expression(
            "gap",
            "abs(y - y_prev)",
        )
    ],
)


@pytest.mark.parametrize(("objective", "normaliser"), [*CASES, (un.ConditionalNCE, None)])
def test_additive_models_are_advised_too(chain: un.Observations, objective: Any, normaliser: Any) -> None:
    """By term; the curve's errors split in two, and the advised number brings the share to 5 %."""
    some = chain.take(np.arange(300))
    few = un.fit(CURVE, some, objective(un.Uniform(), per_point=5, points=un.IID()), normaliser, rng=1)
    advice = few.advise()
    assert advice.share is not None
    assert set(advice.share) == {"y", "s(gap)"}
    table = few.effect("s(gap)")
    np.testing.assert_allclose(table["se"] ** 2, table["se_sampling"] ** 2 + table["se_reference"] ** 2, rtol=1e-9)
    assert np.all(table["se_reference"] > 0)
    assert list(few.tidy()["term"]) == ["y"]
    assert advice.worst is not None
    assert advice.worst > 0.08
    assert advice.needed is not None
    enough = un.fit(CURVE, some, objective(un.Uniform(), per_point=advice.needed, points=un.IID()), normaliser, rng=2)
    assert enough.advise().worst == pytest.approx(0.05, abs=0.025)


def test_fewer_lattice_points_are_measured(chain: un.Observations) -> None:
    """Their noise grows faster than IID points' as k falls: the number that would do must do."""
    normaliser = un.Smooth("s(y_prev, k=8)")
    advice = un.fit(TOY, chain, un.Logistic(un.Uniform(), per_point=32), normaliser, rng=1).advise()
    assert advice.needed is not None
    assert advice.needed <= 8
    assert "measured on fresh points" in str(advice)
    fewer = un.fit(TOY, chain, un.Logistic(un.Uniform(), per_point=advice.needed), normaliser, rng=2).advise()
    assert fewer.worst is not None
    assert fewer.worst < 0.05


def test_ranking_is_not_told_to_take_a_lattice(chain: un.Observations) -> None:
    text = str(un.fit(TOY, chain, un.Ranking(un.Uniform(), per_point=3), rng=1).advise())
    assert "un.Logistic with points=un.Lattice()" in text


def test_the_share_is_that_of_the_errors(chain: un.Observations) -> None:
    fit = un.fit(TOY, chain, un.Logistic(un.Uniform(), per_point=5, points=un.IID()), un.PerContext(), rng=1)
    assert fit.errors is not None
    share = np.diag(fit.errors.reference) / np.diag(fit.errors.total)
    np.testing.assert_allclose(list(fit.advise().share.values()), share)  # type: ignore[union-attr]


def test_predicted_inflation_is_that_of_a_fit_with_very_many_points() -> None:
    """se(k = 5) over se(k = 500), IID points, against what the k = 5 fit says by itself."""
    obs = un.transitions(un.datasets.toy_chain(400, 0.5, 5.0, rng=3))
    few, many = (
        un.fit(TOY, obs, un.Logistic(un.Uniform(), per_point=k, points=un.IID()), un.Smooth("s(y_prev, k=8)"), rng=1)
        for k in (5, 500)
    )
    np.testing.assert_allclose(list(few.advise().inflation.values()), few.se / many.se, atol=0.04)  # type: ignore[union-attr]


def test_iid_data_count_their_points_in_total() -> None:
    y = np.random.default_rng(1).normal(0.4, 0.6, 300)
    y = y[(y > -1) & (y < 2)]
    model = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-1, 2))
    few = un.fit(model, un.iid(y), un.Logistic(un.Uniform(), total=600, points=un.IID()), rng=1).advise()
    assert few.unit == "total"
    assert few.count == 600
    assert few.needed is not None
    assert few.needed > 2000
    enough = un.fit(model, un.iid(y), un.Logistic(un.Uniform(), total=few.needed, points=un.IID()), rng=2).advise()
    assert enough.worst == pytest.approx(0.05, abs=0.01)


def test_evenly_spread_points_are_enough(chain: un.Observations) -> None:
    advice = un.fit(TOY, chain, un.Logistic(un.Uniform(), per_point=10), un.Smooth("s(y_prev, k=8)"), rng=1).advise()
    assert advice.worst is not None
    assert advice.worst < 0.05
    assert "That is enough" in str(advice)
    assert "Lattice" in str(advice.points)


@pytest.mark.parametrize("points", [un.IID(), un.Lattice()])
@pytest.mark.parametrize("k", [1, 2, 8])
def test_advice_is_consistent_and_can_be_followed(chain: un.Observations, points: Any, k: int) -> None:
    """One piece of advice; the fit that follows it is told that it has enough, and no lattice is sold twice."""
    objective = un.Logistic(un.Uniform(), per_point=k, points=points)
    seen = []
    for _ in range(3):
        advice = un.fit(TOY, chain, objective, rng=7).advise()  # not the chain's own seed, whose numbers it was made of
        text = str(advice)
        seen.append(text)
        assert ("That is enough" in text) + ("To bring that" in text) + ("loses information" in text) == 1
        if not points.iid:
            assert "un.Lattice()" not in text
        if "That is enough" in text:
            assert advice.inflation is not None
            assert max(advice.inflation.values()) < 1.15
            return
        number = int(text.split("per_point=")[2].split()[0].rstrip(".,"))
        objective = un.Logistic(un.Uniform(), per_point=number, points=points)
    pytest.fail("\n".join(seen))


def test_a_distant_reference_is_called_one() -> None:
    """Data near 0 with sd 0.01, a uniform reference on [−1, 1]: almost no point is effective."""
    y = np.random.default_rng(0).normal(0, 0.002, 500)
    model = un.ExponentialFamily(lambda y: (1e2 * y, -0.5e4 * y**2), ("a", "b"), un.Interval(-1, 1))
    far = un.fit(model, un.iid(y), un.Logistic(un.Uniform(), total=10_000), rng=1).advise()
    assert far.too_far
    assert far.effective == pytest.approx(0.002 * 2 * np.sqrt(np.pi) / 2, rel=0.2)  # 1/∫p²/q, q = ½
    assert far.auc is not None
    assert far.auc > 0.99
    assert "too far from the data" in str(far)
    near = un.fit(model, un.iid(y), un.Logistic(un.Gaussian(), total=10_000), rng=1).advise()
    assert not near.too_far
    assert near.effective == pytest.approx(1.0, abs=0.02)
    assert near.auc == pytest.approx(0.5, abs=0.03)


def test_auc_is_the_rank_sum() -> None:
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(0)
    score, data = rng.normal(size=300).round(1), rng.random(300) < 0.3
    score[data] += 0.5
    expected = mannwhitneyu(score[data], score[~data]).statistic / (data.sum() * (~data).sum())
    assert auc(score, data, np.ones(len(score))) == pytest.approx(expected, abs=1e-12)


def test_exact_fits_used_no_reference_points(chain: un.Observations) -> None:
    for objective in (un.Exact(), un.Poisson()):
        fit = un.fit(TOY, chain, objective=objective)
        assert "No reference points were used" in str(fit.advise())
        with pytest.raises(InputError, match=r"NCIC needs reference points.*compare by fit\.aic"):
            _ = fit.ncic
    with pytest.raises(InputError, match=r"not PerContext.*compare by fit\.held_out"):
        _ = un.fit(TOY, chain, un.Logistic(un.Uniform(), per_point=5), un.PerContext(), rng=1).ncic
    with pytest.raises(InputError, match=r"compare by fit\.ncic"):
        _ = un.fit(TOY, chain, un.Ranking(un.Uniform(), per_point=5), rng=1).aic


def test_needed_reads_between_the_multiples() -> None:
    """Shares of 1/(1 + c): 5 % at c = 19."""
    c = 2.0 ** np.arange(-4, 9)
    shares = np.column_stack([1 / (1 + c), 0.5 / (1 + c)])
    assert needed(c, shares, 10, least=1) == pytest.approx(190, abs=4)
    assert needed(c, 1e-3 * shares, 10, least=1) == 1
    assert needed(c, shares * 0 + 0.5, 10, least=1) is None


# --- NCIC -------------------------------------------------------------------------------------------------------------


def _gauss(y: np.ndarray, m: int, seed: int, normaliser: Any = None) -> un.Fit:
    model = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-2, 2))
    return un.fit(model, un.iid(y), un.Logistic(un.Uniform(), total=m, points=un.IID()), normaliser, rng=seed)


def test_the_penalty_counts_parameters_when_the_model_is_right() -> None:
    """tr(Î Ĵ⁻¹) = p + 1 − (1/n + 1/m) ∫ np·mq/(np + mq): most of ν's share cancels, since n and m are fixed."""
    rng = np.random.default_rng(0)
    y = rng.normal(0.3, 0.7, 12_000)
    y = y[np.abs(y) < 2]
    n, m = len(y), 30_000
    fit = _gauss(y, m, 1)
    p = np.exp(fit.log_density(grid := np.linspace(-2, 2, 4001)))
    both = np.trapezoid(n * p * m * 0.25 / (n * p + m * 0.25), grid)
    assert fit.advise().penalty == pytest.approx(3 - (1 / n + 1 / m) * both, abs=0.05)


def test_the_penalty_counts_parameters_for_chains() -> None:
    obs = un.transitions(un.datasets.toy_chain(6000, 0.5, 5.0, rng=1))
    ranking = un.fit(TOY, obs, un.Ranking(un.Uniform(), per_point=5), rng=1)
    assert ranking.advise().penalty == pytest.approx(2.0, abs=0.15)
    smooth = un.fit(
        TOY, obs, un.Logistic(un.Uniform(), per_point=5, points=un.IID()), un.Smooth("s(y_prev, k=8)"), rng=1
    )
    penalty = smooth.advise().penalty
    assert penalty is not None
    assert 2.0 < penalty < 2.0 + smooth.smooths.edf["s(y_prev)"]  # type: ignore[union-attr]


def test_whole_weights_are_repeated_observations() -> None:
    y = np.random.default_rng(0).normal(0.3, 0.7, 400)
    y = y[np.abs(y) < 2]
    w = np.random.default_rng(1).integers(1, 4, len(y))
    model = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-2, 2))
    objective = un.Logistic(un.Uniform(), total=3000)
    weighted = un.fit(model, un.iid({"y": y, "w": w}, y="y", weight="w"), objective, rng=1)
    repeated = un.fit(model, un.iid(np.repeat(y, w)), objective, rng=1)
    assert weighted.ncic == pytest.approx(repeated.ncic, abs=0.1)
    chain = un.datasets.toy_chain(200, 0.5, 5.0, rng=2)
    obs = un.transitions({"y": chain, "w": np.full(201, 3.0)}, y="y", weight="w")
    once = un.transitions(chain)
    for normaliser in (un.Smooth("s(y_prev, k=6)"), None):
        kind = un.Ranking if normaliser is None else un.Logistic
        a, b = (un.fit(TOY, o, kind(un.Uniform(), per_point=10), normaliser, rng=1) for o in (obs, once))
        assert a.advise().penalty == pytest.approx(b.advise().penalty, abs=0.5)


def test_ncic_prefers_the_true_model() -> None:
    """30 samples from exp(a y − ½ b y²): the quadratic model beats the linear one on shared points."""
    linear = un.ExponentialFamily(lambda y: y, ("a",), un.Interval(-2, 2))
    quadratic = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-2, 2))
    objective = un.Logistic(un.Uniform(), total=1000)
    wins = 0
    for seed in range(30):
        y = np.random.default_rng(seed).normal(0.3, 0.9, 260)
        y = y[np.abs(y) < 2][:200]
        specs = {"linear": {"model": linear, "objective": objective}, "quadratic": {"objective": objective}}
        found = compare(quadratic, un.iid(y), specs, rng=seed)
        wins += found["quadratic"].ncic < found["linear"].ncic
    assert wins >= 28


@pytest.mark.slow
def test_ncic_is_an_unbiased_estimate_of_the_discrepancy() -> None:
    """E[−2𝓡(θ̂; fresh data and points)] against E[NCIC], over 300 samples: the penalty removes the optimism."""
    from unnorm.objectives.contrastive import Logistic

    model = un.ExponentialFamily(lambda y: (y, jnp.cos(3 * y), jnp.sin(3 * y)), ("a", "c", "s"), un.Interval(-2, 2))
    objective = Logistic(un.Uniform(), total=150, points=un.IID())

    def sample(rng: np.random.Generator) -> np.ndarray:
        y = rng.normal(0.3, 0.9, 200)
        return y[np.abs(y) < 2][:100]

    gap, optimism = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        fit = un.fit(model, un.iid(sample(rng)), objective, rng=seed)
        fresh = objective.bind(model, un.iid(sample(rng)), un.Constant(), 10_000 + seed)
        new = -2 * fresh.joint_value(fit.estimate, fit.nu)  # type: ignore[attr-defined]
        gap.append(new - fit.ncic)
        optimism.append(new + 2 * fit.loglik)
    error = np.std(gap) / np.sqrt(len(gap))
    assert abs(np.mean(gap)) < 3 * error
    assert np.mean(optimism) > 3 * np.std(optimism) / np.sqrt(len(optimism))


def test_films_are_advised_on_inside_their_boundary(tmp_path: Any) -> None:
    lake = un.Window([(0, 0), (4, 0), (4, 1.4), (1, 1.5), (4, 1.6), (4, 3), (0, 3)])
    x, y = lake.uniform(300, np.random.default_rng(1)).T
    obs = un.iid({"x": x * (1.0 - 0.3 * (y < 1.4)), "y": y}, y=("x", "y"))
    fit = un.fit(un.Additive("s(x, y, bs='so', k=5)", lake), obs, un.Logistic(un.Uniform(), total=600), rng=3)
    assert fit.smooths is not None
    assert np.isnan(fit.smooths.effect("s(x,y)")["se"]).any()
    fit.save(tmp_path / "fit")  # before its evidence is asked for
    loaded: Any = un.load(tmp_path / "fit")
    for one in (fit, loaded):
        worst = one.advise().worst
        assert worst is not None
        assert 0.0 < worst < 1.0
