"""`pattern`: a table of points and the window they were seen in; how many there are is random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from .._base.counts import several
from .._base.frames import Missing
from .._base.numerics import codes_of, point_text
from .._base.words import at_row, option
from ..data.observations import Observations, iid
from ..domains.base import Domain
from ..errors import DataError, InputError, OutsideError, listing, unknown
from .places import Places

NO_LABEL = ("",)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Pattern:
    """n points, n random, in a window (or in replicates of one experiment, each in its window), perhaps with marks.

    Example:
        >>> import unnorm as un
        >>> trees = un.pattern({"x": [1.0, 3.0], "y": [2.0, 2.5]}, y=("x", "y"), window=un.Box((0, 4), (0, 3)))
        >>> trees.n, trees.names
        (2, ('x', 'y'))
    """

    places: Places  #: where the points are, with mark and replicate of each
    names: tuple[str, str]  #: of the coordinates
    windows: tuple[Domain, ...]  #: one for each replicate
    mark_name: str | None = None  #: the column of marks; None for points of one kind
    mark_levels: tuple[Any, ...] = NO_LABEL  #: the marks that there are
    replicate_name: str | None = None  #: the column of replicates; None for one pattern
    replicate_levels: tuple[Any, ...] = NO_LABEL  #: the replicates that there are
    notes: tuple[str, ...] = ()  #: sentences: what was dropped
    backend: Any = None  #: the user's kind of table, for those given back

    @property
    def n(self) -> int:
        """The number of points."""
        return self.places.n

    @property
    def xy(self) -> np.ndarray:
        """(n, 2) coordinates."""
        return self.places.xy

    @property
    def window(self) -> Domain:
        """The window, of one pattern or of replicates that share it."""
        if any(one != self.windows[0] for one in self.windows):
            raise InputError("These replicates have windows of their own: see `windows`.")
        return self.windows[0]

    @property
    def area(self) -> float:
        """Of all windows together."""
        return float(sum(window.volume for window in self.windows))

    @property
    def types(self) -> int:
        """How many marks there are; 1 without marks."""
        return len(self.mark_levels)

    @property
    def replicates(self) -> int:
        """The number of replicates."""
        return len(self.windows)

    @property
    def marks(self) -> np.ndarray | None:
        """(n,) the marks; None without."""
        return None if self.mark_name is None else np.array(self.mark_levels)[self.places.mark]

    @property
    def sides(self) -> np.ndarray | None:
        """(2,) side lengths, where the window is one rectangle; None elsewhere."""
        sides = [window.sides for window in self.windows]
        if any(one is None for one in sides):
            return None
        lengths = np.array([one[1] - one[0] for one in sides if one is not None])
        return lengths[0] if np.all(lengths == lengths[0]) else None

    def rows(self, places: Places) -> Observations:
        """Places as rows that covariates can be computed on: coordinates, with mark and replicate beside them.

        Args:
            places: where to look.
        """
        context = {}
        if self.mark_name is not None:
            context[self.mark_name] = np.array(self.mark_levels)[places.mark]
        if self.replicate_name is not None:
            context[self.replicate_name] = np.array(self.replicate_levels)[places.replicate]
        return Observations("conditional", places.xy, self.names, context)

    def observations(self) -> Observations:
        """The points as IID outcomes, for `un.fit`: their places given how many there are."""
        return Observations("iid", self.xy, self.names, group=self.rows(self.places).context, backend=self.backend)

    def take(self, which: np.ndarray) -> Pattern:
        """Some of the points, in the same windows.

        Args:
            which: booleans or positions.
        """
        return self.with_places(self.places.take(which))

    def with_places(self, places: Places) -> Pattern:
        """Other points, in the same windows and with the same marks.

        Args:
            places: the points.
        """
        from dataclasses import replace

        return replace(self, places=places, notes=())

    def only(self, replicate: int) -> Pattern:
        """One of the replicates, as a pattern by itself.

        Args:
            replicate: its number, from 0.
        """
        from dataclasses import replace

        here = self.places.take(self.places.replicate == replicate)
        alone = Places(here.xy, here.mark, np.zeros(here.n, dtype=np.int64))
        levels = (self.replicate_levels[replicate],)
        return replace(self, places=alone, windows=(self.windows[replicate],), replicate_levels=levels)

    def split(self) -> dict[Any, Pattern]:
        """The points of each mark, as patterns without marks."""
        from dataclasses import replace

        out = {}
        for code, label in enumerate(self.mark_levels):
            one = self.places.take(self.places.mark == code)
            plain = Places(one.xy, np.zeros(one.n, dtype=np.int64), one.replicate)
            out[label] = replace(self, places=plain, mark_name=None, mark_levels=NO_LABEL)
        return out

    def duplicated(self) -> np.ndarray:
        """(n,) whether an earlier point of the same mark and replicate has the same coordinates."""
        keys = (self.places.replicate, self.places.mark, self.xy[:, 1], self.xy[:, 0])
        order = np.lexsort(keys)  # stable: of equal points the earlier comes first
        same = np.logical_and.reduce([key[order][1:] == key[order][:-1] for key in keys])
        out = np.zeros(self.n, dtype=bool)
        out[order[1:]] = same
        return out

    def table(self) -> Any:
        """The points as a table of the data's kind."""
        from .._base.frames import to_native

        return to_native(
            {**{name: self.xy[:, j] for j, name in enumerate(self.names)}, **self.rows(self.places).context},
            self.backend,
        )

    def __repr__(self) -> str:
        marks = "" if self.mark_name is None else f", {self.types} types of {self.mark_name!r}"
        replicates = "" if self.replicate_name is None else f", {self.replicates} replicates"
        where = repr(self.windows[0]) if self.replicates == 1 else f"windows of area {self.area:.6g} in all"
        return f"Pattern({self.n:,} points{marks}{replicates} in {where})"


# long: a public entry point
def pattern(
    data: Any,
    y: tuple[str, str] | Sequence[str] | None = None,
    *,
    window: Domain | Mapping[Any, Domain],
    marks: str | None = None,
    replicate: str | None = None,
    types: Sequence[Any] | None = None,
    outside: Literal["error", "drop"] = "error",
    missing: Missing = "error",
) -> Pattern:
    """Points in a window, their number random.

    Args:
        data: a pandas, polars or pyarrow table, a mapping of columns, or an array of shape (n, 2).
        y: the two columns of coordinates.
        window: `un.Window` or `un.Box`; of replicates one for all, or a mapping from replicate to window, which may
            name replicates without any points.
        marks: the column of marks: types of points, a few labels.
        replicate: the column that tells patterns of one experiment apart; points of different ones never interact.
        types: the marks that are possible, in the order of the model's levels; default those that occur, sorted, or in
            the order of the table's categories where it states one.
        outside: what to do with points outside the window: "error", or "drop" them and say so.
        missing: "error", or "drop" rows with a missing coordinate, mark or replicate and say so.

    Example:
        >>> import unnorm as un
        >>> trees = un.pattern({"x": [1.0, 3.0], "y": [2.0, 2.5]}, y=("x", "y"), window=un.Box((0, 4), (0, 3)))
        >>> trees.n, trees.area
        (2, 12.0)
    """
    if outside not in ("error", "drop"):
        raise InputError(unknown("outside", outside, ("error", "drop")))
    named = tuple(name for name in (marks, replicate) if name is not None)
    _have(data, {"marks": marks, "replicate": replicate})
    obs = iid(data, y=y, group=named or None, missing=missing)
    if obs.dim != 2:
        raise DataError(f"A point has two coordinates, y=('x', 'y'); got {obs.dim}: {listing(obs.outcome_names)}.")
    _refuse_blank(obs, marks)
    levels, code = _levels(obs, marks, _declared(data, obs, marks) if types is None else types, "types")
    if marks is not None and len(levels) > max(50, obs.n // 2):
        raise DataError(
            f"marks={marks!r} has {len(levels):,} different values for {obs.n:,} points: marks must be a few types. "
            "A number measured at each point, such as a diameter, can be cut into classes first."
        )
    windows, sites, at = _windows(window, obs, replicate)
    places = Places(np.ascontiguousarray(obs.outcome), code, at)
    places, kept, notes = _inside(places, windows, outside, obs)
    made = Pattern(
        places, (obs.outcome_names[0], obs.outcome_names[1]), windows, marks, levels, replicate, sites,
        (*obs.notes, *notes), obs.backend,
    )  # fmt: skip
    twice = made.duplicated()
    if twice.any():
        first = int(np.flatnonzero(twice)[0])
        note = (
            f"{several(int(twice.sum()), 'point')} with the same coordinates as an earlier one, first "
            f"{at_row(_row(obs, kept, first))} at {point_text(places.xy[first])}; Poisson and Gibbs processes "
            "have none."
        )
        made = Pattern(**{**vars(made), "notes": (*made.notes, note)})
    return made


def _have(data: Any, wanted: dict[str, str | None]) -> None:
    """Refuse names of columns that are not there, in the caller's words."""
    from .._base.frames import table

    asked = {argument: name for argument, name in wanted.items() if name is not None}
    if not asked:
        return
    names = () if isinstance(data, np.ndarray | list | tuple) else table(data).names
    for argument, name in asked.items():
        if name not in names:
            has = f"the columns are {listing(names)}" if names else "an array has none: pass a table"
            raise DataError(f"There is no column {name!r}, asked for by {option(argument, name)}; {has}.")


def _declared(data: Any, obs: Observations, marks: str | None) -> list[Any] | None:
    """The marks that occur, in the order that the table states: a pandas category, a polars Enum; None without one."""
    from .._base.frames import table

    if marks is None:
        return None
    column = table(data).read(marks)
    if not column.declared or column.levels is None:
        return None
    there = set(obs.group[marks].tolist())
    return [label for label in column.levels.tolist() if label in there]


def _refuse_blank(obs: Observations, marks: str | None) -> None:
    """An empty text is a missing mark."""
    if marks is None or obs.group[marks].dtype.kind not in "UO":
        return
    blank = np.flatnonzero([not str(label).strip() for label in obs.group[marks].tolist()])
    if blank.size:
        raise DataError(
            f"{several(blank.size, 'mark')} of {obs.n:,} in {option('marks', marks)} are empty, the first in "
            f"{at_row(blank[0] if obs.row is None else obs.row[blank[0]])}: leave these points out, or give them a "
            "label of their own, such as 'unknown'."
        )


def _row(obs: Observations, kept: np.ndarray, i: int) -> int:
    at = int(kept[i])
    return at if obs.row is None else int(obs.row[at])


def _levels(
    obs: Observations, name: str | None, given: Sequence[Any] | None, option: str
) -> tuple[tuple[Any, ...], np.ndarray]:
    """Labels and codes of a column; one empty label where there is none."""
    if name is None:
        if given is not None:
            raise InputError(f"{option}= lists the levels of a column: name it with marks=.")
        return NO_LABEL, np.zeros(obs.n, dtype=np.int64)
    values = obs.group[name]
    levels = np.unique(values) if given is None else np.array(list(given))
    place = {label: code for code, label in enumerate(levels.tolist())}
    if len(place) < len(levels):
        raise InputError(f"{option}= must list each level once; got {listing(levels.tolist())}.")
    code = codes_of(values, place)
    lost = np.flatnonzero(code < 0)
    if lost.size:
        raise DataError(
            f"{several(lost.size, 'point')} with a {name!r} that is not among {option}= "
            f"{listing(levels.tolist(), most=8)}, first {values[lost[0]].item()!r} in "
            f"{at_row(lost[0] if obs.row is None else obs.row[lost[0]])}."
        )
    return tuple(levels.tolist()), code


def _windows(
    window: Any, obs: Observations, replicate: str | None
) -> tuple[tuple[Domain, ...], tuple[Any, ...], np.ndarray]:
    """The windows, the replicates' labels, and the replicate of each point."""
    if isinstance(window, Mapping):
        if replicate is None:
            raise InputError("window= gives a window for each replicate: name their column, replicate='…'.")
        given: Sequence[Any] | None = list(window)
    else:
        given = None
    levels, at = _levels(obs, replicate, given, "window")
    windows = tuple(window[label] for label in levels) if isinstance(window, Mapping) else (window,) * len(levels)
    for one in windows:
        if not isinstance(one, Domain) or one.edges is None:
            raise InputError(
                f"window must be a region of the plane, un.Window(…) or un.Box((0, 4), (0, 3)); got {one!r}."
            )
    return windows, levels, at


def _inside(
    places: Places, windows: tuple[Domain, ...], outside: str, obs: Observations
) -> tuple[Places, np.ndarray, tuple[str, ...]]:
    """The places inside their windows, which they are of all, and a note on those outside: an error unless dropped."""
    inside = np.empty(places.n, dtype=bool)
    for code, window in enumerate(windows):
        here = places.replicate == code
        inside[here] = window.contains(places.xy[here])
    kept = np.flatnonzero(inside)
    if inside.all():
        return places, kept, ()
    first = int(np.argmin(inside))
    row = first if obs.row is None else int(obs.row[first])
    where = f"the first is {at_row(row)}, at {point_text(places.xy[first])}"
    said = f"{int((~inside).sum()):,} of {places.n:,} points lie outside the window; {where}"
    if outside == "error" or not inside.any():
        raise OutsideError(f"{said}. Enlarge the window, correct the data, or pass {option('outside', 'drop')}.")
    return places.take(inside), kept, (f"{said}; they were dropped.",)
