"""Point schemes: the right numbers in the right places, independent sets, and far less noise than IID points."""

from __future__ import annotations

import numpy as np
import pytest
from reference_cases import interval, screen, transitions
from scheme_checks import CHECKS

import unnorm as un
from unnorm._base.lattices import kronecker
from unnorm.errors import CombinationError, InputError
from unnorm.references import IID, SCHEMES, Custom, Lattice, Sobol, Stratified, Uniform
from unnorm.references.ordering import order
from unnorm.references.points import cells


@pytest.mark.parametrize("scheme", SCHEMES.examples(), ids=repr)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_scheme(check, scheme):
    check(scheme)


@pytest.mark.parametrize(("k", "d"), [(1, 1), (10, 1), (7, 2), (20, 2), (13, 3), (100, 5)])
def test_strata_fill_the_cube(k, d):
    low, width = cells(k, d)
    assert low.shape == width.shape == (k, d)
    assert np.prod(width, axis=1) == pytest.approx(np.full(k, 1 / k))
    u = np.random.default_rng(0).random((2000, 1, d))
    inside = ((u >= low) & (u < low + width)).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()


def test_stratified_points_lie_one_in_each_stratum():
    obs = transitions(interval(), n=50)
    y = Stratified().draw(Uniform().bind(interval(), obs), obs, per_point=10, rng=0).outcome.reshape(50, 10)
    assert np.array_equal(np.sort(np.floor((y + 1) * 5), axis=1), np.tile(np.arange(10.0), (50, 1)))


def test_generators_of_the_lattice():
    assert kronecker(1) == pytest.approx([(np.sqrt(5) - 1) / 2])
    rho = np.real(np.roots([1, 0, -1, -1])[0])  # the plastic number
    assert kronecker(2) == pytest.approx([1 / rho, 1 / rho**2])
    assert kronecker(10) == pytest.approx(np.sqrt([2, 3, 5, 7, 11, 13, 17, 19, 23, 29]) % 1)


def test_lattice_on_a_line_is_equally_spaced_and_pairs_neighbours():
    """Each context has k equally spaced points; read in order, contexts 2i and 2i + 1 mirror each other."""
    obs = transitions(interval(), n=30)
    y = Lattice().draw(Uniform().bind(interval(), obs), obs, per_point=4, rng=0).outcome.reshape(30, 4)
    y = y[order(obs.previous())]
    assert np.allclose(np.diff(y, axis=1), 0.5)
    assert np.allclose(y[1::2], -y[::2, ::-1])
    delta = 2 * (y[::2, 0] + 1)
    advance = np.diff(delta) % 1
    assert np.allclose(advance, kronecker(1)[0])


def test_lattice_in_the_plane_gives_neighbours_consecutive_points():
    obs = transitions(screen(), n=30)
    y = Lattice().draw(Uniform("places").bind(screen(), obs), obs, per_point=4, rng=0).outcome.reshape(30, 4, 2)
    u = (y / [8, 6])[order(obs.previous())].reshape(-1, 2)
    advance = np.diff(u, axis=0) % 1
    assert np.abs((advance - kronecker(2) + 0.5) % 1 - 0.5).max() < 1e-9


def chain_noise(scheme, omega, obs, q, k, g, reps=60):
    """Monte Carlo standard deviation of Σ_t Σ_j g(r_tj, x_t)/q."""
    rng = np.random.default_rng(7)
    totals = []
    for _ in range(reps):
        drawn = scheme.draw(q, obs, per_point=k, rng=rng)
        totals.append(g(drawn.outcome, obs.previous()[drawn.t]).sum(axis=0))
    return np.std(totals, axis=0)


def toy(y, x):
    """Score terms of the toy chain's classifier (eq. 4.2) at θ = (0.5, 5)."""
    f = 0.5 * y[:, 0] - 2.5 * (y[:, 0] - x[:, 0]) ** 2
    p = 1 / (1 + np.exp(-f))
    return np.column_stack([p, p * y[:, 0], p * (y[:, 0] - x[:, 0]) ** 2, p * np.cos(3 * x[:, 0])])


@pytest.mark.parametrize(
    ("scheme", "ratio"), [(Stratified(), 0.3), (Sobol(), 0.12), (Lattice(), 0.02), (Lattice(5), 0.04)], ids=repr
)
def test_noise_on_the_toy_chain(scheme, ratio):
    """Shares of the IID sd at k = 10: METHODS.md has .3 for strata, .2 for Sobol points, at fitted θ."""
    obs = transitions(interval(), n=500)
    q = Uniform().bind(interval(), obs)
    share = chain_noise(scheme, interval(), obs, q, 10, toy) / chain_noise(IID(), interval(), obs, q, 10, toy)
    assert (share < ratio).all()


def planar(y, x):
    step = y - x
    r, angle = np.hypot(*step.T), np.arctan2(step[:, 1], step[:, 0])
    centre = np.hypot(y[:, 0] / 8 - 0.5, y[:, 1] / 6 - 0.5)
    p = 1 / (1 + 4 * np.exp(0.5 * r - 0.5 * np.cos(4 * angle) + 2 * centre - 1))
    return p[:, None] * np.column_stack([r, np.exp(-r), np.cos(angle), centre, np.exp(-5 * centre), x[:, 0]])


PLANAR = (
    ("places", Stratified(), 0.75),
    ("places", Sobol(), 0.5),
    ("places", Lattice(), 0.35),
    ("steps", Sobol(), 0.25),
    ("steps", Lattice(), 0.2),
)


@pytest.mark.parametrize(("along", "scheme", "ratio"), PLANAR, ids=repr)
def test_noise_on_a_planar_chain(along, scheme, ratio):
    """k = 20, in Hilbert order. METHODS.md has about ⅔ for Sobol per context, ⅓ for Sobol and ¼ for the lattice, all
    along places; along steps there is less than half of that."""
    obs = transitions(screen(), n=630)
    q = Uniform(along).bind(screen(), obs)
    share = chain_noise(scheme, screen(), obs, q, 20, planar) / chain_noise(IID(), screen(), obs, q, 20, planar)
    assert share.mean() < ratio
    assert share.max() < 1.5 * ratio


def test_uniform_points_along_steps():
    """Spread over steps, the lattice is the same around every context, but for the turn of the box."""
    omega = screen()
    obs = transitions(omega, n=200)
    q = Uniform().bind(omega, obs)
    assert q.reference.along == "steps"
    y = Lattice().draw(q, obs, per_point=5, rng=0).outcome.reshape(200, 5, 2)
    u = ((y - obs.previous()[:, None]) / [8, 6] % 1)[order(obs.previous())].reshape(-1, 2)
    advance = np.diff(u, axis=0) % 1
    assert np.abs((advance - kronecker(2) + 0.5) % 1 - 0.5).max() < 1e-9
    assert Uniform().bind(interval(), transitions(interval())).reference.along == "places"
    iid = un.Observations("iid", obs.outcome, ("x", "y"))
    assert Uniform().bind(omega, iid).reference.along == "places"
    with pytest.raises(CombinationError, match="needs transitions"):
        Uniform("steps").bind(omega, iid)
    with pytest.raises(InputError, match="along must be one of 'steps', 'places'"):
        Uniform("squares")


def test_lattice_for_iid_data():
    """A smooth integral over the plane by 1,000 shared points: a hundredth of the IID variance and less."""
    omega = screen()
    obs = un.Observations("iid", omega.uniform(30, 0), ("x", "y"))
    q = Uniform().bind(omega, obs)
    sd = {}
    for scheme in (IID(), Stratified(), Lattice(), Sobol()):
        draws = [scheme.draw(q, obs, total=1000, rng=seed).outcome for seed in range(80)]
        sd[scheme] = np.std([np.mean(np.exp(-0.1 * ((y - [3, 2]) ** 2).sum(axis=1))) for y in draws])
    assert sd[Stratified()] < 0.15 * sd[IID()]
    assert sd[Sobol()] < 0.05 * sd[IID()]
    assert sd[Lattice()] < 0.02 * sd[IID()]


def test_randomisations_are_independent():
    """Means over different sets of the same draw are uncorrelated."""
    obs = transitions(interval(), n=20)
    q = Uniform().bind(interval(), obs)
    means = []
    for seed in range(300):
        drawn = Lattice(2).draw(q, obs, per_point=4, rng=seed)
        means.append([np.exp(drawn.outcome[drawn.randomisation == r]).mean() for r in (1, 2)])
    assert abs(np.corrcoef(np.array(means).T)[0, 1]) < 0.2


def test_what_schemes_refuse():
    obs = transitions(interval())
    q = Uniform().bind(interval(), obs)
    iid = un.Observations("iid", obs.outcome, ("y",))
    with pytest.raises(InputError, match=r"With transitions observations give per_point.*total=100.*per_point=20"):
        Lattice().draw(q, obs, total=100)
    with pytest.raises(InputError, match=r"With iid observations give total.*share all reference points"):
        Lattice().draw(q, iid, per_point=10)
    with pytest.raises(InputError, match="give per_point"):
        Lattice().draw(q, obs, per_point=3, total=4)
    for bad in (0, 2.5, True, "3"):
        with pytest.raises(InputError, match="per_point must be a whole number"):
            Lattice().draw(q, obs, per_point=bad)
    with pytest.raises(InputError, match="5 randomisations need at least 5 reference points"):
        Lattice(5).draw(q, obs, per_point=4)
    with pytest.raises(InputError, match="randomisations must be a whole number"):
        Sobol(0)
    pair = Custom(lambda rng, n, x: rng.uniform(-1, 1, n), lambda y, x: np.full(len(y), -np.log(2)))
    with pytest.raises(CombinationError, match=r"Lattice needs a map from the unit cube.*points=IID\(\)"):
        Lattice().draw(pair.bind(interval(), obs), obs, per_point=4)
    assert IID().draw(pair.bind(interval(), obs), obs, per_point=4, rng=0).outcome.shape == (160, 1)
