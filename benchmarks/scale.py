"""Rows beyond memory and beyond one process: `python benchmarks/scale.py memory`, `python benchmarks/scale.py workers`.

`memory` fits a spatial chain with `--contexts` N and 20 reference points each (`un.fit`, a smooth χ), once with all
memory and once with `--memory`, each in a process of its own, and prints seconds, processor seconds, the largest
resident size and their ratio. The estimates must be equal to the last digit.

`workers` times one pass of the additive engine over `--rows` rows with 1 and 2 workers of a `LocalCluster`: strong
scaling (the same rows), weak scaling (as many rows for each worker), the overhead of a pass that computes nothing, and
the model of cost

    T(N, W) = L + G g + N c / (W e(W)),    G = N / 2,097,152 groups of parts,

L the latency of a pass, g the scheduler's time for a group (its sums are 8 p² bytes), c the time of a row (which grows
with the pairs of terms), and e(W) the machine's own efficiency: what W processes that share nothing achieve, measured
beside it. L, g and c come from the smallest case with one worker; the other cases are predictions. The last line says
what the model gives for 100 workers and 10¹⁰ rows.
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
from typing import Any

import numpy as np

TERMS = "s(step, k=10) + s(dcenter, k=15) + s(angle, bs='cc', k=12)"
FORMULA = "y ~ s(x, k=20) + s(z, k=20) + s(a, bs='cc', k=12)"


# ---- memory ----


def chain(n: int) -> Any:
    import unnorm as un

    rng = np.random.default_rng(5)
    path = np.clip(np.cumsum(0.15 * rng.standard_normal((n + 1, 2)), axis=0) % 1.0, 0.001, 0.999)
    return un.transitions({"x": path[:, 0], "y": path[:, 1]}, y=["x", "y"])


def one_fit(contexts: int, memory: str | None) -> dict[str, Any]:
    """In a process of its own."""
    import unnorm as un

    warnings.simplefilter("ignore")
    model, chi = un.Additive(TERMS, un.Box((0, 1), (0, 1))), un.Smooth("s(x_prev, y_prev, k=30)")
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


def compare_memory(contexts: int, memory: str) -> None:
    found = {}
    for allowed in (None, memory):
        command = [sys.executable, __file__, "one", "--contexts", str(contexts)]
        command += [] if allowed is None else ["--memory", allowed]
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


@dataclass(frozen=True)
class Simulated:
    """A recipe: rows from a seed, so that only seeds travel."""

    seed: int
    rows: int

    def table(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        x, z, a = rng.random(self.rows), rng.random(self.rows), rng.uniform(-np.pi, np.pi, self.rows)
        eta = np.sin(6 * x) + z * z + 0.5 * np.cos(a) - 1.0
        return {"x": x, "z": z, "a": a, "y": (rng.random(self.rows) < 1 / (1 + np.exp(-eta))).astype(float)}

    def make(self, plan: Any) -> Any:
        from unnorm.engine.gam_parts import met

        table = self.table()
        return met(plan, "binomial", table["y"], table, None, None)


def forms(rows: int) -> Any:
    from unnorm.engine.plan import plan
    from unnorm.terms.parser import parse

    table = Simulated(0, 300_000).table()
    terms = parse(FORMULA, table=True).build(table, periods={"a": 2 * np.pi})
    return plan(terms, table, all_rows=rows, constant=())


def nothing(plan: Any, part: Any, i: int) -> tuple[float]:
    return (0.0,)


def best(work: Callable[[], Any], reps: int) -> float:
    times = []
    for _ in range(reps):
        since = time.perf_counter()
        work()
        times.append(time.perf_counter() - since)
    return min(times)


def alone(seconds: float) -> int:
    """Passes over one part in so many seconds, sharing nothing."""
    from unnorm.engine.partition import PartitionedDesign, stands_for
    from unnorm.engine.parts import local_parts

    parts = local_parts(forms(262_144), [Simulated(1, 262_144)], np.inf, 1)
    design, rows = PartitionedDesign(parts), stands_for(None)
    design.sweep(rows, 0, np.zeros(design.size))
    count, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        design.sweep(rows, 0, np.zeros(design.size))
        count += 1
    return count


def efficiency(workers: int) -> float:
    """What W processes achieve, of W times one."""
    with ProcessPoolExecutor(1) as pool:
        single = pool.submit(alone, 3.0).result()
    with ProcessPoolExecutor(workers) as pool:
        return sum(pool.map(alone, [3.0] * workers)) / (workers * single)


def timed(client: Any, rows: int, reps: int) -> dict[str, float]:
    from unnorm.engine.dask_parts import dask_parts
    from unnorm.engine.partition import PartitionedDesign, stands_for
    from unnorm.engine.parts import GROUP, PART

    plan = forms(rows)
    recipes = [Simulated(i + 1, min(PART, rows - a)) for i, a in enumerate(range(0, rows, PART))]
    since = time.perf_counter()
    parts = dask_parts(plan, recipes, client)  # pyright: ignore[reportArgumentType]
    design, response = PartitionedDesign(parts), stands_for(None)
    parts.total(nothing)
    made = time.perf_counter() - since
    beta = np.zeros(design.size)
    return {
        "make": made,
        "nothing": best(lambda: parts.total(nothing), reps),
        "pass": best(lambda: design.sweep(response, 0, beta), reps),
        "groups": -(-len(recipes) // GROUP),
    }


def scaling(sizes: list[int], reps: int) -> None:
    from distributed import Client, LocalCluster

    gain = {1: 1.0, 2: efficiency(2)}
    print(f"two processes that share nothing: {2 * gain[2]:.2f} times one")
    found: dict[tuple[int, int], dict[str, float]] = {}
    for workers in (1, 2):
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
            ) as cluster,
            Client(cluster) as client,
        ):
            for rows in sizes:
                found[rows, workers] = timed(client, rows, reps)
    first, last = found[sizes[0], 1], found[sizes[-1], 1]
    groups = max(last["groups"] - first["groups"], 1)
    g = max((last["nothing"] - first["nothing"]) / groups, 0.0)
    latency = max(first["nothing"] - g * first["groups"], 0.0)
    c = (first["pass"] - first["nothing"]) / sizes[0]
    print(f"L = {1e3 * latency:.1f} ms, g = {1e3 * g:.2f} ms a group, c = {1e9 * c:.1f} ns a row")
    print("      rows  workers   make, s   pass, s   nothing, s   model, s   off")
    for (rows, workers), one in sorted(found.items()):
        model = latency + g * one["groups"] + rows * c / (workers * gain[workers])
        print(
            f"{rows:>10,} {workers:>8} {one['make']:>9.2f} {one['pass']:>9.3f} {one['nothing']:>12.3f} {model:>10.3f} "
            f"{100 * (model / one['pass'] - 1):>4.0f} %"
        )
    rows, workers = 1e10, 100
    total = latency + g * rows / 2_097_152 + rows * c / workers
    print(
        f"100 workers on cores of their own, 10¹⁰ rows: {total:.1f} s a pass, of which the scheduler "
        f"{g * rows / 2_097_152:.1f}; {60 * rows / workers / 1e9:.0f} GB a worker held"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("memory", "workers", "one"))
    parser.add_argument("--contexts", type=float, default=1e5)
    parser.add_argument("--memory")
    parser.add_argument("--rows", default="1e6,3e6,1e7,3e7")
    parser.add_argument("--reps", type=int, default=5)
    given = parser.parse_args()
    if given.what == "one":
        print(json.dumps(one_fit(int(given.contexts), given.memory)))
    elif given.what == "memory":
        compare_memory(int(given.contexts), given.memory or "2GB")
    else:
        scaling([int(float(one)) for one in given.rows.split(",")], given.reps)


if __name__ == "__main__":
    main()
