"""Terms with a block of columns for each level of a factor: `re`, `fs`, and tensor products with an `re` margin."""

from __future__ import annotations

import numpy as np

from ..errors import TermError, listing
from .arguments import count_range, not_too_many
from .base import BuiltTerm
from .basis import Basis, natural, scale_roots
from .built import FactorSmoothTerm, RandomTerm
from .levels import is_category
from .meeting import Meeting
from .partial import check_present
from .penalties import fixed_sp, labelled_penalties
from .registry import kind_of
from .sample import check_finite, numeric
from .specs import Smooth, base_of
from .tensor import Margin, tensor_product
from .tensor_specs import Tensor


def random(meeting: Meeting, spec: Smooth) -> list[BuiltTerm]:
    """`re`: independent normal coefficients, penalty |β|² scaled like any other."""
    what = spec.label
    if spec.k is not None or spec.knots:
        raise TermError(f"{what}: bs='re' takes neither k nor knots; it has one coefficient a level.")
    factors = [n for n in spec.covariates if n in spec.factors or is_category(meeting.columns, n, what)]
    slopes = tuple(n for n in spec.covariates if n not in factors)
    if spec.by is not None and (spec.by in spec.factors or is_category(meeting.columns, spec.by, what)):
        raise TermError(
            f"{what}: bs='re' with a factor in by: put the factor among the covariates, "
            f"s({', '.join((*spec.covariates, spec.by))}, bs='re')."
        )
    coded = tuple((name, meeting.levels(name, what)) for name in factors)
    size = int(np.prod([len(levels) for _, levels in coded]))
    product = np.ones(1)
    for name in slopes:
        column = numeric(meeting.columns, name, what)
        check_finite(column.min(), column.max(), column, name, what)
        product = product * column
    label = what if spec.by is None else f"{what}:{spec.by}"
    scale = np.abs(product).max()
    penalties = () if spec.fx else labelled_penalties(label, (np.full((1, 1), scale**2),), (size,), None, size)
    multipliers = (*slopes, *((spec.by,) if spec.by else ()))
    blocks = len(coded) == 1 and len(multipliers) <= 1
    return [
        RandomTerm(
            label=label,
            covariates=spec.columns,
            size=size,
            penalties=penalties,
            fixed_sp=fixed_sp(spec, len(penalties)),
            null_dim=size if spec.fx else 0,
            by=(multipliers[0] if multipliers else None) if blocks else spec.by,
            factor_levels=coded[0] if blocks else None,
            factors=coded,
            slopes=slopes,
        )
    ]


def factor_smooth(meeting: Meeting, spec: Smooth) -> BuiltTerm:
    """mgcv's `fs`: tp functions rotated with the identity as penalty of the wiggly ones; each other has a ridge.

    With two or more of those (m = 2: a slope and a level) mgcv leaves the choice among their rotations to rounding;
    here the level is the last and the slope is orthogonal to it over the data.
    """
    what = spec.label
    if spec.by is not None:
        raise TermError(f"{what}: bs='fs' takes no by; the factor among its covariates already gives a curve a level.")
    factors = [n for n in spec.covariates if n in spec.factors or is_category(meeting.columns, n, what)]
    names = tuple(n for n in spec.covariates if n not in factors)
    if not factors or not names:
        raise TermError(
            f"{what}: bs='fs' takes numbers, and one factor or more, among its covariates; got "
            f"{listing(factors) or 'no factor'}. Write factor(name) for a numeric column of labels."
        )
    kind = kind_of(base_of(what, spec.xt))
    if not kind.covariates[0] <= len(names) <= kind.covariates[1]:
        raise TermError(
            f"{what}: bs='fs' with xt={kind.name!r} takes {count_range(kind.covariates)} numeric covariate(s) "
            f"beside the factors; got {listing(names)}."
        )
    check_present(meeting.columns, names, meeting.partial, kind, what)
    setup = kind.setup(meeting.request(names, spec.k, spec.m, spec.knots, what))
    if len(setup.roots) != 1:
        raise TermError(f"{what}: bs='fs' needs a basis with one penalty for its curves; {spec.xt!r} has more.")
    sample = meeting.sample(names, what)
    P, rank = natural(setup, sample)
    basis, columns, k = setup.basis.times(P), setup.columns @ P, len(P)
    size = np.abs(columns).sum(axis=1).max() ** 2  # scale_roots of 0/1 diagonals
    groups = [np.arange(rank)] + [np.array([j]) for j in range(rank, k)]
    matrices = tuple(np.diag(size * np.isin(np.arange(k), group)) for group in groups)
    roots = tuple(np.sqrt(S) for S in matrices)
    return by_level(meeting, spec, names, factors, basis, roots, tuple(map(len, groups)))


def random_tensor(meeting: Meeting, spec: Tensor, margins: list[Margin], factors: list[str]) -> BuiltTerm:
    """te(x, g, bs=('cr', 're')): functions of x for each level of g, with the penalty of x and a ridge; no
    constraint, as the ridge sees every function."""
    what = spec.label
    names = tuple(name for name in spec.covariates if name not in factors)
    if spec.function == "t2":
        raise TermError(f"{what}: t2() takes no margin with bs='re'. Use te(), whose penalties are one a margin.")
    if len(factors) != 1 or spec.bs.count("re") != 1 or spec.by is not None or not margins:
        raise TermError(
            f"{what}: a tensor product takes one margin with bs='re', of one factor, beside numeric margins, and "
            "then no by=."
        )
    if not (factors[0] in spec.factors or is_category(meeting.columns, factors[0], what)):
        raise TermError(f"{what}: the margin with bs='re' must be a factor; write factor({factors[0]}).")
    sample = meeting.sample(names, what)
    setup = margins[0].setup if len(margins) == 1 else tensor_product(margins, sample)
    roots = scale_roots((*setup.roots, np.eye(setup.basis.size)), setup.columns)
    return by_level(meeting, spec, names, factors, setup.basis, roots, (*setup.ranks, setup.basis.size))


# long: the pieces of one term
def by_level(
    meeting: Meeting, spec: Smooth | Tensor, names: tuple[str, ...], factors: list[str], basis: Basis,
    roots: tuple[np.ndarray, ...], ranks: tuple[int, ...],
) -> BuiltTerm:  # fmt: skip
    """A block of the same functions and penalties for each level, or each combination of levels that has rows."""
    what, k = spec.label, basis.size
    coded = tuple((name, meeting.levels(name, what)) for name in factors)
    count = len(coded[0][1]) if len(coded) == 1 else int(np.prod([len(levels) for _, levels in coded]))
    if len(coded) > 1:
        not_too_many(what, f"k={k} for {count} combinations of levels", k * count)
    matrices = tuple(E.T @ E for E in roots)
    whole = tuple(rank * count for rank in ranks)
    penalties = () if spec.fx else labelled_penalties(what, matrices, whole, roots, count)
    edges = meeting.edges(names, basis)
    return FactorSmoothTerm(
        label=what,
        covariates=(*names, *factors),
        size=k * count,
        penalties=penalties,
        fixed_sp=fixed_sp(spec, len(penalties)),
        null_dim=k * count if spec.fx else 0,
        factor_levels=coded[0] if len(coded) == 1 else None,
        breaks=basis.breaks if len(coded) == 1 else None,
        period=basis.period,
        basis=basis,
        lower=edges[0],
        upper=edges[1],
        factors=coded,
        partial=meeting.lacked(names, basis),
    )
