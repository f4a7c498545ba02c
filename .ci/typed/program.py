"""What a user writes, for pyright and mypy at their strictest, against the installed package (`.ci/typed.py`).

`assert_type` holds what the checkers must see; the program runs too, so that what they see is true.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, assert_type

import numpy as np

import unnorm as un
from unnorm.errors import InputError, UnnormError


def statistics(y: Any, x: Any) -> tuple[Any, Any]:
    return y, -0.5 * (y - x) ** 2


# a chain
version: str = un.__version__
chain = un.datasets.toy_chain(60, theta1=0.5, theta2=5.0, rng=1)
assert_type(chain, np.ndarray)
obs = un.transitions(chain)
assert_type(obs, un.Observations)
assert_type(obs.outcome, np.ndarray)
interval = un.Interval(-1, 1)
assert_type(interval, un.Interval)
toy = un.ExponentialFamily(statistics, names=("theta1", "theta2"), domain=interval)
logistic = un.Logistic(un.Uniform(), per_point=5, points=un.Lattice())
fit = un.fit(toy, obs, objective=logistic, normaliser=un.Anchored(), rng=2)
assert_type(fit, un.Fit)
assert_type(fit.estimate, np.ndarray)
assert_type(fit.se, np.ndarray)
assert_type(fit.names, tuple[str, ...])
assert_type(fit.converged, bool)
assert_type(fit.summary(), str)
specs: dict[str, dict[str, Any]] = {"exact": {"objective": un.Exact()}, "logistic": {"objective": logistic}}
assert_type(un.compare(toy, obs, specs, rng=3), un.Comparison)

# smooth terms
x = np.linspace(0.0, 1.0, 100)
table = {"x": x, "y": np.sin(6 * x) + 0.1 * np.cos(99 * x)}
smooth = un.gam("y ~ s(x, k=8)", table)
assert_type(smooth, un.Gam)
assert_type(smooth.predict({"x": [0.5]}).estimate, np.ndarray)
assert_type(smooth.predict(table, se=False), np.ndarray)
assert_type(smooth.predict(table, kind="matrix"), np.ndarray)
assert_type(smooth.draws(5, rng=1), np.ndarray)
assert_type(smooth.aic, float)
additive = un.Additive(un.s("step", k=5) + un.linear("x"), un.Box((0, 1), (0, 1)))
assert_type(additive, un.Additive)

# parts: of registries, of modules, and functions
kinds: list[type[un.domains.Domain]] = [un.Circle, un.Sphere, un.Graphs, un.FiniteSet]
laws: list[un.references.Reference] = [un.Uniform(), un.Gaussian(), un.StepKernel()]
kernel = un.kernels.Gaussian(scale=1.0)
family = un.directions.von_mises()
assert_type(family, un.directions.Family)
interaction: un.patterns.Interaction = un.Strauss(0.1)
points = np.random.default_rng(3).random((30, 2))
pattern = un.pattern(points, window=un.Box((0, 1), (0, 1)))
assert_type(pattern, un.Pattern)
assert_type(un.patterns.K(pattern), un.patterns.Summary)
loss: float = un.losses.ncd(np.zeros(3), np.zeros(6), np.zeros(3), np.zeros(6), reduction="mean")

# files and errors
with TemporaryDirectory() as folder:
    fit.save(Path(folder) / "fit")
    again = un.load(Path(folder) / "fit")
    assert isinstance(again, un.Fit)
try:
    un.Interval(1, -1)
except InputError:
    assert issubclass(InputError, UnnormError)
else:
    raise AssertionError("un.Interval(1, -1) was accepted")
print(f"unnorm {version}: {fit.n:g} observations, θ = {fit.estimate.round(2)}")
