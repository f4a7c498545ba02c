"""Draws docs/soap.png: a function on a lake with a spit of land, its thin-plate fit and its soap film.

python docs/soap_picture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unnorm as un

LAKE = un.Window([(0, 0), (4, 0), (4, 1.45), (0.8, 1.5), (4, 1.55), (4, 3), (0, 3)])


def truth(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """From −3.2 at the end of the lower arm to 3.2 at that of the upper one."""
    return np.where(y > 1.5, 1.0, -1.0) * np.maximum(x - 0.8, 0.0)


def main() -> None:
    rng = np.random.default_rng(1)
    x, y = LAKE.uniform(400, rng).T
    data = {"x": x, "y": y, "z": truth(x, y) + 0.7 * rng.normal(size=400)}
    plate = un.gam("z ~ s(x, y, k=50)", data)
    film = un.gam(un.s("x", "y", bs="so", k=20, xt={"boundary": LAKE}), data, response="z")
    u, v = np.meshgrid(np.linspace(0, 4, 241), np.linspace(0, 3, 181))
    places = np.column_stack([u.ravel(), v.ravel()])
    inside = LAKE.contains(places)
    grid = {"x": places[inside, 0], "y": places[inside, 1]}
    figures = {
        "the function": truth(grid["x"], grid["y"]),
        "s(x, y)": plate.predict(grid, se=False),
        "s(x, y, bs='so')": film.predict(grid, se=False),
    }
    figure, axes = plt.subplots(1, 3, figsize=(10, 2.9), sharey=True, layout="constrained")
    for axis, (name, values) in zip(axes, figures.items()):
        z = np.full(u.size, np.nan)
        z[inside] = values
        axis.contourf(u, v, z.reshape(u.shape), levels=np.linspace(-4, 4, 17), cmap="RdBu_r", extend="both")
        axis.plot(*np.vstack([LAKE.polygon.exterior.coords]).T, color="0.2", linewidth=0.9)
        error = np.sqrt(np.mean((values - figures["the function"]) ** 2))
        axis.set_title(name if error == 0 else f"{name}: rms error {error:.2f}", fontsize=10)
        axis.set_aspect("equal")
    figure.savefig(Path(__file__).parent / "soap.png", dpi=110)


if __name__ == "__main__":
    main()
