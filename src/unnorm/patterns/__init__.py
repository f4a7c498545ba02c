"""Point patterns: n random points in a window, their intensity, their interactions, and what to ask of a fit."""

from .dummies import Dummies as Dummies
from .fitting import fit_pattern as fit_pattern
from .interactions import REGISTRY as REGISTRY
from .interactions import Interaction as Interaction
from .pattern import Pattern as Pattern
from .pattern import pattern as pattern
from .result import PatternFit as PatternFit
