"""What a fit's tables say, against mgcv 1.8-41: F, intervals of smoothing parameters, random effects beside others."""

import csv
from pathlib import Path

import numpy as np
import pytest

import unnorm as un

ROWS = Path(__file__).parents[1] / "oracles" / "mgcv" / "fits_rows.csv"


@pytest.fixture(scope="module")
def rows():
    with ROWS.open() as file:
        read = list(csv.DictReader(file))
    out = {name: np.array([float(row[name]) for row in read]) for name in ("x1", "x2", "y", "count")}
    i = np.arange(len(read))
    out["h"] = np.array([f"h{one}" for one in i * i % 7])
    out["k"] = np.array([f"k{one}" for one in np.minimum(9, i * i % 7 + i % 3)])
    return out


def test_the_table_of_a_gaussian_response_has_f(rows):
    table = un.gam("y ~ s(x1) + s(x2)", rows).summary_table()
    np.testing.assert_allclose(table["ref_df"], [6.332090621, 5.467665156], rtol=1e-5)
    np.testing.assert_allclose(table["statistic"], [24.282868374, 9.071065772], rtol=1e-5)


def test_intervals_of_smoothing_parameters_are_two_standard_errors(rows):
    table = un.gam("y ~ s(x1) + s(x2)", rows).smoothing
    hessian = np.array([[2.141430935, 0.004974648, -2.11434], [0.004974648, 0.836300134, -1.72072], [0, 0, 118.5]])
    hessian[2, :2] = hessian[:2, 2]  # the last: log of the scale
    np.testing.assert_allclose(table["se"], np.sqrt(np.diag(np.linalg.inv(hessian)))[:2], rtol=1e-4)
    np.testing.assert_allclose(np.log(table["upper"] / table["sp"]), 1.959964 * table["se"], rtol=1e-6)
    np.testing.assert_allclose(np.log(table["sp"] / table["lower"]), 1.959964 * table["se"], rtol=1e-6)


def test_random_effects_are_tested_with_the_others_integrated_out(rows):
    fit = un.gam("count ~ s(h, bs='re') + s(k, bs='re')", rows, family="poisson")
    assert fit.p_values["s(h)"] == pytest.approx(0.07770393977, rel=1e-3)
    assert fit.p_values["s(k)"] == pytest.approx(0.18587795465, rel=1e-3)


@pytest.mark.parametrize(
    ("formula", "family", "errors"),
    [
        ("y ~ s(x1) + s(x2)", "gaussian", (0.283299433, 0.214041250, 0.197494883, 0.209847411)),
        ("count ~ s(x1) + s(x2)", "poisson", (0.198506367, 0.138561997, 0.121644541, 0.138736644)),
    ],
)
def test_unconditional_errors_of_maximum_likelihood(rows, formula, family, errors):
    fit = un.gam(formula, rows, family, method="ML")
    some = {name: column[:4] for name, column in rows.items()}
    np.testing.assert_allclose(fit.predict(some, unconditional=True).se, errors, rtol=2e-5)
