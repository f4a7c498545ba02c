"""Scores → errors, each covariance against its formula written out on matrices given."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from unnorm.inference import sandwich
from unnorm.inference.sandwich import error_parts, information_penalty, too_few
from unnorm.objectives.scores import Drawn, Enough, Reselection, Scores

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
    drawn: Drawn = Drawn.IID
    shared: bool = False
    penalty: np.ndarray | None = None
    reselection: Reselection | None = None
    smoothing: np.ndarray | None = None
    model_based: bool = True
    widened: float = 1.0
    robust_refusal: str | None = None
    by_chance: float = 0.0
    measured: np.ndarray | None = None
    whole: np.ndarray | None = None
    by_cluster: np.ndarray | None = None
    asked: list[int] = field(default_factory=list, compare=False)

    def points_spread(self, power: int) -> np.ndarray:
        return self.points if power == 2 else np.full((P, P), np.nan)

    def data_spread(self) -> np.ndarray:
        return self.data

    def empirical_spread(self) -> np.ndarray:
        return self.empirical

    def cluster_sums(self, label: np.ndarray, count: int) -> np.ndarray:
        return self.sums[:count]

    def cluster_weights(self, label: np.ndarray, count: int) -> np.ndarray:
        return np.bincount(label, minlength=count).astype(float)

    def cluster_points(self, label: np.ndarray, factor: np.ndarray) -> np.ndarray | None:
        return None if self.by_cluster is None else np.mean(factor**2) * self.by_cluster

    def measured_spread(self, times: float = 1.0, enough: Enough | None = None) -> np.ndarray | None:
        if enough is not None and self.measured is not None:
            asked = [df for df in range(1, 52) if not enough(self.measured, df)]
            self.asked.append(max(asked, default=0) + 1)
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
CLUSTER = np.arange(48) % 12
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
    """Clusters of one size: C/(C − 1) Σ g_c g_cᵀ, and t on C − 1; points that belong to no cluster add Σ2 (and the
    data's scores, which do not add to zero, are taken about their mean), those within one are in its score already."""
    extra = 0.0 if penalty is None else penalty
    V = np.linalg.inv(GIVEN.information + extra)
    parts = _parts(replace(GIVEN, shared=shared, penalty=penalty), cluster=CLUSTER)
    sums = GIVEN.sums - GIVEN.sums.mean(axis=0) if shared else GIVEN.sums
    M = 12 / 11 * sum(np.outer(g, g) for g in sums) + (GIVEN.points if shared else 0.0) + extra
    robust = parts.robust
    assert robust is not None
    assert robust.computed is not None  # asked for by name
    np.testing.assert_allclose(robust.covariance, V @ M @ V)
    kept = np.trace(V @ (M - extra)) / np.trace(V @ (M - extra - (GIVEN.points if shared else 0.0)))
    assert kept >= 1
    assert robust.df == pytest.approx(11)
    assert robust.refusal is None
    assert not parts.notes
    some = parts.picked(np.array([2, 0]))
    assert some.robust is not None
    np.testing.assert_allclose(some.robust.covariance, (V @ M @ V)[np.ix_([2, 0], [2, 0])])
    assert some.robust.df == robust.df


def test_clusters_of_unequal_size_are_left_out_one_by_one() -> None:
    """(C − 1)/C Σ g_c g_cᵀ/(1 − π_c)², and the degrees of freedom of a quadratic form, B written out."""
    label = np.repeat(np.arange(6), [1, 2, 4, 8, 16, 17])
    pi = np.bincount(label) / 48
    V, sums = np.linalg.inv(GIVEN.information), 6.0 * GIVEN.sums[:6]
    sums = sums - np.outer(pi, sums.sum(axis=0))
    parts = _parts(replace(GIVEN, sums=sums), cluster=label)
    M = 5 / 6 * sum(np.outer(g, g) / (1 - share) ** 2 for g, share in zip(sums, pi))
    robust = parts.robust
    assert robust is not None
    np.testing.assert_allclose(robust.covariance, V @ M @ V)
    inflation = np.trace(V @ M) / np.trace(V @ (GIVEN.data + GIVEN.points))
    assert inflation > 1
    s = pi + (inflation - 1) * pi**2 / np.sum(pi**2)
    A = np.diag(1 / (1 - pi)) @ (np.eye(6) - np.outer(pi, np.ones(6)))
    B = A @ np.diag(s) @ A.T
    df = np.trace(B) ** 2 / np.trace(B @ B)
    assert robust.df == pytest.approx(df)
    assert df < 3
    (note,) = parts.notes
    assert f"6 clusters of unequal size know as much of their variance as {df + 1:.1f}" in note
    # independent observations: s_c ∝ π_c, and scores of no more than the model's variance count as such
    B = A @ np.diag(pi) @ A.T
    df = np.trace(B) ** 2 / np.trace(B @ B)
    quiet = _parts(replace(GIVEN, sums=sums / 100), cluster=label).robust
    assert quiet is not None
    assert quiet.df == pytest.approx(df)


def test_even_points_of_clusters_count_as_measured_in_all() -> None:
    """M = C/(C − 1) Σ g_c g_cᵀ − Σ_c Var(points of c) + Σ2: less of it is empirical, and it has fewer degrees of
    freedom. Points that all share are in no cluster's score."""
    V, points, measured = np.linalg.inv(GIVEN.information), _positive(12, 0.3), _positive(6, 0.02)
    even = replace(GIVEN, drawn=Drawn.EVENLY, measured=measured, by_cluster=points)
    robust = _parts(even, cluster=CLUSTER).robust
    assert robust is not None
    own = 12 / 11 * GIVEN.sums.T @ GIVEN.sums
    M = own - 12 / 11 * points + measured
    assert np.linalg.eigvalsh(own - 12 / 11 * points)[0] > 0
    np.testing.assert_allclose(robust.covariance, V @ M @ V)
    assert robust.df == pytest.approx(11 * (np.trace(V @ M) / np.trace(V @ own)) ** 2)
    negative = _parts(replace(even, by_cluster=100 * points), cluster=CLUSTER).robust
    assert negative is not None
    assert np.all(np.diag(negative.covariance) > 0)
    shared = _parts(replace(even, shared=True), cluster=CLUSTER).robust
    assert shared is not None
    sums = GIVEN.sums - GIVEN.sums.mean(axis=0)
    np.testing.assert_allclose(shared.covariance, V @ (12 / 11 * sums.T @ sums + measured) @ V)
    one = _parts(replace(even, by_cluster=None), cluster=CLUSTER).robust
    assert one is not None
    np.testing.assert_allclose(one.covariance, V @ own @ V)


@pytest.mark.parametrize("names", [{0: "a", 1: "b"}, {}], ids=["parameters", "curves"])
def test_more_points_are_drawn_where_they_are_much_of_the_variance(names) -> None:
    """Until ν ≥ 50 s², s the upper 90 % bound of the reference part's share: of the worst parameter, or of all."""
    from scipy.stats import chi2

    scaled = np.diag([1.0, 8.0, 0.2]) @ GIVEN.information @ np.diag([1.0, 8.0, 0.2])
    V = np.linalg.inv(scaled)
    for scale in (1e-4, 0.2, 1.0, 5.0, 1e4):
        asked: list[int] = []
        even = replace(
            GIVEN, information=scaled, drawn=Drawn.EVENLY, measured=scale * np.diag([0.3, 30.0, 3.0]), asked=asked
        )
        parts = _parts(even, names=names)
        wanted = 1
        for df in range(1, 51):
            reference = df / chi2.ppf(0.1, df) * np.diag(V @ even.measured @ V)
            total = np.diag(parts.sampling) + reference
            if names:
                share = np.max((reference / total)[:2])
            else:
                unit = np.diag(scaled)
                share = unit @ reference / (unit @ total)
            wanted = df + 1 if df < 50 * share**2 else wanted
        assert asked == [wanted]
    assert wanted > 45


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


@pytest.mark.parametrize("rounding", [-4e-12, 0.0, 1e-26, 3e-11])
def test_what_the_penalty_alone_knows_disturbs_no_other_error(rounding: float) -> None:
    """A coordinate without information, but for rounding: its units are the penalty's, and the others' errors those of
    a model without it."""
    p = P + 1
    penalty = np.zeros((p, p))
    pieces = {name: np.zeros((p, p)) for name in ("information", "data", "points", "empirical")}
    for name, whole in pieces.items():
        whole[:P, :P] = getattr(GIVEN, name)
        whole[P, :P] = whole[:P, P] = 2e-9 * np.array([1.0, -1.0, 1.0])
        whole[P, P] = rounding
    penalty[P, P] = 1.0
    alone = _parts(GIVEN)
    found = _parts(replace(GIVEN, size=p, penalty=penalty, **pieces))
    np.testing.assert_allclose(found.total[:P, :P], alone.total, rtol=1e-6, atol=1e-9)
    assert found.robust is not None
    assert alone.robust is not None
    np.testing.assert_allclose(found.robust.covariance[:P, :P], alone.robust.covariance, rtol=1e-6, atol=1e-9)
    assert found.total[P, P] == pytest.approx(1.0, rel=1e-6)


def test_a_difference_of_estimates_stays_a_variance() -> None:
    """Σ1 with a negative direction: the nearest covariance; and an error never below a twentieth of V's variance."""
    vectors = np.linalg.qr(np.random.default_rng(10).normal(size=(P, P)))[0]
    sigma = vectors @ np.diag([-2.0, 3.0, 5.0]) @ vectors.T
    V = np.linalg.inv(GIVEN.information)
    units = np.sqrt(np.diag(GIVEN.information))  # nearest in units in which the information's diagonal is one
    values, turned = np.linalg.eigh(sigma / np.outer(units, units))
    nearest = turned @ np.diag(np.maximum(values, 0.0)) @ turned.T * np.outer(units, units)
    np.testing.assert_allclose(sandwich.nearest_psd(sigma, GIVEN.information), nearest, atol=1e-12)
    parts = _parts(replace(GIVEN, data=sigma))
    assert np.all(np.diag(V @ nearest @ V) > 0.05 * np.diag(V))  # the floor is not in play
    np.testing.assert_allclose(parts.sampling, V @ nearest @ V, atol=1e-14)
    flat = replace(GIVEN, information=np.eye(P), data=np.diag([0.01, 0.5, 0.0499]))
    low = _parts(flat, names={0: "a", 1: "b", 2: "c"})
    np.testing.assert_allclose(np.diag(low.sampling), [0.05, 0.5, 0.05])
    np.testing.assert_allclose(np.diag(low.total - GIVEN.points), [0.05, 0.5, 0.05])
    assert len(low.notes) == 1
    assert "(a, c)" in low.notes[0]
    assert not _parts(replace(flat, data=np.diag([0.06, 0.5, 0.06])), names={0: "a", 1: "b", 2: "c"}).notes


def test_errors_do_not_depend_on_the_units_of_the_statistics() -> None:
    """Statistics a thousand times larger: errors a thousand times smaller, though Σ1 has a negative direction."""
    vectors = np.linalg.qr(np.random.default_rng(10).normal(size=(P, P)))[0]
    sigma = 20 * vectors @ np.diag([-1.0, 3.0, 5.0]) @ vectors.T
    D = np.diag([1e3, 1.0, 1e-2])
    plain = replace(GIVEN, data=sigma, empirical=sigma)
    scaled = replace(
        plain, **{name: D @ getattr(plain, name) @ D for name in ("information", "data", "points", "empirical")}
    )
    a, b = _parts(plain), _parts(scaled)
    np.testing.assert_allclose(D @ b.total @ D, a.total, rtol=1e-8)
    assert a.robust is not None
    assert b.robust is not None
    np.testing.assert_allclose(D @ b.robust.covariance @ D, a.robust.covariance, rtol=1e-8)
    assert np.linalg.eigvalsh(a.sampling)[0] > -1e-12


def test_fewer_units_than_parameters() -> None:
    """An empirical Σ1 needs more units than parameters; so do robust errors, with the edf of a penalised fit."""
    for units, some in ((3, False), (4, True)):
        empirical = replace(GIVEN, model_based=False, weight=float(units))
        assert (error_parts(empirical) is not None) == some
        robust = _parts(replace(GIVEN, weight=float(units))).robust
        assert robust is not None
        assert (robust.refusal is None) == some
    three, four = np.arange(48) % 3, np.arange(48) % 4
    for label, some in ((three, False), (four, True)):
        robust = _parts(GIVEN, cluster=label).robust
        assert robust is not None
        assert (robust.refusal is None) == some
        assert robust.refusal is None or "3 independent clusters" in robust.refusal
    # edf 1 + 1/2 + 1/3 = 1.83 of three coefficients
    penalised = replace(GIVEN, information=np.eye(P), penalty=np.diag([0.0, 1.0, 2.0]))
    for clusters, some in ((2, False), (3, True)):
        robust = _parts(penalised, cluster=np.arange(48) % clusters).robust
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
    assert information_penalty(replace(GIVEN, weight=1.0)) is None
    assert information_penalty(replace(GIVEN, weight=2.0)) is not None
    assert information_penalty(replace(GIVEN, robust_refusal="not here")) is None


@pytest.mark.parametrize(("by_chance", "said"), [(0.0, True), (0.04, True), (0.06, False)])
def test_a_short_data_part_is_said_unless_it_may_be_chance(by_chance: float, said: bool) -> None:
    """Σ1 of one hundredth of −H: raised to a twentieth of V in either case, and a warning where chance is no excuse."""
    A = _positive(1)
    scores = Given(A, 0.01 * A, 0.5 * A, A, np.zeros((2, P)), by_chance=by_chance)
    parts = error_parts(scores, names={0: "a", 2: "c"})
    assert parts is not None
    np.testing.assert_allclose(np.diag(parts.sampling), sandwich.FLOOR * np.diag(np.linalg.inv(A)))
    assert [sandwich.EXCESS.format(names="a, c") in parts.notes, bool(parts.notes)] == [said, said]


def test_too_few_scores_are_counted_in_words() -> None:
    assert "the scores of 1 independent cluster are too few to estimate the errors of 1 parameter:" in too_few(
        1, True, 1, ""
    )
    assert "the scores of 1,200 independent observations" in too_few(1200, False, 2000, "")
