"""Draws docs/start.png, the picture of the start page, from the Python there: python docs/start_picture.py"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
BLUE, ORANGE = "#1f5a93", "#c8501e"


def main() -> None:
    names: dict[str, Any] = {}
    (block,) = re.findall(r"```python\n(.*?)```", (HERE / "index.md").read_text(encoding="utf-8"), flags=re.S)
    exec(compile(block, "docs/index.md", "exec"), names)  # the documentation's own text
    table, fit = names["table"], names["fit"]
    one = (table["subject"] == 1) & (table["image"] == table["image"][0])
    x, y = np.asarray(table["x"])[one], np.asarray(table["y"])[one]
    plt.rcParams.update({"font.size": 13, "axes.spines.top": False, "axes.spines.right": False})
    figure, (path, near, way) = plt.subplots(1, 3, figsize=(11, 3.5), layout="constrained")
    path.plot(x, y, "-o", color=BLUE, linewidth=1, markersize=5)
    path.plot(x[:1], y[:1], "o", color=ORANGE, markersize=9)
    path.set(xlim=(0, 800), ylim=(0, 600), aspect="equal", xticks=(), yticks=(), title="where one eye went")
    for side in path.spines.values():
        side.set_visible(True)
    for axes, label, column, title, unit in (
        (near, "s(step)", "step", "effect of distance", "pixels"),
        (way, "s(angle)", "angle", "effect of direction", "degrees"),
    ):
        curve = fit.effect(label)
        at = np.degrees(curve[column]) if unit == "degrees" else np.asarray(curve[column])
        axes.fill_between(at, curve["lower"], curve["upper"], color=BLUE, alpha=0.25, linewidth=0)
        axes.plot(at, curve["estimate"], color=BLUE)
        axes.set(title=title, xlabel=unit)
    near.set_ylabel("log density")
    way.set_xticks((-180, -90, 0, 90, 180))
    figure.savefig(HERE / "start.png", dpi=100)


if __name__ == "__main__":
    main()
