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


def on_raster(case: str, column: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:
    """r, where spatstat's values were kept, these, and the raster (distances.R)."""
    table = read("distances.csv")
    here = (table["case"] == case) & (table["column"] == column)
    index = table["index"][here].astype(int)
    value = np.array([np.nan if one in ("NA", "NaN") else float(one) for one in table["value"][here].tolist()])
    raster = int(table["nx"][here][0]), int(table["ny"][here][0])
    return float(table["step"][here][0]) * np.arange(index[-1] + 1), index, value, raster


@pytest.mark.parametrize("name", ["pines", "redwood"])
@pytest.mark.parametrize("column", ["km", "rs"])
@pytest.mark.parametrize("function", ["F", "J"])
def test_F_and_J(name: str, column: str, function: str) -> None:
    """On spatstat's raster, where its distances are right."""
    r, at, value, raster = on_raster(f"{name} {function} exact", column)
    mine = getattr(patterns, function)(pattern(name), r, correction=COLUMNS[column], raster=raster).value[at]
    np.testing.assert_array_equal(np.isnan(mine), np.isnan(value))
    close(mine, value)


@pytest.mark.parametrize("column", ["km", "rs"])
def test_F_and_J_of_a_polygon(column: str) -> None:
    """spatstat's distances to a polygon's border are those on the raster: the estimators on its distances."""
    raster = read("raster_star.csv")
    r, at, value, _ = on_raster("star F exact", column)
    f = cdf(raster["d"].astype(float), raster["b"].astype(float), r, COLUMNS[column])
    close(f[at], value)
    r, at, value, _ = on_raster("star J exact", column)
    g = patterns.G(pattern("star"), r, correction=COLUMNS[column]).value
    left = np.isfinite(value)
    close(((1 - g) / np.where(f < 1, 1 - f, np.nan))[at][left], value[left])


@pytest.mark.parametrize("name", ["pines", "redwood", "star"])
@pytest.mark.parametrize("column", ["km", "rs"])
def test_F_and_J_on_a_fine_raster(name: str, column: str) -> None:
    """To 1e-3: up to 1 % of spatstat's distances are too large there, and J divides by 1 − F."""
    r, at, value, raster = on_raster(f"{name} F fine", column)
    f = patterns.F(pattern(name), r, correction=COLUMNS[column], raster=raster).value[at]
    np.testing.assert_allclose(f, value, atol=1e-3)
    r, at, value, raster = on_raster(f"{name} J fine", column)
    mine = patterns.J(pattern(name), r, correction=COLUMNS[column], raster=raster).value[at]
    assert np.sum(f < 0.75) >= 6
    np.testing.assert_allclose(mine[f < 0.75], value[f < 0.75], atol=1e-3)


@pytest.mark.parametrize("function", ["F", "G", "J"])
def test_inhomogeneous(function: str) -> None:
    r, at, value, raster = on_raster(f"pines {function}inhom", "bord")
    pines = pattern("pines")
    options = {} if function == "G" else {"raster": raster}
    given = {"intensity": np.exp(-5 + 0.01 * pines.xy[:, 0]), "least": np.exp(-5.1)}
    close(getattr(patterns, function)(pines, r, **given, **options).value[at], value)


def test_translation_in_a_polygon() -> None:
    """spatstat's overlaps of the window are raster ones."""
    star = pattern("star")
    r, at, value, _ = on_raster("star K", "trans")
    np.testing.assert_allclose(patterns.K(star, r, correction="translate").value[at], value, rtol=5e-4)
    r, at, value, _ = on_raster("star pcf", "trans")
    mine = patterns.pair_correlation(star, r, correction="translate").value[at]
    np.testing.assert_allclose(mine[3:], value[3:], rtol=0.002)


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
