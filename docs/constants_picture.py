"""Draws docs/constants.png: χ̂ on the circle with anchored, unpenalised and penalised constants, twenty data sets each.

python docs/constants_picture.py
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unnorm as un

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from constants import CIRCLE, LAWS, circle

WAYS = {
    "Anchored()": un.Anchored(),
    "Smooth(…)": un.Smooth("s(y_prev, bs='cc', k=12)"),
    'Smooth(…, smoothing="reml")': un.Smooth("s(y_prev, bs='cc', k=12)", smoothing="reml"),
}


def truth(x: np.ndarray) -> np.ndarray:
    """−log Z at the true θ."""
    y = np.linspace(-np.pi, np.pi, 2001)[:-1]
    f = CIRCLE[0] * np.cos(y - x[:, None]) + CIRCLE[1] * np.cos(y) + CIRCLE[2] * np.cos(2 * y)
    return -np.log(np.exp(f).mean(axis=1) * 2 * np.pi)


def main() -> None:
    warnings.simplefilter("ignore")
    model = LAWS["circle"][1]
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
    grid = np.linspace(-np.pi, np.pi, 200)
    for axis, (name, normaliser) in zip(axes, WAYS.items()):
        for r in range(20):
            obs = circle(np.random.default_rng([3, r]))
            fit = un.fit(model, obs, un.Logistic(un.Uniform(), per_point=5), normaliser, rng=r)
            x, order = obs.context["y_prev"], np.argsort(obs.context["y_prev"])
            axis.plot(
                x[order], fit.nu[order] if fit.nu.size > 1 else np.full(x.size, fit.nu[0]), color="C0", alpha=0.3, lw=1
            )
        axis.plot(grid, truth(grid), color="black", lw=2)
        axis.set(title=name, xlabel="x", xlim=(-np.pi, np.pi))
    axes[0].set_ylabel("χ̂(x), and −log Z(x) (thick)")
    figure.savefig(Path(__file__).parent / "constants.png", dpi=110)


if __name__ == "__main__":
    main()
