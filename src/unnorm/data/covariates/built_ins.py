"""Every built-in covariate, one line each: importing it here makes its names known to all models."""

from .base import BUILT_INS as _BUILT_INS
from .columns import Angle as Angle
from .columns import Context as Context
from .columns import DistanceFromCentre as DistanceFromCentre
from .columns import Outcome as Outcome
from .columns import Step as Step
from .columns import Turn as Turn
from .relative import FromOwnCentre as FromOwnCentre
from .relative import ScaledDistance as ScaledDistance
from .relative import Share as Share
from .sphere import Latitude as Latitude
from .sphere import Longitude as Longitude

_BUILT_INS.fill(vars())
