"""The row pass through JAX against the engine's own: the same sums, the same fits; on a GPU where there is one.

python -m pytest tests/engine/test_device.py -rs
"""

from __future__ import annotations

from functools import cache

import jax
import numpy as np
import pytest

import unnorm as un
from unnorm._base.numerics import x64
from unnorm.engine.core import build_design, smooth_fit
from unnorm.engine.device import passes
from unnorm.engine.device import rows as device_rows
from unnorm.engine.device.placing import on_device
from unnorm.engine.device.spec import require_room
from unnorm.engine.families import FAMILIES
from unnorm.engine.segment import ResponseRows
from unnorm.errors import CombinationError, InputError, MemoryLimitError
from unnorm.references import Lattice, Uniform
from unnorm.references.ordering import context_order
from unnorm.terms.parser import parse


def _gpu() -> bool:
    return any(device.platform == "gpu" for device in jax.devices())


GPU = pytest.param("gpu", marks=pytest.mark.skipif(not _gpu(), reason="JAX has no GPU here"))
KINDS = ["cpu", GPU]
FORMULAS = {
    "local": "s(a, k=8) + s(b, k=9, bs='cr')",
    "context": "s(a, k=8) + s(px, py, k=12) + s(angle, bs='cc', k=7)",
    "every form": "s(a, k=8, by=v) + s(a, b, k=10) + s(px, py, k=10) + s(angle, bs='cc', k=6) + s(h, bs='re')",
}


def table(n: int = 1500, ragged: bool = False, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    who = np.sort(rng.integers(0, n // 10, n)) if ragged else np.repeat(np.arange(n // 10), 10)
    px, py = rng.uniform(0, 1, n // 10), rng.uniform(0, 1, n // 10)
    data = {
        "a": rng.uniform(-1, 2, n),
        "b": rng.gamma(2.0, 1.0, n),
        "angle": rng.uniform(-np.pi, np.pi, n),
        "px": px[who],
        "py": py[who],
        "v": rng.normal(size=n),
        "h": np.array([f"h{k}" for k in rng.integers(0, 7, n)]),
    }
    eta = np.sin(2 * data["a"]) + 0.5 * np.cos(data["angle"]) + data["px"] - 1.5
    return {**data, "z": (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)}


@cache
def design(name: str, ragged: bool = False):
    data = table(ragged=ragged)
    terms = parse(FORMULAS[name], table=True)
    return build_design(terms.build({name: data[name] for name in terms.columns}), data)


def far(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-300))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "family", "ragged"),
    [("every form", "binomial", False), ("context", "poisson", True), ("local", "gaussian", False)],
)
def test_sums_over_the_rows_are_the_engines_own(name: str, family: str, ragged: bool, kind, monkeypatch) -> None:
    monkeypatch.setattr(device_rows, "_PRODUCT", 64)  # so that there are several tiles, and the last overlaps
    monkeypatch.setattr(device_rows, "TILE", 90_000)
    monkeypatch.setattr(passes, "_WIDE", 16)  # and several groups of columns
    here, code, rng = design(name, ragged), FAMILIES[family], np.random.default_rng(3)
    n = here.rows
    weights = rng.uniform(0.0, 2.0, n) * (rng.random(n) < 0.9)
    rows = ResponseRows((rng.random(n) < 0.3) * 1.0, weights, 0.1 * rng.normal(size=n))
    there, beta = on_device(here, rows, un.Device(kind)), 0.2 * rng.normal(size=here.size)
    value, score, cross = here.sweep(rows, code, beta)
    value_, score_, cross_ = there.sweep(rows, code, beta)
    assert abs(value_ / value - 1) < 1e-12
    assert far(score_, score) < 1e-12
    assert far(cross_.shared, cross.shared) < 1e-12
    P = np.linalg.inv(cross.shared + np.eye(here.size))
    lever = lambda level: P  # noqa: E731
    expected = here.leverage(rows, code, beta, lever)
    assert np.abs(there.leverage(rows, code, beta, lever) - expected).max() <= 1e-11 * np.abs(expected).max()
    eta = here.predict(beta)
    assert far(there.predict(beta), eta) < 1e-12
    assert there.ends(beta) == pytest.approx((eta.min(), eta.max()), rel=1e-12)


@pytest.mark.parametrize("ragged", [False, True])
def test_every_kth_run_is_the_design_of_these_runs(ragged: bool) -> None:
    here = design("context", ragged)
    y = (np.random.default_rng(1).random(here.rows) < 0.4) * 1.0
    rows = ResponseRows(y, np.empty(0), np.empty(0))
    there = on_device(here, rows, un.Device("cpu"))
    few, some = here.some(rows, 4)
    far_few, far_some = there.some(rows, 4)
    assert far_few.rows == few.rows
    assert np.array_equal(np.asarray(far_some.y), some.y)
    beta = np.random.default_rng(2).normal(size=here.size)
    assert far(far_few.sweep(far_some, 0, beta)[1], few.sweep(some, 0, beta)[1]) < 1e-12


def test_extreme_predictors_stay_finite() -> None:
    here = design("local")
    rows = ResponseRows(np.tile([0.0, 1.0], here.rows // 2), np.empty(0), np.empty(0))
    there, beta = on_device(here, rows, un.Device("cpu")), np.zeros(here.size)
    beta[0] = 3000.0
    value, score, _ = here.sweep(rows, 0, beta)
    value_, score_, cross_ = there.sweep(rows, 0, beta)
    assert value_ == pytest.approx(value)
    assert far(score_, score) < 1e-9
    assert np.isfinite(cross_.shared).all()


@pytest.mark.parametrize("kind", KINDS)
def test_gam_on_a_device_is_the_gam_here(kind) -> None:
    data, formula = table(30_000, seed=5), "z ~ s(a) + s(b) + s(angle, bs='cc') + s(px, py, k=15)"  # with a first fit
    here = un.gam(formula, data, family="binomial").smoothed
    there = un.gam(formula, data, family="binomial", device=un.Device(kind))
    assert np.abs(there.smoothed.beta - here.beta).max() < 1e-8
    assert np.abs(there.smoothed.rho - here.rho).max() < 1e-8
    assert there.smoothed.score == pytest.approx(here.score, rel=1e-10)
    assert "float64" in there.notes[-1]
    assert there.smoothed.design.elsewhere is None


@pytest.mark.parametrize("kind", KINDS)
def test_float32_says_its_error(kind) -> None:
    data = table(5_000, seed=6)
    here = un.gam("z ~ s(a) + s(px, py, k=12)", data, family="binomial")
    there = un.gam("z ~ s(a) + s(px, py, k=12)", data, family="binomial", device=un.Device(kind, "float32"))
    said = float(there.notes[-1].rsplit("than ", 1)[1].split(" ")[0])
    apart = np.abs(there.smoothed.beta - here.smoothed.beta) / np.sqrt(np.diag(here.smoothed.Vp))
    assert 0.0 < said < 1e-3
    assert apart.max() < 10 * said + 1e-3  # ρ moves as well, and each search has its tolerance


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normaliser", [un.Smooth("s(x_prev, y_prev, k=12)"), un.Anchored()])
def test_fit_of_a_chain_on_a_device(normaliser, kind) -> None:
    chain = walk(300)
    model = un.Additive("s(step, k=6) + s(angle, bs='cc', k=8)", un.Box((0, 20), (0, 15)))
    obs, objective = un.transitions(chain), un.Logistic(per_point=8)
    here = un.fit(model, obs, objective, normaliser, rng=3)
    there = un.fit(model, obs, objective, normaliser, rng=3, device=un.Device(kind))
    assert here.smooths is not None
    assert there.smooths is not None
    assert np.abs(there.smooths.beta - here.smooths.beta).max() < 1e-8
    assert any("JAX" in note for note in there.notes)


def walk(n: int, seed: int = 1) -> np.ndarray:
    rng, wide = np.random.default_rng(seed), np.array([20.0, 15.0])
    path = [wide / 2]
    while len(path) <= n:
        y = path[-1] + 3 * rng.normal(size=2)
        if np.all((y > 0) & (y < wide)):
            path.append(y)
    return np.array(path)


def test_points_made_on_the_device_are_those_that_fit_draws() -> None:
    from unnorm.data.covariates.resolve import CovariateSet
    from unnorm.engine.device.chain import chain, covariates

    path, k, shift = walk(400), 5, np.random.default_rng(9).random(2)
    path[7] = path[6]  # a step of length zero has no angle
    obs, box = un.transitions(path), (np.zeros(2), np.array([20.0, 15.0]))
    traced = CovariateSet(obs, centre=(10, 7.5)).traced(["x", "y", "step", "angle", "dcenter"], obs)
    assert traced is not None
    with x64():
        previous = tuple(obs.context)
        c = chain(path[:-1], path[1:], previous, {}, box, shift[None], obs.n, un.Device("cpu").jax)
        made = jax.device_get(covariates(k, traced, c))

    rank = np.empty(obs.n, int)
    rank[context_order(obs)] = np.arange(obs.n)
    unit = Lattice().unit(rank, k, 2, True, np.random.default_rng(9)).reshape(-1, 2)
    points = Uniform().bind(un.Box((0, 20), (0, 15)), obs).from_unit(unit, obs, np.repeat(np.arange(obs.n), k))
    y = np.concatenate([path[1:, None], points.reshape(obs.n, k, 2)], axis=1)
    d = y - path[:-1, None]
    assert np.abs(np.stack([made["x"], made["y"]], axis=2) - y).max() < 1e-9
    assert np.abs(made["step"] - np.hypot(*d.transpose(2, 0, 1))).max() < 1e-9
    assert np.flatnonzero(np.isnan(made["angle"])).tolist() == [6 * (1 + k)]
    assert np.abs(made["dcenter"] - np.hypot(y[..., 0] - 10, y[..., 1] - 7.5)).max() < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_rows_made_on_the_device_give_the_engines_optimum(kind) -> None:
    from unnorm.engine.device.made import fit_chain, on_host

    formula = "s(step, k=6) + s(angle, bs='cc', k=8) + s(x_prev, y_prev, k=8)"
    shift = np.random.default_rng(4).random(2)
    fit = fit_chain(formula, walk(2600), ((0, 20), (0, 15)), 5, shift, un.Device(kind))
    whole, y, offset = on_host(fit)
    own = smooth_fit(whole, y, "binomial", offset=offset)
    assert np.abs(fit.smoothed.beta - own.beta).max() < 1e-8
    assert np.abs(fit.smoothed.rho - own.rho).max() < 1e-8
    assert fit.smoothed.null_deviance == pytest.approx(own.null_deviance, rel=1e-12)


def test_segments_are_added_up() -> None:
    here = design("local")
    half = [here.take(lambda k, segment, which=which: which)[0] for which in np.array_split(np.arange(24), 2)]
    both, rng = here.joined(half), np.random.default_rng(8)
    rows = ResponseRows((rng.random(here.rows) < 0.3) * 1.0, np.empty(0), rng.normal(size=here.rows))
    there, beta = on_device(both, rows, un.Device("cpu")), rng.normal(size=here.size)
    assert len(both.segments) == 2
    assert far(there.sweep(rows, 0, beta)[2].shared, here.sweep(rows, 0, beta)[2].shared) < 1e-12
    assert far(there.predict(beta), here.predict(beta)) < 1e-12
    few, some = both.some(rows, 5)
    far_few, far_some = there.some(rows, 5)
    assert far(far_few.sweep(far_some, 0, beta)[1], few.sweep(some, 0, beta)[1]) < 1e-12


def test_rows_that_do_not_fit_are_refused_with_the_figures() -> None:
    require_room(10**9, 10**8, None)
    require_room(10**9, 10**8, 2 * 10**9)
    with pytest.raises(MemoryLimitError, match=r"rows take 1 GB and a pass 0\.4 GB .* 1\.3 GB free"):
        require_room(10**9, 10**8, 1_300_000_000)


@pytest.mark.skipif(_gpu(), reason="JAX has a GPU here")
def test_no_gpu_is_a_sentence() -> None:
    with pytest.raises(InputError, match="JAX has cpu here"):
        un.gam("z ~ s(a)", table(200), family="binomial", device="gpu")


def test_what_a_device_cannot_take_is_said() -> None:
    data, there = {**table(600), "g": np.tile(["u", "v"], 300)}, un.Device("cpu")
    with pytest.raises(CombinationError, match="each level"):
        un.gam("z ~ s(a, by=g, k=5) + factor(g)", data, family="binomial", device=there)
    with pytest.raises(CombinationError, match="method='CV'"):
        un.gam("z ~ s(a, k=5)", data, family="binomial", method="CV", device=there)
    with pytest.raises(CombinationError, match="leave memory= and workers= out"):
        un.gam("z ~ s(a, k=5)", data, family="binomial", memory="1GB", device=there)
    with pytest.raises(CombinationError, match="link='probit'"):
        un.gam("z ~ s(a, k=5)", data, family="binomial", link="probit", device=there)
    with pytest.raises(InputError, match="device must be"):
        un.gam("z ~ s(a, k=5)", data, family="binomial", device="tpu")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="precision"):
        un.Device("cpu", "float16")  # pyright: ignore[reportArgumentType]
    toy = un.ExponentialFamily(lambda y, x: (y,), ("theta",), un.Interval(-1, 1))
    with pytest.raises(CombinationError, match="additive engine"):
        un.fit(toy, un.transitions(un.datasets.toy_chain(50, 0.5, 5.0, rng=1)), device=there)
