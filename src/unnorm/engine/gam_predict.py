"""Predictions of a `Gam` at rows: η, μ, each term by itself, or the matrix that makes them of the coefficients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar, Unpack, get_args, overload

import numpy as np

from .._base import numerics
from .._base.frames import Table, to_native
from .._base.frames import table as as_table
from ..errors import InputError, unknown, warn
from . import gam_levels, gam_rows, inference
from .smoothed import INTERCEPT

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm, Columns
    from .gam_result import Gam

CHUNK = 65_536  # rows of the dense design held at once: 58 MB at p = 110
HELD = 20_000_000  # numbers of it, at most
Scale = Literal["link", "response"]
Kind = Literal["link", "response", "terms", "matrix"]
KINDS = get_args(Kind)
T = TypeVar("T")


class PredictOptions(TypedDict, total=False):
    """What `Gam.predict` takes besides rows, se and kind."""

    unconditional: bool
    offset: Any
    terms: str | Sequence[str] | None
    exclude: str | Sequence[str] | None


class Prediction(NamedTuple, Generic[T]):
    """`estimate` and its standard error `se`, row by row (for kind="terms", a table of each: one column a term)."""

    estimate: T
    se: T


def chunks(rows: int) -> Iterator[slice]:
    for first in range(0, rows, CHUNK):
        yield slice(first, min(rows, first + CHUNK))


@dataclass(frozen=True)
class PredictionRows:
    """Rows to predict at: the covariates, how many, the known part of η, and the kind of table to give back."""

    columns: Columns
    n: int
    offset: np.ndarray | None
    backend: Any
    fitted: bool  # the rows of the fit itself
    index: Any = None  # of a pandas table, which tables given back have too


def rows_of(
    fit: Gam, data: Any, offset: Any, names: Sequence[str], labels: Sequence[str], known_part: bool = True
) -> PredictionRows:
    """The fitted rows (data=None), or a table with the columns `names`, which the terms `labels` read. `known_part`:
    whether η's is asked for."""
    terms = [term for term in fit.terms if term.label in labels]
    if data is None:
        if offset is None or not known_part:
            known = _without(fit.offset, [term for term in fit.terms if term not in terms], fit.columns)
            return PredictionRows(fit.columns, fit.y.size, known, fit.backend, True)
        if isinstance(offset, str):
            raise InputError(
                f"At the fitted rows offset= is a number or an array, as their table is gone; got {offset!r}."
            )
        given = gam_rows.numbers(Table((), fit.y.size, lambda name: None), offset, "offset")  # pyright: ignore
        gam_rows.complete({"offset": given}, "predict")
        known = gam_rows.plus_fixed(np.asarray(given.data, np.float64), terms, fit.columns)
        return PredictionRows(fit.columns, fit.y.size, known, fit.backend, False)
    table = as_table(data)
    read = gam_rows.covariates(table, names, "data")
    gam_rows.complete(read, "predict")
    columns = gam_rows.values(read)
    known = None
    if known_part:
        known = gam_rows.plus_fixed(_new_offset(fit, table, offset), terms, columns)
    index = data.index if table.backend is not None and hasattr(data, "columns") and hasattr(data, "index") else None
    return PredictionRows(columns, table.n, known, table.backend, False, index)


def _without(offset: np.ndarray | None, terms: Sequence[BuiltTerm], columns: Columns) -> np.ndarray | None:
    """The fit's offset less what is known of terms that are left out."""
    out = gam_rows.plus_fixed(None, terms, columns)
    return offset if out is None or offset is None else offset - out


def _new_offset(fit: Gam, table: Table, offset: Any) -> np.ndarray | None:
    if offset is None and fit.offset is None:
        return None
    if offset is None and fit.offset_names is None:
        raise InputError(
            "This model was fitted with an offset given as an array, so its values at new rows are not known. "
            "Pass offset= (an array, a column's name, or 0.0 for η without it)."
        )
    total = np.zeros(table.n)
    for one in (fit.offset_names or ()) if offset is None else (offset,):
        column = gam_rows.numbers(table, one, "offset")
        gam_rows.complete({column.name: column}, "predict")
        total += column.data
    return total


def meant(label: Any, known: Iterable[str]) -> str | None:
    """The one of the labels that is meant: blanks count only where two labels differ by them, and x^2 or I(x^2) may
    stand for the x ** 2 that it is read as."""
    if not isinstance(label, str):
        return None
    plain = {_plain(one): one for one in known} | {one: one for one in known}
    inner = label.strip()[2:-1] if label.strip().startswith("I(") else label
    return plain.get(label) or plain.get(_plain(label)) or plain.get(_plain(inner))


def _plain(label: str) -> str:
    return label.replace(" ", "").replace("^", "**")


def chosen(fit: Gam, terms: str | Iterable[str] | None, exclude: str | Iterable[str] | None) -> tuple[str, ...]:
    """Labels of the terms that count, the intercept among them."""
    known = tuple(fit.smoothed.slices)

    def listed(given: str | Iterable[str], what: str) -> set[str]:
        labels = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
        out: set[str] = set()
        for label in labels:
            one = meant(label, known)
            if one is None:
                raise InputError(unknown(what, label, known))
            out.add(one)
        return out

    keep = set(known) if terms is None else listed(terms, "terms=")
    keep -= set() if exclude is None else listed(exclude, "exclude=")
    return tuple(label for label in known if label in keep)


def design(fit: Gam, columns: Columns, rows: int, labels: Sequence[str] | None = None) -> np.ndarray:
    """X (rows, p); columns of terms that are not among the labels are zero, and their covariates are not read."""
    every = labels is None
    X = np.empty((rows, fit.smoothed.size)) if every else np.zeros((rows, fit.smoothed.size))
    wanted = set(fit.smoothed.slices if labels is None else labels)
    if INTERCEPT in wanted:
        X[:, fit.smoothed.slices[INTERCEPT]] = 1.0
    for term in fit.terms:
        if term.label in wanted:
            X[:, fit.smoothed.slices[term.label]] = term.design({name: columns[name] for name in term.covariates})
    return X


@overload
def predict(
    self: Gam, data: Any = ..., se: Literal[True] = ..., kind: Scale = ..., **options: Unpack[PredictOptions]
) -> Prediction[np.ndarray]: ...
@overload
def predict(
    self: Gam, data: Any = ..., *, se: Literal[False], kind: Scale = ..., **options: Unpack[PredictOptions]
) -> np.ndarray: ...
@overload
def predict(
    self: Gam, data: Any = ..., se: bool = ..., *, kind: Literal["matrix"], **options: Unpack[PredictOptions]
) -> np.ndarray: ...
@overload
def predict(  # tables of the data's kind, by term; or options by position
    self: Gam,
    data: Any = ...,
    se: bool = ...,
    kind: Kind = ...,
    unconditional: bool = ...,
    offset: Any = ...,
    terms: str | Sequence[str] | None = ...,
    exclude: str | Sequence[str] | None = ...,
) -> Any: ...
def predict(
    self: Gam,
    data: Any = None,
    se: bool = True,
    kind: Kind = "link",
    unconditional: bool = False,
    offset: Any = None,
    terms: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
) -> Any:
    """Predictions at new rows, or at the fitted ones.

    Args:
        data: a table with the formula's covariates; None for the fitted rows.
        se: True gives `Prediction(estimate, se)`, False the estimates alone.
        kind: the scale of η ("link"), of μ ("response", se by the delta method), each term by itself ("terms",
            tables of the data's kind, one column a term; row sums plus the intercept and the offset are η), or the
            matrix X (rows, p) with Xβ̂ + offset = η, columns in the order of `coefficients` ("matrix", no se).
        unconditional: include the smoothing parameters' uncertainty in se.
        offset: the known part of η: a number, an array or (of new rows) a column's name. By default the column that
            the fit's offset came from.
        terms, exclude: labels of terms to count alone, or to leave out (they are zero then, and their covariates
            need not be in `data`); "(Intercept)" is one of them.

    >>> import numpy as np, unnorm as un
    >>> x = np.linspace(0.0, 1.0, 200)
    >>> fit = un.gam("y ~ s(x)", {"x": x, "y": np.sin(6 * x)}, family="gaussian")
    >>> at_half = fit.predict({"x": [0.5]})
    >>> bool(abs(at_half.estimate[0] - np.sin(3.0)) < 0.01)
    True
    """
    if kind not in KINDS:
        raise InputError(unknown("kind", kind, KINDS))
    se, unconditional = numerics.flag(se, "se"), numerics.flag(unconditional, "unconditional")
    labels = chosen(self, terms, exclude)
    whole = terms is None and exclude is None
    needed = [name for term in self.terms if term.label in labels for name in term.covariates]
    at = rows_of(self, data, offset, tuple(dict.fromkeys(needed)), labels, kind in ("link", "response"))
    if kind == "matrix":
        return design(self, at.columns, at.n, labels)
    if self.smoothed.wide:
        return _by_level(self, at, labels, se, kind, unconditional, whole)
    V = None if not se else self.vcov(unconditional=unconditional)
    if kind == "terms":
        return _terms(self, at, V, labels)
    plain = at.fitted and whole
    eta = np.array(self.linear_predictor) if plain else np.zeros(at.n)
    error = np.empty(at.n if se else 0)
    if se or not plain:
        for here in chunks(at.n):
            part = {name: at.columns[name][here] for name in at.columns}
            X = design(self, part, here.stop - here.start, labels)
            if not plain:
                eta[here] = X @ self.smoothed.beta
            if V is not None:
                error[here] = inference.standard_errors(X, V)
    return _scaled(self, at, eta, error if se else None, kind, plain)


def _scaled(fit: Gam, at: PredictionRows, eta: np.ndarray, error: np.ndarray | None, kind: str, plain: bool) -> Any:
    """η with its offset, or μ; `plain`: η has it already."""
    if not plain and at.offset is not None:
        eta += at.offset
    _say_where_blank(fit, at, eta)
    if kind == "response":
        error = None if error is None else error * fit.distribution.slope(eta)
        eta = fit.distribution.mean(eta)
    return eta if error is None else Prediction(eta, error)


# long: the arguments of predict, read
def _by_level(
    fit: Gam, at: PredictionRows, labels: Sequence[str], se: bool, kind: str, unconditional: bool, whole: bool
) -> Any:
    """Where levels are many and alike: no row of X is ever as long as all coefficients."""
    V = gam_levels.covariance(fit, unconditional) if se else None
    flat = fit.smoothed.design.to_flat(fit.smoothed.beta)

    def found(wanted: Sequence[str]) -> tuple[np.ndarray, np.ndarray | None]:
        eta, error = np.empty(at.n), np.empty(at.n)
        for here in chunks(at.n):
            part = {name: at.columns[name][here] for name in at.columns}
            rows = gam_levels.rows_of(fit, part, here.stop - here.start, wanted)
            eta[here] = rows.dot(flat)
            if V is not None:
                error[here] = V.errors(rows)
        return eta, error if se else None

    if kind == "terms":
        each = {term.label: found((term.label,)) for term in fit.terms if term.label in labels}
        _add_known(fit, at, {label: one[0] for label, one in each.items()})
        made = _table(at, {label: one[0] for label, one in each.items()})
        return Prediction(made, _table(at, {label: one[1] for label, one in each.items()})) if se else made
    if not se and at.fitted and whole:
        return _scaled(fit, at, np.array(fit.linear_predictor), None, kind, True)
    return _scaled(fit, at, *found(labels), kind, False)


def _say_where_blank(fit: Gam, at: PredictionRows, eta: np.ndarray) -> None:
    """Rows outside the boundary of a term are nan; one warning says so."""
    blank = np.flatnonzero(np.isnan(eta)) if any(term.outline for term in fit.terms) else np.empty(0, dtype=int)
    if blank.size:
        i = int(blank[0])
        names = [name for term in fit.terms if term.outline for name in term.smooth_covariates]
        where = ", ".join(f"{name} = {at.columns[name][i]:.6g}" for name in dict.fromkeys(names) if name in at.columns)
        warn(
            f"{blank.size} of {at.n} rows lie outside the model's boundary, and their predictions are nan; first row "
            f"{i} at {where}.",
            stacklevel=4,
        )


def _terms(fit: Gam, at: PredictionRows, V: np.ndarray | None, labels: Sequence[str]) -> Any:
    mine = [term for term in fit.terms if term.label in labels]
    estimate = {term.label: np.empty(at.n) for term in mine}
    error = {term.label: np.empty(at.n) for term in mine}
    for term in mine:
        span = fit.smoothed.slices[term.label]
        for here in chunks(at.n):
            C = term.design({name: at.columns[name][here] for name in term.covariates})
            estimate[term.label][here] = C @ fit.smoothed.beta[span]
            if V is not None:
                error[term.label][here] = inference.standard_errors(C, V[span, span])
    _add_known(fit, at, estimate)
    made = _table(at, estimate)
    return made if V is None else Prediction(made, _table(at, error))


def _add_known(fit: Gam, at: PredictionRows, estimate: dict[str, np.ndarray]) -> None:
    """Add to each term what it is whatever its coefficients, so that terms, intercept and offset make η."""
    for label, values in estimate.items():
        if (known := fit.term(label).fixed(at.columns)) is not None:
            values += known


def _table(at: PredictionRows, columns: dict[str, Any]) -> Any:
    """The columns as a table of the rows' kind."""
    made = to_native(columns, at.backend)
    if at.index is not None:
        made.index = at.index
    return made
