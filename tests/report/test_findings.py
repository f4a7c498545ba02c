"""The paper's findings, on curves made to show each of them or not, and on fits to data with a known truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import unnorm as un
from unnorm.groups import fit_each
from unnorm.report.findings import cardinal, central, findings, near

SEEN = np.sort(400 * np.sqrt(np.random.default_rng(1).random(3000)))  # places spread evenly over a disc
STEPS = np.sort(np.random.default_rng(2).gamma(1.3, 110, 3000))
DIAGONAL = 1000.0


@pytest.mark.parametrize(
    ("f", "shown"),
    [
        (lambda r: -r / 100, True),
        (lambda r: -((r / 200) ** 4), True),  # flat at the centre, then falling
        (lambda r: -r / 100 + 0.1 * np.sin(r / 9), True),  # a ripple on the way down
        (lambda r: np.where(r < 20, -3.0, -r / 100), True),  # a hole where hardly anyone looked
        (lambda r: r / 100, False),
        (lambda r: 0 * r, False),
        (lambda r: -(((r - 250) / 100) ** 2), False),  # a ring is preferred: the off-center bias
        (lambda r: ((r - 250) / 100) ** 2, False),  # the centre and the edge
        (lambda r: -np.minimum(r, 230) / 100 + np.maximum(r - 330, 0) / 20, False),
    ],
)
def test_centrality(f: Callable, shown: bool) -> None:
    assert central(f, SEEN, DIAGONAL) is shown


@pytest.mark.parametrize(
    ("f", "shown"),
    [
        (lambda d: -d / 100, True),
        (lambda d: np.exp(-d / 60), True),
        (lambda d: np.where(d < 50, -5.0, -d / 100), True),  # very short steps are rare: not asked
        (lambda d: d / 100, False),
        (lambda d: 0 * d, False),
        (lambda d: -np.abs(d - 250) / 100, False),  # a favourite length beyond short range
        (lambda d: np.where(d < 50, 5.0, 0.0), False),  # only the shortest steps stand out
    ],
)
def test_distance(f: Callable, shown: bool) -> None:
    assert near(f, STEPS, DIAGONAL) is shown


@pytest.mark.parametrize(
    ("f", "shown"),
    [
        (lambda a: np.cos(4 * a), True),
        (lambda a: np.cos(4 * a) + 0.8 * np.cos(2 * a), True),  # horizontal above vertical
        (lambda a: np.exp(8 * (np.cos(4 * a - 0.3) - 1)), True),  # peaks a few degrees off
        (lambda a: -np.cos(4 * a), False),  # diagonals
        (lambda a: np.cos(2 * a), False),  # left and right only
        (lambda a: np.cos(a), False),  # right only
        (lambda a: np.cos(4 * a) * (np.abs(a + np.pi / 2) > 0.8), False),  # three of four
        (lambda a: 0 * a, False),
        (lambda a: np.cos(4 * a - 2.0), False),  # peaks nearer to the diagonals
    ],
)
def test_directions(f: Callable, shown: bool) -> None:
    assert cardinal(f, STEPS, DIAGONAL) is shown


def test_fits_are_asked_by_level_and_for_the_group() -> None:
    """Chains whose steps are short and whose places are central, by construction."""
    rng = np.random.default_rng(5)
    rows = []
    for who in (1, 2, 3):
        for image in range(20):
            at = np.array([400.0, 300.0])
            for fix in range(20):
                rows.append((who, image, fix, *at))
                at = np.clip(400 + 0.6 * (at[0] - 400) + rng.normal(0, 110), 1, 799), at[1]
                at = np.array([at[0], np.clip(300 + 0.6 * (at[1] - 300) + rng.normal(0, 80), 1, 599)])
    table = dict(zip(("who", "image", "fix", "x", "y"), np.array(rows, dtype=float).T))
    obs = un.transitions(table, y=("x", "y"), order="fix", group=("who", "image"), max_gap=1)
    model = un.Additive("s(step, k=5) + s(dcenter, k=5)", un.Box((0, 800), (0, 600)))
    each = fit_each(
        model, obs, "who", un.Logistic(un.Uniform(), per_point=5), un.Smooth("s(x_prev, y_prev, k=8)"), rng=1
    )
    step, centre = findings(model, obs, each.group, each.fits)
    assert (step.label, centre.label) == ("s(step)", "s(dcenter)")
    assert (centre.group, centre.levels, centre.holds) == (True, 3, ("1", "2", "3"))
    pooled = findings(model, obs, each.group, {})
    assert [one.levels for one in pooled] == [0, 0]
    assert findings(model, obs, None, each.fits)[1].group is None


def test_the_share_of_draws_is_the_posteriors() -> None:
    """Two differences with a known normal law: their joint probability, and what moves with the errors."""
    from dataclasses import replace

    from scipy import stats

    rng = np.random.default_rng(3)
    obs = un.iid({"step": rng.gamma(2.0, 60.0, 400)}, y="step")
    fit = un.fit(un.Additive("s(step, k=5)", un.Box((0, 2000))), obs, un.Logistic(un.Uniform(), total=2000), rng=1)
    seen = np.sort(obs.outcome[:, 0])
    part = fit.smooths
    yes, share = near.asked(fit, "s(step)", "step", seen, DIAGONAL)
    x = seen[seen > 50]
    D = part.effect("s(step)", {"step": x})["estimate"]
    gaps = np.array([D[i].mean() for i in np.array_split(np.arange(x.size), 3)])
    gaps = gaps[:-1] - gaps[1:]
    assert yes is bool(np.all(gaps > 0))
    C = part.term("s(step)").design({"step": x})
    M = np.stack([C[i].mean(axis=0) for i in np.array_split(np.arange(x.size), 3)])
    L = M[:-1] - M[1:]
    span = part.slices["s(step)"]
    wide = replace(part.errors, total=400 * part.errors.total)
    for factor, here in ((1.0, fit), (400.0, replace(fit, smooths=replace(part, errors=wide)))):
        V = factor * L @ part.errors.total[span, span] @ L.T
        exact = stats.multivariate_normal(gaps, V).cdf(np.full(2, np.inf), lower_limit=np.zeros(2))
        assert near.asked(here, "s(step)", "step", seen, DIAGONAL)[1] == pytest.approx(exact, abs=0.03)
    assert share > near.asked(replace(fit, smooths=replace(part, errors=wide)), "s(step)", "step", seen, DIAGONAL)[1]
