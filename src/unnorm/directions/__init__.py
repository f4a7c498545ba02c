"""Directions: named families on the circle, the sphere, their axes and the torus; regressions and chains of directions.

`un.fit_direction(un.directions.von_mises(), un.iid(table, y="bearing", unit="bearings"))`. The functions are lower
case because `un.VonMises` and `un.VonMisesFisher` are references q, from which points are drawn, and not models.
"""

from .chains import chain as chain
from .circular import generalised_von_mises as generalised_von_mises
from .circular import von_mises as von_mises
from .circular import wrapped_cauchy as wrapped_cauchy
from .circular import wrapped_normal as wrapped_normal
from .family import Family as Family
from .fitting import fit_direction as fit_direction
from .plots import rose as rose
from .plots import sphere_map as sphere_map
from .regression import regression as regression
from .result import DirectionFit as DirectionFit
from .spherical import bingham as bingham
from .spherical import fisher_bingham as fisher_bingham
from .spherical import kent as kent
from .spherical import von_mises_fisher as von_mises_fisher
from .spherical import watson as watson
from .toroidal import bivariate_von_mises as bivariate_von_mises
