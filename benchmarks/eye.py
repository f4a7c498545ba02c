"""Eye movements at full size.

    python benchmarks/eye.py osie      # the paper's findings on 87,821 real transitions, 15 subjects, with timings
    python benchmarks/eye.py mgcv      # the same 15 fits with mgcv's bam(discrete=TRUE, nthreads=2), live; the ratio
    python benchmarks/eye.py job       # all of OSIE from the shell, report included: seconds by stage
    python benchmarks/eye.py redraws   # Monte Carlo sd over 20 redraws of the reference points, bundled data

`osie`, `mgcv` and `job` read ../shared/data/eye_osie_fixations.csv; `mgcv` needs Rscript with mgcv.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import unnorm as un
from unnorm.groups import fit_each
from unnorm.references.points import PER_POINT as REFERENCES
from unnorm.report.findings import findings

TERMS = "s(step, k=10) + s(dcenter, k=40) + s(angle, bs='cc', k=20)"
CHI = un.Smooth("s(x_prev, y_prev, k=40)", smoothing="reml")  # as the paper and bam have it
MODEL = un.Additive(TERMS, un.Box((0, 800), (0, 600)), y_down=True)
OSIE = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "eye_osie_fixations.csv"


def osie_observations() -> un.Observations:
    with OSIE.open() as file:
        rows = list(csv.DictReader(file))
    table = {name: np.array([float(row[name]) for row in rows]) for name in ("x", "y", "fix")}
    table |= {name: np.array([int(row[name]) for row in rows]) for name in ("subject", "image")}
    return un.transitions(table, y=("x", "y"), order="fix", group=("subject", "image"))


def osie() -> float:
    obs = osie_observations()
    some = obs.take(obs.group["subject"] <= 2)
    fit_each(MODEL, some, "subject", normaliser=CHI, rng=1, outside="drop")  # compiles
    began, cpu = time.perf_counter(), time.process_time()
    each = fit_each(MODEL, obs, "subject", normaliser=CHI, rng=1, outside="drop")
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    print(each.summary())
    parts = each.diagnostics["seconds"]
    rows = each.diagnostics["rows"]
    print(f"\n{obs.n:,} transitions, {rows:,} rows (k = {REFERENCES}): {wall:.2f} s wall, {cpu:.2f} s CPU;")
    print(f"separate fits {parts['separate']:.2f} s, joint fit {parts['joint']:.2f} s")
    for one in findings(MODEL, obs, each.group, each.fits):
        group = "yes" if one.group else "no"
        print(f"{one.question}: group {group}, {len(one.holds)} of {one.levels} subjects")
    return parts["separate"]


R = """
suppressMessages(library(mgcv)); d <- read.csv(commandArgs(TRUE)[1]); total <- 0
for (s in unique(d$subject)) { x <- d[d$subject == s, ]
  total <- total + system.time(bam(z ~ s(step, k=10) + s(dcenter, k=40) + s(x_prev, y_prev, k=40) +
    s(angle, bs="cc", k=20) + offset(known), data=x, family=binomial, discrete=TRUE, nthreads=2,
    knots=list(angle=c(-pi, pi))))["elapsed"] }
cat(total, "\\n")
"""


def mgcv() -> None:
    obs = osie_observations()
    began = time.perf_counter()
    each = fit_each(MODEL, obs, "subject", normaliser=CHI, rng=1, outside="drop", group=False)
    began = time.perf_counter()
    each = fit_each(MODEL, obs, "subject", normaliser=CHI, rng=1, outside="drop", group=False)
    ours = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        names = ("step", "dcenter", "angle", "x_prev", "y_prev")
        parts = []
        for level, fit in each.fits.items():
            gam = fit.smooths.gam  # type: ignore[union-attr]
            columns = [np.full(len(gam.y), int(level)), gam.y, gam.offset, *(gam.columns[name] for name in names)]
            parts.append(np.column_stack(columns))
        header = "subject,z,known," + ",".join(names)
        np.savetxt(path, np.concatenate(parts), delimiter=",", header=header, comments="", fmt="%.6g")
        script = Path(folder) / "bam.R"
        script.write_text(R)
        out = subprocess.run(["Rscript", str(script), str(path)], capture_output=True, text=True, check=True)
    theirs = float(out.stdout.split()[-1])
    print(
        f"15 fits: unnorm {ours:.2f} s (points, covariates, errors and tests included); bam {theirs:.2f} s (fits alone)"
    )
    print(f"ratio {theirs / ours:.2f}")


def job() -> None:
    """`unnorm fit` on all of OSIE, in this process: wall and processor seconds of each stage."""
    from contextlib import contextmanager
    from unittest.mock import patch

    from unnorm.cli import main, run

    class Stages:
        """In place of the progress bar."""

        def __init__(self, *_: object) -> None: ...
        def __enter__(self) -> Stages:
            return self

        def __exit__(self, *_: object) -> None: ...

        @contextmanager
        def step(self, what: str):
            wall, cpu = time.perf_counter(), time.process_time()
            yield
            print(f"{what:<12} {time.perf_counter() - wall:6.2f} s (processor {time.process_time() - cpu:.2f})")

    def analysed(prepared, fits):
        seconds = fits.diagnostics["seconds"]
        print(f"of which     {seconds['separate']:6.2f} s separate fits, {seconds['joint']:.2f} s the group's")
        return plain(prepared, fits)

    plain = run.analysed
    command = [
        *("fit", str(OSIE), "--y", "x,y", "--order", "fix", "--group", "subject,image", "--by", "subject"),
        *("--window", "0,800,0,600", "--y-down", "--outside", "drop", "--out"),
    ]
    began, cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder, patch.multiple(run, Progress=Stages, analysed=analysed):
        main([*command, str(Path(folder) / "results")])
    print(f"{'in all':<12} {time.perf_counter() - began:6.2f} s (processor {time.process_time() - cpu:.2f})")


def redraws(k: int, times: int) -> None:
    """Mean over the grid of the Monte Carlo sd, over that of the standard error, at observed covariate values."""
    obs = un.transitions(un.datasets.eye(), y=("x", "y"), order="fix", group=("subject", "image"))
    objective = un.Logistic(un.Uniform(), per_point=k)
    known = MODEL.covariates(obs).values(("step", "dcenter", "angle"), obs)
    at = {name: np.quantile(values, np.linspace(0.01, 0.99, 60)) for name, values in known.items()}
    found: dict[tuple[str, str], list[np.ndarray]] = {}
    for seed in range(times):
        each = fit_each(MODEL, obs, "subject", objective, CHI, rng=seed)
        for which in ("group", *each.levels):
            for label in each.labels:
                name = label[2:-1]
                effect = each._effect(label, which, {name: at[name]})
                found.setdefault((which, label), []).append(np.stack([effect["estimate"], effect["se"]]))
    print(f"Monte Carlo sd / standard error, k = {k}, {times} redraws")
    worst = 0.0
    for label in ("s(step)", "s(dcenter)", "s(angle)"):
        shares = {}
        for (which, one), values in found.items():
            if one == label:
                array = np.array(values)
                sd = np.sqrt(np.mean(array[:, 0].std(axis=0, ddof=1) ** 2))
                shares[which] = float(sd / np.sqrt(np.mean(array[:, 1] ** 2)))
        own = [share for which, share in shares.items() if which != "group"]
        worst = max(worst, *shares.values())
        print(f"{label:<11} group {shares['group']:.3f}   subjects median {np.median(own):.3f}, largest {max(own):.3f}")
    print(f"largest {worst:.3f} (target 0.1)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("osie", "mgcv", "job", "redraws"))
    parser.add_argument("-k", type=int, default=REFERENCES)
    parser.add_argument("--times", type=int, default=20)
    chosen = parser.parse_args()
    if chosen.what == "redraws":
        redraws(chosen.k, chosen.times)
    else:
        {"osie": osie, "mgcv": mgcv, "job": job}[chosen.what]()


if __name__ == "__main__":
    main()
