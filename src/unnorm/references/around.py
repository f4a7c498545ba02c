"""Where a kernel is centred, and references made of one kernel around each centre."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, final

import numpy as np

from ..errors import CombinationError, InputError, listing
from .base import BoundReference, Given, Reference, used
from .kernels import Kernel
from .tracing import Traceable

if TYPE_CHECKING:
    from ..data.observations import Observations
    from ..domains import Domain

# "context": the previous point of a transition; "outcome": y_t itself (conditional NCE); names: columns of the context.
Around = Literal["context", "outcome"] | tuple[str, ...] | None


def check_around(around: Around) -> None:
    """Refuse, at construction, what is none of these choices."""
    if around in (None, "context", "outcome"):
        return
    if isinstance(around, str) or not all(isinstance(name, str) for name in around):
        raise InputError(
            "around must be None, 'context', 'outcome' or a tuple of context columns, e.g. ('x0', 'y0'); "
            f"got {around!r}."
        )


def given(around: Around) -> Given:
    """What a kernel centred there depends on."""
    if around is None:
        return "nothing"
    return "outcome" if around == "outcome" else "context"


def centres(around: Around, obs: Observations) -> np.ndarray:
    """(n, d): the point that q(·|x_t) is centred on, for every t."""
    if around == "outcome":
        return obs.outcome
    if around == "context":
        if obs.kind != "transitions":
            raise CombinationError(
                f"around='context' centres the reference on the previous point, which {obs.kind} observations do not "
                "have. Use around=None, or name the columns of the context that hold the centre: around=('x0', 'y0')."
            )
        return obs.previous()
    assert around is not None
    missing = [name for name in around if name not in obs.context]
    if missing:
        raise InputError(f"around names {listing(missing)}, not in the context; it has {listing(obs.context)}.")
    if len(around) != obs.dim:
        raise InputError(f"around must name one context column per coordinate ({obs.dim}); got {listing(around)}.")
    return np.column_stack([np.asarray(obs.context[name], dtype=np.float64) for name in around])


@final
class KernelReference(BoundReference):
    """K(·|c_t) with c_t the point `shift`, or the centre that `around` names moved by `shift`."""

    def __init__(
        self, domain: Domain, reference: Reference, kernel: Kernel, around: Around, shift: np.ndarray, text: str
    ) -> None:
        self.domain, self.reference = domain, reference
        self.kernel, self.shift, self._text = kernel, shift, text
        self.around: Around = around

    @property
    def given(self) -> Given:
        return given(self.around)

    @property
    def cube_dim(self) -> int:
        return self.kernel.cube_dim

    @property
    def periodic(self) -> bool:
        return self.kernel.periodic

    def _centres(self, obs: Observations, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The distinct centres, and which of them each row uses."""
        if self.around is None:
            return self.shift[None], np.zeros(len(t), dtype=np.intp)
        index, i = used(t, obs.n)
        return centres(self.around, obs)[index] + self.shift, i

    def from_unit(self, u: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        return self.kernel.from_unit(u, *self._centres(obs, t))

    def log_density(self, y: np.ndarray, obs: Observations, t: np.ndarray) -> np.ndarray:
        return self.kernel.log_density(y, *self._centres(obs, t))

    def traceable(self, obs: Observations) -> Traceable | None:
        moved = None if self.around is None else centres(self.around, obs) + self.shift
        return self.kernel.traceable(self.shift, moved)

    def describe(self) -> str:
        place = {None: "", "context": " around the previous point", "outcome": " around the observed point"}
        where = f" around {self.around}" if isinstance(self.around, tuple) else place[self.around]
        return f"{self._text}{where}; constant {self.kernel.constant}"
