"""Small products inside compiled loops: any number of rows and columns, on processors with wide vectors and without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


_SUMS = """
import sys; sys.path.insert(0, sys.argv[1])
from engine.test_block_products import gathered
gathered(sys.argv[2:])
"""


def gathered(files: list[str]) -> None:
    """Print WIDTH and the error of sums gathered here: by what a file holds, or to be kept in it."""
    import pickle

    from unnorm.engine.gather import Gather
    from unnorm.engine.segment import Block

    rng = np.random.default_rng(0)
    matrix, cross = rng.normal(size=(30, 13)), rng.normal(size=(30, 30))
    cross += cross.T
    file = Path(files[0]) if files else None
    if file is not None and file.exists():
        gather, sums = pickle.loads(file.read_bytes())
    else:
        gather = Gather.of((Block(slice(0, 30), slice(0, 13), matrix),), 30, 13)
        sums = np.hstack([cross, np.zeros((30, gather.beyond))])
        if file is not None:
            file.write_bytes(pickle.dumps((gather, sums)))
    last, offset, width = gather.matrices.size, *gather.raw[-1, 2:]
    assert offset + 29 * width + padded(13) <= last, "a row of the matrix ends before a vector does"
    assert sums.shape[1] >= padded(30), "a row of the sums ends before a vector does"
    print(WIDTH, np.abs(gather.both(np.zeros(30), sums)[1] - matrix.T @ cross @ matrix).max() < 1e-10)


def run(environment: dict[str, str], *files: object) -> list[str]:
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    names = [str(file) for file in files]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0", **environment}
    done = subprocess.run([sys.executable, "-c", _SUMS, tests, *names], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_processors_that_share_a_cache_on_disk_load_code_for_vectors_of_their_own_length(tmp_path: Path) -> None:
    """Numba's key is the processor's name and features, by whichever way they are known."""
    import llvmlite.binding

    cache, name = {"NUMBA_CACHE_DIR": str(tmp_path)}, llvmlite.binding.get_host_cpu_name()
    assert run(cache) == [str(WIDTH), "True"]
    assert run({**cache, "NUMBA_CPU_NAME": name}) == [str(WIDTH), "True"]  # the same key
    assert run({**cache, "NUMBA_ENABLE_AVX": "0"}) == ["12", "True"]
    assert run({**cache, "NUMBA_CPU_NAME": "generic"}) == ["12", "True"]
    assert run(cache) == [str(WIDTH), "True"]


def test_blocks_can_be_gathered_where_vectors_are_longer_or_shorter(tmp_path: Path) -> None:
    """A plan goes to workers on other machines."""
    plain = {"NUMBA_CPU_NAME": "generic"}
    for first, second in ((plain, {}), ({}, plain)):
        file = tmp_path / f"from-{first.get('NUMBA_CPU_NAME', 'here')}"
        assert run(first, file)[1] == "True"
        assert run(second, file)[1] == "True"
