"""Additive models as scikit-learn estimators: `from unnorm.sklearn import GAM`, with the extra `sklearn`."""

from .estimator import GAM

__all__ = ["GAM"]
