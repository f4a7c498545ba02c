"""Libraries that come with an extra: imported where they are needed, and named where they are missing."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import MissingLibraryError


def extra(library: str, name: str, what: str) -> Any:
    """The library, or a sentence that says what needs it and how to install it.

    Example:
        >>> extra("json", "stochastic", "un.SGD").dumps([1])
        '[1]'
    """
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise MissingLibraryError(
            f"{what} needs {library}, which could not be imported ({error}). "
            f"Install it with pip install 'unnorm[{name}]'."
        ) from error
