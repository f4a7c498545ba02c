"""Defensive mixtures of references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from ..domains import Box
from ..errors import CombinationError, InputError
from .base import REGISTRY, BoundReference, Example, Given, Reference, is_number, numbers
from .empirical import Empirical
from .gaussian import Gaussian
from .tracing import JaxLaw, Traceable
from .uniform import Uniform

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain


@final
@dataclass(frozen=True, init=False, repr=False)
class Mixture(Reference):
    """Σ_j w_j q_j(y|x): a local kernel mixed with some uniform points is close to the data and nowhere too thin.

    Weights are positive and are divided by their sum. The first coordinate of a unit point chooses the component and,
    stretched to (0, 1) again, is the component's own first coordinate: no dimension is spent on the choice.

    Args:
        pairs: (weight, reference), one or more.

    >>> from unnorm.references import Gaussian, Mixture, Uniform
    >>> Mixture((0.3, Uniform()), (0.7, Gaussian(around="context"))).weights
    (0.3, 0.7)
    """

    call: ClassVar[str] = "Mixture((weight, reference), …)"

    weights: tuple[float, ...]
    components: tuple[Reference, ...]

    def __init__(self, *pairs: tuple[float, Reference]) -> None:
        if len(pairs) < 1 or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
            raise InputError(
                "Mixture takes pairs (weight, reference), e.g. Mixture((0.3, Uniform()), (0.7, Gaussian())); "
                f"got {pairs!r}."
            )
        for weight, reference in pairs:
            if not is_number(weight, 0.0, strict=True) or not isinstance(reference, Reference):
                raise InputError(
                    f"Each part of a Mixture is (positive weight, reference); got {(weight, reference)!r}."
                )
        total = sum(float(weight) for weight, _ in pairs)
        object.__setattr__(self, "weights", tuple(float(weight) / total for weight, _ in pairs))
        object.__setattr__(self, "components", tuple(reference for _, reference in pairs))

    def __repr__(self) -> str:
        return f"Mixture({', '.join(f'({w:.6g}, {q!r})' for w, q in zip(self.weights, self.components))})"

    def to_dict(self) -> dict[str, Any]:
        components = [reference.to_dict() for reference in self.components]
        return {"reference": "Mixture", "weights": list(self.weights), "components": components}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Mixture:
        return cls(*zip(description["weights"], map(REGISTRY.read, description["components"]), strict=True))

    @property
    def everywhere(self) -> bool:
        return any(part.everywhere for part in self.components)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        screen, step = Box((0, 8), (0, 6)), (3, Gaussian(around="context"))
        three = cls((1, Uniform()), step, (1, Empirical(centres=20)))
        return Example(cls((1, Uniform()), step), screen, 60), Example(three, screen, 60)

    def bind(self, domain: Domain, obs: Observations) -> BoundReference:
        parts = tuple(reference.bind(domain, obs) for reference in self.components)
        kinds = {part.given for part in parts}
        if "outcome" in kinds and len(kinds) > 1:
            raise CombinationError(
                "A Mixture cannot join a kernel around the observed outcome (for ConditionalNCE) with references that "
                "do not move it. Give every component around='outcome', or none."
            )
        return BoundMixture(domain, self.weights, parts)


@final
class BoundMixture(BoundReference):
    """A mixture of bound references."""

    def __init__(self, domain: Domain, weights: tuple[float, ...], parts: tuple[BoundReference, ...]) -> None:
        self.domain, self.weights, self.parts = domain, weights, parts
        self.reference = Mixture(*zip(weights, (part.reference for part in parts)))
        self._edges = np.cumsum(weights)[:-1]

    @property
    def given(self) -> Given:
        kinds = {part.given for part in self.parts}
        return "outcome" if "outcome" in kinds else "context" if "context" in kinds else "nothing"

    @property
    def cube_dim(self) -> int | None:
        sizes = [part.cube_dim for part in self.parts]
        return None if None in sizes else max(size for size in sizes if size is not None)

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        which = np.searchsorted(self._edges, u[:, 0], side="right")
        low = np.concatenate([[0.0], self._edges])
        y = np.empty((len(u), self.domain.dim))
        for j, part in enumerate(self.parts):
            rows = np.flatnonzero(which == j)
            assert part.cube_dim is not None
            v = u[rows, : part.cube_dim]
            # Measured on a 1-D chain: two thirds of the Monte Carlo sd of a lattice with one more coordinate.
            v[:, 0] = np.clip((v[:, 0] - low[j]) / self.weights[j], 2.0**-53, 1.0 - 2.0**-53)
            y[rows] = part.from_unit(v, obs, t[rows])
        return y

    def sample(self, obs: Observations, t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        which = np.searchsorted(self._edges, rng.random(len(t)), side="right")
        y = np.empty((len(t), self.domain.dim))
        for j, part in enumerate(self.parts):
            rows = np.flatnonzero(which == j)
            y[rows] = part.sample(obs, t[rows], rng)
        return y

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        total = np.full(len(y), -np.inf)
        for weight, part in zip(self.weights, self.parts):
            total = np.logaddexp(total, np.log(weight) + part.log_density(y, obs, t))
        return total

    def traceable(self, obs: Observations) -> Traceable | None:
        traced = [part.traceable(obs) for part in self.parts]
        parts = [part for part in traced if part is not None]
        if len(parts) < len(traced):
            return None
        weights = np.asarray(self.weights)
        params = {"log_w": np.log(weights), "edges": self._edges, "parts": [part.params for part in parts]}
        dims = tuple(part.cube_dim for part in parts)
        law = MixtureLaw(tuple(part.law for part in parts), dims)
        return Traceable(1 + max(dims), params, [part.rows for part in parts], law)

    def describe(self) -> str:
        return "mixture of " + " and ".join(
            f"{numbers(w)} × [{p.describe()}]" for w, p in zip(self.weights, self.parts)
        )


@final
@dataclass(frozen=True)
class MixtureLaw(JaxLaw):
    """A mixture in JAX; the first coordinate of a unit point chooses the component."""

    parts: tuple[JaxLaw, ...]
    dims: tuple[int, ...]

    def from_unit(self, params: Any, rows: Any, u: Any) -> Any:
        import jax.numpy as jnp

        which = jnp.searchsorted(params["edges"], u[..., 0], side="right")
        drawn = [
            law.from_unit(own, row, u[..., 1 : 1 + d])
            for law, d, own, row in zip(self.parts, self.dims, params["parts"], rows)
        ]
        return sum(jnp.where((which == j)[..., None], y, 0.0) for j, y in enumerate(drawn))

    def log_density(self, params: Any, rows: Any, y: Any) -> Any:
        return self._sum(params, [law.log_density(p, r, y) for law, p, r in zip(self.parts, params["parts"], rows)])

    def log_density_back(self, params: Any, rows: Any, y: Any, back: Any) -> Any:
        each = [law.log_density_back(p, r, y, back) for law, p, r in zip(self.parts, params["parts"], rows)]
        return self._sum(params, each)

    @staticmethod
    def _sum(params: Any, each: list[Any]) -> Any:
        import jax.numpy as jnp
        from jax.scipy.special import logsumexp

        return logsumexp(jnp.stack(jnp.broadcast_arrays(*each)) + params["log_w"][:, None, None], axis=0)
