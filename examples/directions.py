"""Wind directions, pigeons' bearings and axes of termite nests: named families, a chain, smooth densities, roses.

    python examples/directions.py DATA [PICTURE.png]

DATA is a folder with dir_wind_coldelaroa.csv, dir_pigeons.csv and dir_termite_axes.csv.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import unnorm as un


def read(path: Path) -> np.ndarray:
    return np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")


def main(folder: str, picture: str | None = None) -> None:
    directions, data = un.directions, Path(folder)

    wind = read(data / "dir_wind_coldelaroa.csv")
    obs = un.iid(wind["direction_rad"], unit="radians")
    families = (
        directions.von_mises(),
        directions.wrapped_normal(),
        directions.wrapped_cauchy(),
        directions.generalised_von_mises((1, 2)),
    )
    print(f"Wind, {obs.n} observations: AIC")
    for family in families:
        print(f"  {family.name:24s} {un.fit_direction(family, obs).fit.aic:8.1f}")
    smooth = un.fit(un.Additive("s(y, k=15)", un.Circle()), obs)
    print(f"  {'smooth density':24s} {smooth.aic:8.1f}   ({sum(smooth.edf.values()):.1f} degrees of freedom)")
    chain = un.transitions(
        {"y": wind["direction_rad"], "slot": wind["slot"], "day": wind["day"]},
        "y",
        order="slot",
        group="day",
        unit="radians",
    )
    print(f"\nWind, five observations a day as a chain:\n{un.fit_direction(directions.chain(), chain).summary()}")

    pigeons = read(data / "dir_pigeons.csv")
    groups = {
        name: pigeons["bearing_deg"][np.char.strip(pigeons["treatment"], '"') == name] for name in ("c", "v1", "on")
    }
    found = {}
    print("\nPigeons' bearings")
    for name, bearings in groups.items():
        found[name] = un.fit_direction(directions.von_mises(), un.iid(bearings.astype(float), unit="bearings"))
        mean, kappa = found[name].rows()
        known = "interval the whole circle" if mean.note else f"interval {mean.lower:.0f}° to {mean.upper:.0f}°"
        about = f"mean {mean.estimate:.0f}°, {known}; κ = {kappa.estimate:.2f} ({kappa.se:.2f})"
        print(f"  {name:3s} n = {len(bearings)}: {about}")

    termites = read(data / "dir_termite_axes.csv")
    nests = un.fit_direction(
        directions.von_mises(un.Axis()), un.iid(termites["axis_deg"].astype(float), unit="degrees")
    )
    print(f"\nAxes of termite nests\n{nests.summary()}")
    by_site = un.conditional(
        {"axis": termites["axis_deg"].astype(float), **{f"site{k}": termites["site"] == k for k in range(2, 15)}},
        "axis", tuple(f"site{k}" for k in range(2, 15)), unit="degrees",
    )  # fmt: skip
    sites = un.fit_direction(directions.regression(tuple(by_site.context), domain=un.Axis()), by_site)
    test = 2 * (sites.fit.loglik - nests.fit.loglik)
    print(f"One axis for all 14 sites? Likelihood ratio {test:.1f} on 13 degrees of freedom")

    if picture is not None:
        draw(picture, obs, smooth, found["c"], nests)


def draw(picture: str, wind: un.Observations, smooth: un.Fit, pigeons: un.DirectionFit, nests: un.DirectionFit) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), subplot_kw={"projection": "polar"}, layout="constrained")
    un.directions.rose(wind, smooth, ax=axes[0]).set_title("wind, cyclic spline")
    pigeons.plot(axes[1]).set_title("pigeons (control), von Mises")
    nests.plot(axes[2]).set_title("termite nests, axial von Mises")
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
