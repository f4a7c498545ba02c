"""Cost functions of θ and the normalising constants."""

from .base import REGISTRY, Objective, ParametricProblem, Problem
from .registry import *  # noqa: F403

__all__ = ["REGISTRY", "Objective", "ParametricProblem", "Problem", *REGISTRY]  # pyright: ignore
