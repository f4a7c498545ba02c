"""Categories: levels in the order that their owner gave them, and those of pandas that are no labels yet."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import DataError

LABELLED = ("IntervalIndex", "DatetimeIndex", "PeriodIndex")
Level = str | int | float | bool
NUL = "\0"


@dataclass(frozen=True)
class Category:
    """The levels of a categorical column in the order that its owner gave them, and whether they are ordered."""

    levels: tuple[Level, ...]
    ordered: bool = False


def as_series(values: Any) -> Any:
    """A bare `pandas.Categorical` as a series, which says what its levels are; anything else as it is."""
    bare = type(values).__name__ == "Categorical" and "pandas" in sys.modules
    return sys.modules["pandas"].Series(values) if bare else values


def with_labels(series: Any) -> Any:
    """A pandas category of intervals, as `pandas.cut` gives, or of dates, with labels for levels: "(0.0, 0.5]"."""
    import narwhals as nw

    if not isinstance(series.dtype, nw.Categorical | nw.Enum) or not series.implementation.is_pandas_like():
        return series
    native = series.to_native()
    if type(native.cat.categories).__name__ not in LABELLED:
        return series
    return nw.from_native(native.cat.rename_categories(str), series_only=True)


def check_labels(name: str, labels: Iterable[str]) -> None:
    """Refuse labels that end in NUL, which NumPy's text drops: "a\\0" would become "a", and perhaps another level."""
    odd = next((label for label in labels if label[-1:] == NUL), None)
    if odd is not None:
        raise DataError(
            f"Column {name!r}: labels must not end in the character NUL, which NumPy drops: {odd!r} would be "
            f"{odd.rstrip(NUL)!r}. Strip it, as in label.rstrip('\\0'), or write the label otherwise."
        )
