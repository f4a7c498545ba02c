"""How far a quadrature rule is from a finer one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._base.numerics import floats
from ..errors import InputError
from .base import Domain, Quadrature


def quadrature_error(
    domain: Domain, g: Callable[[np.ndarray], np.ndarray], order: int | None = None, *, relative: bool = False
) -> float | np.ndarray:
    """|Σ w g(y) − Σ w' g(y')|, the rule of `order` against one of 1.5 times the order; 0 where Ω is enumerated.

    An estimate, not a bound: a peak between the nodes of both rules is not seen.

    Args:
        domain: Ω.
        g: takes all points at once, (N, d) → (N,) or (N, k), the latter giving k errors.
        order: of the rule; default the domain's.
        relative: whether errors are divided by |Σ w' g(y')|.

    >>> from unnorm.domains import Interval
    >>> bump = lambda sd: lambda y: np.exp(-0.5 * (y[:, 0] / sd) ** 2)
    >>> bool(quadrature_error(Interval(-1, 1), bump(0.1), relative=True) < 1e-10)
    True
    >>> bool(quadrature_error(Interval(-1, 1), bump(0.1), order=10, relative=True) > 0.01)
    True
    """
    rule = domain.quadrature(order)
    coarse = _integral(rule, g)
    if rule.exact:
        return 0.0 * coarse
    size = domain.default_order if order is None else order
    assert size is not None, "a rule without an order and without a default"
    fine = _integral(domain.quadrature(size + size // 2 + 1), g)
    error = np.abs(coarse - fine)
    if relative:
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.where(error == 0.0, 0.0, error / np.abs(fine))
    return float(error) if np.ndim(error) == 0 else error


def _integral(rule: Quadrature, g: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    values = floats(g(rule.points), "The values of g")
    if values.ndim not in (1, 2) or len(values) != len(rule.weights):
        raise InputError(
            f"g must give one value (or one row) per point, shape ({len(rule.weights)},) or ({len(rule.weights)}, k); "
            f"got shape {values.shape}."
        )
    return rule.weights @ values
