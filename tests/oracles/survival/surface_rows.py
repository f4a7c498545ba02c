"""Choices by the hour, as case and controls for surface.R: `python tests/oracles/survival/surface_rows.py`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

import unnorm as un

HERE = Path(__file__).parent
TERMS = "te(y, hour, bs='ps', k=6)"


def observed() -> un.Observations:
    """y on [0, 5] given an hour: short ones at noon, either at night."""
    rng = np.random.default_rng(3)
    hour, y = rng.uniform(0, 24, 300).round(3), np.linspace(0, 5, 2001)
    f = -0.6 * y + 0.7 * np.sin(2 * np.pi * hour / 24)[:, None] * y + 0.4 * np.sin(1.5 * y)
    return un.conditional({"y": y[(f + rng.gumbel(size=f.shape)).argmax(axis=1)], "hour": hour}, y="y", x=("hour",))


@cache
def fitted() -> un.Fit:
    return un.fit(un.Additive(TERMS, un.Interval(0, 5)), observed(), un.Ranking(un.Uniform(), per_point=8), rng=1)


if __name__ == "__main__":
    rows = dict(fitted().rows())
    names = ("case", "stratum", "y", "hour")
    table = np.column_stack([rows[name] for name in names])
    np.savetxt(HERE / "surface_rows.csv", table, delimiter=",", header=",".join(names), comments="", fmt="%.12g")
