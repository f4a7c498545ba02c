"""Time of one step of SGD on a language model, with rows moved alone and with every row moved.

    python benchmarks/words.py TEXT.txt [--vocabulary 10000] [--dim 64] [--batch 256] [--points 25]

Noise-contrastive steps with the constants ignored, for the two models of examples/words.py; compiled before they are
timed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import optax

import unnorm as un

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import words

STEPS = 400


def seconds(model: un.Energy, obs: un.Observations, solver: un.SGD, points: int) -> float:
    """One run of all steps."""
    objective = un.Logistic(un.Marginal(), per_point=points, points=un.IID())
    e = solver.estimator(model, obs, objective, un.Fixed(0.0))
    begun = time.perf_counter()
    solver.climb(e, np.random.default_rng(1))
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    for name, value in (("vocabulary", 10_000), ("dim", 64), ("lags", 3), ("batch", 256), ("points", 25)):
        parser.add_argument(f"--{name}", type=int, default=value)
    a = parser.parse_args()
    text = words.read(a.text, a.vocabulary)
    obs = un.transitions(text.train, lags=a.lags)
    optimiser = optax.adam(2e-3)  # one object: a second run finds what the first compiled
    for f, net in ((words.bilinear, False), (words.neural, True)):
        start = words.start(text, a.dim, a.lags, net)
        omega = un.FiniteSet(range(len(text.vocabulary)))
        model = un.Energy(f, start, omega, by_outcome=("out", "bias"), by_context=("in",))
        for name, rate in (("rows alone", 0.3), ("every row", None)):
            solver = un.SGD(
                optimiser,
                steps=STEPS,
                batch=a.batch,
                sampling="iid",
                dtype="float32",
                row_rate=rate,
                precondition=False,
            )
            best = min([seconds(model, obs, solver, a.points) for _ in range(3)][1:])
            print(f"{f.__name__:10}{name:12}{1e3 * best / STEPS:8.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
