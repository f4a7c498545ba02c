"""Curves far above the noise: what the form of their functions in the engine leaves out shows in the criterion."""

import json
from pathlib import Path

import numpy as np
import pytest

import unnorm as un

MADE = json.loads((Path(__file__).parents[1] / "oracles" / "mgcv" / "signal.json").read_text())
TABLE = {name: np.array(values) for name, values in MADE["table"].items()}


@pytest.mark.parametrize("one", MADE["fits"], ids=lambda one: one["formula"])
def test_curves_of_levels_are_mgcvs(one):
    """Their cubics were as coarse as those of many rows: REML was .017 away in the first."""
    fit = un.gam(one["formula"], TABLE, one["family"])
    eta, se = fit.predict()
    assert fit.score == pytest.approx(one["score"], abs=1e-3)
    assert np.max(np.abs(eta - one["eta"]) / one["se"]) < 2e-3
    assert np.asarray(se) == pytest.approx(np.array(one["se"]), rel=1e-3)
    assert np.max(np.abs(eta - fit.predict(TABLE, se=False)) / se) < 1e-3
