"""References q(·|x) and the schemes by which points are drawn from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .angles import UniformAngle as UniformAngle
from .angles import VonMisesAngle as VonMisesAngle
from .base import REGISTRY as REGISTRY
from .base import BoundReference as BoundReference
from .base import Example as Example
from .base import Given as Given
from .base import Reference as Reference
from .points import SCHEMES as SCHEMES
from .points import Points as Points
from .points import PointScheme as PointScheme
from .registry import *  # noqa: F403  (the registered references and point schemes)
from .steps import Exponential as Exponential
from .steps import Gamma as Gamma
from .steps import HalfNormal as HalfNormal
from .steps import LogNormal as LogNormal
from .steps import Weibull as Weibull


def from_dict(description: Mapping[str, Any]) -> Reference:
    """The reference that `to_dict` described; of a bound one, with all its parameters.

    Args:
        description: what `to_dict` of a reference gave.

    >>> from_dict({"reference": "Gaussian", "cov": 4.0, "around": "context"})
    Gaussian(mean=None, cov=4.0, around='context', scale=1.0, diagonal=True)
    """
    return REGISTRY.read(description)
