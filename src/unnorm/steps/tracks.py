"""Tracks: fixes of one or more animals in time and the plane, in bursts within which steps may be formed.

A step joins two consecutive fixes of one burst, and its turn needs the fix before them, so that steps come from
transitions with lags = 2. What is wrong with a track is said with the first row, the count and a remedy, and nothing is
dropped but on request, which the notes then count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, final

import numpy as np

from .._base import column_checks, frames
from .._base.categories import Category
from .._base.words import at_row, option
from ..data.observations import Observations, transitions
from ..data.table_columns import declared
from ..errors import DataError, InputError, listing, unknown
from .durations import seconds, written
from .projecting import projected

UNEVEN = 1.25  # times the median duration (or as much less) from which a note counts a step

Zero = Literal["error", "join", "keep"]
Repeated = Literal["error", "first", "mean"]
Order = Literal["error", "sort"]


@final
@dataclass(frozen=True, repr=False)
class Track:
    """Fixes in order: time in seconds, x and y in the unit of the plane, the animal and the burst of each.

    Example:
        >>> import unnorm as un
        >>> table = {"t": [0, 60, 120, 600], "east": [0.0, 300.0, 500.0, 900.0], "north": [0.0, 0.0, 200.0, 0.0]}
        >>> fixes = un.track(table, time="t", x="east", y="north", max_gap="2min")
        >>> fixes.n, fixes.burst
        (4, array([0, 0, 0, 1]))
    """

    time: np.ndarray  #: (n,) seconds
    x: np.ndarray  #: (n,) eastings
    y: np.ndarray  #: (n,) northings
    animal: np.ndarray  #: (n,) labels
    burst: np.ndarray  #: (n,) int, increasing
    columns: dict[str, np.ndarray] = field(default_factory=dict)  #: others of the table that were asked for
    named: bool = False  #: whether the user named a column of animals
    row: np.ndarray | None = None  #: (n,) position in the table
    notes: tuple[str, ...] = ()  #: sentences: what was dropped, projected or split
    backend: Any = None  #: the user's kind of table, for those given back
    unit: str = ""  #: of x and y, "m" where it is known
    categories: Mapping[str, Category] = field(default_factory=dict)  #: levels of columns with an order of their own

    @property
    def n(self) -> int:
        """The number of fixes."""
        return len(self.time)

    @property
    def gaps(self) -> np.ndarray:
        """(n − 1,) seconds between consecutive fixes, NaN between bursts."""
        return np.where(np.diff(self.burst) == 0, np.diff(self.time), np.nan)

    def __repr__(self) -> str:
        return f"Track({self._line()})"

    def _line(self) -> str:
        gap = self.gaps
        rate = f", a fix every {written(float(np.nanmedian(gap)))}" if np.isfinite(gap).any() else ""
        animals = len(np.unique(self.animal))
        who = f" of {animals:,} animals" if self.named else ""
        return f"{self.n:,} fixes{who} in {np.unique(self.burst).size:,} bursts{rate}"

    def describe(self) -> str:
        """What the track is, how regular its times are, and what was changed on the way."""
        gap = self.gaps[np.isfinite(self.gaps)]
        lines = [self._line()]
        if gap.size:
            ends = ", ".join(written(float(q)) for q in np.quantile(gap, (0.0, 0.25, 0.5, 0.75, 1.0)))
            lines.append(f"time between fixes (least, quartiles, most): {ends}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def take(self, index: np.ndarray) -> Track:
        """The fixes at `index` (booleans or positions).

        Args:
            index: booleans or positions.
        """
        return replace(
            self,
            **{name: getattr(self, name)[index] for name in ("time", "x", "y", "animal", "burst")},
            columns={name: column[index] for name, column in self.columns.items()},
            row=None if self.row is None else self.row[index],
        )

    def resample(self, rate: Any, tolerance: Any) -> Track:
        """Fixes about `rate` apart, in bursts: a fix more than `rate + tolerance` after the last one begins a new one,
        and one that comes less than `rate − tolerance` after it is left out (amt's track_resample).

        Args:
            rate: a number of seconds, "10min", a timedelta.
            tolerance: likewise.

        >>> import numpy as np
        >>> t = Track(np.array([0.0, 60.0, 130.0, 600.0]), np.zeros(4), np.arange(4.0), np.zeros(4), np.zeros(4, int))
        >>> thinned = t.resample("1min", "10s")
        >>> thinned.time, thinned.burst
        (array([  0.,  60., 130., 600.]), array([0, 0, 0, 1]))
        """
        step, slack = seconds(rate, "rate"), seconds(tolerance, "tolerance")
        if slack >= step:
            raise InputError(f"tolerance must be less than rate; got tolerance={tolerance!r} with rate={rate!r}.")
        keep, burst, b = [], [], -1
        for one in np.unique(self.burst):
            rows = np.flatnonzero(self.burst == one)
            last = None
            for i in rows:
                since = np.inf if last is None else self.time[i] - self.time[last]
                if since < step - slack:
                    continue
                b += since > step + slack
                keep.append(i)
                burst.append(b)
                last = i
        gone = self.n - len(keep)
        note = (
            f"Resampled to one fix every {written(step)} ± {written(slack)}: {gone:,} of {self.n:,} fixes left out, "
            f"{b + 1:,} bursts."
        )
        kept = self.take(np.array(keep, dtype=int))
        return replace(kept, burst=np.array(burst, dtype=int), notes=(*self.notes, note))

    def observations(self, lags: int = 2) -> Observations:
        """The steps as transitions: `x, y` given `x_prev, y_prev` (and with lags = 2 the fix before, for turns).

        The context also has `dt`, the seconds that the step took, and each of the track's other columns twice: under
        its own name at the end of the step, and with `_start` at its start.

        Args:
            lags: 1, or 2 for models that read turns.
        """
        before = np.maximum(np.arange(self.n) - 1, 0)
        extra: dict[str, Any] = {"dt": np.maximum(self.time - self.time[before], 0.0)}
        for name, column in self.columns.items():
            extra |= {name: column, f"{name}_start": column[before]}
        groups: dict[str, Any] = {"burst": self.burst}
        if self.named:
            groups = {"animal": self.animal, **groups}
        table = {"x": self.x, "y": self.y, **groups, **extra}
        made = transitions(table, y=("x", "y"), group=tuple(groups), extra=tuple(extra), lags=lags)
        notes = [note for note in made.notes if "sequences are shorter" not in note]
        steps = int(np.sum(np.diff(self.burst) == 0))
        if made.n < steps:
            notes.append(
                f"{steps - made.n:,} of {steps:,} steps are the first of their burst: they have no turn, and are left "
                "out."
            )
        notes += _uneven(made.context["dt"])
        row = made.row if self.row is None or made.row is None else self.row[made.row]
        own = {end: one for name, one in self.categories.items() for end in (name, f"{name}_start")}
        return replace(made, notes=(*self.notes, *notes), backend=self.backend, row=row, categories=own)

    def steps(self) -> Any:
        """The steps as a table: animal, burst, start and end, times, length, direction and turn (NaN where unknown)."""
        from .._base.frames import to_native

        return to_native(step_columns(self), self.backend)


def step_columns(track: Track) -> dict[str, np.ndarray]:
    """The columns of `Track.steps`."""
    first = np.flatnonzero(np.diff(track.burst) == 0)
    last = first + 1
    dx, dy = track.x[last] - track.x[first], track.y[last] - track.y[first]
    length = np.hypot(dx, dy)
    angle = np.where(length > 0.0, np.arctan2(dy, dx), np.nan)
    follows = np.concatenate([[False], first[1:] == last[:-1]])
    turn = np.where(follows, angle - np.concatenate([[np.nan], angle[:-1]]), np.nan)
    return {
        **({"animal": track.animal[first]} if track.named else {}),
        "burst": track.burst[first],
        "t_start": track.time[first], "t_end": track.time[last], "dt": track.time[last] - track.time[first],
        "x_start": track.x[first], "y_start": track.y[first], "x_end": track.x[last], "y_end": track.y[last],
        "step": length, "angle": angle, "turn": np.pi - np.mod(np.pi - turn, 2.0 * np.pi),
    }  # fmt: skip


def _uneven(dt: np.ndarray) -> list[str]:
    """A note where some steps took longer or shorter than most."""
    usual = float(np.median(dt))
    odd = (dt > UNEVEN * usual) | (dt * UNEVEN < usual)
    if not odd.any():
        return []
    return [
        f"{int(odd.sum()):,} of {dt.size:,} steps took {written(float(dt.min()))} to {written(float(dt.max()))}, where "
        f"the median is {written(usual)}: steps of different durations follow different laws. "
        "track.resample(rate, tolerance) makes them alike; max_gap= begins a new burst at the long ones."
    ]


# long: a public entry point
def track(
    data: Any,
    *,
    time: str,
    x: str,
    y: str,
    animal: str | None = None,
    burst: str | None = None,
    columns: Sequence[str] = (),
    crs: Any = None,
    to: Any = None,
    unit: Literal["metres"] | None = None,
    max_gap: Any = None,
    repeated: Repeated = "error",
    order: Order = "error",
    zero_steps: Zero = "keep",
    missing: frames.Missing = "error",
) -> Track:
    """Fixes as a `Track`, checked.

    Args:
        data: a table with one row for each fix.
        time: its column of times: dates, ISO 8601 text, or numbers of seconds.
        x, y: its columns of coordinates.
        animal: the column that tells animals apart.
        burst: a column that tells bursts apart; no step is formed across two.
        columns: other columns to keep, for terms (`night` at the end of a step, `night_start` at its start).
        crs: the coordinate system of x and y, where they are to be projected, as "EPSG:4326" for degrees of longitude
            and latitude (needs `pip install 'unnorm[geo]'`).
        to: the system to project to, in metres; by default one centred on the track (azimuthal equidistant).
        unit: "metres", to say that coordinates which look like degrees are metres.
        max_gap: the longest time between two fixes of one burst, as "7h"; longer ones begin a new burst.
        repeated: fixes of one animal at one time: "error", keep the "first", or take their "mean".
        order: times that run backwards within an animal: "error", or "sort" them.
        zero_steps: steps of length zero, which have no direction: "keep" them, "error", or "join" their two fixes.
        missing: rows with missing values: "error" or "drop".

    Example:
        >>> import unnorm as un
        >>> table = {"t": [0, 60, 120, 600], "east": [0.0, 300.0, 500.0, 900.0], "north": [0.0, 0.0, 200.0, 0.0]}
        >>> un.track(table, time="t", x="east", y="north", max_gap="2min")
        Track(4 fixes in 2 bursts, a fix every 1 min)
    """
    for name, value, choices in (
        ("repeated", repeated, ("error", "first", "mean")),
        ("order", order, ("error", "sort")),
        ("zero_steps", zero_steps, ("keep", "error", "join")),
        ("missing", missing, ("error", "drop")),
    ):
        if value not in choices:
            raise InputError(unknown(name, value, choices))
    made = _read(frames.table(data), time, (x, y), (animal, burst), tuple(columns), missing)
    made = _repeated(_ordered(made, order), repeated)
    made = projected(made, (x, y), crs, to, unit)
    made = _bursts(made, None if max_gap is None else seconds(max_gap, "max_gap"))
    return _zero(made, zero_steps)


def _read(
    table: frames.Table, time: str, place: tuple[str, str], labels: tuple[str | None, str | None],
    columns: tuple[str, ...], missing: frames.Missing,
) -> Track:  # fmt: skip
    """The fixes as they come, without those that lack something where they may be dropped."""
    t = table.column(time, "time").whole().as_times()
    if t.levels is not None:
        label = str(t.levels[t.data[0]])
        raise DataError(f"Column {time!r} must hold times: dates, ISO 8601 text (2024-05-01T06:00:00Z) or seconds; got "
                        f"text such as {label!r}.")  # fmt: skip
    xy = [table.column(name, role) for name, role in zip(place, ("x", "y"))]
    column_checks.check_numeric(xy, "x and y")
    column_checks.check_finite([t, *xy])
    who = [None if name is None else table.column(name, role) for name, role in zip(labels, ("animal", "burst"))]
    more = [table.column(name, "columns") for name in columns]
    own = {"x", "y", "animal", "burst", "dt", "step", "turn", "angle", *(f"{name}_start" for name in columns)}
    if taken := [name for name in columns if name in own]:
        raise InputError(f"columns must not be called {listing(taken)}, which a track has already: rename them.")
    needed = [t, *xy, *(one for one in who if one is not None), *more]
    gone, note = column_checks.incomplete(needed, missing, None, "rows")
    rows = np.flatnonzero(~gone)
    if rows.size < 2:
        raise DataError(f"A track needs at least two fixes; there are {rows.size}.")
    animal, burst = (None if one is None else one.take(rows) for one in who)
    nobody = np.zeros(rows.size, dtype=int)
    return Track(
        t.take(rows).astype(float), xy[0].take(rows).astype(float), xy[1].take(rows).astype(float),
        nobody if animal is None else animal,
        nobody if burst is None else np.unique(burst, return_inverse=True)[1],
        {one.name: one.take(rows) for one in more}, animal is not None, rows, (note,) if note else (), table.backend,
        categories=declared({one.name: one for one in more}),
    )  # fmt: skip


def _ordered(made: Track, order: Order) -> Track:
    """Animal by animal as they first appear, and in the order of time."""
    _, first, code = np.unique(made.animal, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))[code]
    made, rank = made.take(np.argsort(rank, kind="stable")), np.sort(rank)
    one = (made.animal[1:] == made.animal[:-1]) & (np.diff(made.burst) == 0)  # a clock may be set between bursts
    back = np.flatnonzero((np.diff(made.time) < 0.0) & one) + 1
    if not back.size:
        return made
    if order == "error":
        late = float(made.time[back[0] - 1] - made.time[back[0]])
        raise DataError(
            f"Times run backwards at {back.size:,} of {made.n:,} fixes, first at {_where(made, back[0])}, which is "
            f"{written(late)} before the fix above it. If the rows are merely out of order pass "
            f"{option('order', 'sort')}; if there are several animals, name their column in {option('animal')}; if the "
            f"clock was set back, correct the times, or name in {option('burst')} a column that tells the parts apart."
        )
    made = made.take(np.lexsort((made.time, rank)))  # bursts are made again below, wherever the label changes
    return replace(made, notes=(*made.notes, f"{back.size:,} fixes were out of order, and sorted by time."))


def _repeated(made: Track, repeated: Repeated) -> Track:
    """One fix of an animal at one time."""
    one = (made.animal[1:] == made.animal[:-1]) & (np.diff(made.burst) == 0)
    twice = np.flatnonzero((np.diff(made.time) == 0.0) & one) + 1
    if not twice.size:
        return made
    if repeated == "error":
        raise DataError(
            f"{twice.size:,} of {made.n:,} fixes repeat the time of the one before, the first at "
            f"{_where(made, twice[0])}. Pass {option('repeated', 'first')} to keep the first of each, or "
            f"{option('repeated', 'mean')} to take their mean; if there are several animals, name their column in "
            f"{option('animal')}."
        )
    keep = np.ones(made.n, dtype=bool)
    keep[twice] = False
    if repeated == "mean":
        of = np.cumsum(keep) - 1
        size = np.bincount(of)
        made = replace(made, x=(np.bincount(of, made.x) / size)[of], y=(np.bincount(of, made.y) / size)[of])
    how = "their mean was taken" if repeated == "mean" else "the first of each was kept"
    return replace(made.take(keep), notes=(*made.notes, f"{twice.size:,} fixes repeated a time; {how}."))


def _bursts(made: Track, longest: float | None) -> Track:
    """Bursts numbered in order: of one animal, one burst of the user's, and no gap above `longest`."""
    new = (made.animal[1:] != made.animal[:-1]) | (np.diff(made.burst) != 0)
    notes = made.notes
    if longest is not None:
        far = ~new & (np.diff(made.time) > longest)
        new = new | far
        if far.any():
            notes = (*notes, f"{int(far.sum()):,} gaps above {written(longest)}; each begins a new burst.")
    return replace(made, burst=np.concatenate([[0], np.cumsum(new)]), notes=notes)


def _zero(made: Track, zero: Zero) -> Track:
    """Steps without a direction."""
    still = (np.diff(made.burst) == 0) & (np.diff(made.x) == 0.0) & (np.diff(made.y) == 0.0)
    at = np.flatnonzero(still) + 1
    if not at.size or zero == "keep":
        return made
    if zero == "error":
        raise DataError(
            f"{at.size:,} of {made.n - 1:,} steps have length zero, first at {_where(made, at[0])}: they have no "
            f"direction. Pass {option('zero_steps', 'join')} to take the two fixes as one."
        )
    keep = np.ones(made.n, dtype=bool)
    keep[at] = False
    return replace(made.take(keep), notes=(*made.notes, f"{at.size:,} steps of length zero: their two fixes are one."))


def _where(made: Track, i: int) -> str:
    row = i if made.row is None else int(made.row[i])
    who = f" of {made.animal[i]}" if made.named else ""
    return f"{at_row(row)}{who}"
