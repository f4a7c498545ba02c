"""Domains Ω: outcomes with their base measure, membership, maps from the unit cube, quadrature or enumeration."""

from .accuracy import quadrature_error
from .base import Domain, Quadrature
from .boxes import Box, Interval
from .finite import BinaryVectors, FiniteSet
from .graphs import Graphs
from .registry import REGISTRY, from_dict
from .round import Circle, Sphere
from .window import Window

__all__ = [
    "Domain",
    "Quadrature",
    "Interval",
    "Box",
    "Window",
    "Circle",
    "Sphere",
    "FiniteSet",
    "BinaryVectors",
    "Graphs",
    "REGISTRY",
    "from_dict",
    "quadrature_error",
]
