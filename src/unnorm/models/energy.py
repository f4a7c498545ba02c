"""f_θ(y|x) as any JAX function of a tree of parameters: derivatives by autodiff."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from .._base.numerics import x64
from ..data.observations import Observations
from ..domains.base import Domain
from ..errors import InputError
from .base import Context, DataTerms, Kernels, Model, Rule, positional, traced
from .batching import chunk_length, chunks, rowwise, tree_take
from .lookup import Lookup, Table, lookup
from .tilt import Tilt, checked


@final
@dataclass(frozen=True, eq=False)
class Energy(Model):
    """A model given by its unnormalised log density, f(theta, y) or f(theta, y, x), in JAX.

    Args:
        f: written for one point, JAX-traceable, returning a scalar.
        theta0: where iterations begin: any pytree of arrays or floats (an Equinox module counts).
        domain: Ω.
        by_outcome, by_context: names of tables in theta0 (a dict) of which a point reads the row of y, or the rows of
            x, counted from 0: f receives `theta["out"]` as the row itself. `un.SGD` then moves these rows alone.
        rule: order → `unnorm.domains.Quadrature`, nodes that lie where f is sharp; default the domain's own.
        log_partition: log ∫ exp f dy as a function of theta (and x, as f sees it) in JAX, where it is known.
        base: `un.Tilt(kernel)` for p(y|x) ∝ k(y|x) exp f(y|x); default Ω's own measure.

    Example:
        >>> import unnorm as un
        >>> import jax.numpy as jnp
        >>> vm = un.Energy(lambda th, y: th["kappa"] * jnp.cos(y - th["mu"]), {"kappa": 1.0, "mu": 0.0}, un.Circle())
        >>> vm.names
        ('kappa', 'mu')
    """

    f: Callable[..., Any]
    theta0: Any
    domain: Domain
    by_outcome: tuple[str, ...] = ()
    by_context: tuple[str, ...] = ()
    rule: Rule | None = None
    log_partition: Callable[..., Any] | None = None
    base: Tilt | None = None
    names: tuple[str, ...] = field(init=False, default=())
    context_arity: int = field(init=False, default=0)
    # cached properties that read f and the shape of θ alone
    compiled: ClassVar[tuple[str, ...]] = ("kernels", "_rows", "_row_slopes", "_row_kernels")
    lookup: Lookup = field(init=False, default=Lookup(), repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            raise InputError(f"domain must be a Domain such as un.Interval(-1, 1); got {self.domain!r}.")
        checked(self.base, self.log_partition)
        object.__setattr__(self, "context_arity", positional(self.f, "f", 2, 4) - 2)
        object.__setattr__(
            self,
            "lookup",
            lookup(self.by_outcome, self.by_context, self.theta0, self.domain, self.context_arity),
        )
        object.__setattr__(self, "names", self._flat[2])

    def over(self, base: Tilt) -> Energy:
        return replace(self, base=base)

    def check(self, obs: Observations) -> None:
        """Refuse contexts whose rows cannot be looked up."""
        super().check(obs)
        if self.lookup.context and obs.kind != "transitions":
            raise InputError(
                f"by_context={self.by_context!r} looks up rows by the earlier points of a chain, and these are "
                f"{obs.kind} observations. Make them with un.transitions, or leave by_context out and index the table "
                "in f."
            )

    def contexts(self, obs: Observations) -> Context:
        found = super().contexts(obs)
        if self.lookup.context:  # JAX would read the last row in place of one that does not exist
            self.lookup.refuse_unknown(obs, self.theta0)
        return found

    @cached_property
    def _flat(self) -> tuple[np.ndarray, Callable[[Any], Any], tuple[str, ...]]:
        """Flat start, the way back to the tree, and a name for each entry. Only inexact arrays are parameters."""
        import jax
        import jax.numpy as jnp

        with x64():
            leaves, treedef = jax.tree_util.tree_flatten_with_path(self.theta0)
            spots: list[tuple[int, tuple[int, ...]]] = []
            for position, (_, leaf) in enumerate(leaves):
                if not _is_parameter(leaf):
                    continue
                spots.append((position, np.shape(leaf)))
            if not spots:
                raise InputError("theta0 holds no floating-point numbers; give starting values such as {'a': 0.0}.")
            names = _names([(_name(leaves[position][0]), shape) for position, shape in spots])
            if len(set(names)) < len(names):  # {"a.b": …, "a": {"b": …}}: only the paths themselves tell them apart
                names = _names([(jax.tree_util.keystr(leaves[position][0]), shape) for position, shape in spots])
            start = np.concatenate([np.asarray(leaves[position][1], dtype=np.float64).ravel() for position, _ in spots])

            def unravel(theta: Any) -> Any:
                values = [leaf for _, leaf in leaves]
                begin = 0
                for position, shape in spots:
                    count = int(np.prod(shape))
                    values[position] = jnp.reshape(theta[begin : begin + count], shape)
                    begin += count
                return jax.tree_util.tree_unflatten(treedef, values)

        return start, unravel, tuple(names)

    @property
    def linear(self) -> bool:
        return False

    @property
    def start(self) -> np.ndarray:
        return self._flat[0].copy()

    def unflatten(self, theta: np.ndarray) -> Any:
        import jax

        with x64():
            tree = self._flat[1](np.asarray(theta, dtype=np.float64))
        return jax.tree_util.tree_map(lambda leaf: _plain(leaf), tree)

    def flatten(self, theta: Any) -> np.ndarray:
        import jax

        if isinstance(theta, np.ndarray) and theta.shape == self._flat[0].shape:
            return theta.astype(np.float64)
        leaves = [
            np.asarray(leaf, dtype=np.float64).ravel()
            for leaf in jax.tree_util.tree_leaves(theta)
            if _is_parameter(leaf)
        ]
        flat = np.concatenate([np.asarray(leaf, dtype=np.float64).ravel() for leaf in leaves] or [np.zeros(0)])
        if flat.shape != self._flat[0].shape:
            raise InputError(f"theta must have the tree of theta0 ({self.size} numbers); got {flat.size}.")
        return flat

    def _one(self, theta: Any, y: Any, *arguments: Any) -> Any:
        tree = self._flat[1](theta)
        if self.lookup:
            tree = {**tree, **self.lookup.rows(tree, y[0], arguments[0] if arguments else None)}
        return self.at_rows(tree, y, *arguments)

    def at_rows(self, tree: Any, y: Any, *arguments: Any) -> Any:
        """f_θ(y|x) from θ with each table replaced by the rows that the point reads."""
        import jax.numpy as jnp

        value = traced(self.f, "f", tree, y[0] if self.domain.scalar else y, *arguments)
        value = jnp.asarray(value, dtype=float)
        if value.shape != ():
            raise InputError(f"f must return one number for one point; got shape {value.shape}.")
        return value

    @cached_property
    def _tables(self) -> tuple[Table, ...]:
        """Where the tables lie in the flat θ."""
        found, begin = [], 0
        for name in sorted(self.theta0) if self.lookup else ():  # JAX flattens a dict in the order of its keys
            entries = [np.size(leaf) for leaf in _leaves(self.theta0[name])]
            if name in self.lookup.names:
                found.append(Table(name, begin, begin + entries[0], np.shape(self.theta0[name])))
            begin += sum(entries)
        return tuple(found)

    @property
    def tables(self) -> tuple[Table, ...]:
        return self._tables

    def unravel(self, theta: Any) -> Any:
        """The user's tree from the flat θ, traceable by JAX."""
        return self._flat[1](theta)

    def unravel_rest(self, rest: Any) -> Any:
        import jax
        import jax.numpy as jnp

        tables = {name: self.theta0[name] for name in self.lookup.names}
        others = {name: leaf for name, leaf in self.theta0.items() if name not in tables}
        leaves, treedef = jax.tree_util.tree_flatten(others)
        begin = 0
        for position, leaf in enumerate(leaves):
            if _is_parameter(leaf):
                count = np.size(leaf)
                leaves[position] = jnp.reshape(rest[begin : begin + count], np.shape(leaf))
                begin += count
        return {**jax.tree_util.tree_unflatten(treedef, leaves), **tables}

    def one(self, theta: Any, y: Any, *arguments: Any) -> Any:
        return self._one(theta, y, *arguments)

    @cached_property
    def _rows(self) -> Callable[..., Any]:
        import jax

        return jax.jit(
            lambda theta, y, arguments: jax.vmap(self._one, in_axes=(None, 0, *[0] * len(arguments)))(
                theta, y, *arguments
            )
        )

    def log_f(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        with x64():
            return rowwise(lambda rows, args: self._rows(theta, rows, args), y, arguments, 8 * (self.size + 8))

    @cached_property
    def _row_slopes(self) -> Callable[..., Any]:
        import jax

        def slopes(theta: Any, y: Any, arguments: Any) -> Any:
            return jax.vmap(jax.grad(self._one), in_axes=(None, 0, *[0] * len(arguments)))(theta, y, *arguments)

        return jax.jit(slopes)

    def jacobian(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        with x64():
            return rowwise(lambda rows, args: self._row_slopes(theta, rows, args), y, arguments, 16 * (self.size + 8))

    def curvature(self, theta: np.ndarray, y: np.ndarray, arguments: tuple[Any, ...], weight: np.ndarray) -> np.ndarray:
        return self.data_terms(y, arguments, weight).derivatives(theta)[2]

    @cached_property
    def _row_kernels(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        import jax

        def total(theta: Any, y: Any, arguments: Any, weight: Any) -> Any:
            return weight @ self._rows(theta, y, arguments)

        def derivatives(theta: Any, y: Any, arguments: Any, weight: Any) -> Any:
            value, gradient = jax.value_and_grad(total)(theta, y, arguments, weight)
            return value, gradient, jax.hessian(total)(theta, y, arguments, weight)

        return jax.jit(total), jax.jit(derivatives)

    def data_terms(self, y: np.ndarray, arguments: tuple[Any, ...], weight: np.ndarray) -> DataTerms:
        return AutodiffDataTerms(self, y, arguments, weight)

    def _build_kernels(self) -> Kernels:
        """log Z, and (log Z, E ∂f, Σ a E[∂²f + ∂f ∂fᵀ]) by autodiff."""
        import jax
        import jax.numpy as jnp
        from jax.scipy.special import logsumexp

        def table(theta: Any, nodes: Any, arguments: Any) -> Any:  # (c, N)
            over_nodes = jax.vmap(self._one, in_axes=(None, 0, *[None] * len(arguments)))
            if not arguments:
                return over_nodes(theta, nodes)[None]
            return jax.vmap(lambda *one: over_nodes(theta, nodes, *one))(*arguments)

        def log_z(theta: Any, nodes: Any, log_w: Any, arguments: Any) -> Any:
            return logsumexp(table(theta, nodes, arguments) + log_w, axis=1)

        def moments(theta: Any, nodes: Any, log_w: Any, arguments: Any, log_a: Any, tilt: Any) -> Any:
            f = table(theta, nodes, arguments) + log_w
            log_z = logsumexp(f, axis=1)
            p = jnp.exp(f - log_z[:, None])
            slope = jax.jacfwd(table)(theta, nodes, arguments)  # (c, N, p)
            mean = jnp.einsum("cn,cnp->cp", p, slope)
            pa = p * jnp.exp(log_a + jnp.where(tilt, log_z, 0.0))[:, None]
            curve = jax.hessian(lambda th: jnp.sum(pa * table(th, nodes, arguments)))(theta)
            return log_z, mean, curve + jnp.einsum("cn,cnp,cnq->pq", pa, slope, slope)

        return Kernels(jax.jit(log_z), jax.jit(moments))

    def to_dict(self) -> dict[str, Any]:
        base = {} if self.base is None else {"base": self.base.to_dict()}
        return {"model": "Energy", "names": list(self.names), "domain": self.domain.to_dict(), **base}


def _name(path: tuple[Any, ...]) -> str:
    """A leaf's place in its tree as a user would write it: `a`, `a.b`, `a[0]`; `theta` is the tree itself."""
    from jax.tree_util import SequenceKey, keystr

    out = ""
    for key in path:
        text = keystr((key,), simple=True)
        out += f"[{text}]" if isinstance(key, SequenceKey) else f".{text}" if out else text
    return f"theta{out}" if not out or out.startswith("[") else out


def _names(leaves: list[tuple[str, tuple[int, ...]]]) -> list[str]:
    """A name for each entry of leaves of these names and shapes: `a` for a number, `a[0,1]` for an array's."""
    return [
        key + (f"[{','.join(map(str, at))}]" if shape else "")
        for key, shape in leaves
        for at in np.ndindex(*shape)  # once, (), for a number
    ]


def _is_parameter(leaf: Any) -> bool:
    """Floats and floating arrays are parameters; integers, functions and the rest are structure."""
    try:
        return np.issubdtype(np.asarray(leaf).dtype, np.floating) or "float" in str(getattr(leaf, "dtype", ""))
    except Exception:
        return False


def _leaves(tree: Any) -> list[Any]:
    """The parameters among the leaves of a tree."""
    import jax

    return [leaf for leaf in jax.tree_util.tree_leaves(tree) if _is_parameter(leaf)]


def _plain(leaf: Any) -> Any:
    """JAX arrays as NumPy float64 (scalars as floats); anything else as it is."""
    if hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
        array = np.asarray(leaf)
        return float(array) if array.shape == () and array.dtype.kind == "f" else array
    return leaf


@final
@dataclass(frozen=True)
class AutodiffDataTerms(DataTerms):
    """Σ w f over rows by autodiff, in chunks."""

    model: Energy
    y: np.ndarray
    arguments: tuple[Any, ...]
    weight: np.ndarray

    def _chunks(self, theta: np.ndarray, which: int) -> Iterator[Any]:
        """The sums over each chunk, one at a time: all their Hessians together would be chunks × p × p numbers."""
        kernel = self.model._row_kernels[which]
        total = self.y.shape[0]
        length = chunk_length(total, 8 * (self.model.size**2 + 8))
        with x64():
            for index, count in chunks(total, length):
                weight = np.where(np.arange(length) < count, self.weight[index], 0.0)
                yield kernel(theta, self.y[index], tree_take(self.arguments, index), weight)

    def value(self, theta: np.ndarray) -> float:
        return float(sum(float(part) for part in self._chunks(theta, 0)))

    def derivatives(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        p = self.model.size
        value, gradient, hessian = 0.0, np.zeros(p), np.zeros((p, p))
        for part in self._chunks(theta, 1):
            value += float(part[0])
            gradient += np.asarray(part[1])
            hessian += np.asarray(part[2])
        return value, gradient, hessian
