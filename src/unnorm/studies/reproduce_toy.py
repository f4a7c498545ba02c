"""Section 4.1: maximum likelihood against three variants of noise-contrastive divergence on the toy chain (eq. 4.1).

    p(y_t | y_{t−1}) ∝ exp{θ1 y_t − ½ θ2 (y_t − y_{t−1})²},      y_t ∈ [−1, 1]

with k uniform reference points for each transition. The variants differ in what they make of the normalising constants:
a smooth χ(y_{t−1}) (semi-parametric; smoothing by UBRE, mgcv's default and the paper's, and by REML), the same
functions without a penalty (which is not in the paper), one free ν_t for each transition (fully parametric), or one ν
for all (constants ignored). Both settings of the text are run: θ = (−2, 50), and θ1 ~ U(−1, 1), θ2 ~ U(1/10, 10) afresh
in each repetition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, final

import numpy as np

from ..errors import EstimationError, InputError, hush, unknown
from .reproduce_blocks import Row, read_block, read_rows, run_blocks, same_configuration, write_rows

HEADER = ("setting", "n", "k", "scheme", "estimator", "parameter", "rep", "truth", "estimate", "se", "status")
SETTINGS = ("random", "fixed")
SCHEMES = ("iid", "lattice")
ESTIMATORS = ("ML", "semiparametric UBRE", "semiparametric REML", "semiparametric free", "parametric", "ignored")
PARAMETERS = ("theta1", "theta2")
FIXED = (-2.0, 50.0)
LEAST = 20  # transitions: below this a smooth of ten functions has no business here
_AT_ONCE = 4000  # transitions in one block: a second or so of work, lost at most at an interruption


@final
@dataclass(frozen=True)
class Toy:
    """What is run. Repetition r of size n draws the same chain whatever else is run, so that runs can be extended."""

    reps: int = 300
    sizes: tuple[int, ...] = (50, 100, 200, 500, 1000, 2000)
    ks: tuple[int, ...] = (10, 30)
    settings: tuple[str, ...] = SETTINGS
    seed: int = 1
    basis: int = 10  # functions of χ: mgcv's default for s(x), which the paper used

    def __post_init__(self) -> None:
        if self.reps < 1:
            raise InputError(f"reps must be at least 1; got {self.reps}.")
        if not self.sizes or min(self.sizes) < LEAST or len(set(self.sizes)) < len(self.sizes):
            raise InputError(f"n must be different numbers of transitions, {LEAST} or more; got {list(self.sizes)}.")
        if not self.ks or min(self.ks) < 1 or len(set(self.ks)) < len(self.ks):
            raise InputError(f"k must be different numbers of reference points, 1 or more; got {list(self.ks)}.")
        wrong = [setting for setting in self.settings if setting not in SETTINGS]
        if wrong or not self.settings:
            raise InputError(unknown("theta", wrong[0] if wrong else "nothing", (*SETTINGS, "both")))
        if self.seed < 0:
            raise InputError(f"seed must not be negative; got {self.seed}.")
        if self.basis < 3:
            raise InputError(f"basis must be at least 3 functions; got {self.basis}.")

    @property
    def numbers_depend_on(self) -> dict[str, Any]:
        """What must not change between two runs into one folder; sizes, settings and repetitions may be added."""
        return {
            "experiment": "toy",
            "format": 2,
            "estimators": list(ESTIMATORS),
            "seed": self.seed,
            "k": list(self.ks),
            "basis": self.basis,
        }


@cache
def model() -> Any:
    """f = θ1 y − ½ θ2 (y − y_prev)² on [−1, 1]: one object, so that JAX compiles once for each size."""
    from ..domains import Interval
    from ..models import ExponentialFamily

    return ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), PARAMETERS, Interval(-1, 1))


def specifications(k: int, scheme: str, basis: int = 10) -> dict[str, dict[str, Any]]:
    """The arguments of `un.fit` for each estimator that uses reference points."""
    from ..models.normalisers import Constant, PerContext, Smooth
    from ..objectives import Logistic
    from ..references import IID, Lattice, Uniform
    from ..solvers import Smoothing

    objective = Logistic(Uniform(), per_point=k, points={"iid": IID(), "lattice": Lattice()}[scheme])
    chi, free = Smooth(f"s(y_prev, k={basis})", smoothing="reml"), Smooth(f"s(y_prev, k={basis})")
    return {
        "semiparametric UBRE": {"objective": objective, "normaliser": chi, "smoothing": Smoothing("gcv", threads=1)},
        "semiparametric REML": {"objective": objective, "normaliser": chi, "smoothing": Smoothing("reml", threads=1)},
        "semiparametric free": {"objective": objective, "normaliser": free, "smoothing": Smoothing(threads=1)},
        "parametric": {"objective": objective, "normaliser": PerContext()},
        "ignored": {"objective": objective, "normaliser": Constant()},
    }


def truth_and_chain(setting: str, n: int, rep: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.random.SeedSequence]:
    """θ, y_0 … y_n and the seeds of the reference points for repetition `rep`."""
    from .datasets import toy_chain

    chain, points = np.random.SeedSequence([seed, SETTINGS.index(setting), n, rep]).spawn(2)
    rng = np.random.default_rng(chain)
    theta = np.array(FIXED) if setting == "fixed" else rng.uniform((-1.0, 0.1), (1.0, 10.0))
    return theta, toy_chain(n, float(theta[0]), float(theta[1]), rng=rng), points


def repetition(setting: str, n: int, rep: int, ks: Iterable[int], seed: int, basis: int) -> list[Row]:
    """All estimates from one chain, as rows of `HEADER`. Estimators of one (k, scheme) share their reference points."""
    from ..data.observations import transitions
    from ..models.normalisers import PerContext
    from ..objectives import Exact

    theta, chain, points = truth_and_chain(setting, n, rep, seed)
    obs = transitions(chain)
    rows: list[Row] = []

    def record(k: int | None, scheme: str, estimator: str, found: Estimate) -> None:
        for j, parameter in enumerate(PARAMETERS):
            value = None if found.theta is None else float(found.theta[j])
            error = None if found.se is None else float(found.se[j])
            rows.append((setting, n, k, scheme, estimator, parameter, rep, float(theta[j]), value, error, found.status))

    ml = estimate(obs, {"objective": Exact(), "normaliser": PerContext()}, None, None)
    record(None, "none", "ML", ml)
    for k in ks:
        for scheme in SCHEMES:
            rng = reference_seed(points, k, scheme)
            drawn, smooths = None, {}
            for estimator, spec in specifications(k, scheme, basis).items():
                drawn = spec["objective"].draw(model(), obs, None, rng) if drawn is None else drawn
                record(k, scheme, estimator, estimate(obs, spec, rng, drawn, ml.theta, smooths))
    return rows


def reference_seed(points: np.random.SeedSequence, k: int, scheme: str) -> int:
    """The seed of the reference points for one k and scheme."""
    words = [int(word) for word in points.generate_state(4)]
    drawn = np.random.SeedSequence([*words, k, SCHEMES.index(scheme)])
    return int(drawn.generate_state(1, np.uint64)[0] >> np.uint64(1))


@dataclass(frozen=True)
class Estimate:
    """θ̂ and its standard errors, or why there are none."""

    theta: np.ndarray | None
    se: np.ndarray | None
    status: str


def estimate(
    obs: Any,
    spec: dict[str, Any],
    rng: int | None,
    drawn: Any,
    start: np.ndarray | None = None,
    smooths: dict[Any, Any] | None = None,
) -> Estimate:
    """What `un.fit(model(), obs, rng=rng, **spec)` finds for θ, on reference points that are drawn once for all
    estimators, and without what else a `Fit` carries (tests of terms, grids): 70,000 fits are to be made. `smooths`
    keeps rows and terms for the next estimator with the same normaliser."""
    from ..inference.sandwich import error_parts
    from ..solvers import Newton

    objective, normaliser = spec["objective"], spec["normaliser"]
    given = {} if drawn is None else {"drawn": drawn}
    with hush():  # non-convergence, which is recorded
        try:
            if normaliser.terms is not None:
                kept = {} if smooths is None else smooths
                if id(normaliser) not in kept:
                    kept[id(normaliser)] = objective.additive(model(), obs, normaliser, rng, **given)
                end = spec["smoothing"].solve_rows(kept[id(normaliser)])
                theta, scores, at, converged = end.estimate, end.scores, end.index, end.converged
            else:
                problem, path = Newton().climb(objective.bind(model(), obs, normaliser, rng, **given), start)
                theta, scores, converged = path.theta, problem.scores(path.theta), path.converged
                at = np.arange(theta.size)
            errors = error_parts(scores)
        except EstimationError as error:
            return Estimate(None, None, type(error).__name__)
        assert errors is not None
    return Estimate(theta, np.sqrt(np.diag(errors.total)[at]), "ok" if converged else "not converged")


def block(setting: str, n: int, reps: range, ks: tuple[int, ...], seed: int, basis: int) -> list[Row]:
    """Several repetitions: what a worker does at a time."""
    return [row for rep in reps for row in repetition(setting, n, rep, ks, seed, basis)]


def run(toy: Toy, out: Path, jobs: Any = 2, progress: Callable[[int, int], None] | None = None) -> Path:
    """Run what is not yet in `out`, and write `errors.csv` there. `progress(done, of)` counts transitions simulated.

    `jobs`: a number of processes, or the address or the client of a Dask cluster. Finished blocks are files in
    `out/blocks`; a run that was interrupted, or lost its workers, goes on where it stopped.
    """
    if isinstance(jobs, int) and jobs < 1:
        raise InputError(f"jobs must be at least 1; got {jobs}.")
    same_configuration(out, toy.numbers_depend_on)
    blocks = list(_blocks(toy, out / "blocks"))
    todo = [one for one in blocks if not one[0].exists()]
    size = [len(arguments[2]) * arguments[1] for _, arguments in todo]
    total = sum(len(arguments[2]) * arguments[1] for _, arguments in blocks)
    finished = total - sum(size)
    if progress is not None:
        progress(finished, total)

    def done(i: int) -> None:
        nonlocal finished
        finished += size[i]
        if progress is not None:
            progress(finished, total)

    run_blocks(todo, block, HEADER, jobs, done)
    rows = [row for path, _ in blocks for row in read_block(path, HEADER)]
    rows.sort(key=lambda row: (SETTINGS.index(row[0]), int(row[1])))
    target = out / "errors.csv"
    write_rows(target, HEADER, (tuple(row) for row in rows))
    return target


def _blocks(toy: Toy, folder: Path) -> Iterable[tuple[Path, tuple[Any, ...]]]:
    """(path, arguments of `block`), the largest chains first, so that the workers end together."""
    for n in sorted(toy.sizes, reverse=True):
        each = max(1, _AT_ONCE // n)
        for setting in toy.settings:
            for start in range(0, toy.reps, each):
                reps = range(start, min(start + each, toy.reps))
                name = f"{setting}-{n}-{reps.start:05d}-{reps.stop:05d}.csv"
                yield folder / name, (setting, n, reps, toy.ks, toy.seed, toy.basis)


@dataclass(frozen=True)
class Errors:
    """`errors.csv` in memory; missing estimates are nan."""

    setting: np.ndarray
    n: np.ndarray
    k: np.ndarray  # 0 for ML
    scheme: np.ndarray
    estimator: np.ndarray
    parameter: np.ndarray
    rep: np.ndarray
    truth: np.ndarray
    estimate: np.ndarray
    se: np.ndarray
    status: np.ndarray

    def of(self, setting: str, n: int, k: int, scheme: str, estimator: str, parameter: str) -> np.ndarray:
        """estimate − truth by repetition, in order; nan where there is no estimate."""
        if estimator == "ML":
            k, scheme = 0, "none"
        here = (self.setting == setting) & (self.n == n) & (self.k == k) & (self.scheme == scheme)
        here &= (self.estimator == estimator) & (self.parameter == parameter)
        order = np.argsort(self.rep[here])
        return (self.estimate - self.truth)[here][order]


def read_errors(path: Path) -> Errors:
    """Read what `run` wrote."""
    columns = list(zip(*read_rows(path, HEADER)))
    if not columns:
        raise InputError(f"{path} has no rows: run the experiment first.")

    def numbers(column: tuple[str, ...], empty: float) -> np.ndarray:
        return np.array([float(cell) if cell else empty for cell in column])

    return Errors(
        *(
            numbers(column, 0.0).astype(int)
            if j in (1, 2, 6)
            else numbers(column, np.nan)
            if j in (7, 8, 9)
            else np.array(column)
            for j, column in enumerate(columns)
        )
    )
