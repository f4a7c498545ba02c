"""`Draws`: the frozen result of sampling, with R-hat, effective sample sizes and an ArviZ DataTree."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np

from .._base import storage
from .._base.extras import extra
from .._version import __version__
from ..errors import InputError


@final
@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """Draws of θ and of the normalising constants: arrays (chains, draws, …).

    `tree` is an ArviZ DataTree (group "posterior"); `summary()` a text; `rhat` and `ess` are ArviZ's rank-normalised
    ones.

    Example:
        >>> import numpy as np, unnorm as un
        >>> draws = un.Draws(("a",), np.zeros((2, 100, 1)), np.zeros((2, 100, 0)), {})
        >>> draws.chains, draws.quantile([0.5]).shape
        (2, (1, 1))
    """

    names: tuple[str, ...]  #: of the parameters
    theta: np.ndarray  #: (chains, draws, p)
    nu: np.ndarray  #: (chains, draws, q); q = 0 where the constants were not kept
    settings: Mapping[str, Any]  #: model, prior and sampler, in words
    diagnostics: Mapping[str, Any] = field(default_factory=dict)  #: figures by name
    notes: tuple[str, ...] = ()  #: sentences for a careful reader
    seed: int | None = None  #: of the sampler
    model: Any = None  #: f; None where saved draws were loaded
    stats: Mapping[str, np.ndarray] = field(default_factory=dict)  #: (chains, draws) of each, as ArviZ names them

    def __repr__(self) -> str:
        """A line; `summary()` has the figures."""
        named = ", ".join(self.names[:6]) + (", …" if len(self.names) > 6 else "")
        return f"Draws({named}: {self.chains} chains of {self.theta.shape[1]:,})"

    @property
    def chains(self) -> int:
        """How many chains."""
        return self.theta.shape[0]

    @property
    def mean(self) -> np.ndarray:
        """(p,) posterior means."""
        return self.theta.mean(axis=(0, 1))

    @property
    def sd(self) -> np.ndarray:
        """(p,) posterior standard deviations."""
        return self.theta.reshape(-1, len(self.names)).std(axis=0, ddof=1)

    def quantile(self, q: Any) -> np.ndarray:
        """Quantiles of every parameter, (len(q), p).

        Args:
            q: probabilities.
        """
        return np.quantile(self.theta.reshape(-1, len(self.names)), np.atleast_1d(q), axis=0)

    @cached_property
    def tree(self) -> Any:
        """xarray.DataTree in ArviZ's schema: posterior (theta, nu, and one variable for each name) and sample_stats.

        With ArviZ 1 it goes straight into its functions; with 0.x through `arviz.from_datatree`.
        """
        xr = extra("xarray", "stochastic", "Draws.tree")
        coords = {"chain": np.arange(self.chains), "draw": np.arange(self.theta.shape[1])}
        variables: dict[str, Any] = {"theta": (("chain", "draw", "parameter"), self.theta)}
        coords["parameter"] = np.array(self.names)
        if self.nu.shape[2]:
            variables["nu"] = (("chain", "draw", "constant"), self.nu)
            coords["constant"] = np.arange(self.nu.shape[2])
        if len(self.names) <= 100:
            free = [name for name in self.names if name not in (*variables, *coords)]
            variables |= {name: (("chain", "draw"), self.theta[:, :, self.names.index(name)]) for name in free}
        attributes = {"inference_library": "unnorm", "inference_library_version": __version__}
        groups = {"/posterior": xr.Dataset(variables, coords=coords, attrs=attributes)}
        if self.stats:
            stats = {name: (("chain", "draw"), values) for name, values in self.stats.items()}
            own = {name: coords[name] for name in ("chain", "draw")}
            groups["/sample_stats"] = xr.Dataset(stats, coords=own, attrs=attributes)
        return xr.DataTree.from_dict(groups)

    @cached_property
    def rhat(self) -> np.ndarray:
        """(p,) rank-normalised split R-hat (Vehtari et al. 2021); above 1.01 the chains have not mixed."""
        return np.array([float(_arviz().rhat(self.theta[:, :, j])) for j in range(len(self.names))])

    @cached_property
    def ess(self) -> np.ndarray:
        """(p,) effective sample sizes (bulk)."""
        return np.array([float(_arviz().ess(self.theta[:, :, j])) for j in range(len(self.names))])

    def summary(self, most: int = 50) -> str:
        """The posterior as a text for people.

        Args:
            most: parameters that are listed, at most.
        """
        lines = [
            f"{self.settings.get('sampler', {}).get('sampler', '?')}: {self.chains} chains of "
            f"{self.theta.shape[1]} draws",
            f"{'term':<20} {'mean':>11} {'sd':>10} {'5 %':>11} {'95 %':>11} {'ess':>7} {'R-hat':>6}",
        ]
        low, high = self.quantile([0.05, 0.95])
        for j, name in enumerate(self.names[:most]):
            lines.append(
                f"{name:<20} {self.mean[j]:>11.5g} {self.sd[j]:>10.3g} {low[j]:>11.5g} {high[j]:>11.5g} "
                f"{self.ess[j]:>7.0f} {self.rhat[j]:>6.3f}"
            )
        if len(self.names) > most:
            lines.append(f"… and {len(self.names) - most} more")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the draws as a folder of JSON and npz; `Draws.load` reads it.

        Args:
            path: of the folder.
        """
        about = {
            "unnorm": __version__,
            "class": "Draws",
            "names": list(self.names),
            "settings": dict(self.settings),
            "diagnostics": dict(self.diagnostics),
            "notes": list(self.notes),
            "seed": self.seed,
        }
        stats = {f"stats.{name}": values for name, values in self.stats.items()}
        storage.write_folder(path, about, {"theta": self.theta, "nu": self.nu, **stats})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Draws:
        """Read saved draws.

        Args:
            path: of the folder.
        """
        about, arrays = storage.read_folder(path)
        if about.get("class") != "Draws":
            raise InputError(f"{storage.path_text(path)} holds a {about.get('class')}, not Draws.")
        with storage.restoring(path, "draws"):
            if arrays["theta"].ndim != 3 or arrays["theta"].shape[2] != len(about["names"]):
                raise ValueError(f"{len(about['names'])} names for draws of shape {arrays['theta'].shape}")
            return cls(
                tuple(about["names"]),
                arrays["theta"],
                arrays["nu"],
                about["settings"],
                about["diagnostics"],
                tuple(about["notes"]),
                about["seed"],
                stats={name[6:]: values for name, values in arrays.items() if name.startswith("stats.")},
            )


def _arviz() -> Any:
    """ArviZ 0.x announces its next version on import, with a FutureWarning that is nothing of the user's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return extra("arviz", "stochastic", "R-hat and effective sample sizes")
