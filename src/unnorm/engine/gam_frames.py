"""`gam` from a Dask data frame: each partition stays with the worker that has it, and only sums come back.

Two passes come before the fit: how many rows each partition keeps, and which of them terms are built on (`placing`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, final

from .._base.blas import single_threaded
from .._base.extras import extra
from .._base.frames import table as as_table
from .._base.workers import gathered, kept_by, large_graphs
from ..errors import CombinationError, DataError, InputError
from . import gam_rows
from .dask_parts import DaskParts
from .gam_files import Wanted, beside, in_common, no_rows, sampled_rows
from .gam_parts import cuts, met
from .parts import PART, Count, Held, count_of
from .placing import Sampler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .gam_rows import TableRows
    from .parts import Parts
    from .plan import Plan
    from .resources import Resources


def is_frame(data: Any) -> bool:
    """Whether the data are a Dask data frame; other Dask collections are refused."""
    dask = sys.modules.get("dask")
    if dask is None or not dask.is_dask_collection(data):
        return False
    if not hasattr(data, "to_delayed") or not hasattr(data, "npartitions") or not hasattr(data, "columns"):
        raise InputError(
            "Of Dask's collections un.gam takes data frames (dask.dataframe), which have named columns; got "
            f"{type(data).__name__}. Convert it with dask.dataframe.from_dask_array(…, columns=…) or .to_dataframe()."
        )
    return True


def workers_of(data: Any, workers: Any) -> Any:
    """Who fits these data: of a Dask data frame the present client, unless others are named."""
    if workers is not None or not is_frame(data):
        return workers
    try:
        return extra("distributed", "dask", "A Dask data frame").default_client()
    except ValueError:  # there is none
        return None


@final
@dataclass(frozen=True)
class FrameRows:
    """The rows of a Dask data frame that a model reads, with a client's workers."""

    client: Any
    wanted: Wanted
    frames: tuple[Any, ...]  # a future each
    kept: tuple[int, ...]  # rows of each partition that are fitted
    n: int  # rows of all partitions

    def _map(self, run: Any, *columns: Sequence[Any], **common: Any) -> list[Any]:
        def submit() -> list[Any]:
            with large_graphs():
                return self.client.map(partial(run, **common), *map(list, columns), pure=False, batch_size=None)

        return gathered(self.client, submit)

    def sampled(self) -> tuple[TableRows, int]:
        """The rows that terms are built on, and how many rows are fitted."""
        rows = sum(self.kept)
        if rows == 0:
            raise DataError("Every row of the Dask data frame has a missing or infinite value: no row is left to fit.")
        some = [i for i, count in enumerate(self.kept) if count]
        at = [0, *accumulate(self.kept[i] for i in some)]
        frames = [self.frames[i] for i in some]
        # the first partition says which columns are no factors
        found = self._map(_sample, frames[:1], at[:1], some[:1], wanted=self.wanted, n=rows, never=())
        never = tuple(found[0][0].never)
        if len(some) > 1:
            found += self._map(_sample, frames[1:], at[1:-1], some[1:], wanted=self.wanted, n=rows, never=never)
        whole = Sampler(rows)
        for one, _ in found:
            whole.join(one)
        same = in_common([categories for _, categories in found])
        return replace(sampled_rows(whole.columns(), self.n, rows), categories=same), rows

    def parts(self, plan: Plan, family: str, rows: int, resources: Resources) -> Parts:
        """The rows in parts, with the workers that have their partitions."""
        resources.require_workers(plan, rows, self.wanted.numbers)
        sent = kept_by(self.client, plan)
        some = [i for i, count in enumerate(self.kept) if count]
        with large_graphs():
            groups = tuple(
                self.client.submit(_made, sent, self.frames[i], i, self.wanted, family, pure=False) for i in some
            )
        counts = self._map(_counts, groups)
        starts = (0, *accumulate(len(one) for one in counts))
        return DaskParts(plan, None, self.client, sent, groups, starts)


@contextmanager
def frame_rows(data: Any, wanted: Wanted, client: Any) -> Iterator[FrameRows]:
    """The rows of a Dask data frame, while the block lasts."""
    if client is None:
        raise CombinationError(
            "A Dask data frame is fitted where its partitions are, and there is no client of dask.distributed: pass "
            "workers=client, or workers= and a number of processes, or the data themselves, data.compute()."
        )
    wanted.require([str(name) for name in data.columns])
    extra("distributed", "dask", "workers=")
    frames = tuple(client.compute(data[list(wanted.columns())].to_delayed()))
    bare = FrameRows(client, wanted, frames, (), 0)
    counts = bare._map(_kept, frames, range(len(frames)), wanted=wanted)
    yield FrameRows(client, wanted, frames, tuple(kept for kept, _ in counts), sum(n for _, n in counts))


# what a worker runs


def _read(frame: Any, i: int, wanted: Wanted) -> TableRows:
    """A partition's rows, those with missing values refused or left out."""
    w = wanted
    if len(frame) == 0:
        return no_rows(w)
    try:
        return gam_rows.read(as_table(frame), w.response, w.names, w.weights, w.offsets, None, w.missing, "formula")
    except DataError as error:
        if "Every row has" in str(error):
            return no_rows(w)
        raise DataError(f"Partition {i} of the Dask data frame: {error}") from error


def _kept(frame: Any, i: int, *, wanted: Wanted) -> tuple[int, int]:
    return _read(frame, i, wanted).y.size, len(frame)


# long: what a partition is read with
def _sample(
    frame: Any, at: int, i: int, *, wanted: Wanted, n: int, never: tuple[str, ...]
) -> tuple[Sampler, dict[str, Any]]:
    """The partition's share of the sample, and the declared levels of its categories."""
    rows = _read(frame, i, wanted)
    sampler = Sampler(n, at=at, never=set(never))
    sampler.meet(rows.columns, beside(rows))
    return sampler, dict(rows.categories)


# long: what a partition is met with
def _made(plan: Plan, frame: Any, i: int, wanted: Wanted, family: str) -> tuple[Held, ...]:
    rows, out = _read(frame, i, wanted), []
    with single_threaded():
        for a, b in cuts(rows.y.size, [rows.columns[name] for name in plan.names], PART):
            columns = {name: column[a:b] for name, column in rows.columns.items()}
            weights, offset = (None if one is None else one[a:b] for one in (rows.weights, rows.offset))
            out.append(met(plan, family, rows.y[a:b], columns, weights, offset))
    return tuple(out)


def _counts(parts: tuple[Held, ...]) -> list[Count]:
    return [count_of(part) for part in parts]
