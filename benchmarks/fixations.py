"""A million fixations of twenty subjects, each with functions of its own: time and memory from observations to effects.

    python benchmarks/fixations.py [--fixations 1e6] [--subjects 20] [--sizes 1]

Scanpaths are simulated from short steps around the centre, on one screen or (--sizes 142) on images of many sizes. The
target is 3 minutes and 6 GB on two cores. Prints seconds, processor seconds and the largest resident memory in GB.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import unnorm as un

TERMS = "s(step, k=10) + s(dcenter, k=20) + s(angle, bs='cc', k=20)"


def scanpaths(n: int, subjects: int, sizes: int, seed: int = 1) -> tuple[dict[str, np.ndarray], un.domains.Domain]:
    """n fixations in paths of 10: steps with a gamma length, more often level than not, drawn back to the centre."""
    rng = np.random.default_rng(seed)
    length = 10
    paths = n // length
    images = max(sizes, 100)
    shape = np.column_stack([rng.integers(600, 1025, sizes), rng.integers(500, 1025, sizes)]) if sizes > 1 else None
    image = rng.integers(0, images, paths)
    window = np.full((paths, 2), (800, 600)) if shape is None else shape[image % sizes]
    x = window * rng.beta(4, 4, (paths, 2))
    points = np.empty((paths, length, 2))
    for t in range(length):
        points[:, t] = x
        phi = rng.vonmises(0.0, 0.4, paths) + np.pi * rng.integers(0, 2, paths)
        step = rng.gamma(1.5, 70.0, paths)[:, None] * np.column_stack([np.cos(phi), np.sin(phi)])
        x = x + step + 0.15 * (window / 2 - x)
        x = np.abs(x)  # reflected at the sides
        x = np.where(x > window, 2 * window - x, x)
        x = np.clip(x, 0.5, window - 0.5)
    subject = np.repeat(np.arange(paths) % subjects, length)
    table = {
        "path": np.repeat(np.arange(paths), length),
        "subject": subject,
        "image": np.repeat(image, length),
        "fix": np.tile(np.arange(length), paths),
        "x": points[..., 0].ravel(),
        "y": points[..., 1].ravel(),
    }
    if shape is None:
        return table, un.Box((0, 800), (0, 600))
    return table, un.Windows({i: tuple(shape[i % sizes].tolist()) for i in range(images)}, "image")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixations", type=float, default=1e6)
    parser.add_argument("--subjects", type=int, default=20)
    parser.add_argument("--sizes", type=int, default=1)
    parser.add_argument("--references", type=int, default=20)
    asked = parser.parse_args()
    table, domain = scanpaths(int(asked.fixations), asked.subjects, asked.sizes)
    warm = {name: column[:20_000] for name, column in table.items()}
    model = un.Additive(TERMS, domain)
    objective = un.Logistic(per_point=asked.references)
    columns = {"y": ("x", "y"), "order": "fix", "group": ("path", "subject", "image")}
    un.fit_each(model, un.transitions(warm, **columns), "subject", group=False, objective=objective, rng=1)  # compiles
    begin, processor = time.perf_counter(), time.process_time()
    obs = un.transitions(table, **columns)
    each = un.fit_each(model, obs, "subject", objective=objective, rng=1)
    seconds, busy = time.perf_counter() - begin, time.process_time() - processor
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(
        f"{obs.n:,} transitions, {len(each.fits)} subjects, {len(domain.windows)} windows, "
        f"{asked.references} points each"
    )
    print(f"{seconds:.1f} s, processor {busy:.1f} s, at most {most:.2f} GB; failures: {dict(each.failures)}")


if __name__ == "__main__":
    main()
