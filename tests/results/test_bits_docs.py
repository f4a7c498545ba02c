"""docs/bits.md runs as it stands, and what it says of the real data holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unnorm as un

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"
EVERY = un.ConditionalNCE(un.BitFlip(every=True))


def test_every_block_runs() -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "bits.md").read_text("utf-8"), re.DOTALL):
        exec(compile(block, "docs/bits.md", "exec"), names)  # the documentation's own text, not a user's
    assert names["fit"].converged


def _read(name: str) -> Any:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not in ../shared/data")
    return np.genfromtxt(path, delimiter=",", names=True)


def test_cockroach() -> None:
    """Pseudo-likelihood and likelihood agree; memory is there, couplings within a bin are not."""
    table = _read("bin_spikes_cockroach_10ms.csv")
    y = np.column_stack([table[f"n{j}"] for j in range(1, 5)])
    model, obs = un.Ising(4, lag=1), un.transitions(y)
    pl, ml = un.fit(model, obs, EVERY), un.fit(model, obs)
    assert np.abs((pl.estimate - ml.estimate) / ml.se).max() < 0.05
    np.testing.assert_allclose(pl.se, ml.se, rtol=0.06)
    within = slice(4, 10)
    assert np.abs(pl.estimate[within] / pl.se[within]).max() < 2
    assert pl.theta["K[2,2]"] == pytest.approx(1.264, abs=2e-3)


def test_senate() -> None:
    """Ten senators of two parties with their missing votes: the ridge keeps what separation would send to infinity."""
    table = _read("bin_senate109_votes.csv")
    y = np.column_stack([table[name] for name in table.dtype.names[3:13]])
    assert np.isnan(y).any()
    obs = un.iid(y, missing="keep")
    fit = un.fit(un.Ising(10), obs, EVERY, solver=un.Imputing(draws=4, burn=2, solver=un.LBFGS(ridge=0.01)), rng=1)
    assert fit.converged
    assert np.isfinite(fit.se).all()
    J = un.Ising(10).parts(fit.estimate).J
    assert J[0, 1] > 0.5  # Sessions and Shelby, both of Alabama
