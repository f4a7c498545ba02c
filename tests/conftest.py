"""For every test: Ctrl-C is heard, also where the tests were started in the background, whose children ignore it; and
two Dask workers for those that ask."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from typing import Any

import pytest

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
