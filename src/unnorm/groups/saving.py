"""Conditions as part of a saved group: a folder for each condition's fit, the differences among the group's arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..models.base import Unnormalised
from ..results.fit import Fit
from ..results.saving import load
from .conditions import COLUMNS, Conditions
from .difference import Difference


def condition_parts(about: Mapping[str, Any]) -> list[str]:
    """The folders' names."""
    return [f"condition-{i}" for i in range(len(about["names"]))]


def saved_conditions(found: Conditions) -> tuple[dict[str, Any], dict[str, np.ndarray], dict[str, Fit]]:
    """A description, arrays, and the fits that have folders of their own."""
    saved = [one.save() for one in found.differences]
    about = {
        "by": found.by,
        "between": found.between,
        "design": found.design,
        "names": list(found.names),
        "members": {name: list(levels) for name, levels in found.members.items()},
        "cells": dict(found.cells),
        "differences": [one for one, _ in saved],
        "notes": list(found.notes),
    }
    arrays = {f"difference.{i}.{name}": array for i, (_, more) in enumerate(saved) for name, array in more.items()}
    arrays |= {f"tests.{name}": np.asarray(found.tests[name]) for name in COLUMNS}
    return about, arrays, dict(zip(condition_parts(about), found.fits.values()))


def loaded_conditions(
    about: Mapping[str, Any], arrays: Mapping[str, np.ndarray], path: Path, model: Unnormalised | None
) -> Conditions:
    """What `saved_conditions` described."""
    differences = []
    for i, one in enumerate(about["differences"]):
        prefix = f"difference.{i}."
        mine = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        differences.append(Difference.load(one, mine))
    folders = condition_parts(about)
    return Conditions(
        by=about["by"],
        between=about["between"],
        design=about["design"],
        members={name: tuple(levels) for name, levels in about["members"].items()},
        cells=dict(about["cells"]),
        fits={str(name): load(path / folder, model) for name, folder in zip(about["names"], folders)},
        differences=tuple(differences),
        tests={name: arrays[f"tests.{name}"] for name in COLUMNS},
        notes=tuple(about["notes"]),
    )
