"""spatstat's figures (tests/patterns/spatstat, made by figures.R there), and the patterns they are about."""

import csv
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import unnorm as un

HERE = Path(__file__).parent / "spatstat"
SHARED = Path(__file__).parents[3] / "shared" / "data"
STAR = un.Window([(0, 0), (4, 0), (4, 3), (2, 2), (0, 3)], holes=[[(1, 1), (2, 1), (2, 1.6), (1, 1.6)]])
WINDOWS = {
    "bei": un.Box((0, 1000), (0, 500)),
    "pines": un.Box((0, 96), (0, 100)),
    "redwood": un.Box((0, 1), (0, 1)),
    "marked": un.Box((0, 1), (0, 1)),
    "star": STAR,
}
FILES = {"bei": "pp_bei_points.csv", "pines": "pp_swedishpines.csv", "redwood": "pp_redwoodfull.csv"}


@lru_cache
def read(name: str, folder: Path = HERE) -> dict[str, np.ndarray]:
    with (folder / name).open() as file:
        rows = list(csv.DictReader(file))
    return {column: np.array([row[column] for row in rows]) for column in rows[0]}


def pattern(name: str) -> un.Pattern:
    """The pattern of this name; those of spatstat.data are in the shared data folder."""
    if name in FILES:
        if not (SHARED / FILES[name]).is_file():
            pytest.skip("the shared data folder is absent")
        table = read(FILES[name], SHARED)
        return un.pattern({k: table[k].astype(float) for k in ("x", "y")}, y=("x", "y"), window=WINDOWS[name])
    table = read("points.csv")
    here = table["pattern"] == name
    columns = {k: table[k][here].astype(float) for k in ("x", "y")}
    if name != "marked":
        return un.pattern(columns, y=("x", "y"), window=WINDOWS[name])
    return un.pattern(columns | {"type": table["mark"][here]}, y=("x", "y"), window=WINDOWS[name], marks="type")


def dummies(name: str, rho: float, how: str) -> un.Dummies:
    table = read("dummies.csv")
    here = table["set"] == name
    points = {k: table[k][here].astype(float) for k in ("x", "y")}
    if name == "marked":
        points["type"] = table["mark"][here]
    return un.Dummies(points, rho=rho, design=how)
