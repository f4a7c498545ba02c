"""Columns computed from others, in formulas of tables: `s(log(x))`, `I(x^2)`, `offset(log(e))`, `cbind(k, n - k) ~ …`.

Such a column is named by its own text, "log(x)": the name alone says how to compute it again on new rows, and can be
saved. The text is parsed, checked against a list of functions and walked with NumPy (`Expression`), never evaluated.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from ..data.covariates.expressions import FUNCTIONS, Expression, parsed
from ..errors import DataError, TermError

COUNTS = "cbind"  # successes and failures of a binomial response


class _Unwrap(ast.NodeTransformer):
    """R's I(…) protects arithmetic from the formula; within arithmetic it says nothing."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "I" and len(node.args) == 1 and not node.keywords:
            return self.visit(node.args[0])
        return self.generic_visit(node)


def computed(node: ast.expr) -> str:
    """The name of the column that this arithmetic gives: its text, written in one way.

    >>> computed(ast.parse("I( log(x)+1 )", mode="eval").body)
    'log(x) + 1'
    """
    text = ast.unparse(_Unwrap().visit(node))
    _expression(text)
    return text


def is_call(node: ast.expr) -> bool:
    """Whether this is a call of I or of a function of numbers, `log(x)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("I", *FUNCTIONS)


@lru_cache(maxsize=256)
def _expression(text: str) -> Expression:
    return Expression("column", text)


@lru_cache(maxsize=1024)
def is_arithmetic(name: str) -> bool:
    """Whether a name is the text of arithmetic on columns, written as `computed` writes it."""
    if name.isidentifier() or len(name) > 500:
        return False
    try:
        tree = parsed(name)
        return not isinstance(tree, ast.Constant) and computed(tree) == name
    except (SyntaxError, ValueError, TermError, RecursionError, MemoryError):
        return False


def as_term(name: str) -> str:
    """A name as a term by itself: "x / z" would be read as something else where it does not stand in I(…).

    >>> as_term("x / z"), as_term("log(x)"), as_term("x")
    ('I(x / z)', 'log(x)', 'x')
    """
    return f"I({name})" if is_arithmetic(name) and not is_call(parsed(name)) else name


def needs(name: str) -> tuple[str, ...]:
    """The columns that a computed column reads."""
    return _expression(name).needs


def values(name: str, columns: Mapping[str, np.ndarray], missing: np.ndarray | None = None) -> np.ndarray:
    """The computed column; values that are not finite are an error, but on rows that are missing anyway."""
    made = _expression(name).values(columns)  # pyright: ignore[reportArgumentType]
    n = len(next(iter(columns.values())))
    made = np.array(np.broadcast_to(made, n), dtype=np.float64)
    bad = ~np.isfinite(made)
    if missing is not None:
        bad &= ~missing
    if bad.any():
        row = int(np.argmax(bad))
        at = ", ".join(f"{one} = {columns[one][row]:g}" for one in needs(name))
        raise DataError(
            f"{name} is not finite in {int(bad.sum())} of {n} rows (row {row}: {at}). "
            "Drop those rows, or write an expression that is finite, such as log(x + 1)."
        )
    return made


def counts(name: str) -> tuple[str, str] | None:
    """Successes and failures of a response "cbind(k, n - k)"; None for any other name."""
    if not name.startswith(f"{COUNTS}("):
        return None
    try:
        tree = parsed(name)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        return None
    counted(tree)
    first, second = (ast.unparse(argument) for argument in tree.args)
    return first, second


def counted(node: ast.Call) -> str:
    """The name of a response that cbind(…) gives."""
    if len(node.args) != 2 or node.keywords:
        raise TermError(f"cbind() takes successes and failures, e.g. cbind(k, n - k); got {ast.unparse(node)!r}.")
    parts = [one.id if isinstance(one, ast.Name) else computed(one) for one in node.args]
    return f"{COUNTS}({', '.join(parts)})"
