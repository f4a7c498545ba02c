"""`unnorm reproduce toy`: the same numbers as un.fit, resumable, honest about what it could not estimate."""

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm.cli import main
from unnorm.errors import InputError
from unnorm.studies import reproduce_toy as toy
from unnorm.studies.reproduce_toy import ESTIMATORS, HEADER, Toy, read_errors, run
from unnorm.studies.reproduce_toy_checks import checks, rmse_ratio

SMALL = {"reps": 3, "sizes": (40, 60), "ks": (4, 6)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("toy")
    run(Toy(**SMALL), out, jobs=1)
    return out


def test_every_fit_is_there_once(folder: Path) -> None:
    with (folder / "errors.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == HEADER
    keys = {tuple(row[name] for name in HEADER[:7]) for row in rows}
    assert len(keys) == len(rows) == 2 * 2 * 3 * 2 * (1 + 2 * 2 * 5)  # settings, sizes, reps, parameters, ML + the rest
    assert {row["estimator"] for row in rows} == set(ESTIMATORS)
    fixed = [row for row in rows if row["setting"] == "fixed" and row["parameter"] == "theta2"]
    assert {float(row["truth"]) for row in fixed} == {50.0}
    truths = [float(row["truth"]) for row in rows if row["setting"] == "random" and row["parameter"] == "theta1"]
    assert len(set(truths)) == 6
    assert max(np.abs(truths)) < 1


def test_workers_make_the_same_table(folder: Path, tmp_path: Path, client: Any) -> None:
    run(Toy(**SMALL), tmp_path, jobs=client)
    assert (tmp_path / "errors.csv").read_bytes() == (folder / "errors.csv").read_bytes()
    assert sorted(path.name for path in (tmp_path / "blocks").iterdir()) == sorted(
        path.name for path in (folder / "blocks").iterdir()
    )


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # constants ignored on purpose
def test_the_numbers_are_those_of_fit(folder: Path) -> None:
    errors = read_errors(folder / "errors.csv")
    theta, chain, points = toy.truth_and_chain("random", 60, 1, seed=1)
    obs = un.transitions(chain)
    for scheme in toy.SCHEMES:
        rng = toy.reference_seed(points, 6, scheme)
        for name, spec in {"ML": {}, **toy.specifications(6, scheme)}.items():
            fit = un.fit(toy.model(), obs, rng=np.random.default_rng(rng), **spec)
            k, where = (0, "none") if name == "ML" else (6, scheme)
            here = (errors.setting == "random") & (errors.n == 60) & (errors.k == k) & (errors.scheme == where)
            here &= (errors.estimator == name) & (errors.rep == 1)
            np.testing.assert_allclose(errors.estimate[here], fit.estimate, rtol=1e-9)
            # how much a lattice's points matter is seen on fresh shifts, which differ between the two
            np.testing.assert_allclose(errors.se[here], fit.se, rtol=1e-6 if where != "lattice" else 0.02)
            np.testing.assert_array_equal(errors.truth[here], theta)


def test_a_second_run_keeps_what_is_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (folder / "errors.csv").read_bytes()
    lost = next(iter(sorted((folder / "blocks").glob("fixed-40-*.csv"))))
    lost.unlink()
    (folder / "errors.csv").unlink()
    ran = []
    work = toy.block

    def counted(setting, n, reps, *rest):
        ran.append((setting, n, list(reps)))
        return work(setting, n, reps, *rest)

    monkeypatch.setattr(toy, "block", counted)
    seen = []
    run(Toy(**SMALL), folder, jobs=1, progress=lambda done, of: seen.append((done, of)))
    assert ran == [("fixed", 40, [0, 1, 2])]
    assert (folder / "errors.csv").read_bytes() == before
    assert seen == [(600 - 120, 600), (600, 600)]


def test_an_interrupted_block_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(toy, "block", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(Toy(reps=1, sizes=(30,), ks=(3,), settings=("random",)), tmp_path, jobs=1)
    assert not list(tmp_path.glob("blocks/*"))
    assert not (tmp_path / "errors.csv").exists()


def test_repetitions_can_be_added_and_keep_their_numbers(folder: Path, tmp_path: Path) -> None:
    more = Toy(reps=4, sizes=(40,), ks=(4, 6), settings=("random",))
    run(more, tmp_path, jobs=1)
    old, new = read_errors(folder / "errors.csv"), read_errors(tmp_path / "errors.csv")
    a = old.of("random", 40, 6, "lattice", "semiparametric REML", "theta2")
    b = new.of("random", 40, 6, "lattice", "semiparametric REML", "theta2")
    np.testing.assert_array_equal(a, b[:3])
    assert len(b) == 4


def test_another_configuration_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"k was \[4, 6\] and is now \[4, 8\].*--out"):
        run(Toy(reps=3, sizes=(40,), ks=(4, 8)), folder, jobs=1)
    with pytest.raises(InputError, match="seed was 1 and is now 2"):
        run(Toy(reps=3, sizes=(40,), ks=(4, 6), seed=2), folder, jobs=1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"reps": 0}, "reps"),
        ({"sizes": (10,)}, "20 or more"),
        ({"sizes": (50, 50)}, "different"),
        ({"ks": (0,)}, "1 or more"),
        ({"settings": ("both",)}, "theta"),
        ({"seed": -1}, "seed"),
        ({"basis": 2}, "basis"),
    ],
)
def test_bad_settings(given: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Toy(**given)


def test_an_estimate_that_does_not_exist_is_recorded() -> None:
    """k = 1: with one point each, transitions that all lie nearer than their point separate completely."""
    x = np.linspace(-0.9, 0.9, 30)
    obs = un.transitions(x)
    from unnorm.references import IID, Custom

    log_half = -np.log(2.0)
    far = Custom(lambda rng, n, x: np.where(x > 0, -0.95, 0.95), lambda y, x: np.full(len(y), log_half), check=False)
    spec = {"objective": un.Logistic(far, per_point=1, points=IID()), "normaliser": un.PerContext()}
    found = toy.estimate(obs, spec, 1, None)
    assert found.theta is None
    assert found.status == "NoEstimateError"


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two workers, the table and the figures."""
    out = tmp_path / "run"
    options = ["--reps", "2", "--n", "30", "--k", "3", "--jobs", "2", "--out", str(out)]
    main(["reproduce", "toy", *options])
    printed = capsys.readouterr().out
    assert "44 fits" in printed
    for name in ("errors.csv", "realisations.png", "errors-random-iid.png", "errors-fixed-lattice.png"):
        assert (out / name).is_file()
        assert name in printed
    assert json.loads((out / "configuration.json").read_text())["seed"] == 1


def test_command_line_refuses_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "toy", "--n", "50,many"])
    assert stop.value.code == 2
    assert "--n must be whole numbers from 1 to 1000000, with commas between them" in capsys.readouterr().err


def test_paired_bootstrap() -> None:
    """A ratio of rmse whose noise is shared is known far better than either rmse."""
    rng = np.random.default_rng(1)
    b = rng.standard_normal(300)
    ratio, low = rmse_ratio(1.1 * b + 0.01 * rng.standard_normal(300), b, rng)
    assert ratio == pytest.approx(1.1, abs=0.01)
    assert 1.08 < low < ratio
    with_gaps = b.copy()
    with_gaps[:5] = np.nan
    assert np.isfinite(rmse_ratio(with_gaps, b, rng)[0])


def test_checks_see_a_wrong_result(folder: Path) -> None:
    """Made-up errors in which the semi-parametric estimate is 20 % worse than ML must fail."""
    n_of, reps = (200, 1000), 200
    rng = np.random.default_rng(2)
    table = []
    for n in n_of:
        for parameter in toy.PARAMETERS:
            ml = rng.standard_normal(reps) / np.sqrt(n)
            for r in range(reps):
                table.append(("random", n, 0, "none", "ML", parameter, r, 0.0, ml[r], 1.0, "ok"))
                for k, par in ((10, 3.0), (30, 1.5)):
                    for scheme in toy.SCHEMES:
                        for name, scale, shift in (
                            ("semiparametric UBRE", 1.01, 0.0),
                            ("semiparametric REML", 1.2, 0.0),
                            ("semiparametric free", 1.0, 0.0),
                            ("parametric", par, 0.0),
                            ("ignored", 1.0, 0.3 if parameter == "theta1" else 0.0),
                        ):
                            table.append(
                                ("random", n, k, scheme, name, parameter, r, 0.0, scale * ml[r] + shift, 1.0, "ok")
                            )
    found = {one.claim: one.holds for one in checks(toy.Errors(*(np.array(c) for c in zip(*table))))}
    wrong = {claim for claim, holds in found.items() if not holds}
    assert wrong == {claim for claim in found if "semiparametric REML within" in claim}
    assert len(wrong) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_run(tmp_path: Path, how: signal.Signals) -> None:
    """However the run ends, no worker is left behind, nor does it wait for the blocks that are under way."""
    script = (
        "import pathlib\n"
        "from unnorm.studies.reproduce_blocks import run_blocks\n"
        "if __name__ == '__main__':\n"
        "    todo = [(pathlib.Path(f'{i}.csv'), (pathlib.Path(f'{i}.pid'),)) for i in range(4)]\n"
        "    run_blocks(todo, __import__('worker').work, ('a',), 2, print)\n"
    )
    (tmp_path / "worker.py").write_text(
        "import os, time\ndef work(path):\n    path.write_text(str(os.getpid()))\n    time.sleep(60)\n    return []\n"
    )
    (tmp_path / "run.py").write_text(script)
    parent = subprocess.Popen(
        [sys.executable, "run.py"],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
        preexec_fn=_interruptible,
    )
    pids: list[Path] = []
    for _ in range(300):
        pids = [one for one in tmp_path.glob("*.pid") if one.read_text()]
        if len(pids) == 2:
            break
        time.sleep(0.1)
    assert len(pids) == 2
    parent.send_signal(how)
    parent.wait(timeout=20)
    workers = [int(one.read_text()) for one in pids]
    for _ in range(100):
        if not any(map(_alive, workers)):
            return
        time.sleep(0.1)
    raise AssertionError(f"workers {workers} outlive the run")


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a test runner in the background ignores


def _alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "\nState:\tZ" not in status.read_text()
