"""λ → 0 in the penalised Poisson transform (eq. 2.7): until 𝓜 stops improving, as the paper's Section 2.3 suggests.

The paper's λ0 > 0, below which nothing improves (Proposition 4, Corollary 6), does not exist: at an optimal χ* the
gradient of 𝓜 is zero and that of λ|χ|² is not. What holds is θ(λ) − θ̂ = O(λ), and, as max over χ of 𝓜(θ, χ) is
𝓛(θ) − n,

    ½ (θ(λ) − θ̂)ᵀ I (θ(λ) − θ̂) ≈ 𝓛(θ̂) − 𝓛(θ(λ)) ≤ 𝓜(θ̂, χ*) − 𝓜(θ(λ), χ(λ)) = O(λ²):

what 𝓜 can still gain bounds how far θ is from the maximum-likelihood estimate: .045 standard errors for .001.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from .._base.frames import to_native
from .._base.numerics import Rng
from ..data.observations import Observations
from ..errors import CombinationError, InputError, warn
from ..models.base import Unnormalised
from ..models.kernel import Kernel
from ..objectives.base import Objective
from ..objectives.exact import Poisson
from .fit import Fit
from .fitting import fit

MOST = 16  # values of λ


@final
@dataclass(frozen=True)
class KernelPath:
    """Penalised estimates at decreasing λ; `fit` is the last, `converged` whether 𝓜 had stopped improving."""

    lam: np.ndarray  # (L,)
    value: np.ndarray  # (L,) 𝓜(θ(λ), χ(λ)), without the penalty
    norm: np.ndarray  # (L,) |h|²_H
    estimate: np.ndarray  # (L, p) θ(λ)
    names: tuple[str, ...]
    tolerance: float
    converged: bool
    fit: Fit = field(repr=False)

    @property
    def gain(self) -> np.ndarray:
        """(L,) what 𝓜 gained on the λ before; nan for the first."""
        return np.diff(self.value, prepend=np.nan)

    def table(self) -> Any:
        """A row for each λ: lam, value, gain, norm and the parameters; of the kind that the data came in."""
        columns: Mapping[str, np.ndarray] = {"lam": self.lam, "value": self.value, "gain": self.gain, "norm": self.norm}
        return to_native({**columns, **dict(zip(self.names, self.estimate.T))}, self.fit.backend)


def kernel_path(
    model: Unnormalised,
    obs: Observations,
    kernel: Kernel,
    *,
    objective: Objective | None = None,
    start: float | None = None,
    factor: float = 0.1,
    tolerance: float = 1e-3,
    rng: Rng = None,
) -> KernelPath:
    """Fit with λ = start, start × factor, …, until 𝓜 improves by less than `tolerance`, and by less than before.

    For noise contrast there is no such rule, as points are few and a free χ fits them: choose λ by cross-validation,
    un.fit(…, normaliser=un.Kernel(k), smoothing="cv").

    Args:
        model, obs: as in `un.fit`.
        kernel: χ; its λ is ignored.
        objective: `un.Poisson(…)`.
        start: the largest λ; default the number of observations.
        factor: between one λ and the next.
        tolerance: in units of the log-likelihood.
        rng: as in `un.fit`.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
        >>> chain = un.transitions(un.datasets.toy_chain(200, 0.5, 5.0, rng=1))
        >>> path = un.kernel_path(toy, chain, un.Kernel(un.kernels.Gaussian(0.5)))
        >>> ml = un.fit(toy, chain)
        >>> path.converged, bool(abs(path.fit.theta["theta2"] - ml.theta["theta2"]) < 0.05 * ml.se[1])
        (True, True)
    """
    objective = Poisson() if objective is None else objective
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernel must be un.Kernel(k, …); got {type(kernel).__name__}.")
    if objective.loss != "poisson" or objective.reference is not None:
        raise CombinationError(
            f"The path to λ → 0 needs 𝓜 with its integrals, objective=un.Poisson(); got {objective.name}, whose χ "
            "would fit the reference points. There, choose λ by cross-validation: un.fit(…, normaliser=un.Kernel(k), "
            "smoothing='cv')."
        )
    first = float(obs.weights.sum()) if start is None else start
    for what, value, most in (("start", first, np.inf), ("factor", factor, 1.0), ("tolerance", tolerance, np.inf)):
        if not 0 < value < most:
            raise InputError(f"{what} must lie between 0 and {most:g}; got {value!r}.")
    fits: list[Fit] = []
    gains: list[float] = []
    lams = first * factor ** np.arange(MOST)
    for lam in lams:
        fits.append(fit(model, obs, objective=objective, normaliser=kernel.with_lam(float(lam)), rng=rng))
        if len(fits) > 1:
            gains.append(fits[-1].value - fits[-2].value)
        if len(gains) > 1 and gains[-1] < tolerance and gains[-1] <= gains[-2]:
            break
    converged = len(gains) > 1 and gains[-1] < tolerance and gains[-1] <= gains[-2]
    if not converged:
        warn(
            f"𝓜 still gained {gains[-1]:.2g} at λ = {lams[len(fits) - 1]:.1e}, the last of {MOST}, against a tolerance "
            f"of {tolerance:g}: start lower (start=), or take larger steps (factor=).",
            stacklevel=2,
        )
    return KernelPath(
        lam=lams[: len(fits)],
        value=np.array([one.value for one in fits]),
        norm=np.array([_norm(one) for one in fits]),
        estimate=np.stack([one.estimate for one in fits]),
        names=fits[-1].names,
        tolerance=tolerance,
        converged=converged,
        fit=fits[-1],
    )


def _norm(fitted: Fit) -> float:
    """|h|²_H: the coefficients' own."""
    part = fitted.smooths
    assert part is not None
    (label,) = part.normaliser_labels
    return float(np.sum(part.beta[part.slices[label]] ** 2))
