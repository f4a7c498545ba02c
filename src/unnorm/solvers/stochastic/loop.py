"""The main loop: blocks of steps compiled as one scan, with nothing read back until a block ends.

Between blocks the host reads the diagnostics, stops a run that diverges, re-estimates the curvature, refreshes the
reference, and writes the checkpoint. Step s draws from the seed and s alone, so that a resumed run gives the numbers
of an unbroken one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from ...errors import ConvergenceError
from .checkpoint import Settings, State, resume, save
from .estimator import Estimator
from .renewal import (
    MOST_DENSE,
    absolute_inverse,
    can_refresh,
    information,
    inverse_curvature,
    refreshed,
    with_smoothing,
)
from .smoothing import smoothed
from .step import Step, compiled, precision

LOOKS = 64  # fresh gradients, to see whether to stop
MASS_LIMIT = 1e8  # ∫ exp(f + ν) beyond this: ν has exploded
# What can go wrong in a step, in the order in which it is checked, and the remedy.
CAUSES = (
    (
        "∫ exp(f + ν) had exploded, ν no longer normalises f",
        "a smaller learning rate or optax.clip_by_global_norm in the optimiser; more references or a reference nearer "
        "to the model; starting values nearer to the data; or objective=un.Logistic(...), whose gradient is bounded",
    ),
    (
        "the objective was not a finite number",
        "f must be finite on all of Ω at these parameters (no log of zero, no division by it); or the learning rate is "
        "too large: take a smaller one, or optax.clip_by_global_norm in the optimiser",
    ),
    (
        "a parameter was no longer finite",
        "a smaller learning rate, or optax.clip_by_global_norm in the optimiser; or f's gradient is not finite "
        "(jnp.where hides a NaN from the value, not from the gradient)",
    ),
)


class DivergenceError(ConvergenceError):
    """A run whose numbers became infinite or undefined; `last_good` holds the parameters before that block."""

    def __init__(self, message: str, step: int, last_good: np.ndarray) -> None:
        super().__init__(message)
        self.step, self.last_good = step, last_good


class BlockResult(NamedTuple):
    """A block's statistics, read back once."""

    phi_mean: Any
    g_mean: Any
    g_var: Any
    value: Any
    mass: Any
    ess: Any
    bad: Any  # first step that was not finite, or −1
    why: Any  # what was wrong there: an index into CAUSES


@final
@dataclass(frozen=True)
class Trace:
    """Where the run ended: the averaged iterate, and the record of the run."""

    phi: np.ndarray
    last: np.ndarray
    steps: int
    stopped: str
    history: dict[str, list[float]]
    estimator: Estimator  # with the reference as last refreshed, and the smoothing parameters as last chosen
    P: np.ndarray | None
    lam: np.ndarray
    averaged: int  # steps in the average


def block(step: Step, optimiser: Any, precondition: bool, phi: Any, state: Any, fixed: Any, scanned: Any) -> Any:
    """(φ, optimiser state, BlockResult) after the steps of one block; `compiled(block, (0, 1, 2))` runs it.

    `fixed` is (P, data, constants, key), and `scanned` the draws of the steps with the steps' numbers.
    """
    import jax
    import jax.numpy as jnp
    import optax

    P, data, constants, key = fixed

    def loss(phi: Any, batch: Any) -> Any:
        value, health = step.objective(phi, data, batch)
        return -value / data["W"], health

    def one(carry: Any, scanned: Any) -> Any:
        phi, state, (bad, why), sums = carry
        x, number = scanned
        batch = step.draw(constants, key, x)
        (value, health), g = jax.value_and_grad(loss, has_aux=True)(phi, batch)
        update, new_state = optimiser.update(P @ g if precondition else g, state, phi)
        new: Any = optax.apply_updates(phi, update)
        mass = jnp.where(jnp.isnan(health["mass"]), 1.0, health["mass"])
        wrong = [~jnp.isfinite(value), ~jnp.all(jnp.isfinite(new))]
        if step.loss == "poisson":  # the others are bounded, and recover from a ν that is far off
            wrong.insert(0, ~(mass < MASS_LIMIT) & ~jnp.isnan(health["mass"]))
        cause = jnp.argmax(jnp.stack(wrong)) + (0 if step.loss == "poisson" else 1)
        first = (bad < 0) & jnp.any(jnp.stack(wrong))
        bad, why = jnp.where(first, number, bad), jnp.where(first, cause.astype(jnp.int32), why)
        keep = bad < 0  # after a bad step nothing moves, so that nothing is lost
        phi = jnp.where(keep, new, phi)
        state = jax.tree.map(lambda a, b: jnp.where(keep, a, b), new_state, state)
        g = jnp.where(keep, g, 0.0)
        now = (phi, g, g**2, value, health["mass"], health["ess"])
        return (phi, state, (bad, why), jax.tree.map(jnp.add, sums, now)), None

    zero = jnp.zeros((), dtype=phi.dtype)
    sums = (jnp.zeros_like(phi), jnp.zeros_like(phi), jnp.zeros_like(phi), zero, zero, zero)
    nothing = (jnp.int32(-1), jnp.int32(0))
    (phi, state, (bad, why), sums), _ = jax.lax.scan(one, (phi, state, nothing, sums), scanned)
    mean = [total / len(scanned[1]) for total in sums]
    spread = jnp.maximum(mean[2] - mean[1] ** 2, 0.0)
    return phi, state, BlockResult(mean[0], mean[1], spread, mean[3], mean[4], mean[5], bad, why)


def climb(e: Estimator, s: Settings, seed: int, start: np.ndarray) -> Trace:
    """Run, or resume from the checkpoint, to the end."""
    import jax.numpy as jnp

    few = e.size <= 2000
    if s.refresh is not None:
        can_refresh(e)
    with precision(e.dtype):
        phi = jnp.asarray(start, dtype=e.dtype)
        lam = np.zeros(len(e.chi.penalties))
        fresh = State(0, start, s.optimiser.init(phi), None, lam, [], np.zeros(e.size), 0, _no_history())
    state, e = resume(e, s, seed, fresh)
    if state.stopped:
        return _trace(e, s, state)
    bar = _bar(s, state.step)
    try:
        state, e = _blocks(e, s, seed, state, few, bar)
    finally:
        if bar is not None:
            bar.close()
    save(e, s, state, seed)
    return _trace(e, s, state)


def _blocks(e: Estimator, s: Settings, seed: int, state: State, few: bool, bar: Any) -> tuple[State, Estimator]:
    """Block after block until the end; one that diverges or is interrupted leaves the checkpoint of the one before."""
    import jax
    import jax.numpy as jnp

    run = compiled(s.loop, (0, 1, 2))
    last_saved = state.step
    whole = (e, state)  # after the last whole block
    with precision(e.dtype):
        phi, opt_state = jnp.asarray(state.phi, dtype=e.dtype), state.opt_state
        key = jax.random.key(seed)
        while state.step < s.steps and not state.stopped:
            try:
                state = state.copy()
                if s.refresh is not None and state.step // s.refresh > max(state.step - s.block, 0) // s.refresh:
                    e = refreshed(e, state.phi, seed, state.step)  # before a block, so that a resumed run does it too
                if _renew(state, s.block):
                    e = _renewed(e, s, state, seed)
                count = min(s.block, s.steps - state.step)
                numbers = np.arange(state.step, state.step + count, dtype=np.int32)
                scanned = (e.source.block(seed, state.step, count), numbers)
                P = np.zeros((1, 1)) if state.P is None else state.P
                fixed = (P.astype(e.dtype), e.device_data, e.device_constants, key)
                phi, opt_state, result = run(e.step, s.optimiser, s.precondition, phi, opt_state, fixed, scanned)
                result = jax.device_get(result)
                if result.bad >= 0:
                    raise _diverged(s, whole[1], int(result.bad), int(result.why))
                state.step += count
                state.phi, state.opt_state = np.asarray(phi, dtype=np.float64), jax.device_get(opt_state)
                _note(e, s, state, result, count, few)
                state.stopped = _stop(e, s, state, seed)
                whole = (e, state)
            except (KeyboardInterrupt, DivergenceError):
                save(whole[0], s, whole[1], seed)
                raise
            if bar is not None:
                bar.update(count)
                bar.set_postfix(value=f"{state.history['value'][-1]:.5g}", mass=f"{state.history['mass'][-1]:.3f}")
            if s.checkpoint is not None and (state.step - last_saved) >= s.checkpoint_every * s.block:
                save(e, s, state, seed)
                last_saved = state.step
    return state, e


def _no_history() -> dict[str, list[float]]:
    return {name: [] for name in ("step", "value", "signal_to_noise", "mass", "ess")}


def _note(e: Estimator, s: Settings, state: State, r: BlockResult, count: int, few: bool) -> None:
    """Record a block: its diagnostics, and its part of the average."""
    noise = np.asarray(r.g_var, dtype=np.float64) / max(count - 1, 1)
    signal = np.asarray(r.g_mean, dtype=np.float64) ** 2
    for name, value in (
        ("step", state.step),
        ("value", -e.W * float(r.value)),
        ("signal_to_noise", float(np.sqrt(np.mean(signal / np.maximum(noise, 1e-300)))) if signal.size else 0.0),
        ("mass", float(r.mass)),
        ("ess", float(r.ess)),
    ):
        state.history[name].append(value)
    mean = np.asarray(r.phi_mean, dtype=np.float64)
    if few:
        state.means.append(mean)
    elif state.step > s.average * s.steps:
        state.total, state.counted = state.total + count * mean, state.counted + count


def _average(s: Settings, state: State) -> tuple[np.ndarray, int]:
    """The averaged iterate of the run so far, and how many steps are in it."""
    if not state.means:
        return (state.total / state.counted, state.counted) if state.counted else (state.phi, 1)
    first = int(s.average * len(state.means))
    sizes = np.diff([0, *state.history["step"]])[first:]  # the last block of a run may be shorter
    return np.average(state.means[first:], axis=0, weights=sizes), int(sizes.sum())


def _trace(e: Estimator, s: Settings, state: State) -> Trace:
    phi, averaged = _average(s, state)
    history = {name: list(values) for name, values in state.history.items()}
    return Trace(phi, state.phi, state.step, state.stopped, history, e, state.P, state.lam, averaged)


# --- curvature, refreshing, stopping
# -----------------------------------------------------------------------------------


def _renew(state: State, block: int) -> bool:
    """At the start and after 1, 2, 4, 8, … blocks."""
    done = state.step // block
    return (done & (done - 1)) == 0


def _renewed(e: Estimator, s: Settings, state: State, seed: int) -> Estimator:
    """The curvature estimated again, and from it the preconditioner and the smoothing parameters of a penalised χ."""
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


def _stop(e: Estimator, s: Settings, state: State, seed: int) -> str:
    """The reason to stop now; empty where there is none."""
    blocks = len(state.history["value"])
    if s.patience is not None and blocks > 2 * s.patience:
        values = np.array(state.history["value"])
        if values[-s.patience :].max() <= values[: -s.patience].max():
            return f"the objective has not risen for {s.patience} blocks"
    if s.tolerance is None or e.size > MOST_DENSE or blocks < 12 or blocks % 4:
        return ""
    phi, averaged = _average(s, state)
    P = state.P if state.P is not None else inverse_curvature(e, phi, seed, state.step)
    g = e.gradients(phi, (seed + 0x51ED270B) % 2**31, LOOKS, first=state.step)[1] + e.prior_gradient(phi)
    moves = (g @ P / e.W)[:, : e.p]  # as at the end of a run: what Newton steps by fresh gradients would add
    spread = moves.var(axis=0, ddof=1)
    se = np.sqrt(np.maximum(np.diag(P)[: e.p], 0.0) / e.W)  # diag of the joint inverse is the inverse Schur complement
    noise = np.sqrt(spread * (1 / LOOKS + 1 / averaged))
    near = np.all(np.abs(moves.mean(axis=0)) < 4 * noise + 0.5 * s.tolerance * se)
    if near and np.all(np.sqrt(spread / averaged) < 0.5 * s.tolerance * se):
        return f"its Monte Carlo error is below {0.5 * s.tolerance:g} standard errors"
    return ""


def _diverged(s: Settings, state: State, bad: int, why: int) -> DivergenceError:
    what, remedy = CAUSES[why]
    where = ""
    if s.checkpoint is not None:
        where = f", and {s.checkpoint} holds them: the same call with a smaller learning rate continues from there"
    message = (
        f"The run diverged at step {bad}: {what}. The last good parameters are those after step {state.step}{where}. "
        f"Remedies: {remedy}."
    )
    return DivergenceError(message, bad, state.phi)


def _bar(s: Settings, done: int) -> Any:
    if not s.progress:
        return None
    from tqdm import tqdm

    return tqdm(total=s.steps, initial=done, unit="step")
