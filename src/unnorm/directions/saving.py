"""A `DirectionFit` as a folder: JSON for what it is, npz for its numbers. Nothing in it is code.

The family is saved by the function that makes it, with its arguments; the fit as `Fit.save` saves it; and the data,
from which the family makes its chart and its rule again, so that what is read back reads θ in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._base import storage
from .._version import __version__
from ..data.observations import Observations
from ..data.units import unit_of
from ..engine import gam_saving
from ..errors import CombinationError, InputError
from ..results import saving as fits
from .family import Family
from .result import DirectionFit

CLASS = "DirectionFit"
_ARRAYS = ("outcome", "sequence", "weight", "offset", "row")  # of observations, those that are there
_COLUMNS = ("context", "group")


def save(found: DirectionFit, path: str | os.PathLike[str]) -> None:
    """Write the folder, whole or not at all."""
    obs = found.fit.obs
    if obs is None:
        raise CombinationError("This fit has no observations, from which its family makes its chart: fit again.")
    fit, arrays = fits.described(found.fit)
    own = {f"obs.{name}": getattr(obs, name) for name in _ARRAYS if getattr(obs, name) is not None}
    for part in _COLUMNS:
        own |= {f"obs.{part}.{name}": column for name, column in getattr(obs, part).items()}
    about = {
        "unnorm": __version__,
        "class": CLASS,
        "family": found.family.to_dict(),
        "chart": found.which,
        "observations": {
            "kind": obs.kind, "outcome_names": list(obs.outcome_names), "lags": obs.lags, "extra": list(obs.extra),
            "notes": list(obs.notes), "unit": obs.unit, "context": list(obs.context), "group": list(obs.group),
            "backend": None if obs.backend is None else str(getattr(obs.backend, "value", obs.backend)),
        },
        "fit": fit,
    }  # fmt: skip
    storage.write_folder(path, about, {**own, **{f"fit.{name}": array for name, array in arrays.items()}})


def load(path: str | os.PathLike[str]) -> DirectionFit:
    """Read a saved fit; everything works, as with the fit that was saved."""
    about, arrays = storage.read_folder(path)
    where = storage.path_text(path)
    if about.get("class") != CLASS:
        raise InputError(f"{where} holds a {about.get('class', 'result')}, not a DirectionFit; read it with un.load.")
    try:
        family, obs = Family.from_dict(about["family"]), _observations(about["observations"], arrays)
        chart = family.make(obs)[about["chart"]]
        own = {name.removeprefix("fit."): array for name, array in arrays.items() if name.startswith("fit.")}
        saved, unit = about["fit"], unit_of(obs.unit or "radians")
        which = int(about["chart"])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(f"The saved DirectionFit {where} is damaged: {error!r} is missing or malformed.") from error
    fit = replace(fits.restored(saved, own, chart.model, where), obs=obs)
    return DirectionFit(family, chart, fit, unit, which)


def _observations(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Observations:
    columns: dict[str, Any] = {part: {n: arrays[f"obs.{part}.{n}"] for n in about[part]} for part in _COLUMNS}
    columns |= {name: arrays.get(f"obs.{name}") for name in _ARRAYS}
    return Observations(
        about["kind"], outcome_names=tuple(about["outcome_names"]), lags=int(about["lags"]),
        extra=tuple(about["extra"]), notes=tuple(about["notes"]), unit=about["unit"],
        backend=gam_saving.backend(about["backend"]), **columns,
    )  # fmt: skip
