"""`ad` of two covariates against mgcv (tests/oracles/mgcv/adaptive.R), and where its penalty lies."""

import json
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import TermError
from unnorm.terms.adaptive import differences, surface_weights

MADE = json.loads((Path(__file__).parents[1] / "oracles" / "mgcv" / "adaptive.json").read_text())


def table(name):
    return {column: np.array(values) for column, values in MADE["tables"][name].items()}


@pytest.mark.parametrize("one", MADE["fits"], ids=lambda one: one["formula"])
def test_against_mgcv(one):
    fit = un.gam(one["formula"], table(one["data"]), one["family"])
    eta, se = fit.predict()
    at = np.array(one["rows"], int)
    assert np.abs((eta[at] - one["eta"]) / one["se"]).max() < 0.002
    np.testing.assert_allclose(se[at], one["se"], rtol=1e-3)
    assert fit.score == pytest.approx(one["score"], abs=1e-3)
    assert fit.edf_total == pytest.approx(one["edf_total"], abs=2e-3)


def test_three_data_sets():
    assert len({one["data"] for one in MADE["fits"]}) >= 3


def test_differences_of_quadratics():
    """Of r², c² and rc: 2, 2 and 1 (the mixed one over two steps each way, times √2), so that the sum of squares is
    the thin plate's 4, 4 and 2."""
    r, c = (grid.ravel() for grid in np.meshgrid(np.arange(6.0), np.arange(6.0), indexing="ij"))
    for beta, expected in ((r**2, (2, 0, 0)), (c**2, (0, 2, 0)), (r * c, (0, 0, np.sqrt(2))), (3 + r - c, (0, 0, 0))):
        for (D, places), value in zip(differences(6), expected):
            assert len(D) == len(places)
            np.testing.assert_allclose(D @ beta, value, atol=1e-12)


def test_weights_add_up_to_one():
    for m in ((2, 2), (3, 3), (4, 5)):
        for _, places in differences(8):
            np.testing.assert_allclose(surface_weights(places, 8, m).sum(axis=1), 1.0)


def test_it_says_that_its_covariates_have_units_of_their_own():
    data = table("peak")
    assert not un.gam("y ~ s(x, z, bs='ad', k=6)", data).terms[0].isotropic
    assert not un.gam("y ~ te(x, z, k=4)", data).terms[0].isotropic
    assert un.gam("y ~ s(x, z, k=10)", data, select=True).terms[0].isotropic  # two penalties, and one space


@pytest.mark.parametrize("m", [(1, 3), 6, (2, 2, 2)])
def test_errors(m):
    with pytest.raises(TermError, match="from 2 to k − 2"):
        un.gam(un.s("x", "z", bs="ad", k=7, m=m), table("peak"), response="y")
