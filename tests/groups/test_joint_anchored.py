"""A joint fit whose constants follow f ends at the maximum of the penalised likelihood itself.

The engine works on rows less their context's mean, linearised at the f of the round before. Here the likelihood is
written down without those means, log Z integrated at the very coefficients, and differentiated numerically: means in
the wrong columns, or rounds that stop too soon, leave a slope.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unnorm as un
from unnorm.groups import fit_each
from unnorm.groups.population import _level_anchor

MODEL = un.Additive("s(step, k=6) + s(dcenter, k=5)", un.Box((0, 800), (0, 600)), y_down=True)
LOGISTIC = un.Logistic(un.Uniform(), per_point=4)
STEP = 1e-4


def few(each):
    """The first steps of three subjects."""
    every = un.transitions(un.datasets.eye(), y=("x", "y"), order="fix", group=("subject", "image"))
    return every.take(np.concatenate([np.flatnonzero(every.group["subject"] == s)[:each] for s in (1, 2, 3)]))


@pytest.fixture(scope="module")
def group():
    return fit_each(MODEL, few(200), "subject", LOGISTIC, un.Anchored(), rng=1)


def test_the_penalised_likelihood_has_no_slope_left(group):
    joint = group.group.solution.scores.joint
    members, at = joint.design.members, joint.design.penalties.starts

    def level(one):
        gam, rows = one.smooths.gam, one.solution.terms.anchored
        X = np.hstack([term.design(gam.columns) for term in joint.terms])
        return X, _level_anchor(one, joint.terms, 1).anchor, rows.offset, np.asarray(gam.y), rows.context

    def loglik(flat, s, data):
        X, anchor, offset, y, context = data
        level, *f = members[s].design.to_user(joint.design.coefficients(flat, s))
        eta = level + X @ f - anchor.at(np.array(f)).log_z[context] + offset
        return float(np.sum(y * eta - np.logaddexp(0.0, eta)))

    levels = [level(one) for one in group.fits.values()]

    def value(flat):
        return sum(loglik(flat, s, data) for s, data in enumerate(levels))

    def slope(direction):
        return (value(joint.flat + STEP * direction) - value(joint.flat - STEP * direction)) / (2 * STEP)

    assert value(joint.flat) == pytest.approx(joint.loglik, abs=1e-3)
    penalty = [S @ joint.flat[a:b] for S, a, b in zip(joint.blocks, at, at[1:])]
    slopes = np.array([slope(direction) for direction in np.eye(joint.flat.size)])
    assert np.abs(slopes).max() > 5  # the penalty holds the curves back, so that zero is not what any fit has
    np.testing.assert_allclose(slopes, np.concatenate(penalty), atol=0.03)


def test_functions_of_the_context_alone_are_refused_with_a_remedy():
    """te(dcenter, x_prev) has x_prev itself, which every level's constants absorb; ti(…) has not."""

    def each(terms):
        return fit_each(un.Additive(terms, MODEL.domain), few(80), "subject", LOGISTIC, un.Anchored(), rng=1)

    assert "contains functions of x_prev alone" in each("te(dcenter, x_prev, k=3)").no_group
    assert each("s(dcenter, k=4) + ti(dcenter, x_prev, k=3)").group is not None


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # χ of few steps fails its check
@pytest.mark.parametrize("normaliser", [un.Anchored(), un.Smooth("s(x_prev, y_prev, k=8)")], ids=["anchored", "smooth"])
def test_a_curve_for_each_level_of_a_factor_has_a_population_too(normaliser):
    """A level's rows, by= having split them, were an arrowhead of its own, of which the joint fit read one block."""
    obs = few(150)
    obs = replace(obs, context={**obs.context, "part": np.array(["a", "b"])[np.arange(obs.n) % 2]}, extra=("part",))
    model = un.Additive("s(step, by=part, k=4, bs='cr')", MODEL.domain, knots={"step": [0, 100, 300, 900]})
    alone = un.Additive("s(step, k=4, bs='cr')", MODEL.domain, knots={"step": [0, 100, 300, 900]})
    group = fit_each(model, obs, "subject", LOGISTIC, normaliser, rng=1).group
    assert group is not None
    grid = {"step": np.linspace(20, 600, 8)}
    for part in "ab":
        mine = obs.take(obs.context["part"] == part)
        other = fit_each(alone, mine, "subject", LOGISTIC, normaliser, rng=1).group
        assert other is not None
        both = [group.effect(f"s(step):part{part}", grid), other.effect("s(step)", grid)]
        curves = [np.asarray(one["estimate"]) - np.mean(one["estimate"]) for one in both]
        assert np.abs(curves[0] - curves[1]).max() < np.mean(both[0]["se"])  # other reference points


def test_curves_of_levels_with_a_level_each_are_refused_with_a_remedy():
    obs = few(80)
    obs = replace(obs, context={**obs.context, "part": np.array(["a", "b"])[np.arange(obs.n) % 2]}, extra=("part",))
    each = fit_each(un.Additive("s(step, part, bs='fs', k=4)", MODEL.domain), obs, "subject", LOGISTIC, un.Anchored(),
                    rng=1)  # fmt: skip
    assert "contains functions of part alone" in str(each.no_group)
    assert "by=" in str(each.no_group)
