"""Errors of hard-core models: pairs within the core are in no pattern, but they count in the score's variance.

A hard-core process with λ(u | x) = β where no point is within r has the score n − β|A(x)|, A the free area. Its
variance is E{β|A| + β² |{(u, v) ∈ A² : ‖u − v‖ ≤ r}|} (Coeurjolly & Rubak 2013; λ({u, v} | x) = 0 for such pairs).
spatstat's vcov.ppm has the first term alone.
"""

import numpy as np
import pytest

import unnorm as un
from unnorm.patterns.scores import PatternScores

SQUARE = un.Box((0, 1), (0, 1))
R, BETA = 0.08, 150.0


@pytest.fixture(scope="module")
def drawn() -> list[un.Pattern]:
    return un.patterns.process(SQUARE, np.log(BETA), un.HardCore(R)).simulate(200, rng=1)


def forbidden(xy: np.ndarray, r: float, periodic: bool = False) -> float:
    """|{(u, v) ∈ A² : ‖u − v‖ ≤ r}| on a fine grid."""
    cells = 250
    at = (np.arange(cells) + 0.5) / cells
    step = np.abs(np.stack(np.meshgrid(at, at), axis=-1)[:, :, None] - xy)
    step = np.minimum(step, 1 - step) if periodic else step
    free = (np.hypot(*step.transpose(3, 0, 1, 2)) > r).all(axis=-1).astype(float)
    offsets = np.arange(-int(r * cells), int(r * cells) + 1) / cells
    near = [(round(a * cells), round(b * cells)) for a in offsets for b in offsets if np.hypot(a, b) <= r]
    total = 0.0
    wide = np.pad(free, len(offsets), mode="wrap" if periodic else "constant")
    for a, b in near:
        moved = wide[len(offsets) + a : len(offsets) + a + cells, len(offsets) + b : len(offsets) + b + cells]
        total += float(np.sum(free * moved))
    return total / cells**4


@pytest.mark.parametrize(
    ("design", "correction"), [("stratified", "none"), ("poisson", "none"), ("stratified", "periodic")]
)
def test_by_a_grid(design, correction, drawn: list[un.Pattern]) -> None:
    xy = drawn[0].xy
    if correction == "periodic":
        process = un.patterns.process(SQUARE, np.log(BETA), un.HardCore(R), correction="periodic")
        xy = process.simulate(rng=3)[0].xy
    pattern = un.pattern(xy, ("x", "y"), window=SQUARE)
    fit = un.fit_pattern(
        pattern, interaction=un.HardCore(R), correction=correction, design=design, dummies=20_000, rng=2
    )
    beta, rho = np.exp(fit.estimate[0]), np.exp(fit.fitted.log_rho[0])
    weight = (beta * rho / (beta + rho)) ** 2  # (λh)², h = ρ/(λ + ρ)
    found = PatternScores(fit.fitted).forbidden(R)[0, 0]
    assert found == pytest.approx(weight * forbidden(xy, R, correction == "periodic"), rel=0.05)


def test_estimates_vary_as_their_errors_say(drawn: list[un.Pattern]) -> None:
    """The spread of 200 estimates is that of the errors, which would fall short without the core's pairs."""
    fits = [
        un.fit_pattern(one, interaction=un.HardCore(R), correction="none", dummies=3000, rng=1000 + k)
        for k, one in enumerate(drawn)
    ]
    spread = np.std([fit.estimate[0] for fit in fits])
    claimed = np.mean([fit.se[0] for fit in fits])
    assert 0.87 < claimed / spread < 1.15
    scores = PatternScores(fits[0].fitted)
    assert scores.forbidden(R)[0, 0] > 0.2 * scores.data_spread()[0, 0]


def test_marks_and_a_strauss_ring() -> None:
    """Of a matrix: the sum over pairs of two draws, by definition."""
    ring = un.HardCore(0.04, strauss=0.09)
    one = un.patterns.process(SQUARE, {"a": np.log(90.0), "b": np.log(60.0)}, ring, [-0.7]).simulate(rng=5)[0]
    fit = un.fit_pattern(one, "x + factor(type)", interaction=ring, design="poisson", dummies=900, rng=6)
    rows = np.flatnonzero(~fit.fitted.data)
    X = np.concatenate([chunk for _, chunk in fit.fitted.gam.design_chunks()])[rows] * fit.fitted.p[rows, None]
    xy = fit.fitted.places.xy[rows]
    near = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1)) <= 0.04
    np.fill_diagonal(near, False)
    found = PatternScores(fit.fitted).forbidden(0.04)
    np.testing.assert_allclose(found, X.T @ near @ X, rtol=1e-10, atol=1e-12 * np.abs(found).max())
