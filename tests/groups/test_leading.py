"""Penalties of random curves: directions that are alike share a variance, and a fixed λ of χ is held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unnorm as un
from unnorm.groups import joint as joints
from unnorm.groups.leading import leading


def test_a_pair_of_equal_directions_has_one_variance() -> None:
    """cos and sin, however their eigenvalues come out of the rows; a curve keeps its two smoothest directions apart."""
    assert leading(np.diag([81.0, 80.0, 16.1, 16.0, 1.03, 1.0, 0.0]), 6) == [slice(4, 6)]
    assert leading(np.diag([256.0, 81.0, 16.0, 1.0]), 4) == [slice(2, 3), slice(3, 4)]
    assert leading(np.diag([16.0, 1.02, 1.0]), 3) == [slice(1, 3)]
    assert leading(np.diag([1.0, 1.0]), 2) == []  # nothing would be left for the curve
    assert leading(np.diag([4.0, 1.0]), 2) == [slice(1, 2)]


@pytest.mark.parametrize("bs", ["cc", "cr"])
def test_labels_and_fixed_smoothing(bs: str) -> None:
    rng = np.random.default_rng(1)
    gams = {}
    for level in "ab":
        table = {"y": rng.uniform(0, 1, 300), "x": rng.uniform(0, 1, 300)}
        table["z"] = (rng.random(300) < 0.3 + 0.4 * table["y"]).astype(float)
        gams[level] = un.gam(f"z ~ s(y, bs='{bs}', k=7) + s(x, bs='cr', k=5)", table, family="binomial")
    every = {name: np.concatenate([gam.columns[name] for gam in gams.values()]) for name in ("y", "x")}
    curve, chi = un.terms.parse(f"s(y, bs='{bs}', k=7) + s(x, bs='cr', k=5)").build(every)
    terms = (curve, replace(chi, fixed_sp=(2.5,)))
    members = joints.members_of(gams, terms, 1)
    penalties, fixed = joints.penalties_of(members, terms, 1, "who")
    held = dict(zip(penalties.labels, fixed.tolist()))
    assert held["s(x):who"] == pytest.approx(2.5)
    assert all(np.isnan(value) for label, value in held.items() if label != "s(x):who")
    assert "s(y):who (1)" in held
    assert ("s(y):who (2)" in held) == (bs == "cr")
