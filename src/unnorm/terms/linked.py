"""Smooths that share their smoothing parameters: id=, as in mgcv.

Linked smooths have the same functions, those of the first one's basis set up on the covariates of all of them together
(knots, constraint and scale of the penalty), so that one smoothing parameter means the same in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import TermError
from .base import Columns
from .sample import distinct_rows, numeric
from .specs import Smooth, Term

FEWER = 0.9  # distinct rows are counted once where they are fewer than this share of all (as in mgcv)


def linked(spec: Smooth, terms: Sequence[Term]) -> list[Smooth]:
    """The smooths with this one's id, itself among them, in order."""
    found = [term for term in terms if isinstance(term, Smooth) and term.id == spec.id]
    for one in found:
        if len(one.covariates) != len(found[0].covariates):
            raise TermError(
                f"{one.label}: smooths with the same id have as many covariates; {found[0].label} with id={spec.id!r} "
                f"has {len(found[0].covariates)}."
            )
    return found


def like_the_first(spec: Smooth, first: Smooth) -> Smooth:
    """The smooth with the first one's basis: k, bs, m, sp, fx and xt are the first's, whatever it said itself."""
    return replace(spec, k=first.k, bs=first.bs, m=first.m, sp=first.sp, fx=first.fx, xt=first.xt)


def pooled(spec: Smooth, members: Sequence[Smooth], columns: Columns) -> dict[str, np.ndarray]:
    """The covariates of all members, one below the other, under this one's names; each distinct row once."""
    rows = np.concatenate(
        [np.column_stack([numeric(columns, name, one.label) for name in one.covariates]) for one in members]
    )
    distinct, _ = distinct_rows(rows)
    return dict(zip(spec.covariates, (distinct if len(distinct) < FEWER * len(rows) else rows).T))
