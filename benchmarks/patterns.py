"""Point patterns against spatstat, R live: the same model and number of dummy points, K with envelopes of bei.

    python benchmarks/patterns.py [--points 10000 1000000] [--envelopes 199] [--data ../shared/data]

Prints seconds of CPU time and ratios. Needs Rscript with spatstat.model and spatstat.explore. The envelopes are
those of the 3,604 trees of bei, where pp_bei_points.csv is in the folder of data; else of as many uniform points.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import unnorm as un

R = """
suppressMessages({{library(spatstat.geom); library(spatstat.random); library(spatstat.model)
                   library(spatstat.explore); library(mgcv)}})
set.seed(1)
W <- owin(c(0, 2), c(0, 1))
X <- rpoispp(function(x, y) {n} * exp(x - 1) / (exp(1) - exp(-1)), win = W)
cpu <- function(e) {{ t <- proc.time(); force(e); d <- proc.time() - t; d[["user.self"]] + d[["sys.self"]] }}
Q <- function() quadscheme.logi(X, dummytype = "stratrand", nd = ceiling(sqrt({dummies})))
cat("linear", cpu(ppm(Q() ~ x, method = "logi")), "\\n")
if ({n} <= 1e5) {{
  cat("strauss", cpu({{f <- ppm(Q() ~ 1, Strauss({r}), method = "logi"); vcov(f)}}), "\\n")
  cat("smooth", cpu(ppm(X ~ s(x, y), use.gam = TRUE)), "\\n")
}}
"""
ENVELOPES = """
suppressMessages({{library(spatstat.geom); library(spatstat.explore)}})
xy <- read.csv("{file}")
X <- ppp(xy$x, xy$y, window = owin(c(0, 1000), c(0, 500)))
t <- proc.time()
E <- envelope(X, Kest, nsim = {envelopes}, correction = "{correction}", verbose = FALSE, savefuns = TRUE)
d <- proc.time() - t
cat("envelope", d[["user.self"]] + d[["sys.self"]], "\\n")
"""


def cpu(work: Callable[[], Any], repeats: int = 1) -> float:
    best = np.inf
    for _ in range(repeats):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def pattern(n: int, seed: int) -> un.Pattern:
    """log λ = c + x on [0, 2] × [0, 1], n points on average."""
    rng = np.random.default_rng(seed)
    m = rng.poisson(n)
    x = np.log(np.exp(0.0) + rng.random(m) * np.expm1(2.0))
    return un.pattern({"x": x, "y": rng.random(m)}, y=("x", "y"), window=un.Box((0, 2), (0, 1)))


def from_r(text: str) -> dict[str, float]:
    done = subprocess.run(["Rscript", "-e", text], capture_output=True, text=True, check=False)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {name: float(value) for name, value in (line for line in lines if len(line) == 2)}


def ours(points: un.Pattern, r: float, dummies: int) -> dict[str, float]:
    un.fit_pattern(pattern(500, 3), "s(x, y)", interaction=un.Strauss(0.02), rng=1)  # compiled
    n = points.n
    out = {"linear": cpu(lambda: un.fit_pattern(points, "x", dummies=dummies, rng=1))}
    if n <= 2 * 10**5:
        out["strauss"] = cpu(lambda: un.fit_pattern(points, interaction=un.Strauss(r), dummies=dummies, rng=1))
    out["smooth"] = cpu(lambda: un.fit_pattern(points, "s(x, y)", dummies=dummies, rng=1))
    return out


def envelopes(data: Path, count: int, folder: Path) -> None:
    """K of bei with simulations of a Poisson process, both with their own simulations and bands."""
    file = data / "pp_bei_points.csv"
    if file.is_file():
        with file.open() as opened:
            xy = np.array([[float(row["x"]), float(row["y"])] for row in csv.DictReader(opened)])
    else:
        xy = np.random.default_rng(2).random((3604, 2)) * (1000, 500)
    bei = un.pattern({"x": xy[:, 0], "y": xy[:, 1]}, ("x", "y"), window=un.Box((0, 1000), (0, 500)))
    copy = folder / "points.csv"
    copy.write_text("x,y\n" + "".join(f"{x!r},{y!r}\n" for x, y in xy.tolist()))
    for correction in ("isotropic", "translate", "border"):
        un.patterns.K(bei, correction=correction)  # compiled
        mine = cpu(lambda how=correction: un.patterns.envelope(bei, "K", n=count, rng=1, correction=how))
        other = from_r(ENVELOPES.format(file=copy, envelopes=count, correction=correction)).get("envelope")
        show(f"{bei.n:,} trees, {count} envelopes of K, {correction}", mine, other)


def show(what: str, seconds: float, other: float | None) -> None:
    ratio = "" if other is None else f"{other:9.2f} s spatstat  ×{other / seconds:.1f}"
    print(f"{what:<52}{seconds:9.2f} s  {ratio}", flush=True)


def main() -> None:
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, nargs="*", default=[10_000])
    parser.add_argument("--envelopes", type=int, default=199)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    given = parser.parse_args()
    warnings.simplefilter("ignore", un.errors.UnnormWarning)  # a Strauss fit of Poisson points may attract
    if given.envelopes:
        with tempfile.TemporaryDirectory() as folder:
            envelopes(given.data, given.envelopes, Path(folder))
    for n in given.points:
        r = 0.5 / float(np.sqrt(n))
        points = pattern(n, 1)
        dummies = points.n if points.n > 400_000 else 4 * points.n
        spatstat = from_r(R.format(n=float(n), r=r, dummies=dummies))
        for name, seconds in ours(points, r, dummies).items():
            show(f"{n:,} points, {dummies:,} dummy points, {name}", seconds, spatstat.get(name))


if __name__ == "__main__":
    main()
