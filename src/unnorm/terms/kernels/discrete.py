"""Kernels of what is not a number: binary vectors, sets and strings.

Sets and strings are text: observations hold numbers and text. A set is written as its elements with blanks between,
"red round small"; a binary vector is a 0/1 column for each bit, or one column of bit strings of equal length, "0110".
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from ...errors import DataError, TermError
from ..base import Columns
from .base import KernelFunction, is_text, numbers, positive, texts


@final
@dataclass(frozen=True)
class Hamming(KernelFunction):
    """k(x, x') = exp(−h/scale), h the share of columns (or characters) in which x and x' differ.

    Args:
        scale: the share of differences over which χ is nearly constant.

    Example:
        >>> import numpy as np, unnorm as un
        >>> k = un.kernels.Hamming(scale=0.5)
        >>> x = k.read({"bits": np.array(["0110", "0111"])}, ("bits",), "k")
        >>> bool(np.isclose(k.gram(x, x)[0, 1], np.exp(-0.25 / 0.5)))
        True
    """

    name = "hamming"
    takes = "numbers that are codes (0 and 1), or one text column of strings of equal length"
    scale: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("Hamming", "scale", self.scale))

    def read(self, columns: Columns, names: Sequence[str], what: str) -> np.ndarray:
        if not is_text(columns, names, what):
            return numbers(columns, names, what)
        strings = texts(columns, names, what, "strings of equal length")
        lengths = sorted({len(text) for text in strings.tolist()})
        if len(lengths) != 1 or lengths[0] == 0:
            raise DataError(
                f"{what}: strings in column {names[0]!r} must have one length; got {lengths[:5]}. "
                "For strings of any length use k='spectrum'."
            )
        return np.ascontiguousarray(strings).view("U1").reshape(len(strings), -1)[:, : lengths[0]].view(np.uint32)

    def gram(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.shape[1] != b.shape[1]:
            raise DataError(f"Hamming compares vectors of one length; got {a.shape[1]} and {b.shape[1]}.")
        out = np.zeros((len(a), len(b)))
        for j in range(a.shape[1]):
            out += a[:, j, None] != b[None, :, j]
        return np.exp(out * (-1.0 / (a.shape[1] * self.scale)))


def _parts(counts: Sequence[dict[Any, float]], number: dict[Any, int]) -> Any:
    """(n, parts) counts of the parts that have a number."""
    from scipy.sparse import csr_array

    rows, places, values = [0], [], []
    for count in counts:
        known = [(number[part], value) for part, value in count.items() if part in number]
        places += [place for place, _ in known]
        values += [value for _, value in known]
        rows.append(len(places))
    return csr_array((np.array(values, float), np.array(places, np.int64), np.array(rows)), (len(counts), len(number)))


@dataclass(frozen=True)
class _Counted(KernelFunction):
    """A kernel of how often each part occurs in x: the entries are mappings, part → count."""

    takes: ClassVar[str] = "text"

    @abstractmethod
    def combine(self, inner: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """k from Σ_parts a·b, and the sizes Σ a², Σ b²."""

    def gram(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        number = {part: i for i, part in enumerate(dict.fromkeys(part for count in b for part in count))}
        inner = (_parts(list(a), number) @ _parts(list(b), number).T).toarray()
        return self.combine(inner, _sizes(a), _sizes(b))


def _sizes(counts: np.ndarray) -> np.ndarray:
    return np.array([sum(value * value for value in count.values()) for count in counts], dtype=np.float64)


def _objects(values: list[Any]) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


@final
@dataclass(frozen=True)
class Jaccard(_Counted):
    """k(A, B) = |A ∩ B|/|A ∪ B|, for sets (text, elements apart by `separator`) and for binary columns. Two empty sets
    are the same.

    What b-bit minwise hashing estimates (`un.minwise`).

    Args:
        separator: between the elements; default blanks.

    Example:
        >>> import numpy as np, unnorm as un
        >>> k = un.kernels.Jaccard()
        >>> x = k.read({"words": np.array(["red round", "red square big"])}, ("words",), "k")
        >>> float(k.gram(x, x)[0, 1])
        0.25
    """

    name = "jaccard"
    takes = "0 and 1, or one text column of elements"
    separator: str | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and (not isinstance(self.separator, str) or not self.separator):
            raise TermError(f"kernels.Jaccard: separator must be text such as ','; got {self.separator!r}.")

    def read(self, columns: Columns, names: Sequence[str], what: str) -> np.ndarray:
        if is_text(columns, names, what):
            strings = texts(columns, names, what, "sets")
            return _objects([{e.strip(): 1.0 for e in t.split(self.separator) if e.strip()} for t in strings.tolist()])
        bits = numbers(columns, names, what)
        if not np.isin(bits, (0.0, 1.0)).all():
            raise DataError(
                f"{what}: k='jaccard' takes columns of 0 and 1, or one text column of elements; got other numbers. "
                "Use k='gaussian' for numbers."
            )
        return _objects([dict.fromkeys(np.flatnonzero(row).tolist(), 1.0) for row in bits])

    def combine(self, inner: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        union = a[:, None] + b - inner
        return np.divide(inner, union, out=np.ones_like(inner), where=union > 0)


@final
@dataclass(frozen=True)
class Spectrum(_Counted):
    """k(s, s') = cosine between counts of substrings of `length` characters (Leslie, Eskin & Noble 2002); zero where
    one of them is shorter.

    Args:
        length: of the substrings.

    Example:
        >>> import numpy as np, unnorm as un
        >>> k = un.kernels.Spectrum(length=2)
        >>> x = k.read({"s": np.array(["abab", "abc"])}, ("s",), "k")
        >>> round(float(k.gram(x, x)[0, 1]), 4)
        0.6325
    """

    name = "spectrum"
    takes = "one text column of strings"
    length: int = 3

    def __post_init__(self) -> None:
        if isinstance(self.length, bool) or self.length != int(self.length) or self.length < 1:
            raise TermError(f"kernels.Spectrum: length must be a whole number of at least 1; got {self.length!r}.")

    def read(self, columns: Columns, names: Sequence[str], what: str) -> np.ndarray:
        m = int(self.length)
        strings = texts(columns, names, what, "strings").tolist()
        return _objects([dict(Counter(t[i : i + m] for i in range(len(t) - m + 1))) for t in strings])

    def combine(self, inner: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        norm = np.sqrt(np.outer(a, b))
        return np.divide(inner, norm, out=np.zeros_like(inner), where=norm > 0)

    def diagonal(self, a: np.ndarray) -> np.ndarray:
        return (_sizes(a) > 0).astype(np.float64)
