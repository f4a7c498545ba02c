"""The score test that δ is constant: against its formula, weights, engine and Newton, and its power."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import unnorm as un
from unnorm.inference import delta_test
from unnorm.inference.delta_test import basis, delta_tests
from unnorm.objectives.redraws import Redraws
from unnorm.objectives.scores import Drawn, RowScores
from unnorm.references.contrast import contrast

RULE = un.Interval(0, 2)
FULL = un.ExponentialFamily(lambda y, x: (y, x["z"] * y, x["w"] * jnp.sin(3 * y)), ("a", "b", "c"), RULE)
MISSING = un.ExponentialFamily(lambda y, x: (y, x["w"] * jnp.sin(3 * y)), ("a", "c"), RULE)
SCHEMES = [un.IID(), un.Lattice()]


def draws(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    z, w, g = rng.normal(size=n), rng.uniform(0, 2, n), np.linspace(0, 2, 401)
    mass = np.cumsum(np.exp(-g + 1.2 * z[:, None] * g + 0.9 * w[:, None] * np.sin(3 * g)), axis=1)
    return {"y": g[(mass < rng.random(n)[:, None] * mass[:, -1:]).sum(axis=1)], "z": z, "w": w}


def scores_of(model: Any, obs: un.Observations, points: Any, k: int = 5) -> RowScores:
    fit = un.fit(model, obs, un.Logistic(un.Uniform(), per_point=k, points=points), rng=77)
    assert fit.solution is not None
    assert fit.solution.scores is not None
    scores = fit.solution.scores.as_rows()
    assert scores is not None
    return scores


@pytest.fixture(scope="module")
def data() -> un.Observations:
    return un.conditional(draws(300, 1), y="y", x=("z", "w"))


def test_the_basis_is_orthogonal_to_the_constant_and_needs_only_ranks(data: un.Observations) -> None:
    z = data.context["z"]
    B = basis(z)
    assert B.shape == (300, 3)
    np.testing.assert_allclose(B.T @ B, 300 * np.eye(3), atol=1e-8)
    np.testing.assert_allclose(B.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(basis(np.exp(z)), B, atol=1e-9)
    assert basis(np.repeat(["a", "b", "c"], 10)).shape == (30, 2)
    assert basis(np.repeat([0.0, 1.0], 10)).shape == (20, 1)
    assert basis(np.ones(20)).shape == (20, 0)
    assert basis(np.arange(50).astype(str)).shape == (50, 0)


def by_quadrature(fit: un.Fit, obs: un.Observations, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, Σ_t Var_f[(1 − p) h] and that of k IID points' Σ p h for a cubic in z; h = b − K [s − E s; 1]."""
    scores, B = fit.solution.scores.as_rows(), basis(obs.context["z"])  # type: ignore[union-attr]
    (rows,) = scores.blocks()
    slope, curvature = rows.slopes()
    A = np.stack([rows.design.total(curvature * B[rows.at, j]) for j in range(B.shape[1])])
    K, y, step = A @ np.linalg.inv(scores.information), (np.arange(400) + 0.5) / 200, 1 / 200
    z, w = obs.context["z"][:, None], obs.context["w"][:, None]
    s = np.stack([np.broadcast_to(y, (obs.n, 400)), z * y, w * np.sin(3 * y)])
    f = np.exp(np.tensordot(fit.estimate, s, 1))
    f /= f.sum(axis=1, keepdims=True) * step
    assert fit.anchoring is not None
    p = 1 / (1 + k / 2 / (f * np.exp(fit.anchoring.delta)))
    x = np.concatenate([s - (s * f * step).sum(axis=2, keepdims=True), np.ones((1, obs.n, 400))])
    h = B.T[:, :, None] - np.tensordot(K, x, 1)
    mean = ((1 - p) * h * f * step).sum(axis=2)
    data = np.einsum("ity,jty,ty->ij", h, h, (1 - p) ** 2 * f * step) - mean @ mean.T
    points = np.einsum("ity,jty,ty->ij", h, h, p * (1 - p) * f * step) - mean @ mean.T / k  # k q p² = f p (1 − p)
    return np.bincount(rows.at, slope) @ B, data, points


def test_the_statistic_by_its_formula(data: un.Observations) -> None:
    """IID points: U and the model's variance by another rule, written out."""
    fit = un.fit(FULL, data, un.Logistic(un.Uniform(), per_point=5, points=un.IID()), rng=77)
    U, own, points = by_quadrature(fit, data, 5)
    found = delta_tests(fit.solution.scores.as_rows(), {"z": data.context["z"]})["z"]  # type: ignore[union-attr, arg-type]
    assert found.df == 3
    assert found.statistic == pytest.approx(U @ np.linalg.solve(own + points, U), rel=1e-3)


def test_a_fit_with_terms_tests_itself() -> None:
    model = un.Additive("y + ws", RULE, covariates=[un.Expression("ws", "w*sin(3*y)")])
    objective = un.Logistic(un.Uniform(), per_point=5, points=un.IID())
    with pytest.warns(un.errors.UnnormWarning, match="δ varies with 'z'"):
        null = un.fit(model, un.conditional(draws(4000, 3), y="y", x=("z", "w")), objective, rng=5)
    assert null.anchoring is not None
    assert null.anchoring.tests is not None
    assert null.anchoring.tests["z"].p < 1e-4
    assert null.anchoring.tests["w"].p > 1e-3
    assert null.constants_failed


@pytest.mark.parametrize("points", SCHEMES)
def test_the_engine_and_newton_agree(data: un.Observations, points: Any) -> None:
    terms = [un.Expression("zy", "z*y"), un.Expression("ws", "w*sin(3*y)")]
    engine = scores_of(un.Additive("y + zy + ws", RULE, covariates=terms), data, points)
    newton = scores_of(FULL, data, points)
    assert (engine.level, newton.level) == (0, 3)
    assert engine.drawn is newton.drawn is (Drawn.IID if points.iid else Drawn.EVENLY)
    ours, theirs = (delta_tests(one, data.context) for one in (engine, newton))
    for name in ("z", "w"):
        assert ours[name].statistic == pytest.approx(theirs[name].statistic, rel=1e-3)


def test_weights_are_copies_that_share_their_points() -> None:
    """All weights w: U grows by w, the data's part D of its variance by w and the points' P by w²: V_w = w D + w² P."""
    columns, V, U = draws(300, 1), {}, {}
    B = basis(columns["w"])
    for w in (1.0, 2.0, 4.0):
        obs = un.conditional({**columns, "n": np.full(300, w)}, y="y", x=("z", "w"), weight="n")
        score = delta_test._score(scores_of(FULL, obs, un.IID()), B)
        U[w], V[w] = score.U, score.spread
        np.testing.assert_allclose(U[w], w * U[1.0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(V[4.0], 6 * V[2.0] - 8 * V[1.0], rtol=1e-3, atol=0.05)
    points = (V[2.0] - 2 * V[1.0]) / 2
    assert np.all(np.linalg.eigvalsh(points) > 0)
    assert np.trace(points) < np.trace(V[1.0])  # D is a variance too


def test_even_points_weigh_as_copies_do() -> None:
    """The same for a lattice, the data's part from the model: w D + w² P."""
    columns, D, P = draws(300, 1), {}, {}
    B = basis(columns["w"])
    for w in (1.0, 3.0):
        obs = un.conditional({**columns, "n": np.full(300, w)}, y="y", x=("z", "w"), weight="n")
        with warnings.catch_warnings():  # three copies of a data set fit it too well
            warnings.simplefilter("ignore", un.errors.UnnormWarning)
            score = delta_test._score(scores_of(FULL, obs, un.Lattice()), B)
        D[w], P[w] = score.spread - score.measured, score.measured
    np.testing.assert_allclose(D[3.0], 3 * D[1.0], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(P[3.0], 9 * P[1.0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("points", SCHEMES)
def test_the_variance_is_that_of_the_model(points: Any) -> None:
    """Without clusters it holds nothing of the data but θ̂; a lattice's own part is measured instead."""
    obs, k = un.conditional(draws(1000, 5), y="y", x=("z", "w")), 5
    fit = un.fit(FULL, obs, un.Logistic(un.Uniform(), per_point=k, points=points), rng=77)
    score = delta_test._score(fit.solution.scores.as_rows(), basis(obs.context["z"]))  # type: ignore[union-attr]
    _, own, iid = by_quadrature(fit, obs, k)
    np.testing.assert_allclose(score.spread - score.measured, own + iid if points.iid else own, rtol=2e-3, atol=1e-3)
    if not points.iid:
        assert np.trace(score.measured) < np.trace(iid)


def test_where_q_is_zero_no_node_counts() -> None:
    """Half of Ω without points or data: the law is that of the other half."""
    half = un.Custom(lambda rng, n, x: rng.random(n), lambda y, x: np.where(y < 1, 0.0, -np.inf))
    obs = un.conditional({"y": np.linspace(0.01, 0.99, 200), "z": np.tile([0.0, 1.0, 2.0, 3.0, 4.0], 40)}, y="y", x="z")
    drawn = contrast(obs, half.bind(RULE, obs), un.IID(), per_point=4, rng=1)
    nodes, mass = drawn.over(np.array([[0.5], [1.5]]), np.array([0.3, 0.7]), np.array([3, 7]))
    np.testing.assert_array_equal(nodes.at, [3])
    np.testing.assert_allclose(mass, 4 * 0.3)
    np.testing.assert_allclose(nodes.log_odds_offset, -np.log(4))


def test_some_contexts_stand_for_all(data: un.Observations, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, B = scores_of(FULL, data, un.Lattice()), basis(data.context["z"])
    every = delta_test._score(scores, B)
    assert every.left == 0.0
    monkeypatch.setattr(delta_test, "MOST_NODES", 0)
    some = delta_test._score(scores, B)
    assert some.left == pytest.approx(1 - delta_test.FEWEST / 300)
    np.testing.assert_array_equal(some.U, every.U)
    np.testing.assert_allclose(some.measured, every.measured)
    ratio = np.diag(some.spread) / np.diag(every.spread)
    np.testing.assert_allclose(ratio, 1.0, atol=0.3)
    assert not np.any(ratio == 1.0)


def test_a_noisy_variance_has_few_degrees_of_freedom() -> None:
    """Of two units that alone have a variance: Σ z⁴ = ½, and ν = 2/(½ − 1/n); with R sets for all of it, ν = R − 1."""
    from scipy.stats import f

    units = np.zeros((100, 1))
    units[:2] = 1.0
    nothing, U, V = np.zeros((1, 1)), np.array([3.0]), np.array([[2.0]])
    test = delta_test._Score(U, V, nothing, 0, units=units).tested(slice(0, 1))
    assert test is not None
    assert test.statistic == pytest.approx(4.5)
    assert test.p == pytest.approx(f.sf(4.5, 1, 2 / (0.5 - 0.01)))
    test = delta_test._Score(U, V, V, 5).tested(slice(0, 1))
    assert test is not None
    assert test.p == pytest.approx(f.sf(4.5, 1, 4))
    by = np.array([0.2, 0.4, 0.6, 0.8])[:, None, None]  # of four contexts among eight
    test = delta_test._Score(U, V, nothing, 0, some=by, left=0.5).tested(slice(0, 1))
    assert test is not None
    assert test.p == pytest.approx(f.sf(4.5, 1, 1 / (0.25 * np.sum((by / 2 - 0.25) ** 2))))


def test_the_errors_have_the_sets_that_the_test_drew(data: un.Observations, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh points cost as much as a fit: the first four sets are drawn once."""
    monkeypatch.setattr(delta_test, "MOST_REDRAWN", 0)
    scores, drawn = scores_of(FULL, data, un.Lattice()), []
    assert scores.redraw is not None
    inner = scores.redraw.sums

    def counted(i: int, times: float, probe: Any) -> Any:
        drawn.append(i)
        return inner(i, times, probe)

    scores = replace(scores, redraw=Redraws(counted, scores.redraw.by_label))
    delta_tests(scores, data.context)
    scores.measured_spread()
    assert drawn == [0, 1, 2, 3]
    scores.measured_spread(2.0)  # of twice as many points, which were not drawn yet
    assert drawn == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize("points", SCHEMES)
def test_a_missing_effect_of_the_context_is_found(points: Any) -> None:
    """f without z y, data with it: found where z is, and not where w is; without that error nothing is found."""
    obs = un.conditional(draws(4000 if points.iid else 800, 11), y="y", x=("z", "w"))
    with pytest.warns(un.errors.UnnormWarning, match="Let an effect of f change with 'z'"):
        found = delta_tests(scores_of(MISSING, obs, points), obs.context)
    assert found["z"].p < 1e-3
    right = delta_tests(scores_of(FULL, obs, points), obs.context)
    assert min(one.p for one in right.values()) > 0.01


def test_other_constants_have_no_delta(data: un.Observations) -> None:
    fit = un.fit(FULL, data, un.Logistic(un.Uniform(), per_point=5), un.Smooth("te(z, w, k=5)"), rng=1)
    assert fit.solution is not None
    assert fit.solution.scores.as_rows().level is None  # type: ignore[union-attr]
    assert not fit.anchored


def test_clusters_are_the_independent_units() -> None:
    """IID points, weights and clusters of unequal size: U and C/(C − 1) Σ (s_c − π_c Σ s)(…)ᵀ, written out."""
    n, weight = 300, np.tile([1.0, 2.0, 3.0], 100)
    obs = un.conditional({**draws(n, 1), "n": weight}, y="y", x=("z", "w"), weight="n")
    scores, cluster = scores_of(FULL, obs, un.IID()), np.arange(n) ** 2 // 3001
    (rows,) = scores.blocks()
    X, slope, curvature = rows.design.X, *rows.slopes()  # type: ignore[attr-defined]
    B = basis(obs.context["w"])
    g = np.stack([np.bincount(rows.at, slope * X[:, j]) for j in range(X.shape[1])], axis=1)
    A = (B[rows.at] * curvature[:, None]).T @ X
    s = g[:, -1:] * B - g @ np.linalg.inv(scores.information) @ A.T
    C, share = 30, np.bincount(cluster, weight) / weight.sum()
    s = np.stack([np.bincount(cluster, s[:, j]) for j in range(3)], axis=1)
    s = s - share[:, None] * s.sum(axis=0)
    U = B.T @ g[:, -1]
    found = delta_tests(scores, {"w": obs.context["w"]}, cluster)["w"]
    assert cluster.max() + 1 == C
    assert found.statistic == pytest.approx(U @ np.linalg.solve(C / (C - 1) * s.T @ s, U), rel=1e-9)
    assert not delta_tests(scores, {"w": obs.context["w"]}, np.arange(n) % 11)  # three columns need twelve clusters


def test_with_even_points_each_observation_is_its_own_cluster() -> None:
    """f being right, Σ (e − E e)(…)ᵀ of single observations is what the model says; the points' part is the same."""
    columns = draws(3000, 5)
    obs = un.conditional(columns, y="y", x=("z", "w"))
    scores, B = scores_of(FULL, obs, un.Lattice()), basis(obs.context["z"])
    model, single = delta_test._score(scores, B), delta_test._score(scores, B, np.arange(3000))
    np.testing.assert_allclose(single.measured, model.measured, rtol=1e-9)
    np.testing.assert_allclose(np.diag(single.spread), np.diag(model.spread), rtol=0.12)
    heavy = un.conditional({**columns, "n": np.full(3000, 2.0)}, y="y", x=("z", "w"), weight="n")
    copies = delta_test._score(scores_of(FULL, heavy, un.Lattice()), B, np.arange(3000))
    np.testing.assert_allclose(copies.spread, 4.0 * single.spread, rtol=1e-3, atol=0.01)


def test_subjects_that_differ_are_no_fault_of_the_constants() -> None:
    """Slopes vary between 20 subjects, and not with their ages: a test that counts fixations finds an effect of age."""
    rng = np.random.default_rng(3)
    subject, age, slope = np.repeat(np.arange(20), 60), rng.normal(size=20), 2.0 + 2.0 * rng.normal(size=20)
    rate = slope[subject]
    y = np.log1p(rng.random(1200) * np.expm1(rate)) / rate
    data = {"y": y, "age": age[subject], "subject": subject}
    obs = un.conditional(data, y="y", x="age", group="subject")
    model = un.ExponentialFamily(lambda y, x: (y, y * y + 0 * x["age"]), ("a", "b"), un.Interval(0, 1))
    with pytest.warns(un.errors.UnnormWarning, match="δ varies with 'age'"):
        un.fit(model, obs, un.Logistic(un.Uniform(), per_point=5), rng=5)
    fit = un.fit(model, obs, un.Logistic(un.Uniform(), per_point=5, cluster="subject"), rng=5)
    assert fit.anchoring is not None
    assert fit.anchoring.tests is not None
    assert fit.anchoring.tests["age"].p > 0.01


def test_relative_weights_are_no_copies() -> None:
    """Weights that say nothing of y, rescaled to a mean of one: Σ w² s sᵀ, and not Σ w s sᵀ."""
    rng, columns = np.random.default_rng(9), draws(3000, 4)
    obs = un.conditional({**columns, "ms": rng.exponential(250.0, 3000)}, y="y", x=("z", "w"), weight="ms")
    fit = un.fit(FULL, obs, un.Logistic(un.Uniform(), per_point=5), weights="relative", rng=5)
    assert fit.solution is not None
    scores = fit.solution.scores.as_rows()  # type: ignore[union-attr]
    single = delta_tests(scores, obs.context, np.arange(3000))
    assert fit.anchoring is not None
    assert fit.anchoring.tests == single
    B = basis(obs.context["z"])
    copies, each = delta_test._score(scores, B), delta_test._score(scores, B, np.arange(3000))
    assert np.trace(each.spread - each.measured) > 1.5 * np.trace(copies.spread - copies.measured)  # Σ w²/Σ w is 2
