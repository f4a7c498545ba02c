"""Point patterns: n random points in a window, their intensity, their interactions, and what to ask of a fit."""

from .dummies import Dummies as Dummies
from .fitting import fit_pattern as fit_pattern
from .functions import Envelope as Envelope
from .functions import F as F
from .functions import G as G
from .functions import J as J
from .functions import K as K
from .functions import L as L
from .functions import Summary as Summary
from .functions import envelope as envelope
from .functions import pair_correlation as pair_correlation
from .interactions import REGISTRY as REGISTRY
from .interactions import Interaction as Interaction
from .pattern import Pattern as Pattern
from .pattern import pattern as pattern
from .process import Process as Process
from .process import process as process
from .result import PatternFit as PatternFit
