"""New data under a fit: their log-likelihood, and what the fit saves in bits for each observation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from .._base.counts import counted, total
from .._base.numerics import Rng, generator, read_only
from ..data.observations import Observations
from ..data.placing import log_volumes, placed
from ..errors import InputError, OutsideError, warn
from ..objectives.integrals import telling
from ..references import Uniform
from ..references.by_window import bound
from .density import ROWS_AT_ONCE, Density
from .draws import Proposal
from .gibbs_draws import annealed_log_z
from .outside import first_outside, inside

CHECKED = 20  # contexts whose integrals are compared with a finer rule
KNOWN, UNKNOWN = 1e-4, 0.05  # error of log Z at which a rule is fine enough, and above which it is said aloud
DOUBLINGS, NODES = 4, 4e7  # how often a rule is made finer, and nodes over all contexts up to which it is
DOUBTFUL = 0.1  # standard error of log Z by annealing that is said aloud
LEAST, WANTED, ENOUGH, MOST = 200, 4000, 2e5, 2e7  # points where there is no rule: each context (2), all contexts (2)


@final
@dataclass(frozen=True, eq=False)
class HeldOut:
    """Σ_t w_t log p̂(y_t|x_t) over new observations; `print(held_out)` gives a sentence.

    `bits` is the mean of log₂ p̂(y_t|x_t)/q(y_t|x_t): what the fit saves over the reference.
    """

    loglik: float
    n: float  # Σ w, weights being frequencies
    rows: int
    bits: float  # for each observation, against the reference
    bits_uniform: float  # against the uniform law on Ω
    reference: str  # what `bits` is against
    quadrature_error: float  # of log Z: against a finer rule at a few contexts; its standard error where sampled
    log_density: np.ndarray = field(repr=False)  # (rows,) log p̂(y_t|x_t)

    def __str__(self) -> str:
        return (
            f"log-likelihood {self.loglik:.6g} over {counted(self.n, self.rows)}; {self.bits:.4g} bits each against "
            f"{self.reference}"
            + (f", {self.bits_uniform:.4g} against the uniform law" if self.reference != UNIFORM else "")
        )


UNIFORM = "the uniform law"
COARSE = (
    "log Z is known to {error:.2g} only: exp f̂ is sharper than the nodes of the rule are close, and the log-likelihood "
    "may be off by as much for each observation. Raise order=."
)


def evenly(n: int, most: int) -> np.ndarray:
    """At most `most` of the rows 0 … n − 1, spread evenly over them."""
    return np.unique(np.linspace(0, n - 1, min(most, n)).astype(int))


def halves(obs: Observations) -> tuple[np.ndarray, np.ndarray]:
    """Every other sequence, and the rest, as masks; of one sequence every other of ten stretches; of IID data every
    other observation.

    What is fitted to the one half can be asked about the other with `held_out`, and no sequence is in both.
    """
    sequence = np.arange(obs.n) if obs.sequence is None else obs.sequence
    if np.unique(sequence).size < 2:
        sequence = np.arange(obs.n) // max(obs.n // 10, 1)
    odd = np.unique(sequence, return_inverse=True)[1] % 2 == 1
    return ~odd, odd


def held_out(
    density: Density, obs: Any, proposal: Proposal | None, order: int | None, rng: Rng = 0, refine: bool = True
) -> HeldOut:
    """The fit's density at new observations, normalised; `refine`: by rules made finer until log Z is known."""
    if not isinstance(obs, Observations):
        raise InputError(
            f"held_out takes observations (un.iid, un.transitions or un.conditional); got {type(obs).__name__}."
        )
    domain = density.domain
    _refuse_masked(obs)
    obs = placed(domain, obs)
    within = inside(domain, obs, earlier=domain.finite)  # states that do not exist have no energy
    if not within.all():
        earlier = range(1, obs.lags + 1 if domain.finite else 1)
        before = "".join(f" & omega.contains(obs.previous({lag}))" for lag in earlier)
        raise OutsideError(
            f"{int((~within).sum()):,} of {obs.n:,} observations lie outside {domain!r}, where the fitted density is "
            f"zero; {first_outside(domain, obs)[0]}. Leave them out: with omega = fit.model.domain, "
            f"obs.take(omega.contains(obs.outcome){before})."
        )
    found = constants(density, obs, order, proposal, rng, refine)
    if domain.rule is not None and found.error > UNKNOWN:
        warn(COARSE.format(error=found.error), stacklevel=3)
    log_p = density.log_f(obs, obs.outcome, np.arange(obs.n)) - found.log_z
    w = obs.weights
    log_volume = log_volumes(domain, obs)
    uniform = float(w @ (log_p + log_volume)) / (w.sum() * np.log(2))
    bits, name = uniform, UNIFORM
    if proposal is not None:
        q = proposal(obs)
        if q.given != "outcome":  # a kernel around the outcome does not predict it
            log_q = q.log_density(obs.outcome, obs, np.arange(obs.n))
            bits = float(w @ (log_p - log_q)) / (w.sum() * np.log(2))
            flat = np.allclose(log_q, -log_volume, rtol=0.0, atol=1e-12)
            name = UNIFORM if flat else q.describe()
    return HeldOut(
        loglik=float(w @ log_p),
        n=total(w),
        rows=obs.n,
        bits=bits,
        bits_uniform=uniform,
        reference=name,
        quadrature_error=found.error,
        log_density=read_only(log_p),
    )


def _refuse_masked(obs: Observations) -> None:
    """Refuse outcomes with bits that are fixed or missing: log Z sums over all of them, and none is a zero."""
    if obs.masks is None or obs.masks.complete.all():
        return
    first = int(np.argmin(obs.masks.complete))
    raise InputError(
        f"{int((~obs.masks.complete).sum()):,} of {obs.n:,} observations have bits that are missing, or fixed in some "
        f"observations only, now or in the outcome before; the first is observation {first} (from 0). held_out needs "
        "all bits: leave these out, obs.take(obs.masks.complete)."
    )


@final
@dataclass(frozen=True)
class Constants:
    """log Z_t for each observation."""

    log_z: np.ndarray  # (n,)
    error: float  # of log Z, the largest: against a finer rule at a few contexts, or the standard error of a sample


def constants(
    density: Density,
    obs: Observations,
    order: int | None,
    proposal: Proposal | None = None,
    rng: Rng = 0,
    refine: bool = False,
) -> Constants:
    """By quadrature or enumeration; by importance sampling, with a warning, where Ω has neither.

    `refine`: whether the order is ours to raise until log Z is known.
    """
    try:
        density.domain.windows[0].quadrature(order)
    except InputError:
        if order is not None:
            raise
        return _sampled(density, obs, proposal, generator(rng))
    found = _by_rule(density, obs, order)
    size = order or density.domain.default_order
    for _ in range(DOUBLINGS if refine and size is not None else 0):
        assert size is not None
        size *= 2
        if found.error <= KNOWN or obs.n * float(size) ** density.domain.dim > NODES:
            break
        try:
            found = _by_rule(density, obs, size)
        except InputError:  # the domain refuses so many nodes
            break
    return found


def _by_rule(density: Density, obs: Observations, order: int | None) -> Constants:
    log_z = density.log_z(obs, order)
    some = telling(log_z, CHECKED)
    return Constants(log_z, _rule_error(density, obs.take(some), log_z[some], order))


def _rule_error(density: Density, obs: Observations, log_z: np.ndarray, order: int | None) -> float:
    """max |log Z − log Z by a rule half as fine again| over the observations; 0 where Ω is enumerated."""
    if density.quadrature(order).exact:
        return 0.0
    size = order or density.domain.default_order or 1
    try:
        finer = density.log_z(obs, size + size // 2 + 1)
    except InputError:  # the domain refuses so many nodes
        return float("nan")
    return float(np.max(np.abs(finer - log_z)))


def _annealed(density: Density, obs: Observations, rng: np.random.Generator) -> Constants:
    """By annealing from independent bits with the outcomes' frequencies to the model."""
    first, of = density.contexts(obs)
    log_z, error = annealed_log_z(density, obs, first, rng)
    if error.max() > DOUBTFUL:
        warn(
            f"log Z of {density.domain!r} is estimated by annealed importance sampling, with standard errors up to "
            f"{error.max():.2g}: the likelihoods are no better known.",
            stacklevel=6,
        )
    return Constants(log_z[of], float(error.max()))


def _sampled(density: Density, obs: Observations, proposal: Proposal | None, rng: np.random.Generator) -> Constants:
    """log Ẑ = log mean exp(f̂ − log q) over fresh points of q for each distinct context; se(log Ẑ) = sd(Ẑ)/Ẑ."""
    if density.domain.free is not None and density.sweeps:
        return _annealed(density, obs, rng)
    q = None if proposal is None else proposal(obs)
    if q is None or q.given == "outcome":  # a kernel around the outcome is not a law for it
        q = bound(Uniform(), density.domain, obs)
    first, of = density.contexts(obs)
    m = int(np.clip(MOST / len(first), LEAST, max(WANTED, ENOUGH / len(first))))
    log_z, error = np.empty(len(first)), np.empty(len(first))
    length = max(1, ROWS_AT_ONCE // m)
    for begin in range(0, len(first), length):
        here = first[begin : begin + length]
        rows = np.repeat(here, m)
        y = q.sample(obs, rows, rng)
        log_w = (density.log_f(obs, y, rows) - q.log_density(y, obs, rows)).reshape(-1, m)
        top = log_w.max(axis=1, keepdims=True)
        w = np.exp(log_w - top)
        mean = w.mean(axis=1)
        log_z[begin : begin + length] = top[:, 0] + np.log(mean)
        error[begin : begin + length] = w.std(axis=1) / mean / np.sqrt(m)
    warn(
        f"{density.domain!r} has too many states or coordinates for a sum or a rule: log Z is estimated from {m:,} "
        f"points of {q.describe()} for each of {len(first):,} contexts, with standard errors up to {error.max():.2g}.",
        stacklevel=5,
    )
    return Constants(log_z[of], float(error.max()))
