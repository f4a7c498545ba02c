"""A REML fit of 10⁸ rows on one GPU, from coordinates on the host to the estimate, and what share of the card it uses.

    PYTHONPATH=src python benchmarks/gpu/rows.py                           # on a GPU: 5·10⁶ contexts × (1 + 20) rows
    PYTHONPATH=src python benchmarks/gpu/rows.py --contexts 5000 --cpu     # the same programs on the processor
    PYTHONPATH=src python benchmarks/gpu/rows.py --check                   # and the engine's own fit of the same rows

The paper's formula: f = s(step) + s(dcenter) + s(angle) and χ a smooth of the previous point, by logistic regression
against k uniform lattice points for each context. Points, covariates and cells are made on the device. Prints JSON:
seconds by stage of a first fit (which compiles) and of later ones; milliseconds of one pass and of one leverage pass,
with FLOPs and bytes counted by hand; with --check, how far the two optima are apart.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from unnorm._base.numerics import x64
from unnorm.engine.core import smooth_fit
from unnorm.engine.device import Device
from unnorm.engine.device.error import left
from unnorm.engine.device.made import MadeFit, fit_chain, on_host

FORMULA = "s(step, k=10) + s(dcenter, k=40) + s(angle, bs='cc', k=20) + s(x_prev, y_prev, k=40)"
BOX = ((0.0, 20.0), (0.0, 15.0))
# Data-sheet peaks: float64 in tensor cores, float32 outside them, memory.
PEAKS = {
    "H200": {"float64": 67e12, "float32": 67e12, "bytes": 4.8e12},
    "H100": {"float64": 67e12, "float32": 67e12, "bytes": 3.35e12},
    "A100": {"float64": 19.5e12, "float32": 19.5e12, "bytes": 2.0e12},
}


@partial(jax.jit, static_argnums=(1, 2))
def _walks(key: Any, walks: int, steps: int) -> Any:
    """Walks in the box: each step is the best, by f + Gumbel noise, of 40 uniform candidates."""
    low, high = (jnp.array(end) for end in zip(*BOX))
    middle = 0.5 * (low + high)

    def f(before: Any, y: Any) -> Any:
        d = y - before[:, None]
        step, angle = jnp.hypot(d[..., 0], d[..., 1]), jnp.arctan2(d[..., 1], d[..., 0])
        away = jnp.hypot(*jnp.moveaxis(y - middle, -1, 0))
        return jnp.log(step + 0.3) - 0.45 * step - 0.12 * away + 0.03 * jnp.sin(2.0 * away) + 0.3 * jnp.cos(2.0 * angle)

    def move(before: Any, key: Any) -> tuple[Any, Any]:
        own, noise = jax.random.split(key)
        y = low + (high - low) * jax.random.uniform(own, (walks, 40, 2))
        best = jnp.argmax(f(before, y) + jax.random.gumbel(noise, (walks, 40)), axis=1)
        y = y[jnp.arange(walks), best]
        return y, y

    return jax.lax.scan(move, jnp.broadcast_to(middle, (walks, 2)), jax.random.split(key, steps))[1]


def simulated(contexts: int, seed: int) -> np.ndarray:
    """(contexts + 1, 2) coordinates: walks side by side, one after the other in the file."""
    steps = max(10, min(1000, contexts // 100))
    walks = -(-(contexts + 1) // steps)
    with x64():
        path = np.asarray(_walks(jax.random.key(seed), walks, steps))
    return np.ascontiguousarray(path.transpose(1, 0, 2).reshape(-1, 2)[: contexts + 1])


def timed(function: Any, repeats: int) -> float:
    """Median milliseconds, once compiled."""
    function()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return 1e3 * float(np.median(times))


def passes(fit: MadeFit, precision: str, peak: dict[str, float] | None) -> dict[str, Any]:
    """One pass and one leverage pass: milliseconds, and what was counted by hand.

    FLOPs of a pass: the product of the K + 1 columns with themselves, 2N(K + 1)², and the cubics, 6NK. Bytes: compact
    rows once, and a tile's columns written once and read twice.
    """
    held, beta = fit.held, fit.design.to_flat(fit.smoothed.beta)
    n, each = held.made.y.shape
    N, K, c, size = n * each, held.turn.size, held.made.z.shape[1], 8 if precision == "float64" else 4
    P = fit.smoothed.inverse.segment(None)
    out: dict[str, Any] = {"rows": N, "columns_of_a_row": K, "columns_of_a_context": c, "device_gb": held.bytes / 1e9}
    work = {
        "pass": (lambda: held.sweep(0, beta), 2 * N * (K + 1) ** 2 + 6 * N * K, 3),
        "leverage_pass": (lambda: held.leverage(0, beta, P), 2 * N * K * K + 10 * N * K, 4),
    }
    for name, (function, flops, touched) in work.items():
        ms = timed(function, 5)
        moved = held.bytes + touched * N * (K + 1) * size
        one: dict[str, Any] = {
            "ms": ms,
            "tflops": flops / ms / 1e9,
            "gb_per_s": moved / ms / 1e6,
            "gb_per_s_of_compact_rows_alone": held.bytes / ms / 1e6,
        }
        if peak is not None:
            one |= {"share_of_peak_flops": flops / ms * 1e3 / peak[precision]}
            one |= {"share_of_peak_bandwidth": moved / ms * 1e3 / peak["bytes"]}
        out[name] = one
    return out


def compared(fit: MadeFit) -> dict[str, Any]:
    """The engine's own pass on the same compact rows: how far the optima are apart."""
    begin = time.perf_counter()
    design, y, offset = on_host(fit)
    fetched = time.perf_counter()
    own = smooth_fit(design, y, "binomial", offset=offset)
    done = time.perf_counter()
    se = np.sqrt(np.diag(own.Vp))
    apart = np.abs(fit.smoothed.beta - own.beta)
    return {
        "seconds_to_fetch_rows": fetched - begin,
        "seconds_of_the_engine_on_the_processor": done - fetched,
        "coefficients_apart": float(apart.max()),
        "coefficients_apart_in_se": float((apart / se).max()),
        "log_smoothing_parameters_apart": float(np.abs(fit.smoothed.rho - own.rho).max()),
        "reml_apart_relative": float(abs(fit.smoothed.score / own.score - 1.0)),
        "iterations": [dict(fit.smoothed.iterations), dict(own.iterations)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contexts", type=int, default=5_000_000)
    parser.add_argument("--points", type=int, default=20, help="reference points of each context")
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--precision", choices=("float64", "float32"), default="float64")
    parser.add_argument("--cpu", action="store_true", help="JAX's programs on the processor")
    parser.add_argument("--check", action="store_true", help="fit the same rows with the engine's own pass too")
    arguments = parser.parse_args()
    device = Device("cpu" if arguments.cpu else "gpu", arguments.precision)
    kind = device.jax.device_kind
    path = simulated(arguments.contexts, seed=1)
    shift = np.random.default_rng(2).random(2)
    seconds: list[float] = []
    fit = None
    for _ in range(1 + arguments.repeats):
        fit = None  # rows of the fit before are let go
        begin = time.perf_counter()
        fit = fit_chain(FORMULA, path, BOX, arguments.points, shift, device)
        seconds.append(time.perf_counter() - begin)
        stages = {name: round(value, 4) for name, value in fit.seconds.items()}
        inside = {name: round(value, 4) for name, value in fit.smoothed.timings.items()}
        print(json.dumps({"seconds": round(seconds[-1], 4), "stages": stages, "fit": inside}), flush=True)
    assert fit is not None
    peak = next((value for name, value in PEAKS.items() if name in kind), None)
    out = {
        "device": kind,
        "jax": jax.__version__,
        "contexts": arguments.contexts,
        "precision": arguments.precision,
        "first_fit_seconds": seconds[0],
        "fit_seconds": seconds[1:],
        "fit_seconds_median": float(np.median(seconds[1:])) if seconds[1:] else None,
        "iterations": dict(fit.smoothed.iterations),
        "converged": fit.smoothed.converged,
        "reml": fit.smoothed.score,
        "a_float64_step_would_still_move_se": left(fit.design, fit.held.response, 0, fit.smoothed),
        **passes(fit, arguments.precision, peak),
    }
    if arguments.check:
        out["check"] = compared(fit)
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
