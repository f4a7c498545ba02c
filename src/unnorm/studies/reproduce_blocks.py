"""Work that survives an interruption: each finished block is a file, written whole or not at all."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._base.atomic import write_text
from .._base.workers import mapped
from ..errors import InputError

Row = tuple[Any, ...]
# One thread for each worker's linear algebra and XLA: the workers themselves fill the cores.
_SINGLE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def same_configuration(folder: Path, configuration: Mapping[str, Any], name: str = "configuration.json") -> None:
    """Write down what the numbers in `folder` depend on; refuse a folder whose numbers depend on something else."""
    path = folder / name
    wanted = json.loads(json.dumps(configuration))
    if not path.exists():
        write_text(path, json.dumps(wanted, indent=1) + "\n")
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is damaged ({error}); choose another folder with --out, or remove this one."
        ) from error
    if not isinstance(found, dict):
        raise InputError(
            f"{path} is damaged (no list of settings); choose another folder with --out, or remove this one."
        )
    changed = sorted(key for key in {*wanted, *found} if wanted.get(key) != found.get(key))
    if changed:
        pairs = [(_short(key), _short(found.get(key)), _short(wanted.get(key))) for key in changed[:8]]
        some = [f"{key} was {was} and is now {now}" for key, was, now in pairs]
        differences = "; ".join([*some, *(["…"] if len(changed) > 8 else [])])
        raise InputError(
            f"{folder} holds repetitions of another configuration: {differences}. "
            "Give the same again to go on, or another folder with --out."
        )


def _short(value: Any) -> str:
    """For a sentence: a file may hold anything."""
    text = " ".join(value.split()) if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


_SEAL = "# sha256 "  # before the digest of what stands above, in the last line of a block


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Row]) -> None:
    """A CSV file in one step; None is an empty cell, floats keep every digit."""
    write_text(path, _csv(header, rows))


def write_block(path: Path, header: Sequence[str], rows: Iterable[Row]) -> None:
    """A CSV file with the digest of its text in the last line."""
    text = _csv(header, rows)
    write_text(path, f"{text}{_SEAL}{hashlib.sha256(text.encode('utf-8')).hexdigest()}\n")


def read_block(path: Path, header: Sequence[str]) -> list[list[str]]:
    """What `write_block` wrote, as text; a block that was changed since is refused."""
    try:
        body, _, seal = path.read_bytes().decode("utf-8").rpartition(_SEAL)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); remove it, and the same command makes it again.") from error
    if seal.strip() != hashlib.sha256(body.encode("utf-8")).hexdigest():
        raise InputError(f"{path} is not as it was written; remove it, and the same command makes it again.")
    return _rows(path, io.StringIO(body, newline=""), header)


def _csv(header: Sequence[str], rows: Iterable[Row]) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(header)
    for row in rows:
        table.writerow(["" if cell is None else repr(cell) if isinstance(cell, float) else cell for cell in row])
    return text.getvalue()


def read_rows(path: Path, header: Sequence[str]) -> list[list[str]]:
    """What `write_rows` wrote, as text."""
    with path.open(encoding="utf-8", newline="") as file:
        return _rows(path, file, header)


def _rows(path: Path, file: Iterable[str], header: Sequence[str]) -> list[list[str]]:
    table = csv.reader(file)
    found = next(table, [])
    if found != list(header):
        raise InputError(f"{path} must have the columns {', '.join(header)}; got {', '.join(found) or 'nothing'}.")
    return list(table)


def run_blocks(
    todo: Sequence[tuple[Path, tuple[Any, ...]]],
    work: Callable[..., list[Row]],
    header: Sequence[str],
    workers: Any,
    done: Callable[[int], None],
) -> None:
    """`work(*arguments)` for each block, its rows written to the block's path; `done(i)` as block i is finished.

    `workers`: the address or the client of a Dask cluster, or a number of processes. These are spawned (JAX does not
    survive a fork); they end at once when this one is interrupted, and with it however it ends.
    """
    if not isinstance(workers, int):

        def written(i: int, rows: list[Row]) -> None:
            write_block(todo[i][0], header, rows)
            done(i)

        mapped(work, [arguments for _, arguments in todo], workers, done=written)
        return
    jobs = min(workers, max(len(todo), 1))
    if jobs == 1:
        for i, (path, arguments) in enumerate(todo):
            write_block(path, header, work(*arguments))
            done(i)
        return
    from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
    from multiprocessing import active_children, get_context

    others = set(active_children())
    spawn = get_context("spawn")
    with _environment(_SINGLE), ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_end_with_parent) as pool:
        running: dict[Future[list[Row]], int] = {}
        waiting = iter(enumerate(todo))
        try:
            while True:
                for i, (_, arguments) in waiting:
                    running[pool.submit(work, *arguments)] = i
                    if len(running) > jobs:
                        break
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    i = running.pop(future)
                    write_block(todo[i][0], header, future.result())
                    done(i)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in set(active_children()) - others:  # or they would finish the blocks that they have begun
                worker.terminate()
            raise


def _end_with_parent() -> None:
    """In a worker: leave when the parent has ended, killed or not; the queue that a worker reads does not tell it."""
    import threading
    from multiprocessing import parent_process

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Variables that the spawned processes inherit."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
