"""The additive engine side by side with mgcv: `python benchmarks/engine.py`, the four cases and then the regimes
(`--quick`: the cases alone, without gam and bam's by=subject). What is asked of a ratio stands behind it.

Four cases on ../shared/bench (or simulated chains where that is absent): (1) one subject, (2) all subjects pooled,
(3) each subject by itself, (4) by=subject on every term. R and unnorm take turns in one process each; what is printed
are medians and their ratio. `--cold` times whole processes, from the shell's start to the written result; `--cold
--empty` the first fit of an installation and `unnorm demo`, with an empty compilation cache and with a filled one.
`--scale` goes to 10⁷ rows and reports memory; `--regimes` makes those alone: many smooths, wide smooths and many levels
(`--only "re 400"`: those whose name contains it; `--patience 600`: seconds after which R is stopped, and the ratio is a
bound).
`--levels` shows how time and memory grow with the number of levels. `--cores` (no R)
fits 10⁷ rows (or `--rows N`) on 1, 2, 4, … cores, and prints beside the gain that of a bare scatter-add loop.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
DATA = HERE.parent.parent / "shared" / "bench"
FORMULA = "cls ~ s(delta, k=10) + s(dcenter, k=40) + s(px, py, k=40) + s(angle, bs='cc', k=20)"
BY = (
    "cls ~ s(delta, k=10, by=subject) + s(dcenter, k=40, by=subject) + s(px, py, k=40, by=subject)"
    " + s(angle, bs='cc', k=20, by=subject)"
)
KNOTS = {"angle": (-np.pi, np.pi)}
COLUMNS = ("subject", "cls", "delta", "dcenter", "angle", "px", "py")
CASES = {"bam": "1. one subject", "pooled": "2. pooled", "each": "3. subjects one by one", "by": "4. by=subject"}
ASKED = {  # the ratio to bam(discrete=TRUE, nthreads=2) that a line is to reach
    "1. one subject (": 15, "2. pooled (": 30, "3. subjects one by one (": 20, "4. by=subject": 400,
    "15 smooths": 10, "6 smooths": 10, "s(x,z,k=200)": 10, "te 7x7x7": 10,
    "re 400": 10, "re 5,000": 10, "fs 200": 20, "   its summary()": 2,
}  # fmt: skip


# ---- data ----


def chains() -> list[np.ndarray]:
    """Fixations (m, 2) of each subject, as measured or simulated."""
    path = DATA / "eye_fixations.csv"
    if path.exists():
        table = np.genfromtxt(path, delimiter=",", names=True)
        return [
            np.stack([rows["x"], rows["y"]], axis=1)
            for s in np.unique(table["subject"])
            if (rows := table[table["subject"] == s]).size
        ]
    rng = np.random.default_rng(0)
    out = []
    for m in np.linspace(600, 2000, 14).astype(int):
        at = np.zeros((m, 2))
        for t in range(1, m):
            while True:  # short horizontal steps, drawn to the centre
                new = 0.85 * at[t - 1] + rng.normal(size=2) * (4.0, 2.5)
                if abs(new[0]) < 10 and abs(new[1]) < 7.5:
                    break
            at[t] = new
        out.append(at)
    return out


def rows_of(chain: np.ndarray, subject: float, rng: np.random.Generator, k: int = 20) -> dict[str, np.ndarray]:
    """Logistic rows: each transition and k uniform reference points."""
    before, m = chain[:-1], len(chain) - 1
    x, y = rng.uniform(-10, 10, (m, k + 1)), rng.uniform(-7.5, 7.5, (m, k + 1))
    x[:, 0], y[:, 0] = chain[1:, 0], chain[1:, 1]
    px, py = np.repeat(before[:, 0], k + 1), np.repeat(before[:, 1], k + 1)
    x, y = x.ravel(), y.ravel()
    cls = np.zeros((m, k + 1))
    cls[:, 0] = 1
    values = (
        np.full(x.size, subject),
        cls.ravel(),
        np.hypot(x - px, y - py),
        np.hypot(x, y),
        np.arctan2(y - py, x - px),
        px,
        py,
    )
    return dict(zip(COLUMNS, values))


def pooled() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    parts = [rows_of(chain, float(s + 1), rng) for s, chain in enumerate(chains())]
    return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}


def one_subject() -> dict[str, np.ndarray]:
    path = DATA / "eye_rows_subject10.csv.gz"
    if path.exists():
        table = np.genfromtxt(path, delimiter=",", names=True)
        return {name: np.ascontiguousarray(table[name]) for name in COLUMNS}
    return rows_of(chains()[9], 10.0, np.random.default_rng(1))


def write(table: dict[str, np.ndarray], path: Path) -> None:
    np.stack([table[name] for name in COLUMNS]).tofile(path)  # column by column, as R reads it


def read(path: Path) -> dict[str, np.ndarray]:
    return dict(zip(COLUMNS, np.fromfile(path).reshape(len(COLUMNS), -1)))


# ---- the two sides ----


class R:
    """An R process that waits."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            ["Rscript", str(HERE / "engine.R"), str(path), ",".join(COLUMNS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def seconds(self, what: str) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return float(self._line())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def unnorm_fit(case: str, table: dict[str, np.ndarray]) -> list:
    """[(edf, deviance), …]."""
    import unnorm as un

    options = {"family": "binomial", "method": "REML", "knots": KNOTS}
    if case == "each":
        from unnorm.engine.core import fit_many
        from unnorm.terms.parser import parse

        spec = parse(FORMULA)
        order = np.flatnonzero(np.diff(table["subject"])) + 1
        problems = []
        for rows in np.split(np.arange(table["subject"].size), order):
            part = {name: column[rows[0] : rows[-1] + 1] for name, column in table.items()}
            problems.append(
                {"terms": lambda c: spec.build(c, knots=KNOTS), "columns": part, "y": part["cls"], "family": "binomial"}
            )
        return [(float(fit.edf.sum()), fit.deviance) for fit in fit_many(problems)]
    if case == "by":
        table = {**table, "subject": table["subject"].astype(int).astype(str)}
    fit = un.gam(BY if case == "by" else FORMULA, table, **options)
    return [(float(fit.smoothed.edf.sum()), fit.deviance)]


def unnorm_seconds(case: str, table: dict[str, np.ndarray]) -> tuple[float, float]:
    """(wall, processor) seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    unnorm_fit(case, table)
    return time.perf_counter() - wall, time.process_time() - cpu


# ---- what is printed ----


def compare(
    label: str, theirs: list[float], ours: list[float], cpu: list[float] | None = None, against: str = "bam"
) -> None:
    a, b = statistics.median(theirs), statistics.median(ours)
    processor = f" (processor {statistics.median(cpu):.3f})" if cpu else ""
    asked = next((f" (asked {least})" for name, least in ASKED.items() if label.startswith(name)), "")
    print(f"{label:36s} {against} {a:9.3f} s   unnorm {b:8.3f} s{processor}   ratio {a / b:7.1f}{asked}", flush=True)


def warm(quick: bool, reps: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        small, large = one_subject(), pooled()
        write(small, Path(folder) / "small.bin")
        write(large, Path(folder) / "large.bin")
        for case, table, file in (("bam", small, "small"), ("pooled", large, "large"), ("each", large, "large")):
            r = R(Path(folder) / f"{file}.bin")
            unnorm_seconds(case, table)  # the first call loads compiled code
            theirs, ours, cpu = [], [], []
            for _ in range(reps):
                theirs.append(r.seconds("each" if case == "each" else "bam"))
                wall, processor = unnorm_seconds(case, table)
                ours.append(wall)
                cpu.append(processor)
            compare(f"{CASES[case]} ({table['cls'].size} rows)", theirs, ours, cpu)
            if case == "bam" and not quick:
                compare("   the same, against gam REML", [r.seconds("gam")], ours, against="gam")
            r.close()
        unnorm_seconds("by", large)
        ours = [unnorm_seconds("by", large) for _ in range(reps)]
        if quick:
            print(f"{CASES['by']:36s} unnorm {statistics.median(w for w, _ in ours):8.3f} s", flush=True)
        else:
            r = R(Path(folder) / "large.bin")
            compare(CASES["by"], [r.seconds("by")], [w for w, _ in ours], [c for _, c in ours])
            r.close()


def cold(quick: bool, reps: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(one_subject(), Path(folder) / "small.bin")
        write(pooled(), Path(folder) / "large.bin")
        caches = Path(folder) / "cache"
        for case in CASES:
            file = Path(folder) / f"{'small' if case == 'bam' else 'large'}.bin"
            theirs, ours, empty = [], [], []
            us = [sys.executable, str(HERE / "engine.py"), "--one", case, str(file), str(Path(folder) / "ours.json")]
            them = ["Rscript", str(HERE / "engine.R"), str(file), ",".join(COLUMNS)]
            them += [case if case != "pooled" else "bam", str(Path(folder) / "theirs.txt")]
            for rep in range(1 if case == "by" else reps):
                if case != "by" or not quick:
                    theirs.append(_process(them))
                shutil.rmtree(caches, ignore_errors=True)
                environment = {**os.environ, "NUMBA_CACHE_DIR": str(caches)}
                if rep == 0:
                    empty.append(_process(us, environment))
                _process(us, environment)
                ours.append(_process(us, environment))
            if theirs:
                compare(f"{CASES[case]}, whole process", theirs, ours)
            else:
                print(f"{CASES[case] + ', whole process':36s} unnorm {statistics.median(ours):8.3f} s", flush=True)
            print(f"{'':36s} with an empty compilation cache: {empty[0]:.2f} s", flush=True)


README = """
import unnorm as un
table = un.datasets.eye()
one = {name: values[table["subject"] == 1] for name, values in table.items()}
eye = un.Additive("s(step, k=10) + s(dcenter, k=40) + s(angle, bs='cc', k=20)", un.Box((0, 800), (0, 600)))
un.fit(eye, un.transitions(one, y=("x", "y"), order="fix", group=("subject", "image")),
       objective=un.Logistic(un.Uniform(), per_point=20), rng=2)
"""


def empty(reps: int) -> None:
    """Whole processes with an empty compilation cache and with a filled one: the best wall and processor seconds of
    `reps`, the processes that compile beside it included. Python's own bytecode is there, as after `pip install`."""
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    import unnorm

    package = str(Path(unnorm.__file__).parent)
    subprocess.run([sys.executable, "-m", "compileall", "-q", package], check=True, env=plain)
    demo = "import sys; from unnorm.cli import main; main(['demo', '--quiet', '--out', sys.argv[1]])"
    for label, code in (("README's eye formula, one subject", README), ("unnorm demo", demo)):
        found: dict[str, list[tuple[float, float]]] = {"empty": [], "filled": []}
        for _ in range(reps):
            with tempfile.TemporaryDirectory() as folder:
                environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder) / "cache")}
                for which, into in found.items():
                    command = [sys.executable, "-c", code, str(Path(folder) / which)]
                    before = os.times()
                    wall = _process(command, environment)
                    after = os.times()
                    used = after.children_user + after.children_system
                    into.append((wall, used - before.children_user - before.children_system))
        for which, into in found.items():
            wall, cpu = (min(column) for column in zip(*into))
            print(f"{label:36s} {which:6s} cache {wall:6.2f} s (processor {cpu:.2f})", flush=True)


def _process(command: list[str], environment: dict[str, str] | None = None) -> float:
    since = time.perf_counter()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return time.perf_counter() - since


# ---- other regimes: many smooths, wide smooths, many levels ----

SMOOTHS = " + ".join(f"s(x{i})" for i in range(15))
REGIMES = {  # name → (rows, right-hand side, levels of g)
    "15 smooths": (100_000, SMOOTHS, 2),
    "6 smooths": (1_000_000, " + ".join(f"s(x{i})" for i in range(6)), 2),
    "s(x,z,k=200)": (50_000, "s(x0, x1, k=200)", 2),
    "te 7x7x7": (50_000, "te(x0, x1, x2, k=7)", 2),
    "re 400 levels": (20_000, "s(x0) + s(g, bs='re')", 400),
    "re 5,000 levels": (50_000, "s(x0) + s(g, bs='re')", 5_000),
    "fs 200 levels": (50_000, "s(x0, g, bs='fs', k=5)", 200),
}


def regime_table(rows: int, levels: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    table = {f"x{i}": rng.random(rows) for i in range(15)}
    g = rng.integers(0, levels, rows)
    eta = np.sin(6 * table["x0"]) + np.cos(4 * table["x1"]) * table["x2"] + 0.5 * rng.normal(size=levels)[g]
    return {**table, "g": g.astype(float), "y": (rng.random(rows) < 1 / (1 + np.exp(-eta))).astype(float)}


def labelled(table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {**table, "g": np.char.add("l", table["g"].astype(int).astype(str))}


def regimes(quick: bool, reps: int, only: str, patience: float) -> None:
    """Each regime against bam (`--quick`: unnorm alone), and `summary()` where there are levels."""
    import unnorm as un

    for name, (rows, formula, levels) in REGIMES.items():
        if only not in name:
            continue
        table = regime_table(rows, levels)
        data = labelled(table)
        un.gam(f"y ~ {formula}", {key: v[:2_000] for key, v in data.items()}, family="binomial").summary()
        ours, cpu, summaries = [], [], []
        for _ in range(max(min(reps, 5), 1)):
            since, processor = time.perf_counter(), time.process_time()
            fit = un.gam(f"y ~ {formula}", data, family="binomial")
            ours.append(time.perf_counter() - since)
            cpu.append(time.process_time() - processor)
            since = time.perf_counter()
            fit.summary()
            summaries.append(time.perf_counter() - since)
        fitted, summarised, stopped = (np.nan, np.nan, False) if quick else _bam(table, formula, patience)
        compare(f"{name} ({rows} rows)", [fitted], ours, cpu, "bam >" if stopped else "bam")
        if levels > 2:
            compare("   its summary()", [summarised], summaries)


def _bam(table: dict[str, np.ndarray], formula: str, patience: float) -> tuple[float, float, bool]:
    """Seconds of bam and of its summary (nan where bam was stopped), and whether it was."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.bin"
        np.stack(list(table.values())).tofile(path)
        right = formula.replace("'", '"')
        command = ["Rscript", str(HERE / "engine.R"), str(path), ",".join(table), "fit", "y ~ " + right]
        try:
            said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=patience).stdout
        except subprocess.TimeoutExpired:
            return patience, np.nan, True
        fitted, summarised = map(float, said.split()[-2:])
        return fitted, summarised, False


def levels_grow() -> None:
    """Seconds and peak bytes with ever more levels, ten rows each, in a process of its own for each."""
    for formula in ("s(x0) + s(g, bs='re')", "s(x0, g, bs='fs', k=5)"):
        for levels in (1_000, 4_000, 16_000):
            command = [sys.executable, str(HERE / "engine.py"), "--grown", formula, str(levels)]
            print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip(), flush=True)


def one_grown(formula: str, levels: int) -> None:
    import unnorm as un

    data = labelled(regime_table(10 * levels, levels))
    small = labelled(regime_table(2_000, 200))
    un.gam(f"y ~ {formula}", small, family="binomial").summary()  # compiled code is in memory
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before, since = _memory("VmRSS"), time.process_time()
    fit = un.gam(f"y ~ {formula}", data, family="binomial")
    fitted = time.process_time()
    fit.summary()
    told = time.process_time()
    fit.predict()
    done = time.process_time()
    seconds = f"fit {fitted - since:6.3f} s, summary {told - fitted:6.3f} s, predictions {done - told:6.3f} s"
    each = (_memory("VmHWM") - before) / levels
    print(f"{formula:24s} {levels:6d} levels: {seconds} (processor), peak {each:6.0f} bytes a level above the input")


def scale() -> None:
    """Seconds and peak bytes per row at 10⁶ and 10⁷ rows, each in its own process."""
    for rows in (1_000_000, 10_000_000):
        command = [sys.executable, str(HERE / "engine.py"), "--rows", str(rows)]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip(), flush=True)


def _memory(what: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {what}")


def scaled(rows: int) -> dict[str, np.ndarray]:
    """So many rows: pairs of successive fixations drawn from the chains, contexts all different."""
    rng = np.random.default_rng(2)
    long = np.concatenate(chains())
    chain = long[rng.integers(0, len(long) - 1, rows // 21)[:, None] + np.arange(2)]
    chain[:, 0] += rng.normal(scale=1e-3, size=(len(chain), 2))
    table = {name: np.empty(21 * len(chain)) for name in COLUMNS}
    for a in range(0, len(chain), 20_000):
        part = chain[a : a + 20_000]
        both = np.concatenate([part[:, 0], part[-1:, 1]])
        piece = rows_of(both, 1.0, rng)
        x, y = part[:, 1, 0], part[:, 1, 1]
        piece["delta"][::21] = np.hypot(x - part[:, 0, 0], y - part[:, 0, 1])
        piece["dcenter"][::21] = np.hypot(x, y)
        piece["angle"][::21] = np.arctan2(y - part[:, 0, 1], x - part[:, 0, 0])
        for name, column in piece.items():
            table[name][21 * a : 21 * a + column.size] = column
    return table


def one_scale(rows: int) -> None:
    from unnorm.engine.core import build_design, smooth_fit
    from unnorm.terms.parser import parse

    table = scaled(rows)
    small = {name: column[:42_000] for name, column in table.items()}
    spec = parse(FORMULA)

    def fit(data):
        built = spec.build(data, knots=KNOTS)
        return smooth_fit(build_design(built, data), data["cls"])

    fit(small)  # compiled code is in memory
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _memory("VmRSS")
    since = time.perf_counter()
    result = fit(table)
    seconds = time.perf_counter() - since
    n = table["cls"].size
    peak = (_memory("VmHWM") - before) / n
    passes = {k: round(v, 2) for k, v in result.timings.items()}
    print(
        f"{n:9d} rows  {seconds:7.2f} s  {1e9 * seconds / n:6.0f} ns a row  "
        f"peak {peak:5.1f} bytes a row above the input  {passes} {result.iterations}"
    )


# ---- threads ----


def _scatter():
    """A bare scatter-add loop, compiled: sixteen adds a row into a table of 225 × 225, as for a pair in a pass."""
    from numba import njit

    @njit(nogil=True)
    def scatter(at, table):
        for r in range(at.shape[0]):
            i, j = at[r, 0], at[r, 1]
            for a in range(4):
                for b in range(4):
                    table[i + a, j + b] += 0.5

    return scatter


def one_cores(rows: int, count: int) -> None:
    """Seconds of terms, design and fit on `count` cores, and of the bare loop, as JSON."""
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:count]))
    from concurrent.futures import ThreadPoolExecutor

    from unnorm.engine.core import build_design, smooth_fit
    from unnorm.terms.parser import parse

    table, spec = scaled(rows), parse(FORMULA)

    def fit(data: dict[str, np.ndarray]) -> dict[str, float]:
        at = [time.perf_counter()]
        built = spec.build(data, knots=KNOTS)
        at.append(time.perf_counter())
        design = build_design(built, data)
        at.append(time.perf_counter())
        found = smooth_fit(design, data["cls"])
        at.append(time.perf_counter())
        passes = found.timings["passes"] + found.timings["leverage passes"]
        counts = found.iterations["passes"] + found.iterations["leverage passes"]
        took = dict(zip(("terms", "design", "fit"), np.diff(at).tolist()))
        return {**took, "passes": passes, "count": counts, "all": at[-1] - at[0]}

    fit({name: column[:600_000] for name, column in table.items()})  # compiled code is in memory
    best = min((fit(table) for _ in range(2)), key=lambda one: one["all"])
    scatter, rng = _scatter(), np.random.default_rng(0)
    at = rng.integers(0, 221, (4_000_000, 2))
    tables = [np.zeros((225, 225)) for _ in range(count)]
    scatter(at[:10], tables[0])
    seconds = []
    with ThreadPoolExecutor(count) as pool:
        for _ in range(3):
            since = time.perf_counter()
            list(pool.map(scatter, np.array_split(at, count), tables))
            seconds.append(time.perf_counter() - since)
    print(json.dumps({**best, "bare": min(seconds)}))


def by_cores(rows: int) -> None:
    """The fit on 1, 2, 4, … cores, each in its own process, and the gain of a bare loop."""
    most = len(os.sched_getaffinity(0))
    counts = sorted({1, *(2**k for k in range(1, 11) if 2**k < most), most})
    one: dict[str, float] = {}
    print("cores   terms  design  passes (n)      all, s   gain of all, of passes, of a bare loop; passes/bare")
    for count in counts:
        command = [sys.executable, str(HERE / "engine.py"), "--rows", str(rows), "--threads", str(count)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        one = one or found
        gain = {name: one[name] / found[name] for name in ("all", "passes", "bare")}
        gain["passes"] *= found["count"] / one["count"]
        print(
            f"{count:5d} {found['terms']:7.3f} {found['design']:7.3f} {found['passes']:7.3f} ({found['count']}) "
            f"{found['all']:11.3f} {gain['all']:12.2f} {gain['passes']:10.2f} {gain['bare']:14.2f} "
            f"{gain['passes'] / gain['bare']:14.2f}",
            flush=True,
        )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="leave out gam and bam's by=subject")
    options.add_argument("--reps", type=int, default=5)
    options.add_argument("--cold", action="store_true")
    options.add_argument("--empty", action="store_true", help="with --cold: the first fit of an installation")
    options.add_argument("--scale", action="store_true")
    options.add_argument("--regimes", action="store_true", help="many smooths, wide smooths, many levels")
    options.add_argument("--only", default="", help="with --regimes: those whose name contains this")
    options.add_argument("--patience", type=float, default=1800.0, help="with --regimes: seconds that R may take")
    options.add_argument("--levels", action="store_true", help="time and memory with ever more levels")
    options.add_argument("--grown", nargs=2, metavar=("FORMULA", "LEVELS"), help=argparse.SUPPRESS)
    options.add_argument("--one", nargs=3, metavar=("CASE", "TABLE", "RESULT"), help=argparse.SUPPRESS)
    options.add_argument("--cores", action="store_true", help="10⁷ rows (or --rows) on 1, 2, 4, … cores; needs no R")
    options.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    options.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one:
        case, table, result = chosen.one
        Path(result).write_text(json.dumps(unnorm_fit(case, read(Path(table)))))
    elif chosen.cores:
        by_cores(chosen.rows or 10_000_000)
    elif chosen.threads:
        one_cores(chosen.rows, chosen.threads)
    elif chosen.rows:
        one_scale(chosen.rows)
    elif chosen.scale:
        scale()
    elif chosen.regimes:
        regimes(chosen.quick, chosen.reps, chosen.only, chosen.patience)
    elif chosen.levels:
        levels_grow()
    elif chosen.grown:
        one_grown(chosen.grown[0], int(chosen.grown[1]))
    elif chosen.cold and chosen.empty:
        empty(min(chosen.reps, 3))
    elif chosen.cold:
        cold(chosen.quick, min(chosen.reps, 3))
    else:
        warm(chosen.quick, chosen.reps)
        if not chosen.quick:
            regimes(False, chosen.reps, chosen.only, chosen.patience)


if __name__ == "__main__":
    main()
