"""`un.fit` with rows in parts: one block, many, blocks made again and workers give the same estimates."""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.engine import spill
from unnorm.errors import CombinationError
from unnorm.objectives import additive, contrastive, rows
from unnorm.references import blocks
from unnorm.solvers import engine_rows

pytestmark = pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # few data, and χ follows them badly
RNG = np.random.default_rng(5)
PATH = np.clip(np.cumsum(0.15 * RNG.standard_normal((901, 2)), axis=0) % 1.0, 0.001, 0.999)
PLAIN = un.transitions({"x": PATH[:, 0], "y": PATH[:, 1]}, y=["x", "y"])
WEIGHTED = dataclasses.replace(PLAIN, weight=RNG.integers(1, 4, PLAIN.n).astype(float))
MODEL = un.Additive("s(step, k=8) + s(dcenter, k=6) + s(angle, bs='cc', k=6)", un.Box((0, 1), (0, 1)))
CHI = un.Smooth("s(x_prev, y_prev, k=12)")


def fitted(obs: un.Observations = PLAIN, points: Any = None, normaliser: Any = CHI, **more: Any) -> un.Fit:
    objective = more.pop("objective", un.Logistic)(un.Uniform(), per_point=8, points=points)
    return un.fit(MODEL, obs, objective, normaliser=normaliser, rng=1, **more)


def agree(one: un.Fit, other: un.Fit) -> None:
    assert one.smooths is not None
    assert other.smooths is not None
    np.testing.assert_allclose(one.smooths.beta, other.smooths.beta, atol=1e-10)
    assert one.value == pytest.approx(other.value, abs=1e-9)
    assert one.errors is not None
    assert other.errors is not None
    assert str(one.summary()) == str(other.summary())


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of some 2,000 rows."""
    whole = rows._from
    monkeypatch.setattr(rows, "_from", lambda *a: dataclasses.replace(whole(*a), block=2_000))


@pytest.mark.parametrize("normaliser", [CHI, None], ids=["smooth", "anchored"])
@pytest.mark.parametrize("obs", [PLAIN, WEIGHTED], ids=["plain", "weighted"])
@pytest.mark.parametrize("points", [un.Lattice(), un.IID()], ids=["lattice", "iid"])
def test_parts_have_the_estimates_and_errors_of_whole_rows(
    normaliser: Any, obs: un.Observations, points: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = fitted(obs, points, normaliser)
    whole = rows._from
    monkeypatch.setattr(rows, "_from", lambda *a: dataclasses.replace(whole(*a), block=2_000))
    agree(one, fitted(obs, points, normaliser))  # several blocks in memory
    agree(one, fitted(obs, points, normaliser, memory="1GB"))


def test_a_curve_that_a_covariate_of_the_context_multiplies() -> None:
    """With anchored constants a part of it is the context's alone, of which no row knows: errors are the same."""
    obs = dataclasses.replace(PLAIN, context={**PLAIN.context, "hour": np.linspace(0.0, 24.0, PLAIN.n) % 7.0})
    model = un.Additive("s(step, k=6, by=hour) + s(angle, bs='cc', k=6)", un.Box((0, 1), (0, 1)))
    objective = un.Logistic(un.Uniform(), per_point=6)
    agree(un.fit(model, obs, objective, rng=1), un.fit(model, obs, objective, rng=1, memory="1GB"))


def test_iid_data_in_parts(short: None) -> None:
    y = np.random.default_rng(3).beta(2, 3, 1_500)
    model = un.Additive("s(y, k=8)", un.Interval(0, 1))
    objective = un.Logistic(un.Uniform(), total=6_000)
    one = un.fit(model, un.iid(y), objective, rng=1)
    agree(one, un.fit(model, un.iid(y), objective, rng=1, memory="1GB"))


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if rows were too many to be held."""
    monkeypatch.setattr(contrastive, "MANY", 5_000)
    monkeypatch.setattr(blocks, "ROWS", 1_000)


def test_points_of_a_block_are_its_own(many: None) -> None:
    bound = un.Uniform().bind(MODEL.domain, PLAIN)
    drawn = blocks.Contrasts(PLAIN, bound, un.Lattice(), 8, (7,))
    found = list(drawn.blocks())
    assert [len(one.z) for one in found] == [999] * 8 + [108]
    np.testing.assert_array_equal(np.concatenate([one.at for one in found]), np.repeat(np.arange(900), 9))
    again = drawn.block(3)
    for name in ("outcome", "log_q", "at", "weight", "randomisation"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found[3], name))
    np.testing.assert_array_equal(again.randomisation[:9], drawn.randomisation)
    same = [one.outcome[1:9] for one in dataclasses.replace(drawn, scheme=un.IID(), seed=(7,)).blocks()]
    assert not np.isclose(same[0], same[1]).any()  # a seed for each block
    fresh = drawn.fresh([7, 1], 2.0)
    assert (fresh.k, fresh.count) == (16, drawn.count)


@pytest.mark.parametrize("objective", [un.Logistic, un.Importance])
def test_numbers_of_a_block_need_no_drawing(objective: Any, many: None) -> None:
    obs = dataclasses.replace(WEIGHTED, offset=np.linspace(-1.0, 1.0, 900))
    made = objective(un.Uniform(), per_point=8)
    drawn = blocks.Contrasts(obs, un.Uniform().bind(MODEL.domain, obs), un.Lattice(2), 8, (7,))
    source = rows.SeededRows(drawn, made.rows)
    whole = source.block_rows(2)
    own = additive.response(whole.likelihood)
    found = source.numbers(2, own.y, own.weights, whole.offset)
    for name in ("at", "data", "offset", "weight", "log_q", "randomisation"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), atol=1e-12)
    np.testing.assert_allclose(found.likelihood.a, whole.likelihood.a, atol=1e-12)
    np.testing.assert_allclose(found.likelihood.b, whole.likelihood.b, atol=1e-12)


@pytest.mark.parametrize("objective", [un.Logistic, un.Importance])
@pytest.mark.parametrize("points", [un.Lattice(), un.Lattice(2), un.IID()], ids=["lattice", "sets", "iid"])
def test_rows_that_are_never_together_have_the_fit_of_rows_that_are(
    objective: Any, points: Any, many: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    made = contrastive.RowContrastive._blocks
    monkeypatch.setattr(
        contrastive.RowContrastive, "_blocks", lambda self, *a: drawn.append(made(self, *a)) or drawn[-1]
    )
    apart = fitted(WEIGHTED, points, objective=objective)
    parts = list(drawn[0].blocks())
    names = ("outcome", "z", "at", "log_q", "weight", "randomisation")
    whole = {name: np.concatenate([getattr(one, name) for one in parts]) for name in names}
    held = objective(un.Uniform(), per_point=8, points=points).holding(dataclasses.replace(parts[0], **whole))
    together = un.fit(MODEL, WEIGHTED, held, normaliser=CHI, rng=1)
    assert apart.smooths is not None
    assert together.smooths is not None
    assert apart.smooths.gam is not None
    np.testing.assert_allclose(apart.smooths.beta, together.smooths.beta, atol=1e-10)
    assert apart.value == pytest.approx(together.value, abs=1e-8)
    assert apart.smooths.gam.whole == 900 * 9
    if points == un.IID():  # nothing is drawn for the errors: they are the same but for λ's own noise
        np.testing.assert_allclose(apart.smooths.gam.smoothed.Vp, together.smooths.gam.smoothed.Vp, atol=1e-9)


def test_blocks_that_are_made_again_change_no_digit(many: None, monkeypatch: pytest.MonkeyPatch) -> None:
    held = fitted()
    assert held.smooths is not None
    for on_disk in (True, False):
        if not on_disk:
            monkeypatch.setattr(spill.Spill, "offer", lambda *a: None)
        again = fitted(memory="400kB")
        assert again.smooths is not None
        np.testing.assert_array_equal(held.smooths.beta, again.smooths.beta)
        assert str(held.summary()) == str(again.summary())


def test_a_sample_of_very_many_rows_places_the_knots(many: None, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = fitted()
    monkeypatch.setattr(additive, "SAMPLE", 3_000)
    sampled = fitted()
    assert sampled.smooths is not None
    assert sampled.smooths.gam is not None
    assert 2_000 < sampled.smooths.gam.y.size < 3_100
    assert sampled.smooths.gam.n == 8_100
    a, b = exact.smooths.effect("s(step)"), sampled.smooths.effect("s(step)")  # pyright: ignore
    assert np.sqrt(np.mean((a["estimate"] - b["estimate"]) ** 2)) < 0.5 * np.mean(a["se"])


@pytest.mark.parametrize("normaliser", [CHI, None], ids=["smooth", "anchored"])
def test_workers_have_the_estimates_of_one_process(normaliser: Any, client: Any, short: None) -> None:
    here = fitted(WEIGHTED, normaliser=normaliser, memory="1GB")
    there = fitted(WEIGHTED, normaliser=normaliser, workers=client)
    np.testing.assert_array_equal(here.smooths.beta, there.smooths.beta)  # pyright: ignore
    agree(here, there)


def test_workers_have_rows_that_are_never_together(client: Any, many: None) -> None:
    here, there = fitted(), fitted(workers=client)
    np.testing.assert_array_equal(here.smooths.beta, there.smooths.beta)  # pyright: ignore
    agree(here, there)


def together_and_apart(
    normaliser: Any, points: Any, monkeypatch: pytest.MonkeyPatch, **more: Any
) -> tuple[un.Fit, un.Fit]:
    """A fit of rows that are never together, and one of the same rows in memory."""
    drawn: list[Any] = []
    made = contrastive.RowContrastive._blocks
    with monkeypatch.context() as patch:
        patch.setattr(contrastive.RowContrastive, "_blocks", lambda self, *a: drawn.append(made(self, *a)) or drawn[-1])
        apart = fitted(WEIGHTED, points, normaliser, **more)
    parts = list(drawn[0].blocks())
    names = ("outcome", "z", "at", "log_q", "weight", "randomisation")
    whole = {name: np.concatenate([getattr(one, name) for one in parts]) for name in names}
    held = un.Logistic(un.Uniform(), per_point=8, points=points).holding(dataclasses.replace(parts[0], **whole))
    return apart, un.fit(MODEL, WEIGHTED, held, normaliser=normaliser, rng=1)


@pytest.mark.parametrize("points", [un.Lattice(2), un.IID()], ids=["sets", "iid"])
@pytest.mark.parametrize("memory", [None, "400kB"])
def test_anchored_constants_of_rows_that_are_never_together(
    points: Any, memory: str | None, many: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart, together = together_and_apart(None, points, monkeypatch, memory=memory)
    assert apart.smooths is not None
    assert together.smooths is not None
    assert apart.smooths.gam is not None
    np.testing.assert_allclose(apart.smooths.beta, together.smooths.beta, atol=1e-9)
    assert apart.value == pytest.approx(together.value, abs=1e-7)
    assert apart.smooths.gam.whole == 900 * 9
    assert apart.reason.split(";")[-1] == together.reason.split(";")[-1]  # as many linearisations
    one, other = apart.solution.scores, together.solution.scores  # pyright: ignore[reportOptionalMemberAccess]
    np.testing.assert_allclose(
        one.information, other.information, rtol=1e-7, atol=1e-9 * np.abs(other.information).max()
    )
    total = [np.sqrt(np.diag(fit.smooths.errors.total)) for fit in (apart, together)]  # pyright: ignore
    if points == un.IID():  # nothing is drawn for the errors: they are the same but for λ's own noise
        np.testing.assert_allclose(*total, rtol=5e-3)


def test_functions_of_the_context_alone_are_held_in_parts_too(many: None, monkeypatch: pytest.MonkeyPatch) -> None:
    model = un.Additive("te(step, x_prev, k=(5, 4))", un.Box((0, 1), (0, 1)))
    monkeypatch.setattr("test_fits_in_parts.MODEL", model)
    apart, together = together_and_apart(None, un.IID(), monkeypatch)
    np.testing.assert_allclose(apart.smooths.beta, together.smooths.beta, atol=1e-8)  # pyright: ignore


def test_workers_fit_anchored_constants_of_rows_that_are_never_together(client: Any, many: None) -> None:
    here, there = fitted(normaliser=None), fitted(normaliser=None, workers=client)
    np.testing.assert_array_equal(here.smooths.beta, there.smooths.beta)  # pyright: ignore
    agree(here, there)


def test_a_worker_killed_while_errors_are_computed_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    made, sets, as_finished = contrastive.RowContrastive._blocks, [0], engine_rows.as_finished
    monkeypatch.setattr(contrastive, "MANY", 5_000)
    monkeypatch.setattr(  # blocks whose size travels with them: the workers are other processes
        contrastive.RowContrastive, "_blocks", lambda self, *a: dataclasses.replace(made(self, *a), size=111)
    )
    here = fitted(normaliser=None)

    def kill(client: Any, calls: Any) -> Any:
        sets[0] += 1
        if sets[0] == 2:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return as_finished(client, calls)

    monkeypatch.setattr(engine_rows, "as_finished", kill)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        there = fitted(normaliser=None, workers=client)
    assert sets[0] > 2
    np.testing.assert_array_equal(here.smooths.beta, there.smooths.beta)  # pyright: ignore
    agree(here, there)
    there.advise()  # after the workers are gone


WHO = dataclasses.replace(PLAIN, group={"who": np.array(["a", "b", "c"])[np.arange(PLAIN.n) // 10 % 3]})


@pytest.mark.parametrize("terms", ["s(step, by=who, k=5)", "s(step, k=6) + s(step, who, bs='fs', k=5)"])
@pytest.mark.parametrize("normaliser", [CHI, None], ids=["smooth", "anchored"])
def test_levels_are_ordinary_columns_in_parts(terms: str, normaliser: Any, short: None) -> None:
    model = un.Additive(terms, un.Box((0, 1), (0, 1)))
    options: dict[str, Any] = {"normaliser": normaliser, "rng": 1}
    one, other = (
        un.fit(model, WHO, un.Logistic(un.Uniform(), per_point=8), **options, memory=memory) for memory in (None, "1GB")
    )
    assert one.smooths is not None
    assert other.smooths is not None
    se = np.sqrt(np.diag(one.smooths.errors.total))
    assert se.size == one.smooths.beta.size
    assert np.max(np.abs(one.smooths.beta - other.smooths.beta) / se) < 1e-4
    assert one.value == pytest.approx(other.value, abs=1e-5)


def test_every_level_is_in_a_sample(many: None, monkeypatch: pytest.MonkeyPatch) -> None:
    rare = np.full(PLAIN.n, "a")
    rare[777] = "b"
    obs = dataclasses.replace(PLAIN, group={"who": rare})
    monkeypatch.setattr(additive, "SAMPLE", 500)
    model = un.Additive("s(step, by=who, k=4)", un.Box((0, 1), (0, 1)))
    found = un.fit(model, obs, un.Logistic(un.Uniform(), per_point=8), normaliser=CHI, rng=1, memory="1GB")
    assert "s(step):whob" in found.edf


def test_folds_of_a_fit_by_workers(client: Any) -> None:
    y = np.random.default_rng(3).beta(2, 3, 300)
    model, objective = un.Additive("s(y, k=6)", un.Interval(0, 1)), un.Logistic(un.Uniform(), total=600)
    one, other = (un.fit(model, un.iid(y), objective, smoothing="cv", rng=1, workers=where) for where in (None, client))
    np.testing.assert_allclose(one.smooths.beta, other.smooths.beta, atol=1e-10)  # pyright: ignore


def test_what_cannot_be_in_parts_is_refused() -> None:
    toy = un.ExponentialFamily(lambda y, x: (y,), ("a",), un.Interval(0, 1))
    with pytest.raises(CombinationError, match="memory= and workers= are for smooth terms with reference points"):
        un.fit(toy, un.conditional({"y": PATH[:, 0], "x": PATH[:, 1]}, y="y", x="x"), memory="1GB")
    energy = un.Energy(lambda p, y, x: -p["a"] * y * y, {"a": 1.0}, un.Interval(0, 1))
    obs = un.conditional({"y": PATH[:, 0], "x": PATH[:, 1]}, y="y", x="x")
    with pytest.raises(CombinationError, match="linear in its terms"):
        un.fit(energy, obs, un.Logistic(un.Uniform(), per_point=4), normaliser=un.Smooth("s(x)"), memory="1GB", rng=1)
