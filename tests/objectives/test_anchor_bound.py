"""What errors of the integrals can move at most: the errors are those of log Z, in nats, not a multiple of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr

import unnorm as un
from unnorm.models.built_additive import BuiltAdditive
from unnorm.objectives.anchor import CHECKED, FINER, TermsAnchor, model_anchor
from unnorm.objectives.integrals import telling
from unnorm.terms import parse

PRECISION = 500.0


def log_z(x: np.ndarray) -> np.ndarray:
    """log ∫ exp{−½ τ (y − x)²} dy over [−1, 1], in closed form."""
    root = np.sqrt(PRECISION)
    mass = np.exp(log_ndtr((1 - x) * root)) - np.exp(log_ndtr((-1 - x) * root))
    return 0.5 * np.log(2 * np.pi / PRECISION) + np.log(mass)


def test_the_error_is_that_of_log_z_and_the_shift_its_bound():
    x = np.random.default_rng(1).uniform(-0.9, 0.9, 60)
    obs = un.conditional({"y": x, "x": x}, "y", "x")
    model = un.ExponentialFamily(lambda y, c: (-0.5 * (y - c["x"]) ** 2,), ("tau",), un.Interval(-1, 1))
    theta = np.array([PRECISION])
    anchor = model_anchor(model, obs)
    found, sort = anchor.at(theta).log_z, np.argsort(x)  # contexts are in the order of x
    some = telling(found[sort], CHECKED)
    wrong = (found - log_z(x))[sort][some]
    assert np.std(wrong) > 0.01  # 25 nodes are too few here, and the finest rule is not
    np.testing.assert_allclose(anchor.error(theta), np.std(wrong), rtol=1e-6)
    np.testing.assert_allclose(anchor.shift(theta, 49.0), 7.0 * np.std(wrong), rtol=1e-6)


def test_the_error_over_a_grid_is_that_over_all_contexts():
    """A few contexts are looked at, with the ends of the columns among them: they stand for all, the ends for few."""
    rng = np.random.default_rng(7)
    x = np.clip(0.05 * rng.standard_t(2.5, 4000), -0.999, 0.999)  # log Z is hard to interpolate far out
    obs = un.conditional({"y": x, "x": x}, "y", "x")
    square = un.Expression("tau", "-0.5 * (y - x) ** 2")
    model = un.Additive("tau", un.Interval(-1, 1), covariates=[square])
    theta = np.array([PRECISION])
    built = BuiltAdditive(model, obs, tuple(parse("tau").build({"tau": np.linspace(-2, 0, 50)})))
    anchor = TermsAnchor(built, 32, 17)
    wrong = anchor.at(theta).log_z - log_z(x)
    assert np.std(wrong) > 1e-3
    assert anchor.error(theta) == pytest.approx(np.std(wrong), rel=0.25)
    assert anchor.level(theta) == pytest.approx(np.mean(wrong), abs=0.35 * np.std(wrong))
    assert anchor.standing(theta).sum() == pytest.approx(1.0)


def test_after_a_refinement_the_finer_rule_measures_again():
    """Its nodes are kept where its order is high enough for the new one, and what it measures is log Z's error."""
    x = np.linspace(-0.95, 0.95, 2000)
    obs = un.conditional({"y": x, "x": x}, "y", "x")
    square = un.Expression("tau", "-0.5 * (y - x) ** 2")
    model = un.Additive("tau", un.Interval(-1, 1), covariates=[square])
    theta = np.array([PRECISION])
    built = BuiltAdditive(model, obs, tuple(parse("tau").build({"tau": np.linspace(-2, 0, 50)})))
    coarse = TermsAnchor(built, 24, 9)
    coarse.errors(theta)
    for excess in (1.2, 50.0):
        finer = coarse.finer(theta, excess)
        assert isinstance(finer, TermsAnchor)
        assert finer._against >= FINER * finer.order
        assert ("fine" in finer._kept) == (2 * coarse.order >= FINER * finer.order)
        wrong = (finer.at(theta).log_z - log_z(x))[finer._checked[0]]
        np.testing.assert_allclose(finer.errors(theta), wrong, atol=0.1 * np.abs(wrong).max() + 1e-6)
