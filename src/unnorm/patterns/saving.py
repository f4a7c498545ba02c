"""A `PatternFit` as a folder: JSON for what it is, npz for its numbers. Nothing in it is code.

The pattern, its windows, the dummy points, the engine's fit and the errors are saved; maps and expressions too, so that
what is read back predicts, simulates and draws envelopes. Users' functions are not saved: they are passed again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._base import storage
from .._version import __version__
from ..data import covariates as covariates_room
from ..data.covariates import Covariate
from ..domains import from_dict as domain_from_dict
from ..engine import gam_saving
from ..errors import InputError, listing
from ..results.smooths import loaded_errors, saved_errors
from .dummies import DrawnDummies
from .interactions import REGISTRY
from .places import Places
from .point_pattern import Pattern
from .result import PatternFit
from .rows import PatternModel
from .scores import FittedRows

CLASS = "PatternFit"
LABELS = ("names", "mark_name", "mark_levels", "replicate_name", "replicate_levels", "notes")  # of a Pattern
_ARRAY = "array:"  # in the JSON file, where an array is in the other


def save(fit: PatternFit, path: str | os.PathLike[str]) -> None:
    """Write the folder, whole or not at all."""
    fitted, pattern, model = fit.fitted, fit.pattern, fit.fitted.model
    arrays: dict[str, np.ndarray] = {"kept": fitted.kept, "log_rho": fitted.log_rho}
    arrays |= _places(pattern.places, "points.") | _places(fitted.dummies.places, "dummies.")
    gam, more = gam_saving.described(fitted.gam)
    arrays |= {f"gam.{name}": value for name, value in more.items()}
    errors, more = saved_errors(fit.errors, "errors.")
    described = [(one.name, one.to_dict()) for one in model.covariates]
    about = {
        "unnorm": __version__,
        "class": CLASS,
        "pattern": {name: _plain(getattr(pattern, name)) for name in LABELS},
        "windows": [window.to_dict() for window in dict.fromkeys(pattern.windows)],
        "window": [list(dict.fromkeys(pattern.windows)).index(window) for window in pattern.windows],
        "backend": None if pattern.backend is None else str(getattr(pattern.backend, "value", pattern.backend)),
        "terms": model.text,
        "interaction": None if model.interaction is None else model.interaction.to_dict(),
        "correction": model.correction,
        "covariates": [_packed(one, f"covariate.{i}", arrays) for i, (_, one) in enumerate(described) if one],
        "functions": [name for name, one in described if one is None],
        "design": fitted.dummies.design,
        "rho": None if callable(fitted.dummies.rho) else float(fitted.dummies.rho),
        "gam": gam,
        "errors": errors,
        "notes": list(fit.notes),
    }
    storage.write_folder(path, about, {**arrays, **more})


def load(path: str | os.PathLike[str], covariates: Sequence[Covariate] = ()) -> PatternFit:
    """Read a saved fit.

    Args:
        path: the folder that `PatternFit.save` wrote.
        covariates: the `un.Function` covariates of the model, which are not saved. Without them the numbers are there,
            but nothing that needs the covariates at other places.
    """
    about, arrays = storage.read_folder(path)
    where = storage.path_text(path)
    if about.get("class") != CLASS:
        raise InputError(f"{where} holds a {about.get('class', 'result')}, not a PatternFit; read it with un.load.")
    with storage.restoring(where, CLASS):
        return _restored(about, arrays, covariates)


def _restored(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray], given: Sequence[Covariate]) -> PatternFit:
    extra = [one.name for one in given if one.name not in about["functions"]]
    if extra:
        raise InputError(
            f"The saved fit has its own {listing(extra)}: pass only its functions, which are "
            f"{listing(about['functions']) or 'none'}."
        )
    windows = [domain_from_dict(one) for one in about["windows"]]
    labels = {name: _tuples(value) for name, value in about["pattern"].items()}
    pattern = Pattern(
        _read_places(arrays, "points."), windows=tuple(windows[k] for k in about["window"]),
        backend=gam_saving.backend(about["backend"]), **labels,
    )  # fmt: skip
    own = [covariates_room.from_dict(_unpacked(one, arrays)) for one in about["covariates"]]
    interaction = None if about["interaction"] is None else REGISTRY.read(about["interaction"])
    model = PatternModel.of(pattern, about["terms"], [*own, *given], interaction, about["correction"])
    drawn = DrawnDummies(_read_places(arrays, "dummies."), about["rho"] or _unknown_rho, about["design"], None)
    gam = gam_saving.restored(about["gam"], {k[4:]: value for k, value in arrays.items() if k.startswith("gam.")})
    kept = arrays["kept"]
    index = np.concatenate([np.arange(pattern.n), np.full(drawn.places.n, -1)])[kept]
    places = Places.joined([pattern.places, drawn.places]).take(kept)
    fitted = FittedRows(pattern, model, drawn, gam, places, index, kept, arrays["log_rho"])
    return PatternFit(fitted, loaded_errors(about["errors"], arrays, "errors."), tuple(about["notes"]))


def _unknown_rho(xy: np.ndarray) -> np.ndarray:
    raise InputError("The function rho of the dummy points was not saved: fit again.")


def _places(places: Places, prefix: str) -> dict[str, np.ndarray]:
    return {f"{prefix}{name}": getattr(places, name) for name in ("xy", "mark", "replicate")}


def _read_places(arrays: Mapping[str, np.ndarray], prefix: str) -> Places:
    return Places(*(arrays[f"{prefix}{name}"] for name in ("xy", "mark", "replicate")))


def _plain(value: Any) -> Any:
    """Tuples as lists, numpy's numbers as Python's."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value


def _packed(value: Any, key: str, arrays: dict[str, np.ndarray]) -> Any:
    """A description with its arrays put among `arrays`."""
    if isinstance(value, np.ndarray):
        arrays[key] = value
        return _ARRAY + key
    if isinstance(value, Mapping):
        return {name: _packed(one, f"{key}.{name}", arrays) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_packed(one, f"{key}.{i}", arrays) for i, one in enumerate(value)]
    return _plain(value)


def _unpacked(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """What `_packed` packed."""
    if isinstance(value, str) and value.startswith(_ARRAY):
        return arrays[value.removeprefix(_ARRAY)]
    if isinstance(value, Mapping):
        return {name: _unpacked(one, arrays) for name, one in value.items()}
    return [_unpacked(one, arrays) for one in value] if isinstance(value, list) else value
