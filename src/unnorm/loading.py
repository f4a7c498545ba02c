"""`load`: whatever was saved, by the class that its folder names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import storage

if TYPE_CHECKING:
    from .groups import FitGroup
    from .models.base import Unnormalised
    from .results import Fit


def load(path: str | os.PathLike[str], model: Unnormalised | None = None) -> Fit | FitGroup:
    """Read a saved `Fit` or `FitGroup`. With `model`, everything works; without it, numbers and tables do.

    Args:
        path: the folder that `save` wrote.
        model: the model that was fitted; its names and domain must match.
    """
    if storage.read_folder(path)[0].get("class") == "FitGroup":
        from .groups import load_group

        return load_group(path, model)
    from .results import load as load_fit

    return load_fit(path, model)
