"""Specifications × data → built terms: knots placed, penalties scaled, constraints absorbed, each as mgcv does it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from .._base.blas import single_threaded
from .._base.threads import cores, run_tasks
from ..errors import DataError, TermError, listing, unknown
from .arguments import not_too_many
from .base import BuiltTerm, Columns, Penalty
from .basis import Basis, Setup, householder, natural, scale_roots
from .built import FactorSmoothTerm, FactorTerm, LinearTerm, RandomTerm, SmoothTerm, known_codes
from .interaction import Interaction, build_interaction
from .kernel_term import KernelSmooth, build_kernel
from .kinds import BasisKind, Orders, Request
from .levels import Category, is_category, level_name, levels_of
from .linked import like_the_first, linked, pooled
from .partial import check_present, present
from .registry import kind_of
from .ridges import ridge_product
from .sample import (
    Sample,
    check_finite,
    drawn,
    gathered,
    most_knots,
    numeric,
    quantile_knots,
    summarise,
)
from .side import side
from .specs import Factor, Linear, Smooth, Term, Terms, base_of
from .tensor import TensorProduct, margin_setup, tensor_product
from .tensor_specs import Tensor

_MANY = 5_000  # rows from which setting up terms side by side gains more than waking a thread costs
_MGCV_KNOTS = 2000  # thin-plate knots: every distinct row up to so many, as mgcv's max.knots
_SMALL = 5_000  # rows up to which that costs little beside the fit


class _Builder:
    """The data and the options of one `build`; what several terms need is computed once."""

    def __init__(
        self,
        columns: Columns,
        knots: Mapping[str, Any],
        periods: Mapping[str, Any],
        partial: Collection[str],
        intercept: bool,
        max_knots: int | None,
        categories: Mapping[str, Category],
    ) -> None:
        self.categories = categories
        self.columns = columns
        self.knots = knots
        self.periods = periods
        self.partial = frozenset(partial)
        self.coded_fully = intercept  # whether the next factor leaves out its first level
        self.max_knots = max_knots
        self._samples: dict[tuple[str, ...], Sample] = {}

    def sample(self, names: tuple[str, ...], what: str) -> Sample:
        if names not in self._samples:
            self._samples[names] = summarise(present(self.columns, names, self.partial, what), names, what)
        return self._samples[names]

    def levels(self, name: str, what: str) -> tuple[Any, ...]:
        return levels_of(self.columns, name, what, self.categories.get(name))

    # ---- knots ----

    def given_knots(self, name: str, own: Mapping[str, tuple[float, ...]], what: str) -> np.ndarray | None:
        values = own.get(name, self.knots.get(name))
        if values is None:
            return None
        array = np.asarray(values, dtype=np.float64) if np.asarray(values).dtype.kind in "iuf" else None
        if array is None or array.ndim != 1 or not np.isfinite(array).all():
            raise TermError(f"{what}: knots of {name!r} must be a list of finite numbers; got {values!r}.")
        return array

    def period_ends(self, name: str, sample: Sample, what: str) -> np.ndarray | None:
        """(low, high) of the covariate's declared period; None where it has none."""
        if self.periods.get(name) is None:
            return None
        period = np.asarray(self.periods[name], dtype=np.float64)
        if period.shape == (2,) and np.isfinite(period).all() and period[1] > period[0]:
            return period
        if period.shape != () or not np.isfinite(period) or period <= 0:
            raise TermError(
                f"{what}: the period of {name!r} must be a positive number or (low, high); got {self.periods[name]!r}."
            )
        length, low, high = float(period), sample.lower[0], sample.upper[0]
        slack = 1e-9 * length
        for start in (-length / 2, 0.0):  # (−π, π) and (0, 2π) before anything else
            if start - slack <= low and high <= start + length + slack:
                return np.array([start, start + length])
        return np.array([0.0, length])  # rows beyond wrap round: the ends must not depend on them

    def knot_rows(self, names: tuple[str, ...], sample: Sample, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Thin-plate knots and their shares. In small tables, and where `max_knots` asks for it, mgcv's: every distinct
        row, or that many drawn at random where there are more. In large ones means of groups of rows."""
        rows = len(self.columns[names[0]])
        most = self.max_knots if self.max_knots is not None else _MGCV_KNOTS
        if sample.exact and sample.distinct <= most and (rows <= _SMALL or self.max_knots is not None):
            return sample.points, np.ones(len(sample.points))
        if self.max_knots is None:
            return gathered(sample, most_knots(sample.dim, k, rows))
        knots = drawn(self.columns, names, most)
        return knots, np.ones(len(knots))

    # ---- one basis ----

    # long: what a term says of its basis
    def request(
        self, names: tuple[str, ...], k: int | None, m: Orders, own: Mapping[str, tuple[float, ...]], what: str,
        xt: Any = None, sample: Sample | None = None,
    ) -> Request:  # fmt: skip
        sample = self.sample(names, what) if sample is None else sample
        return Request(
            what,
            names,
            k,
            m,
            sample,
            lambda name: self.given_knots(name, own, what),
            lambda name: self.period_ends(name, sample, what),
            lambda k, ends: self.quantile_knots(names[0], sample, k, ends, what),
            lambda k: self.knot_rows(names, sample, k),
            xt,
            1.0 / len(self.columns[names[0]]),
        )

    def quantile_knots(
        self, name: str, sample: Sample, k: int, ends: tuple[float, float] | None, what: str
    ) -> np.ndarray:
        """k knots at quantiles; between `ends`, rows beyond them wrapped round."""
        columns = present(self.columns, (name,), self.partial, what)
        if ends is not None and (sample.lower[0] < ends[0] or sample.upper[0] > ends[1]):
            columns = {name: ends[0] + np.mod(numeric(columns, name, what) - ends[0], ends[1] - ends[0])}
        return quantile_knots(columns, name, what, k, ends)

    # ---- terms ----

    def smooth(self, spec: Smooth) -> list[BuiltTerm]:
        if spec.bs == "re":
            return self.random(spec)
        if spec.bs == "fs":
            return [self.factor_smooth(spec)]
        what, kind = spec.label, kind_of(spec.bs)
        if kind.categorical:
            return self.labelled(spec, kind)
        for name in spec.covariates:
            if name in spec.factors or is_category(self.columns, name, what):
                raise DataError(
                    f"{what}: column {name!r} holds categories, and bs={spec.bs!r} needs numbers. "
                    f"Use bs='re' or 'fs', or by=factor({name})."
                )
        check_present(self.columns, spec.covariates, self.partial, kind, what)
        setup = kind.setup(self.request(spec.covariates, spec.k, spec.m, spec.knots, what, spec.xt))
        return self.finish(spec, setup, self.sample(spec.covariates, what), constrain=True)

    def linked(self, spec: Smooth, members: Sequence[Smooth]) -> list[BuiltTerm]:
        """One of the smooths that share an id, with their common basis."""
        spec = like_the_first(spec, members[0])
        if len(members) == 1:
            return self.smooth(spec)
        return self.on({**self.columns, **pooled(spec, members, self.columns)}).smooth(spec)

    def on(self, columns: Columns) -> _Builder:
        """The same options on other rows."""
        return _Builder(
            columns, self.knots, self.periods, self.partial, self.coded_fully, self.max_knots, self.categories
        )

    def labelled(self, spec: Smooth, kind: BasisKind) -> list[BuiltTerm]:
        """A smooth of labels: points are their positions among the kind's levels."""
        what, (name,) = spec.label, spec.covariates
        labels = kind.levels(spec.xt, what)
        at = known_codes(self.columns, name, labels, what).astype(np.float64)
        sample = summarise({name: at}, (name,), what)
        setup = kind.setup(self.request(spec.covariates, spec.k, spec.m, spec.knots, what, spec.xt, sample))
        return self.finish(spec, setup, sample, constrain=True, labels=labels)

    def tensor(self, spec: Tensor) -> list[BuiltTerm]:
        what, start, margins, samples, factors = spec.label, 0, [], [], []
        for i, size in enumerate(spec.d):
            names = spec.covariates[start : start + size]
            start += size
            if spec.bs[i] == "re":
                factors += names
                continue
            k = spec.k[i] if spec.k is not None else 5**size  # mgcv's default
            kind = kind_of(spec.bs[i])
            check_present(self.columns, names, self.partial, kind, what)
            m = None if spec.m is None or not kind.takes_m else spec.m[i]
            own = {name: v for name, v in spec.knots.items() if name in names}
            setup = kind.setup(self.request(names, k, m, own, what))
            samples.append(self.sample(names, what))
            margins.append(setup if spec.function == "t2" else margin_setup(setup, samples[-1], spec.interaction))
        if factors:
            return [self.random_tensor(spec, margins, factors)]
        sample = self.sample(spec.covariates, what)
        if spec.function == "t2":
            return self.finish(spec, ridge_product(margins, samples, sample), sample, constrain=True)
        setup = margins[0] if len(margins) == 1 else tensor_product(margins, sample)
        return self.finish(spec, setup, sample, constrain=not spec.interaction)

    def random_tensor(self, spec: Tensor, margins: list[Setup], factors: list[str]) -> BuiltTerm:
        """te(x, g, bs=('cr', 're')): functions of x for each level of g, with the penalty of x and a ridge; no
        constraint, as the ridge sees every function."""
        what = spec.label
        names = tuple(name for name in spec.covariates if name not in factors)
        if spec.function == "t2" or len(factors) != 1 or spec.bs.count("re") != 1 or spec.by is not None or not margins:
            raise TermError(
                f"{what}: a tensor product takes one margin with bs='re', of one factor, beside numeric margins, and "
                "then no by=."
            )
        if not (factors[0] in spec.factors or is_category(self.columns, factors[0], what)):
            raise TermError(f"{what}: the margin with bs='re' must be a factor; write factor({factors[0]}).")
        sample = self.sample(names, what)
        setup = margins[0] if len(margins) == 1 else tensor_product(margins, sample)
        roots = scale_roots((*setup.roots, np.eye(setup.basis.size)), setup.columns)
        return self.by_level(spec, names, factors, setup.basis, roots, (*setup.ranks, setup.basis.size))

    def finish(
        self, spec: Smooth | Tensor, setup: Setup, sample: Sample, constrain: bool, labels: tuple[Any, ...] = ()
    ) -> list[BuiltTerm]:
        """Scale the penalties, absorb the constraint Σ_i f(x_i) = 0 (not where a numeric `by` varies), and split
        by levels."""
        what, by = spec.label, spec.by
        basis, roots, ranks, null_dim = (
            setup.basis,
            scale_roots(setup.roots, setup.columns),
            setup.ranks,
            setup.null_dim,
        )
        levels: tuple[Any, ...] | None = None
        known: tuple[Any, ...] = ()
        if by is not None:
            if by in spec.factors or is_category(self.columns, by, what):
                known = self.levels(by, what)
                ordered = by in self.categories and self.categories[by].ordered
                levels = known[1:] if ordered else known
            else:
                column = numeric(self.columns, by, what)
                low, high = column.min(), column.max()
                if not (np.isfinite(low) and np.isfinite(high)):
                    check_finite(low, high, column, by, what)
                constrain = constrain and low == high
        if constrain:
            Z = householder(sample.mean(setup.columns))
            basis = basis.times(Z)
            roots = tuple(E @ Z for E in roots)
            null_dim = max(null_dim - 1, 0)
        size = basis.size
        ranks = tuple(min(rank, size) for rank in ranks)
        edges = self.edges(spec.covariates, basis) if not labels else (np.full(1, -np.inf), np.full(1, np.inf))
        matrices = tuple(E.T @ E for E in roots)
        spectrum = None
        if setup.spectrum is not None:  # scaled as the penalties were
            first = [np.linalg.norm(E, 2) ** 2 for E in scale_roots(setup.roots, setup.columns)]
            spectrum = setup.spectrum * (np.array(first) / setup.spectrum.max(axis=0))
        out: list[BuiltTerm] = []
        for level in (None,) if levels is None else levels:
            label = what if by is None else f"{what}:{by}" + ("" if level is None else level_name(level))
            penalties = () if spec.fx else _penalties(label, matrices, ranks, roots)
            out.append(
                SmoothTerm(
                    label=label,
                    covariates=spec.covariates + ((by,) if by is not None else ()),
                    size=size,
                    penalties=penalties,
                    fixed_sp=_fixed(spec, len(penalties)),
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
                    partial=self.lacked(spec.covariates, basis),
                    spectrum=None if spec.fx else spectrum,
                )
            )
        return out

    def edges(self, names: tuple[str, ...], basis: Any) -> tuple[np.ndarray, np.ndarray]:
        """The box of the data, infinite where a covariate is periodic."""
        periodic = _periodic(basis)
        sample = self.sample(names, "")
        return np.where(periodic, -np.inf, sample.lower), np.where(periodic, np.inf, sample.upper)

    def lacked(self, names: tuple[str, ...], basis: Basis) -> tuple[str, ...]:
        """The periodic covariates that a row may lack."""
        return tuple(name for name, round_ in zip(names, _periodic(basis)) if round_ and name in self.partial)

    def factor_smooth(self, spec: Smooth) -> BuiltTerm:
        """mgcv's `fs`: tp functions rotated with the identity as penalty of the wiggly ones; each other has a ridge.

        With two or more of those (m = 2: a slope and a level) mgcv leaves the choice among their rotations to rounding;
        here the level is the last and the slope is orthogonal to it over the data.
        """
        what = spec.label
        if spec.by is not None:
            raise TermError(
                f"{what}: bs='fs' takes no by; the factor among its covariates already gives a curve a level."
            )
        factors = [n for n in spec.covariates if n in spec.factors or is_category(self.columns, n, what)]
        names = tuple(n for n in spec.covariates if n not in factors)
        if not factors or not names:
            raise TermError(
                f"{what}: bs='fs' takes numbers, and one factor or more, among its covariates; got "
                f"{listing(factors) or 'no factor'}. Write factor(name) for a numeric column of labels."
            )
        kind = kind_of(base_of(what, spec.xt))
        check_present(self.columns, names, self.partial, kind, what)
        setup = kind.setup(self.request(names, spec.k, spec.m, spec.knots, what))
        if len(setup.roots) != 1:
            raise TermError(f"{what}: bs='fs' needs a basis with one penalty for its curves; {spec.xt!r} has more.")
        sample = self.sample(names, what)
        P, rank = natural(setup, sample)
        basis, columns, k = setup.basis.times(P), setup.columns @ P, len(P)
        size = np.abs(columns).sum(axis=1).max() ** 2  # scale_roots of 0/1 diagonals
        groups = [np.arange(rank)] + [np.array([j]) for j in range(rank, k)]
        matrices = tuple(np.diag(size * np.isin(np.arange(k), group)) for group in groups)
        roots = tuple(np.sqrt(S) for S in matrices)
        return self.by_level(spec, names, factors, basis, roots, tuple(map(len, groups)))

    # long: the pieces of one term
    def by_level(
        self, spec: Smooth | Tensor, names: tuple[str, ...], factors: list[str], basis: Basis,
        roots: tuple[np.ndarray, ...], ranks: tuple[int, ...],
    ) -> BuiltTerm:  # fmt: skip
        """A block of the same functions and penalties for each level, or each combination of levels that has rows."""
        what, k = spec.label, basis.size
        coded = tuple((name, self.levels(name, what)) for name in factors)
        count = len(coded[0][1]) if len(coded) == 1 else int(np.prod([len(levels) for _, levels in coded]))
        if len(coded) > 1:
            not_too_many(what, f"k={k} for {count} combinations of levels", k * count)
        matrices = tuple(E.T @ E for E in roots)
        penalties = () if spec.fx else _penalties(what, matrices, tuple(rank * count for rank in ranks), roots, count)
        edges = self.edges(names, basis)
        return FactorSmoothTerm(
            label=what,
            covariates=(*names, *factors),
            size=k * count,
            penalties=penalties,
            fixed_sp=_fixed(spec, len(penalties)),
            null_dim=k * count if spec.fx else 0,
            factor_levels=coded[0] if len(coded) == 1 else None,
            breaks=basis.breaks if len(coded) == 1 else None,
            period=basis.period,
            basis=basis,
            lower=edges[0],
            upper=edges[1],
            factors=coded,
            partial=self.lacked(names, basis),
        )

    def random(self, spec: Smooth) -> list[BuiltTerm]:
        """`re`: independent normal coefficients, penalty |β|² scaled like any other."""
        what = spec.label
        if spec.k is not None or spec.knots:
            raise TermError(f"{what}: bs='re' takes neither k nor knots; it has one coefficient a level.")
        factors = [n for n in spec.covariates if n in spec.factors or is_category(self.columns, n, what)]
        slopes = tuple(n for n in spec.covariates if n not in factors)
        if spec.by is not None and (spec.by in spec.factors or is_category(self.columns, spec.by, what)):
            raise TermError(
                f"{what}: bs='re' with a factor in by: put the factor among the covariates, "
                f"s({', '.join((*spec.covariates, spec.by))}, bs='re')."
            )
        coded = tuple((name, self.levels(name, what)) for name in factors)
        size = int(np.prod([len(levels) for _, levels in coded]))
        product = np.ones(1)
        for name in slopes:
            column = numeric(self.columns, name, what)
            check_finite(column.min(), column.max(), column, name, what)
            product = product * column
        label = what if spec.by is None else f"{what}:{spec.by}"
        scale = np.abs(product).max()
        penalties = () if spec.fx else _penalties(label, (np.full((1, 1), scale**2),), (size,), None, size)
        multipliers = (*slopes, *((spec.by,) if spec.by else ()))
        blocks = len(coded) == 1 and len(multipliers) <= 1
        return [
            RandomTerm(
                label=label,
                covariates=spec.columns,
                size=size,
                penalties=penalties,
                fixed_sp=_fixed(spec, len(penalties)),
                null_dim=size if spec.fx else 0,
                by=(multipliers[0] if multipliers else None) if blocks else spec.by,
                factor_levels=coded[0] if blocks else None,
                factors=coded,
                slopes=slopes,
            )
        ]

    def linear(self, spec: Linear) -> list[BuiltTerm]:
        out: list[BuiltTerm] = []
        for name in spec.covariates:
            column = numeric(self.columns, name, f"linear({name})")
            low, high = (column.min(), column.max()) if column.size else (0.0, 1.0)
            check_finite(low, high, column, name, f"linear({name})")
            out.append(LinearTerm(label=name, covariates=(name,), size=1, null_dim=1, parametric=True))
        return out

    def factor(self, spec: Factor) -> list[BuiltTerm]:
        what = f"factor({spec.name})"
        levels = self.levels(spec.name, what)
        if len(levels) < 2:
            raise TermError(
                f"{what}: the column has one level only ({listing(levels)}), so nothing can be estimated. "
                "Leave the term out."
            )
        full, self.coded_fully = not self.coded_fully, True
        columns = levels if full else levels[1:]
        return [
            FactorTerm(
                label=spec.name,
                covariates=(spec.name,),
                size=len(columns),
                null_dim=len(columns),
                parametric=True,
                factor_levels=(spec.name, columns),
                levels=levels,
                full=full,
            )
        ]


def build(
    terms: Terms,
    columns: Columns,
    knots: Mapping[str, Any],
    periods: Mapping[str, Any],
    partial: Collection[str],
    intercept: bool,
    max_knots: int | None,
    categories: Mapping[str, Category],
) -> list[BuiltTerm]:
    """See `Terms.build`."""
    if strange := [name for name in knots if name not in terms.columns]:
        raise TermError(unknown("A name in knots", strange[0], terms.columns))
    if max_knots is not None and max_knots < 3:
        raise TermError(f"max_knots must be at least 3; got {max_knots!r}.")
    sizes = {name: len(columns[name]) for name in terms.columns if name in columns}
    if len(set(sizes.values())) > 1:
        raise DataError(f"The columns must have one value a row each; got lengths {sizes}.")
    builder = _Builder(columns, knots, periods, partial, intercept, max_knots, categories)
    makers: dict[type[Term], Any] = {
        Smooth: lambda term: (
            builder.smooth(term) if term.id is None else builder.linked(term, linked(term, terms.terms))
        ),
        Tensor: builder.tensor,
        Linear: builder.linear,
        Factor: builder.factor,
        KernelSmooth: lambda term: [build_kernel(term, columns, periods)],
        Interaction: lambda term: [build_interaction(term, columns, builder.levels, parametric, intercept)],
    }
    written = [_as_factor(term, columns) for term in terms]
    parametric = [term for term in written if type(term) in (Linear, Factor, Interaction)]
    out: list[BuiltTerm] = []
    # factors in turn: the coding of one depends on those before it
    alone = {i: makers[type(term)](term) for i, term in enumerate(written) if type(term) is Factor}
    rest = [(i, term) for i, term in enumerate(written) if i not in alone]
    with single_threaded():
        many = max(sizes.values(), default=0) >= _MANY and sum(type(term) in (Smooth, Tensor) for term in terms) > 1
        made = run_tasks(lambda i, term: makers[type(term)](term), rest, cores() if many else 1)
    found = alone | {i: some for (i, _), some in zip(rest, made)}
    for i in range(len(found)):
        out.extend(found[i])
    labels = [term.label for term in out]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise TermError(f"Two terms are called {listing(twice)}. Keep one, or give a copy of the column another name.")
    return side(out, columns, intercept)


def _periodic(basis: Any) -> np.ndarray:
    """Which of the basis's covariates are."""
    margins = basis.margins if isinstance(basis, TensorProduct) else (basis,)
    return np.concatenate([[margin.period is not None] * margin.dim for margin in margins]).astype(bool)


def _as_factor(term: Term, columns: Columns) -> Term:
    """A column of labels that is named by itself, `y ~ g`, is a factor."""
    if isinstance(term, Linear) and term.bare and term.covariates[0] in columns:
        (name,) = term.covariates
        return Factor(name) if is_category(columns, name, term.label) else term
    return term


def _penalties(
    label: str,
    matrices: tuple[np.ndarray, ...],
    ranks: tuple[int, ...],
    roots: tuple[np.ndarray, ...] | None = None,
    copies: int = 1,
) -> tuple[Penalty, ...]:
    names = [label] if len(matrices) == 1 else [f"{label}{i + 1}" for i in range(len(matrices))]
    known = roots if roots is not None else (None,) * len(matrices)
    return tuple(Penalty(S, rank, name, E, copies) for S, rank, name, E in zip(matrices, ranks, names, known))


def _fixed(spec: Smooth | Tensor, count: int) -> tuple[float | None, ...]:
    if spec.sp is None or count == 0:
        return (None,) * count
    sp = spec.sp * count if len(spec.sp) == 1 and count == 1 else spec.sp
    if len(sp) != count:
        raise TermError(f"{spec.label}: sp takes {count} value(s), one for each penalty; got {len(sp)}.")
    return sp
