"""What reference points cost, and NCIC, from scores whose variances at c times as many points are given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from unnorm.inference.evidence import LIMIT, MULTIPLES, evidence, parameters, terms
from unnorm.inference.sandwich import ErrorParts
from unnorm.objectives.scores import Drawn, Enough, Reselection, Scores


def _data(c: float, counts: bool) -> np.ndarray:
    """Σ1 with c times as many points."""
    return np.array([30.0, 20.0]) * (c / (1 + c) if counts else 1.0)


def _points(c: float, counts: bool, power: int) -> np.ndarray:
    """Σ_t w^power Var of a unit's points, likewise: some units of weight 1, others of weight 5."""
    light, heavy = (c / (1 + c) ** 2, c / (1 + 3 * c) ** 2) if counts else (1 / c, 1 / c)
    return np.array([2.0, 3.0]) * light + 5.0**power * np.array([0.2, 0.6]) * heavy


@dataclass(frozen=True)
class Costly(Scores):
    """−H = Σ1 + Σ_t w Var, a logistic contrast with a correct model; diagonal, two coordinates."""

    c: float = 1.0
    drawn: Drawn = Drawn.IID
    counts_points: bool = True
    fixed: bool = False  # whether it cannot tell of other numbers of points
    measured: float | None = None
    widened: float = 1.0
    asked: list[float] = field(default_factory=list)
    size: int = 2
    weight: float = 100.0
    shared: bool = False
    penalty: np.ndarray | None = None
    reselection: Reselection | None = None
    smoothing: np.ndarray | None = None
    model_based: bool = True

    @property
    def information(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        return np.diag(_data(self.c, self.counts_points) + (_points(self.c, True, 1) if self.counts_points else 0.0))

    def points_spread(self, power: int) -> np.ndarray:
        return np.diag(_points(self.c, self.counts_points, power))

    def data_spread(self) -> np.ndarray:
        return np.diag(_data(self.c, self.counts_points))

    def empirical_spread(self) -> np.ndarray:
        return 1.1 * self.data_spread()

    def cluster_sums(self, label: np.ndarray, count: int) -> np.ndarray:
        raise AssertionError

    def measured_spread(self, times: float = 1.0, enough: Enough | None = None) -> np.ndarray | None:
        self.asked.append(times)
        if self.measured is None:
            return None
        return self.measured * np.diag(_points(times, self.counts_points, 2)) / times**2

    def more(self, c: float) -> Scores | None:
        if self.fixed:
            return None
        return Costly(c, self.drawn, self.counts_points, False, self.measured, self.widened, self.asked)

    def overlap(self) -> tuple[float | None, float | None]:
        return 0.7, 0.4


def _found(scores: Costly, least: float = 1e-9, **settings: Any) -> dict[str, Any]:
    V = np.linalg.inv(scores.information)
    sampling, points = scores.widened * V @ scores.data_spread() @ V, scores.points_spread(2)
    reference = V @ (points if scores.measured is None else scores.measured * points) @ V
    errors = ErrorParts(sampling + reference, sampling, reference)
    return evidence(scores, errors, parameters(("a", "b")), value=-70.0, least=least, **settings)


def _variances(c: float, counts: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Sampling and reference variance with c times as many IID points."""
    V = 1 / (_data(c, counts) + (_points(c, True, 1) if counts else 0.0))
    return V**2 * _data(c, counts), V**2 * _points(c, counts, 2)


@pytest.mark.parametrize("counts", [True, False], ids=["logistic", "poisson"])
@pytest.mark.parametrize("widened", [1.0, 1.4])
def test_iid_points(counts: bool, widened: float) -> None:
    found = _found(Costly(counts_points=counts, widened=widened))
    assert found["names"] == ["a", "b"]
    limit = widened * _variances(LIMIT, counts)[0]
    for c, shares, inflations in zip(MULTIPLES, found["shares"], found["inflations"]):
        sampling, reference = _variances(c, counts)
        sampling = widened * sampling
        np.testing.assert_allclose(shares, reference / (sampling + reference), rtol=1e-9)
        np.testing.assert_allclose(inflations, np.sqrt((sampling + reference) / limit), rtol=1e-9)
    now, points = _variances(1.0, counts)
    np.testing.assert_allclose(found["share"], points / (widened * now + points))
    np.testing.assert_allclose(found["inflation"], found["inflations"][MULTIPLES.index(1.0)])
    assert (found["auc"], found["effective"]) == (0.7, 0.4)


def test_not_less_than_one_point() -> None:
    """Below `least` there is nothing: the shares of all multiples below it are those at it."""
    found = _found(Costly(), least=0.5)
    sampling, reference = _variances(0.5)
    for c, shares in zip(MULTIPLES, found["shares"]):
        if c < 0.5:
            np.testing.assert_allclose(shares, reference / (sampling + reference))


def test_scores_that_cannot_tell_fall_as_one_over_c() -> None:
    found = _found(Costly(fixed=True))
    sampling, reference = _variances(1.0)
    for c, shares in zip(MULTIPLES, found["shares"]):
        np.testing.assert_allclose(shares, reference / c / (sampling + reference / c))


def test_even_points_gain_as_much_with_more_and_are_measured_with_fewer() -> None:
    """A tenth of the IID points' variance now, and c⁻³ as measured below."""
    scores = Costly(drawn=Drawn.EVENLY, measured=0.1)
    found = _found(scores)
    for c, shares in zip(MULTIPLES, found["shares"]):
        sampling, iid = _variances(c)
        reference = 0.1 * iid * (c**-2 if c < 1 else 1.0)
        np.testing.assert_allclose(shares, reference / (sampling + reference), rtol=1e-9)
    assert set(scores.asked) >= {c for c in MULTIPLES if c < 1}


def test_ncic() -> None:
    found = _found(Costly())
    data = _data(1.0, True)
    meat, V = 1.1 * data + _points(1.0, True, 2), 1 / (data + _points(1.0, True, 1))
    assert found["penalty"] == pytest.approx(np.sum(meat * V))
    assert found["ncic"] == pytest.approx(140.0 + 2 * found["penalty"])
    without = _found(Costly(), criterion=False)
    assert without["penalty"] is None
    assert without["ncic"] is None


def test_terms_are_averaged_over_their_grids() -> None:
    V = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 4.0]])
    C = np.array([[1.0, 0.0], [1.0, 2.0], [0.0, -1.0]])
    of = terms({"s(x)": (slice(1, 3), C), "s(y)": (slice(0, 1), np.array([[1.0], [3.0]]))})
    assert of.names == ("s(x)", "s(y)")
    curve = np.mean([c @ V[1:, 1:] @ c for c in C])
    np.testing.assert_allclose(of.variances(V), [curve, 2.0 * (1 + 9) / 2])
