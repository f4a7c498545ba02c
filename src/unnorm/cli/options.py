"""The options that commands share, as they are typed; `config.Job` is what they become once checked."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, final

from cyclopts import Parameter

from ..errors import InputError
from .config import BUNDLED, Job, checked_job, read_config, whole

Text = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
Number = Annotated[str, Parameter(allow_leading_hyphen=True)]  # checked by `config.whole`, which says what was wrong
Count = Annotated[str, Parameter(name=["-n", "--n"], allow_leading_hyphen=True)]
Flag = Annotated[bool | None, Parameter(negative="")]
Many = Annotated[list[str] | None, Parameter(negative="", allow_leading_hyphen=True)]
Force = Annotated[bool, Parameter(negative="")]
Resume = Annotated[bool, Parameter(negative="")]
Quiet = Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")]

MOST_WORKERS = 10_000


def shell_workers(text: str | None) -> Any:
    """What --workers says: a number of processes, the address of a scheduler, or nothing.

    >>> shell_workers("4"), shell_workers("tcp://host:8786"), shell_workers(None)
    (4, 'tcp://host:8786', None)
    """
    if text is None or "://" in text:
        return text
    try:
        return whole("--workers", text.strip(), 1, MOST_WORKERS)
    except InputError:
        raise InputError(
            f"--workers must be a number of processes (1 to {MOST_WORKERS:,}), or the address of a Dask scheduler, as "
            f"tcp://host:8786; got {text!r}."
        ) from None


@final
@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """The settings of a job that `unnorm fit` and `unnorm compare` share.

    Attributes:
        y: the two columns of the point, as x,y.
        order: the column that orders each sequence; a step of an integer other than 1 breaks it.
        group: the columns that tell sequences apart, as subject,image.
        by: one of them: separate functions for each of its levels, and the group's.
        columns: the names of the columns, as subject,image,fix,x,y, of a file that does not name them.
        window: x from, to, y from, to, as 0,800,0,600; a polygon file (.geojson, .wkt); or a window for each image: a
            table with image, width and height (or x0, x1, y0, y1), or polygons with the property image.
        window_key: the column that says whose window each is; by default one of --group.
        px_per_degree: pixels in a degree of visual angle, to have all lengths in degrees.
        unit: of lengths, on the axes of figures, as m.
        normaliser: the terms of the normalising constants, as "s(x_prev, y_prev, k=40)", estimated with the effects; by
            default the constants are computed from the effects (with --objective poisson they are those terms).
        normaliser_smoothing: none, or reml to penalise these terms.
        references: reference points for each observed one.
        points: how reference points are drawn: lattice, iid, stratified or sobol.
        smoothing: reml, ml, gcv (ubre) or cv.
        seed: of everything random.
        lags: 2 for turning angles (turn).
        max_gap: the largest step of --order within a sequence, where it holds times, as 1200 or 20min.
        map: a covariate on a grid, as NAME=FILE (.csv, .parquet, .npy, .npz, .png, .tif), or one for each image, as
            NAME=maps/{image}.png; with ,at=start at the previous point; may be given again.
        distance: the distance to the nearest point, line or area of a file (.geojson, .csv), as NAME=FILE; may be given
            again.
        covariate: a covariate as arithmetic, as NAME=EXPRESSION; may be given again.
        duration: the column that says how long each point lasts; its logarithm is fitted beside the place, by the same
            effects.
        centre: the point that dcenter is measured from, as 400,300; by default the window's centre.
        drop_first: remove each sequence's first point before pairs are formed.
        y_down: y grows downwards, as pixels do.
        outside: error or drop, for points outside the window.
        missing: error or drop, for rows with missing values.
        config: a TOML file with any of these settings; options given here win.
    """

    y: Text = None
    order: Text = None
    group: Text = None
    by: Text = None
    columns: Text = None
    window: Text = None
    window_key: Text = None
    px_per_degree: Text = None
    unit: Text = None
    normaliser: Text = None
    normaliser_smoothing: Text = None
    references: Text = None
    points: Text = None
    smoothing: Text = None
    seed: Text = None
    lags: Text = None
    max_gap: Text = None
    map: Many = None
    distance: Many = None
    covariate: Many = None
    duration: Text = None
    centre: Text = None
    drop_first: Flag = None
    y_down: Flag = None
    outside: Text = None
    missing: Text = None
    config: str | None = None

    def job(self, **more: Any) -> Job:
        """The settings of --config, those given here over them, and `more`, all checked."""
        from .._base.files import table_file

        settings: dict[str, Any] = {}
        if self.config is not None:
            settings = {name.replace("-", "_"): value for name, value in read_config(self.config).items()}
            # by itself first, with what it may leave out: the error then says which setting of the file is wrong
            checked_job({"data": "-", "window": [0, 1, 0, 1], **settings}, source=self.config)
        given = {**asdict(self), **more}
        del given["config"]
        settings |= {name: value for name, value in given.items() if value is not None}
        if isinstance(data := settings.get("data"), str) and data.strip() and data != BUNDLED:
            table_file(data)  # first: without it no other setting matters
        return checked_job(settings)


NONE_GIVEN = Options()
