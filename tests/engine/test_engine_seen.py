"""Directions that a likelihood cannot see, and penalties on the others."""

import numpy as np
import pytest

import unnorm as un
from unnorm.engine.gam_effects import design_within
from unnorm.engine.seen import acts, unseen, unvarying
from unnorm.solvers.fellner_schall import joint_penalty, placed_penalties, seen_penalties
from unnorm.terms.base import Penalty
from unnorm.terms.parser import parse


def within(X, context):
    """Columns less their context's mean: what a likelihood with one constant a context sees."""
    means = np.array([X[context == c].mean(axis=0) for c in np.unique(context)])
    return X - means[context]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    context = np.repeat(np.arange(40), 8)
    w = rng.random(40)[context]
    return context, {"x": rng.random(320), "z": rng.random(320), "w": w, "g": np.array(list("abcd"))[context % 4]}


def information(terms, rows, sees_levels=False):
    context, columns = rows
    X = np.concatenate([term.design(columns) for term in terms], axis=1)
    X = X if sees_levels else within(X, context)
    return X.T @ X


def test_levels_of_curves_are_not_seen(rows):
    """The criterion is that of the model written without the columns of the levels and without their penalty."""
    terms = parse("s(z, k=6) + s(x, g, bs='fs', k=5)").build(rows[1])
    H, pieces = information(terms, rows), placed_penalties(tuple(terms), None)
    seen, blind = seen_penalties(terms, pieces, H)
    assert blind.shape == (25, 4)  # four levels of the fs curves
    assert [piece.label for piece in seen] == ["s(z)", "s(x,g)1", "s(x,g)2"]  # wiggliness and slopes, not levels
    joint = joint_penalty(seen)
    assert 25 - 4 - joint.rank == 1  # the straight line of s(z)
    keep = np.concatenate([np.arange(5), *(5 + 5 * level + np.arange(4) for level in range(4))])
    lam = np.array([0.7, 0.2, 3.0])
    S = np.zeros((25, 25))
    for weight, piece in zip(lam, pieces):
        S[piece.span, piece.span] += weight * piece.matrix
    kept = np.ix_(keep, keep)
    expected = np.linalg.slogdet((H + S)[kept])[1] - np.sum(np.log(np.linalg.eigvalsh(S[kept])[1:]))
    S_seen = blind @ blind.T
    for weight, piece in zip(lam, seen):
        S_seen[piece.span, piece.span] += weight * piece.matrix
    ours = np.linalg.slogdet(H + S_seen)[1] - joint.logdet(lam)[0]
    assert ours == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("text", "blind"),
    [("te(x, w, k=4)", 3), ("ti(x, w, k=4)", 0), ("s(x, by=w, k=6)", 1), ("s(x, k=30)", 0), ("s(x, w, k=20)", 1)],
)
def test_functions_of_the_context_are_not_seen(rows, text, blind):
    terms = parse(text).build(rows[1])
    assert unseen(information(terms, rows)).shape[1] == blind
    assert unseen(information(terms, rows, sees_levels=True)).shape[1] == 0


def split(text, rows):
    """XᵀX of the columns less their context's mean, and that of the means."""
    context, columns = rows
    X = np.concatenate([term.design(columns) for term in parse(text).build(columns)], axis=1)
    W = within(X, context)
    return W.T @ W, (X - W).T @ (X - W)


@pytest.mark.parametrize(
    ("text", "constant"),
    [("te(x, w, k=4)", 3), ("ti(x, w, k=4)", 0), ("s(x, by=w, k=6)", 1), ("s(x, k=30)", 0), ("s(x, w, k=20)", 1)],
)
def test_functions_of_the_context_are_found_whatever_the_scale_of_the_columns(rows, text, constant):
    within_, between = split(text, rows)
    scale = 10.0 ** np.random.default_rng(1).uniform(-6, 3, len(within_))
    by = np.outer(scale, scale)
    for A, B in ((within_, between), (within_ * by, between * by)):
        found = unvarying(A, B)
        assert found.shape[1] == constant
        np.testing.assert_allclose(found.T @ found, np.eye(constant), atol=1e-10)
        size = np.einsum("ia,ij,ja->a", found, A + B, found)
        assert np.all(np.einsum("ia,ij,ja->a", found, A, found) < 1e-6 * size)


def test_functions_that_few_rows_reach_vary_all_the_same(monkeypatch):
    """Long steps are rare, and a tensor product has functions of them alone: little information, and none constant."""
    monkeypatch.setattr("unnorm.terms.tensor._APART", np.inf)  # in columns by value
    rng = np.random.default_rng(3)
    rows = np.repeat(np.arange(500), 6), {"x": 100 * rng.random(3000) ** 0.02, "z": rng.random(3000)}
    A, B = split("te(x, z, bs=['tp', 'cc'], k=[10, 8])", rows)
    values = np.linalg.eigvalsh(A)
    assert values[0] < 1e-9 * values[-1]
    assert unvarying(A, B).shape[1] == 0


def test_the_joint_determinant_at_ratios_that_s_itself_loses(rows):
    """log|S_λ|₊ is additive in log λ for the penalties of `fs`, however far apart; and its slope is the rank."""
    terms = parse("s(x, g, bs='fs', k=5)").build(rows[1])
    joint = joint_penalty(placed_penalties(tuple(terms), None))
    near, far = joint.logdet(np.ones(3)), joint.logdet(np.array([1e-12, 1.0, 1e12]))
    np.testing.assert_allclose(far[1], [12, 4, 4], rtol=1e-9)
    assert far[0] - near[0] == pytest.approx((4 - 12) * np.log(1e12), rel=1e-9)


def test_a_penalty_held_at_zero_is_not_counted(rows):
    terms = parse("te(x, z, k=4)").build(rows[1])
    joint = joint_penalty(placed_penalties(tuple(terms), {"te(x,z)1": 0.0}))
    assert joint.rank == terms[0].penalties[1].rank
    assert joint.logdet(np.array([0.0, 1.0]))[1][0] == 0.0


FORMULAS = ["s(y) + ti(y, z, k=4)", "te(y, z, k=4)", "s(y, g, bs='fs', k=5)", "s(y) + s(y, g, bs='fs', k=4)"]


@pytest.fixture(scope="module")
def outcomes():
    rng = np.random.default_rng(11)
    n = 300
    z, g = rng.random(n), np.array(list("abcdef"))[rng.integers(0, 6, n)]
    shift = dict(zip("abcdef", rng.normal(size=6)))
    y = 0.5 + 0.1 * (z - 0.5) + 0.05 * np.array([shift[k] for k in g]) + 0.12 * rng.normal(size=n)
    return un.conditional({"y": np.clip(y, 0.001, 0.999), "z": z, "g": g}, y="y", x=("z", "g"))


@pytest.mark.parametrize("formula", FORMULAS)
def test_exact_ranking_and_logistic_smooth_alike(outcomes, formula):
    model = un.Additive(formula, un.Interval(0, 1))
    exact = un.fit(model, outcomes, un.Exact(order=40))
    ranking = un.fit(model, outcomes, un.Ranking(un.Uniform(), per_point=40), rng=3)
    logistic = un.fit(model, outcomes, un.Logistic(un.Uniform(), per_point=40), rng=3)
    assert exact.converged
    assert ranking.converged
    for fit in (ranking, logistic):
        for label, edf in exact.edf.items():
            assert fit.edf[label] == pytest.approx(edf, abs=0.5)


@pytest.mark.parametrize("formula", FORMULAS)
def test_the_smoothing_is_a_minimum_of_the_criterion(outcomes, formula):
    """The exact Laplace criterion: no λ_j moved by a factor e^±0.7 has a lower one."""
    model = un.Additive(formula, un.Interval(0, 1))
    fit = un.fit(model, outcomes, un.Exact(order=40))
    for label in fit.smooths.sp:
        for factor in (0.5, 2.0):
            sp = {**fit.smooths.sp, label: factor * fit.smooths.sp[label]}
            moved = un.fit(model, outcomes, un.Exact(order=40), smoothing=un.Smoothing(sp=sp))
            assert moved.smooths.score > fit.smooths.score - 2e-3


def test_columns_without_a_level_at_each_value_of_the_context(rows):
    """They average to zero over the grid at each w, at any points; a numeric `by` multiplies them."""
    (term,) = parse("te(x, w, by=z, k=4)").build(rows[1])
    x, w = (one.ravel() for one in np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 130)))
    grid = {"x": x, "w": w}
    C = design_within(term, grid, ("w",), grid)
    np.testing.assert_allclose(C.reshape(130, 9, -1).mean(axis=1), 0.0, atol=1e-12)
    assert np.abs(C).max() > 0.1
    some = np.array([7, 300, 1100, 8])
    asked = {"x": x[some], "w": w[some], "z": np.array([2.0, -1.0, 0.5, 3.0])}
    np.testing.assert_allclose(design_within(term, asked, ("w",), grid), C[some] * asked["z"][:, None], atol=1e-12)


@pytest.mark.parametrize("formula", ["y + y:g", "s(y, g, h, bs='fs', k=4)", "s(y, g, h, bs='re')"])
def test_effects_of_factors_of_the_context_are_shown_as_they_are(formula):
    """Labels have no mean over a grid: only smooths of numbers are shown without a level."""
    rng = np.random.default_rng(2)
    g, h = np.array(list("abc"))[rng.integers(0, 3, 90)], np.array(list("pq"))[rng.integers(0, 2, 90)]
    data = un.conditional({"y": rng.beta(2, 2, 90), "g": g, "h": h}, y="y", x=("g", "h"))
    fit = un.fit(un.Additive(formula, un.Interval(0, 1)), data, un.Exact(order=20))
    assert fit.smooths.within == {}
    term = fit.smooths.terms[-1]
    shown = fit.effect(term.label)
    assert np.isfinite(shown["estimate"]).all()
    at = {name: np.asarray(shown[name]) for name in term.covariates}
    np.testing.assert_allclose(shown["estimate"], term.design(at) @ fit.smooths.beta[fit.smooths.slices[term.label]])


@pytest.mark.parametrize(("share", "answer"), [(0.1, True), (1e-6, True), (1e-13, False)])
def test_a_penalty_acts_where_a_little_of_it_is_on_what_is_seen(share, answer):
    root = np.diag([1.0, share])
    assert acts(Penalty(root.T @ root, 2, "s(x)", root), np.array([[1.0], [0.0]])) is answer
