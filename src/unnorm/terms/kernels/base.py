"""k(x, x'): what every kernel has in common. A kernel reads columns, takes open scales from them, and gives Gram
matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from ...errors import DataError, TermError, listing, unknown
from ..base import Columns
from ..sample import column_of, numeric


@dataclass(frozen=True)
class KernelFunction(ABC):
    """A positive semi-definite function of two contexts; what it was not told (a scale) it takes from the data."""

    name: ClassVar[str]  # what `k=` says
    takes: ClassVar[str]  # what its columns hold, for messages

    @abstractmethod
    def read(self, columns: Columns, names: Sequence[str], what: str) -> np.ndarray:
        """One entry (or row of numbers) for each row of the columns, in the form that `gram` takes."""

    @abstractmethod
    def gram(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(len a, len b) values k(a_i, b_j)."""

    def diagonal(self, a: np.ndarray) -> np.ndarray:
        """(len a,) values k(a_i, a_i): one, for most kernels."""
        return np.ones(len(a))

    def resolved(self, columns: Columns, names: Sequence[str], periods: Mapping[str, Any], what: str) -> Self:
        """The same kernel with every open scale or period filled in from the data."""
        return self

    def options(self) -> dict[str, Any]:
        """The parameters that were given, as a formula writes them."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        plain = {item.name: item.default for item in fields(self)}
        return {name: value for name, value in values.items() if value != plain[name]}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {"kernel": self.name, **{k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """What `to_dict` described."""
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in saved.items() if k != "kernel"})


# --- columns ---


def numbers(columns: Columns, names: Sequence[str], what: str) -> np.ndarray:
    """(n, d) finite numbers."""
    data = [numeric(columns, name, what) for name in names]
    for x, name in zip(data, names):
        if bad := int(np.sum(~np.isfinite(x))):
            raise DataError(
                f"{what}: column {name!r} has {bad:,} missing or infinite of {x.size:,} values. Drop those rows first."
            )
    return np.column_stack(data)


def texts(columns: Columns, names: Sequence[str], what: str, holds: str) -> np.ndarray:
    """(n,) strings of one text column."""
    if len(names) != 1:
        raise TermError(f"{what}: this kernel reads one text column of {holds}; got {len(names)}: {listing(names)}.")
    column = column_of(columns, names[0], what)
    if column.dtype.kind not in "UO" or not all(isinstance(value, str) for value in column[:50].tolist()):
        raise DataError(
            f"{what}: column {names[0]!r} must be text ({holds}); it holds "
            f"{'numbers' if column.dtype.kind in 'iuf' else 'other objects'}. Use a kernel of numbers, such as "
            "k='gaussian', or convert the column."
        )
    return column.astype(str)


def is_text(columns: Columns, names: Sequence[str], what: str) -> bool:
    """Whether the (one) column holds text."""
    return len(names) == 1 and column_of(columns, names[0], what).dtype.kind in "UO"


# --- parameters ---


def positive(kernel: str, what: str, value: Any) -> float:
    """A finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
        raise TermError(f"kernels.{kernel}: {what} must be a finite number above 0; got {value!r}.")
    return float(value)


def one_or_each(kernel: str, what: str, value: Any) -> float | tuple[float, ...] | None:
    """None, a positive number, or one for each column."""
    if value is None:
        return None
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(positive(kernel, what, v) for v in value)
    return positive(kernel, what, value)


def for_columns(value: float | tuple[float, ...], names: Sequence[str], what: str, parameter: str) -> tuple[float, ...]:
    """One value for each column."""
    values = value if isinstance(value, tuple) else (value,) * len(names)
    if len(values) != len(names):
        raise TermError(
            f"{what}: {parameter} takes one number, or one for each of the {len(names)} columns; got {len(values)}."
        )
    return values


def named(table: Mapping[str, type[KernelFunction]], name: Any, parameters: Mapping[str, Any]) -> KernelFunction:
    """The kernel of that name with these parameters."""
    if name not in table:
        raise TermError(unknown("k", name, table))
    cls = table[name]
    known = [item.name for item in fields(cls) if item.init]
    if strange := [key for key in parameters if key not in known]:
        takes = listing(known) if known else "nothing more"
        raise TermError(f"kernel(k={name!r}) takes {takes}; got {listing(strange)}.")
    return cls(**parameters)
