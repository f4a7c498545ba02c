"""Scanpaths on 800 × 600 from laws that lack nothing, or one effect: for the advice of the report."""

from __future__ import annotations

import numpy as np

import unnorm as un

BOX = un.Box((0, 800), (0, 600))
STEPS, DIRECTIONS = "s(step, k=10) + s(drel, k=8)", "s(angle, bs='cc', k=10)"
MISSED = {  # effect → the feature that a model without it misses, and the model's terms
    "momentum": ("turn", f"{STEPS} + {DIRECTIONS}"),
    "return": ("turn", f"{STEPS} + {DIRECTIONS}"),
    "left": ("direction", STEPS),
    "cardinal": ("direction", STEPS),
    "shift": ("place", f"{STEPS} + {DIRECTIONS}"),
    "centre": ("place", "s(step, k=10)"),
}
RIGHT = f"{STEPS} + {DIRECTIONS}"
CANDIDATES = 400  # steps of gamma length from which the next is chosen, in proportion to exp of the effects


def scanpaths(effect: str | None, rng: np.random.Generator, paths: int = 150, length: int = 10) -> un.Observations:
    """Gamma(2) steps, a pull to the centre, and one effect more."""
    x = rng.uniform((300, 200), (500, 400), (paths, 2))
    before, points = x + rng.normal(0, 1, x.shape), [x]
    for _ in range(length):
        d, phi = rng.gamma(2, 60, (paths, CANDIDATES)), rng.uniform(-np.pi, np.pi, (paths, CANDIDATES))
        y = x[:, None] + d[..., None] * np.stack([np.cos(phi), np.sin(phi)], axis=-1)
        cosine = np.cos(phi - np.arctan2(*(x - before).T[::-1])[:, None])  # of the turn
        f = -np.sum((y / (400.0, 300.0) - (0.6 if effect == "shift" else 1.0, 1.0)) ** 2, axis=-1)
        f += {
            "momentum": 0.6 * cosine, "return": 1.2 * (cosine < -0.9), "left": -0.5 * np.cos(phi),
            "cardinal": 0.5 * np.cos(4 * phi),
        }.get(effect or "", 0.0)  # fmt: skip
        inside = BOX.contains(y.reshape(-1, 2)).reshape(f.shape)
        chosen = np.argmax(np.where(inside, f, -np.inf) + rng.gumbel(size=f.shape), axis=1)
        before, x = x, y[np.arange(paths), chosen]
        points.append(x)
    path, place = np.divmod(np.arange(paths * (length + 1)), length + 1)
    xy = np.stack(points, axis=1).reshape(-1, 2)
    return un.transitions(
        {"path": path, "t": place, "x": xy[:, 0], "y": xy[:, 1]}, y=("x", "y"), order="t", group="path"
    )


def subjects(rng: np.random.Generator, count: int = 6, length: int = 250) -> un.Observations:
    """Walks on the whole window whose steps are three times as long for the last subject as for the first."""
    rows = []
    for subject, scale in enumerate(np.linspace(40, 120, count)):
        x = np.array([400.0, 300.0])
        for t in range(length):
            rows.append((subject, t, *x))
            y = np.array([-1.0, -1.0])
            while not BOX.contains(y[None])[0]:
                y = x + rng.normal(0, scale, 2)
            x = y
    table = {name: np.array(column) for name, column in zip(("subject", "t", "x", "y"), zip(*rows))}
    return un.transitions(table, y=("x", "y"), order="t", group="subject")
