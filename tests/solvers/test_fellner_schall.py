"""The extended Fellner–Schall update against the criterion that it climbs, and against what is held fixed."""

import numpy as np
import pytest

from unnorm.solvers.fellner_schall import LARGEST, PlacedPenalty, starting_values, total_penalty, updated

RNG = np.random.default_rng(1)
X = RNG.normal(size=(60, 6))
H, MLE = X.T @ X, RNG.normal(size=6)
D = np.diff(np.eye(3), axis=0)


def _pieces(fixed: float | None = None) -> tuple[PlacedPenalty, ...]:
    """Two penalties on the first three coefficients, one on the last three."""
    return (
        PlacedPenalty(slice(0, 3), D.T @ D, "a", fixed, 0),
        PlacedPenalty(slice(0, 3), np.eye(3), "b", None, 0),
        PlacedPenalty(slice(3, 6), np.eye(3), "c", None, 1),
    )


def _beta(pieces: tuple[PlacedPenalty, ...], lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    V = np.linalg.inv(H + total_penalty(pieces, lam, 6))
    return V @ H @ MLE, V


def _reml(pieces: tuple[PlacedPenalty, ...], lam: np.ndarray) -> float:
    """Of the quadratic log-likelihood −½ (β − MLE)ᵀ H (β − MLE), up to a constant; S_λ has full rank here."""
    S = total_penalty(pieces, lam, 6)
    beta, _ = _beta(pieces, lam)
    value = -0.5 * (beta - MLE) @ H @ (beta - MLE) - 0.5 * beta @ S @ beta
    return value + 0.5 * np.linalg.slogdet(S)[1] - 0.5 * np.linalg.slogdet(H + S)[1]


def test_each_update_raises_reml_and_its_fixed_point_is_a_maximum() -> None:
    pieces = _pieces()
    lam = starting_values(pieces, H)
    before, move = _reml(pieces, lam), np.inf
    for _ in range(2000):
        lam, move = updated(pieces, lam, *_beta(pieces, lam))
        now = _reml(pieces, lam)
        assert now >= before - 1e-9
        before = now
    assert move < 1e-6
    for j in np.flatnonzero((lam > 1e-6) & (lam < LARGEST)):
        for factor in (0.9, 1.1):
            other = lam.copy()
            other[j] *= factor
            assert _reml(pieces, other) < before + 1e-9


def test_what_is_fixed_stays_and_does_not_count_as_a_move() -> None:
    pieces = _pieces(fixed=0.0)
    lam = starting_values(pieces, H)
    assert lam[0] == 0.0
    assert lam[2] == pytest.approx(0.01 * np.trace(H[3:, 3:]) / 3)
    new, move = updated(pieces, lam, *_beta(pieces, lam))
    assert new[0] == 0.0
    assert move == pytest.approx(np.max(np.abs(np.log(new[1:] / lam[1:]))))


def test_a_term_without_signal_is_smoothed_away_and_settles() -> None:
    pieces = (PlacedPenalty(slice(0, 6), np.eye(6), "s", None, 0),)
    lam = starting_values(pieces, H)
    move = np.inf
    for _ in range(400):
        V = np.linalg.inv(H + total_penalty(pieces, lam, 6))
        lam, move = updated(pieces, lam, 1e-9 * V @ H @ MLE, V)
    assert lam[0] == LARGEST
    assert move == 0.0
