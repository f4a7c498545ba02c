"""`load`: whatever was saved, by the class that its folder names."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._base import storage
from ..errors import InputError

if TYPE_CHECKING:
    from ..bayes.draws import Draws
    from ..directions.result import DirectionFit
    from ..engine.gam_result import Gam
    from ..models.base import Unnormalised
    from ..patterns.result import PatternFit
    from ..results.fit import Fit
    from . import FitGroup

# what is saved with its model, and the module that reads it
_COMPLETE = {"Gam": "..engine.gam_saving", "PatternFit": "..patterns.saving", "DirectionFit": "..directions.saving"}


def load(
    path: str | os.PathLike[str], model: Unnormalised | None = None
) -> Fit | FitGroup | Draws | Gam | PatternFit | DirectionFit:
    """Read a saved `Fit`, `FitGroup`, `Draws`, `Gam`, `PatternFit` or `DirectionFit`. With `model`, everything works;
    without it, numbers and tables do (the last three need no model, and all of them works).

    Args:
        path: the folder that `save` wrote.
        model: the model that was fitted; its names and domain must match.

    Example:
        >>> import tempfile, unnorm as un
        >>> model = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(-1, 1))
        >>> fit = un.fit(model, un.iid([0.1, 0.5, 0.7]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fit.save(folder + "/fit")
        ...     again = un.load(folder + "/fit", model)
        >>> bool((again.estimate == fit.estimate).all())
        True
    """
    return storage.settled(path, lambda: _loaded(path, model))


def _loaded(path: str | os.PathLike[str], model: Unnormalised | None) -> Any:
    kind = str(storage.read_folder(path)[0].get("class"))
    if kind == "FitGroup":
        from . import load_group

        return load_group(path, model)
    if kind == "Draws":
        from ..bayes.draws import Draws

        return Draws.load(path)
    if kind in _COMPLETE:
        if model is not None:
            raise InputError(
                f"{storage.path_text(path)} holds a {kind}, which needs no model: read it with un.load(path)."
            )
        return import_module(_COMPLETE[kind], __package__).load(path)
    if kind == "SGDCheckpoint":
        raise InputError(
            f"{storage.path_text(path)} is the checkpoint of a run, not a fit: the call of un.fit that wrote it goes "
            "on from there."
        )
    from ..results.saving import load as load_fit

    return load_fit(path, model)
