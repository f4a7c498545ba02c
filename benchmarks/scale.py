"""Rows beyond memory and beyond one process: `python benchmarks/scale.py memory`, `python benchmarks/scale.py workers`.

`memory` fits a spatial chain with `--contexts` N and 20 reference points each (`un.fit`, a smooth χ, or `--anchored`),
once with all memory and once with `--memory`, each in a process of its own, and prints seconds, processor seconds, the
largest resident size and their ratio. Above two million rows the estimates must be equal to the last digit.

`workers` times passes of the additive engine with 1 and 2 workers of a `LocalCluster` (`--cores 16`: 1, 2, 4, 8, 16):
strong scaling (the same rows), weak scaling (as many rows for each worker), the overhead of a pass that computes
nothing, whole fits, and beside each the model of cost

    T(N, W, p) = L + G (g + 8 p² b) + ⌈G/W⌉ r c / e(W),    c = c₀ + c₁ q²,

G groups of r rows (`engine.parts.group_size`), L the latency of a pass, g the scheduler's time for a group, b that for
a byte of its sums (8 p² bytes), c the time of a row with q coefficients that are not zero, and e(W) the machine's own
efficiency: what W processes that share nothing achieve, measured beside it. L, g and b come from passes that compute
nothing with one worker, c₀ and c₁ from two models in one process without Dask; every pass with workers is a
prediction. The last lines say what the model gives for 100 workers and 10¹⁰ rows.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

TERMS = "s(step, k=10) + s(dcenter, k=15) + s(angle, bs='cc', k=12)"


# ---- memory ----


def chain(n: int) -> Any:
    import unnorm as un

    rng = np.random.default_rng(5)
    path = np.clip(np.cumsum(0.15 * rng.standard_normal((n + 1, 2)), axis=0) % 1.0, 0.001, 0.999)
    return un.transitions({"x": path[:, 0], "y": path[:, 1]}, y=["x", "y"])


def one_fit(contexts: int, memory: str | None, anchored: bool) -> dict[str, Any]:
    """In a process of its own."""
    import unnorm as un

    warnings.simplefilter("ignore")
    model, chi = un.Additive(TERMS, un.Box((0, 1), (0, 1))), None if anchored else un.Smooth("s(x_prev, y_prev, k=30)")
    objective = un.Logistic(un.Uniform(), per_point=20)
    un.fit(model, chain(3_000), objective, normaliser=chi, rng=1)  # loads what is compiled
    obs = chain(contexts)
    wall, cpu = time.perf_counter(), time.process_time()
    fit = un.fit(model, obs, objective, normaliser=chi, rng=1, memory=memory)
    assert fit.smooths is not None
    return {
        "seconds": time.perf_counter() - wall,
        "processor": time.process_time() - cpu,
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "beta": [float(value).hex() for value in fit.smooths.beta],
    }


def compare_memory(contexts: int, memory: str, anchored: bool) -> None:
    found = {}
    for allowed in (None, memory):
        command = [sys.executable, __file__, "one", "--contexts", str(contexts)]
        command += [] if allowed is None else ["--memory", allowed]
        command += ["--anchored"] if anchored else []
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found[allowed] = json.loads(out.splitlines()[-1])
        one = found[allowed]
        print(
            f"{contexts * 21:,} rows, memory {allowed or 'all'}: {one['seconds']:.1f} s, {one['processor']:.1f} s of "
            f"processor, {one['GB']:.2f} GB at most",
            flush=True,
        )
    whole, less = found[None], found[memory]
    print(f"ratio {less['seconds'] / whole['seconds']:.2f} (processor {less['processor'] / whole['processor']:.2f})")
    print("estimates equal to the last digit:", whole["beta"] == less["beta"])


# ---- workers ----

SMALL = "y ~ s(x, k=20) + s(z, k=20) + s(a, bs='cc', k=12)"
LARGE = "y ~ s(x, k=20) + s(z, k=20) + s(a, bs='cc', k=12) + s(u, k=20) + s(v, k=20) + s(w, k=12)"
WINDOW = 4.0  # seconds in which processes that share nothing are counted


@dataclass(frozen=True)
class Simulated:
    """A recipe: rows from a seed, so that only seeds travel."""

    seed: int
    rows: int

    def table(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        x, z, u, v, w = rng.random((5, self.rows))
        a = rng.uniform(-np.pi, np.pi, self.rows)
        eta = np.sin(6 * x) + z * z + 0.5 * np.cos(a) - 1.0 + 0.3 * u * u
        y = (rng.random(self.rows) < 1 / (1 + np.exp(-eta))).astype(float)
        return {"x": x, "z": z, "a": a, "u": u, "v": v, "w": w, "y": y}

    def make(self, plan: Any) -> Any:
        from unnorm.engine.gam_parts import met

        table = self.table()
        return met(plan, "binomial", table["y"], table, None, None)


def forms(rows: int, formula: str) -> Any:
    from unnorm.engine.plan import plan
    from unnorm.terms.parser import parse

    table = Simulated(0, 100_000).table()
    terms = parse(formula, table=True).build(table, periods={"a": 2 * np.pi})
    return plan(terms, table, all_rows=rows, constant=())


def recipes_of(rows: int) -> list[Simulated]:
    from unnorm.engine.parts import PART

    return [Simulated(i + 1, min(PART, rows - a)) for i, a in enumerate(range(0, rows, PART))]


def nothing(plan: Any, part: Any, i: int, size: int) -> tuple[np.ndarray]:
    return (np.zeros(size),)


def best(work: Callable[[], Any], reps: int) -> float:
    times = []
    for _ in range(reps):
        since = time.perf_counter()
        work()
        times.append(time.perf_counter() - since)
    return min(times)


def alone(formula: str, seconds: float) -> tuple[float, int]:
    """Seconds of a pass over a row, sharing nothing, while other processes do the same; and q."""
    from unnorm.engine.partition import PartitionedDesign, stands_for
    from unnorm.engine.parts import local_parts

    rows = 4 * 262_144
    design = PartitionedDesign(local_parts(forms(rows, formula), recipes_of(rows), np.inf, 1))  # pyright: ignore
    response, beta = stands_for(None), np.zeros(design.size)
    design.sweep(response, 0, beta)
    if _BARRIER:
        _BARRIER[0].wait()
    count, since = 0, time.perf_counter()
    while time.perf_counter() < since + seconds:
        design.sweep(response, 0, beta)
        count += 1
    return (time.perf_counter() - since) / (count * rows), design.nonzeros


_BARRIER: list[Any] = []


def _together(barrier: Any) -> None:
    _BARRIER.append(barrier)


def sharing_nothing(workers: int, formula: str) -> tuple[float, int]:
    """The mean of `alone` in so many processes at the same time."""
    context = get_context("spawn")
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_together, initargs=(context.Barrier(workers),)
    ) as pool:
        found = list(pool.map(alone, [formula] * workers, [WINDOW] * workers))
    return float(np.mean([c for c, _ in found])), found[0][1]


@dataclass(frozen=True)
class Cost:
    """The model: seconds of a pass."""

    L: float
    g: float
    b: float
    c0: float
    c1: float
    e: dict[int, float]

    def row(self, q: float) -> float:
        return self.c0 + self.c1 * q * q

    def overhead(self, groups: int, p: int) -> float:
        return self.L + groups * (self.g + 8.0 * p * p * self.b)

    def time(self, rows: float, workers: int, p: int, q: float) -> float:
        groups, each = grouped(rows)
        busiest = min(-(-groups // workers) * each, rows)
        return self.overhead(groups, p) + busiest * self.row(q) / self.e.get(workers, 1.0)


def grouped(rows: float) -> tuple[int, float]:
    """Groups, and the rows of each."""
    from unnorm.engine.parts import PART, group_size

    parts = int(-(-rows // PART))
    size = group_size(parts)
    return -(-parts // size), size * float(PART)


@dataclass(frozen=True)
class Timed:
    """What was measured of one design with so many workers."""

    rows: int
    workers: int
    formula: str
    p: int
    q: int
    make: float
    nothing: float  # a pass that computes nothing and returns one number
    sums: float  # and one that returns p² numbers
    sweep: float


def timed(client: Any, rows: int, workers: int, formula: str, reps: int) -> tuple[Timed, Any]:
    from unnorm.engine.dask_parts import dask_parts
    from unnorm.engine.partition import PartitionedDesign, stands_for

    since = time.perf_counter()
    parts = dask_parts(forms(rows, formula), recipes_of(rows), client)  # pyright: ignore[reportArgumentType]
    design, response = PartitionedDesign(parts), stands_for(None)
    parts.total(nothing, 1)
    made = time.perf_counter() - since
    p, beta = design.size, np.zeros(design.size)
    found = Timed(
        rows, workers, formula, p, design.nonzeros, made,
        best(lambda: parts.total(nothing, 1), reps), best(lambda: parts.total(nothing, p * p), reps),
        best(lambda: design.sweep(response, 0, beta), reps),
    )  # fmt: skip
    return found, design


def whole_fit(design: Any) -> tuple[float, dict[str, int]]:
    """Seconds of a whole REML fit of a design, its passes counted."""
    from unnorm.engine import partition
    from unnorm.engine.core import smooth_fit

    counts: dict[str, int] = {}
    whole = partition.PartitionedDesign

    def counted(name: str) -> Any:
        own = getattr(whole, name)

        def call(self: Any, *given: Any, **more: Any) -> Any:
            counts[name] = counts.get(name, 0) + (self is design)
            return own(self, *given, **more)

        return own, call

    wrapped = {name: counted(name) for name in ("sweep", "scores", "leverage")}
    for name, (_, call) in wrapped.items():
        setattr(whole, name, call)
    try:
        since = time.perf_counter()
        smooth_fit(design, None, "binomial", known=design.sides("binomial", None))
        return time.perf_counter() - since, counts
    finally:
        for name, (own, _) in wrapped.items():
            setattr(whole, name, own)


def measured(counts: list[int], sizes: list[int], weak: int, fit: int, reps: int) -> tuple[list[Timed], list[Any]]:
    """Passes of every size with every number of workers, and whole fits of one size."""
    from distributed import Client, LocalCluster

    found: list[Timed] = []
    fits: list[Any] = []
    for workers in counts:
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL,
                memory_limit=0,
            ) as cluster,
            Client(cluster) as client,
        ):  # fmt: skip
            for rows in dict.fromkeys((*sizes, weak * workers, fit)):
                one, design = timed(client, rows, workers, SMALL, reps)
                if rows in sizes or rows == weak * workers:
                    found.append(one)
                if rows == fit:
                    fits.append((one, *whole_fit(design)))
                del design
            found.append(timed(client, sizes[min(1, len(sizes) - 1)], workers, LARGE, reps)[0])
        print(f"  {workers} workers measured", file=sys.stderr, flush=True)
    return found, fits


def model_of(found: list[Timed], small: tuple[float, int], large: tuple[float, int], e: dict[int, float]) -> Cost:
    """L, g and b from passes of one worker that compute nothing, c₀ and c₁ from two models without Dask."""
    single = [one for one in found if one.workers == 1]
    X = np.array([[1.0, grouped(one.rows)[0]] for one in single])
    y = np.array([one.nothing for one in single])
    L, g = np.maximum(np.linalg.lstsq(X / y[:, None], np.ones(len(y)), rcond=None)[0], 0.0)
    size = np.array([grouped(one.rows)[0] * 8.0 * one.p**2 for one in single])
    b = max(float(np.sum([one.sums - one.nothing for one in single]) / size.sum()), 0.0)
    (c_small, q_small), (c_large, q_large) = small, large
    c1 = max((c_large - c_small) / (q_large**2 - q_small**2), 0.0)
    return Cost(float(L), float(g), b, c_small - c1 * q_small**2, c1, e)


def scaling(cores: int, sizes: list[int], weak: int, fit: int, reps: int) -> None:
    counts = [w for w in (1, 2, 4, 8, 16, 32, 64) if w <= cores]
    small, large = sharing_nothing(1, SMALL), sharing_nothing(1, LARGE)
    e = {w: 1.0 if w == 1 else small[0] / sharing_nothing(w, SMALL)[0] for w in counts}
    found, fits = measured(counts, sizes, weak, fit, reps)
    cost = model_of(found, small, large, e)
    print("processes that share nothing, times one: " + ", ".join(f"{w}: {w * e[w]:.2f}" for w in counts))
    print(
        f"L = {1e3 * cost.L:.1f} ms a pass, g = {1e3 * cost.g:.2f} ms a group, b = {1e9 * cost.b:.2f} ns a byte, "
        f"c = {1e9 * cost.c0:.1f} + {1e9 * cost.c1:.3f} q² ns a row"
    )
    ratios = []
    for title, some in (
        ("strong scaling: the same rows", [one for one in found if one.rows in sizes and one.formula == SMALL]),
        (
            f"weak scaling: {weak:,} rows for each worker",
            [o for o in found if o.rows == weak * o.workers and o.formula == SMALL],
        ),
        ("another model, with twice the terms", [one for one in found if one.formula == LARGE]),
    ):
        print(f"\n{title}\n       rows workers   p  make, s  nothing, ms  overhead, ms  pass, s  model, s  ratio")
        for one in sorted(some, key=lambda one: (one.rows, one.workers)):
            groups = grouped(one.rows)[0]
            model = cost.time(one.rows, one.workers, one.p, one.q)
            ratios.append(model / one.sweep)
            print(
                f"{one.rows:>11,} {one.workers:>7} {one.p:>3} {one.make:>8.2f} {1e3 * one.nothing:>12.1f} "
                f"{1e3 * cost.overhead(groups, one.p):>13.1f} {one.sweep:>8.3f} {model:>9.3f} {ratios[-1]:>6.2f}"
            )
    print("\nwhole fits (REML): seconds, passes over all rows, the model's seconds for these passes")
    for one, seconds, passes in fits:
        number = sum(passes.values())
        said = number * cost.time(one.rows, one.workers, one.p, one.q)
        print(f"{one.rows:>11,} {one.workers:>7} {one.p:>3} {seconds:>8.2f} s {passes} model {said:.2f} s")
    off = np.abs(np.array(ratios) - 1.0)
    print(f"\nmodel / measured: {min(ratios):.2f} to {max(ratios):.2f}; within 25 %: {np.mean(off <= 0.25):.0%}")
    _far(cost, found[0].p, found[0].q)


def _far(cost: Cost, p: int, q: int) -> None:
    """What the model gives for 100 workers on cores of their own and 10¹⁰ rows."""
    rows, workers = 1e10, 100
    groups, each = grouped(rows)
    total = cost.time(rows, workers, p, q)
    print(
        f"100 workers on cores of their own, 10¹⁰ rows, p = {p}: {total:.2f} s a pass, of which {groups:,} groups "
        f"at the scheduler {cost.overhead(groups, p):.2f} s and rows {total - cost.overhead(groups, p):.2f} s "
        f"({each:,.0f} rows a group); {groups * 8 * p * p / 1e6:.0f} MB of sums a pass; about "
        f"{60 * rows / workers / 1e9:.0f} GB a worker in compact form; 15 passes {15 * total:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("memory", "workers", "one"))
    parser.add_argument("--contexts", type=float, default=1e5)
    parser.add_argument("--memory")
    parser.add_argument("--anchored", action="store_true", help="constants that follow f, in place of a smooth χ")
    parser.add_argument("--rows", default="1e6,3e6,1e7,3e7", help="sizes of strong scaling")
    parser.add_argument("--weak", type=float, help="rows for each worker in weak scaling; default: so that the largest "
                        "number of workers has the largest size")  # fmt: skip
    parser.add_argument("--fit", type=float, default=3e6, help="rows of the whole fits")
    parser.add_argument("--cores", type=int, default=2, help="the largest number of workers")
    parser.add_argument("--reps", type=int, default=5)
    given = parser.parse_args()
    if given.what == "one":
        print(json.dumps(one_fit(int(given.contexts), given.memory, given.anchored)))
    elif given.what == "memory":
        compare_memory(int(given.contexts), given.memory or "2GB", given.anchored)
    else:
        sizes = [int(float(one)) for one in given.rows.split(",")]
        weak = int(given.weak or sizes[-1] / given.cores)
        scaling(given.cores, sizes, weak, int(given.fit), given.reps)


if __name__ == "__main__":
    main()
