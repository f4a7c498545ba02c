"""id=: smooths that share basis and smoothing parameters, against mgcv (tests/oracles/mgcv/linked.R)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import block_diag

import unnorm as un
from unnorm.errors import TermError

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
FITS = json.loads((HERE / "linked.json").read_text())["fits"]
ROWS = pd.read_csv(HERE / "fits_rows.csv")
CIRCLE = {"ang": (-3.141593, 3.141593)}


def _fit(one: dict) -> un.Gam:
    method = {"GCV.Cp": "GCV"}.get(one["method"], one["method"])
    knots = CIRCLE if "ang" in one["formula"] else None
    return un.gam(one["formula"], ROWS, one["family"], method=method, knots=knots, select=one["select"])


@pytest.mark.parametrize("one", FITS, ids=lambda one: one["formula"])
def test_against_mgcv(one):
    fit = _fit(one)
    eta, se = fit.predict(ROWS)
    at = np.array(one["rows"], int)
    assert np.abs((eta[at] - one["eta"]) / one["se"]).max() < 0.005
    np.testing.assert_allclose(se[at], one["se"], rtol=5e-3)
    assert fit.score == pytest.approx(one["score"], abs=1e-3)
    assert fit.edf_total == pytest.approx(one["edf_total"], abs=5e-3)
    if one["method"] != "GCV.Cp":
        _, whole = fit.predict(ROWS, unconditional=True)
        np.testing.assert_allclose(whole[at], one["se_unconditional"], rtol=2e-2)
        assert fit.aic == pytest.approx(one["aic"], abs=0.05)
    estimated = [value for value, free in zip(fit.sp.values(), fit.smoothed.estimated) if free]
    assert len(estimated) == len(one["sp"])
    for mine, its in zip(estimated, one["sp"]):
        assert mine == pytest.approx(its, rel=0.02) or min(mine, its) > 1e4


def test_two_penalties_each_are_shared_too():
    """Criterion and derivatives, by differences: several pieces of one penalty in one block."""
    fit = un.gam("y ~ s(x1, id=1) + s(x2, id=1) + s(x3, bs='ad', k=12, m=2)", ROWS, select=True)
    assert sum("x1" in label for label in fit.sp) == 2
    assert not any("x2" in label for label in fit.sp)
    best, sp = fit.score, np.array(list(fit.sp.values()))
    for j in np.flatnonzero(sp < 1e4):
        for factor in (0.8, 1.25):
            trial = sp.copy()
            trial[j] *= factor
            there = un.gam("y ~ s(x1, id=1) + s(x2, id=1) + s(x3, bs='ad', k=12, m=2)", ROWS, select=True, sp=trial)
            assert there.score > best - 1e-6


@pytest.mark.parametrize(
    ("bs", "by", "pairs"),
    [("'ad', m=3", "", 200_000), ("'ad', m=3", ", by=g", 200_000), ("'cr'", ", by=g", 200_000), ("'cr'", ", by=g", 0)],
)
def test_traces_are_those_of_dense_matrices(bs, by, pairs, monkeypatch):
    """tr(P S_j) and tr(P S_j P S_k), where a penalty has pieces in several places of a block."""
    inner = un.gam(f"y ~ s(x1, bs={bs}, k=12, id=1{by}) + s(x2, id=1{by})", ROWS).smoothed
    monkeypatch.setattr("unnorm.engine.penalties._PAIRS", pairs)  # level by level, or all at once
    penalties = inner.design.penalties
    arrow = inner.cross.plus(penalties.blocks(np.ones(penalties.count)))
    P = np.linalg.inv(_dense(arrow))
    S = [block_diag(*penalties.blocks(unit)) for unit in np.eye(penalties.count)]
    first, both = penalties.traces(arrow.invert())
    np.testing.assert_allclose(first, [np.trace(P @ one) for one in S], rtol=1e-6)
    np.testing.assert_allclose(both, [[np.trace(P @ a @ P @ b) for b in S] for a in S], rtol=1e-6)


def _dense(arrow):
    s = len(arrow.shared)
    out = block_diag(arrow.shared, *arrow.own)
    at = s
    for own, cross in zip(arrow.own, arrow.cross):
        out[at : at + len(own), :s], out[:s, at : at + len(own)] = cross, cross.T
        at += len(own)
    return out


def test_linked_smooths_are_saved_and_read_back(tmp_path):
    fit = un.gam("y ~ s(x1, id='a') + s(x2, id='a')", ROWS)
    assert list(fit.sp) == ["s(x1)"]
    fit.save(tmp_path / "fit")
    again = un.load(tmp_path / "fit")
    assert again.sp == fit.sp
    np.testing.assert_allclose(again.predict(ROWS).estimate, fit.predict(ROWS).estimate, atol=1e-9)
    assert str(again.terms[0].link) == "a"


def test_the_first_one_s_basis_is_everyone_s():
    fit = un.gam("y ~ s(x1, bs='cr', k=7, id=1) + s(x2, k=30, id=1)", ROWS)
    assert [term.size for term in fit.terms] == [6, 6]
    np.testing.assert_allclose(fit.terms[0].breaks, fit.terms[1].breaks)


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("y ~ s(x1, id=1) + s(x1, x2, id=1)", "have as many covariates; .* has 1"),
        ("y ~ s(x1, id=1.5)", "id must be a word or a whole number"),
        ("y ~ s(g, bs='re', id=1)", "bs='re' takes none"),
    ],
)
def test_what_cannot_be_linked_is_refused(formula, says):
    with pytest.raises(TermError, match=says):
        un.gam(formula, ROWS)


def test_a_model_s_smooths_are_not_linked():
    obs = un.transitions(np.random.default_rng(1).uniform(size=(60, 2)))
    model = un.Additive("s(step, k=5, id=1) + s(dcenter, k=5, id=1)", un.Box((0, 1), (0, 1)))
    with pytest.raises(TermError, match=r"id= links smooths in un\.gam"):
        un.fit(model, obs, un.Logistic(un.Uniform(), per_point=5), rng=2)
