"""Errors from the scores of few observations: widened for what each does to the estimate, on Student's t."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.stats import t

import unnorm as un
from unnorm.objectives import flips

EVERY = un.ConditionalNCE(un.BitFlip(every=True))


def _vectors(n: int) -> np.ndarray:
    return np.random.default_rng(8).integers(0, 2, (n, 3)).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
def test_cr2_by_its_definition(weighted: bool) -> None:
    """ĝ_t = L (I − A_t)^(−½) L⁻¹ g_t from the table of changes; a weight of two is two observations."""
    y = _vectors(24)
    w = np.random.default_rng(1).integers(1, 3, 24) if weighted else np.ones(24, dtype=int)
    fit = un.fit(un.Ising(3), un.iid(y, weight=w), EVERY)
    every = np.repeat(y, w, axis=0)
    X = un.Ising(3).changes(every, ())
    p = 1 / (1 + np.exp(-X @ fit.estimate))
    each = np.einsum("ti,tij,tik->tjk", p * (1 - p), X, X)
    H, g = each.sum(axis=0), -np.einsum("ti,tij->tj", p, X)
    L = np.linalg.cholesky(H)
    inner = np.linalg.inv(L)
    wide = [L @ np.linalg.inv(sqrtm(np.eye(6) - inner @ one @ inner.T).real) @ inner @ s for one, s in zip(each, g)]
    V = np.linalg.inv(H)
    np.testing.assert_allclose(fit.covariance, V @ (np.array(wide).T @ np.array(wide)) @ V, rtol=1e-6)
    assert fit.df == w.sum() - 1
    table, q = fit.tidy(), t.ppf(0.975, w.sum() - 1)
    np.testing.assert_allclose(table["upper"], fit.estimate + q * fit.se)
    np.testing.assert_allclose(fit.tidy(robust=True)["upper"], table["upper"])
    assert any("corrected for it" in note for note in fit.notes)


def test_many_observations_need_no_correction(tmp_path) -> None:
    fit = un.fit(un.Ising(3), un.iid(_vectors(80)), EVERY)  # more than ten for each of six parameters
    assert fit.df is None
    few = un.fit(un.Ising(3), un.iid(_vectors(40)), EVERY)
    assert few.df == 39
    few.save(tmp_path / "few")
    loaded = un.load(tmp_path / "few")
    assert isinstance(loaded, un.Fit)
    np.testing.assert_allclose(loaded.tidy()["lower"], few.tidy()["lower"])


def test_where_the_correction_would_take_long_the_note_says_that_errors_are_small(monkeypatch) -> None:
    monkeypatch.setattr(flips, "AFFORDED", 0.0)
    fit = un.fit(un.Ising(3), un.iid(_vectors(40)), EVERY)
    assert fit.df is None
    assert any("too small by 5 to 30 %" in note for note in fit.notes)
