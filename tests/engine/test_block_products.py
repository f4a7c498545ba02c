"""Small products inside compiled loops: any number of rows and columns, on processors with wide vectors and without."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from unnorm.engine.block_products import WIDTH, add_products, padded

# (rows, columns, terms of a sum): around the four rows and the WIDTH columns that are taken at a time
SHAPES = [(1, 1, 1), (3, WIDTH, 5), (4, WIDTH + 1, 64), (5, 2 * WIDTH - 1, 7), (40, 225, 64), (9, 3, 0), (0, 5, 3)]


def made(rows: int, columns: int, n: int, turned: bool) -> tuple[np.ndarray, np.ndarray]:
    """What `add_products` adds to given sums, and what it should."""
    import numba

    @numba.njit
    def call(out, a, across, along, at, b, start):
        add_products(out, rows, columns, a, at, across, along, b, start, b.shape[1], n)

    rng = np.random.default_rng(rows + columns + n)
    a = rng.normal(size=(n, rows) if turned else (rows, n))
    b = np.zeros((n + 1, padded(columns) + 4))  # begins in the second row: places are counted from the first
    b[1:, :columns] = rng.normal(size=(n, columns))
    out = rng.normal(size=(rows + 1, padded(columns)))
    expected = out.copy()
    expected[:rows, :columns] += (a.T if turned else a) @ b[1:, :columns]
    before = np.concatenate([np.full(3, np.nan), a.ravel()])
    steps = (1, rows) if turned else (n, 1)
    call(out, before, *steps, 3, b, b.shape[1])
    return out, expected


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_are_added_and_nothing_else_is_touched(shape: tuple[int, int, int], turned: bool) -> None:
    found, expected = made(*shape, turned)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    assert np.array_equal(found[shape[0] :], expected[shape[0] :])


def test_four_lanes_and_eight_give_the_same_sums() -> None:
    """Each sum is taken in the order of its terms, however many stand beside each other."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import numpy as np\n"
        "from engine.test_block_products import made\n"
        "from unnorm.engine.block_products import WIDTH\n"
        "print(WIDTH, np.abs(np.subtract(*made(40, 30, 64, True))).max() < 1e-13)"
    )
    features = "+avx,+avx2,+fma,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16"
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    plain = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_DISABLE_JIT": "0"}
    for environment in (plain, {**plain, "NUMBA_CPU_FEATURES": features}):
        if environment is not plain and WIDTH == 12 and not _x86():
            continue
        done = subprocess.run([sys.executable, "-c", code, tests], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["12", "True"]


def _x86() -> bool:
    import platform

    return platform.machine() in ("x86_64", "AMD64")
