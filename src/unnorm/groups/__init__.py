"""One model for each level of a factor (each subject), and the population's curve: `fit_each` → `FitGroup`."""

from .each import fit_each
from .result import FitGroup, load_group

__all__ = ["FitGroup", "fit_each", "load_group"]
