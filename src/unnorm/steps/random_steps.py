"""Available steps: each observed step with k others that the kernel offers from the same start, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.frames import to_native
from .._base.numerics import Rng, generator, whole
from .._base.words import at_row, either
from ..data.covariates import Covariate, CovariateSet
from ..data.observations import Observations
from ..domains.base import Domain
from ..errors import DataError, InputError
from ..references.contrast import contrast
from ..references.points import IID
from ..references.step_kernel import StepKernel
from .landscape import check_maps, landscape
from .tracks import Track


def steps_of(data: Any, lags: int = 2) -> Observations:
    """The steps of a track, or observations that are steps already; a step of length zero has no direction."""
    if isinstance(data, Track):
        return _moving(data.observations(lags))
    if isinstance(data, Observations) and data.kind == "transitions" and data.dim == 2:
        return _moving(data)
    raise InputError(
        f"Steps come from un.track(…), or from un.transitions(…, y=(x, y), lags=2); got {type(data).__name__}."
    )


def _moving(obs: Observations) -> Observations:
    still = np.flatnonzero((obs.outcome == obs.previous()).all(axis=1))
    if still.size:
        row = int(still[0]) if obs.row is None else int(obs.row[still[0]])
        joining = either("un.track(…, zero_steps='join')", "--zero-steps join")
        raise DataError(
            f"{still.size:,} of {obs.n:,} steps have length zero, the first at {at_row(row)}: they "
            "have no direction, and no kernel offers them. "
            f"{joining} takes the two fixes as one."
        )
    return obs


def random_steps(
    track: Any,
    k: int = 10,
    *,
    kernel: StepKernel | None = None,
    maps: Any = (),
    covariates: Sequence[Covariate] = (),
    domain: Domain | None = None,
    rng: Rng = None,
) -> Any:
    """Observed steps (case = 1), each followed by k available ones (case = 0) drawn from the kernel at its start.

    Args:
        track: from `un.track`, or transitions with lags=2.
        k: available steps for each observed one.
        kernel: the law of available steps; default gamma lengths and von Mises turns fitted to the observed ones.
        maps: `un.Map` objects, whose values at the start and the end of each step become columns.
        covariates: other covariates to add as columns.
        domain: Ω, which no step leaves; default the extent of the maps, or the track with room around it.
        rng: seed or generator.

    Returns a table: case, stratum, the groups, x_start, y_start, x_end, y_end, step, turn, log_q (the log density of
    the step under the kernel, per unit of area) and the covariates.

    Example:
        >>> import numpy as np
        >>> import unnorm as un
        >>> walk = np.cumsum(np.random.default_rng(1).normal(0, 100, (200, 2)), axis=0)
        >>> fixes = un.track({"t": np.arange(200) * 60, "x": walk[:, 0], "y": walk[:, 1]}, time="t", x="x", y="y",
        ...                  unit="metres")
        >>> steps = un.random_steps(fixes, k=5, rng=1)
        >>> len(steps["case"]), int(steps["case"].sum())
        (1188, 198)
    """
    obs = steps_of(track)
    maps = check_maps(maps)
    ground = landscape(obs, maps, domain)
    kernel = StepKernel("gamma", "vonmises") if kernel is None else kernel
    rows = contrast(obs, kernel.bind(ground, obs), IID(), per_point=whole(k, "k", 1), rng=generator(rng))
    known = CovariateSet(obs, (*maps, *covariates))
    start = obs.previous()[rows.at]
    values = known.values(("step", "turn", *(one.name for one in (*maps, *covariates))), obs, rows.outcome, rows.at)
    columns: dict[str, np.ndarray] = {
        "case": rows.z.astype(np.int64),
        "stratum": rows.at,
        **{name: column[rows.at] for name, column in obs.group.items()},
        "x_start": start[:, 0], "y_start": start[:, 1], "x_end": rows.outcome[:, 0], "y_end": rows.outcome[:, 1],
        "step": values.pop("step"), "turn": values.pop("turn"), "log_q": rows.log_q,
        **{name: obs.context[name][rows.at] for name in obs.extra},
    }  # fmt: skip
    for one in maps:
        at_start = known.values(one.name, obs, start, rows.at)[one.name]
        columns |= {f"{one.name}_start": at_start, f"{one.name}_end": values.pop(one.name)}
    return to_native({**columns, **values}, obs.backend)
