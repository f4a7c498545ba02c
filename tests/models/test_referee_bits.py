"""A referee's cases of binary vectors: chains by trial, clusters, missing bits, penalties, and sentences."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import unnorm as un
from unnorm.errors import DataError, InputError, NoEstimateError, UnnormWarning

EVERY = un.ConditionalNCE(un.BitFlip(every=True))
UPPER = np.triu_indices(3, 1)


def _chain() -> tuple[un.Observations, dict[str, np.ndarray]]:
    """Three bits in 12 trials of 50 steps, two covariates, frequency weights."""
    rng, n = np.random.default_rng(2), 600
    y, trial = rng.integers(0, 2, (n, 3)).astype(float), np.repeat(np.arange(12), 50)
    u, v, w = rng.normal(size=n), rng.normal(size=n), rng.integers(1, 4, n).astype(float)
    table = {"a": y[:, 0], "b": y[:, 1], "c": y[:, 2], "u": u, "v": v, "trial": trial, "w": w}
    obs = un.transitions(table, y=["a", "b", "c"], group="trial", extra=("u", "v"), weight="w")
    keep = np.flatnonzero(trial[1:] == trial[:-1]) + 1
    return obs, {"Y": y[keep], "X": y[keep - 1], "Z": np.c_[u, v][keep], "w": w[keep]}


def test_lag_covariates_weights_and_trials_against_stacked_regressions() -> None:
    obs, d = _chain()
    model = un.Ising(["a", "b", "c"], lag=1, covariates=("u", "v"))
    fit = un.fit(model, obs, EVERY)

    def parts(t: np.ndarray) -> tuple[np.ndarray, ...]:
        J = np.zeros((3, 3))
        J[UPPER] = t[3:6]
        return t[:3], J + J.T, t[6:15].reshape(3, 3), t[15:].reshape(3, 2)

    def scores(t: np.ndarray) -> np.ndarray:
        h, J, K, B = parts(t)
        r = d["Y"] - 1 / (1 + np.exp(-(h + d["Y"] @ J + d["X"] @ K.T + d["Z"] @ B.T)))
        pair = r[:, :, None] * d["Y"][:, None]
        J_part = (pair + np.swapaxes(pair, 1, 2))[:, UPPER[0], UPPER[1]]
        rest = [(r[:, :, None] * x[:, None]).reshape(len(r), -1) for x in (d["X"], d["Z"])]
        return np.concatenate([r, J_part, *rest], axis=1)

    def loss(t: np.ndarray) -> tuple[float, np.ndarray]:
        h, J, K, B = parts(t)
        eta = h + d["Y"] @ J + d["X"] @ K.T + d["Z"] @ B.T
        return float(d["w"] @ (np.logaddexp(0, eta) - d["Y"] * eta).sum(axis=1)), -d["w"] @ scores(t)

    found = minimize(loss, np.zeros(21), jac=True, method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(fit.estimate, found.x, atol=1e-7)
    H = np.array([(loss(found.x + e)[1] - loss(found.x - e)[1]) / 2e-5 for e in 1e-5 * np.eye(21)])
    g, n = scores(found.x), d["w"].sum()
    V = np.linalg.inv(H) @ (g.T @ (d["w"][:, None] * g)) @ np.linalg.inv(H) * n / (n - 1)
    np.testing.assert_allclose(fit.covariance, V, rtol=1e-5, atol=1e-12)


# --- clusters ---------------------------------------------------------------------------------------------------------


def _copies() -> tuple[un.Observations, un.Observations]:
    """60 vectors, and each of them 20 times under one label: no more information than in the 60."""
    y = np.random.default_rng(0).integers(0, 2, (60, 2)).astype(float)
    many = {"a": np.repeat(y[:, 0], 20), "b": np.repeat(y[:, 1], 20), "trial": np.repeat(np.arange(60), 20)}
    return un.iid(y), un.iid(many, y=["a", "b"], group="trial")


@pytest.mark.parametrize(
    "objective", [un.ConditionalNCE(un.BitFlip(every=True), cluster="trial"), un.PseudoLikelihood(cluster="trial")]
)
def test_errors_from_scores_are_those_of_clusters(objective: un.ConditionalNCE | un.PseudoLikelihood) -> None:
    """The text said "from the scores of clusters" above errors that took copies for independent observations."""
    once, copies = _copies()
    truth, fit = un.fit(un.Ising(2), once, EVERY), un.fit(un.Ising(2), copies, objective, rng=1)
    np.testing.assert_allclose(fit.se, truth.se, rtol=1e-6)
    assert "from the scores of clusters" in fit.summary()
    assert f"{fit.se[0]:.3g}" in fit.summary()
    assert fit.df is not None
    assert 50 < fit.df < 60
    table, robust = fit.tidy(), fit.tidy(robust=True)
    np.testing.assert_allclose(table["lower"], robust["lower"])
    np.testing.assert_allclose(fit.errors_of(["h[2]"])["upper"], table["upper"][1:2])
    assert fit.wald(["J[1,2]"]).p_value == pytest.approx(fit.wald(["J[1,2]"], robust=True).p_value)


def test_chosen_errors_are_by_cluster_too() -> None:
    """Where p × p numbers are too many, errors of chosen parameters are sums of scores over clusters."""
    objective = un.ConditionalNCE(un.BitFlip(every=True), cluster="trial")
    fit = un.fit(un.Ising(2), _copies()[1], objective, solver=un.LBFGS(1e-14), rng=1)
    many = replace(fit, errors=None)
    table, full = many.errors_of(list(fit.names)), fit.tidy()
    np.testing.assert_allclose(table["se"], full["se"], rtol=2e-3)
    np.testing.assert_allclose(table["upper"], full["upper"], rtol=2e-3)
    single = replace(many, diagnostics={})
    assert (table["se"] > 4 * single.errors_of(list(fit.names))["se"]).all()  # √20 of copies taken for observations


def test_intervals_of_clusters_are_saved(tmp_path: Path) -> None:
    fit = un.fit(un.Ising(2), _copies()[1], un.ConditionalNCE(un.BitFlip(every=True), cluster="trial"))
    fit.save(tmp_path / "fit")
    loaded = un.load(tmp_path / "fit")
    assert isinstance(loaded, un.Fit)
    np.testing.assert_allclose(loaded.tidy()["lower"], fit.tidy()["lower"])


def test_fewer_clusters_than_parameters_have_no_errors() -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, (300, 3)).astype(float)
    obs = un.iid(
        {"a": y[:, 0], "b": y[:, 1], "c": y[:, 2], "t": np.repeat(np.arange(5), 60)}, y=["a", "b", "c"], group="t"
    )
    with pytest.warns(UnnormWarning, match="5 independent clusters are too few to estimate the errors of 6 parameters"):
        fit = un.fit(un.Ising(3), obs, un.ConditionalNCE(un.BitFlip(every=True), cluster="t"))
    assert not fit.has_covariance
    with pytest.raises(InputError, match=r"5 independent clusters are too few .* Name smaller clusters"):
        fit.errors_of(["h[1]"])


# --- missing bits and sentences ---------------------------------------------------------------------------------------


def _vectors() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 2, (400, 4)).astype(float)


def test_a_bit_that_was_never_observed() -> None:
    y = _vectors()
    y[:, 1] = np.nan
    with pytest.raises(DataError, match=re.escape("'y2' was observed in no vector (1 of 4 bits were not)")):
        un.fit(un.Ising(4), un.iid(y, missing="keep"), EVERY, rng=1)


def test_bits_that_were_never_observed_together() -> None:
    y = _vectors()
    y[:200, 0] = y[200:, 2] = np.nan
    fit = un.fit(un.Ising(4), un.iid(y, missing="keep"), EVERY, rng=1)
    assert any("'y1' and 'y3' were never observed together" in note for note in fit.notes)


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("how", ["newton", "ridge", "exact", "nce"])
def test_a_bit_that_never_changes(value: int, how: str) -> None:
    y = _vectors()
    y[:, 1] = value
    objective = {"exact": un.Exact(), "nce": un.Logistic(un.ProductBernoulli())}.get(how, EVERY)
    solver = un.LBFGS(ridge=0.01) if how == "ridge" else None
    sentence = (
        f"the bit 'y2' is {value} in every observation, so that h[2] → {'+' if value else '−'}∞. Leave its column"
    )
    with pytest.raises(NoEstimateError, match=re.escape(sentence)):
        un.fit(un.Ising(4), un.iid(y), objective, solver=solver, rng=1)
    assert un.fit(un.Ising(3), un.iid(np.delete(y, 1, axis=1)), EVERY).converged  # the remedy


def test_twin_bits_and_the_ridge_that_the_sentence_names() -> None:
    y = _vectors()
    y[:, 1] = y[:, 0]
    with pytest.raises(NoEstimateError, match=re.escape("solver=un.LBFGS(ridge=0.01)")):
        un.fit(un.Ising(4), un.iid(y), EVERY)
    assert un.fit(un.Ising(4), un.iid(y), EVERY, solver=un.LBFGS(ridge=0.01)).converged


def test_a_ridge_leaves_what_covariates_add_to_the_fields() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=800)
    y = (rng.random((800, 2)) < 1 / (1 + np.exp(-2 * x[:, None]))).astype(float)
    obs, model = un.conditional(y, x={"x": x}), un.Ising(2, covariates="x")
    strong = un.fit(model, obs, EVERY, solver=un.LBFGS(ridge=1e3))
    alone = [un.fit(un.Ising(1, covariates="x"), un.conditional(y[:, [i]], x={"x": x}), EVERY).estimate for i in (0, 1)]
    np.testing.assert_allclose(strong.estimate[[0, 1, 3, 4]], np.array(alone).T.ravel(), atol=1e-3)
    assert abs(strong.estimate[2]) < 1e-3


@pytest.mark.parametrize("lag", [0, 1])
def test_sums_over_states_block_by_block(lag: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At d = 20 all states with their statistics were 1.8 GB, and the fit took 4 GB."""
    y = np.random.default_rng(7).integers(0, 2, (200, 4)).astype(float)
    model, obs = un.Ising(4, lag=lag), un.transitions(y) if lag else un.iid(y)
    whole = [un.fit(model, obs, one) for one in (un.Exact(), un.Poisson())]
    monkeypatch.setattr("unnorm.models.ising.TABLE", 0)
    monkeypatch.setattr("unnorm.models.ising.BLOCK", 5)
    for a, b in zip(whole, [un.fit(model, obs, one) for one in (un.Exact(), un.Poisson())]):
        np.testing.assert_allclose(b.estimate, a.estimate, atol=1e-9)
        np.testing.assert_allclose(b.covariance, a.covariance, rtol=1e-7, atol=1e-12)
        assert b.loglik == pytest.approx(a.loglik, abs=1e-8)


@pytest.mark.parametrize("missing", [False, True])
def test_after_a_lasso_every_way_to_errors_says_why_there_are_none(missing: bool) -> None:
    """They sent the reader to errors_of, which sent him to errors_of."""
    y = _vectors()
    y[:5, 0] = np.nan if missing else 0.0
    solver = un.LBFGS(lasso=0.02)
    obs = un.iid(y, missing="keep" if missing else "error")
    fit = un.fit(un.Ising(4), obs, EVERY, solver=un.Imputing(solver=solver) if missing else solver, rng=1)
    for ask in (lambda: fit.se, lambda: fit.tidy(), lambda: fit.errors_of(["J[1,2]"])):
        with pytest.raises(InputError, match=r"The lasso left \d+ of 10 parameters. No standard errors"):
            ask()


def test_masked_bits_are_missing() -> None:
    """What lies under a mask was taken for data."""
    y = np.ma.array(_vectors(), mask=np.zeros((400, 4), dtype=bool))
    y[7, 2] = np.ma.masked
    with pytest.raises(DataError, match="the first 'y3' of row 7"):
        un.iid(y)
    obs = un.iid(y, missing="keep")
    assert obs.holes is not None
    assert np.argwhere(obs.holes).tolist() == [[7, 2]]
    assert np.isnan(obs.outcome[7, 2])
    assert un.iid(y, missing="drop").n == 399
    small = un.iid(np.ma.array(y.data.astype(np.uint8), mask=y.mask), missing="keep")
    assert np.isnan(small.outcome[7, 2])
    A = np.ma.array(np.zeros((3, 3)), mask=np.eye(3)[[1, 2, 0]] > 0)
    with pytest.raises(DataError, match=re.escape("3 ties are missing, the first (0, 1)")):
        un.networks(A, un.Graphs(3, directed=True))


def test_bits_and_columns_of_one_name_are_of_one_order() -> None:
    """J[a,b] would have been the coupling of other columns."""
    y = _vectors()[:, :3]
    table = {"a": y[:, 0], "b": y[:, 1], "c": y[:, 2]}
    with pytest.raises(InputError, match="come in another order: 'c', 'a', 'b'"):
        un.fit(un.Ising(["a", "b", "c"]), un.iid(table, y=["c", "a", "b"]), EVERY)
    assert un.fit(un.Ising(["a", "b", "c"]), un.iid(table, y=["a", "b", "c"]), EVERY).converged
    assert un.fit(un.Ising(["Ann", "Bob", "Cyd"]), un.iid(y), EVERY).names[0] == "h[Ann]"
    with pytest.raises(InputError, match=re.escape("two parameters of one name, 'J[a,b,c]'")):
        un.Ising(["a", "b,c", "a,b", "c"])


@pytest.mark.parametrize("objective", [EVERY, un.PseudoLikelihood(errors="scores")])
def test_advice_where_nothing_is_drawn(objective: un.ConditionalNCE | un.PseudoLikelihood) -> None:
    advice = str(un.fit(un.Ising(4), un.iid(_vectors()), objective, rng=1).advise())
    assert advice.startswith("No reference points are drawn: each of 4 bits")


def test_a_ridge_is_named_where_bits_are_missing_too() -> None:
    y = _vectors()
    y[0, 0] = np.nan
    fit = un.fit(un.Ising(4), un.iid(y, missing="keep"), EVERY, solver=un.Imputing(solver=un.LBFGS(ridge=0.1)), rng=1)
    assert any("those of the penalised estimate" in note for note in fit.notes)


def test_few_scores_for_their_parameters_are_noted() -> None:
    """Five to twenty graphs, four parameters: intervals covered 85 to 91 %, and nothing was said."""
    y = _vectors()
    few, enough = (un.fit(un.Ising(4), un.iid(y[:n]), EVERY) for n in (60, 100))
    assert any("60 independent observations are few for 10 parameters" in note for note in few.notes)
    assert any("simulated=4000" in note for note in few.notes)
    assert not any("are few for" in note for note in enough.notes)
    assert few.errors_of(["h[1]"], simulated=4000, rng=1)["se"][0] > 0  # the remedy
    exact = un.fit(un.Ising(4), un.iid(y[:60]))
    assert not any("are few for" in note for note in exact.notes)  # those of the model need no scores
