"""Used-habitat calibration (Fieberg et al. 2018): the habitat of observed steps beside that of the model's own.

Given the k + 1 steps of a stratum, the model says which of them was taken with probabilities ∝ exp(f̂ − log q + log k):
drawn again and again, with f̂ drawn from its own uncertainty, they give a band for the distribution of any covariate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from .._base.frames import to_native
from ..errors import InputError
from ..results.case_control import case_control
from ..results.contrasts import terms_of
from ..results.fit import Fit

BINS = 20


@final
@dataclass(frozen=True, eq=False)
class Calibration:
    """Shares of steps by bins of a covariate: used, available, and a band of what the model would use."""

    name: str
    edges: np.ndarray
    used: np.ndarray
    available: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: float
    backend: Any = field(default=None, repr=False)

    @property
    def inside(self) -> float:
        """The share of bins whose used share lies in the band, of those that any step ends in."""
        any_step = self._taken
        return float(np.mean(((self.used >= self.lower) & (self.used <= self.upper))[any_step]))

    @property
    def _taken(self) -> np.ndarray:
        return (self.used > 0.0) | (self.available > 0.0)

    def __repr__(self) -> str:
        return f"Calibration({self.name!r}: {100 * self.inside:.0f} % of {int(self._taken.sum())} bins in the band)"

    def tidy(self) -> Any:
        """A table: from, to, used, available, lower, upper."""
        columns = {"from": self.edges[:-1], "to": self.edges[1:], "used": self.used, "available": self.available}
        return to_native({**columns, "lower": self.lower, "upper": self.upper}, self.backend)

    def plot(self, ax: Any = None) -> Any:
        """Used and available habitat with the model's band; returns the Axes."""
        from .plots import calibration

        return calibration(self, ax)


def calibrate(fit: Fit, name: str, draws: int, level: float, rng: np.random.Generator) -> Calibration:
    """The calibration of one covariate, known to the model whether or not f reads it."""
    part, rows = terms_of(fit), case_control(fit)
    assert fit.model is not None
    assert fit.obs is not None
    if "stratum" not in rows:
        raise InputError("Calibration compares each step with its own reference points, and these data share theirs.")
    case, stratum = rows["case"] == 1, rows["stratum"]
    outcome = np.column_stack([rows[one] for one in fit.obs.outcome_names])
    value = rows[name] if name in rows else fit.model.covariates(fit.obs).values(name, fit.obs, outcome, stratum)[name]
    if np.asarray(value).dtype.kind not in "fiu":
        raise InputError(f"Calibration needs a numeric covariate; {name!r} holds labels.")
    X = np.zeros((len(case), part.beta.size))
    for label in part.model_labels:
        term = part.term(label)
        X[:, part.slices[label]] = term.design({one: rows[one] for one in term.covariates})
    start = np.flatnonzero(np.diff(stratum, prepend=-1))
    edges = np.linspace(np.nanmin(value), np.nanmax(value), BINS + 1)
    which = np.clip(np.searchsorted(edges, value, side="right") - 1, 0, BINS - 1)
    root = np.linalg.cholesky(part.errors.total + 1e-12 * np.trace(part.errors.total) * np.eye(part.beta.size))
    shares = np.empty((draws, BINS))
    for i in range(draws):
        eta = X @ (part.beta + root @ rng.normal(size=part.beta.size)) + rows["offset"]
        gumbel = eta + rng.gumbel(size=eta.size)  # the largest of a stratum is a draw from its softmax
        best = np.maximum.reduceat(gumbel, start)
        taken = gumbel == np.repeat(best, np.diff(start, append=len(case)))
        shares[i] = np.bincount(which[taken], minlength=BINS) / len(start)
    low, high = np.quantile(shares, ((1 - level) / 2, (1 + level) / 2), axis=0)
    used, rest = (np.bincount(which[some], minlength=BINS) / some.sum() for some in (case, ~case))
    return Calibration(name, edges, used, rest, low, high, level, fit.backend)
