"""What users of point patterns run into: labels that are numbers, poles, duplicates, distances beyond the window."""

import numpy as np
import pytest

import unnorm as un
from unnorm import patterns
from unnorm.patterns.scores import PatternScores

SQUARE = un.Box((0, 1), (0, 1))
RNG = np.random.default_rng(1)
XY = RNG.random((80, 2))
TWICE = np.concatenate([XY, XY[:1]])
GRID = un.pattern(np.stack(np.meshgrid(*2 * [np.linspace(0.05, 0.95, 10)]), -1).reshape(-1, 2), window=SQUARE)
PAIRS = un.pattern(np.concatenate([XY, np.abs(XY - 0.004)]), window=SQUARE)  # no point is alone


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
        (lambda: un.fit_pattern(GRID, interaction=un.Strauss(0.08), rng=1), r"closest two are 0\.1 apart.*HardCore"),
        (lambda: un.fit_pattern(plain(), interaction=un.Strauss(1e-6), rng=1), "nothing is within its reach"),
        (lambda: un.fit_pattern(PAIRS, interaction=un.Geyer(0.02, 1.0), rng=1), "'geyer' belongs to Geyer.* other"),
        (lambda: un.MultiStrauss([[0.1, 0.2], [0.3]]), "radii of MultiStrauss must be numeric"),
        (lambda: patterns.envelope(plain(), "L", 19, level=95, rng=1), "level must lie between 0 and 1"),
        (lambda: un.fit_pattern(plain(), rng=1).envelope("L", 19, level=95, rng=1), "level must lie between 0 and 1"),
        (lambda: patterns.K(plain(), types=("a", "b")), r"has none: un\.pattern"),
        (lambda: patterns.K(plain(), intensity=un.fit_pattern(plain(), rng=1)), "must be numeric; got PatternFit"),
        (lambda: patterns.G(XY), r"G is a function of a pattern.*got ndarray"),
        (lambda: un.fit_pattern(plain(), points=un.Dummies(np.zeros((0, 2)), rho=1.0)), "points= must bring more"),
        (
            lambda: un.pattern({"x": [0.1, 0.2], "y": [0.3, 0.4], "m": ["a", " "]}, ("x", "y"), window=SQUARE, marks="m"),  # noqa: E501
            "1 mark of 2 in marks='m' are empty, the first in row 1",
        ),
        (lambda: patterns.process(SQUARE, 4.0, un.MultiStrauss([[0.1]]), [-1.0]), "MultiStrauss needs types"),
        (lambda: patterns.process(SQUARE, {}), "it is empty"),
        (lambda: patterns.process(SQUARE, [4.0, 5.0]), r"got an array of shape \(2,\)"),
        (lambda: patterns.process(SQUARE, 4.0, correction="border"), "correction of a process must be one of"),
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


def test_the_number_of_dummies_and_rho() -> None:
    """A rho that is not the intensity of its points makes every intensity wrong: it is said."""
    points = np.random.default_rng(3).random((500, 2))
    with pytest.warns(un.errors.UnnormWarning, match="There are 500 dummy points, and rho says 5 in windows of area 1"):
        un.fit_pattern(plain(), points=un.Dummies(points, rho=5.0))
    with pytest.warns(un.errors.UnnormWarning, match="500 dummy points, and rho says 9"):
        un.fit_pattern(plain(), points=un.Dummies(points, rho=lambda xy: 200 + 1500 * xy[:, 0]))
    fit = un.fit_pattern(plain(), points=un.Dummies(points, rho=lambda xy: 490 + 20 * xy[:, 0]))
    assert fit.theta["(Intercept)"] == pytest.approx(np.log(80), abs=0.01)


def test_types_in_the_order_of_the_table() -> None:
    pd = pytest.importorskip("pandas")
    kind = pd.Categorical(["oak", "ash"] * 40, categories=["oak", "elm", "ash"])
    table = pd.DataFrame({"x": XY[:, 0], "y": XY[:, 1], "kind": kind})
    assert un.pattern(table, ("x", "y"), window=SQUARE, marks="kind").mark_levels == ("oak", "ash")
    given = un.pattern(table, ("x", "y"), window=SQUARE, marks="kind", types=("ash", "oak"))
    assert given.mark_levels == ("ash", "oak")


def test_types_of_points_are_simulated() -> None:
    """Of a Poisson process with types, each has its own intensity; of one with an interaction, the types keep apart."""
    both = patterns.process(SQUARE, {"a": np.log(40.0), "b": lambda xy: np.log(10 + 180 * xy[:, 0])}).simulate(
        60, rng=4
    )
    counts = np.array([np.bincount(one.places.mark, minlength=2) for one in both])
    assert np.all(np.abs(counts.mean(axis=0) - [40, 100]) < 4 * np.sqrt(np.array([40, 100]) / 60))
    right = np.mean([np.sum(one.xy[one.places.mark == 1, 0] > 0.5) for one in both])
    assert right == pytest.approx(10 * 0.5 + 180 * 3 / 8, abs=4 * np.sqrt(73 / 60))
    apart = un.MultiStrauss([[0.0, 0.1], [0.1, 0.0]])
    made = patterns.process(SQUARE, {"a": np.log(60.0), "b": np.log(60.0)}, apart, [-8.0]).simulate(5, rng=5)
    for one in made:
        d = np.hypot(*(one.xy[one.places.mark == 0][:, None] - one.xy[one.places.mark == 1][None]).transpose(2, 0, 1))
        assert np.sum(d <= 0.1) <= 3
        assert patterns.K(one, types=("a", "b")).value[-1] < patterns.K(one).value[-1] * 2


def test_a_plot_without_simulations() -> None:
    """Where nothing can be simulated the other pictures are drawn, and the reason stands in place of the envelope."""
    import matplotlib as mpl

    mpl.use("Agg")
    with pytest.warns(un.errors.UnnormWarning, match="attracts"):
        fit = un.fit_pattern(PAIRS, interaction=un.Strauss(0.05), dummies=2000, rng=1)
    _, axes = fit.plot()
    assert "There is no process" in axes[2].texts[0].get_text()


def test_binomial_dummies_near_the_border() -> None:
    """How many of m points fall inside is random: Σ2 is ρ∫g² − (ρ∫g)²/m, m that of the whole window."""
    fit = un.fit_pattern(plain(), interaction=un.Geyer(0.1, 2.0), design="binomial", dummies=400, rng=3)
    p = fit.fitted.p
    X = np.concatenate([chunk for _, chunk in fit.fitted.gam.design_chunks()])
    a = X.T @ (p * (1 - p))
    expected = (X * (p**2 * (1 - p))[:, None]).T @ X - np.outer(a, a) / 400
    np.testing.assert_allclose(PatternScores(fit.fitted).points_spread(2), expected, rtol=1e-9)
