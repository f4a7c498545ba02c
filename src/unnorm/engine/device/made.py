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
from ...errors import OutsideError
from ...terms.parser import parse
from ..build import arranged
from ..core import smooth_fit
from ..design import Design
from ..segment import ResponseRows
from ..sides import Sides
from ..smoothed import Smoothed
from .cells import Recipe, Shapes, compact, recipe_of
from .chain import Chain, chain, covariates, end_contexts, some_columns
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


@partial(jax.jit, static_argnums=(0, 1))
def _rows(k: int, recipe: Recipe, shapes: Shapes, c: Chain, offset: Any) -> tuple[Rows, Any]:
    """Compact rows of all contexts, and how many lie outside the breaks."""
    u, z, outside = compact(recipe, shapes, covariates(k, c))
    n = c.rank.shape[0]
    y = jnp.zeros((n, 1 + k)).at[:, 0].set(1.0)
    return Rows(u, (), (), None, z, y, None, jnp.full((n, 1), offset)), outside


class _Stages:
    """Seconds by stage, each ended when the device is done with it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.since = time.perf_counter()

    def done(self, stage: str, *waited: Any) -> None:
        jax.block_until_ready(waited)
        now = time.perf_counter()
        self.seconds[stage], self.since = self.seconds.get(stage, 0.0) + now - self.since, now


def template(formula: str, k: int, c: Chain, sample: int = SAMPLE) -> tuple[Design, Recipe, Shapes]:
    """Terms and their forms from some of the contexts, with those at the ends of every covariate."""
    terms = parse(formula)
    names, n = tuple(sorted(terms.columns)), int(c.rank.shape[0])
    every = max(1, -(-n * (1 + k) // sample))
    which = np.union1d(np.arange(0, n, every), np.asarray(end_contexts(k, names, c)))
    found = jax.device_get(some_columns(k, names, c, _evened(which, n)))
    columns = {name: np.ascontiguousarray(v[: which.size].ravel()) for name, v in found.items()}
    partial_names = [name for name in names if name in _CYCLIC]
    built = terms.build(columns, knots={name: _CYCLIC[name] for name in partial_names}, partial=partial_names)
    context = np.repeat(np.arange(which.size), 1 + k)
    design, forms, _ = arranged(built, columns, True, context, None, cores(), False, n * (1 + k))
    return design, *recipe_of(forms)


def _evened(which: np.ndarray, n: int) -> np.ndarray:
    """As many numbers whatever the ends are, so that no program is compiled again: the last is repeated."""
    size = min(-(-which.size // 256) * 256, max(n, which.size))
    return np.concatenate([which, np.full(size - which.size, which[-1])])


def fit_chain(
    formula: str, path: np.ndarray, box: Sequence[tuple[float, float]], k: int, shift: np.ndarray, device: Device
) -> MadeFit:  # fmt: skip
    """REML fit of f = formula's terms of y_t and χ = its terms of y_{t−1}, by logistic regression against k uniform
    points for each y_{t−1}.

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
    with x64(), jax.default_device(device.jax), single_threaded():
        c = chain(path, low, high, shift, device.jax)
        stages.done("coordinates to the device", c)
        design, recipe, shapes = template(formula, k, c)
        stages.done("terms, from some of the contexts")
        n = int(c.rank.shape[0])
        require_room(
            8 * n * ((1 + k) * (1 + len(recipe.local)) + 1 + turn_of(design.segments[0]).context), TILE, device.free
        )
        offset = float(np.log(high - low).sum() - np.log(k))  # −log q + log(n/m)
        made, outside = _rows(k, recipe, shapes, c, offset)
        if int(outside):
            raise OutsideError(f"{int(outside):,} rows lie outside the range of the rows that the terms were built on.")
        rows = ResponseRows(made.y.reshape(-1), np.empty(0), np.empty(0))
        stages.done("points, covariates and cells", made)
    (segment,) = design.segments
    held = DeviceRows(device, turn_of(segment), made, rows, None, n * (1 + k))
    design = replace(design, elsewhere=DeviceParts((held,), rows), rows=n * (1 + k))
    smoothed = _fitted(design, rows, offset, n, k)
    stages.done("fit")
    return MadeFit(smoothed, design, held, stages.seconds)


def _fitted(design: Design, rows: ResponseRows, offset: float, n: int, k: int) -> Smoothed:
    """The engine's search on these rows; the null model is known without a pass: one row in 1 + k is a datum."""
    share = 1.0 / (1 + k)
    null = float(np.log(share / (1.0 - share))) - offset
    null_loglik = n * float(np.log(share) + k * np.log1p(-share))
    side = Sides(rows, n * (1 + k), 0.0, 0.0, null, null_loglik, np.empty(0))
    return smooth_fit(design, None, "binomial", known=side)


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
