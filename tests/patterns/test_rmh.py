"""Simulated Gibbs patterns have the summaries of spatstat's rmh: points, close pairs and K, their means and spreads."""

import numpy as np
import pytest
from figures import read
from scipy.spatial import KDTree

import unnorm as un
from unnorm import patterns

SQUARE = un.Box((0, 1), (0, 1))
MODELS = {
    "strauss .2": (200.0, un.Strauss(0.05), [np.log(0.2)]),
    "strauss .7": (200.0, un.Strauss(0.05), [np.log(0.7)]),
    "geyer": (60.0, un.Geyer(0.05, 2.0), [np.log(1.5)]),
    "hardcore": (150.0, un.HardCore(0.04), []),
}


@pytest.mark.parametrize("name", MODELS)
def test_summaries(name: str) -> None:
    beta, interaction, phi = MODELS[name]
    drawn = patterns.process(SQUARE, float(np.log(beta)), interaction, phi).simulate(300, rng=7)
    k = np.array([patterns.K(one, [0.05, 0.1]).value[1:] for one in drawn])
    close = [len(KDTree(one.xy).query_pairs(0.05)) for one in drawn]
    mine = {"n": np.array([one.n for one in drawn]), "close": np.array(close), "K05": k[:, 0], "K10": k[:, 1]}
    table = read("rmh.csv")
    for summary, values in mine.items():
        here = (table["model"] == name) & (table["summary"] == summary)
        mean, sd, many = (float(table[column][here][0]) for column in ("mean", "sd", "patterns"))
        error = sd * np.sqrt(1 / many + 1 / len(values))
        assert abs(values.mean() - mean) < 4 * error, (summary, values.mean(), mean, error)
        # the spread too, to four errors of a ratio of variances with tails a little heavier than normal
        assert abs(np.log(values.std(ddof=1) / sd)) < 4 * np.sqrt(0.75 / many + 0.75 / len(values)), summary


def test_without_interaction_it_is_poisson() -> None:
    """Births and deaths balance at every n: with γ = 1 the number of points is Poisson."""
    drawn = patterns.process(SQUARE, float(np.log(4.0)), un.Strauss(0.05), [0.0]).simulate(1000, rng=9)
    n = np.array([one.n for one in drawn])
    assert abs(n.mean() - 4.0) < 4 * 2 / np.sqrt(1000)
    assert abs(n.var() - 4.0) < 4 * np.sqrt((3 * 16 + 4 - 16) / 1000)  # κ₄ + 2σ⁴
    assert abs(np.mean(n == 0) - np.exp(-4)) < 4 * np.sqrt(np.exp(-4) / 1000)


def test_a_chain_that_drifts_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """From no points to 2,000 in a thousand steps it cannot have settled; given time it has."""
    process = patterns.process(SQUARE, float(np.log(2000.0)), un.Strauss(0.001), [-0.1])
    with monkeypatch.context() as patched:
        for name, value in (("LEAST", 100), ("ROUND", 0), ("MOST_ROUNDS", 10)):
            patched.setattr(f"unnorm.patterns.gibbs.{name}", value)
        with pytest.warns(un.errors.UnnormWarning, match="still drifts, from"):
            process.simulate(rng=1)
    assert abs(process.simulate(rng=1)[0].n - 1994) < 5 * np.sqrt(2000)


def test_patterns_of_one_chain_are_apart() -> None:
    n = np.array([one.n for one in patterns.process(SQUARE, 5.3, un.Strauss(0.05), [-1.6]).simulate(400, rng=3)])
    assert abs(np.corrcoef(n[1:], n[:-1])[0, 1]) < 4 / np.sqrt(400)
