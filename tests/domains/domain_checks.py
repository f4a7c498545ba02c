"""What every domain promises. Each check takes one domain; the generic tests run them over the registry."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import qmc

from unnorm.domains import REGISTRY, Domain, from_dict, quadrature_error
from unnorm.errors import InputError


def features(domain: Domain, y: np.ndarray) -> np.ndarray:
    """(n, k) smooth functions of the outcomes, periodic where the domain is, of unit size."""
    if domain.coordinate_period is not None:
        angle = y * (2 * np.pi / domain.coordinate_period)
        z = np.hstack([np.cos(angle), np.sin(angle), np.cos(2 * angle)])
    else:
        rule = domain.quadrature()
        mean = rule.weights @ rule.points / domain.volume
        sd = np.sqrt(rule.weights @ (rule.points - mean) ** 2 / domain.volume)
        z = (y - mean) / np.where(sd > 0, sd, 1.0)  # a dyad that is fixed does not vary
    d = z.shape[1]
    pairs = [z[:, i] * z[:, j] for i in range(min(d, 6)) for j in range(i, min(d, 6))]
    return np.column_stack([z, *pairs, z**3, np.exp(0.5 * z), np.exp(-0.5 * z[:, :1] + 0.3 * z[:, -1:])])


def weights_sum_to_the_volume(domain: Domain) -> None:
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
        assert rule.rule in repr(rule)


def statements_hold(domain: Domain) -> None:
    """What a domain says of itself is what it does."""
    assert domain.rule == ("enumeration" if domain.finite else "quadrature")
    assert (domain.default_order is None) == domain.finite
    y = domain.uniform(300, rng=2)
    if domain.bits is not None:
        assert domain.bits == domain.dim
        assert domain.finite
        assert domain.volume == 2.0**domain.bits
        assert np.isin(y, (0.0, 1.0)).all()
    if domain.sphere:
        np.testing.assert_allclose(np.linalg.norm(y, axis=1), 1.0, rtol=1e-12)
        assert domain.contains(-y).all()
    if domain.affine is not None:
        low, width = domain.affine
        u = np.random.default_rng(3).random((40, domain.cube_dim))
        np.testing.assert_allclose(domain.from_unit(u), low + width * u, rtol=1e-9, atol=1e-12)
    if domain.sides is not None:
        lower, upper = domain.sides
        assert lower.shape == upper.shape == (domain.dim,)
        assert np.sum(np.log(upper - lower)) == pytest.approx(domain.log_volume)
        assert domain.enclosing_box is not None
    if domain.enclosing_box is not None:
        lower, upper = domain.enclosing_box
        assert ((y >= lower) & (y <= upper)).all()
        assert domain.centre is not None
        assert domain.centre.shape == (domain.dim,)
        rule = domain.quadrature()
        np.testing.assert_allclose(domain.centre, rule.weights @ rule.points / domain.volume, rtol=1e-9, atol=1e-9)
    if domain.edges is not None:  # the shoelace formula
        (x0, y0), (x1, y1) = domain.edges[:, 0].T, domain.edges[:, 1].T
        assert 0.5 * np.sum(x0 * y1 - x1 * y0) == pytest.approx(domain.volume)
    assert (domain.edges is not None) == (domain.dim == 2 and domain.enclosing_box is not None)
    np.testing.assert_array_equal(domain.contains_interior(y), np.ones(300, dtype=bool))
    if not domain.scalar:
        assert domain.dim > 1 or domain.sides is not None or domain.finite


def from_unit_preserves_the_base_measure(domain: Domain) -> None:
    u = qmc.Sobol(domain.cube_dim, scramble=True, seed=np.random.default_rng(5)).random(2**14)
    y = domain.from_unit(u)
    assert y.shape == (2**14, domain.dim)
    assert domain.contains(y).all()
    rule = domain.quadrature()
    expected = rule.weights @ features(domain, rule.points) / domain.volume
    # Sobol error here is below 1e-3; a wrong density moves some of these moments by 0.05 or more
    np.testing.assert_allclose(features(domain, y).mean(axis=0), expected, atol=3e-3)


def from_unit_takes_the_whole_closed_cube(domain: Domain) -> None:
    k = domain.cube_dim
    corners = np.array([np.zeros(k), np.ones(k), np.r_[np.zeros(k - 1), 1.0], np.r_[1.0, np.zeros(k - 1)]])
    assert domain.contains(domain.from_unit(corners)).all()
    edge = np.random.default_rng(1).random((500, k))
    edge[:, -1] = 0.0
    assert domain.contains(domain.from_unit(edge)).all()
    edge[:, -1] = 1.0
    assert domain.contains(domain.from_unit(edge)).all()
    assert domain.from_unit(np.empty((0, k))).shape == (0, domain.dim)


def from_unit_refuses_what_is_not_in_the_cube(domain: Domain) -> None:
    with pytest.raises(InputError, match=r"every coordinate in \[0, 1\]"):
        domain.from_unit(np.full((3, domain.cube_dim), 1.5))
    with pytest.raises(InputError, match="unit cube"):
        domain.from_unit(np.full((3, domain.cube_dim), np.nan))
    with pytest.raises(InputError, match=rf"shape \(n, {domain.cube_dim}\)"):
        domain.from_unit(np.zeros((3, domain.cube_dim + 1)))


def uniform_draws_are_reproducible(domain: Domain) -> None:
    first = domain.uniform(200, rng=3)
    np.testing.assert_array_equal(first, domain.uniform(200, rng=3))
    np.testing.assert_array_equal(first, domain.uniform(200, rng=np.random.default_rng(3)))
    assert not np.array_equal(first, domain.uniform(200, rng=4))
    assert first.shape == (200, domain.dim)
    assert first.dtype == np.float64
    assert domain.uniform(0, rng=1).shape == (0, domain.dim)
    with pytest.raises(InputError, match="whole number"):
        domain.uniform(-1, rng=1)


def contains_rejects_what_is_outside(domain: Domain) -> None:
    inside = domain.uniform(5, rng=1)
    for bad in (np.nan, np.inf, -np.inf):
        y = inside.copy()
        y[2, -1] = bad
        assert domain.contains(y).tolist() == [True, True, False, True, True]
    if domain.coordinate_period is None:
        assert not domain.contains(inside + 1e4).any()
        # a point a little off a member: outside when finite; else outside when it leaves the convex hull
        if domain.finite:
            assert not domain.contains(inside + 1e-9).any()
    assert domain.contains(np.empty((0, domain.dim))).shape == (0,)


def outcomes_of_the_wrong_shape_are_refused(domain: Domain) -> None:
    with pytest.raises(InputError, match=rf"shape \(n, {domain.dim}\).*got shape \(3, {domain.dim + 1}\)"):
        domain.contains(np.zeros((3, domain.dim + 1)))
    with pytest.raises(InputError, match="numeric"):
        domain.contains(np.array([["a"] * domain.dim]))


def descriptions_pass_through_json(domain: Domain) -> None:
    again = from_dict(json.loads(json.dumps(domain.to_dict())))
    assert type(again) is type(domain)
    assert again == domain
    assert hash(again) == hash(domain)
    assert repr(again) == repr(domain)
    assert len(repr(domain)) < 300
    u = np.random.default_rng(0).random((50, domain.cube_dim))
    np.testing.assert_array_equal(again.from_unit(u), domain.from_unit(u))
    assert domain != "something else"
    assert [other == domain for other in REGISTRY.examples()].count(True) == 1


def wrapping_names_the_same_outcomes(domain: Domain) -> None:
    y = domain.uniform(50, rng=1)
    np.testing.assert_array_equal(domain.wrap(y), y)
    if domain.coordinate_period is not None:
        np.testing.assert_allclose(domain.wrap(y + 3 * domain.coordinate_period), y, atol=1e-13)


def bad_orders_are_refused(domain: Domain) -> None:
    for order in (0, -3, 2.5, True, "many"):
        if domain.finite:
            assert domain.quadrature(order).exact  # pyright: ignore[reportArgumentType]
            continue
        with pytest.raises(InputError, match="quadrature order must be a whole number of at least 1"):
            domain.quadrature(order)  # pyright: ignore[reportArgumentType]


def rules_too_large_say_their_size(domain: Domain) -> None:
    if not domain.finite:
        with pytest.raises(InputError, match=r"[\d,]{9,} nodes, more than the limit of 4,194,304"):
            domain.quadrature(5_000_000)


def constants_are_integrated_exactly(domain: Domain) -> None:
    error = quadrature_error(domain, lambda y: np.ones(len(y)))
    assert error == 0.0 if domain.finite else error < 1e-12 * domain.volume


CHECKS = (
    weights_sum_to_the_volume,
    statements_hold,
    from_unit_preserves_the_base_measure,
    from_unit_takes_the_whole_closed_cube,
    from_unit_refuses_what_is_not_in_the_cube,
    uniform_draws_are_reproducible,
    contains_rejects_what_is_outside,
    outcomes_of_the_wrong_shape_are_refused,
    descriptions_pass_through_json,
    wrapping_names_the_same_outcomes,
    bad_orders_are_refused,
    rules_too_large_say_their_size,
    constants_are_integrated_exactly,
)
