"""The string form of terms, read with Python's `ast` against the known names. Nothing is ever evaluated."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, final

from ..data.covariates.expressions import parsed
from ..errors import TermError, listing, unknown
from .arithmetic import COUNTS, computed, counted, is_call
from .interaction import Interaction, interaction
from .kernel_term import kernel
from .kernels import KERNELS
from .specs import Factor, Linear, Term, Terms, factor, linear, s
from .tensor_specs import t2, te, ti

_FUNCTIONS: dict[str, Callable[..., Term]] = {
    "s": s, "te": te, "ti": ti, "t2": t2, "linear": linear, "factor": factor, "kernel": kernel,
}  # fmt: skip
_KERNEL_PARAMETERS = dict.fromkeys(item.name for cls in KERNELS.values() for item in fields(cls))
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "s": ("k", "bs", "by", "m", "sp", "fx", "knots", "xt", "id"),
    "te": ("k", "bs", "d", "by", "m", "sp", "fx", "knots"),
    "ti": ("k", "bs", "d", "by", "m", "sp", "fx", "knots"),
    "t2": ("k", "bs", "d", "by", "m", "sp", "fx", "knots"),
    "linear": (),
    "factor": (),
    "kernel": (
        "k",
        "lam",
        "landmarks",
        "seed",
        *dict.fromkeys(f.name for cls in KERNELS.values() for f in fields(cls)),
    ),
}
_WORDS = {"True": True, "False": False, "TRUE": True, "FALSE": False, "None": None, "NULL": None, "pi": math.pi}
_LONGEST = 20_000  # characters
_MOST = 500  # terms
_DEEPEST = 30  # levels of brackets within one term


def parse(formula: str | Term | Terms, table: bool = False) -> Terms:
    """Terms from a formula such as "cls ~ s(delta, k=10) + s(px, py) + s(angle, bs='cc')".

    The response and `~` may be left out. Column names that are no Python identifiers are quoted: s('reaction time').
    A bare name is a straight line, `linear(name)`. `0 +` or `- 1` drops the intercept. Options are literals: numbers,
    multiples of pi, strings, True, False, None, lists and tuples, or R's c(…), TRUE and FALSE. `a:b` is the product of
    two columns (factors by their levels), `a*b` is a + b + a:b.

    table: whether columns may be computed from others, as the rows of a table can: `s(log(x))`, `I(x^2)`,
    `offset(log(days))`, and `log(y)` or `cbind(successes, failures)` as the response.

    >>> str(parse("y ~ s(x, k=5) + factor(g) - 1"))
    'y ~ 0 + s(x, k=5) + factor(g)'
    """
    if isinstance(formula, Terms):
        return formula
    if isinstance(formula, Term):
        return Terms((formula,))
    if not isinstance(formula, str):
        raise TermError(f"A formula is a string or terms joined by `+`; got {type(formula).__name__}.")
    return _parsed(formula, table)


@lru_cache(maxsize=64)
def _parsed(formula: str, table: bool) -> Terms:
    """The terms of a formula; fits of one formula to many tables read it once."""
    if len(formula) > _LONGEST:
        raise TermError(
            f"A formula has at most {_LONGEST:,} characters; this one has {len(formula):,}. "
            "Join term objects with `+` instead."
        )
    left, right = _sides(formula)
    if not right.strip():
        raise TermError("The formula has no terms. Write e.g. 'y ~ s(x)', or 'y ~ 1' for an intercept only.")
    response = None if left is None else _response(left, table)
    offsets: list[str] = []
    terms, intercept = _sum(_tree(right), offsets if table else None)
    return Terms(tuple(_once(terms)), intercept, response, tuple(offsets))


def _tree(text: str) -> ast.expr:
    """The right side as Python's parser reads it, R's ^ as ** and its : as @ (which Python ranks as *)."""
    text, depth, out = text.strip().replace("\n", " "), 0, []
    for i, (char, outside) in enumerate(zip(text, _outside(text))):
        if not outside:
            pass
        elif char == "." and out[-2:] == ["a", "s"] and text.startswith("factor(", i + 1):
            del out[-2:]
            continue
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
        elif char == "^":
            char = "**"
        elif char == ":" and depth == 0:
            char = "@"
        out.append(char)
    try:
        return parsed("".join(out))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TermError(
            f"The formula {_short(text)!r} cannot be read ({getattr(error, 'msg', None) or type(error).__name__}). "
            "Write terms joined by +, e.g. s(x, k=10) + te(a, b); quote column names that are not plain words."
        ) from None


def _outside(text: str) -> list[bool]:
    """Which characters stand outside quotes."""
    quote, escaped, out = "", False, []
    for char in text:
        out.append(not quote and char not in "'\"")
        if escaped:
            escaped = False
        elif quote:
            quote, escaped = "" if char == quote else quote, char == "\\"
        elif char in "'\"":
            quote = char
    return out


def _once(terms: list[Term | _Expanded]) -> list[Term]:
    """Each effect of `a*b` once, where another term of the formula has it too; what was written twice stays."""
    seen: set[frozenset[str]] = set()
    expanded: dict[frozenset[str], int] = {}  # effects that only products have so far, and where they are
    out: list[Term] = []
    for one in terms:
        term = one.term if isinstance(one, _Expanded) else one
        if isinstance(term, Linear | Factor | Interaction):
            key = frozenset(term.columns)
            if isinstance(one, _Expanded):
                if key in seen:
                    continue
                expanded[key] = len(out)
            elif key in expanded:
                out[expanded.pop(key)] = term
                continue
            seen.add(key)
        out.append(term)
    return out


def _sides(formula: str) -> tuple[str | None, str]:
    """Left and right of the `~` that stands outside quotes."""
    cuts = [i for i, (char, outside) in enumerate(zip(formula, _outside(formula))) if outside and char == "~"]
    if len(cuts) > 1:
        raise TermError(f"A formula has at most one '~'; got {len(cuts)} in {_short(formula)!r}.")
    return (formula[: cuts[0]], formula[cuts[0] + 1 :]) if cuts else (None, formula)


def _response(text: str, table: bool) -> str | None:
    name = text.strip()
    if len(name) > 1 and name[0] in "'\"" and name[-1] == name[0] and name[0] not in name[1:-1]:
        name = name[1:-1]
    elif name and not name.isidentifier():
        if table:
            tree = _tree(name)
            if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == COUNTS:
                return counted(tree)
            if _dotted(tree):
                raise TermError(f"Quote a column name that is not a plain word: '{name}'.")
            return computed(tree)
        raise TermError(
            f"The left side of '~' must be one column name (quoted if it is not a plain word); got {_short(name)!r}."
        )
    return name or None


def _sum(tree: ast.expr, offsets: list[str] | None) -> tuple[list[Term | _Expanded], bool]:
    """Walk a + b + c from the right end to the left, without recursion. `offsets` receives those of a table's formula;
    None where there is no table, and no arithmetic."""
    terms: list[Term | _Expanded] = []
    intercept = True
    node: ast.expr | None = tree
    pending: list[tuple[ast.expr, bool]] = []
    while node is not None:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            pending.append((node.right, isinstance(node.op, ast.Sub)))
            node = node.left
        else:
            pending.append((node, False))
            node = None
    if len(pending) > _MOST:
        raise TermError(f"A formula has at most {_MOST} terms; this one has {len(pending)}.")
    for part, minus in reversed(pending):
        while isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.UAdd):
            part = part.operand
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub) and not terms:
            part, minus = part.operand, True
        if isinstance(part, ast.Constant) and type(part.value) is int and part.value in (0, 1):
            intercept = (part.value == 1) != minus
        elif minus:
            raise TermError(
                f"Only '- 1' (no intercept) may be subtracted; got '- {_text(part)}'. Leave the term out instead."
            )
        else:
            nested = isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Sub)  # s(a) + (s(b) + s(c))
            inner, more = _sum(part, offsets) if nested else (_terms(part, offsets), None)
            terms.extend(inner)
            if len(terms) > _MOST:
                raise TermError(f"A formula has at most {_MOST} terms; products expanded, this one has more.")
            intercept = intercept if more is None else intercept and more
    return terms, intercept


@final
@dataclass(frozen=True)
class _Expanded:
    """A main effect or product that `a*b` stands for."""

    term: Term


def _terms(node: ast.expr, offsets: list[str] | None) -> list[Term | _Expanded]:
    """The terms of one summand: one, those of a product `a*b`, or none but an offset."""
    table = offsets is not None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.MatMult):
        found = [_product(operands) for operands in _crossed(node, table)]
        return [_Expanded(term) if len(found) > 1 else term for term in found]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "offset":
        if offsets is None:
            raise TermError(
                "offset() in a formula is for un.gam. Here an offset of the context is one of the observations "
                "(offset= of un.conditional or un.transitions); one that reads y belongs to f: write it into the "
                "statistics of un.ExponentialFamily, or into un.Energy."
            )
        if len(node.args) != 1 or node.keywords:
            raise TermError(f"offset() takes one column or arithmetic on columns; got {_text(node)!r}.")
        offsets.append(_covariate("offset", node.args[0], True))
        return []
    return [_term(node, table)]


def _crossed(node: ast.expr, table: bool) -> list[tuple[Term, ...]]:
    """a*b as R expands it, (a,), (b,), (a, b), and a:b as (a, b); `:` goes before `*`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.MatMult):
        parts, signs = [node.right], [node.op]
        left = node.left
        while (
            isinstance(left, ast.BinOp)
            and isinstance(left.op, ast.Mult | ast.MatMult)
            and left.col_offset == node.col_offset  # else it stands in brackets of its own
        ):
            parts, signs, left = [left.right, *parts], [left.op, *signs], left.left
        sides = [_crossed(part, table) for part in (left, *parts)]
        products = [sides[0]]
        for sign, side in zip(signs, sides[1:]):
            if isinstance(sign, ast.MatMult):
                _limit(node, len(products[-1]) * len(side))
                products[-1] = [(*a, *b) for a in products[-1] for b in side]
            else:
                products.append(side)
        out = products[0]
        for side in products[1:]:
            _limit(node, len(out) + len(side) + len(out) * len(side))
            out = [*out, *side, *((*a, *b) for a in out for b in side)]
        return sorted(out, key=len)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_crossed(node.left, table), *_crossed(node.right, table)]
    term = _term(node, table)
    if not isinstance(term, Linear | Factor):
        raise TermError(
            f"{_text(node)!r} is not a term of a product: `*` and `:` join columns and factor(…). "
            "For a smooth times a column use by=, e.g. s(x, by=z)."
        )
    return [(term,)]


def _limit(node: ast.expr, count: int) -> None:
    """Refuse what stands for too many terms before they are made."""
    if count > _MOST:
        raise TermError(f"A formula has at most {_MOST} terms; {_text(node)!r} stands for more.")


def _product(operands: tuple[Term, ...]) -> Term:
    distinct = tuple(dict.fromkeys(operands))
    if len(distinct) == 1:
        return distinct[0]
    return interaction(*(one if isinstance(one, Factor) else one.columns[0] for one in distinct))


def _term(node: ast.expr, table: bool) -> Term:
    if isinstance(node, ast.Name):
        return Linear((node.id,), bare=True)
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        return Linear((node.value,), bare=True)
    if table and is_call(node):
        return Linear((computed(node),), bare=True)
    if table and isinstance(node, ast.BinOp):
        raise TermError(
            f"{_text(node)!r} is not a term. Write I({_text(node)}) for arithmetic on columns; of factors, a + a:b for "
            "a/b and a*b for (a + b)^2."
        )
    if _dotted(node):
        raise TermError(f"Quote a column name that is not a plain word: '{_text(node)}'.")
    if not isinstance(node, ast.Call):
        raise TermError(f"{_text(node)!r} is not a term. Terms are {_known()}, or a column name.")
    if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS:
        raise TermError(unknown("A term", _text(node.func), [*_FUNCTIONS]))
    name = node.func.id
    covariates = [_covariate(name, argument, table) for argument in node.args]
    options: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg not in _ARGUMENTS[name]:
            known = _ARGUMENTS[name]
            takes = f"takes {listing(known)}" if known else "takes column names only"
            raise TermError(f"{name}() {takes}; got {keyword.arg or '**'!r}.")
        if keyword.arg in options:
            raise TermError(f"{name}() has {keyword.arg!r} twice.")
        options[keyword.arg] = (
            _covariate(name, keyword.value, table) if keyword.arg == "by" else _literal(name, keyword.value, 0)
        )
    if name == "factor" and len(covariates) != 1:
        raise TermError(f"factor() takes one column name; got {len(covariates)}.")
    return _FUNCTIONS[name](*covariates, **options)


def _covariate(function: str, node: ast.expr, table: bool) -> Any:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if (
        function in ("s", "te", "ti", "t2")
        and isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "factor"
    ):
        inner = _term(node, table)
        assert isinstance(inner, Factor)
        return inner
    arithmetic = isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare) or is_call(node)
    if table and function in ("s", "te", "ti", "t2", "linear", "offset") and arithmetic:
        return computed(node)
    if _dotted(node):
        raise TermError(f"{function}(): quote a column name that is not a plain word: '{_text(node)}'.")
    raise TermError(
        f"{function}() takes column names before its options; got {_text(node)!r}. "
        "Compute new columns first, and write options as name=value."
    )


def _literal(function: str, node: ast.expr, depth: int) -> Any:
    if depth > _DEEPEST:
        raise TermError(f"{function}(): brackets are nested more than {_DEEPEST} deep.")
    if isinstance(node, ast.Constant) and (node.value is None or type(node.value) in (int, float, str, bool)):
        if type(node.value) is int and abs(node.value) >= 2**63:
            raise TermError(f"{function}(): {_text(node)} has more digits than any option takes.")
        return node.value
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_literal(function, item, depth + 1) for item in node.elts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "c" and not node.keywords:
        return tuple(_literal(function, item, depth + 1) for item in node.args)
    if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant | ast.Name) for key in node.keys):
        keys = [
            key.id if isinstance(key, ast.Name) else str(key.value)
            for key in node.keys
            if isinstance(key, ast.Constant | ast.Name)
        ]
        return {key: _literal(function, value, depth + 1) for key, value in zip(keys, node.values)}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _literal(function, node.operand, depth + 1)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        a, b = _literal(function, node.left, depth + 1), _literal(function, node.right, depth + 1)
        if all(isinstance(v, int | float) and not isinstance(v, bool) for v in (a, b)) and (
            b != 0 or isinstance(node.op, ast.Mult)
        ):
            try:
                return float(a) * float(b) if isinstance(node.op, ast.Mult) else float(a) / float(b)
            except OverflowError:
                pass
    raise TermError(
        f"{function}(): options are literals (numbers, multiples of pi, strings, True, False, None, tuples); "
        f"got {_text(node)!r}."
    )


def _dotted(node: ast.expr) -> bool:
    """Whether this is a name with dots, as R's columns have: Sepal.Length."""
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _dotted(node.value))


def _known() -> str:
    return ", ".join(f"{name}()" for name in _FUNCTIONS)


def _text(node: ast.AST) -> str:
    try:
        return _short(ast.unparse(node).replace(" @ ", ":").replace(" ** ", "^"))
    except (RecursionError, ValueError):
        return type(node).__name__


def _short(text: str, most: int = 80) -> str:
    text = text.strip()
    return text if len(text) <= most else text[: most - 1] + "…"
