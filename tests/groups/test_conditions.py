"""Conditions compared: against mgcv on the same rows, and against themselves told in other ways."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import unnorm as un
from unnorm.errors import DataError, InputError
from unnorm.groups import exchange, leading
from unnorm.groups.between import Crossing
from unnorm.groups.crossed import Cells, alike, contrasts, fit_crossed
from unnorm.groups.joint import members_of
from unnorm.groups.views import View, parallel

HERE = Path(__file__).parents[1] / "oracles" / "mgcv"
ORACLE = json.loads((HERE / "conditions.json").read_text())
GRID = np.linspace(-np.pi, np.pi, 721)[:-1]
WAVES = np.array([f(j * GRID) / j for j in (1, 2, 3) for f in (np.cos, np.sin)])
MODEL = un.Additive("s(y, bs='cc', k=7)", un.Circle())
LOGISTIC = un.Logistic(un.Uniform(), total=200)


def crossed_rows(design: str) -> tuple[Cells, Crossing]:
    """The oracle's rows as cells."""
    with open(HERE / "conditions_rows.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["design"] == design]
    subjects = tuple(sorted({row["who"] for row in rows}))
    pairs = sorted({(row["who"], row["cond"]) for row in rows})
    cells = tuple((subjects.index(who), "ab".index(cond)) for who, cond in pairs)
    crossing = Crossing("who", "cond", subjects, ("a", "b"), cells, np.empty(0, dtype=np.intp))
    knots = {"y": np.linspace(-np.pi, np.pi, 7)}
    gams = {}
    for name, pair in zip(crossing.names, pairs):
        mine = [row for row in rows if (row["who"], row["cond"]) == pair]
        table = {key: np.array([float(row[key]) for row in mine]) for key in ("y", "z")}
        gams[name] = un.gam("z ~ s(y, bs='cc', k=7)", table, family="binomial", knots=knots)
    every = {"y": np.concatenate([one.columns["y"] for one in gams.values()])}
    terms = tuple(un.terms.parse("s(y, bs='cc', k=7)").build(every, knots=knots))
    return Cells(gams, terms, 1, crossing, True, 1, members_of(gams, terms, 1)), crossing


@pytest.mark.parametrize("design", ["between", "within"])
def test_curves_and_differences_are_mgcvs(design: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leading, "LEAD", 0)  # mgcv's factor smooths have one variance for a curve's wiggles
    cells, crossing = crossed_rows(design)
    assert crossing.design == design
    found = fit_crossed(cells, cells.members, cells.start())
    assert found.converged
    expected = next(one for one in ORACLE["fits"] if one["design"] == design)
    C = cells.terms[0].design({"y": np.array(expected["at"])})
    w = found.layout.weights
    for name, omega in (("a", w[0]), ("b", w[1]), ("difference", w[1] - w[0])):
        view = View(found, omega)
        fit, its = C @ view.beta[1:], expected[name]
        se = np.sqrt(np.einsum("ij,jk,ik->i", C, view.to_terms(view.covariance(view.inverse)), C))
        away = fit - np.array(its["fit"])
        assert np.max(np.abs(away - away.mean()) / np.array(its["se"])) < 0.02  # mgcv centres over all rows too
        np.testing.assert_allclose(se, its["se"], rtol=0.02)


def data(seed: int, subjects: int, within: bool, size: float = 0.0, count: int = 2, n: int = 120) -> dict:
    rng = np.random.default_rng([5, seed])
    f, delta = rng.normal(size=6), size * rng.normal(size=6)
    out: dict[str, list] = {"y": [], "who": [], "cond": []}
    for s in range(subjects):
        d = 0.3 * rng.normal(size=6)
        for c in range(count) if within else [s % count]:
            mass = np.exp((f + c * delta + d + 0.2 * rng.normal(size=6) * within) @ WAVES)
            out["y"].append(rng.choice(GRID, n, p=mass / mass.sum()) + rng.uniform(-0.004, 0.004, n))
            out["who"].append(np.full(n, s))
            out["cond"].append(np.full(n, f"c{c}"))
    return {name: np.concatenate(parts) for name, parts in out.items()}


def fitted(table: dict, **more) -> un.FitGroup:
    obs = un.iid(table, y="y", group=("who", "cond"), weight=more.pop("weight", None))
    return un.fit_each(MODEL, obs, "who", LOGISTIC, rng=3, between="cond", **more)


@pytest.fixture(scope="module")
def within() -> un.FitGroup:
    return fitted(data(1, 5, True, 0.5))


@pytest.fixture(scope="module")
def between() -> un.FitGroup:
    return fitted(data(2, 8, False, 0.5))


def test_the_design_is_found_and_said(within: un.FitGroup, between: un.FitGroup) -> None:
    assert (within.conditions.design, between.conditions.design) == ("within", "between")
    assert within.levels[:2] == ("0 · c0", "0 · c1")
    assert between.levels == tuple(str(s) for s in range(8))
    assert between.conditions.members == {"c0": ("0", "2", "4", "6"), "c1": ("1", "3", "5", "7")}
    assert "conditions of 'cond' within levels of 'who'" in within.summary()
    p = f"{between.conditions.p('s(y)'):.2g}"
    shown = f"Conditions('cond' between levels of 'who', c0: 4, c1: 4; s(y): p = {p}; see .table())"
    assert repr(between.conditions) == shown
    assert within["cond=c1"] is within.conditions["c1"]
    assert within["cond=c1"].n == 600
    with pytest.raises(InputError, match="cond=c0"):
        within["c7"]


def test_conditions_differ_by_their_difference(within: un.FitGroup, between: un.FitGroup) -> None:
    for each in (within, between):
        c0, c1, group = (each.effect("s(y)", which)["estimate"] for which in ("cond=c0", "cond=c1", "group"))
        there, back = each.difference("s(y)", "c1", "c0"), each.difference("s(y)")
        np.testing.assert_allclose(there["estimate"], c1 - c0, atol=1e-10)
        np.testing.assert_allclose((c0 + c1) / 2, group, atol=1e-10)
        np.testing.assert_allclose(back["upper_simultaneous"], -there["lower_simultaneous"])
        np.testing.assert_allclose(back["lower"], -there["upper"])
        assert np.all(there["upper_simultaneous"] > there["upper"])


def test_simultaneous_bands_are_students(between: un.FitGroup) -> None:
    """One coefficient alone: its whole curve is outside exactly where |t| is, so the multiplier is t's quantile."""
    one = between.conditions.differences[0]
    span = one.part.slices["s(y)"]
    total = np.zeros_like(one.part.errors.total)
    total[span.start, span.start] = 0.3
    lone = replace(one, part=replace(one.part, errors=replace(one.part.errors, total=total)))
    exact = stats.t(one.df).ppf(0.975) / np.sqrt(one.widened)
    assert lone.multiplier("s(y)") == pytest.approx(max(exact, 1.96), rel=0.02)
    wide = replace(lone, df=6.0, widened=1.5)  # the errors are widened already
    assert wide.multiplier("s(y)") == pytest.approx(stats.t(6).ppf(0.975) / np.sqrt(1.5), rel=0.04)
    few = replace(lone, df=4.0, widened=1.0)
    assert few.multiplier("s(y)", 0.9) == pytest.approx(stats.t(4).ppf(0.95), rel=0.04)


@pytest.mark.parametrize("design", ["within", "between"])
def test_names_of_conditions_do_not_matter(design: str, request: pytest.FixtureRequest) -> None:
    """The other way about, and with it the order of contrasts; levels keep their names, and so their points."""
    each = request.getfixturevalue(design)
    table = data(*((1, 5, True, 0.5) if design == "within" else (2, 8, False, 0.5)))
    other = fitted({**table, "cond": np.where(table["cond"] == "c0", "x1", "x0")})
    mine, its = each.difference("s(y)", "c0", "c1"), other.difference("s(y)", "x1", "x0")
    tolerance = 0.15 if design == "within" else 1e-3  # within, the cells' reference points are others
    assert np.max(np.abs(mine["estimate"] - its["estimate"]) / mine["se"]) < tolerance
    if design == "between":
        assert each.conditions.p("s(y)") == other.conditions.p("s(y)")
        np.testing.assert_allclose(mine["se"], its["se"], rtol=1e-3)


def test_weights_are_copies() -> None:
    table = data(3, 6, False, 0.3, n=60)
    rounded = {**table, "y": np.round(table["y"], 1)}
    _, first, count = np.unique(
        np.stack([rounded["who"].astype(float), rounded["y"]]), axis=1, return_index=True, return_counts=True
    )
    short = {name: column[first] for name, column in rounded.items()}
    whole = fitted(rounded)
    counted = fitted(short, weight=count.astype(float))
    (mine, se), (its, its_se) = _about_its_mean(whole), _about_its_mean(counted)
    assert np.max(np.abs(mine - its) / se) < 0.06  # convergence: 10⁻³ nats
    np.testing.assert_allclose(se, its_se, rtol=0.03)
    assert whole.conditions.p("s(y)") == pytest.approx(counted.conditions.p("s(y)"), abs=0.11)  # of 20 reassignments


def _about_its_mean(each: un.FitGroup) -> tuple[np.ndarray, np.ndarray]:
    """The difference and its errors, less its mean over the circle: rows that are counted centre it elsewhere."""
    part = each.conditions.differences[0].part
    C = part.term("s(y)").design({"y": GRID[::20]})
    C = C - C.mean(axis=0)
    span = part.slices["s(y)"]
    return C @ part.beta[span], np.sqrt(np.einsum("ij,jk,ik->i", C, part.errors.total[span, span], C))


def test_saved_and_read_back(within: un.FitGroup, tmp_path: Path) -> None:
    within.save(tmp_path / "each")
    back = un.load(tmp_path / "each", MODEL)
    assert back.summary() == within.summary()
    for name in ("estimate", "lower", "upper_simultaneous"):
        np.testing.assert_allclose(back.difference("s(y)")[name], within.difference("s(y)")[name])
    assert back.conditions.cells == within.conditions.cells
    assert back["cond=c0"].effect("s(y)")["se"] == pytest.approx(within["cond=c0"].effect("s(y)")["se"])


def test_more_than_two_conditions() -> None:
    each = fitted(data(4, 4, True, 0.4, count=3, n=80))
    table = each.conditions.table()
    assert list(table["contrast"]) == ["all", "c0 − c1", "c0 − c2", "c1 − c2"]
    pairs = np.asarray(table["p"])[1:]
    np.testing.assert_allclose(np.asarray(table["p_adjusted"])[1:], exchange.holm(pairs))
    parts = [each.difference("s(y)", a, b)["estimate"] for a, b in (("c0", "c1"), ("c1", "c2"), ("c0", "c2"))]
    np.testing.assert_allclose(parts[0] + parts[1], parts[2], atol=1e-10)
    assert any("no p-value of 'cond' can be below" in note for note in each.conditions.notes) is False


def test_few_subjects_are_told_what_p_can_be() -> None:
    each = fitted(data(6, 4, False, 0.0, n=60))
    assert each.conditions.p("s(y)") * 6 == pytest.approx(round(each.conditions.p("s(y)") * 6))  # 4 over 2
    assert any("no p-value of 'cond' can be below 0.17" in note for note in each.conditions.notes)


def test_without_conditions_nothing_is_compared(within: un.FitGroup) -> None:
    table = data(1, 5, True, 0.5, n=40)
    obs = un.iid(table, y="y", group=("who", "cond"))
    plain = un.fit_each(MODEL, obs, "who", LOGISTIC, rng=3, group=False)
    with pytest.raises(InputError, match="call fit_each again with between="):
        plain.difference("s(y)")
    with pytest.raises(InputError, match="needs two conditions"):
        within.difference("s(y)", "c0", "c0")
    with pytest.raises(InputError, match="c9"):
        within.difference("s(y)", "c9")
    with pytest.raises(DataError, match="has one, 'c0'"):
        un.fit_each(MODEL, obs.take(obs.group["cond"] == "c0"), "who", LOGISTIC, between="cond")


# --- the pieces ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 5])
def test_contrasts_are_orthonormal(count: int) -> None:
    W = contrasts(count)
    np.testing.assert_allclose(W.T @ W, np.eye(count - 1), atol=1e-12)
    np.testing.assert_allclose(W.sum(axis=0), 0.0, atol=1e-12)


def test_parallel_sums_are_precisions_of_sums() -> None:
    rng = np.random.default_rng(2)
    A, B = (X @ X.T for X in rng.normal(size=(2, 4, 6)))
    np.testing.assert_allclose(parallel(A, B), np.linalg.inv(np.linalg.inv(A) + np.linalg.inv(B)), rtol=1e-9)
    free = np.diag([1.0, 1.0, 0.0, 0.0])  # a direction that is free in one part is free in the sum
    np.testing.assert_allclose(parallel(free @ A @ free, B)[2:], 0.0, atol=1e-9)


def test_views_are_rows_of_the_whole_inverse() -> None:
    """Covariance, influence and degrees of freedom from dense matrices, with a design of each cell's columns."""
    cells, _ = crossed_rows("within")
    found = fit_crossed(cells, cells.members, cells.start())
    layout, design, H = found.layout, found.design, np.linalg.inv(found.inverse.dense())
    q, at = layout.q, layout.starts
    view = View(found, layout.weights[1] - layout.weights[0])
    L = np.zeros((q, at[-1]))
    L[:, q : 2 * q] = np.sqrt(2.0) * np.eye(q)  # f_b − f_a = √2 δ
    inverse = np.linalg.inv(H)
    np.testing.assert_allclose(view.covariance(view.inverse), L @ inverse @ L.T, rtol=1e-6, atol=1e-12)
    u = 3  # subject 1 in b: f + δ/√2 + d + e/√2 and its own constant
    T = np.zeros((1 + q, at[-1]))
    begin = int(at[2])
    T[0, begin + 2 * q + 1] = 1.0
    for block in (0, begin):
        T[1:, block : block + q], T[1:, block + q : block + 2 * q] = np.eye(q), np.eye(q) / np.sqrt(2.0)
    np.testing.assert_allclose(view.influence(view.inverse, u), L @ inverse @ T.T, rtol=1e-6, atol=1e-10)
    b = np.random.default_rng(1).normal(size=at[-1])
    np.testing.assert_allclose(design.coefficients(b, u), T @ b, atol=1e-12)
    known = np.ones(at[-1], dtype=bool)
    for first in at[1:-1]:
        known[first : first + 2 * q] = False
    inner = L[:, known] @ np.linalg.inv(H[np.ix_(known, known)]) @ L[:, known].T
    metric = found.common[:q, :q]
    share = 1 - np.trace(metric @ inner) / np.trace(metric @ view.covariance(view.inverse))
    assert view.df == 5
    assert View(found, layout.weights[0]).df == 5
    assert view.effective_df == pytest.approx(5 / share**2)


def test_the_fit_without_differences_does_not_know_the_labels() -> None:
    """Its residual scores are the same whoever is said to be in which condition."""
    cells, crossing = crossed_rows("between")
    found = fit_crossed(cells, cells.members, cells.start())
    turned = tuple((s, 1 - c) if s < 4 else (s, c) for s, c in crossing.cells)
    swapped = replace(cells, crossing=replace(crossing, cells=turned))
    other = fit_crossed(swapped, cells.members, swapped.start())
    one, two = alike(found), alike(other)
    assert one.score == pytest.approx(two.score, abs=2e-3)
    first, second = (exchange.compare(a, b, [0, 1], 1) for a, b in ((found, one), (other, two)))
    for mine, its in zip(first._residuals([]), second._residuals([])):
        np.testing.assert_allclose(mine, its, atol=0.06 * np.abs(mine).max())  # 10⁻³ nats
    assert first.test("s(y)").p != second.test("s(y)").p


def test_every_reassignment_is_gone_through_once() -> None:
    def units(*conditions: tuple[int, ...]) -> list[exchange.Unit]:
        return [exchange.Unit(one, np.eye(1), np.zeros(1)) for one in conditions]

    rng = np.random.default_rng(1)
    drawn, everything = exchange._between_draws(units((1,), (0,), (0,), (1,), (0,)), 2, rng)
    assert everything
    assert drawn[0].tolist() == [1, 0, 0, 1, 0]
    assert len({tuple(one) for one in drawn.tolist()}) == 10
    assert set(drawn.sum(axis=1)) == {2}
    flips, everything = exchange._within_draws(units(*[(0, 1)] * 4), rng)
    assert everything
    assert len({tuple(one) for one in flips.tolist()}) == 8  # of 16: to turn all of them changes nothing
    many, everything = exchange._within_draws(units(*[(0, 1, 2)] * 9), rng)
    assert not everything
    assert many.shape == (exchange.DRAWS + 1, 9)
    assert not many[0].any()


def test_two_samples_with_one_number_each_are_a_permutation_test() -> None:
    """A parametric effect, J = 1: T is monotone in |mean difference|, and p the share of splits with a larger one."""
    x = np.array([0.3, -0.2, 1.4, 0.9, 2.0, -0.6])
    label = np.array([0, 0, 1, 1, 1, 0])
    units = tuple(exchange.Unit((c,), np.eye(1), np.array([v])) for c, v in zip(label.tolist(), x))
    draws, everything = exchange._between_draws(units, 2, np.random.default_rng(1))
    one = exchange.Comparison(
        units, 2, False, {"x": slice(0, 1)}, np.zeros((2, 2)), {"x": np.zeros((1, 1))}, draws, everything
    )
    gap = np.array([abs(x[d == 1].mean() - x[d == 0].mean()) for d in draws])
    assert one.test("x").p == pytest.approx(np.mean(gap >= gap[0] - 1e-12))
    assert one.test("x").p == 0.1


def unequal(
    rng: np.random.Generator, says: tuple[float, ...], sizes: tuple[int, ...], terms: int
) -> exchange.Comparison:
    """Subjects of conditions that do not differ, whose data say more of their curves in some conditions."""
    p = 3
    q, count = p * terms, len(sizes)
    mixing = np.eye(q) + 0.3 * rng.normal(size=(q, q)) / np.sqrt(q)  # terms are not orthogonal
    units = []
    for c, (J, n) in enumerate(zip(says, sizes)):
        for _ in range(n):
            half = np.sqrt(J) * mixing
            units.append(exchange.Unit((c,), half @ half.T, half @ rng.normal(size=q)))
    true = np.repeat(np.arange(count), sizes)
    draws = np.array([true, *(rng.permutation(true) for _ in range(399))])
    slices = {f"s({j})": slice(j * p, (j + 1) * p) for j in range(terms)}
    penalties = {label: np.diag([0.0, 1.0, 4.0]) for label in slices}
    return exchange.Comparison(tuple(units), count, False, slices, 1e-6 * np.eye(2 * q), penalties, draws, False)


@pytest.mark.parametrize(
    ("says", "sizes", "terms"),
    [
        ((4.0, 1.0), (3, 11), 1),  # few subjects with long records: 27 % below .1 where residuals were exchanged
        ((1.0, 10.0), (4, 10), 1),  # few with short ones: none were
        ((4.0, 1.0), (3, 11), 2),
        ((4.0, 1.0, 1.0), (3, 5, 6), 2),
    ],
)
def test_size_is_right_where_conditions_differ_in_how_much_their_subjects_say(says, sizes, terms) -> None:
    p = np.array([unequal(np.random.default_rng([5, i]), says, sizes, terms).test("s(0)").p for i in range(300)])
    assert 0.045 < np.mean(p <= 0.1) < 0.155  # three binomial errors
    assert np.mean(p) == pytest.approx(0.5, abs=0.06)


def test_scores_of_the_data_are_the_likelihoods() -> None:
    """Where all of a condition say alike, U of the true labels is Σ X_tᵀ r, whatever reassignments are scaled by."""
    found = unequal(np.random.default_rng(6), (4.0, 1.0), (3, 11), 2)
    scores, _ = found._between_scores("s(0)", ["s(1)"])
    assert found.draws is not None
    own = scores(found.draws[:1])[0, 0]
    w = np.array([-1.0, 1.0]) / np.sqrt(2.0)
    r = found._residuals(["s(1)"])
    expected = sum(w[unit.conditions[0]] * one[0] for unit, one in zip(found.units, r))[:3]
    assert np.abs(np.abs(own) - np.abs(expected)).max() < 1e-4 * np.abs(expected).max()


def test_bands_of_films_hold_inside_their_boundary() -> None:
    lake = un.Window([(0, 0), (4, 0), (4, 1.4), (1, 1.5), (4, 1.6), (4, 3), (0, 3)])
    x, y = lake.uniform(240, np.random.default_rng(1)).T
    at = np.arange(240) // 60
    table = {"x": x, "y": y, "who": at, "cond": np.array(["a", "b"])[at % 2]}
    obs = un.iid(table, y=("x", "y"), group=("who", "cond"))
    model = un.Additive("s(x, y, bs='so', k=4)", lake)
    found = un.fit_each(model, obs, "who", LOGISTIC, rng=3, between="cond").difference("s(x,y)")
    inside = np.isfinite(found["estimate"])
    assert 0.5 < inside.mean() < 1.0
    assert np.array_equal(np.isfinite(found["upper_simultaneous"]), inside)
    assert (found["upper_simultaneous"] >= found["upper"])[inside].all()
