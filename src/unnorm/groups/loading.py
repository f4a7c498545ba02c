"""`load`: whatever was saved, by the class that its folder names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .._base import storage
from ..errors import InputError

if TYPE_CHECKING:
    from ..bayes.draws import Draws
    from ..engine.gam_result import Gam
    from ..models.base import Unnormalised
    from ..patterns.result import PatternFit
    from ..results.fit import Fit
    from . import FitGroup


def load(path: str | os.PathLike[str], model: Unnormalised | None = None) -> Fit | FitGroup | Draws | Gam | PatternFit:
    """Read a saved `Fit`, `FitGroup`, `Draws`, `Gam` or `PatternFit`. With `model`, everything works; without it,
    numbers and tables do (a `Gam` or a `PatternFit` has no model, and all of it works).

    Args:
        path: the folder that `save` wrote.
        model: the model that was fitted; its names and domain must match.
    """
    kind = storage.read_folder(path)[0].get("class")
    if kind == "FitGroup":
        from . import load_group

        return load_group(path, model)
    if kind == "Draws":
        from ..bayes.draws import Draws

        return Draws.load(path)
    if kind == "Gam":
        from ..engine.gam_saving import load as load_gam

        if model is not None:
            raise InputError(f"{os.fspath(path)} holds a Gam, which needs no model: read it with un.load(path).")
        return load_gam(path)
    if kind == "PatternFit":
        from ..patterns.saving import load as load_pattern

        if model is not None:
            raise InputError(f"{os.fspath(path)} holds a PatternFit, which needs no model: read it with un.load(path).")
        return load_pattern(path)
    if kind == "SGDCheckpoint":
        raise InputError(
            f"{os.fspath(path)} is the checkpoint of a run, not a fit: the call of un.fit that wrote it goes "
            "on from there."
        )
    from ..results.saving import load as load_fit

    return load_fit(path, model)
