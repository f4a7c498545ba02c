"""f_θ: an unnormalised log density, and what the objectives need to know of it.

Users write f (or the statistics) for one point, in JAX-traceable code; this module batches it. Arrays of outcomes are
(N, d); contexts travel as a `Context`, a tree of arrays that share their first axis.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from .._base.numerics import x64
from .._base.words import at_row
from ..data.covariates import CovariateSet
from ..data.observations import Observations
from ..domains.base import Domain, Quadrature
from ..errors import CombinationError, InputError, listing
from ..terms.specs import Linear, Terms
from .batching import chunk_length, chunks, tree_leaves, tree_take
from .changes import Changes, DenseChanges, recomputed
from .lookup import Lookup, Table

if TYPE_CHECKING:
    from ..references.base import BoundReference
    from .centring import Centred
    from .gibbs import Chain, ChangeSampler
    from .tilt import Tilt


Rule = Callable[[int | None], Quadrature]  # order → points and weights; None for the domain's default order


@dataclass(frozen=True)
class Context:
    """What f sees of the contexts: a tuple of arguments after y, each a tree of arrays with first axis U.

    `of` maps each observation to its row here: equal contexts are stored once, so that their integral is computed once.
    """

    arguments: tuple[Any, ...]
    of: np.ndarray  # (n,) int
    size: int  # U

    def at(self, index: np.ndarray) -> tuple[Any, ...]:
        """The arguments for the contexts at `index`."""
        return tree_take(self.arguments, index)


def context_arguments(obs: Observations, scalar: bool, arity: int) -> tuple[Any, ...]:
    """(x,) or (x, extra) as f is to see them, each with first axis n; () for IID data or where f takes no context.

    A transition's x has y's shape (with lags, (lags,) + that shape); a regression's is read by name, x["age"].
    """
    if not obs.has_context or arity == 0:
        return ()
    if obs.kind == "conditional":
        return (_numeric(obs, tuple(obs.context)),)
    lags = [obs.previous(lag)[:, 0] if scalar else obs.previous(lag) for lag in range(1, obs.lags + 1)]
    x = lags[0] if obs.lags == 1 else np.stack(lags, axis=1)
    return (x,) if arity == 1 else (x, _numeric(obs, obs.extra))


def _numeric(obs: Observations, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The numeric context columns by name; f cannot see text."""
    return {name: obs.context[name].astype(np.float64) for name in names if obs.context[name].dtype.kind in "biuf"}


def unique_contexts(obs: Observations, scalar: bool, arity: int) -> Context:
    """The distinct contexts among the observations (one, empty, for IID data)."""
    arguments = context_arguments(obs, scalar, arity)
    if not arguments:
        return Context((), np.zeros(obs.n, dtype=np.intp), 1)
    flat = np.column_stack([leaf.reshape(obs.n, -1) for leaf in tree_leaves(arguments)] or [np.zeros((obs.n, 1))])
    order = np.lexsort(flat.T[::-1])
    new = np.ones(obs.n, dtype=bool)
    new[1:] = np.any(flat[order[1:]] != flat[order[:-1]], axis=1)
    of = np.empty(obs.n, dtype=np.intp)
    of[order] = np.cumsum(new) - 1
    first = order[new]
    return Context(tree_take(arguments, first), of, len(first))


def positional(function: Callable[..., Any], what: str, least: int, most: int) -> int:
    """How many positional arguments `function` takes, checked against what unnorm will pass."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be a function; got {function!r}.") from error
    required = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]
    if not least <= len(required) <= most:
        raise InputError(
            f"{what} must take {least} to {most} positional arguments; got one that takes {len(required)} "
            f"({listing([p.name for p in required])})."
        )
    return len(required)


def traced(function: Callable[..., Any], what: str, *arguments: Any) -> Any:
    """What a user's function returns when JAX traces it, and plain words where JAX cannot."""
    import jax

    try:
        return function(*arguments)
    except jax.errors.JAXTypeError as error:
        raise InputError(
            f"{what} must be written with JAX, which differentiates and compiles it: jnp.sin(y) for np.sin(y) or "
            "math.sin(y) (import jax.numpy as jnp), and jnp.where(y > 0, a, b) for `a if y > 0 else b`."
        ) from error
    except KeyError as error:
        raise InputError(
            f"{what} asks for {error}, which is neither among its parameters nor in the context."
        ) from error


class DataTerms(ABC):
    """Σ_t w_t f_θ(y_t|x_t) over the observations, as a function of the flat θ."""

    @abstractmethod
    def value(self, theta: np.ndarray) -> float: ...

    @abstractmethod
    def derivatives(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, gradient (p,), Hessian (p, p)."""


@dataclass(frozen=True)
class Moments:
    """Integrals over Ω at one θ: log Z_u, E_u[∂f] for each context, and Σ_u a_u E_u[∂²f + ∂f ∂fᵀ]."""

    log_z: np.ndarray  # (U,)
    mean: np.ndarray  # (U, p)
    second: np.ndarray  # (p, p)


class Kernels(NamedTuple):
    """log_z(θ, nodes, log_w, x) → (c,), and moments(θ, nodes, log_w, x, log_a, tilt) → `Moments`' three arrays."""

    log_z: Callable[..., Any]
    moments: Callable[..., Any]


@dataclass(frozen=True)
class LinearPart:
    """f on some rows as an additive predictor: terms over named columns, and a known offset."""

    terms: Terms
    columns: Mapping[str, np.ndarray]
    offset: np.ndarray | None  # (N,) or None for zero
    theta: np.ndarray | None = None  # where f was linearised: the coefficients of the first term there; None if linear


def check_outcomes(domain: Domain, obs: Observations) -> None:
    """Refuse outcomes with another number of columns than Ω has, and those that look like another unit."""
    if obs.dim != domain.dim:
        raise InputError(
            f"The domain {domain!r} has outcomes of {domain.dim} column(s); "
            f"the observations have {obs.dim} ({listing(obs.outcome_names)}). {domain.columns_words}"
        )
    found = None if obs.unit is not None else domain.doubt(obs.outcome)
    if found is not None:
        row = found[0] if obs.row is None else int(obs.row[found[0]])
        raise InputError(f"{at_row(row).capitalize()}: {found[1]}")


class Unnormalised(ABC):
    """The root of all models: f on a domain Ω, up to a constant."""

    domain: Domain
    terms: Terms | None = None  # of f, where it is a sum of terms
    knots: Mapping[str, Any] = MappingProxyType({})  # covariate → knots, where f has terms
    parametric: bool = False  # whether f_θ has a flat vector of parameters, so that `flat` gives it
    base: Tilt | None = None  # the law that f is relative to; None for Ω's own measure

    def law(self, obs: Observations) -> BoundReference | None:
        """k(·|x) of a model p ∝ k exp f; None where f is relative to Ω's own measure."""
        return None if self.base is None else self.base.on(self.domain, obs)

    def met(self, obs: Observations) -> Unnormalised:
        """The model with its base fitted to these observations."""
        return self if self.base is None else self.over(self.base.met(self.domain, obs))

    def over(self, base: Tilt) -> Unnormalised:
        """The model relative to another base."""
        raise CombinationError(f"A {type(self).__name__} model takes no base=.")

    def read_alone(self) -> Unnormalised:
        """The model without the covariates that its terms do not read."""
        return self

    @abstractmethod
    def linear_part(self, obs: Observations, y: np.ndarray, at: np.ndarray, theta: np.ndarray | None) -> LinearPart:
        """f at rows y with the contexts of observations `at`, linearised at θ where it is not linear."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description for saved fits (never code)."""

    @property
    def additive(self) -> bool:
        """Whether f itself has smooth terms, so that only objectives with a smoothing engine can fit it."""
        return False

    def flat(self) -> Model:
        """The model as a function of flat parameters."""
        raise CombinationError(f"A {type(self).__name__} model has no flat parameters to maximise over.")

    def named(self, names: Sequence[str], estimate: np.ndarray) -> Any:
        """The estimates as the user knows them: names → values, or the user's own tree of parameters."""
        return dict(zip(names, (float(value) for value in estimate)))

    def needs(self, name: str) -> tuple[str, ...]:
        """The columns that the user's own covariate `name` reads; none for columns and built-ins."""
        return ()

    def covariates(self, obs: Observations) -> CovariateSet:
        """What terms can be written in: columns, built-ins of planar chains, the domain's period and centre."""
        centre = self.domain.centre if self.domain.dim == 2 else None
        return CovariateSet(obs, centre=centre, domain=self.domain)

    def on(self, domain: Domain) -> Self:
        """The same f on another Ω."""
        other = copy(self)
        object.__setattr__(other, "domain", domain)
        return other

    def check(self, obs: Observations) -> None:
        """Refuse observations that Ω cannot take."""
        check_outcomes(self.domain, obs)


class Model(Unnormalised):  # long: what each objective, solver and sampler may ask, with defaults
    """A parametric model: f_θ(y|x) with a flat vector of parameters θ."""

    parametric = True
    names: tuple[str, ...]  # one for each entry of the flat parameter vector
    context_arity: int  # how many arguments f takes after y: 0 (IID), 1 (x) or 2 (x, extra)
    lookup: Lookup = Lookup()  # which parameters are tables of which a point reads a few rows

    @property
    def tables(self) -> tuple[Table, ...]:
        """Where those tables lie in the flat θ."""
        return ()

    def flat(self) -> Model:
        return self

    def named(self, names: Sequence[str], estimate: np.ndarray) -> Any:
        return self.unflatten(estimate)

    @property
    def size(self) -> int:
        return len(self.names)

    @property
    @abstractmethod
    def start(self) -> np.ndarray:
        """Where iterations begin, flat."""

    @property
    @abstractmethod
    def linear(self) -> bool:
        """Whether f = θᵀ s(y|x), so that 𝓛 and 𝓜 are concave and statistics exist."""

    @abstractmethod
    def unflatten(self, theta: np.ndarray) -> Any:
        """The parameters as the user knows them: names → values, or their own tree."""

    @abstractmethod
    def flatten(self, theta: Any) -> np.ndarray:
        """The inverse of `unflatten`; flat vectors pass through."""

    def unravel(self, theta: Any) -> Any:
        """`unflatten`, traceable by JAX."""
        return {name: theta[j] for j, name in enumerate(self.names)}

    def one(self, theta: Any, y: Any, *arguments: Any) -> Any:
        """f_θ(y|x) for one point y of shape (d,) and flat θ, traceable by JAX: what stochastic estimation compiles."""
        raise CombinationError(
            f"{type(self).__name__} has no JAX function of one point, which SGD and Langevin need. "
            "Use un.ExponentialFamily or un.Energy."
        )

    def unravel_rest(self, rest: Any) -> Any:
        """`unravel` of θ without its tables, which are left as they were at the start."""
        return self.unravel(rest)

    def at_rows(self, tree: Any, y: Any, *arguments: Any) -> Any:
        """f_θ(y|x) from θ as the user knows it, each table replaced by the rows that the point reads."""
        raise CombinationError(f"{type(self).__name__} has no tables that are looked up by row.")

    @abstractmethod
    def log_f(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        """(N,) values f_θ(y_i | x_i) for N rows."""

    @abstractmethod
    def jacobian(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        """(N, p) values of ∂f/∂θ."""

    @abstractmethod
    def curvature(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...], weight: np.ndarray) -> np.ndarray:
        """(p, p) Σ w ∂²f/∂θ² over rows; zero where f is linear."""

    @abstractmethod
    def data_terms(self, y: np.ndarray, arguments: tuple[Any, ...], weight: np.ndarray) -> DataTerms:
        """Σ w f over rows, ready to be evaluated at many θ."""

    @abstractmethod
    def _build_kernels(self) -> Kernels:
        """The compiled integrals over one chunk of contexts."""

    @cached_property
    def kernels(self) -> Kernels:
        """Compiled once for each model, whatever the data's size."""
        if self.log_partition is None:
            return self._build_kernels()
        from .closed import closed_kernels

        return closed_kernels(self.partition)

    log_partition: Callable[..., Any] | None = None  # log Z_θ(x) in closed form, where it is known

    def partition(self, theta: Any, *arguments: Any) -> Any:
        """log Z_θ(x) for one context and flat θ, traceable by JAX, of a model that knows it."""
        assert self.log_partition is not None
        return self.log_partition(self.unravel(theta), *arguments)

    def log_z(self, theta: np.ndarray, nodes: np.ndarray, log_w: np.ndarray, context: Context) -> np.ndarray:
        """(U,) values of log Σ_j w_j exp f_θ(y_j | x_u)."""
        with x64():
            parts = [
                (self.kernels.log_z(theta, nodes, log_w, context.at(index)), count)
                for index, count in chunks(context.size, self._chunk(context.size, len(nodes)))
            ]
            return np.concatenate([np.asarray(part)[:count] for part, count in parts])

    def moments(
        self, theta: np.ndarray, nodes: np.ndarray, log_w: np.ndarray, context: Context, log_a: np.ndarray, tilt: bool
    ) -> Moments:
        """Integrals with a_u = exp(log_a_u), or exp(log_a_u) Z_u where `tilt` (Appendix A's E_θ and E_θ,ν)."""
        with x64():
            log_z, mean, second = [], [], np.zeros((self.size, self.size))
            for index, count in chunks(context.size, self._chunk(context.size, len(nodes))):
                a = np.where(np.arange(len(index)) < count, log_a[index], -np.inf)  # padding weighs nothing
                part = self.kernels.moments(theta, nodes, log_w, context.at(index), a, tilt)
                log_z.append(np.asarray(part[0])[:count])
                mean.append(np.asarray(part[1])[:count])
                second += np.asarray(part[2])
        return Moments(np.concatenate(log_z), np.concatenate(mean), second)

    def _chunk(self, total: int, nodes: int) -> int:
        return chunk_length(total, 8 * nodes * (3 * self.size + 4), least=1 if total == 1 else 16)

    @property
    def penalised(self) -> np.ndarray:
        """(p,) booleans: the parameters that a ridge or lasso penalty is for."""
        return np.ones(self.size, dtype=bool)

    rule: Rule | None = None  # for integrals over Ω, where the model knows where f is sharp

    def quadrature(self, order: int | None) -> Quadrature:
        """A rule for integrals of exp f over Ω: the model's own, or the domain's; where log Z is known, it is exact."""
        if self.log_partition is not None:
            nodes = self.domain.quadrature()  # the kernels do not read it; integrals of other functions do
            return Quadrature(nodes.points, nodes.weights, exact=True, rule="log Z in closed form")
        return self.domain.quadrature(order) if self.rule is None else self.rule(order)

    by_products: bool = False  # whether sums over rows need no table of rows × parameters

    def row_sums(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...], v: np.ndarray) -> np.ndarray:
        """(p,) Σ_r v_r ∂f_θ(y_r|x_r)/∂θ."""
        return v @ self.jacobian(theta, y, arguments)

    def row_squares(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...], v: np.ndarray) -> np.ndarray:
        """(p,) Σ_r v_r (∂f_θ(y_r|x_r)/∂θ_j)²."""
        return v @ self.jacobian(theta, y, arguments) ** 2

    def changes(self, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        """(n, d, p) Δ_i s(y_t|x_t): how the statistics change when bit i flips. Models override it to be quicker."""
        return recomputed(self, y, arguments)

    def change_products(self, y: np.ndarray, arguments: tuple[Any, ...], single: bool = False) -> Changes:
        """The same, known by its products, for models whose table is too large; `single`: float32 will do."""
        return DenseChanges(self.changes(y, arguments))

    @property
    def change_width(self) -> int:
        """Numbers that `change_products` holds for one outcome."""
        return self.domain.dim * self.size

    def free_bits(self, obs: Observations, at: np.ndarray) -> np.ndarray | None:
        """(n, d) or (1, d) booleans: which bits of these observations can flip; None for all of them."""
        if obs.masks is None:
            free = self.domain.free
            return None if free is None or free.all() else free[None]
        return ~(self.held_bits(obs, at) | obs.masks.missing[at])

    simulates: bool = False  # whether `chains` gives draws of the statistics, which need no table of outcomes

    def chains(self, obs: Observations, at: np.ndarray) -> Sequence[Chain]:
        """One chain for each of these observations, that starts at its outcome."""
        raise CombinationError(f"{type(self).__name__} has no chains of its own.")

    def held_bits(self, obs: Observations, at: np.ndarray) -> np.ndarray:
        """(n, d) bits that stay as they are in every draw: fixed ones, and where f reads the previous outcome those
        that did not exist or were not seen there; but not those that are missing themselves."""
        held = np.zeros((len(at), self.domain.dim), dtype=bool)
        if self.domain.free is not None:
            held |= ~self.domain.free
        if obs.masks is not None:
            held |= obs.masks.fixed[at] | (obs.masks.before[at] if self.context_arity else False)
        return held

    def extremes(self, obs: Observations) -> list[str]:
        """Statistics that are at their least or at their most in every observation, as far as the model can tell."""
        return []

    def separated(self, obs: Observations) -> list[str]:
        """A direction in which the likelihood rises without end, as far as the model can tell: "edges → −∞", …"""
        return []

    def centred(self, obs: Observations) -> Centred | None:
        """The model with covariates about their means, where some lie so far from zero that sums round them away."""
        return None

    def no_estimate(self, obs: Observations, said: str) -> str:
        """Why an estimate does not exist, and what to do; `said`: what the solver found."""
        return said

    def independent(self, obs: Observations) -> tuple[np.ndarray, float]:
        """A θ at which the free bits are independent, and the log-likelihood there: where paths of log Z begin."""
        free = ~self.held_bits(obs, np.arange(obs.n))
        if obs.masks is not None:
            free &= ~obs.masks.missing
        return np.zeros(self.size), -float(obs.weights @ free.sum(axis=1)) * float(np.log(2.0))

    def sampler(self, theta: np.ndarray, arguments: tuple[Any, ...]) -> ChangeSampler:
        """Gibbs sweeps over bits at θ, chain c in the c-th context of `arguments`."""
        from .gibbs import PlainSampler

        return PlainSampler(self, theta, arguments)

    def linear_part(self, obs: Observations, y: np.ndarray, at: np.ndarray, theta: np.ndarray | None) -> LinearPart:
        """f(θ) + J (θ' − θ): one parametric column for each parameter (the statistics, where f is linear)."""
        theta = self.start if theta is None else theta
        rows = self.arguments(obs, at)
        J = self.jacobian(theta, y, rows)
        columns = {name: J[:, j] for j, name in enumerate(self.names)}
        terms = Terms((Linear(self.names),))
        if self.linear:
            return LinearPart(terms, columns, None)
        return LinearPart(terms, columns, self.log_f(theta, y, rows) - J @ theta, theta)

    def arguments(self, obs: Observations, at: np.ndarray) -> tuple[Any, ...]:
        """What f sees of the contexts of observations `at`."""
        return tree_take(context_arguments(obs, self.domain.scalar, self.context_arity), at)

    def contexts(self, obs: Observations) -> Context:
        """The distinct contexts that f sees, after checking that f and the observations agree."""
        self.check(obs)
        return unique_contexts(obs, self.domain.scalar, self.context_arity)

    def check(self, obs: Observations) -> None:
        """Refuse observations that f or Ω cannot take."""
        super().check(obs)
        if self.context_arity and not obs.has_context:
            raise InputError(
                "The model's function takes a context x, and the observations are IID (they have none). "
                "Use un.transitions or un.conditional, or write the function of y alone."
            )
        if self.context_arity == 2 and not obs.extra:
            raise InputError("The model's function takes (y, x, extra), and the observations have no `extra` columns.")
