import doctest

import numpy as np
import pytest
from scipy.special import i0, logsumexp
from scipy.stats import chi2, norm, poisson

import unnorm.domains.process
from unnorm._base.numerics import x64
from unnorm.domains import (
    REGISTRY,
    Axis,
    BinaryVectors,
    Box,
    Circle,
    Domain,
    FiniteSet,
    Graphs,
    Interval,
    Sphere,
    Torus,
    Window,
)  # fmt: skip
from unnorm.domains.process import PoissonProcess
from unnorm.errors import EstimationError, InputError, OutsideError, UnnormWarning

THETA = 0.7


def first(y):
    """θ y on scalar domains, θ y₁ elsewhere."""
    return THETA * y if getattr(y, "ndim", 0) == 0 else THETA * y[0]


def cosine(y):
    import jax.numpy as jnp

    return 3.0 + 2.0 * jnp.cos(y - 0.4)


# domain, log λ, and log ∫ λ dμ in closed form
CASES = {
    "Interval": (Interval(-1, 2), first, np.log((np.exp(2 * THETA) - np.exp(-THETA)) / THETA)),
    "Box": (Box((0, 1), (0, 3), (-1, 1)), first, np.log(6 * np.expm1(THETA) / THETA)),
    "Window": (  # a rectangle less a rectangle
        Window([(0, 0), (3, 0), (3, 2), (0, 2)], [[(1, 0.5), (2, 0.5), (2, 1.5), (1, 1.5)]]),
        first,
        np.log((2 * np.expm1(3 * THETA) - (np.exp(2 * THETA) - np.exp(THETA))) / THETA),
    ),
    "Circle": (Circle(), cosine, 3.0 + np.log(2 * np.pi * i0(2.0))),
    "Sphere": (Sphere(), lambda y: 2.0 * y[2] - 1.0, -1.0 + np.log(4 * np.pi * np.sinh(2.0) / 2.0)),
    "Axis": (Axis(), lambda y: cosine(2 * y - 0.4), 3.0 + np.log(np.pi * i0(2.0))),
    "Torus": (Torus(), lambda y: cosine(y[0]) + cosine(y[1]), 6.0 + 2 * np.log(2 * np.pi * i0(2.0))),
    "FiniteSet": (FiniteSet([1, 2, 5], weights=[1, 3, 0.5]), first, logsumexp([0.7, 1.4, 3.5], b=[1, 3, 0.5])),
    "BinaryVectors": (BinaryVectors(8), lambda y: THETA * y.sum(), 8 * np.log1p(np.exp(THETA))),
    "Graphs": (Graphs(4), lambda y: THETA * y.sum() - 1.0, 6 * np.log1p(np.exp(THETA)) - 1.0),
}
every = pytest.mark.parametrize("name", CASES)


@pytest.mark.parametrize("domain", REGISTRY.examples(), ids=repr)
def test_a_constant_intensity_on_every_domain(domain: Domain) -> None:
    """λ = 20/|Ω|: twenty points on average, uniform, wherever Ω is."""
    log_rate = np.log(20.0) - domain.log_volume
    process = PoissonProcess(lambda y: log_rate, domain)
    assert process.mean_count() == pytest.approx(20.0)
    rng = np.random.default_rng(3)
    draws = [process.simulate(rng) for _ in range(100)]
    assert abs(sum(map(len, draws)) - 2000) < 4.5 * np.sqrt(2000)
    assert domain.contains(np.concatenate(draws)).all()
    assert process.loglik(draws[0]) == pytest.approx(len(draws[0]) * log_rate - 20.0)


@every
def test_loglik_against_closed_forms(name: str) -> None:
    domain, log_intensity, log_total = CASES[name]
    process = PoissonProcess(log_intensity, domain)
    points = np.concatenate([domain.uniform(40, rng=1)] * 2)  # with repeats
    with x64():
        by_hand = sum(float(log_intensity(y[0] if domain.scalar else y)) for y in points) - np.exp(log_total)
    assert process.mean_count() == pytest.approx(np.exp(log_total), rel=1e-12)
    assert process.loglik(points) == pytest.approx(by_hand, rel=1e-12)
    assert process.loglik(np.empty((0, domain.dim))) == pytest.approx(-np.exp(log_total), rel=1e-12)


def test_loglik_on_a_finite_domain_is_that_of_poisson_counts() -> None:
    """Up to Σ n log w − log n!, which does not depend on λ: differences between two intensities are equal."""
    domain = FiniteSet([1, 2, 5], weights=[1, 3, 0.5])
    counts = np.array([4, 0, 7])
    points = np.repeat(domain.values, counts, axis=0)

    def both(theta: float) -> tuple[float, float]:
        rates = domain.weights * np.exp(theta * domain.values[:, 0])
        return PoissonProcess(lambda y: theta * y, domain).loglik(points), poisson.logpmf(counts, rates).sum()

    (ours, theirs), (ours2, theirs2) = both(0.3), both(-0.2)
    assert ours - ours2 == pytest.approx(theirs - theirs2, rel=1e-12)


@every
def test_counts_follow_the_poisson_law(name: str) -> None:
    domain, log_intensity, log_total = CASES[name]
    shift = np.log(12.0) - log_total  # twelve points on average
    process = PoissonProcess(lambda y: log_intensity(y) + shift, domain)
    rng = np.random.default_rng(11)
    draws = [process.simulate(rng) for _ in range(400)]
    counts = np.array([len(points) for points in draws])
    assert process.mean_count() == pytest.approx(12.0)
    # χ² against the Poisson law over bins of about equal probability
    edges = np.unique(poisson.ppf(np.linspace(0, 1, 9)[1:-1], 12.0))
    observed = np.bincount(np.searchsorted(edges, counts), minlength=len(edges) + 1)
    expected = 400 * np.diff(np.r_[0.0, poisson.cdf(edges, 12.0), 1.0])
    assert ((observed - expected) ** 2 / expected).sum() < chi2.ppf(0.9999, len(edges))
    # and the points follow λ: sums of functions over the points have mean ∫ g λ and variance ∫ g² λ (Campbell)
    points = np.concatenate(draws)
    assert points.shape[1] == domain.dim
    assert domain.contains(points).all()
    rule = domain.quadrature()
    for g in (np.sin, np.cos, lambda y: np.exp(0.3 * y)):
        values, nodes = g(points), g(rule.points)
        rate = 400 * rule.weights * np.exp(process.log_intensity(rule.points))
        z = (values.sum(axis=0) - rate @ nodes) / np.sqrt(rate @ nodes**2)
        assert np.abs(z).max() < norm.isf(1e-5 / 2)


@every
def test_simulation_is_reproducible(name: str) -> None:
    domain, log_intensity, _ = CASES[name]
    process = PoissonProcess(log_intensity, domain)
    np.testing.assert_array_equal(process.simulate(3), process.simulate(3))
    np.testing.assert_array_equal(process.simulate(3), PoissonProcess(log_intensity, domain).simulate(3))


def test_a_realistic_pattern() -> None:
    """A hundred thousand points on a screen, several blocks of proposals, against cell counts."""
    domain = Box((0, 800), (0, 600))

    def log_intensity(y):
        return np.log(0.5) - 0.5 * (((y[0] - 300) / 150) ** 2 + ((y[1] - 350) / 100) ** 2)

    process = PoissonProcess(log_intensity, domain, log_bound=np.log(0.5))
    points = process.simulate(rng=2)
    x, y = (np.diff(norm.cdf(np.linspace(0, top, 9), c, s)) for top, c, s in ((800, 300, 150), (600, 350, 100)))
    expected = 0.5 * 2 * np.pi * 150 * 100 * np.outer(x, y)
    assert process.mean_count() == pytest.approx(expected.sum(), rel=1e-9)
    observed = np.histogram2d(*points.T, bins=8, range=[(0, 800), (0, 600)])[0]
    assert ((observed - expected) ** 2 / expected).sum() < chi2.ppf(0.9999, 64)


def test_a_given_bound_that_is_none_raises() -> None:
    process = PoissonProcess(lambda y: 5.0 + y, Interval(0, 1), log_bound=5.5)
    with pytest.raises(InputError, match=r"log_bound = 5.5 is not a bound of log λ: log λ = .* Pass a log_bound"):
        process.simulate(rng=1)
    assert len(PoissonProcess(lambda y: 5.0 + y, Interval(0, 1), log_bound=6.0).simulate(rng=1)) > 100


def test_an_estimated_bound_that_is_too_low_raises() -> None:
    import jax.numpy as jnp

    def needle(y):  # 1e-4 of the interval wide: the search misses it, one of 23,000 draws does not
        return 10.0 + jnp.where(jnp.abs(y - np.sqrt(0.5)) < 5e-5, 1.0, 0.0)

    process = PoissonProcess(needle, Interval(0, 1))
    assert process.log_bound == pytest.approx(10.0 + np.log(1.05))
    with pytest.raises(
        EstimationError, match=r"The estimated bound of log λ, 10.\d+, is too low: log λ = 11 at y = 0.707"
    ):
        process.simulate(rng=3)
    given = PoissonProcess(needle, Interval(0, 1), log_bound=11.0)
    assert len(given.simulate(rng=1)) > 20_000


@pytest.mark.parametrize("name", [name for name in CASES if not CASES[name][0].finite])
def test_the_estimated_bound_holds_and_is_tight(name: str) -> None:
    domain, log_intensity, _ = CASES[name]
    process = PoissonProcess(log_intensity, domain)
    top = {"Interval": 1.4, "Box": 0.7, "Window": 2.1, "Circle": 5.0, "Sphere": 1.0, "Axis": 5.0, "Torus": 10.0}[name]
    assert top < process.log_bound < top + 0.06


def test_a_narrow_peak_is_found() -> None:
    domain = Box((0, 1), (0, 1))
    process = PoissonProcess(lambda y: 3.0 - 0.5 * (((y - np.array([0.12345, 0.6789])) / 0.004) ** 2).sum(), domain)
    assert process.log_bound == pytest.approx(3.0 + np.log(1.05), abs=1e-4)


def test_zero_intensity() -> None:
    import jax.numpy as jnp

    process = PoissonProcess(lambda y: jnp.where(y > 0.5, 3.0, -jnp.inf), Interval(0, 1))
    points = process.simulate(rng=1)
    assert len(points) > 0
    assert (points > 0.5).all()
    assert process.loglik(np.array([[0.25]]), order=2000) == -np.inf
    nothing = PoissonProcess(lambda y: -jnp.inf, Sphere())
    assert nothing.simulate(rng=1).shape == (0, 3)
    assert nothing.mean_count() == 0.0


def test_a_rule_too_coarse_warns() -> None:
    process = PoissonProcess(lambda y: 8.0 - 0.5 * (y / 2e-3) ** 2, Interval(-1, 1))
    with pytest.warns(UnnormWarning, match=r"uncertain.*Pass a larger order \(this one: 100\)"):
        process.mean_count()
    assert process.mean_count(order=2000) == pytest.approx(np.exp(8.0) * np.sqrt(2 * np.pi) * 2e-3, rel=1e-10)


def test_points_outside_are_refused() -> None:
    process = PoissonProcess(first, Interval(0, 1))
    with pytest.raises(OutsideError, match=r"2 of 4 points are outside Interval\(0, 1\), the first in row 1: 1.5"):
        process.loglik(np.array([0.5, 1.5, 0.2, np.nan]))


def test_float64_throughout() -> None:
    import jax

    process = PoissonProcess(lambda y: y * 1e-9 + 1.0, Interval(0, 1))
    assert process.log_intensity(np.array([[0.5]]))[0] == 1.0 + 0.5e-9
    assert not jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]


def test_bad_intensities() -> None:
    import jax.numpy as jnp

    domain = Box((0, 1), (0, 1))
    y = domain.uniform(3, rng=1)
    with pytest.raises(InputError, match=r"one number for one point; it returned shape \(2,\)"):
        PoissonProcess(lambda y: y, domain).log_intensity(y)
    with pytest.raises(InputError, match="must be JAX-traceable"):
        PoissonProcess(lambda y: np.sin(np.asarray(y)).sum(), domain).log_intensity(y)
    with pytest.raises(InputError, match="must be JAX-traceable"):
        PoissonProcess(lambda y: 1.0 if y[0] > 0 else 0.0, domain).log_intensity(y)
    with pytest.raises(InputError, match=r"it is nan at 3 of 3 points, the first y = \(0.5"):
        PoissonProcess(lambda y: jnp.log(-y[0]), domain).log_intensity(y)
    with pytest.raises(InputError, match="must be a function of one point"):
        PoissonProcess(3.0, domain)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="log_bound must be a number"):
        PoissonProcess(first, domain, log_bound=np.nan)
    with pytest.raises(InputError, match=r"propose about 2.7e\+43 points.*tighter log_bound"):
        PoissonProcess(first, domain, log_bound=100.0).simulate(rng=1)


def test_a_domain_too_large_says_so() -> None:
    process = PoissonProcess(lambda y: y.sum(), BinaryVectors(30))
    for call in (process.mean_count, process.simulate):
        with pytest.raises(InputError, match=r"2\*\*30 = 1,073,741,824 states"):
            call()


def test_constant_intensities_need_no_jax_code() -> None:
    domain: Domain = Circle()
    assert PoissonProcess(lambda y: 0.0, domain).mean_count() == pytest.approx(2 * np.pi)


def test_examples_run() -> None:
    result = doctest.testmod(unnorm.domains.process)
    assert result.attempted > 0
    assert result.failed == 0
