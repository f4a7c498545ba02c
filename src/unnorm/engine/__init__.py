"""The additive engine: penalised regression with smoothing selection. Names load on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOME = {"gam": "gam_fit", "Gam": "gam_result"}

__all__ = ["Gam", "gam"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if TYPE_CHECKING:
    from .gam_fit import gam
    from .gam_result import Gam
