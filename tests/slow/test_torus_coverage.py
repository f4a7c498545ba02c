"""95 % intervals of two dependent angles where a concentration is 0 or small: the dependence tells the means.

UNNORM_REPS sets the number of simulated sets of each kind: 400 unless told.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import unnorm as un
from directions.torus_oracle import NAMES, alike

pytestmark = pytest.mark.slow
FITS = int(os.environ.get("UNNORM_REPS", "400"))
# (model, n, κ₁, κ₂, λ, whether the means are known)
KNOWN = [
    ("cosine", 200, 1.0, 0.0, 1.2, True),
    ("cosine", 200, 1.0, 0.15, 1.2, True),
    ("cosine", 200, 0.1, 1.0, -1.2, True),
    ("sine", 200, 1.0, 0.1, 1.5, True),
    ("sine", 200, 0.1, 0.1, 2.0, True),
    ("cosine", 200, 0.05, 0.05, 2.0, False),
    ("cosine", 200, 1.0, 0.05, 0.05, False),
    ("sine", 200, 1.0, 0.05, 0.05, False),
]


def held(row: Any, value: float) -> bool:
    if not row.name.startswith("mean"):
        return bool(row.lower <= value <= row.upper)
    return row.note is not None or (value - row.lower) % (2 * np.pi) <= (row.upper - row.lower) % (2 * np.pi)


def nearest(theta: np.ndarray, rows: dict[str, Any]) -> np.ndarray:
    """Of the four θ of a law, the one nearest to the estimate in standard errors; a κ that is a length is ≥ 0."""

    def away(one: np.ndarray) -> float:
        gaps = [x - rows[name].estimate for name, x in zip(NAMES, one)]
        gaps[3:] = np.angle(np.exp(1j * np.array(gaps[3:])))
        negative = sum(1e6 * max(-x, 0.0) for name, x in zip(NAMES[:2], one) if rows[name].lower == 0.0)
        return negative + sum((gap / rows[name].se) ** 2 for name, gap in zip(NAMES, gaps))

    return min(alike(theta), key=away)


@pytest.mark.parametrize(("model", "n", "k1", "k2", "lam", "known"), KNOWN)
def test_coverage(model: Any, n: int, k1: float, k2: float, lam: float, known: bool) -> None:
    family, rng = un.directions.bivariate_von_mises(model), np.random.default_rng(5)
    theta = np.array([k1, k2, lam, 1.0, 3.0])
    values = [np.array([np.cos(1.0), np.sin(1.0)]), [k1], np.array([np.cos(3.0), np.sin(3.0)]), [k2], [lam]]
    assert family.draw is not None
    counts, whole = dict.fromkeys(NAMES, 0), 0
    for _ in range(FITS):
        y = family.draw([np.asarray(one) for one in values], n, rng)
        rows = {row.name: row for row in un.fit_direction(family, un.iid(y, unit="radians")).rows()}
        for name, value in zip(NAMES, nearest(theta, rows)):
            counts[name] += held(rows[name], value)
        whole += rows["mean2"].note is not None
    found = {name: count / FITS for name, count in counts.items()}
    print(f"{model}, κ = {k1:g}, {k2:g}, λ = {lam:g}: {found}; the mean is any angle in {whole / FITS:.3f}")
    slack = 2.5 * np.sqrt(0.95 * 0.05 / FITS)
    assert all(share >= 0.93 - slack for share in found.values()), found
    assert not known or all(share <= 0.97 + slack for share in found.values()), found  # else too wide, and says so
    assert (whole / FITS < 0.05) if known else (whole / FITS > 0.5)
