"""Runs that diverge, are interrupted or are killed: what they say, and what they leave behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import unnorm as un
from unnorm._base import storage
from unnorm.errors import InputError
from unnorm.solvers.stochastic import SGD, DivergenceError
from unnorm.solvers.stochastic.sources import DeviceSource

pytestmark = pytest.mark.filterwarnings("ignore:The solver did not converge")  # these runs are short on purpose
ADAM = optax.adam(0.02)
NORMAL = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-1, 2))


def _points() -> un.Observations:
    y = np.random.default_rng(1).normal(0.4, 0.6, 3000)
    return un.iid(y[(y > -1) & (y < 2)][:1000])


def _fit(path: Path | None, steps: int = 120, every: int = 1) -> un.Fit:
    solver = SGD(ADAM, steps=steps, batch=100, block=20, checkpoint=path, checkpoint_every=every)
    return un.fit(NORMAL, _points(), un.Poisson(), solver=solver, rng=3)


@pytest.mark.slow
def test_a_huge_learning_rate_is_named_and_a_smaller_one_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run"

    def fit(learning_rate: float, steps: int) -> un.Fit:
        optimiser = optax.sgd(learning_rate)
        solver = SGD(optimiser, steps=steps, batch=100, block=20, checkpoint=path, precondition=False)
        return un.fit(NORMAL, _points(), un.Poisson(), solver=solver, rng=3)

    fit(0.5, 40)
    before = storage.read_folder(path)[1]["phi"]
    with pytest.raises(
        DivergenceError, match=r"diverged at step 4\d: ∫ exp\(f \+ ν\) had exploded.*learning rate"
    ) as e:
        fit(1e4, 200)
    about, arrays = storage.read_folder(path)
    assert about["step"] == 40
    np.testing.assert_array_equal(arrays["phi"], before)
    np.testing.assert_array_equal(e.value.last_good, before)
    assert str(path) in str(e.value)
    again = fit(0.5, 200)
    ml = un.fit(NORMAL, _points())
    assert np.all(np.abs(again.estimate - ml.estimate) < ml.se)
    with pytest.raises(InputError, match="another optimiser"):
        _fit(path, steps=300)


@pytest.mark.slow
def test_a_model_that_is_not_a_number_is_named() -> None:
    obs, solver = _points(), SGD(optax.sgd(5.0), steps=100, batch=100, block=10)
    root = un.Energy(lambda t, y: -jnp.sqrt(t) * y**2, 0.01, un.Interval(-1, 2))  # steps below zero
    with pytest.raises(
        DivergenceError, match=r"at step \d+: the objective was not a finite number.*finite on all of Ω"
    ):
        un.fit(
            root, obs, un.Logistic(un.Uniform(), total=2000), solver=SGD(optax.sgd(-5.0), steps=100, block=10), rng=1
        )
    log = un.Energy(lambda t, y: t * jnp.log(y), 1.0, un.Interval(-1, 2))
    with pytest.raises(InputError, match="At the starting values f is NaN"):
        un.fit(log, obs, un.Poisson(), solver=solver, rng=1)
    hidden = un.Energy(lambda t, y: jnp.where(y > 0, jnp.sqrt(t * y), 0.0), 1.0, un.Interval(-1, 2))
    with pytest.raises(DivergenceError, match=r"at step 0: a parameter was no longer finite.*jnp\.where"):
        un.fit(hidden, obs, un.Poisson(), solver=solver, rng=1)


def test_an_interrupt_leaves_the_last_whole_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _fit(None)
    block = DeviceSource.block

    def interrupted(self: DeviceSource, seed: int, first: int, count: int) -> object:
        if first == 60:
            raise KeyboardInterrupt
        return block(self, seed, first, count)

    with monkeypatch.context() as patch:
        patch.setattr(DeviceSource, "block", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _fit(tmp_path / "run", every=1000)
    assert storage.read_folder(tmp_path / "run")[0]["step"] == 60
    resumed = _fit(tmp_path / "run")
    np.testing.assert_array_equal(resumed.estimate, whole.estimate)
    # killed between the two renames of a save: the earlier checkpoint lies beside the path
    (tmp_path / ".run.unnorm-old-abcdefgh").mkdir()
    os.replace(tmp_path / "run", tmp_path / ".run.unnorm-old-abcdefgh" / "run")
    seen: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(
            "unnorm.solvers.stochastic.loop._blocks", lambda e, s, seed, state, few, bar: seen.append(state.step)
        )
        with pytest.raises(TypeError):  # nothing came back from there
            _fit(tmp_path / "run", steps=140)
    assert seen == [120]


def test_an_interrupt_of_the_first_block_is_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is averaged yet, and the checkpoint holds the start."""

    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(DeviceSource, "block", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _fit(tmp_path / "run", steps=40)
    assert storage.read_folder(tmp_path / "run")[0]["step"] == 0
    np.testing.assert_array_equal(_fit(tmp_path / "run", steps=40).estimate, _fit(None, steps=40).estimate)


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_broken_runs import _fit
_fit(Path(sys.argv[2]), steps=100_000)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    """kill -9 in the middle, many times over; then on to the end, against a run that nobody broke."""
    path, steps = tmp_path / "run", []
    for _ in range(3):
        run = subprocess.Popen([sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(path)])
        before = steps[-1] if steps else 0
        deadline = time.monotonic() + 500
        while time.monotonic() < deadline and run.poll() is None:
            time.sleep(0.05)
            try:
                now = storage.read_folder(path)[0]["step"]
            except InputError:  # in the middle of a save
                continue
            if now > before + 400:
                break
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        assert run.returncode == -signal.SIGKILL
        time.sleep(0.1)
        steps.append(storage.read_folder(path)[0]["step"])  # wherever the kill fell
    assert steps[0] < steps[1] < steps[2]
    total = steps[2] + 200
    resumed, whole = _fit(path, steps=total), _fit(None, steps=total)
    np.testing.assert_array_equal(resumed.estimate, whole.estimate)
    np.testing.assert_array_equal(resumed.nu, whole.nu)
    assert resumed.diagnostics["value"] == whole.diagnostics["value"]
