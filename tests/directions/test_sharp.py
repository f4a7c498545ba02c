"""Directions within thousandths of a radian: families fit, as normal laws would, or say why they do not."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import NoEstimateError

d = un.directions
N = 200


def _angles(kappa: float) -> np.ndarray:
    return 1.0 + np.random.default_rng(5).normal(size=N) / np.sqrt(kappa)


def _vectors(kappa: float, other: float) -> np.ndarray:
    rng = np.random.default_rng(6)
    u, v = rng.normal(size=N) / np.sqrt(kappa), rng.normal(size=N) / np.sqrt(other)
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    return np.column_stack([u, v, np.sqrt(1 - u * u - v * v)]) @ Q.T


@pytest.mark.parametrize("kappa", [1e5, 1e6])
def test_closed_forms_are_those_of_normal_laws(kappa: float) -> None:
    """1 − R̄ = 1/(2κ) + O(κ⁻²) on the circle and 1/κ on the sphere, with errors κ√(2/n) and κ/√n."""
    angles = _angles(kappa)
    fit = un.fit_direction(d.von_mises(), un.iid(angles))
    mean, size = fit.rows()
    assert fit.fit.converged
    assert size.estimate == pytest.approx(1 / angles.var(), rel=1e-4)
    assert size.se == pytest.approx(size.estimate * np.sqrt(2 / N), rel=0.01)
    assert mean.se == pytest.approx(angles.std() / np.sqrt(N), rel=1e-3)
    vectors = _vectors(kappa, kappa)
    fit = un.fit_direction(d.von_mises_fisher(), un.iid(vectors))
    spread = vectors.var(axis=0).sum()
    assert fit.fit.converged
    assert fit.parameters["kappa"] == pytest.approx(2 / spread, rel=1e-3)
    assert fit.rows()[-1].se == pytest.approx(2 / spread / np.sqrt(N), rel=0.01)


def test_kent_at_ten_to_the_fifth_is_a_normal_law() -> None:
    """κ ∓ 2β are the inverse variances along the major and minor axes."""
    y = _vectors(1e5, 2e5)
    fit = un.fit_direction(d.kent(), un.iid(y))
    least, most = np.sort(np.linalg.eigvalsh(np.cov(y.T, bias=True)))[1:]
    kappa, beta = fit.parameters["kappa"], fit.parameters["beta"]
    assert fit.fit.converged
    assert kappa - 2 * beta == pytest.approx(1 / most, rel=1e-3)
    assert kappa + 2 * beta == pytest.approx(1 / least, rel=1e-3)


@pytest.mark.parametrize(
    ("family", "y"),
    [
        (d.von_mises(), _angles(1e7)),
        (d.von_mises_fisher(), _vectors(1e7, 1e7)),
        (d.bingham(), _vectors(1e6, 2e6)),
        (d.watson(), _vectors(1e7, 1e7) * np.where(np.arange(N) % 2, 1.0, -1.0)[:, None]),
        (d.generalised_von_mises((1, 2)), _angles(1e6)),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_what_cannot_be_computed_says_so(family: un.directions.Family, y: np.ndarray) -> None:
    with pytest.raises(NoEstimateError, match=rf"cannot be computed in the {family.name} family.*by a normal law"):
        un.fit_direction(family, un.iid(y))


def test_wrapped_laws_have_no_limit() -> None:
    angles = _angles(1e7)
    fit = un.fit_direction(d.wrapped_normal(), un.iid(angles))
    assert fit.parameters["sigma"] == pytest.approx(angles.std(), rel=1e-4)
    assert fit.rows()[-1].se == pytest.approx(angles.std() / np.sqrt(2 * N), rel=0.01)
