"""`s`, `te`, `ti` and `t2` on data: the basis of each kind, its penalties scaled and its constraint absorbed, as mgcv
does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DataError, TermError, listing
from .base import BuiltTerm
from .basis import Setup, householder, reflected, roots_of
from .build_levels import factor_smooth, random, random_tensor
from .built import SmoothTerm
from .kinds import BasisKind
from .levels import codes, is_category, level_name, unseen
from .linked import like_the_first, pooled
from .meeting import Meeting
from .partial import check_present
from .penalties import fixed_sp, labelled_penalties
from .registry import kind_of
from .ridges import ridge_product
from .sample import Sample, check_finite, numeric, summarise
from .specs import Smooth
from .tensor import margin_setup, product_as_seen
from .tensor_specs import Tensor


def smooth(meeting: Meeting, spec: Smooth) -> list[BuiltTerm]:
    """s(…): one term, or one for each level of a `by` factor."""
    if spec.bs == "re":
        return random(meeting, spec)
    if spec.bs == "fs":
        return [factor_smooth(meeting, spec)]
    what, kind = spec.label, kind_of(spec.bs)
    if kind.categorical:
        return labelled(meeting, spec, kind)
    for name in spec.covariates:
        if name in spec.factors or is_category(meeting.columns, name, what):
            raise DataError(
                f"{what}: column {name!r} holds categories, and bs={spec.bs!r} needs numbers. "
                f"Use bs='re' or 'fs', or by=factor({name})."
            )
    check_present(meeting.columns, spec.covariates, meeting.partial, kind, what)
    setup = kind.setup(meeting.request(spec.covariates, spec.k, spec.m, spec.knots, what, spec.xt))
    return finish(meeting, spec, setup, meeting.sample(spec.covariates, what), constrain=True)


def linked_smooth(meeting: Meeting, spec: Smooth, members: Sequence[Smooth]) -> list[BuiltTerm]:
    """One of the smooths that share an id, with their common basis."""
    spec = like_the_first(spec, members[0])
    if len(members) == 1:
        return smooth(meeting, spec)
    return smooth(meeting.on({**meeting.columns, **pooled(spec, members, meeting.columns)}), spec)


def labelled(meeting: Meeting, spec: Smooth, kind: BasisKind) -> list[BuiltTerm]:
    """A smooth of labels: points are their positions among the kind's levels."""
    what, (name,) = spec.label, spec.covariates
    labels = kind.levels(spec.xt, what)
    at = codes(meeting.columns, name, labels, what)
    if (at < 0).any():
        raise kind.lacking(spec.xt, what, unseen(meeting.columns, name, at))
    sample = summarise({name: at.astype(np.float64)}, (name,), what)
    setup = kind.setup(meeting.request(spec.covariates, spec.k, spec.m, spec.knots, what, spec.xt, sample))
    return finish(meeting, spec, setup, sample, constrain=True, labels=labels)


def tensor(meeting: Meeting, spec: Tensor) -> list[BuiltTerm]:
    """te(…), ti(…), t2(…)."""
    what, start, setups, samples, factors = spec.label, 0, [], [], []
    for i, size in enumerate(spec.d):
        names = spec.covariates[start : start + size]
        start += size
        if spec.bs[i] == "re":
            factors += names
            continue
        k = spec.k[i] if spec.k is not None else 5**size  # mgcv's default
        kind = kind_of(spec.bs[i])
        check_present(meeting.columns, names, meeting.partial, kind, what)
        m = None if spec.m is None or not kind.takes_m else spec.m[i]
        own = {name: v for name, v in spec.knots.items() if name in names}
        setup = kind.setup(meeting.request(names, k, m, own, what))
        samples.append(meeting.sample(names, what))
        setups.append(setup)
    if spec.function == "t2" and not factors:
        sample = meeting.sample(spec.covariates, what)
        return finish(meeting, spec, ridge_product(setups, samples, sample), sample, constrain=True)
    margins = [margin_setup(setup, sample, spec.interaction) for setup, sample in zip(setups, samples)]
    if factors:
        return [random_tensor(meeting, spec, margins, factors)]
    sample = meeting.sample(spec.covariates, what)
    setup = margins[0].setup if len(margins) == 1 else product_as_seen(margins, sample)
    return finish(meeting, spec, setup, sample, constrain=not spec.interaction)


def finish(
    meeting: Meeting, spec: Smooth | Tensor, setup: Setup, sample: Sample, constrain: bool, labels: tuple[Any, ...] = ()
) -> list[BuiltTerm]:
    """Scale the penalties, absorb the constraint Σ_i f(x_i) = 0 (not where a numeric `by` varies), and split
    by levels."""
    what, by = spec.label, spec.by
    levels, known, alike = _by_levels(meeting, spec)
    basis, roots, null_dim = setup.basis, roots_of(setup), setup.null_dim
    spectrum = _scaled_spectrum(setup, roots)
    if constrain and setup.centred and alike:
        constraint = sample.mean(setup.columns) if setup.mean is None else setup.mean
        basis, roots = basis.times(householder(constraint)), tuple(reflected(E, constraint) for E in roots)
        null_dim = max(null_dim - 1, 0)
    size = basis.size
    ranks = tuple(min(rank, size) for rank in setup.ranks)
    edges = meeting.edges(spec.covariates, basis) if not labels else (np.full(1, -np.inf), np.full(1, np.inf))
    matrices = tuple(E.T @ E for E in roots)
    out: list[BuiltTerm] = []
    for level in (None,) if levels is None else levels:
        label = what if by is None else f"{what}:{by}" + ("" if level is None else level_name(level))
        penalties = () if spec.fx else labelled_penalties(label, matrices, ranks, roots)
        out.append(
            SmoothTerm(
                label=label,
                covariates=spec.covariates + ((by,) if by is not None else ()),
                size=size,
                penalties=penalties,
                fixed_sp=fixed_sp(spec, len(penalties)),
                null_dim=size if spec.fx else null_dim,
                level=None if levels is None or by is None else (by, level),
                by=by if levels is None else None,
                breaks=basis.breaks,
                period=basis.period,
                basis=basis,
                lower=edges[0],
                upper=edges[1],
                by_levels=known,
                labels=labels,
                link=spec.id if isinstance(spec, Smooth) else None,
                partial=meeting.lacked(spec.covariates, basis),
                spectrum=None if spec.fx else spectrum,
                isotropic=setup.isotropic,
            )
        )
    return out


def _by_levels(meeting: Meeting, spec: Smooth | Tensor) -> tuple[tuple[Any, ...] | None, tuple[Any, ...], bool]:
    """Levels of a factor `by` that have a smooth each (None where it is no factor), all its levels, and whether every
    row has the same multiplier."""
    what, by = spec.label, spec.by
    if by is None:
        return None, (), True
    if by in spec.factors or is_category(meeting.columns, by, what):
        known = meeting.levels(by, what)
        ordered = by in meeting.categories and meeting.categories[by].ordered
        if ordered and len(known) < 2:
            raise TermError(
                f"{what}: by={by!r} is ordered and has one level only ({listing(known)}), so there are no differences "
                "from it. Leave by= out."
            )
        return known[1:] if ordered else known, known, True
    column = numeric(meeting.columns, by, what)
    low, high = column.min(), column.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        check_finite(low, high, column, by, what)
    return None, (), bool(low == high)


def _scaled_spectrum(setup: Setup, roots: tuple[np.ndarray, ...]) -> np.ndarray | None:
    """The penalties' common eigenvalues, scaled as the penalties were."""
    if setup.spectrum is None:
        return None
    sizes = [np.linalg.norm(E) / np.linalg.norm(before) for E, before in zip(roots, setup.roots)]
    return setup.spectrum * np.square(sizes)
