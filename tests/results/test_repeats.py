"""Repeated fits: bootstrap and redraws, here and by workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import CombinationError, InputError, NoEstimateError
from unnorm.results import repeats

pytestmark = pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
CHAIN = un.transitions(un.datasets.toy_chain(150, 0.5, 5.0, rng=1))
NCE = un.Logistic(un.Uniform(), per_point=5)


def test_a_unit_drawn_twice_counts_twice() -> None:
    unit = np.arange(CHAIN.n) // 10
    rng = np.random.default_rng(4)
    here = repeats._resampled(CHAIN, unit, rng)
    drawn = np.random.default_rng(4).integers(15, size=15)
    rows = np.concatenate([np.flatnonzero(unit == u) for u in drawn])
    assert here.weights.sum() == CHAIN.n
    one, other = un.fit(TOY, here), un.fit(TOY, CHAIN.take(rows))
    np.testing.assert_allclose(one.estimate, other.estimate, atol=1e-6)


def test_repetitions_do_not_depend_on_who_runs_them_or_how_many_there_are(client: Any) -> None:
    here = un.bootstrap(TOY, CHAIN, NCE, times=4, rng=3)
    np.testing.assert_array_equal(
        here.estimates, un.bootstrap(TOY, CHAIN, NCE, times=4, rng=3, workers=client).estimates
    )
    fewer = un.bootstrap(TOY, CHAIN, NCE, times=2, rng=3)
    np.testing.assert_array_equal(here.estimates[:2], fewer.estimates)
    assert len(np.unique(here.estimates[:, 0])) == 4
    assert here.units == "observations"


def test_redraws_are_fits_with_other_seeds(client: Any) -> None:
    found = un.redraws(TOY, CHAIN, NCE, times=3, rng=3, workers=client)
    for i in range(3):
        alone = un.fit(TOY, CHAIN, NCE, rng=repeats._own_seed(3, 2, i))
        np.testing.assert_allclose(found.estimates[i], alone.estimate, atol=1e-12)
    np.testing.assert_array_equal(found.fit.estimate, un.fit(TOY, CHAIN, NCE, rng=3).estimate)
    with pytest.raises(CombinationError, match="draw reference points"):
        un.redraws(TOY, CHAIN, un.Exact())


def test_curves_of_smooth_terms_are_on_the_fits_own_grid() -> None:
    rng = np.random.default_rng(2)
    obs = un.iid({"y": rng.beta(2, 3, 300), "who": np.repeat(np.arange(30), 10)}, y="y", group="who")
    model = un.Additive("s(y, k=6)", un.Interval(0, 1))
    found = un.bootstrap(model, obs, un.Logistic(un.Uniform(), total=600), times=3, by="who", rng=1)
    table = found.effect("s(y)")
    own = found.fit.effect("s(y)")
    np.testing.assert_array_equal(table["y"], own["y"])
    np.testing.assert_array_equal(table["estimate"], own["estimate"])
    assert found.curves["s(y)"].shape == (3, len(own["y"]))
    np.testing.assert_allclose(table["se"], found.curves["s(y)"].std(axis=0, ddof=1))
    assert "levels of 'who'" in repr(found)
    with pytest.raises(InputError, match="There is no effect"):
        found.effect("s(x)")


def test_failures_are_said_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, calls = repeats.fit, [0]

    def sometimes(*given: Any, **more: Any) -> Any:
        calls[0] += 1
        if calls[0] == 2:
            raise NoEstimateError("not this time")
        return whole(*given, **more)

    monkeypatch.setattr(repeats, "fit", sometimes)
    monkeypatch.setattr(repeats, "cores", lambda: 1)
    found = un.bootstrap(TOY, CHAIN, times=3, rng=1)
    assert found.failures == {0: "NoEstimateError: not this time"}
    assert np.isnan(found.estimates[0]).all()
    table = found.tidy()
    np.testing.assert_allclose(table["se"], found.estimates[1:].std(axis=0, ddof=1))
    np.testing.assert_allclose(found.se, table["se"])


def test_units_are_sequences_where_there_are_enough() -> None:
    chains = [un.datasets.toy_chain(8, 0.5, 5.0, rng=s) for s in range(25)]
    table = {"y": np.concatenate(chains), "s": np.repeat(np.arange(25), 9)}
    obs = un.transitions(table, y="y", group="s")
    assert repeats._units(obs, None)[1] == "sequences"
    assert repeats._units(obs, None)[0].max() == 24
    with pytest.raises(InputError, match="by must name a group column"):
        un.bootstrap(TOY, obs, by="nobody")


def test_specs_compared_by_workers_have_the_same_numbers(client: Any) -> None:
    specs = {"ML": {"objective": un.Exact()}, "NCE": {"objective": NCE}, "again": {"objective": NCE}}
    here, there = (un.compare(TOY, CHAIN, specs, rng=2, workers=where) for where in (None, client))
    for name in specs:
        np.testing.assert_allclose(here[name].estimate, there[name].estimate, atol=1e-12)
        np.testing.assert_allclose(here[name].se, there[name].se, rtol=1e-9)
    assert here.shared == there.shared == (("NCE", "again"),)


def test_folds_of_a_penalty_path_by_workers(client: Any) -> None:
    y = np.random.default_rng(0).integers(0, 2, (120, 3))
    options: dict[str, Any] = {"folds": 3, "rng": 1, "strengths": [0.1, 0.01]}
    here, there = (un.penalty_path(un.Ising(3), un.iid(y), **options, workers=where) for where in (None, client))
    np.testing.assert_allclose(here.score, there.score, rtol=1e-12)
    assert here.chosen == there.chosen
