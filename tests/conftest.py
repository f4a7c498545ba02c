"""For every test: Ctrl-C is heard, also where the tests were started in the background, whose children ignore it; two
Dask workers for those that ask; one place for what JAX compiles; with UNNORM_TIMES set, seconds at the end."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# a busy machine is no reason to fail
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# what JAX compiled for one test is there for the others, in all processes of a run: a tenth of its time
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="unnorm-tests-jax-")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    atexit.register(shutil.rmtree, os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers in threads of this process: the same messages, and no processes to start."""
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=logging.CRITICAL
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Seconds by folder of tests, all processes together, fixtures included."""
    if "UNNORM_TIMES" not in os.environ:
        return
    seconds: Counter[str] = Counter()
    for report in (one for reports in terminalreporter.stats.values() for one in reports):
        if isinstance(report, pytest.TestReport):
            place = report.nodeid.partition("::")[0].split("/")
            seconds["/".join(place[:2])] += report.duration
    terminalreporter.section("seconds of tests")
    for place, spent in seconds.most_common():
        terminalreporter.line(f"{spent:8.1f}  {place}")
