"""`Device`: where the row pass runs, and in which arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

from ...errors import InputError, MemoryLimitError, unknown

KINDS = ("gpu", "cpu")
PRECISIONS = ("float64", "float32")
_BESIDE = 4  # tiles that a pass holds at once: columns, weighted columns and their products


@final
@dataclass(frozen=True)
class Device:
    """The row pass through JAX, on a GPU or (`kind="cpu"`, to check one against the other) on the processor.

    float64 gives the numbers of the engine's own pass to rounding. float32 is quicker and its fits say what it cost:
    how many standard errors a float64 pass at the estimate would still move it.

    Args:
        kind: "gpu" or "cpu".
        precision: "float64" or "float32".

    >>> import numpy as np, unnorm as un
    >>> rng = np.random.default_rng(1)
    >>> x = rng.random(400)
    >>> data = {"x": x, "z": rng.random(400) < 0.5 + 0.4 * np.sin(6 * x)}
    >>> here = un.gam("z ~ s(x)", data, family="binomial")
    >>> there = un.gam("z ~ s(x)", data, family="binomial", device=un.Device("cpu"))
    >>> bool(abs(here.score - there.score) < 1e-8)
    True
    """

    kind: Literal["gpu", "cpu"] = "gpu"
    precision: Literal["float64", "float32"] = "float64"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(unknown("kind", self.kind, KINDS))
        if self.precision not in PRECISIONS:
            raise InputError(unknown("precision", self.precision, PRECISIONS))

    @property
    def jax(self) -> Any:
        """JAX's device, the first of its kind."""
        import jax

        try:
            return jax.devices(self.kind)[0]
        except RuntimeError as error:
            raise InputError(
                f"device={self.kind!r} needs a GPU that JAX can use, and JAX has {_found()} here. Install JAX for this "
                "GPU (pip install 'jax[cuda13]'), or leave device out."
            ) from error

    @property
    def free(self) -> int | None:
        """Bytes that JAX can still take there; None where it does not say (processors)."""
        told = self.jax.memory_stats()
        return None if told is None else int(told["bytes_limit"]) - int(told["bytes_in_use"])


def require_room(rows: int, tile: int, free: int | None) -> None:
    """Refuse rows of so many bytes, with the columns of a tile beside them, where less is free."""
    needed = rows + _BESIDE * tile
    if free is not None and needed > free:
        raise MemoryLimitError(
            f"The compact rows take {rows / 1e9:.2g} GB and a pass {_BESIDE * tile / 1e9:.2g} GB beside them; the "
            f"device has {free / 1e9:.2g} GB free. Ask for fewer reference points, close what else uses it, or leave "
            "device out."
        )


def _found() -> str:
    import jax

    return " and ".join(sorted({device.platform for device in jax.devices()}))


def device_of(given: str | Device | None) -> Device | None:
    """What `device=` means: nothing or "cpu" is the engine's own compiled pass."""
    if given is None or given == "cpu":
        return None
    if given == "gpu":
        return Device()
    if isinstance(given, Device):
        return given
    raise InputError(f"device must be 'cpu', 'gpu' or un.Device(...); got {given!r}.")
