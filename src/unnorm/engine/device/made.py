"""A logistic additive fit whose rows are made where they are met: coordinates go to the device, sums come back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.blas import single_threaded
from ..._base.numerics import x64
from ..._base.threads import cores
from ...data.covariates.resolve import CovariateSet
from ...data.covariates.traced import Traced
from ...data.observations import Observations
from ...errors import OutsideError
from ...terms.parser import parse
from ..build import arranged
from ..core import smooth_fit
from ..design import Design
from ..segment import ResponseRows
from ..sides import Sides
from ..smoothed import Smoothed
from .cells import Recipe, Shapes, compact, recipe_of
from .chain import Chain, chain, covariates, end_rows, some_columns
from .passes import Rows
from .rows import TILE, DeviceParts, DeviceRows, turn_of
from .spec import Device, require_room

SAMPLE = 200_000  # rows on which terms are built, as `objectives.additive` does with more of them
_CYCLIC = {"angle": (-np.pi, np.pi)}


@final
@dataclass(frozen=True)
class MadeFit:
    """A fit, the design with its rows on the device, and seconds by stage."""

    smoothed: Smoothed
    design: Design
    held: DeviceRows
    seconds: dict[str, float]


@partial(jax.jit, static_argnums=(0, 1, 2))
def _rows(k: int, recipe: Recipe, traced: Traced, shapes: Shapes, c: Chain, offset: Any) -> tuple[Rows, Any]:
    """Compact rows of all contexts, and how many lie outside the breaks."""
    u, z, outside = compact(recipe, shapes, covariates(k, traced, c))
    n = c.rank.shape[0]
    y = jnp.zeros((n, 1 + k)).at[:, 0].set(1.0)
    return Rows(u, (), (), None, z, y, None, jnp.full((n, 1), offset)), outside


def made_rows(
    frame: Design, recipe: Recipe, shapes: Shapes, k: int, traced: Traced, c: Chain, offset: float, device: Device
) -> tuple[Design, DeviceRows]:
    """The design `frame` with rows that are made on the device: y_t = 1 against k points of 0, with one offset."""
    n, (segment,) = int(c.rank.shape[0]), frame.segments
    turn = turn_of(segment)
    require_room(8 * n * ((1 + k) * (1 + len(recipe.local)) + 1 + turn.context), TILE, device.free)
    with x64(), jax.default_device(device.jax):
        made, outside = _rows(k, recipe, traced, shapes, c, offset)
        if int(outside):
            raise OutsideError(f"{int(outside):,} rows lie outside the range of the rows that the terms were built on.")
        rows = ResponseRows(made.y.reshape(-1), np.empty(0), np.empty(0))
    held = DeviceRows(device, turn, made, rows, None, n * (1 + k))
    return replace(frame, elsewhere=DeviceParts((held,), rows), rows=n * (1 + k)), held


def known_side(rows: ResponseRows, offset: float, n: int, k: int) -> Sides:
    """The response's side, known without a pass: one row in 1 + k is a datum."""
    share = 1.0 / (1 + k)
    null = float(np.log(share / (1.0 - share))) - offset
    null_loglik = n * float(np.log(share) + k * np.log1p(-share))
    return Sides(rows, n * (1 + k), 0.0, 0.0, null, null_loglik, np.empty(0))


class _Stages:
    """Seconds by stage, each ended when the device is done with it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.since = time.perf_counter()

    def done(self, stage: str, *waited: Any) -> None:
        jax.block_until_ready(waited)
        now = time.perf_counter()
        self.seconds[stage], self.since = self.seconds.get(stage, 0.0) + now - self.since, now


def template(formula: str, k: int, traced: Traced, c: Chain, sample: int = SAMPLE) -> tuple[Design, Recipe, Shapes]:
    """Terms and their forms from some of the contexts, with those at the ends of every covariate."""
    terms = parse(formula)
    n = int(c.rank.shape[0])
    every = max(1, -(-n * (1 + k) // sample))
    which = np.union1d(np.arange(0, n, every), np.asarray(end_rows(k, traced, c)) // (1 + k))
    found = some_columns(k, traced, c, which)
    columns = {name: np.ascontiguousarray(v.ravel()) for name, v in found.items()}
    partial_names = [name for name in traced.wanted if name in _CYCLIC]
    built = terms.build(columns, knots={name: _CYCLIC[name] for name in partial_names}, partial=partial_names)
    context = np.repeat(np.arange(which.size), 1 + k)
    design, forms, _ = arranged(built, columns, True, context, None, cores(), False, n * (1 + k))
    return design, *recipe_of(forms)


def _planar(names: Sequence[str], path: np.ndarray, low: np.ndarray, high: np.ndarray) -> Traced:
    """The built-in covariates of a planar chain."""
    obs = Observations("transitions", path[1:2], ("x", "y"), {"x_prev": path[:1, 0], "y_prev": path[:1, 1]}, 1)
    found = CovariateSet(obs, centre=0.5 * (low + high)).traced(names, obs)
    assert found is not None
    return found


def fit_chain(
    formula: str, path: np.ndarray, box: Sequence[tuple[float, float]], k: int, shift: np.ndarray, device: Device
) -> MadeFit:  # fmt: skip
    """REML fit of f = formula's terms of y_t and χ = its terms of y_{t−1}, by logistic regression against k uniform
    points for each y_{t−1}. What `un.fit(…, device="gpu")` does with a chain of many points, without its errors.

    Args:
        formula: of the built-in covariates step, angle, dcenter, x, y and, for χ, x_prev, y_prev.
        path: (n + 1, 2) coordinates of one chain in the box.
        box: the two intervals of Ω.
        k: reference points of each context.
        shift: (2,) of the lattice, uniform.
        device: where.
    """
    stages = _Stages()
    low, high = np.array(box, dtype=np.float64).T
    traced = _planar(tuple(sorted(parse(formula).columns)), path, low, high)
    with x64(), jax.default_device(device.jax), single_threaded():
        n = len(path) - 1
        box_there = (low, high - low)
        c = chain(path[:-1], path[1:], ("x_prev", "y_prev"), {}, box_there, shift[None], n, device.jax)
        stages.done("coordinates to the device", c)
        design, recipe, shapes = template(formula, k, traced, c)
        stages.done("terms, from some of the contexts")
        offset = float(np.log(high - low).sum() - np.log(k))  # −log q + log(n/m)
        design, held = made_rows(design, recipe, shapes, k, traced, c, offset, device)
        stages.done("points, covariates and cells", held.made)
    smoothed = smooth_fit(design, None, "binomial", known=known_side(held.response, offset, n, k))
    stages.done("fit")
    return MadeFit(smoothed, design, held, stages.seconds)


def on_host(fit: MadeFit) -> tuple[Design, np.ndarray, np.ndarray]:
    """The same compact rows in the engine's own form, with their response and offset, for its own pass."""
    made = jax.device_get(fit.held.made)
    (n, each), (segment,) = made.y.shape, fit.design.segments
    u = np.stack([one.ravel() for one in made.u], axis=1)
    whole = replace(
        segment, lo=0, hi=n * each, ptr=np.arange(n + 1) * each, u=u, mult=np.empty((n * each, 0)),
        f=np.empty((n * each, 0), np.int32), x=np.empty((n * each, 0)), z=np.array(made.z),
    )  # fmt: skip
    design = replace(fit.design, segments=(whole,), elsewhere=None, order=None, run_ids=np.arange(n))
    return design, made.y.ravel(), np.full(n * each, float(made.offset[0, 0]))
