"""Scores → errors, each covariance against its formula written out on matrices given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from unnorm.inference import sandwich
from unnorm.inference.sandwich import error_parts, information_penalty
from unnorm.objectives.scores import Drawn, Reselection, Scores

P = 3


def _positive(seed: int, scale: float = 1.0, size: int = P) -> np.ndarray:
    half = np.random.default_rng(seed).normal(size=(size, size + 2))
    return scale * half @ half.T


@dataclass(frozen=True)
class Given(Scores):
    """Scores whose pieces are given outright."""

    information: np.ndarray
    data: np.ndarray
    points: np.ndarray  # Σ2 as if IID
    empirical: np.ndarray
    sums: np.ndarray  # by cluster
    size: int = P
    weight: float = 50.0
    units: int = 50
    drawn: Drawn = Drawn.IID
    shared: bool = False
    penalty: np.ndarray | None = None
    reselection: Reselection | None = None
    smoothing: np.ndarray | None = None
    model_based: bool = True
    widened: float = 1.0
    robust_refusal: str | None = None
    measured: np.ndarray | None = None
    whole: np.ndarray | None = None

    def points_spread(self, power: int) -> np.ndarray:
        return self.points if power == 2 else np.full((P, P), np.nan)

    def data_spread(self) -> np.ndarray:
        return self.data

    def empirical_spread(self) -> np.ndarray:
        return self.empirical

    def cluster_sums(self, label: np.ndarray, count: int) -> np.ndarray:
        return self.sums[:count]

    def measured_spread(self, times: float = 1.0) -> np.ndarray | None:
        return self.measured

    def reselected_spread(self) -> np.ndarray | None:
        return self.whole


GIVEN = Given(
    information=_positive(0, 10.0),
    data=_positive(1, 8.0),
    points=_positive(2, 3.0),
    empirical=_positive(3, 7.0),
    sums=np.random.default_rng(4).normal(size=(12, P)),
)
CLUSTER = np.arange(50) % 12
S = np.diag([0.0, 5.0, 40.0])


def _parts(scores: Scores, **settings: Any) -> sandwich.ErrorParts:
    parts = error_parts(scores, **settings)
    assert parts is not None
    return parts


def test_total_is_sampling_and_reference() -> None:
    V = np.linalg.inv(GIVEN.information)
    parts = _parts(GIVEN)
    np.testing.assert_allclose(parts.sampling, V @ GIVEN.data @ V)
    np.testing.assert_allclose(parts.reference, V @ GIVEN.points @ V)
    np.testing.assert_allclose(parts.total, V @ (GIVEN.data + GIVEN.points) @ V)
    assert parts.points
    assert not _parts(replace(GIVEN, drawn=Drawn.NONE, points=np.zeros((P, P)))).points


def test_the_penalty_is_in_the_bread_and_stands_for_bias() -> None:
    """V (Σ1 + S_λ) V, which is V where Σ1 = −H; what not knowing λ adds comes on top, and few levels widen both."""
    V = np.linalg.inv(GIVEN.information + S)
    smoothing = _positive(5, 1e-3)
    scores = replace(GIVEN, penalty=S, smoothing=smoothing, widened=1.5)
    parts = _parts(scores)
    np.testing.assert_allclose(parts.sampling, 1.5 * (V @ (GIVEN.data + S) @ V + smoothing))
    np.testing.assert_allclose(parts.reference, V @ GIVEN.points @ V)
    np.testing.assert_allclose(parts.total, parts.sampling + parts.reference)
    exact = replace(GIVEN, penalty=S, data=GIVEN.information, points=np.zeros((P, P)), drawn=Drawn.NONE)
    np.testing.assert_allclose(_parts(exact).total, V)


def test_robust_errors_by_observation() -> None:
    for penalty in (None, S):
        extra = 0.0 if penalty is None else penalty
        V = np.linalg.inv(GIVEN.information + extra)
        robust = _parts(replace(GIVEN, penalty=penalty)).robust
        assert robust is not None
        np.testing.assert_allclose(robust.covariance, V @ (GIVEN.empirical + GIVEN.points + extra) @ V)
        assert robust.df is None


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("penalty", [None, S], ids=["parametric", "penalised"])
def test_robust_errors_by_cluster(shared, penalty) -> None:
    """C/(C − 1) Σ g_c g_cᵀ; points that belong to no cluster add Σ2, those within one are in its score already."""
    extra = 0.0 if penalty is None else penalty
    V = np.linalg.inv(GIVEN.information + extra)
    parts = _parts(replace(GIVEN, shared=shared, penalty=penalty), cluster=CLUSTER)
    M = 12 / 11 * sum(np.outer(g, g) for g in GIVEN.sums) + (GIVEN.points if shared else 0.0) + extra
    robust = parts.robust
    assert robust is not None
    assert robust.computed is not None  # asked for by name
    np.testing.assert_allclose(robust.covariance, V @ M @ V)
    assert robust.df == 11
    assert robust.refusal is None
    some = parts.picked(np.array([2, 0]))
    assert some.robust is not None
    np.testing.assert_allclose(some.robust.covariance, (V @ M @ V)[np.ix_([2, 0], [2, 0])])
    assert some.robust.df == 11


def test_the_points_error_is_measured_where_they_are_spread_evenly() -> None:
    measured = _positive(6, 0.2)
    V = np.linalg.inv(GIVEN.information)
    even = replace(GIVEN, drawn=Drawn.EVENLY, measured=measured)
    parts = _parts(even)
    np.testing.assert_allclose(parts.reference, V @ measured @ V)
    assert not parts.notes
    assert parts.robust is not None
    np.testing.assert_allclose(parts.robust.covariance, V @ (GIVEN.empirical + measured) @ V)
    unknown = _parts(replace(even, measured=None))
    np.testing.assert_allclose(unknown.reference, V @ GIVEN.points @ V)
    assert "One randomisation" in unknown.notes[0]
    np.testing.assert_allclose(_parts(replace(GIVEN, measured=measured)).reference, V @ GIVEN.points @ V)


def test_the_reference_error_with_lambda_chosen_again() -> None:
    """V' Σ2 V'ᵀ; with the criterion's own noise [V', −J V_ρ] Var [V', −J V_ρ]ᵀ."""
    rng = np.random.default_rng(7)
    J, C, V_rho = rng.normal(size=(P, 2)) / 10, rng.normal(size=(P, 2)), _positive(8, 1.0, 2)
    V = np.linalg.inv(GIVEN.information + S)
    moved = V + J @ V_rho @ (J + V @ C / 2).T
    again = replace(GIVEN, penalty=S, reselection=Reselection(J, V_rho, C))
    np.testing.assert_allclose(_parts(again).reference, moved @ GIVEN.points @ moved.T)
    whole = _positive(9, 1.0, P + 2)
    both = np.concatenate([moved, -J @ V_rho], axis=1)
    np.testing.assert_allclose(_parts(replace(again, whole=whole)).reference, both @ whole @ both.T)


def test_a_difference_of_estimates_stays_a_variance() -> None:
    """Σ1 with a negative direction: the nearest covariance; and an error never below a twentieth of V's variance."""
    vectors = np.linalg.qr(np.random.default_rng(10).normal(size=(P, P)))[0]
    sigma = vectors @ np.diag([-2.0, 3.0, 5.0]) @ vectors.T
    V = np.linalg.inv(GIVEN.information)
    units = np.sqrt(np.abs(np.diag(sigma)))  # nearest in units in which the diagonal is one
    values, turned = np.linalg.eigh(sigma / np.outer(units, units))
    nearest = turned @ np.diag(np.maximum(values, 0.0)) @ turned.T * np.outer(units, units)
    np.testing.assert_allclose(sandwich.nearest_psd(sigma), nearest, atol=1e-12)
    parts = _parts(replace(GIVEN, data=sigma))
    assert np.all(np.diag(V @ nearest @ V) > 0.05 * np.diag(V))  # the floor is not in play
    np.testing.assert_allclose(parts.sampling, V @ nearest @ V, atol=1e-14)
    flat = replace(GIVEN, information=np.eye(P), data=np.diag([0.01, 0.5, 0.0499]))
    low = _parts(flat, names=("a", "b", "c"))
    np.testing.assert_allclose(np.diag(low.sampling), [0.05, 0.5, 0.05])
    np.testing.assert_allclose(np.diag(low.total - GIVEN.points), [0.05, 0.5, 0.05])
    assert len(low.notes) == 1
    assert "(a, c)" in low.notes[0]
    assert not _parts(replace(flat, data=np.diag([0.06, 0.5, 0.06])), names=("a", "b", "c")).notes


def test_fewer_units_than_parameters() -> None:
    """An empirical Σ1 needs more units than parameters; so do robust errors, with the edf of a penalised fit."""
    for units, some in ((3, False), (4, True)):
        empirical = replace(GIVEN, model_based=False, units=units)
        assert (error_parts(empirical) is not None) == some
        robust = _parts(replace(GIVEN, units=units)).robust
        assert robust is not None
        assert (robust.refusal is None) == some
    three, four = np.arange(50) % 3, np.arange(50) % 4
    for label, some in ((three, False), (four, True)):
        robust = _parts(GIVEN, cluster=label).robust
        assert robust is not None
        assert (robust.refusal is None) == some
        assert robust.refusal is None or "3 independent clusters" in robust.refusal
    # edf 1 + 1/2 + 1/3 = 1.83 of three coefficients
    penalised = replace(GIVEN, information=np.eye(P), penalty=np.diag([0.0, 1.0, 2.0]))
    for clusters, some in ((2, False), (3, True)):
        robust = _parts(penalised, cluster=np.arange(50) % clusters).robust
        assert robust is not None
        assert (robust.refusal is None) == some
    none = _parts(replace(GIVEN, robust_refusal="not here")).robust
    assert none is not None
    assert none.refusal == "not here"


def test_the_penalty_of_ncic() -> None:
    """tr{(Σ1 + Σ2) V}, Σ1 from the scores; measured where points are even; none from one observation."""
    V = np.linalg.inv(GIVEN.information + S)
    found = information_penalty(replace(GIVEN, penalty=S))
    assert found == pytest.approx(np.trace((GIVEN.empirical + GIVEN.points) @ V))
    even = replace(GIVEN, drawn=Drawn.EVENLY, measured=_positive(6, 0.2), penalty=S)
    assert information_penalty(even) == pytest.approx(np.trace((GIVEN.empirical + _positive(6, 0.2)) @ V))
    assert information_penalty(replace(GIVEN, units=1)) is None
    assert information_penalty(replace(GIVEN, units=2)) is not None
    assert information_penalty(replace(GIVEN, robust_refusal="not here")) is None
