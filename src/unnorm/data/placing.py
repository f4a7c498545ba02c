"""Which window each observation has, where the domain has one for each context (`un.Windows`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from .._base.words import either
from ..domains.base import Domain
from ..errors import CombinationError, DataError, listing

if TYPE_CHECKING:
    from .observations import Observations


@final
@dataclass(frozen=True, eq=False)
class Placed:
    """Positions in `domain.windows`, one for each observation."""

    domain: Domain
    code: np.ndarray  # (n,)

    def take(self, index: Any) -> Placed:
        return Placed(self.domain, self.code[index])


def placed(domain: Domain, obs: Observations) -> Observations:
    """The observations with their windows looked up, where there are several."""
    if domain.key is None or (obs.placed is not None and obs.placed.domain == domain):
        return obs
    return replace(obs, placed=Placed(domain, window_codes(domain, obs)))


def window_codes(domain: Domain, obs: Observations) -> np.ndarray:
    """(n,) positions in `domain.windows`; zeros where all share one."""
    if domain.key is None:
        return np.zeros(obs.n, dtype=np.intp)
    if obs.placed is not None and obs.placed.domain == domain:
        return obs.placed.code
    if not obs.has_context:
        raise CombinationError(
            f"Each {domain.key} has its own window, and independent outcomes share all reference points. Make the "
            f"observations with un.conditional(…, x={domain.key!r}), or un.transitions."
        )
    if domain.key in obs.columns:
        return domain.codes(obs.columns[domain.key])
    raise DataError(
        f"The windows go by the column {domain.key!r}, which the observations do not have; they have "
        f"{listing([*obs.group, *obs.context])}. {either('Name it in group= or extra=', 'Name it in --group')}."
    )


def by_window(domain: Domain, obs: Observations) -> Iterator[tuple[Domain, Any]]:
    """Each window that occurs, with the observations that have it, ascending; Ω and all of them where they share it."""
    if domain.key is None:
        yield domain, slice(None)
        return
    code = window_codes(domain, obs)
    order = np.argsort(code, kind="stable")
    cuts = np.flatnonzero(np.diff(code[order])) + 1
    for rows in np.split(order, cuts):
        if rows.size:
            yield domain.windows[code[rows[0]]], rows


def commonest(domain: Domain, obs: Observations) -> tuple[Domain, int]:
    """The window that most observations have, and the first of them: where a picture of Ω is drawn."""
    code = window_codes(domain, obs)
    most = int(np.argmax(np.bincount(code))) if obs.n else 0
    return domain.windows[most], int(np.argmax(code == most))


def from_unit(domain: Domain, obs: Observations, u: np.ndarray) -> np.ndarray:
    """(n, cube_dim) points of the unit cube → a place in the window of each observation."""
    out = np.empty((obs.n, domain.dim))
    for window, rows in by_window(domain, obs):
        out[rows] = window.from_unit(u[rows])
    return out


def within(domain: Domain, obs: Observations, y: np.ndarray) -> np.ndarray:
    """(n,) whether y_t (n, d) lies in the window of observation t."""
    out = np.empty(obs.n, dtype=bool)
    for window, rows in by_window(domain, obs):
        out[rows] = window.contains(y[rows])
    return out


@final
@dataclass(frozen=True, eq=False)
class Frame:
    """Centre, lower corner and width of each window: what covariates relative to the window read."""

    domain: Domain
    centre: np.ndarray  # (W, 2)
    lower: np.ndarray  # (W, 2)
    width: np.ndarray  # (W, 2)

    @property
    def shared(self) -> bool:
        """Whether there is one window for all."""
        return self.domain.key is None

    def window(self, obs: Observations, t: np.ndarray) -> np.ndarray:
        """The window of each row."""
        return np.zeros(1, dtype=np.intp) if self.shared else window_codes(self.domain, obs)[t]


def frame_of(domain: Domain) -> Frame | None:
    """The frame of regions of the plane; None elsewhere."""
    return _frame(domain) if domain.dim == 2 and domain.enclosing_box is not None else None


@lru_cache(maxsize=8)
def _frame(domain: Domain) -> Frame:
    boxes = [box for window in domain.windows if (box := window.enclosing_box) is not None]
    centres = [centre for window in domain.windows if (centre := window.centre) is not None]
    lower = np.stack([low for low, _ in boxes])
    return Frame(domain, np.stack(centres), lower, np.stack([high for _, high in boxes]) - lower)


def log_volumes(domain: Domain, obs: Observations) -> np.ndarray:
    """(n,) log |Ω| of each observation's window."""
    if domain.key is None:
        return np.full(obs.n, domain.log_volume)
    return np.array([window.log_volume for window in domain.windows])[window_codes(domain, obs)]
