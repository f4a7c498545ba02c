"""IID Logistic against spatstat's ppm(method = "logi"), on the same data and dummy points and covariate values.

The rows and spatstat's answers are in tests/oracles/spatstat (made by fits.R there). spatstat's log-odds are
β₀ + β·x − log ρ with ρ = m/|W|; ours are θ·x + ν + log|W| + log(n/m): so β₀ = ν + log n.
"""

import csv
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import unnorm as un
from unnorm.references import IID, Custom, Uniform

HERE = Path(__file__).parent / "spatstat"
SHARED = Path(__file__).parents[2].parent / "shared" / "data"


def read(path: Path) -> dict[str, list[str]]:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.fixture(scope="module")
def fitted() -> tuple[un.Fit, dict[str, list[str]], int]:
    """The covariate values as the outcome: a domain that holds them all, with the window's area as its volume."""
    rows, theirs = read(HERE / "rows.csv"), read(HERE / "fits.csv")
    real = np.array(rows["z"]) == "1"
    x = np.column_stack([np.array(rows[name], dtype=float) for name in ("elev", "grad")])
    log_area = float(np.log(float(theirs["area"][0])))
    low, high = x.min(axis=0), x.max(axis=0)
    # a box of the window's area around the values, so that a uniform density on it is 1/|W|
    width = high - low + 0.1
    width *= np.sqrt(np.exp(log_area) / width.prod())
    assert np.all(width > high - low)
    box = un.Box((low[0] - 0.01, low[0] - 0.01 + width[0]), (low[1] - 0.01, low[1] - 0.01 + width[1]))
    model = un.ExponentialFamily(lambda y: (y[0], y[1]), ("elev", "grad"), box)
    dummies = x[~real]
    q = Custom(lambda rng, m, _: dummies[:m], lambda y, _: np.full(len(y), -log_area), "rows from a file", check=False)
    fit = un.fit(model, un.iid(x[real]), un.Logistic(q, total=len(dummies), points=IID()), rng=1)
    return fit, theirs, int(real.sum())


def test_coefficients(fitted) -> None:
    fit, theirs, n = fitted
    want = np.array(theirs["estimate"], dtype=float)
    np.testing.assert_allclose(fit.estimate, want[1:], rtol=1e-6)
    assert fit.nu[0] + np.log(n) == pytest.approx(want[0], rel=1e-6)


def test_standard_errors(fitted) -> None:
    """The slopes' to 1 %. spatstat's intercept also counts that n is random, Poisson: var β₀ = var ν + 1/n about."""
    fit, theirs, n = fitted
    want = np.array(theirs["se"], dtype=float)
    np.testing.assert_allclose(fit.se, want[1:], rtol=0.01)
    assert np.sqrt(fit.nu_se[0] ** 2 + 1 / n) == pytest.approx(want[0], rel=0.02)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real data are not here (../shared/data)")
def test_rain_forest_trees() -> None:
    """3,604 trees: ppm(bei ~ elev + grad) has −8.5636 (0.341), 0.021440 (0.00229), 5.8465 (0.256)."""
    points = np.column_stack([np.array(column, dtype=float) for column in _columns("pp_bei_points.csv", ("x", "y"))])
    x, y, elev, grad = (
        np.array(column, dtype=float) for column in _columns("pp_bei_covariates.csv", ("x", "y", "elev", "grad"))
    )
    xs, ys = np.unique(x), np.unique(y)
    order = np.lexsort((y, x))
    maps = [values[order].reshape(len(xs), len(ys)) for values in (elev, grad)]

    def at(p):  # the value of the cell, as spatstat looks it up
        i = jnp.clip(jnp.round((p[0] - xs[0]) / (xs[1] - xs[0])).astype(int), 0, len(xs) - 1)
        j = jnp.clip(jnp.round((p[1] - ys[0]) / (ys[1] - ys[0])).astype(int), 0, len(ys) - 1)
        return jnp.asarray(maps[0])[i, j], jnp.asarray(maps[1])[i, j]

    model = un.ExponentialFamily(at, ("elev", "grad"), un.Box((0, 1000), (0, 500)))
    trees = un.iid(points)

    def both(objective) -> tuple[np.ndarray, np.ndarray]:
        fit = un.fit(model, trees, objective, rng=1)
        assert fit.nu_se is not None
        return np.append(fit.nu + np.log(trees.n), fit.estimate), np.append(fit.nu_se, fit.se)

    # ppm's default is the Poisson likelihood with its integral by quadrature: on a lattice, Importance is that.
    theirs, their_se = np.array([-8.5636, 0.021440, 5.8465]), np.array([0.341, 0.00229, 0.256])
    ours, _ = both(un.Importance(Uniform(), total=20 * trees.n))
    assert np.all(np.abs(ours - theirs) < 0.1 * their_se)
    ours, our_se = both(un.Logistic(Uniform(), total=80 * trees.n))
    assert np.all(np.abs(ours - theirs) < 0.25 * their_se)
    np.testing.assert_allclose(our_se, their_se, rtol=0.02)

    # ppm(method = "logi") with its 16,900 stratified dummy points. The trees are clustered, so that the model is wrong:
    # the logistic estimate depends on the number of points, and variances that lean on the model must still be right.
    theirs, their_se = np.array([-8.80559, 0.0228773, 6.22442]), np.array([0.354056, 0.00237443, 0.266266])
    ours, our_se = both(un.Logistic(Uniform(), total=16_900))
    assert np.all(np.abs(ours - theirs) < 0.1 * their_se)
    np.testing.assert_allclose(our_se, their_se, rtol=0.02)


def _columns(name: str, wanted: tuple[str, ...]) -> list[list[str]]:
    table = read(SHARED / name)
    return [table[column] for column in wanted]
