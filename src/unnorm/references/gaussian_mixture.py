"""A reference that adapts: a mixture of normals fitted to the data by EM, and refitted to the model as it learns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from .._base.numerics import floats, whole
from ..domains import Box, Interval
from ..errors import InputError
from .base import BoundReference, Example, Reference, frozen
from .box_normal import BoxNormal, box_normal_tails
from .quantiles import LOG_2PI
from .tracing import JaxLaw, Traceable

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain

MOST_POINTS = 20_000  # EM uses at most this many outcomes, evenly thinned


@final
@dataclass(frozen=True, repr=False)
class GaussianMixture(Reference):
    """q(y) = ε/|Ω| + (1 − ε) Σ_c w_c N(y; m_c, diag s_c²) truncated to the box Ω, fitted to the outcomes by EM.

    The truncation's constants are exact, so that log q is normalised whatever the fit. `SGD(refresh=…)` refits it to
    the model.

    Args:
        components: how many normals.
        defensive: ε, the share of uniform points; it bounds f − log q above and covers every part of Ω.
        scale: the fitted standard deviations are multiplied by this; a reference wider than the data is safer.
        weights, means, sds: the mixture itself, (C,), (C, d), (C, d); fitted where left None.

    Example:
        >>> import numpy as np
        >>> import unnorm as un
        >>> y = np.random.default_rng(1).normal((0.3, 0.6), 0.05, (500, 2))
        >>> q = GaussianMixture(components=2).bind(un.Box((0, 1), (0, 1)), un.iid(y))
        >>> bool(q.log_density(y[:5], un.iid(y), np.arange(5)).min() > 0)
        True
    """

    lives_on: ClassVar[str] = "an interval or a box"

    components: int = 8
    defensive: float = 0.1
    scale: float = 1.2
    weights: Any = None
    means: Any = None
    sds: Any = None

    def __post_init__(self) -> None:
        whole(self.components, "components", 1)
        if not 0 < self.defensive < 1:
            raise InputError(f"defensive must be a share between 0 and 1; got {self.defensive!r}.")
        if not self.scale > 0:
            raise InputError(f"scale must be positive; got {self.scale!r}.")
        given = [value is not None for value in (self.weights, self.means, self.sds)]
        if any(given) != all(given):
            raise InputError("GaussianMixture needs all of weights, means and sds, or none of them.")
        for name in ("weights", "means", "sds"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(floats(getattr(self, name), name).tolist()))

    @classmethod
    def takes(cls, domain: Domain) -> bool:
        return domain.sides is not None

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return Example(cls(3), Interval(-1, 1)), Example(cls(4, defensive=0.2), Box((0, 8), (0, 6)), 120)

    def bind(self, domain: Domain, obs: Observations) -> BoundGaussianMixture:
        self.check_domain(domain)
        assert domain.sides is not None
        if self.weights is not None:
            w, m, s = (np.asarray(value, dtype=np.float64) for value in (self.weights, self.means, self.sds))
            if m.shape != (len(w), domain.dim) or s.shape != m.shape or not ((w > 0).all() and (s > 0).all()):
                raise InputError(
                    f"weights, means and sds must be positive weights (C,) and arrays (C, {domain.dim}); got shapes "
                    f"{w.shape}, {m.shape}, {s.shape}."
                )
            if abs(w.sum() - 1.0) > 1e-12:  # saved weights come back to the bit
                w = w / w.sum()
            return BoundGaussianMixture(domain, replace(self, components=len(w)), w, m, s)
        some = np.unique(np.linspace(0, obs.n - 1, min(obs.n, MOST_POINTS)).astype(np.intp))
        width = domain.sides[1] - domain.sides[0]
        w, m, s = em(obs.outcome[some], obs.weights[some], self.components, 1e-3 * width)
        return BoundGaussianMixture(domain, replace(self, components=len(w)), w, m, s * self.scale)


@final
class BoundGaussianMixture(BoundReference):
    """The mixture on a given box."""

    adapts = True

    def __init__(self, domain: Domain, reference: GaussianMixture, w: np.ndarray, m: np.ndarray, s: np.ndarray) -> None:
        assert domain.sides is not None
        self.domain, (self.low, self.high) = domain, domain.sides
        self.w, self.m, self.s, self.defensive = w, m, s, reference.defensive
        self._filled = self.reference = replace(reference, weights=w, means=m, sds=s)
        self.edges = np.cumsum(np.concatenate([[self.defensive], (1 - self.defensive) * w]))[:-1]

    @property
    def cube_dim(self) -> int:
        return 1 + self.domain.dim

    def _kernel(self, c: int) -> BoxNormal:
        return BoxNormal(self.low, self.high, self.s[c])

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        which = np.searchsorted(self.edges, u[:, 0], side="right")
        y = self.low + u[:, 1:] * (self.high - self.low)
        for c in range(len(self.w)):
            rows = np.flatnonzero(which == c + 1)
            if rows.size:
                y[rows] = self._kernel(c).from_unit(u[rows, 1:], self.m[c][None], np.zeros(len(rows), dtype=np.intp))
        return y

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        total = np.full(len(y), np.log(self.defensive) - self.domain.log_volume)
        zero = np.zeros(len(y), dtype=np.intp)
        for c, weight in enumerate(self.w):
            part = self._kernel(c).log_density(y, self.m[c][None], zero)
            total = np.logaddexp(total, np.log1p(-self.defensive) + np.log(weight) + part)
        return total

    def refreshed(self, y: np.ndarray, w: np.ndarray, obs: Observations) -> BoundGaussianMixture:
        """EM from the present mixture on points y with weights w ∝ exp f/q and on the data, half each.

        Where the weights are worth fewer than 200 points only the data are used.
        """
        some = np.unique(np.linspace(0, obs.n - 1, min(obs.n, MOST_POINTS // 2)).astype(np.intp))
        data, mass = obs.outcome[some], obs.weights[some] / obs.weights[some].sum()
        if w.sum() ** 2 / np.sum(w**2) >= 200:
            data, mass = np.concatenate([data, y]), np.concatenate([0.5 * mass, 0.5 * w / w.sum()])
        floor = 1e-3 * (self.high - self.low)
        scale = self._filled.scale
        w, m, s = em(data, mass, len(self.w), floor, start=(self.w, self.m, self.s / scale), steps=50)
        return BoundGaussianMixture(self.domain, self._filled, w, m, s * scale)

    def traceable(self, obs: Observations) -> Traceable:
        right, first, last = box_normal_tails(self.m, self.s, self.low, self.high)  # (C, d): once, not at every point
        log_norm = np.log1p(-self.defensive) + np.log(self.w) - np.sum(np.log(self.s) + np.log(last - first), axis=1)
        params = {
            "edges": self.edges,
            "m": self.m,
            "s": np.where(right, -self.s, self.s),
            "first": np.where(right, last, first),
            "span": np.where(right, first - last, last - first),
            "log_norm": log_norm - 0.5 * self.domain.dim * LOG_2PI,
            "log_uniform": np.asarray(np.log(self.defensive) - self.domain.log_volume),
            "low": self.low,
            "high": self.high,
        }
        return Traceable(1 + self.domain.dim, params, (), GaussianMixtureLaw())

    def describe(self) -> str:
        return (
            f"mixture of {len(self.w)} truncated normals and {100 * self.defensive:g} % uniform points; constants exact"
        )


@final
@dataclass(frozen=True)
class GaussianMixtureLaw(JaxLaw):
    """The mixture in JAX; which component, and where the box lies in it, is in the numbers."""

    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        import jax.numpy as jnp
        from jax.scipy.special import ndtri

        p, limit = params, jnp.finfo(u.dtype)
        which = jnp.searchsorted(p["edges"], u[..., 0], side="right")
        c = jnp.maximum(which - 1, 0)
        v = jnp.clip(p["first"][c] + p["span"][c] * u[..., 1:], limit.tiny, 1.0 - limit.epsneg)
        y = jnp.clip(p["m"][c] + p["s"][c] * ndtri(v), p["low"], p["high"])
        return jnp.where((which == 0)[..., None], p["low"] + u[..., 1:] * (p["high"] - p["low"]), y)

    def log_density(self, params: Any, rows: Any, y: Any) -> Any:
        import jax.numpy as jnp
        from jax.scipy.special import logsumexp

        p = params
        parts = [
            p["log_norm"][c] - 0.5 * jnp.sum(((y - p["m"][c]) / p["s"][c]) ** 2, axis=-1) for c in range(len(p["m"]))
        ]
        return logsumexp(jnp.stack([jnp.broadcast_to(p["log_uniform"], y.shape[:-1]), *parts]), axis=0)


def em(
    y: np.ndarray,
    weight: np.ndarray,
    components: int,
    floor: np.ndarray,
    start: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    steps: int = 200,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, means and sds of a diagonal Gaussian mixture, by EM from a k-means++ start (its own seed).

    Each step adds one pseudo-point spread over all the data to every component, so that none collapses.
    """
    n, d = y.shape
    weight = weight / weight.sum()
    centre = weight @ y
    sd = np.sqrt(np.maximum(weight @ (y - centre) ** 2, floor**2))
    components = min(components, n)
    if start is None:
        rng = np.random.default_rng(0)
        m = y[rng.choice(n, p=weight)][None]
        for _ in range(components - 1):
            near = np.min(np.sum(((y[:, None] - m) / sd) ** 2, axis=2), axis=1)
            odds = weight * near
            m = np.concatenate([m, y[rng.choice(n, p=odds / odds.sum() if odds.sum() > 0 else weight)][None]])
        w, s = np.full(components, 1 / components), np.tile(sd / components ** (1 / d), (components, 1))
    else:
        w, m, s = start
    prior = 1.0 / max(n, 100)
    last = -np.inf
    for _ in range(steps):
        log_p = np.log(w) - np.sum(np.log(s), axis=1) - 0.5 * np.sum(((y[:, None] - m) / s) ** 2, axis=2)
        top = log_p.max(axis=1)
        total = top + np.log(np.sum(np.exp(log_p - top[:, None]), axis=1))
        value = float(weight @ total)
        r = weight[:, None] * np.exp(log_p - total[:, None])
        mass = r.sum(axis=0)
        m = (r.T @ y + prior * m) / (mass + prior)[:, None]
        square = np.stack([np.sum(r * (y[:, j, None] - m[:, j]) ** 2, axis=0) for j in range(d)], axis=1)
        s = np.sqrt(np.maximum((square + prior * sd**2) / (mass + prior)[:, None], floor**2))
        w = (mass + prior) / (1 + prior * len(mass))
        if value - last < 1e-7 * (1 + abs(value)):
            break
        last = value
    return w, m, s
