"""Smoothing of objectives that are no sums over rows: the lowest of several minima, and steps that would go too far."""

import numpy as np
import pytest

import unnorm as un
from unnorm.solvers import penalised
from unnorm.solvers.reml_search import Search

pytestmark = pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
EXACT, RANKING = un.Exact(order=30), un.Ranking(un.Uniform(), per_point=10)
TENSOR = "te(y,z,bs=['tp','tp'],k=5)"


def outcomes(seed):
    """y on (0, 1) given z, which is even or very skewed."""
    r = np.random.default_rng(seed)
    n = int(r.choice([60, 150, 300]))
    z = r.random(n) if r.random() < 0.5 else np.exp(2 * r.normal(size=n))
    v, _ = r.normal(size=n), r.integers(0, 4, n)
    y = 0.5 + 0.25 * (np.tanh(z) - 0.5) * np.sin(r.choice([1, 3, 9]) * z) + (0.05 + 0.1 * r.random()) * r.normal(size=n)
    return un.conditional({"y": np.clip(y, 0.001, 0.999), "z": z, "v": v}, y="y", x=("z", "v"))


def fitted(formula, data, objective, sp=None):
    smoothing = {} if sp is None else {"smoothing": un.Smoothing(sp=sp)}
    return un.fit(un.Additive(formula, un.Interval(0, 1)), data, objective, rng=1, **smoothing)


@pytest.mark.parametrize(
    ("seed", "formula", "objective", "lower"),
    [
        (42, "te(y,z,bs=['tp','tp'],k=5)", EXACT, -75.78),  # was −74.88, with both λ finite
        (58, "s(y)+ti(y,z,k=5)", RANKING, 200.89),  # was 201.45
        (147, "s(y)+ti(y,z,k=5)", RANKING, 90.67),  # was 92.14
        (65, "s(y,bs='ad',k=15)", RANKING, 104.96),  # was 105.23: five penalties of one term
    ],
)
def test_the_lower_of_two_minima(seed, formula, objective, lower):
    fit = fitted(formula, outcomes(seed), objective)
    assert fit.converged
    assert fit.smooths.score < lower


def test_a_higher_minimum_does_not_take_the_place_of_a_lower_one(monkeypatch):
    others = Search.others
    monkeypatch.setattr(Search, "others", lambda self, lam, last: [*others(self, lam, last), self.start])
    fit = fitted("te(y,z,bs=['tp','tp'],k=5)", outcomes(42), EXACT)  # from where it starts, −74.88
    assert fit.smooths.score < -75.78


def test_a_search_that_did_not_end_takes_no_fits_place(monkeypatch):
    """However low the criterion was where it stopped."""
    reml = penalised._reml

    def others(self, lam, last):
        monkeypatch.setattr(penalised, "MOST_UPDATES", 1)
        monkeypatch.setattr(penalised, "_reml", lambda *about: reml(*about) - 10.0)
        return [self.start]

    monkeypatch.setattr(Search, "others", others)
    fit = fitted("s(y)", outcomes(42), EXACT)
    assert penalised.MOST_UPDATES == 1
    assert fit.converged


def test_an_infinite_smoothing_parameter_is_compared_with_far_smaller_ones():
    """The engine's fit on a contrast finds λ = e⁻¹⁶; there 𝓛 has a lower criterion too, of which the quadratic at an
    infinite λ tells nothing (it was −88.02)."""
    rng = np.random.default_rng(8)
    rng.random(150)
    rng.normal(size=150)
    z = np.exp(2 * rng.normal(size=150))
    y = np.clip(0.5 + 0.25 * (np.tanh(z) - 0.5) + 0.12 * rng.normal(size=150), 0.001, 0.999)
    fit = fitted("te(y,z,bs=['tp','tp'],k=5)", un.conditional({"y": y, "z": z}, y="y", x=("z",)), EXACT)
    assert fit.converged
    assert fit.smooths.score < -90.4


@pytest.mark.parametrize(
    ("seed", "formula", "objective"),
    [
        (7, "ti(y)+ti(y,z)+ti(y,v)", RANKING),
        (71, "s(y)+s(y,by=z)", EXACT),
        (63, TENSOR, RANKING),
        (65, "te(y,z,v,k=3)", RANKING),
    ],
)
def test_steps_beyond_the_quadratic_are_mended(seed, formula, objective, monkeypatch):
    """The criterion bends more than the quadratic at β̂ tells: steps to its minimum went back and forth without end."""
    monkeypatch.setattr(Search, "others", lambda self, lam, last: [])  # another start would hide it
    data = outcomes(seed)
    fit = fitted(formula, data, objective)
    assert fit.converged
    assert fit.iterations < 50  # up to 36, by the library of linear algebra
    for label, sp in fit.smooths.sp.items():
        for factor in (0.7, 1.4):
            moved = fitted(formula, data, objective, {**fit.smooths.sp, label: factor * sp})
            assert moved.smooths.score > fit.smooths.score - 1e-3
