"""New data under a fit: their log-likelihood, and what the fit saves in bits for each observation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._numerics import read_only
from .data import Observations
from .density import Density
from .draws import Proposal
from .errors import InputError, OutsideError

CHECKED = 20  # contexts whose integrals are compared with a finer rule


@dataclass(frozen=True)
class HeldOut:
    """Σ_t w_t log p̂(y_t|x_t) over new observations.

    `bits` is the mean of log₂ p̂(y_t|x_t)/q(y_t|x_t): how much shorter the fit's code is than the reference's.
    """

    loglik: float
    n: int
    bits: float  # for each observation, against the reference
    bits_uniform: float  # against the uniform law on Ω
    reference: str  # what `bits` is against
    quadrature_error: float  # of log Z, at a few contexts, against a finer rule
    log_density: np.ndarray = field(repr=False)  # (n,) log p̂(y_t|x_t)

    def __str__(self) -> str:
        return (
            f"log-likelihood {self.loglik:.6g} over {self.n:,} observations; {self.bits:.4g} bits each against "
            f"{self.reference}"
            + (f", {self.bits_uniform:.4g} against the uniform law" if self.reference != UNIFORM else "")
        )


UNIFORM = "the uniform law"


def held_out(density: Density, obs: Any, proposal: Proposal | None, order: int | None) -> HeldOut:
    """The fit's density at new observations, normalised by quadrature or enumeration."""
    if not isinstance(obs, Observations):
        raise InputError(
            f"held_out takes observations (un.iid, un.transitions or un.conditional); got {type(obs).__name__}."
        )
    domain = density.domain
    inside = domain.contains(obs.outcome)
    if not inside.all():
        first = int(np.argmin(inside))
        raise OutsideError(
            f"{int((~inside).sum()):,} of {obs.n:,} observations lie outside {domain!r}, where the fitted density is "
            f"zero; the first is row {first}, y = {obs.outcome[first].tolist()}. Leave them out: obs.take(inside)."
        )
    log_z = density.log_z(obs, order)
    log_p = density.log_f(obs, obs.outcome, np.arange(obs.n)) - log_z
    some = np.unique(np.linspace(0, obs.n - 1, min(CHECKED, obs.n)).astype(int))
    error = normaliser_error(density, obs.take(some), log_z[some], order)
    w = obs.weights
    uniform = float(w @ (log_p + domain.log_volume)) / (w.sum() * np.log(2))
    bits, name = uniform, UNIFORM
    if proposal is not None:
        q = proposal(obs)
        if q.given != "outcome":  # a kernel around the outcome is no prediction of it
            log_q = q.log_density(obs.outcome, obs, np.arange(obs.n))
            bits, name = float(w @ (log_p - log_q)) / (w.sum() * np.log(2)), q.describe()
            name = UNIFORM if name.lower().startswith("uniform") else name
    return HeldOut(float(w @ log_p), obs.n, bits, uniform, name, error, read_only(log_p))


def normaliser_error(density: Density, obs: Observations, log_z: np.ndarray, order: int | None) -> float:
    """max |log Z − log Z by a rule half as fine again| over the observations; 0 where Ω is enumerated."""
    if density.domain.quadrature(order).exact:
        return 0.0
    size = order or density.domain.default_order or 1
    try:
        finer = density.log_z(obs, size + size // 2 + 1)
    except InputError:  # the domain refuses so many nodes
        return float("nan")
    return float(np.max(np.abs(finer - log_z)))
