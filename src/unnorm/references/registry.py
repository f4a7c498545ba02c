"""Every reference and every point scheme, one line each: importing it here registers it."""

from .._base.words import chooses_from as _chooses_from
from .base import REGISTRY as _REGISTRY
from .bernoulli_tree import BernoulliTree as BernoulliTree
from .custom import Custom as Custom
from .defensive import Defensive as Defensive
from .directional import VonMises as VonMises
from .directional import VonMisesFisher as VonMisesFisher
from .directional_mixture import DirectionalMixture as DirectionalMixture
from .discrete import BitFlip as BitFlip
from .discrete import Marginal as Marginal
from .discrete import ProductBernoulli as ProductBernoulli
from .empirical import Empirical as Empirical
from .gaussian import Gaussian as Gaussian
from .gaussian_mixture import GaussianMixture as GaussianMixture
from .gibbs_steps import GibbsSteps as GibbsSteps
from .logistic_bernoulli import LogisticBernoulli as LogisticBernoulli
from .mixture import Mixture as Mixture
from .points import IID as IID
from .points import SCHEMES as _SCHEMES
from .points import Lattice as Lattice
from .points import Sobol as Sobol
from .points import Stratified as Stratified
from .step_kernel import StepKernel as StepKernel
from .uniform import Uniform as Uniform

_REGISTRY.fill(vars())
_SCHEMES.fill(vars())
_chooses_from("points", _SCHEMES)
