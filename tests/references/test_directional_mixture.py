"""Mixtures of directions: EM finds the components, and their points serve a fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import unnorm as un
from unnorm.errors import CombinationError, InputError
from unnorm.references.directional_mixture import fitted


@pytest.mark.parametrize("d", [2, 3])
def test_em_finds_the_components(d: int) -> None:
    rng = np.random.default_rng(1)
    centres = np.eye(3)[:, :d] if d == 3 else np.array([[1.0, 0.0], [-0.6, 0.8]])
    sizes, kappa = ([600, 300, 100], [30.0, 80.0, 15.0]) if d == 3 else ([700, 300], [10.0, 40.0])
    y = [stats.vonmises_fisher(c, k).rvs(n, random_state=rng) for c, k, n in zip(centres, kappa, sizes)]
    share, means, found = fitted(np.concatenate(y), np.ones(sum(sizes)), len(sizes))
    for c, k, n in zip(centres, kappa, sizes):
        j = int(np.argmax(means @ c))
        assert means[j] @ c > 0.99
        assert share[j] == pytest.approx(n / sum(sizes), abs=0.02)
        assert found[j] == pytest.approx(k, rel=0.25)


def test_one_component_is_von_mises_with_a_uniform_direction_beside() -> None:
    y = np.random.default_rng(2).vonmises(1.0, 4.0, 100)
    vectors = np.column_stack([np.cos(y), np.sin(y)])
    _, means, kappa = fitted(vectors, np.ones(100), 1)
    r = np.linalg.norm(vectors.sum(axis=0)) / 101
    from scipy.special import i0e, i1e

    assert i1e(kappa[0]) / i0e(kappa[0]) == pytest.approx(r, rel=1e-9)
    assert np.arctan2(*means[0][::-1]) == pytest.approx(np.angle(np.exp(1j * y).sum()))


def test_equal_points_stay_finite_and_bad_input_is_refused() -> None:
    share, _, kappa = fitted(np.tile([1.0, 0.0], (20, 1)), np.ones(20), 2)
    assert share.sum() == pytest.approx(1.0)
    assert np.all(kappa < 50)
    with pytest.raises(InputError, match="share between 0 and 1"):
        un.DirectionalMixture(uniform=1.0)
    with pytest.raises(InputError, match="whole number"):
        un.DirectionalMixture(components=0)
    with pytest.raises(CombinationError, match="a circle or the unit sphere"):
        un.DirectionalMixture().bind(un.Interval(0, 1), un.iid([0.1, 0.2]))


def test_its_points_serve_a_sharp_law_with_two_modes() -> None:
    rng = np.random.default_rng(3)
    y = np.concatenate([rng.vonmises(0.5, 300.0, 300), rng.vonmises(0.5 + np.pi, 300.0, 200)])
    family = un.directions.generalised_von_mises((1, 2))
    ml = un.fit_direction(family, un.iid(y))
    logistic = [
        un.fit_direction(family, un.iid(y), un.Logistic(q, total=5000, points=un.IID()), rng=1)
        for q in (un.DirectionalMixture(2), un.Uniform())
    ]
    shares = [np.sqrt(np.diag(fit.fit.errors.reference) / np.diag(ml.fit.covariance)) for fit in logistic]
    assert np.all(np.abs(logistic[0].fit.estimate - ml.fit.estimate) < 4 * shares[0] * ml.fit.se)
    assert shares[0].max() < 0.5 * shares[1].max()
