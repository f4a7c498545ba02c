"""95 % intervals of directional parameters cover 93 to 97 %, where nκ² ≥ 50."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import unnorm as un

pytestmark = pytest.mark.slow
d = un.directions
FITS = 1000


def share(family: d.Family, draw, truth: dict[str, float], n: int, turn: float | None = None) -> dict[str, float]:
    """How often each interval holds its number; an angle's from `lower` counterclockwise to `upper`."""
    rng = np.random.default_rng(5)
    inside = dict.fromkeys(truth, 0)
    for _ in range(FITS):
        fit = un.fit_direction(family, un.iid(draw(n, rng), unit="radians"))
        for row in fit.rows():
            if row.name not in truth:
                continue
            if row.name == "mean" and turn is not None:
                held = row.note is not None or (truth["mean"] - row.lower) % turn <= (row.upper - row.lower) % turn
            else:
                held = row.lower <= truth[row.name] <= row.upper
            inside[row.name] += held
    return {name: count / FITS for name, count in inside.items()}


@pytest.mark.parametrize(("n", "kappa"), [(200, 0.5), (60, 1.0), (60, 10.0), (100, 1e4)])
def test_von_mises(n: int, kappa: float) -> None:
    found = share(
        d.von_mises(), lambda n, rng: rng.vonmises(3.0, kappa, n), {"mean": 3.0, "kappa": kappa}, n, 2 * np.pi
    )
    print(f"von Mises, n = {n}, κ = {kappa:g}: {found}")
    assert all(0.93 <= one <= 0.97 for one in found.values()), found


@pytest.mark.parametrize(("n", "kappa"), [(300, 0.5), (100, 2.0), (100, 1e4)])
def test_von_mises_fisher(n: int, kappa: float) -> None:
    law = stats.vonmises_fisher(np.array([0.6, 0.0, 0.8]), kappa)
    found = share(
        d.von_mises_fisher(),
        lambda n, rng: law.rvs(n, random_state=rng),
        {"mean[0]": 0.6, "mean[1]": 0.0, "kappa": kappa},
        n,
    )
    print(f"von Mises–Fisher, n = {n}, κ = {kappa:g}: {found}")
    assert all(0.93 <= one <= 0.97 for one in found.values()), found


def test_chain() -> None:
    family, truth = d.chain(), {"turn": 0.5, "kappa turn": 2.0, "mean": 2.0, "kappa": 1.0}
    rng, inside = np.random.default_rng(6), dict.fromkeys(truth, 0)
    for _ in range(FITS):
        y = [0.0]
        for _ in range(300):
            v = 2.0 * np.exp(1j * (y[-1] + 0.5)) + np.exp(2.0j)
            y.append(rng.vonmises(np.angle(v), abs(v)))
        for row in un.fit_direction(family, un.transitions(y, unit="radians")).rows():
            inside[row.name] += row.lower <= truth[row.name] <= row.upper
    found = {name: count / FITS for name, count in inside.items()}
    print(f"chain, n = 300: {found}")
    assert all(0.93 <= one <= 0.97 for one in found.values()), found
