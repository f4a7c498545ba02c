"""A red deer: from a table of fixes and a grid of forest to selection, movement kernel and a map of utilisation.

    python examples/deer.py DATA [PICTURE.png]

DATA is a folder with animal_deer_track.csv and animal_deer_forest_grid.csv (amt::deer and amt::sh_forest as CSV).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import unnorm as un


def read(path: Path) -> dict[str, np.ndarray]:
    table = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
    return {name.strip('"'): _plain(table[name]) for name in table.dtype.names}


def _plain(column: np.ndarray) -> np.ndarray:
    return np.char.strip(column, '"') if column.dtype.kind == "U" else column


def show(title: str, table: dict[str, np.ndarray]) -> None:
    print(f"\n{title}")
    for row in zip(*table.values()):
        print("  " + "  ".join(f"{cell:>14}" if isinstance(cell, str) else f"{float(cell):>10.4f}" for cell in row))


def main(folder: str, picture: str | None = None) -> None:
    data = Path(folder)
    fixes = read(data / "animal_deer_track.csv")
    hour = np.array([int(time[11:13]) for time in fixes["time"]])
    fixes["night"] = ((hour < 6) | (hour >= 18)).astype(float)
    track = un.track(fixes, time="time", x="x", y="y", burst="burst", columns=("night",))
    grid = read(data / "animal_deer_forest_grid.csv")
    forest = un.Map.from_table(grid, value="frac_forest", name="forest", interpolate="nearest")
    print(track.describe())

    fit = un.fit_steps(track, "forest", maps=forest, rng=1)
    logistic = un.fit_steps(track, "forest", maps=forest, objective="logistic", rng=1)
    show("Selection of forest, by ranking", fit.tidy())
    show("and by logistic regression with anchored constants", logistic.tidy())
    both = un.fit_steps(track, "forest", maps=forest, integrated=True, rng=1)
    show("Movement kernel: tentative, updated, se, interval", both.movement())
    calibration, utilisation = fit.calibration("forest", rng=2), fit.utilisation()
    print(f"\n{calibration}\n{utilisation}")
    if picture is not None:
        draw(track, forest, fit, calibration, utilisation, picture)


def draw(track: un.Track, forest: un.Map, fit: un.StepFit, calibration, utilisation, picture: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
    raster = forest.grids[None]
    axes[0, 0].pcolormesh(raster.x, raster.y, raster.z, cmap="Greens", alpha=0.6, rasterized=True)
    for burst in np.unique(track.burst):
        here = track.burst == burst
        axes[0, 0].plot(track.x[here], track.y[here], color="#1f5fa8", lw=0.7)
    axes[0, 0].set(aspect="equal", title="826 fixes over the share of forest")
    at = np.linspace(0.0, 1.0, 50)
    rss = fit.contrast({"forest": at}, {"forest": 0.0})
    axes[0, 1].fill_between(at, rss["rss_lower"], rss["rss_upper"], color="#1f5fa8", alpha=0.25, lw=0)
    axes[0, 1].plot(at, rss["rss"], color="#1f5fa8")
    axes[0, 1].set(title="Relative selection strength", xlabel="forest", ylabel="times likelier than open land")
    calibration.plot(axes[1, 0]).set_title("Used-habitat calibration")
    utilisation.plot(axes[1, 1]).set_title("Steady-state utilisation")
    for ax in (axes[0, 0], axes[1, 1]):
        ax.set(xlabel="x (km)", ylabel="y (km)")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(lambda metres, _: f"{metres / 1000:.0f}")
    figure.savefig(picture, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
