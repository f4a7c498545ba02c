"""Terms: what users write (`s`, `te`, `kernel`, `factor`, …, or a string), and what it becomes on data."""

from .base import BuiltTerm, Columns, Penalty
from .built import from_dict
from .interaction import interaction
from .kernel_term import kernel
from .parser import parse
from .specs import Term, Terms, factor, linear, s
from .tensor_specs import t2, te, ti

__all__ = [
    "BuiltTerm",
    "Columns",
    "Penalty",
    "Term",
    "Terms",
    "factor",
    "from_dict",
    "interaction",
    "kernel",
    "linear",
    "parse",
    "s",
    "t2",
    "te",
    "ti",
]
