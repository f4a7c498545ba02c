"""Domains Ω: outcomes with their base measure, membership, maps from the unit cube, quadrature or enumeration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .accuracy import quadrature_error as quadrature_error
from .base import REGISTRY as REGISTRY
from .base import Domain as Domain
from .base import Quadrature as Quadrature
from .registry import *  # noqa: F403  (the registered domains)


def from_dict(description: Mapping[str, Any]) -> Domain:
    """The domain that `to_dict` described.

    Args:
        description: what `to_dict` of a domain gave.

    >>> from_dict({"domain": "Interval", "lower": -1.0, "upper": 1.0})
    Interval(-1, 1)
    """
    return REGISTRY.read(description)
