"""Observations + Reference → labelled rows: the data set on which a logistic classifier estimates (θ, ν) or (θ, χ).

The log-odds that a row is real are (eqs 3.2 and 3.4)

    log p(z=1|y,x)/p(z=0|y,x) = f_θ(y|x) + χ(x) − log q(y|x) + log(n/m),

with m reference points in all: m = k n for k points per context, so that log(n/m) = −log k there. With observation
weights w, n = Σ w; the reference points of an observation carry its weight, so that log(n/m) = −log k still, and those
of IID data weigh one each. `log_odds_offset` is the part of the log-odds that is not estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from .._base.numerics import Rng, generator, read_only
from .._base.words import at_row
from ..data.placing import within
from ..errors import InputError, OutsideError
from .base import BoundReference
from .points import Points, PointScheme, evenly_spread, points_wanted

if TYPE_CHECKING:
    from ..data.observations import Observations


@final
@dataclass(frozen=True, repr=False)
class Contrast:
    """Real rows (z = 1) and reference rows (z = 0), ready for any of the objectives; made once, shared by many fits.

    With contexts the rows of one lie together: the real row and then its k reference rows, so that arrays reshape to
    (n, k + 1). For IID data the n real rows come first and then the m reference rows, whose `at` is −1.
    """

    obs: Observations
    reference: BoundReference
    scheme: PointScheme
    k: int | None  # reference points per observation; None for IID data, which share m points
    outcome: np.ndarray  # (N, d)
    z: np.ndarray  # (N,) bool: real?
    at: np.ndarray  # (N,) the observation whose context the row uses; −1 for the shared reference points of IID data
    log_q: np.ndarray  # (N,) log q(y|x); for kernels around the outcome log q(y'|y), and 0 on real rows
    weight: np.ndarray  # (N,) the observation's weight, also on its reference rows; 1 for shared ones
    offset: np.ndarray | None  # (N,) known part of f, the observation's also on its reference rows; None for zero
    randomisation: np.ndarray  # (N,) 0 for real rows, 1 … R for reference rows
    log_q_back: np.ndarray | None = None  # (N,) log q(y|y'), 0 on real rows: kernels around the outcome only
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        shared = f"{self.rows - self.obs.n:,} shared reference points"
        points = shared if self.k is None else f"{self.k} reference points each"
        return f"Contrast({self.obs.n:,} observations, {points} by {self.scheme!r} from {self.reference!r})"

    @property
    def n(self) -> float:
        """Total weight of the observations."""
        return float(np.sum(self.obs.weights))

    @property
    def m(self) -> float:
        """Number of reference points: their total weight, k n with contexts."""
        return self.n * self.k if self.k is not None else float(np.sum(~self.z))

    @property
    def log_ratio(self) -> float:
        """log(n/m)."""
        return -float(np.log(self.k)) if self.k is not None else float(np.log(self.n / self.m))

    @property
    def log_odds_offset(self) -> np.ndarray:
        """(N,) offset − log q + log(n/m): the log-odds less f and χ."""
        log_odds = self.log_ratio - self.log_q
        return log_odds if self.offset is None else log_odds + self.offset

    @property
    def rows(self) -> int:
        """N: real and reference rows together."""
        return len(self.z)

    @property
    def points(self) -> int:
        """The number of reference rows."""
        return int(np.sum(~self.z))

    def met(self, rows: Callable[[Contrast], Any], blocks: Callable[[Any], Any]) -> Any:
        """What a caller makes of rows in memory (`rows`), where others come in blocks (`blocks`)."""
        return rows(self)

    def fresh(self, seed: list[int], times: float) -> Contrast:
        """`redraw` from a seed."""
        return self.redraw(np.random.default_rng(seed), times)

    @property
    def randomisations(self) -> int:
        """R: the number of independent sets of reference points."""
        return self.scheme.sets if self._set is None else 1

    @property
    def _set(self) -> int | None:
        present = self.randomisation.max(initial=0)
        return (
            int(present)
            if self.scheme.sets > 1 and self.randomisation[~self.z].min(initial=present) == present
            else None
        )

    def split(self, r: int) -> Contrast:
        """The real rows with the r-th set of reference points (1 … R) alone, and log(n/m) to match."""
        sets = np.unique(self.randomisation[~self.z])
        if r not in sets:
            raise InputError(f"The randomisations of this contrast are {sets.tolist()}; got {r!r}.")
        keep = self.z | (self.randomisation == r)

        def pick(array: np.ndarray | None) -> np.ndarray | None:
            return None if array is None else read_only(array[keep])

        kept = int(np.sum(keep)) - self.obs.n
        return replace(
            self,
            k=None if self.k is None else kept // self.obs.n,
            outcome=read_only(self.outcome[keep]),
            z=read_only(self.z[keep]),
            at=read_only(self.at[keep]),
            log_q=read_only(self.log_q[keep]),
            weight=read_only(self.weight[keep]),
            offset=pick(self.offset),
            randomisation=read_only(self.randomisation[keep]),
            log_q_back=pick(self.log_q_back),
        )

    def splits(self) -> tuple[Contrast, ...]:
        """One contrast for each independent set of reference points."""
        return tuple(self.split(int(r)) for r in np.unique(self.randomisation[~self.z]))

    def over(self, y: np.ndarray, w: np.ndarray, at: np.ndarray) -> tuple[Contrast, np.ndarray]:
        """Nodes y (N, d) of a rule with weights w, in the contexts of observations `at`, as reference points, and how
        many points each of them stands for: k q(y|x) w, so that sums over points become integrals.

        Nodes where q is zero stand for none, and are left out. Copies of an observation are not counted.
        """
        assert self.k is not None
        log_q = self.reference.log_density(y, self.obs, at)
        here = np.isfinite(log_q)
        y, at, log_q = y[here], at[here], log_q[here]
        nodes = replace(
            self,
            outcome=read_only(y),
            z=read_only(np.zeros(len(at), dtype=bool)),
            at=read_only(at),
            log_q=read_only(log_q),
            weight=read_only(np.ones(len(at))),
            offset=None if self.obs.offset is None else read_only(self.obs.offset[at]),
            randomisation=read_only(np.ones(len(at), dtype=np.int16)),
            log_q_back=None,
        )
        return nodes, self.k * np.exp(log_q) * w[here]

    def redraw(self, rng: Rng = None, times: float = 1.0) -> Contrast:
        """The same real rows with fresh reference points: same reference and scheme, `times` as many."""
        count = max(self.scheme.sets, round(times * (self.k if self.k is not None else int(np.sum(~self.z)))))
        name = "per_point" if self.k is not None else "total"
        return contrast(self.obs, self.reference, self.scheme, rng=rng, **{name: count})


def contrast(
    obs: Observations,
    reference: BoundReference,
    scheme: PointScheme | None = None,
    *,
    per_point: int | None = None,
    total: int | None = None,
    rng: Rng = None,
) -> Contrast:
    """Label the observations against points of `reference`.

    `per_point` reference points for each observation of a chain or a regression (and for kernels around the outcome);
    `total` points shared by IID data. Both count all points over all randomisations of `scheme`, which unless given is
    `Lattice()`, on bits `Sobol()`, or `IID()` where the reference has no map from the unit cube. Observed points
    outside Ω, or where q is zero, are an error that names the first.

    >>> import numpy as np
    >>> import unnorm as un
    >>> from unnorm.references.contrast import contrast
    >>> from unnorm.references import Uniform
    >>> obs = un.Observations("iid", np.linspace(-0.9, 0.9, 50)[:, None], ("y",))
    >>> rows = contrast(obs, Uniform().bind(un.Interval(-1, 1), obs), total=1000, rng=1)
    >>> rows.rows, round(rows.log_ratio, 3)
    (1050, -2.996)
    """
    points_wanted(reference, obs, per_point, total)
    rng = generator(rng)
    notes: tuple[str, ...] = ()
    if scheme is None:
        scheme = evenly_spread(reference, per_point * obs.n if per_point is not None else total or 0)
        if reference.cube_dim is None:
            notes = ("The reference has no map from the unit cube, so its points are IID.",)
    _check_inside(obs, reference)
    points = scheme.draw(reference, obs, per_point=per_point, total=total, rng=rng)
    rows = _rows_together(obs, points, per_point) if per_point is not None else _rows_shared(obs, points)
    rows["log_q"], rows["log_q_back"] = _log_densities(obs, reference, rows["outcome"], rows["at"], rows["z"])
    frozen: dict[str, Any] = {name: None if array is None else read_only(array) for name, array in rows.items()}
    return Contrast(obs=obs, reference=reference, scheme=scheme, k=per_point, notes=notes, **frozen)


def _rows_together(obs: Observations, points: Points, k: int) -> dict[str, Any]:
    """Each observation followed by its k reference points."""
    n, d = obs.outcome.shape
    outcome = np.empty((n, k + 1, d))
    outcome[:, 0] = obs.outcome
    outcome[:, 1:] = points.outcome.reshape(n, k, d)
    randomisation = np.zeros((n, k + 1), dtype=np.int16)
    randomisation[:, 1:] = points.randomisation.reshape(n, k)
    z = np.zeros(n * (k + 1), dtype=bool)
    z[:: k + 1] = True
    return {
        "outcome": outcome.reshape(-1, d),
        "z": z,
        "at": np.repeat(np.arange(n), k + 1),
        "weight": np.broadcast_to(1.0, len(z)) if obs.weight is None else np.repeat(obs.weight, k + 1),
        "offset": None if obs.offset is None else np.repeat(obs.offset, k + 1),
        "randomisation": randomisation.ravel(),
    }


def _rows_shared(obs: Observations, points: Points) -> dict[str, Any]:
    """All observations, then the reference points that they share."""
    n, m = obs.n, len(points.outcome)
    return {
        "outcome": np.concatenate([obs.outcome, points.outcome]),
        "z": np.arange(n + m) < n,
        "at": np.concatenate([np.arange(n), points.t]),
        "weight": np.concatenate([obs.weights, np.ones(m)]),
        "offset": None if obs.offset is None else np.full(n + m, obs.shared_offset),
        "randomisation": np.concatenate([np.zeros(n, dtype=np.int16), points.randomisation]),
    }


def _log_densities(
    obs: Observations, reference: BoundReference, outcome: np.ndarray, at: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """log q on every row, and back where the kernel is around the outcome, after checking that all are finite."""
    back = None
    if reference.given == "outcome":
        moved = ~z
        log_q, back = np.zeros(len(z)), np.zeros(len(z))
        log_q[moved] = reference.log_density(outcome[moved], obs, at[moved])
        back[moved] = reference.log_density_back(outcome[moved], obs, at[moved])
        _finite(back, moved, obs, at, "the kernel cannot step back to")
    else:
        log_q = reference.log_density(outcome, obs, np.maximum(at, 0))
        _finite(log_q, z, obs, at, "the reference has no (finite) density at")
    if not np.isfinite(log_q).all():
        wrong = np.flatnonzero(~np.isfinite(log_q))
        raise OutsideError(
            f"The reference has no finite density at {wrong.size:,} of its own points, the first "
            f"{outcome[wrong[0]].tolist()}: its sample and its log density do not belong together."
        )
    return log_q, back


def _finite(log_q: np.ndarray, among: np.ndarray, obs: Observations, at: np.ndarray, what: str) -> None:
    wrong = np.flatnonzero(among & ~np.isfinite(log_q))
    if wrong.size:
        t = int(at[wrong[0]])
        raise OutsideError(
            f"{np.unique(at[wrong]).size:,} of {obs.n:,} observations cannot be used: {what} them. The first is "
            f"{_named(obs, t)}. Use a reference that covers them, e.g. Mixture((0.1, Uniform()), …), or drop them."
        )


def _check_inside(obs: Observations, reference: BoundReference) -> None:
    inside = within(reference.domain, obs, obs.outcome)
    if not inside.all():
        t = int(np.flatnonzero(~inside)[0])
        raise OutsideError(
            f"{np.sum(~inside):,} of {obs.n:,} outcomes lie outside {reference.domain!r}; the first is "
            f"{_named(obs, t)}. Enlarge Ω, or drop them."
        )


def _named(obs: Observations, t: int) -> str:
    row = t if obs.row is None else obs.row[t]
    return f"{at_row(row)}, y = {obs.outcome[t].tolist()}"
