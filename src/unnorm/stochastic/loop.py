"""The climb itself: blocks of steps compiled as one scan, with nothing read back until a block ends.

Between blocks the host looks at the diagnostics, stops a run that diverges, re-estimates the curvature, refreshes the
reference, and writes the checkpoint. Step s draws from the seed and s alone, so that a resumed run gives the numbers
of an unbroken one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, final

import numpy as np

from .. import storage
from ..errors import ConvergenceError, InputError
from .estimator import Estimator
from .smoothing import smoothed
from .step import Step, compiled, precision

MASS_LIMIT = 1e8  # ∫ exp(f + ν) beyond this: ν has exploded
MOST_DENSE = 500  # parameters up to which curvatures are formed


class DivergenceError(ConvergenceError):
    """A run that left the numbers; `last_good` holds the parameters before the block in which it did."""

    def __init__(self, message: str, step: int, last_good: np.ndarray) -> None:
        super().__init__(message)
        self.step, self.last_good = step, last_good


@dataclass(frozen=True)
class Settings:
    """What the loop needs to know; `SGD` fills it in."""

    optimiser: Any  # an optax GradientTransformation
    steps: int
    block: int
    average: float  # share of the run after which iterates are averaged
    precondition: bool
    tolerance: float | None
    patience: int | None
    refresh: int | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: int
    progress: bool
    about: dict[str, Any] = field(default_factory=dict)


@dataclass
class State:
    """Everything that a resumed run needs (besides the estimator): it is what a checkpoint holds."""

    step: int
    phi: np.ndarray
    opt_state: Any
    P: np.ndarray | None  # preconditioner, the inverse curvature of −𝓜/W
    lam: np.ndarray  # smoothing parameters of χ, one for each of its penalties
    means: list[np.ndarray]  # block means of φ (few parameters), for averages and their error
    total: np.ndarray  # sum of the block means averaged so far (many parameters)
    counted: int
    history: dict[str, list[float]]
    stopped: str = ""


class BlockResult(NamedTuple):
    """A block's statistics, read back once."""

    phi_mean: Any
    g_mean: Any
    g_var: Any
    value: Any
    mass: Any
    ess: Any
    bad: Any  # first step that was not finite, or −1


@final
@dataclass(frozen=True)
class Trace:
    """Where the run ended: the averaged iterate, its Monte Carlo covariance, and the story."""

    phi: np.ndarray
    covariance: np.ndarray | None  # of the averaged iterate, by batch means; few parameters only
    last: np.ndarray
    steps: int
    stopped: str
    drift: float  # largest |second half − first half| of the averaged window in its own standard errors
    history: dict[str, list[float]]
    estimator: Estimator  # with the reference as last refreshed, and the smoothing parameters as last chosen
    P: np.ndarray | None
    lam: np.ndarray
    averaged: int  # steps in the average


def block(
    step: Step,
    optimiser: Any,
    precondition: bool,
    phi: Any,
    state: Any,
    P: Any,
    data: Any,
    constants: Any,
    key: Any,
    xs: Any,
    numbers: Any,
) -> Any:
    """(φ, optimiser state, BlockResult) after the steps of one block; `compiled(block, (0, 1, 2))` runs it."""
    import jax
    import jax.numpy as jnp
    import optax

    def loss(phi: Any, batch: Any) -> Any:
        value, health = step.objective(phi, data, batch)
        return -value / data["W"], health

    def one(carry: Any, scanned: Any) -> Any:
        phi, state, bad, sums = carry
        x, number = scanned
        batch = step.draw(constants, key, x)
        (value, health), g = jax.value_and_grad(loss, has_aux=True)(phi, batch)
        update, new_state = optimiser.update(P @ g if precondition else g, state, phi)
        new: Any = optax.apply_updates(phi, update)
        mass = jnp.where(jnp.isnan(health["mass"]), 1.0, health["mass"])
        fine = jnp.isfinite(value) & jnp.all(jnp.isfinite(new))
        if step.loss == "poisson":  # the others are bounded, and recover from a ν that is far off
            fine = fine & (mass < MASS_LIMIT)
        bad = jnp.where((bad < 0) & ~fine, number, bad)
        keep = bad < 0  # after a bad step nothing moves, so that nothing is lost
        phi = jnp.where(keep, new, phi)
        state = jax.tree.map(lambda a, b: jnp.where(keep, a, b), new_state, state)
        g = jnp.where(keep, g, 0.0)
        now = (phi, g, g**2, value, health["mass"], health["ess"])
        return (phi, state, bad, jax.tree.map(jnp.add, sums, now)), None

    zero = jnp.zeros((), dtype=phi.dtype)
    sums = (jnp.zeros_like(phi), jnp.zeros_like(phi), jnp.zeros_like(phi), zero, zero, zero)
    (phi, state, bad, sums), _ = jax.lax.scan(one, (phi, state, jnp.int32(-1), sums), (xs, numbers))
    mean = [total / len(numbers) for total in sums]
    spread = jnp.maximum(mean[2] - mean[1] ** 2, 0.0)
    return phi, state, BlockResult(mean[0], mean[1], spread, mean[3], mean[4], mean[5], bad)


def climb(e: Estimator, s: Settings, seed: int, start: np.ndarray) -> Trace:
    """Run, or resume from the checkpoint, to the end."""
    import jax
    import jax.numpy as jnp

    few = e.size <= 2000
    if s.refresh is not None:
        can_refresh(e)
    with precision(e.dtype):
        phi = jnp.asarray(start, dtype=e.dtype)
        lam = np.zeros(len(e.chi.penalties))
        fresh = State(0, start, s.optimiser.init(phi), None, lam, [], np.zeros(e.size), 0, _no_history())
    state, e = _resume(e, s, seed, fresh)
    if state.stopped:
        return _trace(e, s, state, few)
    last_saved = state.step
    bar = _bar(s, state.step)
    with precision(e.dtype):
        phi, opt_state = jnp.asarray(state.phi, dtype=e.dtype), state.opt_state
        key = jax.random.key(seed)
        while state.step < s.steps and not state.stopped:
            if s.refresh is not None and state.step // s.refresh > max(state.step - s.block, 0) // s.refresh:
                e = refreshed(e, state.phi, seed, state.step)  # before a block, so that a resumed run does it too
            if _renew(state, s.block):
                e = _renewed(e, s, state, seed)
            count = min(s.block, s.steps - state.step)
            xs = e.source.block(seed, state.step, count)
            numbers = np.arange(state.step, state.step + count, dtype=np.int32)
            P = np.zeros((1, 1)) if state.P is None else state.P
            run = compiled(block, (0, 1, 2))
            new, new_opt, result = run(
                e.step,
                s.optimiser,
                s.precondition,
                phi,
                opt_state,
                P.astype(e.dtype),
                e.device_data,
                e.device_constants,
                key,
                xs,
                numbers,
            )
            result = jax.device_get(result)
            if result.bad >= 0:
                _save(e, s, state, seed)
                raise _diverged(s, state, int(result.bad), np.asarray(phi, dtype=np.float64))
            phi, opt_state = new, new_opt
            state.step += count
            state.phi, state.opt_state = np.asarray(phi, dtype=np.float64), jax.device_get(opt_state)
            _note(e, s, state, result, count, few)
            state.stopped = _stop(e, s, state, seed)
            if bar is not None:
                bar.update(count)
                bar.set_postfix(value=f"{state.history['value'][-1]:.5g}", mass=f"{state.history['mass'][-1]:.3f}")
            if s.checkpoint is not None and (state.step - last_saved) >= s.checkpoint_every * s.block:
                _save(e, s, state, seed)
                last_saved = state.step
    if bar is not None:
        bar.close()
    _save(e, s, state, seed)
    return _trace(e, s, state, few)


def _no_history() -> dict[str, list[float]]:
    return {name: [] for name in ("step", "value", "signal_to_noise", "mass", "ess")}


def _note(e: Estimator, s: Settings, state: State, r: BlockResult, count: int, few: bool) -> None:
    """What the block said, and its part of the average."""
    noise = np.asarray(r.g_var, dtype=np.float64) / max(count - 1, 1)
    signal = np.asarray(r.g_mean, dtype=np.float64) ** 2
    for name, value in (
        ("step", state.step),
        ("value", -e.W * float(r.value)),
        ("signal_to_noise", float(np.sqrt(np.mean(signal / np.maximum(noise, 1e-300))))),
        ("mass", float(r.mass)),
        ("ess", float(r.ess)),
    ):
        state.history[name].append(value)
    mean = np.asarray(r.phi_mean, dtype=np.float64)
    if few:
        state.means.append(mean)
    elif state.step > s.average * s.steps:
        state.total, state.counted = state.total + mean, state.counted + 1


def _window(s: Settings, state: State) -> np.ndarray:
    """(B, size) block means of the averaged part of the run so far."""
    return np.array(state.means[int(s.average * len(state.means)) :])


def _trace(e: Estimator, s: Settings, state: State, few: bool) -> Trace:
    covariance, drift, averaged = None, 0.0, state.counted * s.block
    if few and state.means:
        window = _window(s, state)
        averaged = len(window) * s.block
        phi = window.mean(axis=0)
        if len(window) >= 4:
            half = len(window) // 2
            # noise from successive differences, which a trend hardly enters (von Neumann 1941)
            noise = np.sqrt(np.maximum(np.mean(np.diff(window, axis=0) ** 2, axis=0) / 2, 1e-300))
            gap = np.abs(window[half:].mean(axis=0) - window[:half].mean(axis=0))
            drift = float(np.max(gap / (noise * np.sqrt(1 / half + 1 / (len(window) - half)))))
            if e.size <= MOST_DENSE:
                covariance = np.atleast_2d(np.cov(window, rowvar=False)) / len(window)
    else:
        phi = state.total / state.counted if state.counted else state.phi
    return Trace(
        phi,
        covariance,
        state.phi,
        state.step,
        state.stopped,
        drift,
        {k: list(v) for k, v in state.history.items()},
        e,
        state.P,
        state.lam,
        averaged,
    )


# --- curvature, refreshing, stopping
# -----------------------------------------------------------------------------------


def _renew(state: State, block: int) -> bool:
    """At the start and after 1, 2, 4, 8, … blocks."""
    done = state.step // block
    return (done & (done - 1)) == 0


def information(e: Estimator, phi: np.ndarray, seed: int, first: int, draws: int = 8, nu_only: bool = False) -> Any:
    """−∂²𝓜 from `draws` fresh steps (in eights, so that one compiled loop serves all), in φ or in ν alone."""
    seed = (seed + 0x9E3779B9) % 2**31
    H = -np.mean([e.hessian(phi, seed, 8, first + 8 * j, nu_only) for j in range(max(1, draws // 8))], axis=0)
    return (H + H.T) / 2


def curvature(e: Estimator, phi: np.ndarray, seed: int, first: int, draws: int = 8) -> np.ndarray:
    """−∂²(𝓜 + log π)/W."""
    return (information(e, phi, seed, first, draws) - e.prior_hessian(phi)) / e.W


def inverse_curvature(e: Estimator, phi: np.ndarray, seed: int, first: int) -> np.ndarray:
    """P = |H|⁻¹ on the scale of its diagonal; an indefinite H becomes its absolute value, as in Newton."""
    return absolute_inverse(curvature(e, phi, seed, first))


def absolute_inverse(H: np.ndarray) -> np.ndarray:
    """|H|⁻¹ on the scale of its diagonal."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-12))
    values, vectors = np.linalg.eigh(H / np.outer(scale, scale))
    values = np.maximum(np.abs(values), 1e-6)
    return (vectors / values) @ vectors.T / np.outer(scale, scale)


def _renewed(e: Estimator, s: Settings, state: State, seed: int) -> Estimator:
    """The curvature once more, and from it the preconditioner and the smoothing parameters of a penalised χ."""
    smoothing = bool(e.chi.penalties) and state.step <= s.average * s.steps  # fixed while iterates are averaged
    if not (smoothing or s.precondition):
        return e
    at = state.means[-1] if state.means else state.phi
    dense = e.size <= MOST_DENSE
    H = information(e, at, seed, state.step, nu_only=not dense)
    if smoothing:
        skip = e.p if dense else 0
        state.lam = smoothed(e.chi.penalties, state.lam, at if dense else at[e.p :], H, skip, first=state.step == 0)
        e = with_smoothing(e, state.lam)
    if s.precondition:
        state.P = absolute_inverse((H - e.prior_hessian(at)) / e.W)
    return e


def can_refresh(e: Estimator) -> None:
    """Refuse a reference that has no way to follow the model, before anything is computed."""
    if not hasattr(e.reference, "refreshed"):
        raise InputError(
            f"refresh= needs a reference that adapts, un.GaussianMixture(...); {e.reference.describe()} cannot "
            f"be refreshed."
        )


def refreshed(e: Estimator, phi: np.ndarray, seed: int, step: int) -> Estimator:
    """The estimator with its reference moved towards the model, and every log q that depends on it recomputed.

    With contexts, towards the model averaged over them: points at 64 of them, weighted by f/q within each.
    """
    rng = np.random.default_rng([seed, step, 7])
    groups = 64 if e.obs.has_context else 1
    at = np.repeat(rng.integers(0, e.obs.n, groups), 8192 // groups)
    y = e.reference.sample(e.obs, at, rng)
    log_w = e.model.log_f(phi[: e.p], y, e.model.arguments(e.obs, at)) - e.reference.log_density(y, e.obs, at)
    log_w = log_w.reshape(groups, -1)
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    bound: Any = e.reference
    return with_reference(e, bound.refreshed(y, (w / w.sum(axis=1, keepdims=True)).ravel(), e.obs))


def with_reference(e: Estimator, bound: Any) -> Estimator:
    """The same problem with another reference of the same kind."""
    from .sources import source

    data = dict(e.data)
    if "log_q" in data:
        data["log_q"] = bound.log_density(e.obs.outcome, e.obs, np.arange(e.obs.n)).astype(e.dtype)
    with precision(e.dtype):
        draws = source(bound, e.obs, e.plan, e.scheme, e.dtype)
    return replace(e, reference=bound, data=data, source=draws)


def with_smoothing(e: Estimator, lam: np.ndarray) -> Estimator:
    """The same problem with other smoothing parameters."""
    return replace(e, data=e.data | {"penalty": e.chi.penalty(lam).astype(e.dtype)})


def _stop(e: Estimator, s: Settings, state: State, seed: int) -> str:
    """Why to stop now, or nothing."""
    blocks = len(state.history["value"])
    if s.patience is not None and blocks > 2 * s.patience:
        values = np.array(state.history["value"])
        if values[-s.patience :].max() <= values[: -s.patience].max():
            return f"the objective has not risen for {s.patience} blocks"
    if s.tolerance is None or e.size > MOST_DENSE or blocks < 12 or blocks % 4:
        return ""
    window = _window(s, state)
    half = len(window) // 2
    if half < 3:
        return ""
    spread = window.var(axis=0, ddof=1)[: e.p]
    gap = np.abs(window[half:].mean(axis=0) - window[:half].mean(axis=0))[: e.p]
    mc = np.sqrt(spread / len(window))
    P = state.P if state.P is not None else inverse_curvature(e, window.mean(axis=0), seed, state.step)
    se = np.sqrt(np.maximum(np.diag(P)[: e.p], 0.0) / e.W)  # diag of the joint inverse is the inverse Schur complement
    settled = np.all(gap < 4 * np.sqrt(spread * 4 / len(window)) + 0.5 * s.tolerance * se)
    if settled and np.all(mc < 0.5 * s.tolerance * se):
        return f"Monte Carlo error below {0.5 * s.tolerance:g} standard errors"
    return ""


def _diverged(s: Settings, state: State, bad: int, last_good: np.ndarray) -> DivergenceError:
    where = f"; the checkpoint {s.checkpoint} holds step {state.step}" if s.checkpoint is not None else ""
    return DivergenceError(
        f"The run diverged at step {bad}: the objective, a parameter or ∫ exp(f + ν) is no longer a usable "
        f"number. The last "
        f"good parameters are those after step {state.step}{where}. Remedies: a smaller learning rate or "
        f"optax.clip_by_global_norm "
        "in the optimiser; more references or a reference nearer to the model; starting values nearer to the data; or "
        "the logistic loss (objective=un.Logistic(...)), whose gradient is bounded.",
        bad,
        last_good,
    )


def _bar(s: Settings, done: int) -> Any:
    if not s.progress:
        return None
    from tqdm import tqdm

    return tqdm(total=s.steps, initial=done, unit="step")


# --- checkpoints
# -------------------------------------------------------------------------------------------------------


def _fingerprint(e: Estimator, s: Settings) -> dict[str, Any]:
    """What must be the same for a run to go on: the problem and the settings that change its numbers."""
    return {
        "size": e.size,
        "n": e.obs.n,
        "data": float(np.sum(e.obs.outcome * np.cos(np.arange(e.obs.outcome.size)).reshape(e.obs.outcome.shape))),
        "loss": e.loss,
        "dtype": e.dtype,
        "block": s.block,
        **s.about,
    }


def _save(e: Estimator, s: Settings, state: State, seed: int) -> None:
    if s.checkpoint is None:
        return
    import jax

    arrays = {f"opt{j}": np.asarray(leaf) for j, leaf in enumerate(jax.tree.leaves(state.opt_state))}
    arrays |= {"phi": state.phi, "total": state.total, "means": np.array(state.means).reshape(len(state.means), -1)}
    arrays["lam"] = state.lam
    if state.P is not None:
        arrays["P"] = state.P
    about = {
        "class": "SGDCheckpoint",
        "fingerprint": _fingerprint(e, s),
        "seed": seed,
        "step": state.step,
        "counted": state.counted,
        "history": state.history,
        "stopped": state.stopped,
        "reference": e.reference.to_dict(),
    }
    storage.write_folder(s.checkpoint, about, arrays)


def _resume(e: Estimator, s: Settings, seed: int, fresh: State) -> tuple[State, Estimator]:
    """The state in the checkpoint where there is one, else the fresh one."""
    if s.checkpoint is None or not os.path.exists(s.checkpoint):
        return fresh, e
    import jax

    about, arrays = storage.read_folder(s.checkpoint)
    if about.get("class") != "SGDCheckpoint":
        raise InputError(f"{s.checkpoint} is not a checkpoint of SGD; choose another path.")
    here = _fingerprint(e, s)
    differ = sorted(key for key in here if about["fingerprint"].get(key) != here[key])
    if differ or about["seed"] != seed:
        what = ", ".join(differ) or "seed"
        raise InputError(
            f"The checkpoint {s.checkpoint} is of another run: {what} differ(s). Use the same data, settings "
            f"and rng to go on with "
            "it, or choose another path."
        )
    leaves, treedef = jax.tree.flatten(fresh.opt_state)
    opt_state = jax.tree.unflatten(treedef, [arrays[f"opt{j}"] for j in range(len(leaves))])
    state = State(
        int(about["step"]),
        arrays["phi"],
        opt_state,
        arrays.get("P"),
        arrays["lam"],
        list(arrays["means"]),
        arrays["total"],
        int(about["counted"]),
        about["history"],
        str(about["stopped"]),
    )
    if s.refresh is not None and state.step >= s.refresh:
        from ..references import from_dict

        e = with_reference(e, from_dict(about["reference"]).bind(e.model.domain, e.obs))
    if state.lam.size:
        e = with_smoothing(e, state.lam)
    return state, e
