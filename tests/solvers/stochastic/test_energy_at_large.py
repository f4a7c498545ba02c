"""An energy of 50 pixels whose constant and whose maximum are known: `converged`, log Z and its error are the truth."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("optax")
import unnorm as un
from unnorm.errors import UnnormWarning

PATH = Path(__file__).parents[3] / "examples" / "patches.py"


@pytest.fixture(scope="module")
def patches():
    spec = importlib.util.spec_from_file_location("patches", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["patches"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def texture(patches):
    """5 × 10 pixels: 85 pairs and 50 pixels, 135 parameters, 2,000 pieces."""
    texture, rng = patches.Texture(5, 10), np.random.default_rng(1)
    truth = np.log(np.concatenate([rng.uniform(0.5, 2.0, 85), rng.uniform(0.4, 0.8, 50)]))
    y = rng.multivariate_normal(np.zeros(50), np.linalg.inv(texture.precision(truth)), 2000)
    return texture, y, truth


def test_converged_is_the_truth(texture) -> None:
    """The move that is left, root mean square in standard errors: predicted within a factor of two, and `converged`
    exactly where it is below 0.3."""
    texture, y, _ = texture
    best, se = texture.maximum(y)
    obs, q = un.iid(y), un.Gaussian(diagonal=False)
    seen = []
    for steps in (60, 1500):
        solver = un.SGD(steps=steps, batch=500, references=4, reference=q, points=un.IID())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnnormWarning)
            fit = un.fit(texture.model(), obs, un.Poisson(), solver=solver, rng=2)
        left = float(np.sqrt(np.mean(((fit.estimate - best) / se) ** 2)))
        seen.append((fit.converged, left))
        if left > 0.3:
            assert fit.diagnostics["left_in_se"] == pytest.approx(left, rel=0.5)
    (first, far), (last, near) = seen
    assert far > 0.5
    assert not first
    assert near < 0.3
    assert last


def test_log_z_within_its_error(texture) -> None:
    """Twenty estimates at the truth: mean and spread as their standard errors say."""
    texture, y, truth = texture
    model, q = texture.model(), un.Gaussian(diagonal=False)
    bound, exact = q.bind(model.domain, un.iid(y)), texture.log_z(truth)
    z = []
    for r in range(20):
        one = un.log_z(model, truth, reference=bound, n=4000, rng=100 + r)
        assert one.se < 0.05
        z.append((one.value - exact) / one.se)
    assert 0.6 < np.std(z) < 1.5
    assert abs(np.mean(z)) < 4 / np.sqrt(20)


def test_a_reference_that_is_too_far_is_called_so(texture) -> None:
    texture, y, truth = texture
    model = texture.model()
    with pytest.warns(UnnormWarning, match="effective points"):
        un.log_z(model, truth, reference=un.Gaussian().bind(model.domain, un.iid(y)), n=2000, rng=1)
