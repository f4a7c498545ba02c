"""Arithmetic on covariates, written as text and parsed with `ast`: "log(step + 1)", "abs(x - x_prev)", "step > 100".

The text is never evaluated as Python: the tree is checked node by node against the lists below, and then walked with
NumPy on float64 columns. Comparisons give 0 or 1; a constant exponent keeps powers small.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

from ...errors import TermError
from .base import Covariate, CovariateRows
from .columns import check_name

LONGEST, DEEPEST, LARGEST_EXPONENT = 500, 40, 32

FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "abs": (np.abs, 1),
    "sqrt": (np.sqrt, 1),
    "exp": (np.exp, 1),
    "log": (np.log, 1),
    "log1p": (np.log1p, 1),
    "sin": (np.sin, 1),
    "cos": (np.cos, 1),
    "tan": (np.tan, 1),
    "floor": (np.floor, 1),
    "atan2": (np.arctan2, 2),
    "hypot": (np.hypot, 2),
    "minimum": (np.minimum, 2),
    "maximum": (np.maximum, 2),
    "where": (lambda condition, a, b: np.where(condition != 0, a, b), 3),
}
_BINARY: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
_UNARY: dict[type[ast.unaryop], Callable[..., Any]] = {ast.USub: np.negative, ast.UAdd: np.positive}
_COMPARE: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
KNOWN = f"+ - * / **, comparisons, numbers, pi and the functions {', '.join(FUNCTIONS)}"


@final
class Expression(Covariate):
    """A covariate written as arithmetic on others.

    Args:
        name: of the covariate, as terms call it.
        text: arithmetic on names of covariates, as "log(step + 1)".

    >>> Expression("logstep", "log(step + 1)").needs
    ('step',)
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = check_name(name)
        if not isinstance(text, str) or len(text) > LONGEST:
            got = f"{len(text)} characters" if isinstance(text, str) else type(text).__name__
            raise TermError(f"Expression {name!r} must be text of at most {LONGEST} characters; got {got}.")
        self.text = text
        try:
            self._tree = parsed(text.strip())
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise TermError(f"Expression {name!r} is not arithmetic that can be read: {text!r}.") from error
        found: dict[str, None] = {}
        self._check(self._tree, found, 0)
        self.needs = tuple(found)
        if not self.needs:
            raise TermError(f"Expression {name!r} reads no covariate: {text!r}.")

    def _refuse(self, node: ast.AST, what: str) -> TermError:
        part = ast.unparse(node)
        part = part if len(part) <= 60 else part[:57] + "..."
        return TermError(f"Expression {self.name!r} = {self.text!r}: {what} ({part}). It may use {KNOWN}.")

    def _check(self, node: ast.AST, found: dict[str, None], depth: int) -> None:
        if depth > DEEPEST:
            raise TermError(f"Expression {self.name!r} is nested more than {DEEPEST} deep; split it in two.")
        children: list[ast.expr] = []
        match node:
            case ast.Constant(value=value):
                if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
                    raise self._refuse(node, "only ordinary numbers are allowed")
            case ast.Name(id=name):
                if name in FUNCTIONS:
                    raise self._refuse(node, "a function needs its arguments in brackets")
                if name != "pi":
                    found[name] = None
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                if isinstance(op, ast.Pow):
                    exponent = _number(right)
                    if exponent is None or abs(exponent) > LARGEST_EXPONENT:
                        raise self._refuse(node, f"an exponent must be a number of at most {LARGEST_EXPONENT}")
                children = [left, right]
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                children = [operand]
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARE for op in ops):
                children = [left, *others]
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
                if len(args) != FUNCTIONS[name][1]:
                    raise self._refuse(node, f"{name} takes {FUNCTIONS[name][1]} arguments")
                children = args
            case _:
                raise self._refuse(node, "this is not allowed")
        for child in children:
            self._check(child, found, depth + 1)

    def values(self, rows: CovariateRows) -> np.ndarray:
        columns = {}
        for name in self.needs:
            column = rows[name]
            if column.dtype.kind not in "fi":
                raise TermError(f"Expression {self.name!r} needs numbers, and {name!r} holds text.")
            columns[name] = column.astype(np.float64, copy=False)
        with np.errstate(all="ignore"):  # what is not finite is reported with its count and first row
            return np.asarray(_walk(self._tree, columns), dtype=np.float64)

    def to_dict(self) -> dict[str, Any]:
        return {"covariate": "Expression", "name": self.name, "text": self.text}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Expression:
        return cls(description["name"], description["text"])

    @classmethod
    def examples(cls) -> tuple[Covariate, ...]:
        return cls("logstep", "log(step + 1)"), cls("patience", "where(wait > 0.5, wait**2, 0) + sqrt(x_prev)")

    def __repr__(self) -> str:
        return f"Expression({self.name!r}, {self.text!r})"


def parsed(text: str) -> ast.expr:
    """The tree of an expression. Names stay as they are written: Python would read the micro sign as a Greek μ."""
    tree = ast.parse(text, mode="eval").body
    if not text.isascii():
        raw = text.encode()
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.lineno == node.end_lineno == 1:
                node.id = raw[node.col_offset : node.end_col_offset].decode()
    return tree


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        inner = _number(node.operand)
        return None if inner is None else float(_UNARY[type(node.op)](inner))
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and abs(node.value) < 1e300:
        return float(node.value)
    return None


def _walk(node: ast.expr, columns: dict[str, np.ndarray]) -> Any:
    match node:
        case ast.Constant(value=value):
            return float(value)  # pyright: ignore[reportArgumentType]
        case ast.Name(id=name):
            return np.pi if name == "pi" else columns[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_walk(left, columns), _walk(right, columns))
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)](_walk(operand, columns))
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name][0](*(_walk(arg, columns) for arg in args))
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [_walk(side, columns) for side in (left, *others)]
            holds = [_COMPARE[type(op)](a, b) for op, a, b in zip(ops, sides, sides[1:])]
            return np.asarray(np.logical_and.reduce(np.broadcast_arrays(*holds)), dtype=np.float64)
    raise TermError(f"{ast.dump(node)[:60]} is not allowed; an expression may use {KNOWN}.")
