"""Columns of pyarrow tables as NumPy's: numbers, or labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .categories import check_labels

WIDE = 2**26  # characters of a whole column of text from which its cells are objects, each as long as it is


def from_arrow(name: str, column: Any) -> np.ndarray:
    """A column of a pyarrow table: numbers, or labels, None where a cell is missing."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        coded = column.combine_chunks().dictionary_encode()
        levels = coded.dictionary.to_pylist()
        check_labels(name, levels)
        wide = len(column) * max(map(len, levels), default=0) > WIDE
        if not column.null_count and not wide:
            return np.array(levels, dtype=np.str_)[coded.indices.to_numpy()]
        import pyarrow.compute as pc  # a quarter of a second, which tables of numbers need not wait for

        codes = pc.fill_null(coded.indices, len(levels)).to_numpy()  # pyright: ignore[reportAttributeAccessIssue]
        return np.array([*levels, None], dtype=object)[codes]
    if pa.types.is_dictionary(kind):
        return from_arrow(name, column.cast(kind.value_type))
    if pa.types.is_boolean(kind):
        return from_arrow(name, column.cast(pa.int64()))
    if pa.types.is_decimal(kind) or (pa.types.is_integer(kind) and column.null_count):
        column = column.cast(pa.float64(), safe=False)
    return _numbers(column)


def _numbers(column: Any) -> np.ndarray:
    """A column of numbers. Its own `to_numpy` imports pandas, where that is installed, for a third of a second."""
    import pyarrow as pa

    parts = getattr(column, "chunks", [column])
    plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if not plain or column.null_count or not parts or not hasattr(parts[0], "__dlpack__"):
        return column.to_numpy()
    return np.concatenate([np.from_dlpack(part) for part in parts])


def labels_from_arrow(name: str, column: Any, labels: Sequence[str]) -> np.ndarray:
    """An array of codes as its labels, None where a cell is missing."""
    import pyarrow.compute as pc

    check_labels(name, labels)
    codes = pc.fill_null(column.indices, len(labels))  # pyright: ignore[reportAttributeAccessIssue]
    kind = object if column.null_count else np.str_
    return np.array([*labels, *([None] if column.null_count else [])], dtype=kind)[codes.to_numpy()]
