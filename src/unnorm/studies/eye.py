"""Scanpaths simulated from a stated random-effects law: the model of Section 4.2 with known curves.

    p_s(y_t | y_{t−1}) ∝ exp{ r_s(step) + c_s(dcenter) + a_s(angle) },      y_t ∈ [0, 800] × [0, 600],   y down

Each subject's curves are the population's plus Gaussian deviations, u ~ N(0, 1) independent:

    r_s(d) = 4 e^{−d/200}              + 0.5 u₁ e^{−d/200} + 0.3 u₂ (d/400)
    c_s(ρ) = −0.9 (ρ/250)²             + 0.25 u₃ (ρ/250)² + 0.15 u₄ cos(π ρ / 300)
    a_s(φ) = 0.4 cos 4φ + 0.25 cos 2φ  + 0.07 u₅ cos 4φ + 0.12 u₆ cos 2φ + 0.12 u₇ cos φ + 0.12 u₈ sin φ

so that short steps, central places and the four cardinal directions are preferred, as in real eye movements, by some
subjects more than by others. A scanpath's first point, on which the model conditions, is normal around the centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from .._base.numerics import Rng, generator
from ..domains import Box
from ..errors import InputError

WIDTH, HEIGHT = 800.0, 600.0
CENTRE = (WIDTH / 2, HEIGHT / 2)
LABELS = ("s(step)", "s(dcenter)", "s(angle)")
EFFECTS = 8  # random effects u of a subject
SPREAD = np.array([0.5, 0.3, 0.25, 0.15, 0.07, 0.12, 0.12, 0.12])


@final
@dataclass(frozen=True)
class EyeCurves:
    """The three curves of one subject with random effects u (8,); the population's where u is zero.

    Args:
        u: (8,) the subject's random effects.

    >>> population = EyeCurves(np.zeros(8))
    >>> float(population.angle(np.array([0.0]))[0])
    0.65
    """

    u: np.ndarray

    def step(self, d: np.ndarray) -> np.ndarray:
        v = SPREAD * self.u
        return (4 + v[0]) * np.exp(-d / 200) + v[1] * (d / 400)

    def dcenter(self, rho: np.ndarray) -> np.ndarray:
        v = SPREAD * self.u
        return (v[2] - 0.9) * (rho / 250) ** 2 + v[3] * np.cos(np.pi * rho / 300)

    def angle(self, phi: np.ndarray) -> np.ndarray:
        v = SPREAD * self.u
        even = (0.4 + v[4]) * np.cos(4 * phi) + (0.25 + v[5]) * np.cos(2 * phi)
        return even + v[6] * np.cos(phi) + v[7] * np.sin(phi)

    def curve(self, label: str, x: np.ndarray) -> np.ndarray:
        """By the term's label: "s(step)", "s(dcenter)" or "s(angle)"."""
        return {"s(step)": self.step, "s(dcenter)": self.dcenter, "s(angle)": self.angle}[label](np.asarray(x))


def population_curve(label: str, x: np.ndarray) -> np.ndarray:
    """The population's curve, up to a constant."""
    return EyeCurves(np.zeros(EFFECTS)).curve(label, x)


def draw_subjects(subjects: int, rng: Rng = None) -> tuple[EyeCurves, ...]:
    """Subjects from the random-effects law."""
    return tuple(EyeCurves(u) for u in generator(rng).standard_normal((subjects, EFFECTS)))


def scanpaths(curves: EyeCurves, paths: int, length: int, rng: Rng = None) -> np.ndarray:
    """(paths, length, 2) fixations of one subject."""
    from ..results.planar import PolarLaw, polar_chains  # heavy, and reading the bundled data needs none of it

    random = generator(rng)
    box = Box((0, WIDTH), (0, HEIGHT))
    starts = np.clip(random.normal(CENTRE, (100.0, 75.0), (paths, 2)), 1.0, np.array([WIDTH - 1, HEIGHT - 1]))[:, None]

    def rest(y: np.ndarray, _: np.ndarray) -> np.ndarray:
        return curves.dcenter(np.hypot(y[:, 0] - CENTRE[0], y[:, 1] - CENTRE[1]))

    bound = float(curves.dcenter(np.linspace(0, 500, 2001)).max()) + 1e-3
    law = PolarLaw(box, curves.step, curves.angle, rest, y_down=True)
    return polar_chains(law, starts, length - 1, random, bound=bound)


def simulate_eye(
    rng: Rng = None,
    subjects: int = 14,
    fixations: tuple[int, int] = (600, 2000),
    length: int = 15,
    curves: tuple[EyeCurves, ...] | None = None,
) -> dict[str, np.ndarray]:
    """Scanpaths of several subjects: columns subject, image, fix, x, y.

    Args:
        rng: seed or generator.
        subjects: how many; ignored where `curves` are given.
        fixations: least and most of a subject; the number is uniform in between.
        length: fixations on an image.
        curves: each subject's curves; default `draw_subjects`.

    Example:
        >>> import unnorm as un
        >>> table = un.datasets.simulate_eye(rng=1, subjects=2, fixations=(30, 60))
        >>> sorted(table)
        ['fix', 'image', 'subject', 'x', 'y']
    """
    random = generator(rng)
    if curves is None:
        if isinstance(subjects, bool) or not isinstance(subjects, int | np.integer) or subjects < 1:
            raise InputError(f"subjects must be a whole number of at least 1; got {subjects!r}.")
        curves = draw_subjects(subjects, random)
    low, high = fixations
    if not 2 <= length <= low <= high:
        raise InputError(f"2 ≤ length ≤ least ≤ most are needed for fixations; got {length!r} and {fixations!r}.")
    columns: dict[str, list[np.ndarray]] = {name: [] for name in ("subject", "image", "fix", "x", "y")}
    for s, own in enumerate(curves, start=1):
        paths = int(random.integers(low, high + 1)) // length
        y = scanpaths(own, paths, length, random)
        columns["subject"].append(np.full(paths * length, s))
        columns["image"].append(np.repeat(np.arange(1, paths + 1), length))
        columns["fix"].append(np.tile(np.arange(1, length + 1), paths))
        columns["x"].append(y[..., 0].ravel())
        columns["y"].append(y[..., 1].ravel())
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def eye() -> dict[str, np.ndarray]:
    """The bundled scanpaths: 14 simulated subjects, 600 to 2,000 fixations each, on an 800 × 600 screen, y down.

    Columns subject, image, fix, x, y. Simulated by the project (`benchmarks/make_bundled_eye.py`) from the law above.

    >>> import numpy as np
    >>> np.unique(eye()["subject"]).size
    14
    """
    import gzip
    from importlib.resources import files

    with (
        (files("unnorm.studies") / "bundled" / "eye.csv.gz").open("rb") as raw,
        gzip.open(raw, "rt", encoding="ascii") as text,
    ):
        names = text.readline().strip().split(",")
        values = np.loadtxt(text, delimiter=",", dtype=np.float64, ndmin=2)
    return {
        name: values[:, j].astype(np.int64) if name in ("subject", "image", "fix") else values[:, j].copy()
        for j, name in enumerate(names)
    }


def eye_truth() -> tuple[EyeCurves, ...]:
    """The curves from which the bundled subjects 1 … 14 were simulated.

    Example:
        >>> import unnorm as un
        >>> len(un.datasets.eye_truth())
        14
    """
    return draw_subjects(14, np.random.default_rng(SEED))


SEED = 2014  # of the bundled data: first the subjects, then their scanpaths
