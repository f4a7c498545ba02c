"""What every registered domain promises, tested over the registry's examples."""

import doctest
import importlib
import json

import numpy as np
import pytest
from scipy.stats import qmc

from unnorm import domains
from unnorm.domains import REGISTRY, Domain, from_dict
from unnorm.errors import InputError

EXAMPLES = [make() for entry in REGISTRY.values() for make in entry.examples]
every = pytest.mark.parametrize("domain", EXAMPLES, ids=repr)


def features(domain: Domain, y: np.ndarray) -> np.ndarray:
    """(n, k) smooth functions of the outcomes, periodic where the domain is, of unit size."""
    if domain.period is not None:
        angle = y * (2 * np.pi / domain.period)
        z = np.hstack([np.cos(angle), np.sin(angle), np.cos(2 * angle)])
    else:
        rule = domain.quadrature()
        mean = rule.weights @ rule.points / domain.volume
        sd = np.sqrt(rule.weights @ (rule.points - mean) ** 2 / domain.volume)
        z = (y - mean) / sd
    d = z.shape[1]
    pairs = [z[:, i] * z[:, j] for i in range(min(d, 6)) for j in range(i, min(d, 6))]
    return np.column_stack([z, *pairs, z**3, np.exp(0.5 * z), np.exp(-0.5 * z[:, :1] + 0.3 * z[:, -1:])])


def test_the_registry_covers_every_public_domain() -> None:
    classes = {name for name in domains.__all__ if isinstance(getattr(domains, name), type)}
    assert classes - {"Domain", "Quadrature"} == set(REGISTRY)
    for name, entry in REGISTRY.items():
        assert entry.cls.__name__ == name
        assert entry.examples
        assert all(type(make()) is entry.cls for make in entry.examples)


@every
def test_weights_sum_to_the_volume(domain: Domain) -> None:
    for order in (None, 7):
        rule = domain.quadrature(order)
        assert rule.points.shape == (len(rule.weights), domain.dim)
        assert rule.points.dtype == rule.weights.dtype == np.float64
        assert (rule.weights > 0).all()
        assert rule.weights.sum() == pytest.approx(domain.volume, rel=1e-13)
        assert np.exp(domain.log_volume) == pytest.approx(domain.volume, rel=1e-13)
        assert domain.contains(rule.points).all()
        assert rule.exact == domain.finite
        assert rule.rule
    assert (domain.default_order is None) == domain.finite


@every
def test_from_unit_preserves_the_base_measure(domain: Domain) -> None:
    u = qmc.Sobol(domain.cube_dim, scramble=True, seed=np.random.default_rng(5)).random(2**14)
    y = domain.from_unit(u)
    assert y.shape == (2**14, domain.dim)
    assert domain.contains(y).all()
    rule = domain.quadrature()
    expected = rule.weights @ features(domain, rule.points) / domain.volume
    # Sobol error here is below 1e-3; a wrong density moves some of these moments by 0.05 or more
    np.testing.assert_allclose(features(domain, y).mean(axis=0), expected, atol=3e-3)


@every
def test_from_unit_takes_the_whole_closed_cube(domain: Domain) -> None:
    k = domain.cube_dim
    corners = np.array([np.zeros(k), np.ones(k), np.r_[np.zeros(k - 1), 1.0], np.r_[1.0, np.zeros(k - 1)]])
    assert domain.contains(domain.from_unit(corners)).all()
    edge = np.random.default_rng(1).random((500, k))
    edge[:, -1] = 0.0
    assert domain.contains(domain.from_unit(edge)).all()
    edge[:, -1] = 1.0
    assert domain.contains(domain.from_unit(edge)).all()
    assert domain.from_unit(np.empty((0, k))).shape == (0, domain.dim)


@every
def test_from_unit_refuses_what_is_not_in_the_cube(domain: Domain) -> None:
    with pytest.raises(InputError, match=r"every coordinate in \[0, 1\]"):
        domain.from_unit(np.full((3, domain.cube_dim), 1.5))
    with pytest.raises(InputError, match="unit cube"):
        domain.from_unit(np.full((3, domain.cube_dim), np.nan))
    with pytest.raises(InputError, match=rf"shape \(n, {domain.cube_dim}\)"):
        domain.from_unit(np.zeros((3, domain.cube_dim + 1)))


@every
def test_uniform_draws_are_reproducible(domain: Domain) -> None:
    first = domain.uniform(200, rng=3)
    np.testing.assert_array_equal(first, domain.uniform(200, rng=3))
    np.testing.assert_array_equal(first, domain.uniform(200, rng=np.random.default_rng(3)))
    assert not np.array_equal(first, domain.uniform(200, rng=4))
    assert first.shape == (200, domain.dim)
    assert first.dtype == np.float64
    assert domain.uniform(0, rng=1).shape == (0, domain.dim)
    with pytest.raises(InputError, match="whole number"):
        domain.uniform(-1, rng=1)


@every
def test_contains_rejects_what_is_outside(domain: Domain) -> None:
    inside = domain.uniform(5, rng=1)
    for bad in (np.nan, np.inf, -np.inf):
        y = inside.copy()
        y[2, -1] = bad
        assert domain.contains(y).tolist() == [True, True, False, True, True]
    if domain.period is None:
        assert not domain.contains(inside + 1e4).any()
        # a point a little off a member: outside when finite; else outside when it leaves the convex hull
        if domain.finite:
            assert not domain.contains(inside + 1e-9).any()
    assert domain.contains(np.empty((0, domain.dim))).shape == (0,)


@every
def test_outcomes_of_the_wrong_shape_are_refused(domain: Domain) -> None:
    with pytest.raises(InputError, match=rf"shape \(n, {domain.dim}\).*got shape \(3, {domain.dim + 1}\)"):
        domain.contains(np.zeros((3, domain.dim + 1)))
    with pytest.raises(InputError, match="numeric"):
        domain.contains(np.array([["a"] * domain.dim]))


@every
def test_descriptions_pass_through_json(domain: Domain) -> None:
    again = from_dict(json.loads(json.dumps(domain.to_dict())))
    assert type(again) is type(domain)
    assert again == domain
    assert hash(again) == hash(domain)
    assert repr(again) == repr(domain)
    u = np.random.default_rng(0).random((50, domain.cube_dim))
    np.testing.assert_array_equal(again.from_unit(u), domain.from_unit(u))
    assert domain != "something else"
    assert [other == domain for other in EXAMPLES].count(True) == 1


@every
def test_wrapping_names_the_same_outcomes(domain: Domain) -> None:
    y = domain.uniform(50, rng=1)
    np.testing.assert_array_equal(domain.wrap(y), y)
    if domain.period is not None:
        np.testing.assert_allclose(domain.wrap(y + 3 * domain.period), y, atol=1e-13)


@every
@pytest.mark.parametrize("order", [0, -3, 2.5, True, "many"])
def test_bad_orders_are_refused(domain: Domain, order: object) -> None:
    if domain.finite:
        assert domain.quadrature(order).exact  # pyright: ignore[reportArgumentType]
        return
    with pytest.raises(InputError, match="quadrature order must be a whole number of at least 1"):
        domain.quadrature(order)  # pyright: ignore[reportArgumentType]


@every
def test_rules_too_large_say_their_size(domain: Domain) -> None:
    if not domain.finite:
        with pytest.raises(InputError, match=r"[\d,]{9,} nodes, more than the limit of 4,194,304"):
            domain.quadrature(5_000_000)


def test_unreadable_descriptions() -> None:
    with pytest.raises(InputError, match=r"must be one of 'Interval'.*got 'Torus'"):
        from_dict({"domain": "Torus"})
    with pytest.raises(InputError, match="got None"):
        from_dict({})
    with pytest.raises(InputError, match="description of a Interval lacks 'upper'"):
        from_dict({"domain": "Interval", "lower": 0.0})


@pytest.mark.parametrize("name", ["accuracy", "boxes", "finite", "graphs", "registry", "round", "window"])
def test_examples_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"unnorm.domains.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
