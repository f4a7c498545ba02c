"""The losses as plain functions of f at the data, f at the reference points, and the log q's: for any training loop.

Each is a negative log-likelihood to be *minimised*. JAX arrays (tracers included) stay in JAX, so that `jax.grad` and
`jax.jit` work; NumPy arrays, lists and anything else that NumPy or DLPack can read (PyTorch tensors, detached) are
computed in float64 and give a float. `gradients` returns the slopes in f for those who differentiate elsewhere:

    value, (g_data, g_reference) = losses.gradients(losses.ncd, f_data.detach(), f_ref.detach(), log_q_data, log_q_ref)
    torch.autograd.backward([f_data, f_ref], [torch.from_numpy(g_data), torch.from_numpy(g_reference)])
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Literal, NamedTuple, ParamSpec

import numpy as np

from .._base.numerics import x64
from ..errors import InputError, unknown
from .traced import logistic, poisson

Reduction = Literal["mean", "sum", "none"]
P = ParamSpec("P")


def _either(function: Callable[P, Any]) -> Callable[P, Any]:
    """Run in JAX as it is where any array is JAX's; else in float64, compiled for the shapes, with NumPy in and out."""

    @wraps(function)
    def wrapped(*arrays: P.args, **options: P.kwargs) -> Any:
        import jax

        if any(isinstance(value, jax.Array) for value in (*arrays, *options.values())):
            return function(*arrays, **options)
        with x64():
            call, values = _split(arrays, options)
            out = np.asarray(_compiled(function, call, False)(values))
        return float(out) if out.shape == () else out

    return wrapped


class _Call(NamedTuple):
    """How a loss was called: which arguments are words or None, and are compiled in."""

    positions: int
    words: tuple[tuple[str, str | None], ...]

    def arguments(self, values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        every = {**values, **dict(self.words)}
        positional = [every.pop(str(j)) for j in range(self.positions)]
        return positional, every


def _split(arrays: tuple[Any, ...], options: dict[str, Any]) -> tuple[_Call, dict[str, Any]]:
    """The call and its numbers, by position or name."""
    every = {**{str(j): _plain(value) for j, value in enumerate(arrays)}, **{k: _plain(v) for k, v in options.items()}}
    words = tuple((name, value) for name, value in every.items() if value is None or isinstance(value, str))
    return _Call(len(arrays), words), {name: value for name, value in every.items() if isinstance(value, np.ndarray)}


@lru_cache(maxsize=256)
def _compiled(loss: Callable[..., Any], call: _Call, slopes: bool) -> Callable[[dict[str, Any]], Any]:
    """The loss of a call's numbers under jax.jit, or its value and slopes in the first two: a loop compiles once."""
    import jax

    def value(first: Any, second: Any, rest: dict[str, Any]) -> Any:
        positional, options = call.arguments({**rest, "0": first, "1": second})
        return loss(*positional, **options)

    def both(values: dict[str, Any]) -> Any:
        rest = {name: array for name, array in values.items() if name not in ("0", "1")}
        return jax.value_and_grad(value, argnums=(0, 1))(values["0"], values["1"], rest)

    def alone(values: dict[str, Any]) -> Any:
        positional, options = call.arguments(values)
        return loss(*positional, **options)

    return jax.jit(both if slopes else alone)


def _plain(value: Any) -> Any:
    """Arrays of any library as NumPy float64; words and None as they are."""
    if value is None or isinstance(value, str):
        return value
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        if hasattr(value, "__dlpack__"):
            try:
                return np.from_dlpack(value).astype(np.float64)
            except (TypeError, ValueError, RuntimeError, BufferError):
                pass
        raise InputError(
            f"A loss takes arrays of numbers; got {type(value).__name__} ({error}). "
            "Pass tensors that carry gradients as tensor.detach().cpu(), and use losses.gradients for the slopes."
        ) from error


def _reduced(terms: Any, weights: Any, reduction: Reduction) -> Any:
    """Σ w l, Σ w l / Σ w, or the terms w l themselves."""
    import jax.numpy as jnp

    if reduction not in ("mean", "sum", "none"):
        raise InputError(unknown("reduction", reduction, ("mean", "sum", "none")))
    w = jnp.ones_like(terms) if weights is None else jnp.broadcast_to(jnp.asarray(weights), terms.shape)
    if reduction == "none":
        return w * terms
    total = jnp.sum(w * terms)
    return total / jnp.sum(w) if reduction == "mean" else total


def _same(a: Any, b: Any, what: str) -> None:
    if np.shape(a) != np.shape(b) and np.shape(b) != ():
        raise InputError(f"{what} must have the same shape; got {np.shape(a)} and {np.shape(b)}.")


def _per_context(f_data: Any, f_reference: Any) -> None:
    if np.ndim(f_reference) != np.ndim(f_data) + 1 or np.shape(f_reference)[:-1] != np.shape(f_data):
        raise InputError(
            "f_reference must have one row of k reference values for each of the n data, shape (n, k); "
            f"got {np.shape(f_reference)} for data of shape {np.shape(f_data)}."
        )


# long: a public entry point
@_either
def ncd(
    f_data: Any,
    f_reference: Any,
    log_q_data: Any,
    log_q_reference: Any,
    *,
    nu: Any = 0.0,
    nu_reference: Any = None,
    log_ratio: Any = None,
    weights: Any = None,
    reference_weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Noise-contrastive divergence, the logistic loss −𝓡^m of eq. 3.2:

        −Σ_i w_i log σ(η_i) − Σ_j v_j log σ(−η_j),      η = f + ν − log q + log(n/m).

    Args:
        f_data, log_q_data: f and log q at the data, (n,).
        f_reference, log_q_reference: at the reference points, (m,), or (n, k) where each datum has its own.
        nu: ν, or ν_i for each datum (reference points of shape (n, k) take their datum's; else pass `nu_reference`).
        nu_reference: ν at reference points of shape (m,), where `nu` differs between data.
        log_ratio: log(n/m); default from the shapes.
        weights, reference_weights: w_i and v_j; with (n, k) reference points v defaults to their datum's w.
        reduction: "sum", or "mean": divided by Σ w (the data alone, so that the scale does not change with m).

    Example:
        >>> round(ncd([0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]), 6)  # 2 log 2: q is the model
        1.386294
    """
    import jax.numpy as jnp

    if reduction not in ("mean", "sum"):
        raise InputError(unknown("reduction of ncd", reduction, ("mean", "sum")))
    _same(f_data, log_q_data, "f_data and log_q_data")
    _same(f_reference, log_q_reference, "f_reference and log_q_reference")
    f_data, f_reference = jnp.asarray(f_data), jnp.asarray(f_reference)
    if log_ratio is None:
        log_ratio = float(np.log(f_data.size / f_reference.size))
    own = f_reference.ndim == f_data.ndim + 1
    nu = jnp.asarray(nu)
    if nu_reference is None:
        nu_reference = nu[..., None] if own and nu.ndim else nu
    w = jnp.ones_like(f_data) if weights is None else jnp.asarray(weights)
    if reference_weights is None:
        reference_weights = w[..., None] if own else 1.0
    eta = f_data + nu - log_q_data + log_ratio
    eta_reference = f_reference + nu_reference - log_q_reference + log_ratio
    total = jnp.sum(w * logistic(-eta)) + jnp.sum(reference_weights * logistic(eta_reference))
    return total if reduction == "sum" else total / jnp.sum(w)


@_either
def importance(
    f_data: Any,
    f_reference: Any,
    log_q_data: Any,
    log_q_reference: Any,
    *,
    nu: Any = 0.0,
    nu_reference: Any = None,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """The Poisson transform −𝓜 (eqs 2.3 and 2.5) with its integral by importance sampling, without bias:

        −Σ_i w_i (f_i + ν_i) + Σ_i w_i · mean_j exp(f_j + ν − log q_j).

    Its gradient is unbiased for that of 𝓜 (Section 3.1). Reference points of shape (m,) are shared by all data (IID);
    those of shape (n, k) belong to their datum's context.

    Args:
        f_data: f at the data, (n,).
        f_reference: f at the reference points, (m,) or (n, k).
        log_q_data: log q at the data, (n,); not used, it keeps the losses exchangeable.
        log_q_reference: log q at the reference points.
        nu: ν, or ν_i for each datum.
        nu_reference: ν at reference points of shape (m,), where `nu` differs between data.
        weights: w_i; default 1.
        reduction: "mean", divided by Σ w; "sum"; or "none", the terms w l themselves.

    Example:
        >>> round(importance([0.0], [0.0, 0.0], None, [0.0, 0.0]), 6)
        1.0
    """
    import jax.numpy as jnp

    if reduction not in ("mean", "sum"):
        raise InputError(unknown("reduction of importance", reduction, ("mean", "sum")))
    _same(f_reference, log_q_reference, "f_reference and log_q_reference")
    f_data, f_reference, nu = jnp.asarray(f_data), jnp.asarray(f_reference), jnp.asarray(nu)
    own = f_reference.ndim == f_data.ndim + 1
    w = jnp.ones_like(f_data) if weights is None else jnp.asarray(weights)
    if nu_reference is None:
        nu_reference = nu[..., None] if own and nu.ndim else nu
    mass = poisson(f_reference + nu_reference - log_q_reference)
    integral = jnp.sum(w * jnp.mean(mass, axis=-1)) if own else jnp.sum(w) * jnp.mean(mass)
    total = integral - jnp.sum(w * (f_data + nu))
    return total if reduction == "sum" else total / jnp.sum(w)


@_either
def ranking(
    f_data: Any,
    f_reference: Any,
    log_q_data: Any,
    log_q_reference: Any,
    *,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """The conditional (ranking) loss of Ma & Collins (2018), conditional logistic regression; no ν at all:

        −Σ_i w_i log [ e^{f_i − log q_i} / (e^{f_i − log q_i} + Σ_j e^{f_ij − log q_ij}) ].

    Args:
        f_data: f at the data, (n,).
        f_reference: f at the reference points, (n, k): IID draws from q(·|x_i).
        log_q_data: log q at the data, (n,).
        log_q_reference: log q at the reference points.
        weights: w_i; default 1.
        reduction: "mean", divided by Σ w; "sum"; or "none", the terms w l themselves.

    Example:
        >>> round(ranking([0.0], [[0.0, 0.0, 0.0]], [0.0], [[0.0, 0.0, 0.0]]), 6)  # one of four
        1.386294
    """
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    _per_context(f_data, f_reference)
    _same(f_data, log_q_data, "f_data and log_q_data")
    _same(f_reference, log_q_reference, "f_reference and log_q_reference")
    real = jnp.asarray(f_data) - jnp.asarray(log_q_data)
    false = jnp.asarray(f_reference) - jnp.asarray(log_q_reference)
    every = jnp.concatenate([real[..., None], false], axis=-1)
    return _reduced(logsumexp(every, axis=-1) - real, weights, reduction)


@_either
def conditional_nce(
    f_data: Any,
    f_reference: Any,
    log_q_forth: Any,
    log_q_back: Any,
    *,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Conditional NCE (Ceylan & Gutmann 2018): each y against its own perturbations y'_j; ν cancels:

        −Σ_i w_i mean_j log σ( f(y_i) − f(y'_ij) + log q(y'_ij|y_i) − log q(y_i|y'_ij) ).

    Args:
        f_data, f_reference: f at y, (n,), and at y', (n, k).
        log_q_forth: log q(y'|y), the density of the step that was taken, (n, k).
        log_q_back: log q(y|y'), that of the step back; equal for symmetric kernels, where both may be 0.
        weights: w_i; default 1.
        reduction: "mean", divided by Σ w; "sum"; or "none", the terms w l themselves.

    Example:
        >>> round(conditional_nce([0.0], [[0.0]], 0.0, 0.0), 6)
        0.693147
    """
    import jax.numpy as jnp

    _per_context(f_data, f_reference)
    f_data, f_reference = jnp.asarray(f_data), jnp.asarray(f_reference)
    log_odds = f_data[..., None] - f_reference + jnp.asarray(log_q_forth) - jnp.asarray(log_q_back)
    return _reduced(jnp.mean(logistic(-log_odds), axis=-1), weights, reduction)


def gradients(
    loss: Callable[..., Any], f_data: Any, f_reference: Any, *rest: Any, **options: Any
) -> tuple[float, tuple[np.ndarray, np.ndarray]]:
    """The loss and its slopes in f_data and f_reference, as NumPy float64: the way to another library's backward pass.

    Args:
        loss: one of this module's, or a JAX function of the same arguments.
        f_data: f at the data.
        f_reference: f at the reference points.
        rest: the loss's other arguments, in its order.
        options: the loss's options, by name.

    Example:
        >>> value, (g_data, g_reference) = gradients(importance, [0.0], [0.0, 0.0], None, [0.0, 0.0])
        >>> g_data, g_reference
        (array([-1.]), array([0.5, 0.5]))
    """
    with x64():
        call, values = _split((f_data, f_reference, *rest), options)
        value, slopes = _compiled(loss, call, True)(values)
        return float(value), (np.asarray(slopes[0]), np.asarray(slopes[1]))


__all__ = ["conditional_nce", "gradients", "importance", "ncd", "ranking"]
