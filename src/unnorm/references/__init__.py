"""References q(·|x) and the schemes by which points are drawn from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import CombinationError, InputError, unknown
from .base import BoundReference, Given, Reference, parameters
from .custom import Custom
from .directional import VonMises, VonMisesFisher
from .discrete import BitFlip, Marginal, ProductBernoulli
from .empirical import Empirical
from .gaussian import Gaussian
from .gaussian_mixture import GaussianMixture
from .mixture import Mixture
from .points import IID, Lattice, Points, PointScheme, Sobol, Stratified
from .step_kernel import StepKernel
from .steps import Exponential, Gamma, HalfNormal, LogNormal, UniformAngle, VonMisesAngle, Weibull
from .uniform import Uniform

REGISTRY: Mapping[str, type[Reference]] = {
    cls.__name__: cls
    for cls in (
        Uniform,
        Gaussian,
        GaussianMixture,
        VonMises,
        VonMisesFisher,
        StepKernel,
        Empirical,
        Mixture,
        ProductBernoulli,
        BitFlip,
        Marginal,
        Custom,
    )
}
SCHEMES: Mapping[str, type[PointScheme]] = {cls.__name__: cls for cls in (IID, Stratified, Lattice, Sobol)}


def from_dict(description: Mapping[str, Any]) -> Reference:
    """The reference that `to_dict` described; of a bound one, with all its parameters.

    >>> from_dict(Gaussian(cov=4.0, around="context").to_dict())
    Gaussian(mean=None, cov=4.0, around='context', scale=1.0, diagonal=True)
    """
    name = description.get("reference")
    if name == "Custom":
        raise CombinationError(
            f"The reference {description.get('name')!r} is a user's own pair of functions, which are not saved: "
            "make it again with Custom(sample, log_density)."
        )
    if not isinstance(name, str) or name not in REGISTRY:
        raise InputError(unknown("The 'reference' of a description", name, REGISTRY))
    cls = REGISTRY[name]
    try:
        own = getattr(cls, "from_dict", None)
        return own(description) if own is not None else cls(**parameters(description))
    except (KeyError, TypeError) as error:
        raise InputError(
            f"The description of a {name} cannot be read ({error}); it has {sorted(description)}."
        ) from error


__all__ = [
    "Uniform",
    "Gaussian",
    "GaussianMixture",
    "VonMises",
    "VonMisesFisher",
    "StepKernel",
    "Empirical",
    "Mixture",
    "ProductBernoulli",
    "BitFlip",
    "Marginal",
    "Custom",
    "IID",
    "Stratified",
    "Lattice",
    "Sobol",
    "Reference",
    "BoundReference",
    "PointScheme",
    "Points",
    "Given",
    "Gamma",
    "Exponential",
    "Weibull",
    "LogNormal",
    "HalfNormal",
    "UniformAngle",
    "VonMisesAngle",
    "REGISTRY",
    "SCHEMES",
    "from_dict",
]
