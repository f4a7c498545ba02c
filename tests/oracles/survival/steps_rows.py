"""The case-control rows of a simulated track, with what step selection needs of them: writes steps_rows.csv.

PYTHONPATH=tests python tests/oracles/survival/steps_rows.py
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

import unnorm as un
from steps.walks import deer_walk, wood_map

TERMS = "forest + forest:night + step + log(step) + cos(turn)"
KERNEL = un.StepKernel("gamma", "vonmises")


@cache
def fitted(terms: str = TERMS) -> un.StepFit:
    """The model on the rows."""
    return un.fit_steps(deer_walk(181, edge=25.0), terms, maps=wood_map(), kernel=KERNEL, per_point=8, rng=3)


if __name__ == "__main__":
    rows = fitted().rows()
    names = ("case", "stratum", "forest", "night", "step", "log_step", "cos_turn")
    table = np.column_stack([rows[name] for name in names])
    to = Path(__file__).parent / "steps_rows.csv"
    np.savetxt(to, table, delimiter=",", header=",".join(names), comments="", fmt="%.12g")
