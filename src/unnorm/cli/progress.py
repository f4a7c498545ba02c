"""Progress on stderr: a bar for anything that takes longer than two seconds, nothing with --quiet."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import final

from .._base.counting import listening

DELAY = 2.0  # seconds before a bar shows
TICK = 0.5  # seconds between its updates, whether or not a step has ended


def counted(what: str, done: int, of: int | None) -> str:
    """The name of a step with what is done of it.

    >>> counted("fitting", 3, 14), counted("fitting", 7, None)
    ('fitting 3/14', 'fitting, pass 7')
    """
    return f"{what}, pass {done}" if of is None else f"{what} {done}/{of}"


@final
class Progress:
    """The steps of a job by name; the bar shows only where the job takes long, and its clock runs on during a step."""

    def __init__(self, steps: Sequence[str], quiet: bool = False) -> None:
        from tqdm import tqdm

        # A terminal gets a moving bar; a log gets nothing that moves.
        self._bar = tqdm(
            total=len(steps),
            file=sys.stderr,
            disable=quiet or None,  # None: only on a terminal
            delay=DELAY,
            miniters=0,  # update(0) refreshes
            ncols=min(shutil.get_terminal_size().columns, 80),  # 80, and some rows, where a terminal does not say
            nrows=24,
            bar_format="{desc:<28} {bar:24} {n_fmt}/{total_fmt} [{elapsed}]",
            leave=False,
        )
        self._over = Event()
        self._ticking = Thread(target=self._tick, daemon=True)
        if not self._bar.disable:
            self._ticking.start()

    def _tick(self) -> None:
        wait = DELAY
        while not self._over.wait(wait):
            self._bar.update(0)
            wait = TICK

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """One of the steps, while it runs; levels, folds and passes over rows are counted beside its name."""

        def heard(done: int, of: int | None) -> None:
            self._bar.set_description_str(counted(what, done, of), refresh=False)

        self._bar.set_description_str(what, refresh=False)
        with listening(heard):
            yield
        self._bar.update()

    def close(self) -> None:
        self._over.set()
        if self._ticking.is_alive():
            self._ticking.join()
        self._bar.close()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
