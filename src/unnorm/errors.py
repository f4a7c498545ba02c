"""One tree of errors. Every message says what was expected, what came, and the remedy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ear: ContextVar[Callable[[str], bool] | None] = ContextVar("unnorm's warnings", default=None)  # True: taken


class UnnormError(Exception):
    """Anything unnorm refuses or cannot do."""


class InputError(UnnormError, ValueError):
    """An argument, a file or an option that cannot be used as given."""


class DataError(InputError):
    """A table with missing values, unknown columns, duplicate keys, wrong shapes."""


class OutsideError(InputError):
    """Points outside the domain Ω, or where a reference has no density."""


class TermError(InputError):
    """A model term that is unknown, malformed or cannot be built on these data."""


class WriteError(InputError):
    """A file or folder that cannot be written: a full disk, a folder that takes no files."""

    def __init__(self, target: object, reason: str) -> None:
        reason = reason.rstrip(".")
        super().__init__(f"{str(target)!r} cannot be written: {reason}. Choose another place for it.")
        self.target, self.reason = str(target), reason

    def __reduce__(self) -> tuple[type[WriteError], tuple[str, str]]:
        """As it was made: a worker sends its errors home."""
        return type(self), (self.target, self.reason)


class CombinationError(UnnormError, TypeError):
    """Parts that do not work together; the message lists those that would."""


class EstimationError(UnnormError, RuntimeError):
    """An estimate that cannot be computed."""


class NoEstimateError(EstimationError):
    """The maximum does not exist: separation, a constant statistic, an MLE at infinity."""


class NotIdentifiedError(EstimationError):
    """A direction of the parameters changes nothing: collinear or absorbed by the normaliser."""


class ConvergenceError(EstimationError):
    """An iteration that stopped before its maximum."""


class MemoryLimitError(MemoryError, UnnormError):  # in this order: else __new__ is not its own, and it cannot travel
    """More memory than is allowed or free; the message has the figures and the option that would make it fit."""


class WorkersError(UnnormError, RuntimeError):
    """Workers that cannot be reached, or are all gone."""


class MissingLibraryError(UnnormError, ImportError):
    """A library that is not part of a plain install."""


class UnnormWarning(UserWarning):
    """Something that a careful reader would want to know about their numbers."""


def warn(text: str, stacklevel: int = 1) -> None:
    """An `UnnormWarning`, unless `hush` or `overhear` has it. Stack levels are counted as in `warnings.warn`."""
    ear = _ear.get()
    if ear is None or not ear(text):
        warnings.warn(text, UnnormWarning, stacklevel=stacklevel + 1)


@contextmanager
def hush(begins: str = "") -> Iterator[None]:
    """While the block lasts, warnings of unnorm that begin so are not given.

    `warnings.catch_warnings` changes the filters of all threads, and two fits side by side undo each other's; this is
    the thread's own, and `_base.threads` hands it to the threads that work for it.

    Args:
        begins: how the warnings begin; by default any does.

    >>> with hush():
    ...     warn("unheard")
    """
    before = _ear.get()
    with _listening(lambda text: text.startswith(begins) or (before is not None and before(text))):
        yield


@contextmanager
def overhear() -> Iterator[list[str]]:
    """While the block lasts, warnings of unnorm are kept in a list instead of being given.

    >>> with overhear() as said:
    ...     warn("a doubt")
    >>> said
    ['a doubt']
    """
    said: list[str] = []

    def keep(text: str) -> bool:
        said.append(text)
        return True

    with _listening(keep):
        yield said


@contextmanager
def told(say: Callable[[str], None]) -> Iterator[None]:
    """While the block lasts, warnings of unnorm are told to `say` instead of being given.

    Args:
        say: what takes the text of a warning.

    >>> with told(print):
    ...     warn("a doubt")
    a doubt
    """

    def tell(text: str) -> bool:
        say(text)
        return True

    with _listening(tell):
        yield


@contextmanager
def _listening(ear: Callable[[str], bool]) -> Iterator[None]:
    token = _ear.set(ear)
    try:
        yield
    finally:
        _ear.reset(token)


def listing(items: Iterable[object], most: int = 12) -> str:
    """The items as they stand in a sentence: 'a', 'b', 'c' and 4 more."""
    shown = [short(item) for item in items]
    more = len(shown) - most
    return ", ".join(shown[:most]) + (f" and {more} more" if more > 0 else "")


def unknown(what: str, got: object, known: Iterable[object]) -> str:
    """The sentence for a name that is not one of those known."""
    return f"{what} must be one of {listing(known, most=40)}; got {short(got)}."


def short(value: object, most: int = 200) -> str:
    """The value as it stands in a sentence, cut where it is long: a file may hold anything.

    >>> short("abc"), short("a" * 1000, most=8)
    ("'abc'", "'aaaa…'")
    """
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}…{text[-1]}"
