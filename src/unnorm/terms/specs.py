"""What the user writes: `s`, `linear`, `factor`, collected by `+` into `Terms` (tensor products: tensor_specs.py).
No data yet; `Terms.build` meets them with data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, final

from ..errors import TermError, unknown
from .arguments import checked_knots, count_range, fixed_sp, flag, integer, not_too_many, plain
from .kinds import Ends, Orders, nowhere
from .registry import FACTOR_KINDS, KINDS
from .writing import alone, by_text, knots_text, options_of, written

if TYPE_CHECKING:
    from .base import BuiltTerm, Columns
    from .levels import Category

BASES = (*KINDS, *FACTOR_KINDS)
MARGINS = tuple(name for name, kind in KINDS.items() if kind.margin)
_COVARIATES = {"re": (1, 8), "fs": (2, 6)} | {name: kind.covariates for name, kind in KINDS.items()}


class Term(ABC):
    """A specification: what the user wrote about one term."""

    isotropic: ClassVar[bool] = False  # a smooth of all its covariates in one space

    def __add__(self, other: Term | Terms) -> Terms:
        return Terms((self,)) + other

    def __radd__(self, other: int) -> Terms:  # sum([s("x"), s("z")]) begins with 0
        return Terms((self,)) if type(other) is int and other == 0 else NotImplemented

    @property
    @abstractmethod
    def label(self) -> str:
        """The term's name in tables and plots."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Every column that the term reads."""

    def labelled(self, names: Collection[str]) -> Term:
        """The term with these columns read as categories where it takes categories, whatever they hold."""
        return self

    def unpenalised(self) -> Term:
        """The term without a penalty to be chosen; one with its own sp=, and a random effect, stay as they are."""
        return self


@final
@dataclass(frozen=True)
class Smooth(Term):
    """s(…): a penalised smooth function of its covariates."""

    isotropic: ClassVar[bool] = True
    covariates: tuple[str, ...]
    k: int | None = None
    bs: str = "tp"
    by: str | None = None
    m: Orders = None
    sp: tuple[float | None, ...] | None = None
    fx: bool = False
    knots: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    factors: frozenset[str] = frozenset()  # columns to read as categories whatever they hold
    xt: Any = None  # what a basis needs beside: neighbours (mrf), the base of a factor-smooth (fs)
    id: str | None = None  # smooths with the same one share basis and smoothing parameters
    open: bool = field(default=False, compare=False)  # whether bs was left out: an angle's smooth is then cyclic

    def labelled(self, names: Collection[str]) -> Smooth:
        own = {self.by, *(self.covariates if self.bs in FACTOR_KINDS else ())}.intersection(names)
        return replace(self, factors=self.factors | {str(name) for name in own}) if own else self

    def unpenalised(self) -> Smooth:
        return self if self.sp is not None or self.bs in FACTOR_KINDS else replace(self, fx=True)

    @property
    def label(self) -> str:
        return f"s({','.join(self.covariates)})"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.covariates + ((self.by,) if self.by else ())

    def __hash__(self) -> int:
        return hash(
            (self.covariates, self.k, self.bs, self.by, self.m, self.sp, self.fx, tuple(sorted(self.knots.items())))
        )

    def __str__(self) -> str:
        bs = None if self.bs == "tp" and self.open else self.bs
        sp = self.sp[0] if self.sp is not None and len(self.sp) == 1 else self.sp
        options = options_of(
            k=self.k,
            bs=bs,
            by=by_text(self),
            m=self.m,
            sp=sp,
            fx=self.fx or None,
            knots=knots_text(self),
            xt=self.xt,
            id=self.id,
        )
        return f"s({', '.join([*(written(n, self.factors) for n in self.covariates), *options])})"


@final
@dataclass(frozen=True)
class Linear(Term):
    """linear(…): each covariate itself, one coefficient each, not penalised."""

    covariates: tuple[str, ...]
    bare: bool = field(default=False, compare=False)  # named by itself: a factor where the column holds labels

    @property
    def label(self) -> str:
        return ",".join(self.covariates)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.covariates

    def __str__(self) -> str:
        if self.bare:
            return alone(self.covariates[0])
        return f"linear({', '.join(written(n) for n in self.covariates)})"


@final
@dataclass(frozen=True)
class Factor(Term):
    """factor(name): one coefficient for each level but the first, not penalised."""

    name: str

    @property
    def label(self) -> str:
        return self.name

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)

    def __str__(self) -> str:
        return f"factor({written(self.name)})"


@final
@dataclass(frozen=True)
class Terms:
    """Terms in order, whether there is an intercept, and the response if a formula named one."""

    terms: tuple[Term, ...] = ()
    intercept: bool = True
    response: str | None = None
    offsets: tuple[str, ...] = ()  # columns, or arithmetic on them, that are added to η as they are

    def __add__(self, other: Term | Terms) -> Terms:
        more = other.terms if isinstance(other, Terms) else (other,)
        if not all(isinstance(term, Term) for term in more):
            raise TermError(
                f"`+` collects terms such as s('x'), te('x', 'y'), linear('x'), factor('g'); got {other!r}."
            )
        intercept = self.intercept and (other.intercept if isinstance(other, Terms) else True)
        response = self.response or (other.response if isinstance(other, Terms) else None)
        offsets = self.offsets + (other.offsets if isinstance(other, Terms) else ())
        return Terms(self.terms + more, intercept, response, offsets)

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)

    def __len__(self) -> int:
        return len(self.terms)

    def __str__(self) -> str:
        parts = [str(term) for term in self.terms] + [f"offset({written(name)})" for name in self.offsets]
        if not self.intercept:
            parts.insert(0, "0")
        right = " + ".join(parts) or "1"
        return right if self.response is None else f"{written(self.response)} ~ {right}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that some term reads, in order, each once."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.columns))

    def labelled(self, names: Collection[str]) -> Terms:
        """With these columns read as categories in `by=`, `re` and `fs`: labels that happen to be numbers."""
        return replace(self, terms=tuple(term.labelled(names) for term in self.terms))

    def without_intercept(self) -> Terms:
        return replace(self, intercept=False)

    def unpenalised(self) -> Terms:
        """Every term without a penalty to be chosen."""
        return replace(self, terms=tuple(term.unpenalised() for term in self.terms))

    # long: what un.gam and a model's covariates say of the columns
    def build(
        self,
        columns: Columns,
        *,
        knots: Mapping[str, Any] | None = None,
        periods: Mapping[str, Any] | None = None,
        partial: Collection[str] = (),
        intercept: bool | None = None,
        max_knots: int | None = None,
        categories: Mapping[str, Category] | None = None,
        select: bool = False,
        links: bool = False,
        boundary: Callable[[tuple[str, ...]], Any] = lambda names: None,
        ends: Ends = nowhere,
    ) -> list[BuiltTerm]:
        """The terms on these data, one for each smooth (each level of a `by` factor); the intercept is not among them.

        Smooths sum to zero over the rows of `columns` (margins do in `ti`), except `re`, `fs` and those times a `by`
        that varies; those of a `by` factor over all rows, not over the level's own. So does mgcv.

        columns: name → (n,) values.
        knots: covariate → knot values (two end points for cc, ps, cp); a term's own `knots` come first.
        periods: covariate → period, or (low, high); cyclic bases use it unless knots are given.
        partial: covariates that a row may lack (nan), as a step of length zero lacks a direction. Cyclic terms of them
            are zero at such rows, and set up on the others; every other term refuses nan.
        intercept: overrides the formula's; without one the first factor has a coefficient for every level.
        max_knots: thin-plate knots as mgcv places them: every distinct row, or so many of them drawn at random (always
            the same ones) where there are more. By default every one of up to 2,000 in tables of up to 5,000 rows, and
            means of groups of rows in larger ones (`terms/sample.py`, `gathered`).
        categories: column → its levels in the user's order, and whether they are ordered. An ordered `by` gives a
            smooth for every level but the first: differences from it, beside a smooth without `by`.
        select: a second penalty on each smooth's null space, so that the data can remove the whole term.
        links: whether the caller's fit can share smoothing parameters among terms (`id=`).
        boundary: covariates → loops of the domain in which they are a place; soap films without their own take it.
        ends: covariate → (low, high) of the domain of which it is a coordinate; cyclic bases without knots or a period
            close there.

        >>> import numpy as np
        >>> x = np.linspace(0, 1, 50)
        >>> (term,) = Terms((s("x", k=5),)).build({"x": x})
        >>> term.label, term.design({"x": x}).shape
        ('s(x)', (50, 4))
        """
        from .build import build

        if not links and (wrong := [term for term in self.terms if isinstance(term, Smooth) and term.id is not None]):
            raise TermError(f"{wrong[0].label}: id= links smooths in un.gam; here each has its own. Leave it out.")
        intercept = self.intercept if intercept is None else intercept
        return build(
            self, columns, knots or {}, periods or {}, partial, intercept, max_knots, categories or {}, boundary, ends,
            select,
        )  # fmt: skip


# ---- the functions users call ----


def s(
    *covariates: str | Factor,
    k: int | None = None,
    bs: str | None = None,
    by: str | Factor | None = None,
    m: int | Sequence[int] | None = None,
    sp: float | Sequence[float | None] | None = None,
    fx: bool = False,
    knots: Any = None,
    xt: Any = None,
    id: str | int | None = None,
) -> Smooth:
    """A smooth function of one or more covariates.

    Args:
        covariates: names of columns, or of the model's covariates.
        k: basis size, sum-to-zero constraint not counted (10 for one covariate, 30 for two, 110 for three).
        bs: tp (thin plate, 1 to 3 covariates), cr, cc (cyclic), ps, cp (cyclic), ts and cs (tp and cr that can vanish),
            gp (Gaussian process), sos (sphere: latitude, longitude), mrf (regions of a map), so (soap film: a region
            with a boundary), ad (adaptive), re (random effects), fs (a curve for each level of a factor). Left out, it
            is tp; for one covariate whose period is known, such as an angle on a circle, cc. Without knots or a period
            the cyclic ones close at the ends of the model's domain, if the covariate is one of its coordinates, and
            else at those of the rows.
        by: a column that multiplies the function, or a factor: one function for each level. Write factor("subject")
            where numbers are labels.
        m: order of the penalty (tp), or (degree − 1, order of the differences) (ps, cp).
        sp: fixed smoothing parameter(s).
        fx: whether to leave out the penalty.
        knots: values, or a mapping from covariate to values.
        xt: for mrf {"nb": {region: neighbours}}, {"polys": {region: points}} or {"penalty": S, "regions": names}; for
            so {"boundary": loops}, with "grid" (200), "interior" (30) and "k" (one for each loop) where the defaults
            will not do (docs/gam.md); for fs the basis of its curves, e.g. "cr".
        id: smooths with the same id share the first one's basis and its smoothing parameters (un.gam); with a factor in
            by, all its levels do.

    >>> str(s("angle", bs="cc", k=20) + s("x", "y"))
    "s(angle, k=20, bs='cc') + s(x, y)"
    """
    names, factors = operands_of("s", covariates)
    by, factors = by_name("s", names, by, factors)
    left_open, bs = bs is None, "tp" if bs is None else bs
    if bs not in BASES:
        raise TermError(unknown("bs", bs, BASES))
    label = f"s({','.join(names)})"
    if k is not None:
        k = integer(label, "k", k, 1)
        not_too_many(label, f"k={k}", k)
    orders: Any = None
    if m is not None:
        if bs == "re" or (bs in KINDS and not KINDS[bs].takes_m):
            takes = [name for name, kind in KINDS.items() if kind.takes_m]
            raise TermError(f"{label}: bs={bs!r} takes no m; it is for fs, {', '.join(takes)} (docs/gam.md says what).")
        orders = KINDS[base_of(label, xt) if bs == "fs" else bs].checked_m(label, m)
    if xt is not None and not (bs == "fs" or (bs in KINDS and KINDS[bs].takes_xt)):
        raise TermError(
            f"{label}: bs={bs!r} takes no xt; it is for 'mrf' (neighbours), 'so' (the boundary) and 'fs' (the curves' "
            "basis)."
        )
    dims = _COVARIATES[bs]
    if not dims[0] <= len(names) <= dims[1]:
        raise TermError(
            f"{label}: bs={bs!r} takes {count_range(dims)} covariate(s); got {len(names)}."
            + _written(bs, too_many=len(names) > dims[1])
        )
    return Smooth(
        names,
        k,
        bs,
        by,
        orders,
        fixed_sp(label, sp),
        flag(label, fx),
        checked_knots(label, names, knots),
        factors,
        KINDS[bs].checked_xt(label, names, xt) if bs in KINDS else plain(xt),
        _checked_id(label, bs, id),
        left_open,
    )


def _checked_id(label: str, bs: str, id: Any) -> str | None:
    if id is None:
        return None
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise TermError(f"{label}: id must be a word or a whole number, e.g. id=1; got {id!r}.")
    if bs in FACTOR_KINDS or KINDS[bs].categorical:
        raise TermError(f"{label}: id= links smooths of numbers; bs={bs!r} takes none.")
    return str(id)


def base_of(label: str, xt: Any) -> str:
    """The basis of a factor-smooth's curves: "tp", or what xt says (a name, or {"bs": name})."""
    name = "tp" if xt is None else xt.get("bs") if isinstance(xt, Mapping) else xt
    if name not in KINDS or KINDS[name].categorical:
        raise TermError(f"{label}: " + unknown("xt of bs='fs', the basis of its curves,", name, MARGINS))
    return name


def linear(*covariates: str) -> Linear:
    """Straight lines: each covariate times its own coefficient.

    Args:
        covariates: names of columns.

    >>> linear("age", "dose").covariates
    ('age', 'dose')
    """
    return Linear(operands_of("linear", covariates)[0])


def factor(name: str) -> Factor:
    """A category's effect, relative to its first level (levels in sorted order).

    Args:
        name: of the column whose values are labels.

    >>> factor("subject").name
    'subject'
    """
    return Factor(operands_of("factor", (name,))[0][0])


# ---- checks of what was written ----


def names_of(function: str, covariates: Sequence[Any]) -> tuple[str, ...]:
    """Column names, each once, none of them a factor(…)."""
    names, factors = operands_of(function, covariates)
    if factors:
        raise TermError(f"{function}() takes column names; got factor({min(factors)}).")
    return names


def operands_of(function: str, covariates: Sequence[Any]) -> tuple[tuple[str, ...], frozenset[str]]:
    names, factors = [], []
    for covariate in covariates:
        if isinstance(covariate, Factor):
            factors.append(covariate.name)
            covariate = covariate.name
        if not isinstance(covariate, str) or not covariate:
            raise TermError(f"{function}() takes column names as strings; got {covariate!r}.")
        names.append(covariate)
    if not names:
        raise TermError(f"{function}() needs at least one column name, e.g. {function}('x').")
    if len(set(names)) < len(names):
        raise TermError(f"{function}({', '.join(names)}): a column is named twice.")
    return tuple(names), frozenset(factors)


def by_name(
    function: str, names: tuple[str, ...], by: Any, factors: frozenset[str]
) -> tuple[str | None, frozenset[str]]:
    if by is None:
        return None, factors
    (name,), more = operands_of(f"{function}(by=)", (by,))
    if name in names:
        raise TermError(
            f"{function}({', '.join(names)}): by={name} is one of its own covariates; by= multiplies another."
        )
    return name, factors | more


def _written(bs: str, too_many: bool) -> str:
    """What to write where a basis got another number of covariates than it takes."""
    if bs in KINDS and KINDS[bs].usage:
        return f" Write {KINDS[bs].usage}."
    return " Use te() for smooths of several covariates." if too_many else ""
