"""Runs that are interrupted at random moments, again and again, and then go on to their end.

    python interrupted.py KIND SEED MOMENTS FOLDER

imports everything once and forks a process for each run. The first run is whole: it says how long one takes and what
comes out. The others are ended by SIGINT, SIGTERM and SIGKILL in turn, at moments drawn from a run's time; in between
nothing may lie about, and at the end the numbers must be those of the whole run. Prints what was seen, as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
CHAIN = 3  # interruptions of one run before it may end
MORE = 12  # attempts, where too few signals came in time


def forked(work: Callable[[], None], said: Path) -> int:
    """Start `work` in a process of its own; what it says goes to a file. Signals wait until the process is ready for
    them, and again when it ends: one that came in between would send it back into the code of this process."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return child
    code = 1
    try:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            warnings.simplefilter("ignore")
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            work()
            code = 0
        except KeyboardInterrupt:
            code = 130
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            traceback.print_exc()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    except KeyboardInterrupt:
        code = 130
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def visible(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if not path.name.startswith(".")}


def hidden(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob(".*")]


class Job:
    """What is run, what it may leave when it is interrupted, and what must come out."""

    command = False  # a command raises again what Python discards (cli/signals.py); a program must be asked twice

    def __init__(self, folder: Path, top: Path) -> None:
        self.folder, self.top = folder, top

    def run(self) -> None:
        raise NotImplementedError

    def result(self) -> Any:
        raise NotImplementedError

    def between(self) -> None:
        """Nothing is half-written: what is there can be read."""


class Fit(Job):
    """`unnorm fit --by subject --resume`."""

    command = True

    def run(self) -> None:
        from unnorm.cli import main

        options = ("--order", "fix", "--group", "subject,image", "--by", "subject", "--window", "0,800,0,600")
        light = ("--terms", "s(step, k=5)", "--normaliser", "s(x_prev, y_prev, k=8)", "--references", "3")
        table, out = str(self.top / "fixations.csv"), str(self.folder / "out")
        main(["fit", table, *options, *light, "--out", out, "--resume", "-q"])

    def between(self) -> None:
        import unnorm as un

        assert {path.name for path in self.folder.iterdir() if path.name[0] != "."} <= {"out", "out.part"}
        if (self.folder / "out.part" / "fit").exists():
            un.load(self.folder / "out.part" / "fit")
        if (self.folder / "out").exists():
            self.result()

    def result(self) -> Any:
        import unnorm as un

        assert len(un.load(self.folder / "out" / "fit").levels) == 2
        names = ("effects.csv", "parameters.csv", "summary.txt", "config.toml", "report.html")
        texts = {name: (self.folder / "out" / name).read_text(encoding="utf-8") for name in names}
        return {name: text.replace(str(self.folder), "") for name, text in texts.items()}


class Each(Job):
    """`fit_each(…).save(path)`, over and over."""

    made: Any = None

    def run(self) -> None:
        for value in range(60):
            type(self).made.diagnostics["round"] = value
            type(self).made.save(self.folder / "each")

    def between(self) -> None:
        import unnorm as un

        if (self.folder / "each").exists():
            assert un.load(self.folder / "each").summary() == type(self).made.summary()

    def result(self) -> Any:
        import unnorm as un

        return un.load(self.folder / "each").diagnostics["round"], visible(self.folder).__len__()


class Toy(Job):
    """`unnorm reproduce toy`, which goes on without being told."""

    command = True

    def run(self) -> None:
        from unnorm.cli import main

        sizes = ("--reps", "4", "--n", "2000", "--k", "3", "--theta", "fixed", "--basis", "5", "--jobs", "1")
        main(["reproduce", "toy", *sizes, "--out", str(self.folder / "toy"), "-q"])

    def between(self) -> None:
        for path in (self.folder / "toy" / "blocks").glob("*.csv"):
            assert path.read_text(encoding="utf-8").endswith("\n")

    def result(self) -> Any:
        return (self.folder / "toy" / "errors.csv").read_text(encoding="utf-8")


class Steps(Job):
    """SGD with a checkpoint after every block."""

    def run(self) -> None:
        import numpy as np
        import optax

        import unnorm as un

        model = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-1, 1))
        y = np.random.default_rng(1).uniform(-1, 1, 300)
        solver = un.SGD(optax.adam(0.02), steps=1200, batch=50, block=20, checkpoint=self.folder / "run")
        fit = un.fit(model, un.iid(y), un.Poisson(), solver=solver, rng=3)
        (self.folder / "estimate").write_text(repr(fit.estimate.tolist()))

    def between(self) -> None:
        from unnorm._base import storage

        if (self.folder / "run").exists():
            assert storage.read_folder(self.folder / "run")[0]["step"] % 20 == 0

    def result(self) -> Any:
        return (self.folder / "estimate").read_text()


HEAVY = {  # imported before the runs are forked
    "fit": ("unnorm.cli.run", "matplotlib.figure"),
    "toy": ("jax", "matplotlib.figure", "unnorm.studies.reproduce_toy_checks", "unnorm.studies.reproduce_toy_figures"),
    "sgd": ("jax", "optax", "unnorm.solvers.stochastic"),
}
KINDS = {"fit": Fit, "each": Each, "toy": Toy, "sgd": Steps}


def prepare(kind: str, top: Path) -> None:
    """Import what the runs need, and make what they have in common."""
    import numpy as np

    import unnorm as un

    if kind == "fit":
        from conftest import as_csv, scanpaths  # of the tests of the command line

        (top / "fixations.csv").write_text(as_csv(scanpaths(images=3, length=10)), encoding="utf-8")
    for name in HEAVY.get(kind, ()):
        importlib.import_module(name)
    if kind == "each":
        chain = un.transitions(un.datasets.toy_chain(90, 0.5, 5.0, rng=1))
        obs = un.Observations(**{**vars(chain), "group": {"who": np.arange(chain.n) // 45}})
        model = un.Additive("y", un.Interval(-1, 1))
        objective = un.Logistic(un.Uniform(), per_point=3, points=un.IID())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Each.made = un.fit_each(model, obs, "who", objective, un.Smooth("s(y_prev, k=5)"), rng=1, group=False)


def check_end(code: int, number: int, said: str, command: bool) -> None:
    """A signal ends a run with its own code and a sentence, or comes after the end; or in the middle of another
    library's code, whose callback (JAX has one for garbage) or half-made object (``ZipFile.__del__``) Python then
    reports as ignored."""
    assert code in (0, 128 + number, -number), (code, number, said)
    ignored = not command and said.startswith("Exception ignored in") and "unnorm" not in said.split("\n")[0]
    assert "Traceback" not in said or code == -number or (ignored and said.count("Traceback") == 1), said


def main(kind: str, seed: int, moments: int, top: Path) -> dict[str, Any]:
    prepare(kind, top)
    rng = random.Random(seed)
    make = KINDS[kind]
    job = make(top / "whole", top)
    job.folder.mkdir()
    began = time.monotonic()
    code = ended(forked(job.run, top / "said"))
    assert code == 0, (top / "said").read_text()
    took, whole = time.monotonic() - began, job.result()
    seen: dict[str, Any] = {"interrupted": 0, "litter after a kill": 0, "seconds": took}
    span, i = took, 0
    # a machine that is less busy than it was has ended before most signals come: they come sooner then
    while i < moments or (seen["interrupted"] < moments // 3 and i < moments + MORE):
        if i % CHAIN == 0 or i >= moments or (job.folder / "out").exists():
            job = make(top / f"run-{i}", top)
            job.folder.mkdir()
        number, before = SIGNALS[(i + i // CHAIN) % 3], set(hidden(job.folder))
        child = forked(job.run, top / "said")
        time.sleep(rng.uniform(0.0, span))
        os.kill(child, number)
        code = ended(child)
        check_end(code, number, (top / "said").read_text(errors="replace"), job.command)
        seen["interrupted"] += code != 0
        span = 0.5 * span if code == 0 else min(1.2 * span, took)
        left = hidden(job.folder)
        if code >= 0:
            # what a killed run left goes with the next that writes: this one may have ended before it did
            assert set(left) <= before, (number, left, before)
        seen["litter after a kill"] += bool(left)
        job.between()
        if i % CHAIN == CHAIN - 1 or i >= moments - 1:
            finished(job, top, whole)
        i += 1
    return seen


def finished(job: Job, top: Path, whole: Any) -> None:
    """Let the run go on to its end, unless it had ended: the same numbers, and nothing beside them."""
    if (job.folder / "out").exists():
        return
    code = ended(forked(job.run, top / "said"))
    assert code == 0, (top / "said").read_text()
    assert job.result() == whole
    assert not hidden(job.folder), hidden(job.folder)
    assert not (job.folder / "out.part").exists()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))))
