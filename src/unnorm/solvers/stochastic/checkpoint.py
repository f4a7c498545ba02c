"""What a run needs to continue: its settings, its state, and the folder that holds the state between two blocks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._base import storage
from ..._base.atomic import recover
from ...errors import InputError
from .estimator import Estimator
from .renewal import with_reference, with_smoothing


@dataclass(frozen=True)
class Settings:
    """What the loop needs to know; `SGD` fills it in."""

    optimiser: Any  # an optax GradientTransformation, or what `loop` takes in its place
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
    loop: Callable[..., Any]  # the steps of one block: `loop.block`, or `row_steps.block`
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
    total: np.ndarray  # sum of the iterates averaged so far (many parameters)
    counted: int  # how many they are
    history: dict[str, list[float]]
    stopped: str = ""

    def copy(self) -> State:
        """A state that can be changed while this one is kept."""
        return replace(self, means=list(self.means), history={k: list(v) for k, v in self.history.items()})


def _fingerprint(e: Estimator, s: Settings) -> dict[str, Any]:
    """What must be the same for a run to continue: the problem and the settings that change its numbers."""
    return {
        "size": e.size,
        "n": e.obs.n,
        "data": float(np.sum(e.obs.outcome * np.cos(np.arange(e.obs.outcome.size)).reshape(e.obs.outcome.shape))),
        "loss": e.loss,
        "dtype": e.dtype,
        "block": s.block,
        **s.about,
    }


def save(e: Estimator, s: Settings, state: State, seed: int) -> None:
    if s.checkpoint is None:
        return
    import jax

    arrays = {f"opt{j}": np.asarray(leaf) for j, leaf in enumerate(jax.tree.leaves(state.opt_state))}
    arrays |= {
        "phi": state.phi,
        "total": state.total,
        "means": np.reshape(state.means, (len(state.means), -1 if state.means else 0)),
    }
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


def resume(e: Estimator, s: Settings, seed: int, fresh: State) -> tuple[State, Estimator]:
    """The state in the checkpoint where there is one, else the fresh one."""
    if s.checkpoint is None:
        return fresh, e
    recover(Path(s.checkpoint))
    if not os.path.exists(s.checkpoint):
        return fresh, e
    about, arrays = storage.read_folder(s.checkpoint)
    if about.get("class") != "SGDCheckpoint":
        raise InputError(f"{s.checkpoint} is not a checkpoint of SGD; choose another path.")
    with storage.restoring(s.checkpoint, "checkpoint"):
        return _restored(e, s, seed, fresh, about, arrays)


def _restored(
    e: Estimator, s: Settings, seed: int, fresh: State, about: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[State, Estimator]:
    """The state that a checkpoint holds, where it belongs to this run."""
    import jax

    here = _fingerprint(e, s)
    differ = sorted(key for key in here if about["fingerprint"].get(key) != here[key])
    if differ or about["seed"] != seed:
        what = ", ".join(differ) or "seed"
        raise InputError(
            f"The checkpoint {s.checkpoint} belongs to another run: {what} differ(s). Use the same data, settings and "
            "rng to continue it, or choose another path."
        )
    leaves, treedef = jax.tree.flatten(fresh.opt_state)
    saved = [arrays[name] for name in sorted((n for n in arrays if n.startswith("opt")), key=lambda n: int(n[3:]))]
    if [np.shape(leaf) for leaf in leaves] != [array.shape for array in saved]:
        raise InputError(
            f"The checkpoint {s.checkpoint} belongs to another optimiser: its state has another form. Use the same "
            "kind of optimiser (its learning rate may differ), or choose another path."
        )
    if arrays["phi"].shape != fresh.phi.shape or arrays["lam"].shape != fresh.lam.shape:
        raise ValueError("its parameters have another form")
    opt_state = jax.tree.unflatten(treedef, saved)
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
        from ...references import from_dict

        e = with_reference(e, from_dict(about["reference"]).bind(e.model.domain, e.obs))
    if state.lam.size:
        e = with_smoothing(e, state.lam)
    return state, e
