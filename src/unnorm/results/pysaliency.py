"""pysaliency both ways: its fixations as observations, and a fit as one of its scanpath models.

pysaliency is not a dependency: `observations` and `windows` read attributes of its objects, and `scanpath_model`
imports it when it is called (pip install 'unnorm[pysaliency]', with torch, which pysaliency needs without saying so).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.extras import extra
from ..data.observations import Observations
from ..data.table_columns import lag_suffix
from ..domains import Box
from ..domains.windows import Windows
from ..errors import CombinationError, DataError, InputError, TermError, listing

if TYPE_CHECKING:
    from .fit import Fit

IMAGE = "image"
SUBJECT = ("subject", "subjects")  # the attribute's name, in newer versions and in older ones


def observations(fixations: Any, lags: int = 1) -> Observations:
    """The fixations of pysaliency (`FixationTrains`, `ScanpathFixations` or `Fixations`) as transitions.

    A fixation's previous points are the last `lags` of its history; those with a shorter history give no transition,
    and `notes` counts them. `image` is the number of the stimulus, `n`; numeric attributes of fixations, such as
    durations, join the context, except those with missing values, which `notes` names.

    Args:
        fixations: pysaliency's.
        lags: earlier points in the context.

    Example:
        >>> import numpy as np
        >>> from types import SimpleNamespace
        >>> import unnorm as un
        >>> two = SimpleNamespace(x=np.array([1., 2.]), y=np.array([3., 4.]), n=np.array([0, 0]), subjects=None,
        ...                       x_hist=[[], [1.]], y_hist=[[], [3.]], __attributes__=[])
        >>> un.pysaliency.observations(two).context["x_prev"]
        array([1.])
    """
    x, y, n = (np.asarray(getattr(fixations, name)) for name in ("x", "y", "n"))
    history = [[_history(part[i]) for i in range(len(x))] for part in (fixations.x_hist, fixations.y_hist)]
    length = np.array([len(one) for one in history[0]], dtype=np.intp)
    rows = np.flatnonzero(length >= lags)
    if not rows.size:
        raise DataError(f"There are no transitions: no fixation has {lags} before it in its history.")
    context = {
        name + lag_suffix(lag): np.array([history[j][i][-lag] for i in rows])
        for lag in range(1, lags + 1)
        for j, name in enumerate("xy")
    }
    subject = next((own for name in SUBJECT if (own := getattr(fixations, name, None)) is not None), None)
    subject = np.zeros(len(x), dtype=np.int64) if subject is None else np.asarray(subject)
    more, gaps = _attributes(fixations, len(x), rows)
    lost = len(x) - rows.size
    notes = (f"{lost:,} of {len(x):,} fixations have fewer than {lags} before them and give no transition.",)
    notes = (notes if lost else ()) + gaps
    # fixations may have been left out, first ones too: a scanpath goes on where the history is longer by one
    begins = np.ones(len(x), dtype=bool)
    begins[1:] = (np.diff(length) != 1) | (np.diff(n) != 0) | (subject[1:] != subject[:-1])
    return Observations(
        "transitions",
        np.column_stack([x[rows], y[rows]]).astype(np.float64),
        ("x", "y"),
        {**context, **more},
        lags=lags,
        extra=tuple(more),
        group={"subject": subject[rows], IMAGE: n[rows].astype(np.int64)},
        sequence=np.unique(np.cumsum(begins)[rows], return_inverse=True)[1],
        row=rows,
        notes=notes,
    )


def _history(values: Any) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64).ravel()
    return array[~np.isnan(array)]


def _attributes(fixations: Any, count: int, rows: np.ndarray) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Numeric attributes with one finite value for each fixation, and notes of those that lack some."""
    out, notes = {}, []
    for name in getattr(fixations, "__attributes__", ()):
        if name in ("subject", "subjects", "scanpath_index") or name.endswith("_hist"):
            continue
        values = getattr(fixations, name, None)
        if isinstance(values, np.ndarray) and values.shape == (count,) and values.dtype.kind in "iuf":
            column = values[rows]
            if np.isfinite(column).all():
                out[str(name)] = column.astype(np.float64)
            else:
                gone = int(np.sum(~np.isfinite(column)))
                notes.append(
                    f"The attribute {str(name)!r} is left out: {gone:,} of {len(column):,} values are missing."
                )
    return out, tuple(notes)


def windows(stimuli: Any) -> Windows:
    """The sizes of pysaliency's stimuli as a window for each image: pixel (i, j) covers [j, j + 1] × [i, i + 1].

    Args:
        stimuli: pysaliency's `Stimuli`.

    Example:
        >>> from types import SimpleNamespace
        >>> import unnorm as un
        >>> un.pysaliency.windows(SimpleNamespace(sizes=[(600, 800), (768, 1024)])).windows
        (Box((0, 800), (0, 600)), Box((0, 1024), (0, 768)))
    """
    sizes = [(int(size[1]), int(size[0])) for size in stimuli.sizes]
    if not sizes:
        raise InputError("There are no stimuli.")
    return Windows(dict(enumerate(sizes)), IMAGE)


def scanpath_model(fit: Fit, image_of: Callable[[Any], Any] | None = None) -> Any:
    """A fit of a planar chain as a `pysaliency.ScanpathModel`, whose `conditional_log_density` sums to one over pixels.

    Args:
        fit: of transitions in pixels; its terms may read places, steps and, with `image_of`, maps by image.
        image_of: stimulus → the value of `image` that the fit's maps go by.

    A fixation without as many before it as the fit has lags gets the uniform density: the model says nothing of the
    first.

    Example:
        >>> import unnorm as un  # doctest: +SKIP
        >>> model = un.pysaliency.scanpath_model(fit)  # doctest: +SKIP
        >>> model.information_gain(stimuli, fixations)  # doctest: +SKIP
    """
    base = extra("pysaliency", "pysaliency", "un.pysaliency.scanpath_model").ScanpathModel
    about = fit.settings["observations"]
    names, lags = tuple(about["outcome_names"]), int(about["lags"])
    if fit.kind != "transitions" or len(names) != 2:
        raise CombinationError(f"A scanpath model is a chain in the plane; this fit is of {fit.kind} observations.")

    class FittedScanpaths(base):
        """p(y | previous fixations) of an unnorm fit."""

        def conditional_log_density(
            self, stimulus: Any, x_hist: Any, y_hist: Any, t_hist: Any, attributes: Any = None, out: Any = None
        ) -> np.ndarray:
            size = stimulus.shape if isinstance(stimulus, np.ndarray) else stimulus.size  # an array's size is a number
            height, width = (int(n) for n in size[:2])
            before = [_history(x_hist), _history(y_hist)]
            log_p = np.full((height, width), -np.log(height * width))
            if len(before[0]) >= lags:
                image = None if image_of is None else image_of(stimulus)
                log_p = pixel_log_density(fit, (height, width), before, image, attributes)
            if out is None:
                return log_p
            out[...] = log_p
            return out

    return FittedScanpaths()


def pixel_log_density(
    fit: Fit, size: tuple[int, int], before: list[np.ndarray], image: Any = None, attributes: Any = None
) -> np.ndarray:
    """(H, W) log probability of each pixel after the previous points `before` (x and y, in the order of time)."""
    about = fit.settings["observations"]
    names, lags = tuple(about["outcome_names"]), int(about["lags"])
    height, width = size
    density = fit.density
    box = Box((0, width), (0, height))
    if density.domain.key is not None:
        density = density.on(box)
    elif density.domain.sides is not None and density.domain != box:
        raise CombinationError(f"The fit is on {density.domain!r} and the stimulus has {width} × {height} pixels.")
    context: dict[str, Any] = {
        name + lag_suffix(lag): np.array([before[j][-lag]])
        for lag in range(1, lags + 1)
        for j, name in enumerate(names)
    }
    given = {**(attributes or {}), **({} if image is None else {IMAGE: image})}
    more = {name: np.array([given[name]]) for name in about["extra"] if name in given}
    group = {name: np.array([given[name]]) for name in about["group_names"] if name in given}
    one = Observations(
        "transitions", np.zeros((1, 2)), names, {**context, **more}, lags=lags, extra=tuple(more), group=group
    )
    u, v = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    places = np.column_stack([u.ravel(), v.ravel()])
    try:
        f = density.log_f(one, places, np.zeros(len(places), dtype=np.intp))
    except TermError as error:
        lost = [name for name in (*about["extra"], *about["group_names"]) if name not in given]
        raise CombinationError(
            f"The fit reads a column that pysaliency does not say ({listing(lost)} are not known). Pass image_of=, "
            f"from a stimulus to the image's name in the fit, or attributes. {error}"
        ) from error
    top = float(f.max())
    if not np.isfinite(top):
        raise CombinationError(f"f̂ has no finite value on the stimulus; previous points {listing(before)}.")
    return (f - top - np.log(np.sum(np.exp(f - top)))).reshape(height, width)
