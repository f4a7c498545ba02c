"""Rows for conditions.R: subjects in two conditions on the circle, data (z = 1) and uniform points (z = 0)."""

import csv

import numpy as np

rng = np.random.default_rng(1616)
grid = np.linspace(-np.pi, np.pi, 721)[:-1]


def curve(size: float) -> np.ndarray:
    return sum(size * rng.normal() * f(j * grid) / j for j in (1, 2, 3) for f in (np.cos, np.sin))


with open("conditions_rows.csv", "w", newline="") as file:
    out = csv.writer(file)
    out.writerow(["design", "who", "cond", "y", "z"])
    for design, subjects in (("between", 8), ("within", 6)):
        f, delta = curve(0.8), curve(0.4)
        for s in range(subjects):
            d = curve(0.4)
            for c in [s % 2] if design == "between" else [0, 1]:
                mass = np.exp(f + c * delta + d + (curve(0.25) if design == "within" else 0.0))
                y = rng.choice(grid, 70, p=mass / mass.sum()) + rng.uniform(-0.004, 0.004, 70)
                for value, z in [*((v, 1) for v in y), *((v, 0) for v in rng.uniform(-np.pi, np.pi, 100))]:
                    out.writerow([design, f"s{s}", "ab"[c], f"{value:.5f}", z])
