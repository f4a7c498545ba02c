"""Tensor products as the user writes them: `te`, `ti` and `t2`."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from ..errors import TermError, unknown
from .arguments import checked_knots, fixed_sp, flag, integer, not_too_many, per_margin, sequence
from .kinds import MOST_ORDER, Orders
from .registry import KINDS
from .specs import MARGINS, Factor, Term, by_name, operands_of
from .writing import by_text, knots_text, options_of, written

_CURVES = ("cr", "cs", "ps", "cp")  # bases of one covariate, which mgcv takes for 'tp' in margins of several


@final
@dataclass(frozen=True)
class Tensor(Term):
    """te(…), ti(…) or t2(…): products of marginal bases; ti is less what the margins alone can say, t2 has ridges."""

    covariates: tuple[str, ...]
    k: tuple[int, ...] | None = None
    bs: tuple[str, ...] = ("cr",)
    d: tuple[int, ...] = ()  # how many covariates each margin takes
    by: str | None = None
    m: tuple[Orders, ...] | None = None
    sp: tuple[float | None, ...] | None = None
    fx: bool = False
    knots: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    function: str = "te"
    factors: frozenset[str] = frozenset()

    def labelled(self, names: Collection[str]) -> Tensor:
        own = {self.by, *(self.covariates if "re" in self.bs else ())}.intersection(names)
        return replace(self, factors=self.factors | {str(name) for name in own}) if own else self

    def unpenalised(self) -> Tensor:
        return self if self.sp is not None else replace(self, fx=True)

    @property
    def interaction(self) -> bool:
        return self.function == "ti"

    @property
    def label(self) -> str:
        return f"{self.function}({','.join(self.covariates)})"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.covariates + ((self.by,) if self.by else ())

    def __hash__(self) -> int:
        return hash((self.covariates, self.k, self.bs, self.d, self.by, self.m, self.sp, self.fx, self.function))

    def __str__(self) -> str:
        bs = None if set(self.bs) == {"cr"} else self.bs
        d = None if set(self.d) == {1} else self.d
        options = options_of(
            k=self.k, bs=bs, d=d, by=by_text(self), m=self.m, sp=self.sp, fx=self.fx or None, knots=knots_text(self)
        )
        names = [written(n, self.factors) for n in self.covariates]
        return f"{self.label.split('(')[0]}({', '.join([*names, *options])})"


def te(
    *covariates: str,
    k: int | Sequence[int] | None = None,
    bs: str | Sequence[str] = "cr",
    d: Sequence[int] | None = None,
    by: str | Factor | None = None,
    m: Any = None,
    sp: float | Sequence[float | None] | None = None,
    fx: bool = False,
    knots: Any = None,
) -> Tensor:
    """A tensor-product smooth, for covariates on different scales: one smoothing parameter for each margin.

    Args:
        covariates: names, one margin each unless `d` says otherwise.
        k: basis size of the margins, one for all or one each; default 5.
        bs: basis of the margins, one for all or one each; margins of several covariates are then 'tp'.
        d: how many covariates each margin takes, e.g. d=(2, 1) for space × time.
        by: a column that multiplies the function, or a factor: one function for each level.
        m: order of the margins' penalties, one for all or one each.
        sp: fixed smoothing parameter(s).
        fx: whether to leave out the penalty.
        knots: values, or a mapping from covariate to values.

    >>> str(te("x", "t", bs=("cr", "cc"), k=(5, 8)))
    "te(x, t, k=(5, 8), bs=('cr', 'cc'))"
    """
    return _tensor("te", covariates, k, bs, d, by, m, sp, fx, knots)


def ti(
    *covariates: str,
    k: int | Sequence[int] | None = None,
    bs: str | Sequence[str] = "cr",
    d: Sequence[int] | None = None,
    by: str | Factor | None = None,
    m: Any = None,
    sp: float | Sequence[float | None] | None = None,
    fx: bool = False,
    knots: Any = None,
) -> Tensor:
    """A tensor-product interaction: `te` with the main effects left out, for ti(x) + ti(y) + ti(x, y).

    Args:
        covariates: names, one margin each unless `d` says otherwise.
        k: basis size of the margins, one for all or one each; default 5.
        bs: basis of the margins, one for all or one each.
        d: how many covariates each margin takes, e.g. d=(2, 1) for space × time.
        by: a column that multiplies the function, or a factor: one function for each level.
        m: order of the margins' penalties, one for all or one each.
        sp: fixed smoothing parameter(s).
        fx: whether to leave out the penalty.
        knots: values, or a mapping from covariate to values.

    >>> str(ti("x", "y"))
    'ti(x, y)'
    """
    return _tensor("ti", covariates, k, bs, d, by, m, sp, fx, knots)


def t2(
    *covariates: str,
    k: int | Sequence[int] | None = None,
    bs: str | Sequence[str] = "cr",
    d: Sequence[int] | None = None,
    by: str | Factor | None = None,
    m: Any = None,
    sp: float | Sequence[float | None] | None = None,
    fx: bool = False,
    knots: Any = None,
) -> Tensor:
    """A tensor product with a ridge penalty for each product of the margins' parts (Wood, Scheipl & Faraway 2013).

    Args:
        covariates: names, one margin each unless `d` says otherwise.
        k: basis size of the margins, one for all or one each; default 5.
        bs: basis of the margins, one for all or one each.
        d: how many covariates each margin takes, e.g. d=(2, 1) for space × time.
        by: a column that multiplies the function, or a factor: one function for each level.
        m: order of the margins' penalties, one for all or one each.
        sp: fixed smoothing parameter(s).
        fx: whether to leave out the penalty.
        knots: values, or a mapping from covariate to values.

    >>> str(t2("x", "y", k=4))
    't2(x, y, k=(4, 4))'
    """
    return _tensor("t2", covariates, k, bs, d, by, m, sp, fx, knots)


# long: the arguments of te and ti, passed on
def _tensor(
    function: str, covariates: Sequence[str], k: Any, bs: Any, d: Any, by: Any, m: Any, sp: Any, fx: Any, knots: Any
) -> Tensor:
    names, factors = operands_of(function, covariates)
    by, factors = by_name(function, names, by, factors)
    label = f"{function}({','.join(names)})"
    if function != "ti" and len(names) < 2:
        raise TermError(f"{label}: {function}() takes two or more covariates; use s({','.join(names)}).")
    sizes = (1,) * len(names) if d is None else tuple(integer(label, "d", i, 1) for i in sequence(d))
    if sum(sizes) != len(names):
        raise TermError(f"{label}: d={sizes} adds up to {sum(sizes)} covariates; {len(names)} were given.")
    margins = len(sizes)
    bases = per_margin(label, "bs", bs, margins)
    if isinstance(bs, str) and bs in _CURVES:  # as in mgcv: a basis of curves, named once, is meant for the curves
        bases = tuple("tp" if size > 1 else bs for size in sizes)
    if factors - {by} and "re" not in bases:
        raise TermError(
            f"{label}: margins are numeric; for categories use by=factor(…), bs='re' for that margin, or s(…, bs='fs')."
        )
    for b, size in zip(bases, sizes):
        if b not in (*MARGINS, "re"):
            raise TermError(f"{label}: " + unknown("a margin's bs", b, (*MARGINS, "re")))
        if b != "re" and not KINDS[b].covariates[0] <= size <= KINDS[b].covariates[1]:
            able = [name for name in MARGINS if KINDS[name].covariates[0] <= size <= KINDS[name].covariates[1]]
            raise TermError(
                f"{label}: a margin of {size} covariate{'s' * (size > 1)} must be {' or '.join(map(repr, able))}; got "
                f"{b!r}. d= says how many covariates each margin has."
            )
    ks = None if k is None else tuple(integer(label, "k", i, 1) for i in per_margin(label, "k", k, margins))
    count = math.prod(ks) if ks is not None else math.prod(5**size for size in sizes)
    not_too_many(label, f"k={ks if ks is not None else 5}", count)
    ms: tuple[Orders, ...] | None = None
    if m is not None:
        orders = per_margin(label, "m", m, margins) if not isinstance(m, int | np.integer) else [m] * margins
        ms = tuple(
            None
            if i is None
            else tuple(integer(label, "m", j, 0, MOST_ORDER) for j in i)
            if isinstance(i, Sequence)
            else integer(label, "m", i, 0, MOST_ORDER)
            for i in orders
        )
    return Tensor(
        names,
        ks,
        bases,
        sizes,
        by,
        ms,
        fixed_sp(label, sp),
        flag(label, fx),
        checked_knots(label, names, knots),
        function,
        factors,
    )
