"""Section 4.2, Figures 4.3, 4.4 and C.1: eye movements as a vanilla logistic regression.

The paper's data are not public. The bundled scanpaths of 14 subjects are simulated from a law with the effects that
the paper reports, so that what is estimated can be compared with the truth.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from claims import Verdict, claim, verdict

import unnorm as un
from unnorm.studies.reproduce_eye import Eye, draw, run

_done: dict[bool, tuple[Eye, float]] = {}


def eye(quick: bool, out: Path) -> tuple[Eye, float]:
    """The fits, made once, and the seconds of one fit of all subjects."""
    if quick not in _done:
        table = un.datasets.eye()
        if quick:
            some = np.isin(table["subject"], np.unique(table["subject"])[:4])
            table = {name: np.asarray(column)[some] for name, column in table.items()}
        begun = time.perf_counter()
        done = run(table)
        _done[quick] = done, (time.perf_counter() - begun) / 6
        draw(done, out)
    return _done[quick]


def curve(each: un.FitGroup, label: str) -> tuple[np.ndarray, np.ndarray]:
    """A grid, and the mean over subjects of their curves."""
    tables = [each.effect(label, level) for level in each.levels]
    x = np.asarray(tables[0][next(iter(tables[0]))], dtype=float)
    return x, np.mean([np.asarray(t["estimate"], dtype=float) for t in tables], axis=0)


@claim("Figure 4.3", "A scanpath: fixations linked by lines")
def figure_4_3(quick: bool, out: Path) -> Verdict:
    eye(quick, out)
    return verdict("drawn: scanpath.png", (out / "scanpath.png").exists())


@claim("Figure 4.4", "Central places are preferred, far ones avoided, and movements along cardinal axes are preferred")
def figure_4_4(quick: bool, out: Path) -> Verdict:
    each = eye(quick, out)[0].each
    (_, near), (_, centre), (angle, way) = (curve(each, label) for label in ("s(step)", "s(dcenter)", "s(angle)"))
    # s(angle): period of a turn, however its grid is labelled
    at = lambda a: float(np.interp(a % (2 * np.pi), angle % (2 * np.pi), way, period=2 * np.pi))  # noqa: E731
    cardinal = np.mean([at(k * np.pi / 2) for k in range(4)]) - np.mean([at((k + 0.5) * np.pi / 2) for k in range(4)])
    fall = (float(near[-1] - near.max()), float(centre[-1] - centre.max()))
    return verdict(
        f"log density falls by {-fall[0]:.1f} with distance and {-fall[1]:.1f} off centre; "
        f"cardinal less oblique directions {cardinal:+.2f}",
        fall[0] < -0.5 and fall[1] < -0.5 and bool(cardinal > 0),
    )


@claim("Figure C.1", "Five sets of 20 reference points: curves and bands overlap almost completely")
def figure_c_1(quick: bool, out: Path) -> Verdict:
    share = eye(quick, out)[0].monte_carlo()
    return verdict(
        f"sd over sets is {np.median(share):.2f} of the standard error "
        f"(subjects: {share.min():.2f} to {share.max():.2f})",
        float(np.median(share)) < 0.35,
    )


@claim("Section 4.2, time", "One line of R, around 5 minutes on a normal desktop")
def minutes(quick: bool, out: Path) -> Verdict:
    seconds = eye(quick, out)[1]
    return verdict(f"{seconds:.1f} s for {len(eye(quick, out)[0].each.levels)} subjects", seconds < 300)
