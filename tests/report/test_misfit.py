"""What the report says that a model misses: points drawn from the fit beside the observed ones, and the term to add."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.engine import segment
from unnorm.report.analysis import grouped, pooled
from unnorm.report.misfit import FEATURES, LEAST, MATTERS, MOST_CELLS, Misfit, _cells, advice, misfits
from unnorm.report.sections import misfit
from unnorm.report.sections.simulated import _pieces

BOX = un.Box((0, 8), (0, 6))
COLUMNS = ("step", "across", "down", "across_before", "down_before")


def _points(rng, n, **shifts):
    """Features of n points, uniform but for what is shifted."""
    out = {name: rng.random(n) for name in COLUMNS} | {
        name: rng.uniform(-np.pi, np.pi, n) for name in ("direction", "turn")
    }
    for name, shift in shifts.items():
        out[name] = rng.vonmises(0.0, shift, n) if name in ("direction", "turn") else rng.beta(1.0 + shift, 1.0, n)
    return out


def test_each_feature_is_found_by_itself_and_its_size_is_that_of_the_log_density():
    rng = np.random.default_rng(1)
    n = 3000
    for name, given in {"step": {"step": 1.0}, "direction": {"direction": 1.0}, "turn": {"turn": 1.0}}.items():
        found = {one.feature.name: one for one in misfits(_points(rng, n, **given), _points(rng, 2 * n))}
        assert [one.feature.name for one in found.values() if one.missed] == [name]
        # log density of Beta(2, 1) over the uniform, log 2u, has sd 1; of von Mises(0, 1) κ cos, sd 1/√2
        assert found[name].size == pytest.approx({"step": 1.0}.get(name, np.sqrt(0.5)), rel=0.15)
    places = misfits(_points(rng, n, across=1.0), _points(rng, n))[-1]
    assert places.missed
    assert not places.radial
    assert not any(one.missed for one in misfits(_points(rng, n), _points(rng, n)))


def test_weights_are_repeated_points():
    rng = np.random.default_rng(2)
    n = 900  # 1,800 rows and 3,600: places have the same grid
    a, b, w = _points(rng, n, step=0.6), _points(rng, n), rng.integers(1, 4, n)
    weighted = misfits(a, b, w.astype(float))
    repeated = misfits(*({name: np.repeat(v, w) for name, v in side.items()} for side in (a, b)))
    for one, other in zip(weighted, repeated):
        assert one.size == pytest.approx(other.size, rel=1e-3)
        assert one.observed == pytest.approx(other.observed)
        assert one.drawn == pytest.approx(other.drawn)


@pytest.mark.parametrize(("n", "spread"), [(100, 1.0), (900, 1.0), (900, 0.03), (6_000, 1.0)])
def test_no_kernels_are_compiled_that_other_fits_do_not_need(monkeypatch, n, spread):
    """A second kind of the large kernels takes ten seconds in a fresh installation."""
    asked = []
    known = segment.kernel
    monkeypatch.setattr(segment, "kernel", lambda name, bare=True: (asked.append((name, bare)), known(name, bare))[1])
    a, b = (_points(np.random.default_rng(i), n) for i in range(2))
    for side in (a, b):
        side["across"], side["down"] = 0.4 + spread * (side["across"] - 0.5), 0.5 + spread * (side["down"] - 0.5)
    assert [one.feature.name for one in misfits(a, b, np.ones(n))] == ["step", "direction", "turn", "place"]
    assert {name for name, _ in asked} >= {"cross_products", "leverages"}
    assert all(bare for _, bare in asked)


def test_places_are_rounded_to_a_grid_that_is_as_fine_as_the_rows_allow():
    rng = np.random.default_rng(4)
    for n, spread in ((300, 1.0), (3_000, 1.0), (20_000, 1.0), (3_000, 0.1)):
        place = 0.5 + spread * (rng.random((2, n)) - 0.5)
        centre, cell = _cells(place)
        most = min(n // 4, MOST_CELLS)
        assert most / 2 < np.unique(cell).size <= most
        assert np.unique(cell).size == np.unique(centre, axis=1).shape[1]
        assert np.abs(centre - place).max() <= spread / np.sqrt(most) * 2
    assert np.unique(_cells(np.tile([[0.2, 1.0], [0.3, 1.0]], 50))[1]).size == 2


def test_paths_without_turns_are_compared_in_the_rest():
    rng = np.random.default_rng(3)
    a, b = _points(rng, 200), _points(rng, 200)
    a["turn"][:], b["turn"][:] = np.nan, np.nan
    assert [one.feature.name for one in misfits(a, b)] == ["step", "direction", "place"]


def test_advice_names_the_term_or_a_larger_k():
    by_name = {one.name: one for one in FEATURES}

    def missed(name: str, radial: bool = False) -> Misfit:
        return Misfit(by_name[name], (0.0,), (0.0,), 2 * MATTERS, 0.0, radial)

    def said(one: Misfit, *columns: str, windows: bool = False) -> str:
        return advice([one], frozenset(columns), windows)[one.feature.name]

    assert said(missed("step")) == "add s(step, k=20)"
    assert "larger k" in said(missed("step"), "step")
    assert said(missed("place", radial=True), "step") == "add s(drel, k=10)"
    assert said(missed("place", radial=True), "drel") == "add s(x, y, k=40)"
    assert said(missed("place", radial=True), "dcenter") == "add s(x, y, k=40)"
    assert said(missed("place")) == "add s(x, y, k=40)"
    assert said(missed("place"), windows=True) == "add s(xrel, yrel, k=40)"
    assert "larger k" in said(missed("place"), "x", "y")
    both = advice([missed("direction"), missed("place")], frozenset({"angle"}))
    assert both == {"direction": "look again when what lacks is added", "place": "add s(x, y, k=40)"}
    small = Misfit(by_name["step"], (0.0,), (0.0,), MATTERS / 2, 0.0)
    unsure = Misfit(by_name["step"], (0.0,), (0.0,), 2 * MATTERS, 0.05)
    assert not small.missed
    assert not unsure.missed


@pytest.fixture(scope="module")
def walks() -> un.Observations:
    """Steps that go on in their direction, near the left side of the window."""
    rng = np.random.default_rng(3)
    rows = []
    for path in range(80):
        x, phi = rng.uniform((1, 1), (5, 5)), rng.uniform(-np.pi, np.pi)
        for t in range(12):
            rows.append((path, t, *x))
            while True:
                turned = phi + rng.vonmises(0.0, 4.0)
                y = x + rng.gamma(4, 0.2) * np.array([np.cos(turned), np.sin(turned)])
                if BOX.contains(y[None])[0]:
                    break
                phi = rng.uniform(-np.pi, np.pi)
            x, phi = y, turned
    table = {name: np.array(c) for name, c in zip(("path", "t", "x", "y"), zip(*rows))}
    return un.transitions(table, y=("x", "y"), order="t", group="path")


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
def test_the_section_says_that_turns_are_missed(walks):
    model = un.Additive("s(step, k=8)", BOX)
    fit = un.fit(model, walks, un.Logistic(per_point=8), rng=1)
    found = misfit.section(pooled(fit, model, walks))
    assert found is not None
    assert "add s(turn, bs='cc', k=10) with --lags 2" in found.text[0]
    assert "length of steps (" not in found.text[0]
    assert "place" not in found.text[0]


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
def test_columns_that_change_along_a_path_are_those_of_each_step(walks):
    """A path that was simulated whole kept what its first step had: a right model of te(step, t) was said to miss."""
    rng = np.random.default_rng(5)
    rows = []
    for path in range(60):
        x = np.array([4.0, 3.0])
        for t in range(16):
            rows.append((path, t, *x))
            y = np.array([-1.0, -1.0])
            while not BOX.contains(y[None])[0]:
                y = x + rng.normal(0, 0.2 + 0.08 * t, 2)
            x = y
    table = {name: np.array(c) for name, c in zip(("path", "t", "x", "y"), zip(*rows))}
    obs = un.transitions(table, y=("x", "y"), order="t", group="path", extra="t")
    model = un.Additive("te(step, t, k=5)", BOX)
    fit = un.fit(model, obs, un.Logistic(per_point=10), rng=1)
    found = {one.feature.name: one for one in misfit.measured(pooled(fit, model, obs))}
    assert not found["step"].missed


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
def test_levels_draw_from_their_own_fits(walks):
    """Half of the paths scaled down: the group's steps are a mixture that no single curve of step gives."""
    short = walks.group["path"] % 2 == 0
    x, scale = walks.previous(), np.where(short, 0.3, 1.0)[:, None]
    from dataclasses import replace

    obs = replace(
        walks,
        outcome=x + scale * (walks.outcome - x),
        group={"who": np.where(short, "a", "b")},
        sequence=np.arange(walks.n),
    )
    model = un.Additive("s(step, k=8)", BOX)
    each = un.fit_each(model, obs, by="who", objective=un.Logistic(per_point=8), rng=1)
    found = misfit.measured(grouped(each, model, obs))
    assert [one.feature.name for one in found] == ["step", "direction", "place"]  # no step follows another
    assert not found[0].missed


def test_pieces_end_where_points_were_dropped(walks):
    gone = np.ones(walks.n, dtype=bool)
    gone[5:7] = False
    first, length = _pieces(walks.take(gone))
    assert first[:3].tolist() == [0, 5, 9]
    assert length[:2].tolist() == [5, 4]


def test_few_steps_say_so(walks):
    few = walks.take(np.arange(LEAST - 1))
    model = un.Additive("step", BOX)
    found = misfit.section(pooled(un.fit(model, few, un.Logistic(per_point=8), rng=1), model, few))
    assert found is not None
    assert found.text == (f"{LEAST - 1} steps are too few to say what the model misses.",)
