"""With all defaults, planar fits that read maps and columns of the context are those of maximum likelihood."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from against import compared, judge
from calibration import REPS, SEED
from planar_laws import PLANAR, PlanarLaw

import unnorm as un

pytestmark = pytest.mark.slow

MOST = 200  # repetitions: an exact fit takes half a second


def one(law: PlanarLaw, i: int) -> dict[str, np.ndarray]:
    obs = law.simulate(np.random.default_rng([SEED, 1, i]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The normalising integrals are off by up to 0.0", un.errors.UnnormWarning)
        exact = un.fit(law.model, obs, un.Exact(order=law.order))
        # the verdict on δ is right in all but a few: its size has a test of its own
        warnings.filterwarnings("ignore", "The constants follow", un.errors.UnnormWarning)
        fit = un.fit(law.model, obs, un.Logistic(per_point=20), rng=np.random.default_rng([SEED, 2, i]))
    assert fit.converged
    assert exact.converged
    mixed = fit.diagnostics["law"]["reference"] == "Mixture"
    return {**compared(fit, exact, law.truth), "mixed": np.array(mixed), "doubted": np.array(fit.constants_failed)}


@pytest.mark.parametrize("name", list(PLANAR))
def test_planar_defaults_are_maximum_likelihood(name: str) -> None:
    law = PLANAR[name]
    runs = [one(law, i) for i in range(min(REPS, MOST))]
    found = {what: np.array([run[what] for run in runs]) for what in runs[0]}
    assert np.all(found["mixed"] == (name == "short"))  # the reference that is chosen
    print(f"\n{name}: δ is doubted in {found['doubted'].mean():.3f} of the fits")
    assert judge(name, law.names, found)
