"""Time per step of a neural energy with 10⁶ reference points a step, and what share of the card's peak it reaches.

    PYTHONPATH=src python benchmarks/gpu/neural_energy.py                        # on a GPU: 10⁶ points, width 128
    PYTHONPATH=src python benchmarks/gpu/neural_energy.py --points 20000         # on a CPU

needs jax, optax, numpy and scipy; prints JSON. One step: a minibatch of data, fresh reference points drawn on the
device, the logistic loss of a network with two hidden layers, its gradient, and an Adam update. FLOPs are counted by
hand (forward 2·N·Σ in·out, backward twice that), and XLA's own count stands beside them; bandwidth is XLA's bytes
accessed over the time.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import unnorm as un
from unnorm.references import IID, Uniform
from unnorm.solvers.stochastic.estimator import StepDesign, estimator
from unnorm.solvers.stochastic.loop import block
from unnorm.solvers.stochastic.step import compiled, precision

# Data-sheet peaks, dense: float32 outside tensor cores, TF32 inside them, memory.
PEAKS = {
    "H200": {"float32": 67e12, "tf32": 494e12, "bytes": 4.8e12},
    "H100": {"float32": 67e12, "tf32": 494e12, "bytes": 3.35e12},
    "A100": {"float32": 19.5e12, "tf32": 156e12, "bytes": 2.0e12},
}


def energy(width: int) -> tuple[un.Energy, int]:
    """−f: a multilayer perceptron 2 → width → width → 1, and its multiplications for one point."""
    rng = np.random.default_rng(0)
    sizes = [(2, width), (width, width), (width, 1)]
    layers = [{"w": rng.normal(0, (2 / a) ** 0.5, (a, b)), "b": np.zeros(b)} for a, b in sizes]

    def f(layers: list[dict[str, Any]], y: Any) -> Any:
        h = y
        for layer in layers[:-1]:
            h = jax.nn.silu(h @ layer["w"] + layer["b"])
        return (h @ layers[-1]["w"] + layers[-1]["b"])[0]

    return un.Energy(f, layers, un.Box((-1, 1), (-1, 1))), sum(a * b for a, b in sizes)


def data(n: int) -> un.Observations:
    rng = np.random.default_rng(1)
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.clip(rng.normal(0.6, 0.1, n), 0.05, 0.95)
    return un.iid(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--points", type=int, default=None, help="reference points a step (10⁶ on a GPU, 2·10⁴ on a CPU)"
    )
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch", type=int, default=None)
    parser.add_argument("--steps", type=int, default=None)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument(
        "--tf32", action="store_true", help="allow TF32 in matrix products (about three decimal digits)"
    )
    arguments = parser.parse_args()
    device = jax.devices()[0]
    gpu = device.platform == "gpu"
    points = arguments.points or (1_000_000 if gpu else 20_000)
    batch = arguments.batch or max(1, points // 100)
    steps = arguments.steps or (50 if gpu else 5)
    references = max(1, points // batch)
    if arguments.tf32:
        jax.config.update("jax_default_matmul_precision", "tensorfloat32")

    model, multiplications = energy(arguments.width)
    obs = data(max(batch, 100_000 if gpu else batch))
    design = StepDesign(batch, references, IID(), dtype=arguments.dtype)
    e = estimator(model, obs, Uniform(), un.Constant(), design, "ncd")
    optimiser = optax.adam(1e-3)
    with precision(arguments.dtype):
        loop = compiled(block, (0, 1, 2))
        phi = jnp.asarray(e.start(np.random.default_rng(0)), dtype=arguments.dtype)
        state = optimiser.init(phi)
        constants = e.device_constants
        key = jax.random.key(0)
        P = np.zeros((1, 1), dtype=arguments.dtype)

        def run(phi: Any, state: Any, first: int) -> Any:
            scanned = (e.source.block(0, first, steps), np.arange(first, first + steps, dtype=np.int32))
            out = loop(e.step, optimiser, False, phi, state, (P, e.device_data, constants, key), scanned)
            jax.block_until_ready(out)
            return out

        begin = time.perf_counter()
        phi, state, result = run(phi, state, 0)
        compile_seconds = time.perf_counter() - begin
        times = []
        for repeat in range(1, 6):
            begin = time.perf_counter()
            phi, state, result = run(phi, state, repeat * steps)
            times.append((time.perf_counter() - begin) / steps)
        one = jax.jit(
            lambda phi, data, constants, x: jax.value_and_grad(
                lambda p: e.step.objective(p, data, e.step.draw(constants, key, x))[0]
            )(phi)
        )
        x = jax.tree.map(lambda leaf: leaf[0], e.source.block(0, 0, 1))
        lowered = one.lower(phi, e.device_data, constants, x).compile()
        cost = lowered.cost_analysis() or {}
        cost = cost[0] if isinstance(cost, list) else cost
    seconds = float(np.median(times))
    rows = batch * references + batch
    flops = 3 * 2 * multiplications * rows
    moved = float(cost.get("bytes accessed", float("nan")))
    peak = next((value for name, value in PEAKS.items() if name in device.device_kind), None)
    out: dict[str, Any] = {
        "device": device.device_kind,
        "platform": device.platform,
        "jax": jax.__version__,
        "reference_points_a_step": batch * references,
        "data_a_step": batch,
        "parameters": model.size,
        "width": arguments.width,
        "dtype": arguments.dtype,
        "tf32": arguments.tf32,
        "milliseconds_a_step": 1e3 * seconds,
        "milliseconds_spread": [1e3 * min(times), 1e3 * max(times)],
        "compile_and_first_block_seconds": compile_seconds,
        "flops_a_step_by_hand": flops,
        "flops_a_step_by_xla": float(cost.get("flops", float("nan"))),
        "achieved_tflops": flops / seconds / 1e12,
        "bytes_a_step_by_xla": moved,
        "achieved_gb_per_s": moved / seconds / 1e9,
        "value": float(result.value),
        "effective_share": float(result.ess),
    }
    if peak is not None:
        matrix = peak["tf32"] if arguments.tf32 else peak["float32"]
        out["share_of_peak_flops"] = flops / seconds / matrix
        out["share_of_peak_bandwidth"] = moved / seconds / peak["bytes"]
        out["peak"] = {"flops": matrix, "bytes_per_s": peak["bytes"]}
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
