"""`import unnorm` is light."""

import subprocess
import sys
import time


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, unnorm; print(*sorted(m for m in sys.modules))"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    for heavy in ("jax", "matplotlib", "scipy", "numba", "pandas", "polars", "pyarrow", "shapely", "numpy"):
        assert heavy not in loaded, f"import unnorm loads {heavy}"


def test_import_takes_under_300_ms() -> None:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import unnorm"], check=True)
        times.append(time.perf_counter() - start)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    assert min(times) - (time.perf_counter() - start) < 0.3


def test_every_public_name_resolves() -> None:
    import unnorm as un

    for name in un.__all__:
        assert getattr(un, name) is not None
    assert set(un.__all__) <= set(dir(un))
