"""Cells and context columns made on the device from covariates: what `forms` does for rows on the host.

The terms have their forms from some of the contexts (`build.build`, which shows them); here every row is placed among
the same breaks, u = cell + t, and surfaces of the contexts are evaluated as the same products of splines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import CombinationError

if TYPE_CHECKING:
    from ..forms import Forms

_LAST = 0.999999999  # cell + t must not round up to the next cell (as `kernels.locate`)


class Margin(NamedTuple):
    """Where a covariate's cells are."""

    breaks: Any
    period: Any  # 0: none
    poly: Any  # (cells, 4, 4), of surfaces


@dataclass(frozen=True)
class Recipe:
    """How compact rows follow from covariates: names are static, breaks and coefficients are arguments of a program."""

    local: tuple[tuple[str, bool], ...]  # covariate of each local block, and whether a row may lack it
    surfaces: tuple[tuple[str, ...], ...]  # covariates of each surface of the contexts
    intercept: bool


class Shapes(NamedTuple):
    """The arrays of a recipe."""

    local: tuple[Margin, ...]
    surfaces: tuple[tuple[tuple[Margin, ...], Any], ...]  # margins and C (sizes…, k)


def recipe_of(forms: Forms) -> tuple[Recipe, Shapes]:
    """What the forms of a template say, if rows of such terms can be made on a device."""
    local: list[tuple[str, bool]] = []
    surfaces: list[tuple[str, ...]] = []
    margins: list[Margin] = []
    fields: list[tuple[tuple[Margin, ...], Any]] = []
    for n, part in enumerate(forms.parts):
        term, kind = forms.terms[part.term], forms.kinds[forms.terms[part.term].label]
        basis, surface = forms.bases.get(n), forms.surfaces.get(n)
        plain = term.by is None and term.level is None and term.factor_levels is None
        if kind == "local" and basis is not None and plain:
            local.append((term.covariates[0], bool(term.partial)))
            margins.append(Margin(basis.breaks, basis.period, np.empty((0, 4, 4))))
        elif kind == "context" and surface is not None and plain:
            surfaces.append(tuple(term.smooth_covariates))
            C = surface.coefficients.reshape(*surface.sizes, -1)
            fields.append((tuple(Margin(m.breaks, m.period, m.poly) for m in surface.margins), C))
        else:
            raise CombinationError(
                f"{term.label} cannot be made on the device: a smooth of one covariate can, and from some thousand "
                "contexts on a smooth of two covariates of the context."
            )
    return Recipe(tuple(local), tuple(surfaces), forms.intercept), Shapes(tuple(margins), tuple(fields))


def located(margin: Margin, v: Any) -> tuple[Any, Any, Any]:
    """(cell, t, whether v lies outside the breaks)."""
    breaks = margin.breaks
    low, high = breaks[0], breaks[-1]
    turns = jnp.floor((v - low) / jnp.where(margin.period > 0, margin.period, 1.0))
    wrapped = v - margin.period * turns
    v = jnp.where(margin.period > 0, jnp.where(wrapped >= high, low, wrapped), v)
    slack = 1e-9 * (high - low)
    outside = ~((v >= low - slack) & (v <= high + slack))
    v = jnp.where(outside, low, v)
    cell = jnp.clip(jnp.searchsorted(breaks, v, side="right", method="scan_unrolled") - 1, 0, breaks.shape[0] - 2)
    begin, end = breaks[cell], breaks[cell + 1]
    return cell, jnp.clip((v - begin) / (end - begin), 0.0, _LAST), outside


def cells(margin: Margin, v: Any, partial: bool) -> tuple[Any, Any]:
    """u = cell + t, the empty cell where there is no value; and how many lie outside."""
    cell, t, outside = located(margin, v)
    u = cell + t
    if partial:
        lacking = jnp.isnan(v)
        return jnp.where(lacking, margin.breaks.shape[0] - 1.0, u), (outside & ~lacking).sum()
    return u, outside.sum()


def surface(margins: tuple[Margin, ...], C: Any, at: list[Any]) -> Any:
    """(n, k) products of splines at points of two covariates."""
    (a, b), k = margins, C.shape[-1]
    places = [located(margin, v)[:2] for margin, v in zip((a, b), at)]
    values = []
    for margin, (cell, t) in zip((a, b), places):
        p = margin.poly[cell]  # (n, power, function)
        values.append(p[:, 0] + t[:, None] * (p[:, 1] + t[:, None] * (p[:, 2] + t[:, None] * p[:, 3])))
    first = places[0][0] * C.shape[1] + places[1][0]
    flat = C.reshape(-1, k)
    out = jnp.zeros((first.shape[0], k), C.dtype)
    for i in range(4):
        for j in range(4):
            weight = values[0][:, i] * values[1][:, j]
            out = out + weight[:, None] * flat[first + (i * C.shape[1] + j)]
    return out


def compact(recipe: Recipe, shapes: Shapes, covariates: dict[str, Any]) -> tuple[tuple[Any, ...], Any, Any]:
    """u of each local block (n, R), z (n, c), and how many rows lie outside the breaks."""
    made = [cells(m, covariates[name], partial) for (name, partial), m in zip(recipe.local, shapes.local)]
    fields = [
        surface(margins, C, [covariates[name] for name in names])
        for names, (margins, C) in zip(recipe.surfaces, shapes.surfaces)
    ]
    n = next(iter(covariates.values())).shape[0]
    z = jnp.concatenate([*([jnp.ones((n, 1))] if recipe.intercept else []), *fields], axis=1)
    outside = sum((count for _, count in made), jnp.zeros((), jnp.int64))
    return tuple(jax.lax.optimization_barrier(u) for u, _ in made), z, outside
