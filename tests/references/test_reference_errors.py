"""Bad arguments and bad combinations: what was expected, what came, what would work."""

from __future__ import annotations

import numpy as np
import pytest
from reference_cases import screen, transitions

import unnorm as un
from unnorm.errors import CombinationError, InputError
from unnorm.references import (
    BitFlip,
    Custom,
    Empirical,
    Gaussian,
    Marginal,
    Mixture,
    ProductBernoulli,
    Uniform,
    VonMises,
    VonMisesFisher,
    from_dict,
)


@pytest.mark.parametrize(
    ("reference", "domain", "works"),
    [
        (Gaussian(), un.Sphere(), r"VonMisesFisher\(\)"),
        (Gaussian(), un.BinaryVectors(3), r"ProductBernoulli\(\)"),
        (VonMises(), un.Interval(0, 1), r"Gaussian\(\)"),
        (VonMisesFisher(), un.Circle(), r"VonMises\(\)"),
        (Empirical(), un.FiniteSet([1, 2]), r"Marginal\(\)"),
        (ProductBernoulli(), un.FiniteSet([1, 2]), r"Marginal\(\)"),
        (BitFlip(), un.Interval(0, 1), r"Gaussian\(\), GaussianMixture\(\), .*Uniform\(\)"),
        (Marginal(), un.Circle(), r"VonMises\(\)"),
    ],
)
def test_wrong_domain_lists_what_works(reference, domain, works):
    with pytest.raises(CombinationError, match=rf"does not work on .*What works there: .*{works}"):
        reference.bind(domain, transitions(domain))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Gaussian(around="previous"), "around must be None, 'context'"),
        (lambda: Gaussian(scale=0), "scale must be a positive number; got 0"),
        (lambda: Gaussian(mean=np.nan), "mean of Gaussian must be finite"),
        (lambda: VonMises(kappa=-1), "kappa of VonMises must be a finite number of at least 0; got -1"),
        (lambda: VonMisesFisher(mu=(0, 0, 0)), "must be a direction"),
        (lambda: VonMisesFisher(mu=(0, 0, 1), around="context"), "mu or around, not both"),
        (lambda: Empirical(bandwidth=0.0), "bandwidth must be a positive number"),
        (lambda: Empirical(centres=0), "centres must be a whole number"),
        (lambda: Mixture(Uniform()), r"Mixture takes pairs \(weight, reference\)"),
        (lambda: Mixture((0.5, Uniform), (0.5, Uniform())), "positive weight, reference"),
        (lambda: Mixture((-1, Uniform())), "positive weight, reference"),
        (lambda: ProductBernoulli(p=1.0), "strictly between 0 and 1"),
        (lambda: ProductBernoulli(p=0.5, around="context"), "p is a pair"),
        (lambda: Marginal(add=0), "add must be a positive number"),
        (lambda: Custom(1, 2), "sample of Custom must be a function"),
        (lambda: from_dict({"reference": "Normal"}), "must be one of .*'Uniform'"),
        (lambda: from_dict({"reference": "Gaussian", "colour": 1}), "cannot be read"),
    ],
)
def test_bad_arguments(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


def test_wrong_sizes_are_found_when_bound():
    obs = transitions(screen())
    with pytest.raises(InputError, match="mean of Gaussian must be a number or 2 numbers"):
        Gaussian(mean=(1, 2, 3)).bind(screen(), obs)
    with pytest.raises(InputError, match="symmetric"):
        Gaussian(cov=((1, 2), (0, 1))).bind(screen(), obs)
    with pytest.raises(InputError, match="variances in cov of Gaussian must be positive"):
        Gaussian(cov=(1, -1)).bind(screen(), obs)
    with pytest.raises(InputError, match="positive definite"):
        Gaussian(cov=((1, 2), (2, 1))).bind(screen(), obs)
    with pytest.raises(InputError, match="around names 'a', 'b', not in the context"):
        Gaussian(around=("a", "b")).bind(screen(), obs)
    with pytest.raises(CombinationError, match="around='context' centres"):
        Gaussian(around="context").bind(screen(), un.Observations("iid", obs.outcome, ("x", "y")))
    with pytest.raises(CombinationError, match="cannot join a kernel around the observed outcome"):
        Mixture((1, Uniform()), (1, Gaussian(around="outcome"))).bind(screen(), obs)


def test_kernels_around_named_columns():
    """A regression whose covariates hold the centre: the same law as the transitions with those previous points."""
    obs = transitions(screen())
    context = {"cx": obs.context["y0_prev"], "cy": obs.context["y1_prev"], "age": np.arange(40.0)}
    regression = un.Observations("conditional", obs.outcome, obs.outcome_names, context)
    a = Gaussian(around="context").bind(screen(), obs)
    b = Gaussian(around=("cx", "cy")).bind(screen(), regression)
    at = np.arange(40)
    assert b.log_density(obs.outcome, regression, at) == pytest.approx(a.log_density(obs.outcome, obs, at))


def test_steps_back():
    """log q(y|y') of kernels around the outcome, as conditional NCE needs it: asymmetric near the boundary only."""
    omega = un.Interval(0, 1)
    y = np.array([[0.5], [0.02]])
    obs = un.Observations("iid", y, ("y",))
    q = Gaussian(mean=0.0, cov=0.01, around="outcome").bind(omega, obs)
    to = np.array([[0.55], [0.3]])
    at = np.arange(2)
    swapped = un.Observations("iid", to, ("y",))
    back = q.log_density_back(to, obs, at)
    assert back == pytest.approx(q.log_density(y, swapped, at))
    gap = q.log_density(to, obs, at) - back
    assert abs(gap[0]) < 1e-4
    assert gap[1] > 0.3

    bits = un.Observations("iid", np.eye(4), tuple("abcd"))
    flip = BitFlip().bind(un.BinaryVectors(4), bits)
    moved = flip.sample(bits, np.arange(4), np.random.default_rng(0))
    assert (np.abs(moved - np.eye(4)).sum(axis=1) == 1).all()
    assert flip.log_density_back(moved, bits, np.arange(4)) == pytest.approx(-np.log(4))
    assert flip.log_density(np.eye(4), bits, np.arange(4)).max() == -np.inf


def test_a_custom_density_must_integrate_to_one():
    obs = transitions(un.Interval(-1, 1))
    uniform = Custom(lambda rng, n, x: rng.uniform(-1, 1, n), lambda y, x: 0.0)
    with pytest.raises(InputError, match=r"integrates to 2 over Interval\(-1, 1\).*must integrate to 1"):
        uniform.bind(un.Interval(-1, 1), obs)


def test_a_custom_kernel_sees_the_previous_point():
    omega = un.Interval(-1, 1)
    obs = transitions(omega)

    def sample(rng, n, x):
        assert x.shape == (n,)
        return x + (1 - x) * rng.random(n)  # uniform on (x, 1)

    def log_density(y, x):
        return np.where(y > x, -np.log(1 - x), -np.inf)

    q = Custom(sample, log_density, name="upwards").bind(omega, obs)
    at = np.repeat(np.arange(40), 5)
    y = q.sample(obs, at, np.random.default_rng(0))
    assert (y[:, 0] > obs.previous()[at, 0]).all()
    assert q.log_density(y, obs, at) == pytest.approx(-np.log(1 - obs.previous()[at, 0]))
    with pytest.raises(CombinationError, match=r"'upwards' is a user's own pair.*Custom\(sample, log_density\)"):
        from_dict(q.to_dict())


def test_custom_points_must_lie_in_the_domain_and_have_its_shape():
    omega = un.Interval(0, 1)
    obs = un.Observations("iid", np.full((3, 1), 0.5), ("y",))
    with pytest.raises(InputError, match=r"Custom 'wide' gave [\d,]+ of [\d,]+ points outside Interval\(0, 1\)"):
        Custom(lambda rng, n, x: rng.normal(size=n), lambda y, x: np.zeros(len(y)), "wide").bind(omega, obs)
    with pytest.raises(InputError, match=r"must give an array of shape \((\d+),\); got \(\d+,\)"):
        Custom(lambda rng, n, x: rng.random(n + 1), lambda y, x: np.zeros(len(y))).bind(omega, obs)
    with pytest.raises(InputError, match=r"log_density of Custom 'one' must give one number per row"):
        Custom(lambda rng, n, x: rng.random(n), lambda y, x: np.zeros((len(y), 2)), "one").bind(omega, obs)
