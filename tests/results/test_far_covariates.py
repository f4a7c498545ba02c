"""Covariates far from zero: 10⁸ + N(0, 1) is not collinear with the constant, and costs no digits that matter."""

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import NotIdentifiedError
from unnorm.models.centring import Centred, level

FAR = 1e8
FLIPS = un.ConditionalNCE(un.BitFlip(every=True))


def vectors(n: int = 1500, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    z = rng.normal(size=n)
    model = un.Ising(d, covariates="z")
    theta = np.concatenate([np.full(d, -0.3), np.full(d * (d - 1) // 2, 0.4), np.full(d, 0.7)])
    y = model.sampler(theta, ({"z": z},)).sweep(np.zeros((n, d)), 30, rng)
    return y, z


def observed(y: np.ndarray, z: np.ndarray) -> un.Observations:
    bits = [f"b{i}" for i in range(y.shape[1])]
    return un.conditional(dict(zip(bits, y.T)) | {"z": z}, y=bits, x="z")


def alike(near: un.Fit, far: un.Fit, m: float, fields: int) -> None:
    """Slopes and their errors equal; a field is h' − m B, and its error that of a point m away."""
    B = slice(len(near.names) - fields, None)
    assert np.allclose(far.estimate[B], near.estimate[B], atol=1e-6, rtol=0)
    assert np.allclose(far.se[fields:], near.se[fields:], rtol=1e-5)
    assert np.allclose(far.estimate[fields : -fields or None], near.estimate[fields : -fields or None], atol=1e-6)
    T = np.eye(len(near.names))
    T[np.arange(fields), np.arange(len(near.names))[B]] = -m
    assert np.allclose(far.estimate[:fields], (T @ near.estimate)[:fields], rtol=1e-6)
    V = T @ near.covariance @ T.T
    assert np.allclose(far.se[:fields], np.sqrt(np.diag(V))[:fields], rtol=1e-5)


@pytest.mark.parametrize("objective", [FLIPS, un.Exact(), un.Logistic(un.ProductBernoulli(), per_point=5)], ids=repr)
def test_bits_with_a_covariate_far_from_zero_equal_those_with_it_centred(objective):
    y, z = vectors(400)
    far = z + FAR
    near = un.fit(un.Ising(4, covariates="z"), observed(y, far - FAR), objective, rng=1)
    given = un.fit(un.Ising(4, covariates="z"), observed(y, far), objective, rng=1)
    alike(near, given, FAR, 4)
    assert given.value == pytest.approx(near.value, rel=1e-8)


def test_chosen_errors_are_on_the_users_scale():
    y, z = vectors()
    fits = [
        un.fit(un.Ising(4, covariates="z"), observed(y, x), FLIPS, solver=un.LBFGS(1e-12), rng=1) for x in (z + 50.0, z)
    ]
    assert fits[0].solution is not None
    assert fits[0].solution.centred is not None
    assert fits[1].solution is not None
    assert fits[1].solution.centred is None
    far, near = (fit.solution.chosen for fit in fits)
    wanted = np.array([1, 0, 6, 11])  # two fields, a coupling, a slope
    needed, T = fits[0].solution.centred.rows(wanted)
    V = T @ far.empirical(needed) @ T.T
    full = fits[0].covariance[np.ix_(wanted, wanted)]
    assert np.allclose(V, full, rtol=2e-3, atol=1e-3 * np.abs(full).max())
    assert np.allclose(V[2:, 2:], near.empirical(wanted[2:]), rtol=4e-3, atol=1e-5)
    simulated = fits[0].errors_of(["h[1]", "B[1,z]"], simulated=4000, rng=2)
    assert np.allclose(simulated["se"], fits[0].se[[0, 10]], rtol=0.2)


def test_penalised_couplings_are_the_same():
    y, z = vectors(400)
    model = un.Ising(4, covariates="z")
    far, near = (un.penalty_path(model, observed(y, x), "ridge", [0.1, 0.01], folds=3, rng=3) for x in (z + FAR, z))
    assert np.allclose(far.score, near.score, atol=1e-5)
    assert np.allclose(far.fit.estimate[4:], near.fit.estimate[4:], atol=1e-4)


def graph(n: int = 16) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    z, D = rng.normal(size=n), rng.normal(size=(n, n))
    eta = -0.6 + 0.5 * (z[:, None] + z) - 0.6 * D
    A = (rng.random((n, n)) < 1 / (1 + np.exp(-eta))).astype(int)
    np.fill_diagonal(A, 0)
    return A, z, D


@pytest.mark.parametrize(
    ("term", "ends"), [("nodecov(z)", 2), ("nodeocov(z)", 1), ("nodeicov(z)", 1), ("edgecov(D)", 1)]
)
def test_graphs_with_a_covariate_far_from_zero(term, ends):
    A, z, D = graph()
    omega = un.Graphs(len(A), directed=True)
    fits = []
    for m in (0.0, FAR):
        nodes, dyads = {"z": (z + FAR) - FAR + m}, {"D": (D + FAR) - FAR + m}
        model = un.GraphStatistics(f"edges + mutual + {term}", omega, nodes, dyads)
        fits.append(un.fit(model, un.networks(A, omega), un.PseudoLikelihood(draws=100), rng=1))
    near, far = fits
    assert np.allclose(far.estimate[1:], near.estimate[1:], atol=1e-6, rtol=0)
    assert far.estimate[0] == pytest.approx(near.estimate[0] - ends * FAR * near.estimate[2], rel=1e-6)
    assert np.allclose(far.se[1:], near.se[1:], rtol=1e-5)
    assert far.se[0] == pytest.approx(ends * FAR * near.se[2], rel=1e-4)
    assert far.model is not None
    assert far.model.parts[2].origin == 0.0


def test_without_edges_there_is_nothing_to_take_the_level():
    A, z, _ = graph()
    omega = un.Graphs(len(A), directed=True)
    model = un.GraphStatistics("mutual + nodecov(z)", omega, {"z": z + FAR})
    assert model.centred(un.networks(A, omega)) is None


def test_a_constant_covariate_is_still_refused():
    y, _ = vectors(200)
    with pytest.raises(NotIdentifiedError, match="cannot be told apart"):
        un.fit(un.Ising(4, covariates="z"), observed(y, np.full(len(y), FAR)), FLIPS)


def test_level_is_that_of_covariates_far_from_zero():
    rng = np.random.default_rng(0)
    z = rng.normal(size=1000)
    assert level(z) == level(z + 5) == level(np.full(9, 3.0)) == 0.0
    assert level(z + FAR) == pytest.approx(FAR + z.mean(), abs=1e-6)


def test_rows_of_the_map_are_its_matrix():
    moved = Centred(un.Ising(3), np.array([0, 0, 1]), np.array([3, 4, 5]), np.array([2.0, 3.0, 4.0]))
    T = np.eye(6)
    T[0, 3], T[0, 4], T[1, 5] = -2.0, -3.0, -4.0
    theta, V = np.arange(1.0, 7.0), np.diag(np.arange(1.0, 7.0)) + 0.1
    assert np.allclose(moved.estimate(theta), T @ theta)
    assert np.allclose(moved.covariance(V), T @ V @ T.T)
    for index in (np.array([0, 1]), np.array([5, 0]), np.array([2]), np.arange(6)):
        needed, rows = moved.rows(index)
        assert np.allclose(rows @ theta[needed], (T @ theta)[index])
