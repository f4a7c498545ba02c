"""Labelled rows: their order, their offsets, what is shared and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

import unnorm as un
from unnorm.errors import InputError, OutsideError
from unnorm.references import IID, BitFlip, Custom, Gaussian, Lattice, Mixture, StepKernel, Uniform
from unnorm.references.contrast import contrast

OMEGA = un.Interval(-1, 1)


def chain(n=60, seed=0, **more):
    rng = np.random.default_rng(seed)
    y = rng.uniform(-1, 1, (n + 1, 1))
    return un.Observations("transitions", y[1:], ("y",), {"y_prev": y[:-1, 0]}, lags=1, **more)


def iid(n=60, seed=0, **more):
    return un.Observations("iid", np.random.default_rng(seed).beta(2, 3, (n, 1)) * 2 - 1, ("y",), **more)


def test_rows_of_one_context_lie_together():
    obs = chain(weight=np.arange(1.0, 61.0), offset=np.linspace(0, 1, 60))
    q = Gaussian(around="context").bind(OMEGA, obs)
    rows = contrast(obs, q, Lattice(2), per_point=5, rng=1)
    assert (rows.rows, rows.k, rows.n, rows.m) == (360, 5, obs.weights.sum(), 5 * obs.weights.sum())
    assert rows.log_ratio == -np.log(5)
    block = np.arange(360).reshape(60, 6)
    assert np.array_equal(rows.at[block], np.tile(np.arange(60)[:, None], 6))
    assert rows.z[block[:, 0]].all()
    assert not rows.z[block[:, 1:]].any()
    assert np.array_equal(rows.outcome[block[:, 0]], obs.outcome)
    assert np.array_equal(rows.weight[block], np.tile(obs.weights[:, None], 6))
    assert np.array_equal(rows.offset[block], np.tile(obs.offsets[:, None], 6))
    assert np.array_equal(rows.randomisation[block], np.tile([0, 1, 1, 1, 2, 2], (60, 1)))
    assert rows.log_q == pytest.approx(q.log_density(rows.outcome, obs, rows.at))
    assert rows.log_odds_offset == pytest.approx(rows.offset - rows.log_q - np.log(5))
    assert not rows.outcome.flags.writeable


def test_iid_rows_share_their_points():
    obs = iid(weight=np.full(60, 2.0))
    rows = contrast(obs, Uniform().bind(OMEGA, obs), total=500, rng=1)
    assert rows.scheme == Lattice()
    assert (rows.rows, rows.k, rows.n, rows.m) == (560, None, 120.0, 500.0)
    assert rows.log_ratio == pytest.approx(np.log(120 / 500))
    assert np.array_equal(rows.at, [*range(60), *[-1] * 500])
    assert np.array_equal(rows.weight, [2.0] * 60 + [1.0] * 500)
    assert rows.log_odds_offset == pytest.approx(np.log(2) + np.log(120 / 500))


def test_splits_have_their_own_ratio():
    obs = chain()
    rows = contrast(obs, Uniform().bind(OMEGA, obs), Lattice(3), per_point=7, rng=1)
    parts = rows.splits()
    assert [part.k for part in parts] == [3, 2, 2]
    assert [part.log_ratio for part in parts] == [-np.log(3), -np.log(2), -np.log(2)]
    assert sum(part.rows - obs.n for part in parts) == rows.rows - obs.n
    for r, part in enumerate(parts, start=1):
        assert np.array_equal(part.outcome[part.z], obs.outcome)
        assert np.array_equal(part.outcome[~part.z], rows.outcome[rows.randomisation == r])
        assert np.array_equal(part.z.reshape(60, -1)[:, 0], np.ones(60))
        assert part.randomisations == 1
    assert rows.randomisations == 3
    with pytest.raises(InputError, match=r"are \[1, 2, 3\]; got 4"):
        rows.split(4)
    shared = contrast(iid(), Uniform().bind(OMEGA, iid()), Lattice(2), total=101, rng=1)
    assert [part.m for part in shared.splits()] == [51.0, 50.0]
    assert shared.split(1).log_ratio == pytest.approx(np.log(60 / 51))


def test_redraw_changes_the_points_only():
    obs = chain()
    rows = contrast(obs, Uniform().bind(OMEGA, obs), per_point=7, rng=1)
    again = rows.redraw(2)
    assert np.array_equal(again.outcome[again.z], rows.outcome[rows.z])
    assert not np.array_equal(again.outcome, rows.outcome)
    assert np.array_equal(rows.redraw(1).outcome, rows.outcome)
    shared = contrast(iid(), Uniform().bind(OMEGA, iid()), total=101, rng=1)
    assert shared.redraw(3).m == 101


@pytest.mark.parametrize("weighted", [False, True])
def test_the_offsets_make_nu_the_normalising_constant(weighted):
    """Logistic regression on the rows gives θ̂ and ν̂ = −log Z(θ̂), IID (eq. 3.2) and with contexts (eq. 3.4)."""
    rng = np.random.default_rng(0)
    n = 4000
    y = np.sort(rng.random(n))
    y = np.log1p(y * np.expm1(2 * 1.5)) / 1.5 - 1  # density ∝ exp(1.5 y) on [−1, 1]
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    log_z = np.log(2 * np.sinh(1.5) / 1.5)

    def fit(rows):
        X = np.column_stack([rows.outcome[:, 0], np.ones(rows.rows)])
        sign = np.where(rows.z, -1.0, 1.0)

        def loss(b):
            eta = sign * (X @ b + rows.log_odds_offset)
            p = 1 / (1 + np.exp(-eta))
            return rows.weight @ np.logaddexp(0, eta), X.T @ (rows.weight * sign * p)

        return minimize(loss, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-3}).x

    for reference in (Uniform(), Gaussian(scale=1.3), Mixture((1, Uniform()), (1, Gaussian()))):
        obs = un.Observations("iid", y[:, None], ("y",), weight=weight)
        rows = contrast(obs, reference.bind(OMEGA, obs), total=20_000, rng=1)
        assert fit(rows) == pytest.approx([1.5, -log_z], abs=0.1)
    before = {"y_prev": rng.uniform(-1, 1, n)}
    obs = un.Observations("transitions", rng.permutation(y)[:, None], ("y",), before, lags=1, weight=weight)
    for reference in (Uniform(), Mixture((1, Uniform()), (1, Gaussian(around="context", cov=0.2)))):
        rows = contrast(obs, reference.bind(OMEGA, obs), per_point=5, rng=1)
        assert fit(rows) == pytest.approx([1.5, -log_z], abs=0.12)


def test_kernels_around_the_outcome_go_both_ways():
    omega = un.BinaryVectors(6)
    y = omega.uniform(30, 0)
    obs = un.Observations("iid", y, tuple("abcdef"))
    rows = contrast(obs, BitFlip().bind(omega, obs), IID(), per_point=4, rng=1)
    assert rows.k == 4
    assert rows.log_q[rows.z] == pytest.approx(0.0)
    assert rows.log_q[~rows.z] == pytest.approx(-np.log(6))
    assert rows.log_q_back[~rows.z] == pytest.approx(-np.log(6))
    flips = np.abs(rows.outcome - y[rows.at]).sum(axis=1)
    assert np.array_equal(flips, np.where(rows.z, 0.0, 1.0))

    points = iid()
    q = Gaussian(mean=0.0, cov=0.05, around="outcome").bind(OMEGA, points)
    rows = contrast(points, q, IID(), per_point=3, rng=1)
    moved = replace(points.take(rows.at), outcome=rows.outcome)
    back = q.log_density(points.outcome[rows.at], moved, np.arange(rows.rows))
    assert rows.log_q_back[~rows.z] == pytest.approx(back[~rows.z])
    with pytest.raises(InputError, match="kernel around each observed outcome"):
        contrast(points, q, total=100)


def test_points_that_cannot_be_used_are_named():
    obs = replace(chain(), row=np.arange(60) + 1000)
    outside = replace(obs, outcome=np.where(np.arange(60)[:, None] == 4, 1.5, obs.outcome))
    with pytest.raises(OutsideError, match=r"1 of 60 outcomes lie outside Interval\(-1, 1\); the first is row 1004"):
        contrast(outside, Uniform().bind(OMEGA, obs), per_point=3)

    def upwards(y, x):
        return np.where(y > x, -np.log(1 - x), -np.inf)

    q = Custom(lambda rng, n, x: x + (1 - x) * rng.random(n), upwards).bind(OMEGA, obs)
    below = np.flatnonzero(obs.outcome[:, 0] <= obs.context["y_prev"])
    with pytest.raises(OutsideError, match=rf"{len(below)} of 60 observations .*row {1000 + below[0]}.*Mixture"):
        contrast(obs, q, per_point=3)
    crossed = Custom(lambda rng, n, x: x - (1 + x) * rng.random(n), upwards, check=False).bind(OMEGA, obs)
    up = obs.take(obs.outcome[:, 0] > obs.context["y_prev"])
    with pytest.raises(OutsideError, match=r"of its own points.*do not belong together"):
        contrast(up, crossed, per_point=3)


def test_custom_references_get_iid_points_and_say_so():
    obs = chain()
    q = Custom(lambda rng, n, x: rng.uniform(-1, 1, n), lambda y, x: np.full(len(y), -np.log(2))).bind(OMEGA, obs)
    rows = contrast(obs, q, per_point=3, rng=0)
    assert rows.scheme == IID()
    assert "points are IID" in rows.notes[0]
    assert contrast(obs, Uniform().bind(OMEGA, obs), per_point=3, rng=0).notes == ()


def test_an_offset_of_iid_data_must_be_constant():
    obs = iid(offset=np.arange(60.0))
    with pytest.raises(InputError, match="unknown elsewhere in Ω"):
        contrast(obs, Uniform().bind(OMEGA, obs), total=100)
    obs = iid(offset=np.full(60, 0.3))
    rows = contrast(obs, Uniform().bind(OMEGA, obs), total=100, rng=1)
    assert rows.offset == pytest.approx(0.3)


def test_real_size_in_bounded_memory():
    """10⁵ contexts × 20 points in the plane: the rows, and no more than twice their memory on the way."""
    import tracemalloc

    omega = un.Box((0, 800), (0, 600))
    rng = np.random.default_rng(0)
    y, x = omega.uniform(100_000, rng), omega.uniform(100_000, rng)
    obs = un.Observations("transitions", y, ("x", "y"), {"x_prev": x[:, 0], "y_prev": x[:, 1]}, lags=1)
    q = Uniform().bind(omega, obs)
    tracemalloc.start()
    rows = contrast(obs, q, per_point=20, rng=1)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows.rows == 2_100_000
    assert kept < 1.05 * 2_100_000 * (16 + 8 + 8 + 8 + 1 + 2)  # outcome, at, log_q, weight, z, randomisation
    assert peak < 2.2 * kept


def test_zero_steps_and_step_kernels():
    omega = un.Box((0, 8), (0, 6))
    y, x = omega.uniform(50, 1), omega.uniform(50, 2)
    obs = un.Observations("transitions", y, ("x", "y"), {"x_prev": x[:, 0], "y_prev": x[:, 1]}, lags=1)
    rows = contrast(obs, StepKernel().bind(omega, obs), per_point=10, rng=1)
    assert np.isfinite(rows.log_q).all()
    assert omega.contains(rows.outcome).all()


def test_repr_fits_in_a_few_lines():
    obs = un.iid(np.linspace(-0.9, 0.9, 50))
    rows = contrast(obs, Uniform().bind(un.Interval(-1, 1), obs), total=1000, rng=1)
    assert repr(rows) == (
        "Contrast(50 observations, 1,000 shared reference points by Lattice(randomisations=1) from "
        "<Uniform on Interval(-1, 1): uniform on Interval(-1, 1)>)"
    )
