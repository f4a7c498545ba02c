"""Messages in the caller's words: `missing='drop'` in Python is `--missing drop` in the shell.

A remedy names what the caller can type. The library names settings through `option` (and `either`, where whole phrases
differ); the command line says once, with `in_shell()`, that its caller types options.

>>> f"Pass {option('missing', 'drop')} to leave them out."
"Pass missing='drop' to leave them out."
>>> with in_shell():
...     f"Pass {option('missing', 'drop')} to leave them out."
'Pass --missing drop to leave them out.'

A row of a table is named by `at_row`: those who type options look at a file, whose first row they call 1; those who
write Python look at arrays.

>>> at_row(3)
'row 3 (rows count from 0)'
>>> with in_shell():
...     at_row(3)
'row 4 (rows count from 1, the heading apart)'

Notes are saved with a fit and may be read in the other place: they name settings by plain words, not through `option`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final


@final
@dataclass(frozen=True)
class Option:
    """One setting: what it is called in the shell, and the registered parts that it chooses from, where it does."""

    shell: str
    parts: Mapping[str, type] | None = None

    def in_python(self, value: Any) -> str:
        """The value as Python writes it; a part, `un.Lattice()`, from its word in the shell."""
        return repr(value) if self.parts is None else f"un.{by_word(self.parts)[value].__name__}()"


# The settings that `unnorm fit`, `pattern` or `steps` has too, by the name of the argument in Python. Others are named
# as in Python anywhere.
OPTIONS = {
    "y": Option("--y"),
    "order": Option("--order"),
    "group": Option("--group"),
    "lags": Option("--lags"),
    "max_gap": Option("--max-gap"),
    "between": Option("--between"),
    "duration": Option("--duration"),
    "missing": Option("--missing"),
    "outside": Option("--outside"),
    "centre": Option("--centre"),
    "correction": Option("--correction"),
    "dummies": Option("--dummies"),
    "marks": Option("--marks"),
    "replicate": Option("--replicate"),
    "per_point": Option("--references"),
    "points": Option("--points"),
    "memory": Option("--memory"),
    "animal": Option("--animal"),
    "burst": Option("--burst"),
    "repeated": Option("--repeated"),
    "zero_steps": Option("--zero-steps"),
    "crs": Option("--crs"),
    "to": Option("--to"),
    "unit": Option("--unit"),
}


def chooses_from(name: str, parts: Mapping[str, type]) -> None:
    """Let a setting choose from a registry, which says so when it is filled."""
    OPTIONS[name] = Option(OPTIONS[name].shell, parts)


def by_word(parts: Mapping[str, type]) -> dict[str, type]:
    """Registered parts by their word in the shell: `lattice` for `Lattice`."""
    return {name.lower(): part for name, part in parts.items()}


# Of the process, not of a context: levels are fitted on a lasting pool of threads, and fail there in the same words.
_shell = False


@contextmanager
def in_shell() -> Iterator[None]:
    """Within, messages are worded for someone who types options."""
    global _shell
    before, _shell = _shell, True
    try:
        yield
    finally:
        _shell = before


def either(python: str, shell: str) -> str:
    """The phrase for the caller at hand."""
    return shell if _shell else python


def row_number(i: Any) -> int:
    """The number of row i (from 0) as the caller counts; `rows_count` says how."""
    return int(i) + 1 if _shell else int(i)


def rows_count() -> str:
    """How rows are counted, for a sentence that names one."""
    return either("rows count from 0", "rows count from 1, the heading apart")


def at_row(i: Any) -> str:
    """Row i (from 0) of the caller's table, and how rows are counted."""
    return f"row {row_number(i)} ({rows_count()})"


def option(name: str, value: Any = None) -> str:
    """A setting as the caller types it: `per_point=20` or `--references 20`; `order=` or `--order` without a value.

    Args:
        name: the argument's name in Python; one that is not in `OPTIONS` is named as in Python.
        value: a number, a text, a tuple of them, or the word of a part (`by_word`) for `points`.
    """
    known = OPTIONS.get(name)
    if known is None or not _shell:
        if value is None:
            return f"{name}="
        return f"{name}={repr(value) if known is None else known.in_python(value)}"
    if value is None:
        return known.shell
    return f"{known.shell} {','.join(str(part) for part in value) if isinstance(value, tuple) else value}"
