"""f_θ(y|x) = θᵀ s(y|x): closed forms of Appendix A."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from .._base.numerics import x64
from ..domains.base import Domain
from ..errors import InputError, listing
from .base import Kernels, Rule, positional, traced
from .batching import CHUNK_BYTES, chunk_length, rowwise
from .linear import StatisticsModel
from .tilt import Tilt, checked


@final
@dataclass(frozen=True, eq=False)
class ExponentialFamily(StatisticsModel):
    """A model linear in its statistics, f_θ(y|x) = θᵀ s(y|x).

    Args:
        statistics: s(y), s(y, x) or s(y, x, extra) for one point, JAX-traceable, returning p numbers.
        names: p names, one for each statistic.
        domain: Ω.
        rule: order → `unnorm.domains.Quadrature`, nodes that lie where f is sharp; default the domain's own.
        log_partition: log ∫ exp f dy as a function of theta (and x, as f sees it) in JAX, where it is known.
        base: `un.Tilt(kernel)` for p(y|x) ∝ k(y|x) exp f(y|x); default Ω's own measure.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
        >>> toy.size
        2
    """

    statistics: Callable[..., Any]
    names: tuple[str, ...]
    domain: Domain
    rule: Rule | None = None
    log_partition: Callable[..., Any] | None = None
    base: Tilt | None = None
    context_arity: int = field(init=False, default=0)
    compiled: ClassVar[tuple[str, ...]] = ("kernels", "_rows")  # cached properties that read f alone

    def __post_init__(self) -> None:
        names = (self.names,) if isinstance(self.names, str) else tuple(self.names)
        if not names or len(set(names)) != len(names):
            raise InputError(f"names must be distinct, one for each statistic; got {listing(names) or 'none'}.")
        if not isinstance(self.domain, Domain):
            raise InputError(f"domain must be a Domain such as un.Interval(-1, 1); got {self.domain!r}.")
        checked(self.base, self.log_partition)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "context_arity", positional(self.statistics, "statistics", 1, 3) - 1)

    def over(self, base: Tilt) -> ExponentialFamily:
        return replace(self, base=base)

    def _one(self, y: Any, *arguments: Any) -> Any:
        """s(y|x) for one point as a (p,) array."""
        import jax.numpy as jnp

        values = traced(self.statistics, "statistics", y[0] if self.domain.scalar else y, *arguments)
        values = values if isinstance(values, Sequence) else [values]
        out = jnp.concatenate([jnp.atleast_1d(jnp.asarray(value, dtype=float)) for value in values])
        if out.shape != (self.size,):
            raise InputError(
                f"statistics must return {self.size} numbers, one for each of {listing(self.names)}; "
                f"got shape {out.shape}."
            )
        return out

    def one(self, theta: Any, y: Any, *arguments: Any) -> Any:
        return self._one(y, *arguments) @ theta

    @cached_property
    def _rows(self) -> Callable[..., Any]:
        import jax

        return jax.jit(lambda y, arguments: jax.vmap(self._one)(y, *arguments))

    # long: closures that JAX compiles together
    def _build_kernels(self) -> Kernels:
        """log Z, and (log Z, E s, Σ a E ssᵀ): Appendix A with ∂f = s and ∂²f = 0.

        Two ways to the same sums. Few contexts: a table of s over contexts and nodes. Many contexts and few statistics:
        a sweep over the nodes with one accumulator a sum, which never holds a table (half the time, measured).
        """
        import jax
        import jax.numpy as jnp
        from jax.scipy.special import logsumexp

        def many(arguments: Any) -> bool:
            return bool(arguments) and self.size <= 8 and jax.tree_util.tree_leaves(arguments)[0].shape[0] >= 64

        def column(y: Any, arguments: Any) -> list[Any]:  # p arrays (c,): the statistics of all contexts at one node
            s = jax.vmap(lambda *one: self._one(y, *one))(*arguments)
            return [s[:, j] for j in range(self.size)]

        def exponent(theta: Any, s: list[Any]) -> Any:
            return sum(theta[j] * s[j] for j in range(self.size))

        def table(nodes: Any, arguments: Any) -> Any:  # (c, N, p), or (1, N, p) without context
            over_nodes = jax.vmap(self._one, in_axes=(0, *[None] * len(arguments)))
            if not arguments:
                return over_nodes(nodes)[None]
            return jax.vmap(lambda *one: over_nodes(nodes, *one))(*arguments)

        def sweep(
            theta: Any, nodes: Any, log_w: Any, arguments: Any, sums: Callable[[Any, list[Any]], list[Any]]
        ) -> Any:
            """max_j f_j, and Σ_j of each of `sums(e, s)` with e = w_j exp(f_j − max)."""

            def highest(top: Any, node: Any) -> Any:
                return jnp.maximum(top, node[1] + exponent(theta, column(node[0], arguments))), None

            first = exponent(theta, column(nodes[0], arguments)) + log_w[0]
            top, _ = jax.lax.scan(highest, first, (nodes, log_w))

            def add(total: Any, node: Any) -> Any:
                s = column(node[0], arguments)
                e = jnp.exp(node[1] + exponent(theta, s) - top)
                return [a + b for a, b in zip(total, sums(e, s))], None

            zeros = [jnp.zeros_like(first) for _ in sums(first, column(nodes[0], arguments))]
            return top, jax.lax.scan(add, zeros, (nodes, log_w))[0]

        def log_z(theta: Any, nodes: Any, log_w: Any, arguments: Any) -> Any:
            if many(arguments):
                top, (z,) = sweep(theta, nodes, log_w, arguments, lambda e, s: [e])
                return top + jnp.log(z)
            return logsumexp(table(nodes, arguments) @ theta + log_w, axis=1)

        def moments(theta: Any, nodes: Any, log_w: Any, arguments: Any, log_a: Any, tilt: Any) -> Any:
            p = self.size
            if many(arguments):
                pairs = [(i, j) for i in range(p) for j in range(i + 1)]

                def sums(e: Any, s: list[Any]) -> list[Any]:
                    es = [e * one for one in s]
                    return [e, *es, *[es[i] * s[j] for i, j in pairs]]

                top, total = sweep(theta, nodes, log_w, arguments, sums)
                z = total[0]
                log_z = top + jnp.log(z)
                a = jnp.exp(log_a + jnp.where(tilt, log_z, 0.0)) / z
                second = jnp.zeros((p, p))
                for (i, j), one in zip(pairs, total[1 + p :]):
                    second = second.at[i, j].set(a @ one).at[j, i].set(a @ one)
                return log_z, jnp.stack(total[1 : 1 + p], axis=1) / z[:, None], second
            s = table(nodes, arguments)
            f = s @ theta + log_w
            log_z = logsumexp(f, axis=1)
            density = jnp.exp(f - log_z[:, None])
            a = jnp.exp(log_a + jnp.where(tilt, log_z, 0.0))
            weighted = (s * (density * a[:, None])[:, :, None]).reshape(-1, p)
            return log_z, jnp.einsum("cn,cnp->cp", density, s), weighted.T @ s.reshape(-1, p)

        return Kernels(jax.jit(log_z), jax.jit(moments))

    def statistics_at(self, y: np.ndarray, arguments: tuple[Any, ...]) -> np.ndarray:
        """(N, p) statistics at N rows."""
        with x64():
            s = rowwise(self._rows, y, arguments, 8 * (self.size + 8))
        bad = ~np.isfinite(s)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise InputError(
                f"statistic {self.names[column]!r} is not finite at {int(bad.any(axis=1).sum())} point(s); "
                f"the first is y = {np.array2string(y[row], precision=6)}. Statistics must be finite on all of Ω."
            )
        return s

    def _chunk(self, total: int, nodes: int) -> int:
        if self.size <= 8 and total >= 64:  # the sweep's accumulators stay in the second-level cache
            return chunk_length(total, CHUNK_BYTES // 4096)
        return super()._chunk(total, nodes)

    def to_dict(self) -> dict[str, Any]:
        base = {} if self.base is None else {"base": self.base.to_dict()}
        return {"model": "ExponentialFamily", "names": list(self.names), "domain": self.domain.to_dict(), **base}
