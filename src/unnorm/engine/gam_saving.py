"""A `Gam` as a folder: JSON for what it is, npz for its numbers and rows. Nothing in it is code.

Terms are saved with their bases and penalties, so that the design is made again from the rows without looking at them
a second time; matrices that inference needs are saved as they are. What is read back gives the same numbers.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from .._base import storage
from .._version import __version__
from ..errors import InputError, UnnormError
from .arrow import Arrow, ArrowInverse, Blocks
from .core import build_design
from .gam_result import Gam
from .saved_checks import check
from .smoothed import Smoothed

CLASS = "Gam"
PLAIN = ("formula", "family", "method", "response", "link", "theta", "theta_known")  # fields of Gam that JSON holds
TABLES = ("pandas", "polars", "pyarrow", "modin", "cudf")  # kinds of tables that narwhals makes
APART = ("design", "slices", "inverse", "cross")  # of Smoothed: made again, or saved by their parts


def save(fit: Gam, path: str | os.PathLike[str]) -> None:
    """Write the folder, whole or not at all."""
    storage.write_folder(path, *described(fit))


def described(fit: Gam) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What a fit is, JSON-ready, and its arrays."""
    about: dict[str, Any] = {
        "unnorm": __version__,
        "class": CLASS,
        **{name: getattr(fit, name) for name in PLAIN},
        "notes": list(fit.notes),
        "whole": fit.whole,
        "offset_names": None if fit.offset_names is None else list(fit.offset_names),
        "backend": None if fit.backend is None else str(getattr(fit.backend, "value", fit.backend)),
        "terms": [term.to_dict() for term in fit.terms],
        "columns": list(fit.columns),
        "smoothed": {},
    }
    arrays: dict[str, np.ndarray] = {f"column.{i}": np.asarray(fit.columns[name]) for i, name in enumerate(fit.columns)}
    arrays |= {name: value for name in ("y", "weights", "offset") if (value := getattr(fit, name)) is not None}
    for i, term in enumerate(fit.terms):
        for j, penalty in enumerate(term.penalties):
            if penalty.root is not None:
                arrays[f"root.{i}.{j}"] = penalty.root
    inner = fit.smoothed
    for item in fields(Smoothed):
        value = getattr(inner, item.name)
        if isinstance(value, np.ndarray):
            arrays[f"smoothed.{item.name}"] = value
        elif item.name not in APART:
            about["smoothed"][item.name] = dict(value) if isinstance(value, Mapping) else value
    about["logdet"], about["exact"] = inner.inverse.logdet, inner.design.exact
    arrays["cross.shared"], arrays["inverse.sigma"] = inner.cross.shared, inner.inverse.sigma
    for name, parts in _blocks(inner).items():
        arrays[f"{name}.values"] = np.concatenate([part.ravel() for part in parts]) if len(parts) else np.empty(0)
        arrays[f"{name}.shapes"] = np.array([part.shape for part in parts], dtype=np.int64).reshape(-1, 2)
    return about, arrays


def _blocks(inner: Smoothed) -> dict[str, Blocks]:
    """The parts that belong to levels."""
    cross, inverse = inner.cross, inner.inverse
    return {
        "cross.own": cross.own, "cross.cross": cross.cross, "inverse.own": inverse.own, "inverse.slopes": inverse.slopes
    }  # fmt: skip


def load(path: str | os.PathLike[str]) -> Gam:
    """Read a saved Gam; a folder that holds anything else, or was changed, is refused."""
    about, arrays = storage.read_folder(path)
    where = storage.path_text(path)
    if about.get("class") != CLASS:
        raise InputError(f"{where} holds a {about.get('class', 'result')}, not a Gam; read it with un.load.")
    with storage.restoring(where, CLASS):
        try:
            return restored(about, arrays)
        except UnnormError as error:  # what a term says of rows that are not its own
            raise ValueError(error) from error


def restored(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Gam:
    """The fit that `described` described."""
    from ..terms.built import from_dict

    terms = []
    for i, saved in enumerate(about["terms"]):
        term = from_dict(saved)
        penalties = tuple(
            replace(penalty, root=arrays.get(f"root.{i}.{j}")) for j, penalty in enumerate(term.penalties)
        )
        terms.append(replace(term, penalties=penalties))  # pyright: ignore[reportArgumentType]
    columns = {name: arrays[f"column.{i}"] for i, name in enumerate(about["columns"])}
    y, beta = arrays["y"], arrays["smoothed.beta"]
    rest = beta.size - sum(term.size for term in terms)
    if rest not in (0, 1):  # before a design of any size is made
        raise ValueError(f"{beta.size} coefficients, and terms with {beta.size - rest}")
    intercept = rest == 1
    design = build_design(terms, columns, intercept=intercept, rows=y.size, exact=about.get("exact", False) is True)
    blocks = {
        name: _unpacked(arrays, name, design.own is not None)
        for name in ("cross.own", "cross.cross", "inverse.own", "inverse.slopes")
    }
    numbers = {item.name: arrays.get(f"smoothed.{item.name}", about["smoothed"].get(item.name)) for item in
               fields(Smoothed) if item.name not in APART}  # fmt: skip
    smoothed = Smoothed(
        **{**numbers, "sp_labels": tuple(numbers["sp_labels"]), "notes": tuple(numbers["notes"] or ())},
        design=design,
        slices=design.slices,
        cross=Arrow(arrays["cross.shared"], blocks["cross.own"], blocks["cross.cross"]),
        inverse=ArrowInverse(
            arrays["inverse.sigma"], blocks["inverse.own"], blocks["inverse.slopes"], float(about["logdet"])
        ),
    )
    names = about["offset_names"]
    made = Gam(
        **{name: about[name] for name in PLAIN},
        smoothed=smoothed,
        terms=tuple(terms),
        columns=columns,
        y=y,
        weights=arrays.get("weights"),
        offset=arrays.get("offset"),
        offset_names=None if names is None else tuple(names),
        backend=backend(about["backend"]),
        notes=tuple(about["notes"]),
        whole=about.get("whole"),
    )
    check(made)
    return made


def _unpacked(arrays: Mapping[str, np.ndarray], name: str, alike: bool) -> Blocks:
    values, shapes = arrays[f"{name}.values"], arrays[f"{name}.shapes"]
    if alike and len(shapes):
        return values.reshape(len(shapes), *shapes[0])
    ends = np.cumsum(np.prod(shapes, axis=1)) if len(shapes) else np.empty(0, np.int64)
    return tuple(
        values[end - rows * width : end].reshape(rows, width) for end, (rows, width) in zip(ends, shapes.tolist())
    )


def backend(name: str | None) -> Any:
    """The user's kind of table, where it is installed here; else plain dictionaries. No other names are looked for:
    a file may hold any, and looking for "a.b" runs a."""
    if name not in TABLES or importlib.util.find_spec(name) is None:
        return None
    import narwhals as nw

    return nw.Implementation.from_backend(name)  # pyright: ignore[reportArgumentType]
