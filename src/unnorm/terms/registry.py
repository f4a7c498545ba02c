"""The kinds of basis by the name that `bs=` gives them. A new one is a line here."""

from __future__ import annotations

from ..errors import TermError, unknown
from .adaptive import Adaptive
from .bsplines import CyclicPSplines, PSplines
from .cubic import CubicRegression, CyclicCubic
from .gaussian_process import GaussianProcesses
from .kinds import BasisKind
from .markov import MarkovField
from .shrinkage import ShrunkCubic, ShrunkThinPlates
from .soap import SoapFilms
from .sphere import Sphere
from .thin_plate import ThinPlates

KINDS: dict[str, BasisKind] = {
    kind.name: kind
    for kind in (
        ThinPlates(),
        CubicRegression(),
        CyclicCubic(),
        PSplines(),
        CyclicPSplines(),
        ShrunkThinPlates(),
        ShrunkCubic(),
        GaussianProcesses(),
        Sphere(),
        MarkovField(),
        Adaptive(),
        SoapFilms(),
    )
}
FACTOR_KINDS = ("re", "fs")  # made of factors as well: `build` knows them


def kind_of(bs: str) -> BasisKind:
    """The kind of that name."""
    if bs not in KINDS:
        raise TermError(unknown("bs", bs, KINDS))
    return KINDS[bs]
