"""Rows in parts: the estimates of one block, of many, and of workers are the same."""

from __future__ import annotations

import logging
import os
import signal
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm._base import memory, workers
from unnorm.engine import dask_parts, estimate, gam_parts, parts, placing
from unnorm.engine.gam_rows import TableRows
from unnorm.engine.plan import plan
from unnorm.engine.resources import Resources
from unnorm.engine.segment import ResponseRows
from unnorm.engine.sides import null_of_parts
from unnorm.errors import CombinationError, MemoryLimitError, NoEstimateError, UnnormWarning, WorkersError
from unnorm.terms.parser import parse

FORMULA = "y ~ s(x, k=12) + s(a, bs='cc', k=8) + s(px, py, k=15) + factor(g)"


def rows(n: int = 12_000, family: str = "binomial") -> dict[str, np.ndarray]:
    """A table whose rows come in contexts of ten."""
    rng = np.random.default_rng(3)
    context = np.repeat(np.arange(n // 10), 10)
    px, py = rng.random((2, n // 10))[:, context]
    x, a, g = rng.random(n), rng.uniform(-np.pi, np.pi, n), rng.integers(0, 5, n)
    eta = np.sin(6 * x) + 0.5 * np.cos(a) + px * py - 1 + 0.2 * g
    laws = {
        "binomial": lambda: rng.random(n) < 1 / (1 + np.exp(-eta)),
        "poisson": lambda: rng.poisson(np.exp(eta)),
        "gaussian": lambda: eta + rng.standard_normal(n),
    }
    out = {"x": x, "a": a, "px": px, "py": py, "g": g, "y": laws[family]().astype(float)}
    return {**out, "w": rng.random(n) + 0.5, "o": 0.3 * rng.standard_normal(n)}


def fitted(data: dict[str, np.ndarray], family: str = "binomial", **more: Any) -> un.Gam:
    more = {"weights": "w", "offset": "o", **more}
    return un.gam(FORMULA, data, family=family, periods={"a": 2 * np.pi}, **more)


def agree(one: un.Gam, other: un.Gam, tolerance: float = 1e-10) -> None:
    a, b = one.smoothed, other.smoothed
    assert a.iterations == b.iterations
    np.testing.assert_allclose(a.beta, b.beta, atol=tolerance)
    np.testing.assert_allclose(a.rho, b.rho, atol=tolerance)
    np.testing.assert_allclose(a.Vp, b.Vp, rtol=1e-7, atol=tolerance * np.abs(a.Vp).max())
    np.testing.assert_allclose(a.edf, b.edf, atol=tolerance)
    assert one.deviance == pytest.approx(other.deviance, rel=1e-12)
    assert one.null_deviance == pytest.approx(other.null_deviance, rel=1e-12)
    assert one.aic == pytest.approx(other.aic, rel=1e-12)
    np.testing.assert_allclose(one.linear_predictor, other.linear_predictor, atol=tolerance)


def same(one: un.Gam, other: un.Gam) -> None:
    """Digit for digit."""
    for name in ("beta", "rho", "Vp", "edf", "gradient"):
        np.testing.assert_array_equal(getattr(one.smoothed, name), getattr(other.smoothed, name))


@pytest.mark.parametrize("family", ["binomial", "poisson", "gaussian"])
def test_parts_have_the_estimates_of_whole_rows(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows(family=family)
    whole = fitted(data, family)
    for size in (10**6, 2_500, 1_111):
        monkeypatch.setattr(gam_parts, "PART", size)
        agree(whole, fitted(data, family, memory="1GB"))


def test_a_first_fit_on_some_runs_takes_the_same_runs_from_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows(40_000)  # enough rows for it, and contexts that a cut must not split
    monkeypatch.setattr(gam_parts, "PART", 3_333)
    agree(fitted(data), fitted(data, memory="1GB"))


def test_what_is_made_again_is_the_same_to_the_last_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows()
    monkeypatch.setattr(gam_parts, "PART", 1_000)
    held, again = fitted(data, memory="1GB"), fitted(data, memory="320kB", threads=2)  # room for each thread
    shelf = again.smoothed.design.parts.shelf.held  # pyright: ignore
    assert 0 < len(shelf) < 12
    same(held, again)
    same(held, fitted(data, memory="1GB", threads=1))


def test_cuts_do_not_split_contexts() -> None:
    context = np.repeat(np.arange(40), 25)
    found = list(gam_parts.cuts(1000, [context], 110))
    assert [a for a, _ in found] == [0, *[b for _, b in found[:-1]]]
    assert found[-1][1] == 1000
    assert all(b % 25 == 0 for _, b in found)
    assert next(gam_parts.cuts(1000, [np.zeros(1000)], 300)) == (0, 300)  # one long context is split


def test_separation_is_found_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(0.0, 1.0, 4_000)
    monkeypatch.setattr(gam_parts, "PART", 700)
    for more in ({}, {"memory": "1GB"}):
        with pytest.raises(NoEstimateError, match="x separates the two classes perfectly"):
            un.gam("y ~ x", {"x": x, "y": (x > 0.5).astype(float)}, family="binomial", **more)


@pytest.mark.parametrize("family", ["binomial", "poisson", "gaussian"])
@pytest.mark.parametrize("link", [None, "probit"])
@pytest.mark.parametrize("offset", [False, True])
def test_the_null_model_from_sums_over_parts(family: str, link: str | None, offset: bool) -> None:
    from unnorm.engine import families

    if link is not None and family != "binomial":
        return
    data = rows(3_000, family)
    y, w, o = data["y"], data["w"], 2.0 * data["o"] - 1.0 if offset else np.empty(0)
    terms = parse("y ~ s(x, k=5)", table=True).build(data)
    made = plan(terms, data, all_rows=3_000)
    table = TableRows(y, {"x": data["x"]}, w, o if offset else None, None, ())
    recipes = [
        gam_parts.Stretch(y[a:b], {"x": data["x"][a:b]}, w[a:b], o[a:b] if offset else None, family)
        for a, b in gam_parts.cuts(table.y.size, [], 400)
    ]
    cut = parts.local_parts(made, recipes, 1e9, 1)
    sums = float(w.sum()), float(w @ y), float(o.mean()) if offset else 0.0, offset
    found = null_of_parts(cut, family, link, sums)
    exact = families.null_fit(family, ResponseRows(y, w, o), link)
    np.testing.assert_allclose(found, exact, rtol=1e-11)


def test_the_sample_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "PLACING", 4_096)
    data = rows(30_000)
    columns = {"x": data["x"], "g": data["g"], "t": np.array(["u", "v"])[(np.arange(30_000) == 17_777).astype(int)]}
    found = [placing.sample(columns, 30_000, block) for block in (30_000, 1_000, 777)]
    for one in found[1:]:
        for name in columns:
            np.testing.assert_array_equal(one[name], found[0][name])
    sample = found[0]
    assert 4_096 <= len(sample["x"]) < 4_110
    assert (sample["x"].min(), sample["x"].max()) == (data["x"].min(), data["x"].max())
    assert set(sample["t"]) == {"u", "v"}
    assert set(sample["g"]) == set(range(5))


def test_terms_of_many_rows_are_those_of_the_sample_whole_or_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows()
    exact = fitted(data)
    monkeypatch.setattr(placing, "PLACING", 5_000)
    monkeypatch.setattr(gam_parts, "PART", 1_300)
    whole = un.gam("y ~ s(x, k=12) + s(px, py, k=15)", data, family="binomial")
    agree(whole, un.gam("y ~ s(x, k=12) + s(px, py, k=15)", data, family="binomial", memory="1GB"))
    sampled = fitted(data, memory="1GB")  # knots and centring of 5,000 rows: nearly the same fit
    se = np.sqrt(exact.smoothed.Vp[0, 0])
    assert np.sqrt(np.mean((sampled.linear_predictor - exact.linear_predictor) ** 2)) < se


def test_memory_that_is_too_small_is_refused_with_figures_that_work() -> None:
    with pytest.raises(MemoryLimitError, match=r"12,000 rows of \d+ bytes .* memory= allows 10 kB") as said:
        fitted(rows(), memory="10kB")
    option = str(said.value).split("memory='")[1].split("'")[0]
    assert option.endswith(("kB", "MB"))
    fitted(rows(), memory=option)  # the remedy works


@pytest.mark.parametrize("size", [1.0, 999.0, 1e5, 123_456.0, 9.99e5, 1e6, 1.04e6, 9.96e8, 1e9, 3.4567e10])
def test_a_size_as_an_option_is_no_less(size: float) -> None:
    assert size <= memory.allowed(memory.as_option(size)) <= max(1.11 * size, 1000.0)


def test_a_long_fit_says_so_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "TIMED", 5_000)
    monkeypatch.setattr(gam_parts, "PART", 1_000)
    data = rows()
    fitted(data, memory="1GB")  # not long, and no word
    monkeypatch.setattr(estimate, "LONG", 0.0)
    with pytest.warns(UnnormWarning, match=r"12,000 rows take .* about \d+ seconds in this process \(25 passes"):
        held = fitted(data, memory="1GB")
    with pytest.warns(UnnormWarning, match=r"memory= holds \d+% of them, and memory='\d+"):
        again = fitted(data, memory="320kB")
    same(held, again)


def test_the_estimate_counts_passes_and_what_is_read_again() -> None:
    one = estimate.Estimate(1_000, 1e6, 0.5, 1e-3, 1e-4, 2)
    assert one.seconds(1.0) == pytest.approx((1_000 * 1e-3 + 25 * 1_000 * 1e-4) / 2)
    assert one.seconds(0.5) == pytest.approx(one.seconds(1.0) + 25 * 1_000 * 0.5 * 0.25 * 1e-3 / 2)


def test_what_parts_cannot_do_is_refused() -> None:
    data = {"x": np.linspace(0, 1, 400), "y": np.arange(400.0) % 3}
    with pytest.raises(
        CombinationError, match=r"families binomial, poisson, gaussian; got family='nb'. θ is estimated"
    ):
        un.gam("y ~ s(x)", data, family="nb", memory="1GB")
    with pytest.raises(CombinationError, match=r"'quasipoisson'\. family='poisson' has the same curves"):
        un.gam("y ~ s(x)", data, family="quasipoisson", memory="1GB")
    with pytest.raises(CombinationError, match="method='CV' fits rows in memory"):
        un.gam("y ~ s(x)", data, family="poisson", method="CV", memory="1GB")
    for wrong in ("2 parrots", -1, True, "0GB"):
        with pytest.raises(un.errors.InputError, match="memory must be a size such as '2GB'"):
            un.gam("y ~ s(x)", data, family="poisson", memory=wrong)


# --- workers ---------------------------------------------------------------------------------------------------------


def test_workers_have_the_estimates_of_one_process(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows()
    monkeypatch.setattr(gam_parts, "PART", 500)  # three groups of parts
    here, there = fitted(data, memory="1GB"), fitted(data, workers=client)
    same(here, there)
    np.testing.assert_array_equal(here.linear_predictor, there.linear_predictor)
    x = np.linspace(0.0, 1.0, 2_000)
    with pytest.raises(NoEstimateError, match="separates"):
        un.gam("y ~ x", {"x": x, "y": (x > 0.5).astype(float)}, family="binomial", workers=client)


@pytest.mark.parametrize("few", [dask_parts._FEW_ROWS, 0])
def test_the_first_fit_on_few_rows_is_made_here(client: Any, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """Workers answer in 20 ms, and a pass over few rows takes less; the same digits wherever it is."""
    data, came, some = rows(24_000), [], dask_parts.DaskParts.some
    monkeypatch.setattr(gam_parts, "PART", 3_000)
    monkeypatch.setattr(dask_parts, "_FEW_ROWS", few)
    monkeypatch.setattr(dask_parts.DaskParts, "some", lambda self, every: came.append(some(self, every)) or came[-1])
    formula: Any = ("y ~ s(x, k=5)", data)
    there = un.gam(*formula, family="binomial", workers=client)
    same(un.gam(*formula, family="binomial", memory="1GB"), there)
    assert [isinstance(one, parts.LocalParts) for one in came] == [few > 0]


def test_large_arguments_of_two_passes_are_not_mixed_up(client: Any) -> None:
    data = rows(2_000)
    made = plan(parse("y ~ s(x)", table=True).build(data), data, all_rows=2_000)
    recipes = gam_parts.stretches(TableRows(data["y"], {"x": data["x"]}, None, None, None, ()), "binomial", made)
    held = dask_parts.dask_parts(made, recipes, client)
    big = [np.full(200_000, value) for value in (1.0, 2.0, 3.0)]  # Dask makes tasks of such values
    assert [held.total(add_up, one)[0] for one in big] == [200_000.0, 400_000.0, 600_000.0]
    assert [list(held.each(add_up, one)) for one in big[:2]] == [[(200_000.0,)], [(400_000.0,)]]


def add_up(plan: Any, part: Any, i: int, values: np.ndarray) -> tuple[float]:
    return (float(values.sum()),)


def test_workers_that_are_none_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "CONNECT", 0.5)
    data = {"x": np.linspace(0, 1, 400), "y": np.arange(400.0) % 3}
    for wrong in (0, True, 1.5, "two"):
        with pytest.raises(un.errors.InputError, match="workers must be a number"):
            un.gam("y ~ s(x)", data, family="poisson", workers=wrong)
    with pytest.raises(WorkersError, match="There is no scheduler at tcp"):
        un.gam("y ~ s(x)", data, family="poisson", workers="tcp://127.0.0.1:9")


class Little:
    """A client whose workers have hardly any memory."""

    def scheduler_info(self) -> dict[str, Any]:
        return {"workers": {"a": {"memory_limit": 200_000}, "b": {"memory_limit": 200_000}}}


def test_rows_that_the_workers_cannot_hold_are_refused() -> None:
    data = rows()
    made = plan(parse("y ~ s(x)", table=True).build(data), data, all_rows=12_000)
    Resources(workers=Little()).require_workers(made, 2_000)
    with pytest.raises(
        MemoryLimitError, match=r"12,000 rows .* 2 workers can hold 240 kB. Start \d+ such workers"
    ) as said:
        Resources(workers=Little()).require_workers(made, 12_000)
    number = int(str(said.value).split("Start ")[1].split()[0])
    assert 0.6 * 200_000 * (number - 1) < estimate.row_bytes(made) * 12_000 <= 0.6 * 200_000 * number


def test_folds_by_workers_choose_the_same_smoothing(client: Any) -> None:
    data = rows(1_500)
    here, there = (
        un.gam("y ~ s(x, k=8)", data, family="binomial", method="CV", folds=4, workers=where)
        for where in (None, client)
    )
    np.testing.assert_allclose(here.smoothed.rho, there.smoothed.rho, atol=1e-9)
    np.testing.assert_allclose(here.smoothed.beta, there.smoothed.beta, atol=1e-10)
    assert here.score == pytest.approx(there.score, rel=1e-12)


STAGES = {"set-up": 1, "first pass": 3, "iteration": 6, "errors": 0}  # the pass before which a worker is killed


def test_a_worker_killed_at_any_stage_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    data = rows(8_000)
    monkeypatch.setattr(gam_parts, "PART", 500)
    whole, passes, fatal, gathered = fitted(data, memory="1GB"), [0], [0], dask_parts.DaskParts._gathered

    def kill(client: Any) -> None:
        os.kill(next(iter(client.run(os.getpid, on_error="ignore").values())), signal.SIGKILL)

    def count(self: Any, submit: Any) -> list[Any]:
        passes[0] += 1
        if passes[0] == fatal[0]:
            kill(self.client)
        return gathered(self, submit)

    monkeypatch.setattr(dask_parts.DaskParts, "_gathered", count)
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    # one for each stage: a worker that was killed need not be started again
    with distributed.LocalCluster(n_workers=4, **options) as cluster, distributed.Client(cluster) as client:
        for stage, fatal[0] in STAGES.items():
            passes[0] = 0
            found = fitted(data, workers=client)
            if stage == "errors":  # what is asked of the fit afterwards needs no worker
                kill(client)
            # to rounding: in two of some thirty runs of the suite on busy cores the last digits were others
            for name in ("beta", "rho", "Vp", "edf"):
                one, other = getattr(whole.smoothed, name), getattr(found.smoothed, name)
                np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-12 * np.abs(one).max())
            np.testing.assert_allclose(found.linear_predictor, whole.linear_predictor, atol=1e-12)
            assert passes[0] > max(STAGES.values())
