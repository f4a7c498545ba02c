"""Products of contexts by functions, as a pass over the rows makes them: `python benchmarks/products.py`.

64 contexts with 40 columns by 225 functions (the paper's formula), by the engine's own loop and by BLAS, on one thread,
in turn. `NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx,+avx2,+fma` leaves AVX-512 out.
"""

from __future__ import annotations

import time

import numba
import numpy as np

from unnorm._base.blas import single_threaded
from unnorm.engine.block_products import WIDTH, add_products, padded

CONTEXTS, COLUMNS, FUNCTIONS, CALLS, ROUNDS = 64, 40, 225, 500, 15


@numba.njit
def own(z: np.ndarray, along: np.ndarray, total: np.ndarray) -> None:
    for _ in range(CALLS):
        add_products(total, COLUMNS, FUNCTIONS, z, 0, 1, COLUMNS, along, 0, along.shape[1], CONTEXTS)


@numba.njit
def blas(z: np.ndarray, along: np.ndarray, product: np.ndarray) -> None:
    for _ in range(CALLS):
        np.dot(z.T, along, product)


def main() -> None:
    rng = np.random.default_rng(0)
    z, along = rng.random((CONTEXTS, COLUMNS)), np.zeros((CONTEXTS, padded(FUNCTIONS)))
    along[:, :FUNCTIONS] = rng.random((CONTEXTS, FUNCTIONS))
    given = {
        "own loop": (own, (z, along, np.zeros((COLUMNS, along.shape[1])))),
        "BLAS": (blas, (z, np.ascontiguousarray(along[:, :FUNCTIONS]), np.empty((COLUMNS, FUNCTIONS)))),
    }
    best = dict.fromkeys(given, np.inf)
    with single_threaded():
        for rounds in range(ROUNDS + 1):
            for name, (work, arguments) in given.items():
                since = time.perf_counter()
                work(*arguments)
                if rounds:  # the first compiles
                    best[name] = min(best[name], (time.perf_counter() - since) / CALLS)
    for name, seconds in best.items():
        rate = 2e-9 * CONTEXTS * COLUMNS * FUNCTIONS / seconds
        print(f"{name:9s} {1e6 * seconds:6.1f} µs a product  {rate:6.1f} GFLOP/s")
    print(f"ratio {best['BLAS'] / best['own loop']:.2f}, {WIDTH // 3} doubles in a vector")


if __name__ == "__main__":
    main()
