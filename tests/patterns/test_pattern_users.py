"""What users of point patterns run into: labels that are numbers, poles, duplicates, distances beyond the window."""

import numpy as np
import pytest

import unnorm as un
from unnorm import patterns

SQUARE = un.Box((0, 1), (0, 1))
RNG = np.random.default_rng(1)
XY = RNG.random((80, 2))
TWICE = np.concatenate([XY, XY[:1]])


def plain(xy: np.ndarray = XY) -> un.Pattern:
    return un.pattern({"x": xy[:, 0], "y": xy[:, 1]}, ("x", "y"), window=SQUARE)


def test_random_effects_of_numbered_replicates() -> None:
    """A replicate's number is a label: 15 effects, not one slope."""
    rng = np.random.default_rng(2)
    effect = rng.normal(0, 0.6, 15)
    counts = rng.poisson(np.exp(4 + effect))
    plot = np.repeat(np.arange(15), counts)
    table = {"x": rng.random(len(plot)), "y": rng.random(len(plot)), "plot": plot}
    pattern = un.pattern(table, ("x", "y"), window=SQUARE, replicate="plot")
    fit = un.fit_pattern(pattern, "s(plot, bs='re')", rng=3)
    assert 10 < fit.edf["s(plot)"] < 15
    found = fit.effect("s(plot)")
    np.testing.assert_array_equal(found["plot"], np.arange(15))
    assert np.corrcoef(found["estimate"], effect)[0, 1] > 0.95
    shrunk, raw = found["estimate"] - found["estimate"].mean(), np.log(counts) - np.log(counts).mean()
    assert 0.7 < shrunk @ raw / (raw @ raw) < 1.0
    trend = un.fit_pattern(pattern, "plot", rng=3)  # by itself a number is a number
    assert trend.names == ("(Intercept)", "plot")


def test_a_pole_is_told() -> None:
    d = un.Expression("d", "sqrt((x - 0.5)**2 + (y - 0.5)**2)")
    with pytest.warns(un.errors.UnnormWarning, match=r"at \(0\.[45]\d*, 0\.[45]\d*\), carries .* integral is infinite"):
        fit = un.fit_pattern(plain(), "offset(-3*log(d))", covariates=[d], rng=1)
    assert any("pole" in note for note in fit.notes)
    assert un.fit_pattern(plain(), "offset(-log(d))", covariates=[d], rng=1).notes == ()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: un.fit_pattern(plain(TWICE), interaction=un.HardCore(0.001)), r"same place, and two points lie at"),
        (lambda: un.fit_pattern(plain(TWICE), interaction=un.Softcore(0.1, 0.5, 0.01)), "points in the same place"),
        (lambda: un.HardCore.largest(plain(TWICE)), "There is no hard core: two points"),
        (lambda: patterns.K(plain(), [0.5, 3.0]), r"r goes up to 3, and no two .* 1\.41421"),
        (lambda: patterns.G(plain(), [0.5, 3.0]), "Take a smaller r"),
        (lambda: patterns.K(plain(), intensity=np.zeros(80)), r"it is 0 at \(0\."),
        (lambda: un.pattern({"x": [0.1], "y": [0.2]}, ("x", "y"), window=SQUARE, marks="kind"), "by marks='kind'"),
        (lambda: un.pattern([[0.1, 0.2]], window=SQUARE, marks="kind"), "an array has none: pass a table"),
        (lambda: patterns.process(SQUARE, lambda xy: np.full(len(xy), np.inf)).simulate(rng=1), r"is inf at \("),
        (
            lambda: patterns.process(SQUARE, lambda xy: -3 * np.log(np.hypot(*xy.T))).simulate(20, rng=1),
            "a pole whose integral may be infinite|too peaked",
        ),
        (lambda: un.fit_pattern(plain(), "z", covariates=un.Expression("z", "x")), r"a list: covariates=\[z\]"),
        (lambda: un.fit(un.Additive("s(x)", SQUARE), plain(), objective=un.Exact()), "goes to un.fit_pattern"),
        (lambda: un.fit_pattern(plain(), rng=1).bic, "BIC needs the likelihood"),
        (lambda: un.fit_pattern(plain(), rng=1).loglik, r"fit\.wald"),
        (lambda: un.fit_pattern(plain(), rng=1).bits, r"fit\.envelope"),
        (lambda: un.fit_pattern(plain(), interaction=un.Strauss(0.6), rng=1), "None of 80 .* correction='isotropic'"),
    ],
)  # fmt: skip
def test_bad_input(make, says: str) -> None:
    with pytest.raises(un.errors.UnnormError, match=says):
        make()


def test_duplicates_can_be_dropped() -> None:
    """The remedy works."""
    twice = plain(TWICE)
    once = twice.take(~twice.duplicated())
    assert once.n == 80
    un.fit_pattern(once, interaction=un.HardCore(un.HardCore.largest(once)), dummies=500, rng=1)


@pytest.mark.parametrize("function", ["F", "G", "J", "K"])
def test_envelopes_know_the_intensity(function: str) -> None:
    """A Poisson pattern with a strong gradient is no surprise to its own model."""
    made = patterns.process(SQUARE, lambda xy: 3.5 + 2.5 * xy[:, 0]).simulate(rng=5)[0]
    fit = un.fit_pattern(un.pattern(made.xy, ("x", "y"), window=SQUARE), "x", rng=1)
    options = {"raster": 32} if function in "FJ" else {}
    found = fit.envelope(function, 39, rng=6, **options)
    assert found.p > 0.05
    if function == "G":  # one bound for all: the theory that data and simulations share
        at = fit.process()
        lam = np.exp(at.log_trend(made.places))
        own = patterns.G(made, found.r, intensity=lam, least=0.9 * float(lam.min()))
        assert np.abs(own.value - found.observed).max() < 0.2


def test_inhomogeneous_by_definition() -> None:
    """The means of Π(1 − λ_min/λ) over places far enough from the border."""
    lam = 50 + 60 * XY[:, 0]
    least, r = 40.0, np.array([0.0, 0.04, 0.09, 0.17])
    d = np.hypot(*(XY[:, None] - XY[None]).transpose(2, 0, 1))
    gap = np.minimum(XY, 1 - XY).min(axis=1)
    for k in range(1, 4):
        s = np.where(np.eye(80, dtype=bool) | (d > r[k]), 1.0, 1 - least / lam[None]).prod(axis=1)
        g = 1 - s[gap >= r[k]].mean()
        assert patterns.G(plain(), r, intensity=lam, least=least).value[k] == pytest.approx(g, rel=1e-12)
