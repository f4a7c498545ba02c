"""Point patterns against spatstat, R live: the same model and number of dummy points, K with envelopes.

    python benchmarks/patterns.py [--points 10000 1000000] [--envelopes 199]

Prints seconds of CPU time and ratios. Needs Rscript with spatstat.model and spatstat.explore.
"""

from __future__ import annotations

import argparse
import subprocess
import time
import warnings
from collections.abc import Callable
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
nd <- ceiling(sqrt(4 * npoints(X)))
Q <- function() quadscheme.logi(X, dummytype = "stratrand", nd = nd)
cat("linear", cpu(ppm(Q() ~ x, method = "logi")), "\\n")
if ({n} <= 1e5) cat("strauss", cpu({{f <- ppm(Q() ~ 1, Strauss({r}), method = "logi"); vcov(f)}}), "\\n")
Y <- runifpoint(3604, W)
cat("envelope", cpu(for (i in 1:5) Kest(Y, correction = "isotropic")) / 5 * ({envelopes} + 1), "\\n")
if ({n} <= 1e5) cat("smooth", cpu(ppm(X ~ s(x, y), use.gam = TRUE)), "\\n")
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


def theirs(n: int, r: float, envelopes: int) -> dict[str, float]:
    text = R.format(n=float(n), r=r, envelopes=envelopes)
    done = subprocess.run(["Rscript", "-e", text], capture_output=True, text=True, check=False)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {name: float(value) for name, value in (line for line in lines if len(line) == 2)}


def ours(n: int, r: float, envelopes: int) -> dict[str, float]:
    points = pattern(n, 1)
    one = un.pattern(np.random.default_rng(2).random((3604, 2)) * (2, 1), window=un.Box((0, 2), (0, 1)))
    un.fit_pattern(pattern(500, 3), "s(x, y)", interaction=un.Strauss(0.02), rng=1)  # compiled
    un.patterns.K(pattern(500, 3))
    count = None if n > 10**5 else 4 * points.n
    out = {"read": cpu(lambda: pattern(n, 1)), "linear": cpu(lambda: un.fit_pattern(points, "x", dummies=count, rng=1))}
    if n <= 10**5:
        out["strauss"] = cpu(lambda: un.fit_pattern(points, interaction=un.Strauss(r), dummies=count, rng=1))
    out["smooth"] = cpu(lambda: un.fit_pattern(points, "s(x, y)", dummies=count, rng=1))
    out["envelope"] = cpu(lambda: un.patterns.K(one), 5) * (envelopes + 1)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, nargs="+", default=[10_000])
    parser.add_argument("--envelopes", type=int, default=199)
    given = parser.parse_args()
    warnings.simplefilter("ignore", un.errors.UnnormWarning)  # a Strauss fit of Poisson points may attract
    for n in given.points:
        r = 0.5 / float(np.sqrt(n))
        mine, spatstat = ours(n, r, given.envelopes), theirs(n, r, given.envelopes)
        for name, seconds in mine.items():
            other = spatstat.get(name)
            ratio = "" if other is None else f"{other:9.2f} s spatstat  ×{other / seconds:.1f}"
            print(f"{n:>9,} points  {name:<10}{seconds:9.2f} s  {ratio}")


if __name__ == "__main__":
    main()
