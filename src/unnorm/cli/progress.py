"""Progress on stderr: a bar for anything that takes longer than two seconds, nothing with --quiet."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

DELAY = 2.0  # seconds before a bar shows


class Progress:
    """Steps of a job, each named; the bar shows only where the job lasts."""

    def __init__(self, steps: int, quiet: bool = False) -> None:
        from tqdm import tqdm

        # A terminal gets a moving bar; a log gets nothing that moves.
        self._bar = tqdm(
            total=steps,
            file=sys.stderr,
            disable=quiet or None,  # None: only on a terminal
            delay=DELAY,
            bar_format="{desc:<28} {bar:24} {n_fmt}/{total_fmt} [{elapsed}]",
            leave=False,
        )

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        self._bar.set_description_str(what)
        yield
        self._bar.update()

    def close(self) -> None:
        self._bar.close()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
