"""The normal kernel that an Ω takes: by Φ in a box, by Owen's T in a polygon, wrapped on a circle."""

from __future__ import annotations

import numpy as np

from ..domains.base import Domain
from .box_normal import BoxNormal
from .kernels import CorrelatedBoxNormal, Kernel, PolygonNormal, WrappedNormal


def has_normal_kernel(domain: Domain) -> bool:
    """Whether Ω is an interval, a box, a polygon or a circle."""
    return domain.sides is not None or domain.edges is not None or domain.period is not None


def normal_kernel(domain: Domain, cov: np.ndarray) -> Kernel:
    """The normal kernel with covariance `cov`, truncated to Ω or wrapped around it."""
    diagonal = np.count_nonzero(cov - np.diag(np.diag(cov))) == 0
    if domain.period is not None:
        return WrappedNormal(domain, float(np.sqrt(cov[0, 0])))
    if domain.sides is not None and diagonal:
        return BoxNormal(*domain.sides, np.sqrt(np.diag(cov)))
    if domain.edges is not None:
        return PolygonNormal(domain, cov)
    return CorrelatedBoxNormal(domain, cov)
