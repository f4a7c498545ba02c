"""Scores of predicted points: information gain, NSS and AUC against their definitions, and clustered errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import InputError, OutsideError
from unnorm.results.centre_bias import centre_bias
from unnorm.results.scores import GAIN, OVER_BASELINE, clustered_error, clusterings

WIDTH, HEIGHT = 8.0, 6.0


def chain(seed: int, paths: int = 40, steps: int = 12) -> un.Observations:
    rng = np.random.default_rng(seed)
    rows = []
    for path in range(paths):
        x = rng.normal((4, 3), 1.0)
        for t in range(steps):
            rows.append((path % 5, path % 8, path, t, *np.clip(x, 0.01, (7.99, 5.99))))
            x = np.clip(0.7 * x + 0.3 * np.array([4, 3]) + rng.normal(0, 0.9, 2), 0.01, (7.99, 5.99))
    names = ("subject", "image", "path", "t", "x", "y")
    table = {name: np.array(column) for name, column in zip(names, zip(*rows))}
    return un.transitions(table, y=("x", "y"), order="t", group=("subject", "image", "path"))


@pytest.fixture(scope="module")
def fit() -> un.Fit:
    model = un.Additive("s(step, k=6) + s(dcenter, k=5)", un.Box((0, WIDTH), (0, HEIGHT)))
    return un.fit(model, chain(1), un.Logistic(per_point=10), rng=2)


@pytest.fixture(scope="module")
def scores(fit):
    return fit.scores(chain(7), by=("subject", "image"))


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # a node lies far outside the few data
def test_scores_are_their_definitions_on_a_fine_grid(fit, scores):
    obs = chain(7)
    x, y = (np.arange(160) + 0.5) * WIDTH / 160, (np.arange(120) + 0.5) * HEIGHT / 120
    places = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    volume = WIDTH * HEIGHT
    for t in (0, 57, 200, 401):
        one = obs.take(np.array([t]))
        p = np.exp(fit.density.log_f(one, places, np.zeros(len(places), int)))
        here = np.exp(fit.density.log_f(one, one.outcome, np.zeros(1, int)))[0]
        assert scores.each[GAIN][t] == pytest.approx(np.log2(here / p.mean()), abs=0.01)
        assert scores.each["NSS"][t] == pytest.approx((here - p.mean()) / p.std(), abs=0.03)
        assert scores.each["AUC"][t] == pytest.approx(np.mean(p < here), abs=0.06)
    assert scores[GAIN][0] == pytest.approx(fit.held_out(obs).bits_uniform, abs=2e-3)
    assert volume > 0


def test_gain_over_the_baseline_is_the_difference_of_the_gains(scores):
    base = scores.each["centre bias: information gain over uniform"]
    np.testing.assert_allclose(scores.each[OVER_BASELINE], scores.each[GAIN] - base)
    assert scores[GAIN][0] > scores[OVER_BASELINE][0] > 0
    assert scores["centre bias: AUC"][0] > 0.5
    text = str(scores)
    assert "information gain over centre bias" in text
    assert "(subject: 5 and image: 8)" in text


def test_the_baseline_finds_a_law_of_places_and_uniform_places_have_no_gain():
    rng = np.random.default_rng(3)
    domain = un.Windows({0: (8, 6), 1: (4, 12)}, "image")
    u = rng.beta(4, 4, (6000, 2))  # shares of each window
    image = np.arange(6000) % 2
    size = np.array([(8, 6), (4, 12)])[image]
    obs = un.conditional(
        {"x": u[:, 0] * size[:, 0], "y": u[:, 1] * size[:, 1], "image": image}, y=("x", "y"), x="image"
    )
    bias = centre_bias(domain, obs.take(np.arange(0, 6000, 2)), None)
    new = obs.take(np.arange(1, 6000, 2))
    new = obs if new.n == 0 else new
    from scipy.stats import beta

    truth = np.log2(beta.pdf(u, 4, 4)).sum(axis=1).mean()
    assert bias.relative(domain, new)["bits"].mean() == pytest.approx(truth, abs=0.05)
    flat = un.conditional(
        {"x": rng.random(3000) * 8, "y": rng.random(3000) * 6, "image": np.zeros(3000, int)}, y=("x", "y"), x="image"
    )
    none = centre_bias(domain, flat, None).relative(domain, flat)
    assert abs(none["bits"].mean()) < 0.03
    assert none["auc"].mean() == pytest.approx(0.5, abs=0.05)


def test_two_way_clustered_errors_by_the_double_sum():
    rng = np.random.default_rng(5)
    n = 60
    values, w = rng.normal(size=n), rng.integers(1, 4, n).astype(float)
    a, b = rng.integers(0, 7, n), rng.integers(0, 5, n)
    r = w * (values - np.average(values, weights=w)) / w.sum()

    def v(code):
        c = len(np.unique(code))
        return c / (c - 1) * sum(r[code == k].sum() ** 2 for k in np.unique(code))

    both = np.unique(np.column_stack([a, b]), axis=0, return_inverse=True)[1].ravel()
    expected = v(a) + v(b) - v(both)
    codes = [np.unique(one, return_inverse=True)[1] for one in (a, b)]
    assert clustered_error(values, w, codes) == pytest.approx(np.sqrt(expected))
    assert clustered_error(values, w, codes[:1]) == pytest.approx(np.sqrt(v(a)))
    assert clustered_error(values, np.ones(n), []) == pytest.approx(values.std(ddof=1) / np.sqrt(n))


def test_conditions_and_single_levels_are_no_clusters():
    subject, image = np.repeat(np.arange(8), 30), np.tile(np.arange(30), 8)
    some = {"subject": subject, "image": image}
    assert clusterings({**some, "pace": subject % 2}) == ("subject", "image")  # a group of subjects
    assert clusterings({"subject": subject, "pace": subject % 2}) == ("subject",)
    assert clusterings({**some, "task": (subject + image) % 3}) == ("subject", "image")  # within both
    assert clusterings({**some, "site": subject // 2}) == ("subject", "image")
    assert clusterings({"subject": 0 * subject, "image": image}) == ("image",)  # one subject says nothing
    assert clusterings({"subject": subject, "image": image % 3}) == ("subject", "image")  # few images are images
    assert clusterings({}) == ()


def test_one_subject_in_two_groups_of_images_has_an_interval_by_images(fit):
    """A t quantile with one degree of freedom made information gains of −2.9 to 6.0."""
    obs = chain(7)
    sequence = obs.sequence
    alone = replace(obs, group={"subject": 0 * sequence, "image": sequence, "half": sequence % 2})
    found = fit.scores(alone)
    assert found.clusters == {"image": len(np.unique(sequence))}
    assert found.upper[0] - found.lower[0] < 6 * found[GAIN][1]
    assert "(image: " in str(found)


def test_scores_in_windows_of_their_own():
    rng = np.random.default_rng(6)
    sizes = {"a": (8.0, 6.0), "b": (4.0, 9.0)}
    rows = []
    for path in range(30):
        image = "ab"[path % 2]
        size = np.array(sizes[image])
        x = size / 2
        for t in range(10):
            rows.append((path, image, t, *x))
            x = np.clip(0.6 * x + 0.2 * size + rng.normal(0, 0.8, 2), 0.01, size - 0.01)
    table = {name: np.array(c) for name, c in zip(("path", "image", "t", "x", "y"), zip(*rows))}
    obs = un.transitions(table, y=("x", "y"), order="t", group=("path", "image"))
    model = un.Additive("step + drel", un.Windows(sizes, "image"))
    fit = un.fit(model, obs, un.Logistic(per_point=10), rng=1)
    found = fit.scores(obs)
    assert found[GAIN][0] == pytest.approx(fit.held_out(obs).bits_uniform, abs=2e-3)
    assert np.all((found.each["AUC"] >= 0) & (found.each["AUC"] <= 1))


def test_what_is_wrong_is_said(fit):
    obs = chain(7)
    with pytest.raises(InputError, match="by names 'observer'"):
        fit.scores(obs, by=("observer",))
    far = un.transitions({"x": [1.0, 9.0], "y": [1.0, 2.0]}, y=("x", "y"))
    with pytest.raises(OutsideError, match="1 of 1 observations lie outside"):
        fit.scores(far)
    with pytest.raises(InputError, match="There is no score 'nss'"):
        fit.scores(obs)["nss"]


def test_a_flat_baseline_has_no_bits_and_an_auc_of_one_half():
    from unnorm.results.centre_bias import CELLS, CentreBias

    found = CentreBias(np.ones((CELLS, CELLS)), 0.1, 1.0, 1).relative(un.Box((0, WIDTH), (0, HEIGHT)), chain(7))
    assert np.all(found["auc"] == 0.5)
    assert np.all(found["bits"] == 0.0)
