"""Terms on data: what they promise the engine, errors, extrapolation, levels, saving, and large tables."""

from __future__ import annotations

import json
import time
import warnings

import numpy as np
import pytest
from scipy.interpolate import BSpline

from unnorm.errors import DataError, TermError, UnnormWarning
from unnorm.terms import Terms, factor, from_dict, linear, parse, s, te

RNG = np.random.default_rng(8)
N = 400
COLUMNS = {
    "x": RNG.uniform(0, 3, N),
    "y": RNG.normal(size=N),
    "z": RNG.uniform(-1, 1, N),
    "angle": RNG.uniform(-np.pi, np.pi, N),
    "g": np.array(["a", "b", "c"])[RNG.integers(0, 3, N)],
    "h": np.array([10, 20])[RNG.integers(0, 2, N)],
    "w": RNG.uniform(0.5, 2, N),
}
EVERY = [
    "s(x)",
    "s(x, k=5, m=1)",
    "s(x, y, k=15)",
    "s(x, y, z, k=15)",
    "s(x, bs='cr')",
    "s(angle, bs='cc')",
    "s(x, bs='ps')",
    "s(x, bs='ps', m=(1, 1))",
    "s(angle, bs='cp', k=8)",
    "s(angle, bs='cp', k=8, m=1)",
    "s(g, bs='re')",
    "s(g, factor(h), x, bs='re')",
    "s(x, g, bs='fs', k=5)",
    "s(x, y, g, bs='fs', k=8)",
    "s(x, by=g)",
    "s(x, by=w)",
    "s(x, by=factor(h), bs='cr', k=5)",
    "te(x, y)",
    "te(x, angle, bs=('cr', 'cc'))",
    "te(x, y, z, d=(2, 1), bs=('tp', 'ps'), k=(8, 5))",
    "ti(x, y, bs=('tp', 'cr'))",
    "ti(x)",
    "s(x, fx=True)",
    "linear(x, y)",
    "factor(g)",
    "factor(h)",
]


def build(text, columns=COLUMNS, **options):
    return parse(text).build(columns, **options)


@pytest.mark.parametrize("text", EVERY)
def test_a_term_keeps_its_promises(text):
    for term in build(text, periods={"angle": 2 * np.pi}):
        X = term.design(COLUMNS)
        assert X.shape == (N, term.size)
        assert len(term.coefficient_names) == term.size == len(set(term.coefficient_names))
        assert len(term.fixed_sp) == len(term.penalties)
        assert set(term.covariates) <= set(COLUMNS)
        total = sum((p.matrix / np.abs(p.matrix).max() for p in term.penalties), np.zeros((term.size, term.size)))
        eigenvalues = np.linalg.eigvalsh(total)
        assert np.sum(eigenvalues < 1e-9 * max(eigenvalues.max(), 1e-300)) == term.null_dim
        for penalty in term.penalties:
            assert penalty.label.startswith(term.label)
            assert np.linalg.matrix_rank(penalty.matrix, tol=1e-9 * np.abs(penalty.matrix).max()) == penalty.rank
        if term.level is not None:
            name, level = term.level
            assert not X[COLUMNS[name] != level].any()
        if term.smooth_covariates:  # the columns are the functions, times by, on the level's rows or in its block
            points = np.column_stack([COLUMNS[name] for name in term.smooth_covariates])
            functions = term.functions(points)
            if term.by is not None:
                functions = functions * COLUMNS[term.by][:, None]
            if term.level is not None:
                functions = functions * (COLUMNS[term.level[0]] == term.level[1])[:, None]
            if term.factor_levels is not None:
                name, levels = term.factor_levels
                functions = np.hstack([functions * (COLUMNS[name] == level)[:, None] for level in levels])
            np.testing.assert_allclose(X, functions, atol=1e-12)


@pytest.mark.parametrize("text", EVERY)
def test_saved_terms_come_back_exactly(text):
    for term in build(text, periods={"angle": 2 * np.pi}):
        again = from_dict(json.loads(json.dumps(term.to_dict(), allow_nan=False)))
        assert np.array_equal(again.design(COLUMNS), term.design(COLUMNS))
        assert again.to_dict() == term.to_dict()
        for name in ("label", "covariates", "size", "fixed_sp", "null_dim", "parametric", "level", "by", "period"):
            assert getattr(again, name) == getattr(term, name)
        assert all(np.array_equal(a.matrix, b.matrix) for a, b in zip(again.penalties, term.penalties))
    with pytest.raises(ValueError, match="kind"):
        from_dict({"kind": "os.system"})


@pytest.mark.parametrize(
    "text", ["s(x)", "s(x, k=30)", "s(x, bs='cr')", "s(x, bs='ps')", "s(angle, bs='cc')", "s(angle, bs='cp')", "ti(x)"]
)
def test_breaks_tell_the_truth(text):
    """Between its breaks a term is a C² cubic spline: a spline interpolant on the breaks is the term itself."""
    from scipy.interpolate import make_interp_spline

    (term,) = build(text, periods={"angle": 2 * np.pi})
    breaks = term.breaks
    assert breaks is not None
    data = COLUMNS[term.covariates[0]]
    if term.period is None:
        assert breaks[0] <= data.min()
        assert breaks[-1] >= data.max()
    else:
        assert term.period == pytest.approx(breaks[-1] - breaks[0])
    sites = np.unique(np.concatenate([breaks, (breaks[:2] * 0.6).sum() / 1.2 * np.ones(1), [0.5 * breaks[-2:].sum()]]))
    knots = np.concatenate([[breaks[0]] * 3, breaks, [breaks[-1]] * 3])
    spline = make_interp_spline(sites, term.functions(sites), k=3, t=knots)
    assert isinstance(spline, BSpline)
    x = np.linspace(breaks[0], breaks[-1], 1001)[:-1]
    np.testing.assert_allclose(spline(x), term.functions(x), atol=1e-8)


@pytest.mark.parametrize(
    "text", ["s(x)", "s(x, y, k=15)", "s(x, bs='ps')", "te(x, y)", "s(x, by=g)", "s(angle, bs='cc')"]
)
def test_smooths_sum_to_zero_over_the_data(text):
    for term in build(text):
        points = np.column_stack([COLUMNS[name] for name in term.smooth_covariates])
        np.testing.assert_allclose(term.functions(points).mean(axis=0), 0, atol=1e-12)


def test_numeric_by_is_not_centred_unless_constant():
    assert build("s(x, by=w)")[0].size == 10
    assert build("s(x, by=w)", {**COLUMNS, "w": np.ones(N)})[0].size == 9


def test_cyclic_terms_close_and_use_declared_periods():
    for bs in ("cc", "cp"):
        (term,) = build(f"s(angle, bs='{bs}', k=8)", periods={"angle": 2 * np.pi})
        assert term.period == pytest.approx(2 * np.pi)
        ends = np.array([-np.pi, np.pi, 3 * np.pi])
        np.testing.assert_allclose(np.diff(term.functions(ends), axis=0), 0, atol=1e-10)
        step = 1e-5
        slope = (term.functions(ends + step) - term.functions(ends - step)) / (2 * step)
        np.testing.assert_allclose(slope[0], slope[1], atol=1e-6)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no extrapolation on a circle
            term.design({"angle": np.array([100.0])})
    (over,) = build("s(angle, bs='cc', k=8)", periods={"angle": 2 * np.pi}, knots={"angle": (-4, 4)})
    assert over.period == pytest.approx(8)
    (own,) = build("s(angle, bs='cc', k=8, knots=(-5, 5))", knots={"angle": (-4, 4)})
    assert own.period == pytest.approx(10)
    positive = {"angle": np.mod(COLUMNS["angle"], 2 * np.pi)}
    (zero,) = build("s(angle, bs='cc', k=8)", positive, periods={"angle": 2 * np.pi})
    assert zero.breaks is not None
    assert zero.breaks[0] == 0
    (tensor,) = build("te(x, angle, bs=('cr', 'cc'))", periods={"angle": (-np.pi, np.pi)})
    points = np.array([[1.0, -np.pi], [1.0, np.pi]])
    np.testing.assert_allclose(np.diff(tensor.functions(points), axis=0), 0, atol=1e-10)
    (wrapped,) = build(
        "s(angle, bs='cc', k=8)", {"angle": COLUMNS["angle"] + 2 * np.pi}, periods={"angle": (-np.pi, np.pi)}
    )
    (plain,) = build("s(angle, bs='cc', k=8)", periods={"angle": (-np.pi, np.pi)})
    np.testing.assert_allclose(wrapped.functions(np.ones(1)), plain.functions(np.ones(1)), atol=1e-9)


def test_far_outside_warns_with_the_count_and_near_does_not():
    (term,) = build("s(x, bs='cr')")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        term.design({"x": np.array([-0.1, 3.1])})
    with pytest.warns(UnnormWarning, match=r"s\(x\): 2 of 4 rows lie far outside the data"):
        X = term.design({"x": np.array([1.0, 7.0, 8.0, 2.0])})
    assert np.array_equal(X, term.functions(np.array([1.0, 7.0, 8.0, 2.0])))
    line = term.functions(np.array([5.0, 6.0, 7.0]))
    np.testing.assert_allclose(line[2] - line[1], line[1] - line[0], atol=1e-9)  # straight lines outside
    (plane,) = build("s(x, y, k=12)")
    with pytest.warns(UnnormWarning, match="1 of 2 rows"):
        plane.design({"x": np.array([1.0, 1.0]), "y": np.array([0.0, 50.0])})


def test_levels_new_and_known():
    (re,) = build("s(g, bs='re')")
    with pytest.warns(UnnormWarning, match="1 of 2 rows have levels that were not in the data \\('new'\\)"):
        X = re.design({"g": np.array(["a", "new"])})
    assert X.tolist() == [[1, 0, 0], [0, 0, 0]]
    new = {"g": np.array(["a", "new"]), "x": np.ones(2)}
    (fs,) = build("s(x, g, bs='fs', k=5)")
    with pytest.warns(UnnormWarning, match="1 of 2 rows have levels that were not in the data \\('new'\\)"):
        assert fs.design(new).any(axis=1).tolist() == [True, False]
    with pytest.raises(DataError, match=r"must hold one of 'a', 'b', 'c'; got 'new'"):
        build("factor(g)")[0].design(new)
    (by,) = [t for t in build("s(x, by=factor(h))") if t.level == ("h", 20)]
    assert by.label == "s(x):h20"
    assert by.design({"x": np.ones(2), "h": np.array([20.0, 10.0])})[1].any() == False  # noqa: E712
    (f,) = build("factor(g)")
    assert f.coefficient_names == ("gb", "gc")
    assert f.design({"g": np.array(["a", "b", "c"])}).tolist() == [[0, 0], [1, 0], [0, 1]]
    full, treated = build("0 + factor(g) + factor(h)")
    assert (full.size, treated.size) == (3, 1)  # without an intercept the first factor keeps all its levels
    assert build("factor(g)", intercept=False)[0].size == 3
    objects = {**COLUMNS, "g": COLUMNS["g"].astype(object)}
    assert np.array_equal(build("factor(g)", objects)[0].design(COLUMNS), f.design(COLUMNS))


def test_fixed_smoothing_parameters():
    assert build("s(x, sp=0.5)")[0].fixed_sp == (0.5,)
    assert build("te(x, y, sp=(0.5, -1))")[0].fixed_sp == (0.5, None)
    assert {t.fixed_sp for t in build("s(x, by=g, sp=2)")} == {(2.0,)}
    assert build("s(x, fx=True, sp=3)")[0].fixed_sp == ()
    with pytest.raises(TermError, match="2 value"):
        build("te(x, y, sp=1)")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("s(x, k=2)", "at least 3"),
        ("s(x, y, k=3)", "at least 4"),
        ("s(x, bs='cr', k=2)", "at least 3"),
        ("s(x, bs='cc', k=3)", "at least 4"),
        ("s(x, bs='ps', k=3)", "at least 4"),
        ("s(x, bs='cp', k=3)", "at least 4"),
        ("s(x, m=(1, 2, 3), bs='ps')", "one or two"),
        ("s(x, y, m=1)", "2m > 2"),
        ("s(x, k=500)", "distinct rows"),
        ("s(x, bs='cr', k=500)", "distinct values"),
        ("s(x, bs='cr', k=5, knots=(1, 2, 3))", "5 knots; got 3"),
        ("s(x, bs='cr', k=3, knots=(1, 1, 3))", "differ"),
        ("s(x, bs='ps', knots=(1, 2))", "Widen"),
        ("s(x, bs='cc', k=6, knots=(1, 2, 3))", "two ends, or 6 knots"),
        ("s(x, y, knots={'x': (1, 2, 3)})", "not for 'y'"),
        ("s(x, k=10, knots=(1, 2, 3))", "at least as many knots"),
        ("s(missing)", "needs column 'missing'"),
        ("s(g)", "categories"),
        ("s(constant)", "constant"),
        ("linear(constant)", "constant"),
        ("factor(single)", "one level"),
        ("s(holes)", "3 missing or infinite of 400"),
        ("s(x, by=holes)", "missing"),
        ("factor(none)", "1 missing of 400"),
        ("linear(g)", "factor(g)"),
        ("s(x, y, bs='fs')", "one factor"),
        ("s(g, bs='re', k=3)", "neither k nor knots"),
        ("s(x) + s(x, bs='cr')", "Two terms are called 's(x)'"),
        ("s(matrix)", "one value a row"),
        ("s(short)", "lengths"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(text, says):
    holes = COLUMNS["x"].copy()
    holes[[1, 5, 9]] = np.nan, np.inf, np.nan
    none = COLUMNS["g"].astype(object)
    none[3] = None
    bad = {
        **COLUMNS,
        "constant": np.ones(N),
        "single": np.array(["a"] * N),
        "holes": holes,
        "none": none,
        "matrix": np.ones((N, 2)),
        "short": np.ones(5),
    }
    with pytest.raises((TermError, DataError)) as error:
        build(text if "short" not in text else "s(x) + s(short)", bad)
    assert says in str(error.value)


def test_unused_knots_and_bad_periods_are_refused():
    with pytest.raises(TermError, match="'angel'"):
        build("s(angle, bs='cc')", knots={"angel": (-3, 3)})
    with pytest.raises(TermError, match="period"):
        build("s(angle, bs='cc')", periods={"angle": -1.0})
    with pytest.raises(DataError, match="missing or infinite"):
        build("s(x)")[0].design({"x": np.array([np.nan])})


# ---- large tables: knots are a summary of the data, and set-up is quick ----


def big(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    context = rng.normal(size=(n // 20 + 1, 2)) * [4, 3]
    return {
        "r": rng.gamma(2.0, 1.0, n),
        "px": np.repeat(context[:, 0], 20)[:n],
        "py": np.repeat(context[:, 1], 20)[:n],
        "t": np.round(rng.uniform(0, 1, n), 2),
    }


@pytest.mark.parametrize("text", ["s(r, k=10)", "s(r, k=30)", "s(px, py, k=30)"])
def test_few_knots_span_what_many_do(text):
    """Smoothing a curve with noise of sd 1: the default knots give the fit on 2,000 to 0.1 standard errors."""
    columns = big(20_000)
    few, many = build(text, columns)[0], build(text, columns, max_knots=2000)[0]
    truth = np.log1p(columns["r"]) if "r," in text else np.sin(columns["px"] / 4) * np.cos(columns["py"] / 3)
    fits, edf = [], 0.6 * few.size
    for term in (few, many):
        X = np.column_stack([np.ones(len(truth)), term.design(columns)])
        S = np.zeros((X.shape[1],) * 2)
        S[1:, 1:] = term.penalties[0].matrix
        H, low, high = X.T @ X, -20.0, 20.0
        for _ in range(60):  # the smoothing parameter that gives both the same effective degrees of freedom
            mid = (low + high) / 2
            more = np.trace(np.linalg.solve(H + np.exp(mid) * S, H)) > edf
            low, high = (mid, high) if more else (low, mid)
        fits.append(X @ np.linalg.solve(H + np.exp(mid) * S, X.T @ truth))
    se = np.sqrt(edf / len(truth))
    assert np.sqrt(np.mean((fits[0] - fits[1]) ** 2)) < 0.1 * se


def test_large_tables_are_centred_and_scaled_like_small_ones():
    columns = big(60_000)
    for text, tolerance in (("s(r)", 1e-6), ("s(px, py)", 3e-3), ("s(t)", 1e-12), ("te(px, r)", 3e-3)):
        (term,) = build(text, columns)
        X = term.design(columns)
        assert np.abs(X.mean(axis=0)).max() < tolerance * np.sqrt((X**2).mean(axis=0)).max()
    assert build("s(t)", columns)[0].breaks.size == 101  # few distinct values: every one is a knot, as in mgcv


def test_set_up_is_quick_on_413_000_rows():
    """Set-up sorts or gathers the rows once; the bound is loose (measured: 5 and 10 ms on a quiet core)."""
    columns = big(413_000)
    for text in ("s(r, k=40)", "s(px, py, k=40)"):
        terms = parse(text)
        best = np.inf
        for _ in range(3):
            start = time.process_time()
            terms.build(columns)
            best = min(best, time.process_time() - start)
        assert best < 0.25


def test_rows_of_one_context_are_evaluated_once():
    columns = big(20_000)
    (term,) = build("s(px, py)", columns)
    points = np.column_stack([columns["px"], columns["py"]])
    np.testing.assert_allclose(term.design(columns), term.functions(points), atol=1e-10)


def test_plus_collects():
    terms = s("x") + te("x", "y") + factor("g")
    assert isinstance(terms, Terms)
    assert [t.label for t in terms] == ["s(x)", "te(x,y)", "g"]
    assert terms.columns == ("x", "y", "g")
    with pytest.raises(TermError, match="collects"):
        s("x") + "s(y)"  # type: ignore[operator]


def test_cyclic_knots_do_not_depend_on_the_rows():
    """The same functions whichever rows stand beside the data: reference points, quadrature points, none."""
    rng = np.random.default_rng(0)
    data = rng.vonmises(0.5, 3.0, 300)
    at = {"angle": np.linspace(-3, 3, 50)}
    spans = []
    for more in ([], rng.uniform(-np.pi, np.pi, 3000), np.linspace(-np.pi, np.pi, 64)):
        (term,) = build(
            "s(angle, bs='cc', k=10)", {"angle": np.concatenate([data, more])}, periods={"angle": (-np.pi, np.pi)}
        )
        np.testing.assert_allclose(term.breaks, np.linspace(-np.pi, np.pi, 10))
        spans.append(np.column_stack([np.ones(50), term.design(at)]))
    for other in spans[1:]:  # centring moves the constant only
        fitted = spans[0] @ np.linalg.lstsq(spans[0], other, rcond=None)[0]
        np.testing.assert_allclose(fitted, other, atol=1e-10)


def test_terms_come_in_the_order_of_the_formula_whichever_is_set_up_first() -> None:
    built = parse("s(x, k=4) + g + s(z, k=12) + te(x, y, k=3) + w + s(y, k=6)").build(COLUMNS)
    assert [term.label for term in built] == ["s(x)", "g", "s(z)", "te(x,y)", "w", "s(y)"]


def test_a_column_called_as_the_intercept_is_no_term() -> None:
    with pytest.raises(TermError, match="Rename the column"):
        Terms((linear("(Intercept)"),)).build({"(Intercept)": COLUMNS["x"]})
