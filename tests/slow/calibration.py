"""Over repetitions: se / sd, coverage of intervals, size of tests, se_reference / spread over redraws of the points.

A `Case` is a law, a variant of its data, a recipe for the fit, and maybe a test. `run(case)` simulates data sets,
fits each, and compares what the fits claim with what happened. Data sets are the same for every recipe of a law and
variant, whatever the number of processes: each block of `BLOCK` repetitions has its own seed.

Judged by (R repetitions; a case that looks wrong is repeated, see `run`):

- coverage of 95 % intervals between 93 and 97 %, size of tests at 5 % between 3 and 7 %, if R ≥ 1,000; with fewer,
  within three binomial errors of the nominal value, which are printed in any case;
- se / sd between .9 and 1.1, se_reference / spread between .8 and 1.25; with R < 1,000, give or take three of its own
  Monte Carlo errors;
- every fit converges, without warning; se² = se_sampling² + se_reference².

By hand, every case or those whose name holds all the given words:

    python tests/slow/calibration.py --reps 200 --jobs 1 [words …]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing import get_context
from typing import Any, final

import numpy as np
from law import Law, Variant, is_clustered
from laws import LAWS
from recipes import arguments

import unnorm as un

REPS = int(os.environ.get("UNNORM_REPS", "1000"))
MORE = 4  # times as many repetitions for a case that looks wrong
DATA_SETS, BLOCK = 4, 50  # data sets held fixed while points are redrawn; repetitions at a time
SEED = 20
TESTED = 2  # times as many observations for tests of two parameters at once, whose sizes converge more slowly
LEVEL = 0.05
ENOUGH = 1000  # repetitions from which the stated bands hold
COVER, SIZE, RATIO, SPREAD = (0.93, 0.97), (0.03, 0.07), (0.9, 1.1), (0.8, 1.25)
FEW_COVER = (0.925, 0.975)  # with 12 clusters, where no correction is exact: z covers 89–93 %, t with 11 df 92–97 %


BITS = ("ising", "words")  # laws of vectors of bits
Names = tuple[str, ...] | None


@final
@dataclass(frozen=True)
class Case:
    """What is repeated; four words, so that it travels to another process."""

    law: str
    recipe: str
    variant: Variant = "plain"
    test: str | None = None  # "likelihood ratio" or "wald" of the null statistics; "smooth", of the null curve

    def __str__(self) -> str:
        words = (self.law, self.recipe, self.variant if self.variant != "plain" else "", self.test or "")
        return ", ".join(word for word in words if word)

    @property
    def known(self) -> Law:
        return LAWS[self.law]

    def data(self, block: int) -> list[un.Observations]:
        """The data sets of one block."""
        key = zlib.crc32(f"{self.law}/{self.variant}".encode())
        rng = np.random.default_rng([SEED, key, block])
        n = self.known.size(self.variant) * (1 if self.test is None else TESTED)
        return self.known.samples(n, rng, BLOCK, self.variant)


def suited(cases: Iterable[Case]) -> list[Case]:
    """Each once; on bits, which lattices do not suit, with Sobol nets instead."""
    found = (replace(c, recipe=c.recipe.replace("lattice", "sobol")) if c.law in BITS else c for c in cases)
    return list(dict.fromkeys(found))


Fitted = Callable[[Case, un.Observations, np.random.Generator], dict[str, np.ndarray]]


@final
@dataclass(frozen=True)
class Runs:
    """What R fits claim: name → (R, p); `p_value` (R,); failures as sentences; seconds for each fit."""

    numbers: Mapping[str, np.ndarray]
    failures: tuple[str, ...]
    seconds: np.ndarray

    @property
    def reps(self) -> int:
        return len(self.seconds)

    @staticmethod
    def joined(parts: list[Runs]) -> Runs:
        names = dict.fromkeys(name for part in parts for name in part.numbers)
        filled = [part.numbers for part in parts if part.numbers]
        return Runs(
            {name: np.concatenate([numbers[name] for numbers in filled]) for name in names},
            tuple(sentence for part in parts for sentence in part.failures),
            np.concatenate([part.seconds for part in parts]),
        )


# --- one fit ----------------------------------------------------------------------------------------------------------


def claims(fit: un.Fit, clustered: bool) -> dict[str, np.ndarray]:
    """Estimates, errors and limits of the parameters, as the fit's own table gives them."""
    table = fit.tidy()
    found = {name: np.array(table[name], dtype=float) for name in ("estimate", "se", "lower", "upper")}
    for part in ("se_sampling", "se_reference"):
        if part in table:
            found[part] = np.array(table[part], dtype=float)
    if clustered:
        table = fit.tidy(robust=True)
        found |= {f"{name}_robust": np.array(table[name], dtype=float) for name in ("se", "lower", "upper")}
    return found


def one_fit(case: Case, obs: un.Observations, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Fit once; an estimate that did not converge is an error."""
    law, clustered = case.known, is_clustered(case.variant)

    def fitted(model: Any = None) -> un.Fit:
        given = arguments(law, case.recipe, case.variant)
        fit = un.fit(obs=obs, rng=rng, **(given if model is None else {**given, "model": model}))
        if not fit.converged:
            raise ArithmeticError(f"did not converge: {fit.reason}")
        return fit

    if case.test is None:
        return claims(fitted(), clustered)
    if case.test == "smooth":
        table = fitted(law.curved).smooths.table
        return {"p_value": np.array(table["p"])[np.array(table["term"]) == "s(c)"][0]}
    larger = fitted(law.larger)
    wald = case.test == "wald"
    test = larger.wald(law.null_names, robust=clustered) if wald else larger.likelihood_ratio(fitted())
    assert test.df == len(law.null_names)
    return {"p_value": np.array(test.p_value)}


def attempt(work: Callable[[], dict[str, np.ndarray]]) -> tuple[dict[str, np.ndarray] | None, str | None, float]:
    """Numbers or a sentence, and the processor's seconds taken; warnings are failures."""
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # that a χ of few functions may be off is said of some correct fits too, and has tests of its own
            warnings.filterwarnings("ignore", "χ̂ and −log", un.errors.UnnormWarning)
            warnings.filterwarnings("ignore", "The constants follow", un.errors.UnnormWarning)  # one in 1,000: the size
            warnings.filterwarnings("ignore", ".*edf .* is at its limit", un.errors.UnnormWarning)  # and so is this,
            warnings.filterwarnings("ignore", "The scores of the reference", un.errors.UnnormWarning)  # two in 1,000
            found, failure = work(), None
    except Exception as error:
        found, failure = None, f"{type(error).__name__}: {error}"
    return found, failure, time.process_time() - start


def collected(works: Iterator[Callable[[], dict[str, np.ndarray]]]) -> Runs:
    rows, failures, seconds = [], [], []
    for work in works:
        found, failure, took = attempt(work)
        seconds.append(took)
        if found is not None:
            rows.append(found)
        if failure is not None:
            failures.append(failure)
    numbers = {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())}
    return Runs(numbers, tuple(failures), np.array(seconds))


def block_of(case: Case, block: int, size: int) -> Runs:
    """The first `size` repetitions of one block."""
    data = case.data(block)[:size]
    seeds = ([SEED, block, i] for i in range(size))
    return collected(
        (lambda obs=obs, seed=seed: one_fit(case, obs, np.random.default_rng(seed))) for obs, seed in zip(data, seeds)
    )


def redraws_of(case: Case, fitted: Fitted, data_set: int, size: int) -> Runs:
    """One data set, `size` draws of its reference points."""
    obs = case.data(0)[data_set]
    return collected(
        (lambda seed=seed: fitted(case, obs, np.random.default_rng([SEED, data_set, seed]))) for seed in range(size)
    )


# --- processes --------------------------------------------------------------------------------------------------------

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def jobs() -> int:
    """Processes: UNNORM_JOBS, or the cores, shared with pytest-xdist's other workers."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return int(os.environ.get("UNNORM_JOBS", max(1, (os.cpu_count() or 1) // workers)))


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@cache
def pool(count: int) -> ProcessPoolExecutor:
    """Processes that live as long as this one, so that models are compiled once in each; one thread each."""
    made = ProcessPoolExecutor(count, mp_context=get_context("spawn"))
    with _environment(ONE_THREAD):
        for started in [made.submit(time.sleep, 0.5) for _ in range(count)]:
            started.result()
    return made


def each(work: Callable[..., Any], *lists: Iterable[Any]) -> list[Any]:
    """`work` of the lists' items, in their order; in this process if there is one job only."""
    count = jobs()
    return list(map(work, *lists) if count == 1 else pool(count).map(work, *lists))


def spread_out(work: Callable[..., Runs], *lists: list[Any]) -> Runs:
    """`work` over the lists' items, joined in their order."""
    return Runs.joined(each(work, *lists))


def run(case: Case, reps: int | None = None) -> Report:
    """R repetitions of a case, judged; and MORE times as many in all if a check is outside its band, but not by far.

    A share of .95 is outside 93–97 % once in 270 sets of 1,000 repetitions, and there are hundreds of shares: such a
    case fails if it is outside after 4,000 as well, the first 1,000 included.
    """
    reps = REPS if reps is None else reps
    runs = _blocks(case, 0, reps)
    report = judged(case, runs)
    if report.wrong and not report.failures and reps >= ENOUGH and all(check.near for check in report.checks):
        report = judged(case, Runs.joined([runs, _blocks(case, reps, MORE * reps)]))
    return report


def _blocks(case: Case, begin: int, end: int) -> Runs:
    """Repetitions begin … end − 1, `begin` a multiple of BLOCK."""
    starts = range(begin, end, BLOCK)
    sizes = [min(BLOCK, end - start) for start in starts]
    return spread_out(block_of, [case] * len(sizes), [start // BLOCK for start in starts], sizes)


# --- judging ----------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Check:
    """A measured number, its Monte Carlo error, and the band that it must lie in."""

    what: str
    nominal: float
    measured: float
    error: float
    band: tuple[float, float]
    binding: bool = True  # False: for information

    @property
    def passed(self) -> bool:
        return not self.binding or self.band[0] <= self.measured <= self.band[1]

    @property
    def near(self) -> bool:
        """Whether it lies in the band give or take three of its errors."""
        low, high = self.band
        return not self.binding or low - 3 * self.error <= self.measured <= high + 3 * self.error

    def __str__(self) -> str:
        low, high = self.band
        judged = f"nominal {self.nominal:.3g} ± {3 * self.error:.3f} (3 errors), band {low:.3f}–{high:.3f}"
        text = f"{self.what:<34} {self.measured:7.4f}   {judged if self.binding else 'for information'}"
        return text if self.passed else f"{text}  ← outside"


@final
@dataclass(frozen=True)
class Report:
    """The checks of one case."""

    case: str
    reps: int
    milliseconds: float
    checks: tuple[Check, ...]
    failures: tuple[str, ...] = field(default=())

    @property
    def wrong(self) -> list[str]:
        out = [str(check) for check in self.checks if not check.passed]
        if self.failures:
            out.append(f"{len(self.failures)} of {self.reps} fits failed, the first: {self.failures[0]}")
        return out

    def __str__(self) -> str:
        head = f"{self.case}: {self.reps} repetitions, {self.milliseconds:.1f} ms each"
        failed = [f"FAILED {len(self.failures)}: {text}" for text in dict.fromkeys(self.failures)][:3]
        return "\n  ".join([head, *map(str, self.checks), *failed])


def share(what: str, hits: np.ndarray, nominal: float, band: tuple[float, float]) -> Check:
    """A share of repetitions: the stated band, or with few of them three binomial errors either way."""
    error = float(np.sqrt(nominal * (1 - nominal) / len(hits)))
    if len(hits) < ENOUGH:
        band = (nominal - 3 * error, nominal + 3 * error)
    return Check(what, nominal, float(np.mean(hits)), error, band)


def ratio(what: str, se: np.ndarray, away: np.ndarray) -> Check:
    """Mean se over the standard deviation; `away` (R,) are the estimates less their mean."""
    known = float(np.var(se) / np.mean(se) ** 2)
    return _over(what, float(np.mean(se)), known, away**2, 1, RATIO)


def spread_ratio(what: str, se: np.ndarray, away: np.ndarray) -> Check:
    """Root mean square of se_reference over the spread; of a curve (R, points), both averaged along it.

    Not the mean: where the points are not IID, se² comes from a few redraws, which know a variance but not its root.
    `away` are the estimates less their data set's mean.
    """
    claims, squares = ((values**2).reshape(len(values), -1).mean(axis=1) for values in (se, away))
    known = float(np.var(claims) / np.mean(claims) ** 2 / 4)
    return _over(what, float(np.sqrt(np.mean(claims))), known, squares, DATA_SETS, SPREAD)


def _over(what: str, claimed: float, known: float, squares: np.ndarray, means: int, band: tuple[float, float]) -> Check:
    """claimed / √(mean square), and its Monte Carlo error by the delta method; `known` is R var(claimed)/claimed²."""
    R = len(squares)
    value = claimed / float(np.sqrt(squares.sum() / (R - means)))
    error = value * float(np.sqrt((np.var(squares) / np.mean(squares) ** 2 / 4 + known) / R))
    if R < ENOUGH:
        band = (band[0] - 3 * error, band[1] + 3 * error)
    return Check(what, 1.0, value, error, band)


def judged(case: Case, runs: Runs) -> Report:
    """Every claim against what happened."""
    found, checks = runs.numbers, []
    if "p_value" in found:
        checks.append(share("size at 5 %", found["p_value"] < LEVEL, LEVEL, SIZE))
    if "estimate" in found:
        for j, name in enumerate(case.known.names):
            checks += _parameter(case, found, j, name)
        checks += _parts(found)
    took = float(np.median(runs.seconds) * 1e3)
    return Report(str(case), runs.reps, took, tuple(checks), runs.failures)


def _parameter(case: Case, found: Mapping[str, np.ndarray], j: int, name: str) -> list[Check]:
    suffix = "_robust" if is_clustered(case.variant) else ""
    few, truth, estimate = case.variant == "few clusters", case.known.truth[j], found["estimate"][:, j]
    away = estimate - estimate.mean()
    bias = float((estimate.mean() - truth) / away.std())
    covered = (found[f"lower{suffix}"][:, j] <= truth) & (truth <= found[f"upper{suffix}"][:, j])
    check = ratio(f"{name}: se{suffix} / sd", found[f"se{suffix}"][:, j], away)
    checks = [
        replace(check, binding=not few),  # of few clusters, the intervals must know that it is noisy
        share(f"{name}: cover{suffix}", covered, 1 - LEVEL, FEW_COVER if few else COVER),
        Check(f"{name}: bias / sd", 0.0, bias, len(away) ** -0.5, (0.0, 0.0), binding=False),
    ]
    if suffix:
        checks.append(replace(ratio(f"{name}: naive se / sd", found["se"][:, j], away), binding=False))
    return checks


def _parts(found: Mapping[str, np.ndarray]) -> list[Check]:
    """se² = se_sampling² + se_reference², the largest relative difference."""
    if "se_reference" not in found:
        return []
    total = found["se"] ** 2
    off = np.abs(total - found["se_sampling"] ** 2 - found["se_reference"] ** 2) / total
    return [Check("se² against its parts", 0.0, float(off.max()), 0.0, (0.0, 1e-6))]


def reference_report(case: Case, reps: int | None = None, fitted: Fitted = one_fit, names: Names = None) -> Report:
    """se_reference against the spread of the estimates over redraws of the points, `DATA_SETS` data sets held fixed."""
    each = (REPS if reps is None else reps) // DATA_SETS
    work = list(range(DATA_SETS))
    runs = spread_out(redraws_of, [case] * DATA_SETS, [fitted] * DATA_SETS, work, [each] * DATA_SETS)
    checks = []
    if not runs.failures:
        estimate, se = (runs.numbers[name] for name in ("estimate", "se_reference"))
        by_set = estimate.reshape(DATA_SETS, each, *estimate.shape[1:])
        away = (by_set - by_set.mean(axis=1, keepdims=True)).reshape(estimate.shape)
        for j, name in enumerate(case.known.names if names is None else names):
            checks.append(spread_ratio(f"{name}: se_reference / spread", se[:, j], away[:, j]))
    return Report(f"{case}, redraws", runs.reps, float(np.median(runs.seconds) * 1e3), tuple(checks), runs.failures)


# --- by hand ----------------------------------------------------------------------------------------------------------


def main() -> None:
    from test_reference_error import REPORTS
    from test_sizes import CASES as SIZES
    from test_standard_errors import CASES

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*", help="of a case's name: those that hold them all")
    parser.add_argument("--reps", type=int, default=REPS)
    parser.add_argument("--jobs", type=int, default=jobs())
    given = parser.parse_args()
    os.environ["UNNORM_JOBS"] = str(given.jobs)
    works: dict[str, Callable[[], Report]] = {str(case): (lambda case=case: run(case, given.reps)) for case in CASES}
    works |= {str(case): (lambda case=case: run(case, given.reps)) for case in SIZES}
    works |= {f"{name}, redraws": (lambda work=work: work(given.reps)) for name, work in REPORTS.items()}
    chosen = {name: work for name, work in works.items() if all(word in name for word in given.words)}
    wrong = []
    for name, work in chosen.items():
        start = time.perf_counter()
        report = work()
        wrong += [f"{name}: {sentence}" for sentence in report.wrong]
        print(f"{report}\n  ({time.perf_counter() - start:.1f} s)", flush=True)
    print(f"\n{len(wrong)} checks failed in {len(chosen)} cases")
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    from calibration import main as run_by_name  # processes find what they are sent under this module's own name

    run_by_name()
