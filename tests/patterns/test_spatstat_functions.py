"""K, G, F, J and their relatives against spatstat's, to 1e-8."""

import numpy as np
import pytest
from figures import pattern, read

from unnorm import patterns
from unnorm.patterns.functions.distances import cdf

COLUMNS = {
    "iso": "isotropic",
    "trans": "translate",
    "border": "border",
    "un": "none",
    "km": "km",
    "rs": "border",
    "raw": "none",
}


def figures(case: str, column: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """spatstat's r (every one of them), where its values were kept, and these."""
    table = read("functions.csv")
    here = (table["case"] == case) & (table["column"] == column)
    r, value = table["r"][here].astype(float), table["value"][here].astype("U32")
    step = r[0]
    index = np.round(r / step).astype(int)
    value = np.array([np.nan if one == "NA" else float(one) for one in value])
    return step * np.arange(index[-1] + 1), index, value


def close(mine: np.ndarray, theirs: np.ndarray, rtol: float = 1e-8) -> None:
    known = np.isfinite(theirs)
    assert known.sum() > 10
    np.testing.assert_allclose(mine[known], theirs[known], rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    ("name", "column"),
    [(name, column) for name in ("pines", "redwood") for column in ("iso", "trans", "border", "un")]
    + [("star", "iso"), ("star", "border")],  # the others are for rectangles
)
def test_K(name: str, column: str) -> None:
    r, at, value = figures(f"{name} K", column)
    if (name, column) == ("star", "border"):  # whose distances to the border spatstat sorts into classes of r first
        np.testing.assert_allclose(patterns.K(pattern(name), r, correction="border").value[at], value, rtol=0.015)
        return
    close(patterns.K(pattern(name), r, correction=COLUMNS[column]).value[at], value)


@pytest.mark.parametrize("name", ["pines", "redwood", "star"])
@pytest.mark.parametrize("column", ["km", "rs", "raw"])
def test_G(name: str, column: str) -> None:
    r, at, value = figures(f"{name} G", column)
    close(patterns.G(pattern(name), r, correction=COLUMNS[column]).value[at], value)


@pytest.mark.parametrize("name", ["pines", "redwood", "star"])
@pytest.mark.parametrize("column", ["km", "rs"])
def test_F_and_J(name: str, column: str) -> None:
    """On rasters of 1000 cells across, to 1e-3: spatstat's distances on a raster are not those to the points."""
    points = pattern(name)
    r, at, value = figures(f"{name} F", column)
    mine = patterns.F(points, r, correction=COLUMNS[column], raster=1000).value[at]
    np.testing.assert_allclose(mine, value, atol=1e-3)
    r, at, value = figures(f"{name} J", column)
    seen = patterns.F(points, r, correction=COLUMNS[column], raster=1000).value[at] < 0.5
    mine = patterns.J(points, r, correction=COLUMNS[column], raster=1000).value[at]
    assert seen.sum() >= 5
    np.testing.assert_allclose(mine[seen], value[seen], rtol=5e-3)


@pytest.mark.parametrize("column", ["km", "rs"])
def test_F_on_the_same_raster(column: str) -> None:
    r, at, value = figures("raster F", column)
    raster = read("raster.csv")
    mine = cdf(raster["d"].astype(float), raster["b"].astype(float), r, COLUMNS[column])
    close(mine[at], value)


@pytest.mark.parametrize("name", ["pines", "redwood", "star"])
def test_pair_correlation(name: str) -> None:
    """spatstat's kernel estimate is interpolated from a grid: to 1 % where g is not small."""
    r, at, value = figures(f"{name} pcf", "iso")
    mine = patterns.pair_correlation(pattern(name), r).value[at]
    np.testing.assert_allclose(mine[3:], value[3:], rtol=0.01, atol=0.01)


@pytest.mark.parametrize("column", ["iso", "trans"])
def test_inhomogeneous_K(column: str) -> None:
    r, at, value = figures("pines Kinhom", column)
    pines = pattern("pines")
    lam = np.exp(-5 + 0.01 * pines.xy[:, 0])
    close(patterns.K(pines, r, correction=COLUMNS[column], intensity=lam).value[at], value)


def test_K_between_types() -> None:
    r, at, value = figures("marked Kcross", "iso")
    close(patterns.K(pattern("marked"), r, types=("a", "b")).value[at], value)
