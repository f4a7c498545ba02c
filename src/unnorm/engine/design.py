"""The design: terms met with columns, as compact rows in segments, never as the dense matrix.

Where a factor partitions the rows, each level has a segment with columns of its own; or, where these are the same
functions for every level (random effects, factor smooths), one segment has what is shared and `own` the rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._base.threads import BRIEF, run_tasks
from .arrow import Arrow
from .extents import Extent, extent
from .levels import LevelColumns
from .penalties import Penalties
from .segment import ResponseRows, Segment

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm


@dataclass(frozen=True)
class Placement:
    """Where some of a term's coefficients live: user's order `user`, arrow order `flat`, β_user = U β_flat.

    Of a term that each level has alike, `user` and `index` are (levels, k), and `flat` is the first level's.
    """

    term: int  # −1: the intercept
    user: np.ndarray
    flat: slice
    rotation: np.ndarray  # U: the penalties' range first, then their null space
    index: np.ndarray | None = None

    @property
    def every(self) -> bool:
        """Whether it is one block of each level."""
        return self.index is not None

    @property
    def at(self) -> slice | np.ndarray:
        """What picks its coefficients from a flat vector."""
        return self.flat if self.index is None else self.index

    def turned(self, values: np.ndarray, U: np.ndarray) -> np.ndarray:
        """U applied to coefficients, (k,) or (k, m), of each level where there is a block of each."""
        return values @ U.T if self.every and values.ndim == 2 else np.matmul(U, values)


class Lever(Protocol):
    """A matrix P as the leverage pass reads it."""

    def __call__(self, level: int | None) -> np.ndarray:
        """P on the shared columns and those of one level (None: shared alone)."""
        ...

    def every(self) -> tuple[np.ndarray, np.ndarray]:
        """P_l0 (L, k, s) and P_ll (L, k, k) of all levels at once, where they are alike."""
        ...


class RowsElsewhere(Protocol):
    """Rows that another device holds with their response, and the sums over them that a fit asks for."""

    def sweep(self, rows: ResponseRows, family: int, beta: np.ndarray) -> tuple[float, np.ndarray, Arrow]: ...

    def precisely(self, rows: ResponseRows, family: int, beta: np.ndarray) -> np.ndarray:
        """The score in float64, whatever the arithmetic of the passes."""
        ...

    def leverage(self, rows: ResponseRows, family: int, beta: np.ndarray, P: np.ndarray) -> np.ndarray: ...

    def predict(self, beta: np.ndarray) -> np.ndarray: ...

    def extremes(self, beta: np.ndarray) -> tuple[float, float]: ...

    def every(self, k: int) -> tuple[RowsElsewhere, ResponseRows, int]: ...


def _in_turn(labels: np.ndarray) -> bool:
    """Whether they are consecutive numbers, as the contexts of runs usually are."""
    return labels.size > 0 and bool(np.all(labels[1:] == labels[:-1] + 1))


# long: what the iteration and the readers of a fit ask of its rows; `PartitionedDesign` answers the same
@dataclass(frozen=True)
class Design:
    """Rows in compact form, with the map between the terms' coefficients (user) and the engine's (flat, rotated)."""

    terms: tuple[BuiltTerm, ...]
    slices: Mapping[str, slice]
    segments: tuple[Segment, ...]
    placements: tuple[Placement, ...]
    penalties: Penalties
    fixed: np.ndarray  # (M,) the terms' own fixed smoothing parameters, nan where free
    order: np.ndarray | None  # design row i is the caller's row order[i]; None: the same
    run_ids: np.ndarray | None  # the context of each run, where contexts were given or found
    levels: int
    rows: int
    errors: Mapping[str, float]  # label → largest error of its local form, relative
    kinds: Mapping[str, str]  # label → "local", "factor", "dense", "context", "level"
    own: LevelColumns | None = None  # columns that each level has alike; then there is one segment, of what is shared
    elsewhere: RowsElsewhere | None = None  # then the passes of a fit are made there
    exact: bool = False  # whether no columns are approximate, but for rounding

    @property
    def size(self) -> int:
        """p."""
        return int(self.penalties.starts[-1])

    @property
    def bytes(self) -> int:
        """What the compact rows take."""
        own = 0 if self.own is None else self.own.x.nbytes
        return sum(s.bytes for s in self.segments) + own + (self.order.nbytes if self.order is not None else 0)

    @property
    def nonzeros(self) -> int:
        """Raw functions that a row has besides its context's: each pair of them is a product in XᵀWX."""
        return max((segment.nonzeros for segment in self.segments), default=0)

    # the two coordinates

    def to_user(self, flat: np.ndarray) -> np.ndarray:
        """Coefficients (or the rows of a matrix) from the engine's coordinates to the terms'."""
        out = np.empty(flat.shape)
        for place in self.placements:
            out[place.user] = place.turned(flat[place.at], place.rotation)
        return out

    def to_flat(self, user: np.ndarray) -> np.ndarray:
        """The other way."""
        out = np.empty(user.shape)
        for place in self.placements:
            out[place.at] = place.turned(user[place.user], place.rotation.T)
        return out

    def sort(self, values: np.ndarray) -> np.ndarray:
        """Caller's row order → the design's."""
        return values if self.order is None else values[self.order]

    def unsort(self, values: np.ndarray) -> np.ndarray:
        """The design's row order → the caller's."""
        if self.order is None:
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out

    # the sweeps

    def _tasks(self, threads: int) -> list[tuple[int, int, int]]:
        """(segment, first run, last run) so that every thread has its share of rows."""
        if threads not in self._shares:
            self._shares[threads] = self._cut(threads)
        return self._shares[threads]

    @cached_property
    def _shares(self) -> dict[int, list[tuple[int, int, int]]]:
        return {}

    def _cut(self, threads: int) -> list[tuple[int, int, int]]:
        tasks = []
        for k, segment in enumerate(self.segments):
            share = max(1, round(threads * (segment.hi - segment.lo) / max(self.rows, 1)))
            if share == 1 or segment.runs < 2 * share or self.rows < 2000:
                tasks.append((k, 0, segment.runs))
                continue
            cuts = np.searchsorted(segment.ptr, np.linspace(0, segment.ptr[-1], share + 1)[1:-1])
            tasks += [(k, int(a), int(b)) for a, b in zip([0, *cuts], [*cuts, segment.runs]) if b > a]
        return tasks

    def sweep(
        self, rows: ResponseRows, family: int, beta: np.ndarray, threads: int = 1
    ) -> tuple[float, np.ndarray, Arrow]:
        """(ℓ, Xᵀ(dℓ/dη), XᵀWX) at β (flat): one pass over the rows."""
        if self.elsewhere is not None:
            return self.elsewhere.sweep(rows, family, beta)
        at = self.penalties.starts
        tasks = self._tasks(threads)
        rows = rows if self.own is None else self.own.known(rows, beta)

        def work(k: int, first: int, last: int):
            segment = self.segments[k]
            part, raw = segment.sweep(rows, family, beta[segment.columns], first, last)
            # gathered by the thread that summed: its table is four times as large, and would go from core to core
            return part, raw if segment.product is not None else segment.gather(*raw)

        found = run_tasks(work, tasks, threads, brief=self.rows <= BRIEF)
        score = np.zeros(self.size)
        shared = np.zeros((at[1], at[1]))
        own: Any = ()
        cross: Any = ()
        if self.own is None:
            own = [np.zeros((b - a, b - a)) for a, b in itertools.pairwise(at[1:])]
            cross = [np.zeros((b - a, at[1])) for a, b in itertools.pairwise(at[1:])]
        total = 0.0
        sums: dict[int, tuple[Any, ...]] = {}
        for (k, _, _), (part, raw) in zip(tasks, found):
            total += part
            sums[k] = tuple(a + b for a, b in zip(sums[k], raw)) if k in sums else raw
        for k, raw in sums.items():
            segment = self.segments[k]
            gradient, matrix = raw if segment.product is None else segment.gather(*raw, threads=threads)
            score[segment.columns] += gradient
            shared += matrix[: at[1], : at[1]]
            if segment.level is not None:
                own[segment.level] += matrix[at[1] :, at[1] :]
                cross[segment.level] += matrix[at[1] :, : at[1]]
        if self.own is not None:
            (segment,) = self.segments
            slopes = self.own.slopes(segment, rows, family, beta, threads)
            levels, own, cross = self.own.sweep(segment, slopes, threads)
            score[at[1] :] = levels.ravel()
            return total, score, Arrow(shared, own, cross)
        return total, score, Arrow(shared, tuple(own), tuple(cross))

    def scores(self, rows: ResponseRows, family: int, beta: np.ndarray, threads: int = 1) -> tuple[float, np.ndarray]:
        """(ℓ, Xᵀ(dℓ/dη)) at β (flat): a pass without XᵀWX, but where levels are alike."""
        if self.own is not None or self.elsewhere is not None:
            return self.sweep(rows, family, beta, threads)[:2]
        tasks = self._tasks(threads)

        def work(k: int, first: int, last: int):
            segment = self.segments[k]
            return segment.scores(rows, family, beta[segment.columns], first, last)

        total, score = 0.0, np.zeros(self.size)
        for (k, _, _), (part, raw) in zip(tasks, run_tasks(work, tasks, threads, brief=self.rows <= BRIEF)):
            total += part
            score[self.segments[k].columns] += self.segments[k].turn(raw)
        return total, score

    def leverage(
        self,
        rows: ResponseRows,
        family: int,
        beta: np.ndarray,
        lever: Lever | Callable[[int | None], np.ndarray],
        threads: int = 1,
        hats: np.ndarray | None = None,
    ) -> np.ndarray:
        """Σ_r w'_r h_r x_r (flat) with h_r = x_rᵀPx_r, `lever(level)` = P on a segment's columns; `hats` (design
        order) receives h where given."""
        if self.elsewhere is not None:
            assert hats is None
            return self.elsewhere.leverage(rows, family, beta, lever(None))
        tasks = self._tasks(threads)
        if self.own is not None:
            rows = self.own.known(rows, beta)
            hats = np.empty(self.rows) if hats is None else hats
        products = {k for k, segment in enumerate(self.segments) if segment.product is not None}
        made = {k: self.segments[k].raw_inverse(lever(self.segments[k].level)) for k in products}
        levers = {k: self.segments[k].levers(made[k], threads) for k in products}

        def work(k: int, first: int, last: int):
            segment = self.segments[k]
            out = hats[segment.lo : segment.hi] if hats is not None else np.empty(0)
            raw = made[k] if k in made else segment.raw_inverse(lever(segment.level))  # a table for each core
            part = segment.leverage(rows, family, beta[segment.columns], raw, levers.get(k, ()), first, last, out)
            return segment.turn(part)

        found = run_tasks(work, tasks, threads, brief=self.rows <= BRIEF)
        score = np.zeros(self.size)
        for (k, _, _), part in zip(tasks, found):
            score[self.segments[k].columns] += part
        if self.own is not None and hats is not None:
            (segment,) = self.segments
            dw = self.own.slopes(segment, rows, family, beta, threads).dw
            both: Any = lever  # of levels that are alike: more than a function of the level
            shared, own = self.own.leverage(segment, dw, hats, both.every(), threads)
            score[segment.columns] += shared
            score[segment.columns.size :] = own.ravel()
        return score

    def predict(self, beta: np.ndarray, threads: int = 1) -> np.ndarray:
        """Xβ (β flat) in the design's row order, without offsets."""
        if self.elsewhere is not None:
            return self.elsewhere.predict(beta)
        out = np.empty(self.rows)

        def work(k: int, first: int, last: int):
            segment = self.segments[k]
            segment.predict(beta[segment.columns], out[segment.lo : segment.hi], first, last)

        run_tasks(work, self._tasks(threads), threads, brief=self.rows <= BRIEF)
        return out if self.own is None else out + self.own.predict(beta)

    def ends(self, beta: np.ndarray, threads: int = 1) -> tuple[float, float]:
        """The least and the largest x_rᵀβ over the rows (β flat)."""
        if self.elsewhere is not None:
            return self.elsewhere.extremes(beta)
        moved = self.predict(beta, threads)
        return float(moved.min()), float(moved.max())

    def extent(self, rows: ResponseRows, family: str, direction: np.ndarray, threads: int = 1) -> Extent:
        """How far a direction (flat) moves the rows, by what their response allows."""
        return extent(self.predict(direction, threads), rows, family)

    def most(self, beta: np.ndarray) -> float:
        """A bound of |x_rᵀβ| over the rows (β flat), infinite where none is cheap."""
        if self.elsewhere is not None:
            low, high = self.ends(beta)
            return max(high, -low)
        if self.own is not None:
            return np.inf
        return max((segment.most(beta[segment.columns]) for segment in self.segments), default=0.0)

    def integrals(self, beta: np.ndarray, log_w: np.ndarray, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """For each run, in the design's order: log Σ_r w_r exp x_rᵀβ, and the mean of its columns with these weights.

        β (p,), log w (n,) and the means (runs, p) are the caller's: the terms' coordinates, the caller's row order.
        """
        flat, log_w = self.to_flat(beta), np.ascontiguousarray(self.sort(log_w))
        if self.own is not None:
            log_w = log_w + self.own.predict(flat)
        tasks = self._tasks(threads)

        def work(k: int, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            segment = self.segments[k]
            log_z, own = segment.integrals(flat[segment.columns], log_w, first, last)
            mean = np.zeros((len(log_z), self.size))
            mean[:, segment.columns] = own
            return log_z, mean

        found = run_tasks(work, tasks, threads, brief=self.rows <= BRIEF)
        means = np.concatenate([mean for _, mean in found])
        log_z = np.concatenate([log_z for log_z, _ in found])
        if self.own is not None:
            (segment,) = self.segments
            v = self.predict(flat) + log_w - self.own.predict(flat) - np.repeat(log_z, np.diff(segment.ptr))
            self._put_own(means, self.own.run_sums(np.exp(v), segment), np.arange(len(means)))
        return log_z, self.to_user(means.T).T

    def log_integrals(self, beta: np.ndarray, log_w: np.ndarray, threads: int = 1) -> np.ndarray:
        """The first of `integrals` alone."""
        flat, log_w = self.to_flat(beta), np.ascontiguousarray(self.sort(log_w))
        if self.own is not None:
            log_w = log_w + self.own.predict(flat)

        def work(k: int, first: int, last: int) -> np.ndarray:
            segment = self.segments[k]
            return segment.log_integrals(flat[segment.columns], log_w, first, last)[0]

        return np.concatenate(run_tasks(work, self._tasks(threads), threads, brief=self.rows <= BRIEF))

    def _put_own(self, out: np.ndarray, sums: np.ndarray, of: np.ndarray) -> None:
        """Add (runs, k) sums over each run to row `of` of (…, p), in the columns of the run's level."""
        assert self.own is not None
        np.add.at(out, (of[:, None], self.own.columns(int(self.penalties.starts[1]))), sums)

    def sums(self, v: np.ndarray, label: np.ndarray, count: int, threads: int = 1) -> np.ndarray | None:
        """(count, p) Σ_r v_r x_r by label, in the terms' coordinates; None where labels vary along a run.

        v and label (n,) are in the caller's row order.
        """
        v, label = np.ascontiguousarray(self.sort(v)), self.sort(label)
        starts = np.concatenate([segment.lo + segment.ptr[:-1] for segment in self.segments])
        lengths = np.concatenate([np.diff(segment.ptr) for segment in self.segments])
        starts = starts[lengths > 0]
        if np.any(np.maximum.reduceat(label, starts) != np.minimum.reduceat(label, starts)):
            return None
        tasks = self._tasks(threads)
        out = np.zeros((count, self.size))

        def work(k: int, first: int, last: int) -> np.ndarray:
            segment = self.segments[k]
            return segment.run_sums(v[segment.lo : segment.hi], first, last)

        for (k, first, last), part in zip(tasks, run_tasks(work, tasks, threads, brief=self.rows <= BRIEF)):
            segment = self.segments[k]
            of = label[np.minimum(segment.lo + segment.ptr[first:last], len(label) - 1)]
            new = np.flatnonzero(np.concatenate([[True], of[1:] != of[:-1]]))
            if len(new) < len(of):
                part, of = np.add.reduceat(part, new), of[new]
            if segment.columns.size == self.size and _in_turn(of):
                out[of[0] : of[-1] + 1] += part
            elif len(np.unique(of)) == len(of):
                out[np.ix_(of, segment.columns)] += part
            else:
                np.add.at(out, (of[:, None], segment.columns[None]), part)
        if self.own is not None:
            (segment,) = self.segments
            of = label[np.minimum(segment.lo + segment.ptr[:-1], len(label) - 1)]
            self._put_own(out, self.own.run_sums(v, segment), of)
        return self.to_user(out.T).T

    def less(self, mean: np.ndarray, context: np.ndarray, live: np.ndarray | None = None) -> Design:
        """The design with columns less a mean for each context, X_r − M_{x(r)}, which costs a row for each context.

        Args:
            mean: (contexts, p) in the terms' coordinates.
            context: (n,) the row of `mean` that each row takes; constant along the runs of this design.
            live: of a design without levels, the columns (flat) where some mean is not zero; found unless given.
        """
        ids = self.sort(np.asarray(context))
        flat = self.to_flat(np.ascontiguousarray(mean.T)).T
        segments, own = [], self.own
        for segment in self.segments:
            first = ids[segment.lo + segment.ptr[:-1]]
            if own is not None:
                mine = own.columns(segment.columns.size)
                own = own.less(np.take_along_axis(flat[first], mine, axis=1), segment)
            assert segment.level is None or not np.delete(flat[first], segment.columns, axis=1).any()
            whole = segment.columns.size == flat.shape[1] and len(first) == len(flat) and _in_turn(first)
            segments.append(segment.less(flat if whole else flat[np.ix_(first, segment.columns)], live))
        return replace(self, segments=tuple(segments), own=own)

    def joined(self, designs: Sequence[Design]) -> Design:
        """The same terms on blocks of rows one after the other, none of them partitioned by a factor."""
        segments, orders, runs, errors, row, run = [], [], [], {}, 0, 0
        for design in designs:
            segments += [replace(one, lo=one.lo + row, hi=one.hi + row) for one in design.segments]
            orders.append((np.arange(design.rows) if design.order is None else design.order) + row)
            runs.append(np.arange(sum(one.runs for one in design.segments)) + run)
            errors |= {label: max(value, errors.get(label, 0.0)) for label, value in design.errors.items()}
            row, run = row + design.rows, run + len(runs[-1])
        order = None if all(design.order is None for design in designs) else np.concatenate(orders)
        run_ids = None if self.run_ids is None else np.concatenate(runs)
        return replace(self, segments=tuple(segments), order=order, run_ids=run_ids, rows=row, errors=errors)

    def part(self, begin: int, end: int) -> Design:
        """The design of rows begin … end − 1, one of the blocks that were joined."""
        inside = [one for one in self.segments if begin <= one.lo and one.hi <= end]
        assert sum(one.hi - one.lo for one in inside) == end - begin
        segments = tuple(replace(one, lo=one.lo - begin, hi=one.hi - begin) for one in inside)
        order = None if self.order is None else self.order[begin:end] - begin
        run_ids = None if self.run_ids is None else np.arange(sum(one.runs for one in segments))
        return replace(self, segments=segments, order=order, run_ids=run_ids, rows=end - begin)

    def some(self, rows: ResponseRows, every: int) -> tuple[Design, ResponseRows]:
        """The design and its response on every so many-th run only, counted over all segments."""
        if self.elsewhere is not None:
            some, response, count = self.elsewhere.every(every)
            return replace(self, elsewhere=some, rows=count), response
        part, taken = self.every(every)
        return part, ResponseRows(*(a[taken] if a.size else a for a in (rows.y, rows.weights, rows.offset)))

    def every(self, k: int) -> tuple[Design, np.ndarray]:
        """The design on every k-th run only, counted over all segments; and its rows' places in this design's order."""
        first = np.cumsum([0, *(segment.runs for segment in self.segments)])
        return self.take(lambda i, segment: np.arange(-first[i] % k, segment.runs, k))

    def remaining(self, rows: ResponseRows, beta: np.ndarray, threads: int = 1) -> tuple[Design, ResponseRows]:
        """The design, and the rows with y − Xβ (β flat) in place of y."""
        return self, replace(rows, y=np.require(rows.y - self.predict(beta, threads), requirements=("C", "W")))

    def at_home(self, budget: float, threads: int) -> Design:
        """The design with its rows in this process: itself."""
        return self

    def sides(self, family: str, link: str | None) -> Any:
        """Of a design in parts, the response's side of its fit; None here, where it comes with each call."""
        return None

    def take(self, runs: Callable[[int, Segment], np.ndarray]) -> tuple[Design, np.ndarray]:
        """The design on some runs only (`runs(k, segment)` gives their numbers); and its rows' places in this
        design's order."""
        parts, rows, lo, ids, own = [], [], 0, [], None
        first = 0
        for k, segment in enumerate(self.segments):
            chosen = runs(k, segment)
            part, here = segment.take(chosen, lo)
            parts.append(part)
            if self.own is not None:
                own = self.own.take(chosen, here, part)
            rows.append(here + segment.lo)
            ids.append(chosen + first)
            first += segment.runs
            lo = part.hi
        run_ids = None if self.run_ids is None else self.run_ids[np.concatenate(ids)]
        return replace(self, segments=tuple(parts), order=None, run_ids=run_ids, rows=lo, own=own), np.concatenate(rows)
