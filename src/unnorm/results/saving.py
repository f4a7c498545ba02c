"""Fits on disk: JSON and npz, never code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._base import storage
from .._version import __version__
from ..errors import InputError
from ..models.base import Unnormalised
from .fit import Fit
from .normaliser_check import Anchoring
from .smooths import SmoothPart, loaded_errors, saved_errors

FIELDS = (
    *("loglik", "value", "is_likelihood", "converged", "reason", "iterations", "n", "n_rows", "kind", "seed"),
    *("no_errors", "assumes_model", "constants", "constants_failed"),
)


def save(fit: Fit, path: str | os.PathLike[str]) -> None:
    """Write the folder, whole or not at all."""
    storage.write_folder(path, *described(fit))


def described(fit: Fit) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is saved of a fit: its description as JSON, and its arrays."""
    diagnostics = dict(fit.diagnostics)
    if fit.evidence is not None:
        diagnostics["evidence"] = fit.evidence.computed
    about = {
        "unnorm": __version__,
        "class": "Fit",
        "names": list(fit.names),
        **{name: getattr(fit, name) for name in FIELDS},
        "settings": fit.settings,
        "notes": list(fit.notes),
        "diagnostics": diagnostics,
        "anchoring": None if fit.anchoring is None else fit.anchoring.to_dict(),
    }
    arrays = {"estimate": fit.estimate, "nu": fit.nu}
    if fit.nu_se is not None:
        arrays["nu_se"] = fit.nu_se
    if fit.errors is not None:
        about["errors"], more = saved_errors(fit.errors, "errors.")
        arrays |= more
    if fit.smooths is not None:
        about["smooths"], more = fit.smooths.save()
        arrays |= more
    return about, arrays


def load(path: str | os.PathLike[str], model: Unnormalised | None = None) -> Fit:
    """Read a saved fit. With `model`, everything works; without it, numbers and tables do.

    Args:
        path: the folder that `Fit.save` wrote.
        model: the model that was fitted; its names and domain must match.
    """
    about, arrays = storage.read_folder(path)
    if about.get("class") != "Fit":
        raise InputError(
            f"{storage.path_text(path)} holds a {about.get('class', 'result')}, not a Fit; read it with un.load."
        )
    return restored(about, arrays, model, storage.path_text(path))


def restored(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray], model: Unnormalised | None, where: str) -> Fit:
    """The fit that `described` described; `where` it was saved, for messages."""
    with storage.restoring(where):
        fit = Fit(
            names=tuple(about["names"]),
            estimate=arrays["estimate"],
            nu=arrays["nu"],
            nu_se=arrays.get("nu_se"),
            loglik=float(about["loglik"]),
            value=float(about["value"]),
            is_likelihood=bool(about["is_likelihood"]),
            converged=bool(about["converged"]),
            reason=str(about["reason"]),
            iterations=int(about["iterations"]),
            n=about["n"],
            n_rows=int(about["n_rows"] if "n_rows" in about else about["rows"]),  # as it was called before 0.2
            kind=about["kind"],
            settings=about["settings"],
            notes=tuple(about["notes"]),
            diagnostics=about["diagnostics"],
            seed=about["seed"],
            errors=loaded_errors(about["errors"], arrays, "errors.") if "errors" in about else None,
            no_errors=about["no_errors"],
            assumes_model=bool(about["assumes_model"]),
            smooths=SmoothPart.load(about["smooths"], arrays) if "smooths" in about else None,
            anchoring=None if about["anchoring"] is None else Anchoring.from_dict(about["anchoring"]),
            constants=about["constants"],
            constants_failed=bool(about["constants_failed"]),
        )
        _check(fit)
        if model is None:
            return fit
        saved, given = fit.settings["model"], model.to_dict()
        if model.base is not None and "base" in saved:  # whose parameters were fitted
            model = model.over(model.base.from_dict(saved["base"]))
            given = model.to_dict()
        if differ := [key for key in {**saved, **given} if saved.get(key) != given.get(key)]:
            which = "; ".join(f"{key}: saved {saved.get(key)!r}, given {given.get(key)!r}" for key in differ)
            raise InputError(f"The model given does not match the saved fit: {which}.")
        return replace(fit, model=model)


def _check(fit: Fit) -> None:
    """That the parts of a saved fit fit together."""
    p = len(fit.names)
    texts = (*fit.names, *fit.notes, fit.kind)
    if not all(isinstance(one, str) for one in texts) or fit.estimate.shape != (p,) or fit.nu.dtype.kind != "f":
        raise ValueError("names, notes and estimates do not belong together")
    if fit.estimate.dtype.kind != "f" or (fit.errors is not None and fit.errors.total.shape != (p, p)):
        raise ValueError("estimates and their errors do not belong together")
    if (
        not isinstance(fit.settings, dict)
        or not isinstance(fit.diagnostics, dict)
        or not isinstance(fit.n, int | float)
    ):
        raise ValueError("settings, diagnostics and counts are not what they were")
    fit.summary()  # what cannot be shown was not saved so
