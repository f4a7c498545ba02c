"""Observations from tables and arrays: against a row-by-row oracle, on every kind of table, and every refusal."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unnorm as un
from unnorm._base import frames
from unnorm.errors import DataError, InputError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
SHARED = Path(__file__).parents[3] / "shared" / "data"
shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data folder is absent")

KINDS = {
    "pandas": pd.DataFrame,
    "pandas, pyarrow types": lambda d: pa.table(d).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "pyarrow": pa.table,
    "mapping": lambda d: {k: np.array(v) for k, v in d.items()},
    "mapping of lists": dict,
}


def walk(group, order, y, lags, breaks):
    """The transitions one by one: {row of y_t: rows of y_{t−1}, …}, as a patient person would find them."""
    out = {}
    for g in dict.fromkeys(group):
        rows = sorted((i for i in range(len(y)) if group[i] == g), key=lambda i: order[i])
        run = []
        for i in rows:
            if run and breaks(order[run[-1]], order[i]):
                run = []
            run.append(i)
            if len(run) > lags:
                out[i] = tuple(run[-1 - lag] for lag in range(1, lags + 1))
    return out


@st.composite
def tables(draw):
    n = draw(st.integers(1, 40))
    group = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=n, max_size=n))
    keys = draw(st.lists(st.integers(-5, 60), min_size=n, max_size=n, unique=True))
    return group, keys, [float(i) / 7 for i in range(n)]


@settings(max_examples=60, deadline=None)
@given(tables(), st.integers(1, 3), st.booleans(), st.sampled_from([None, 1, 3]))
def test_transitions_are_those_of_the_row_by_row_oracle(table, lags, as_float, max_gap):
    group, keys, y = table
    order = [float(k) for k in keys] if as_float else keys
    if max_gap is not None:
        expected = walk(group, order, y, lags, lambda a, b: b - a > max_gap)
    elif as_float:
        expected = walk(group, order, y, lags, lambda a, b: False)
    else:
        expected = walk(group, order, y, lags, lambda a, b: b - a != 1)
    data = {"g": group, "t": order, "z": y}
    if not expected:
        with pytest.raises(DataError, match="no transitions"):
            un.transitions(data, y="z", order="t", group="g", lags=lags, max_gap=max_gap)
        return
    obs = un.transitions(data, y="z", order="t", group="g", lags=lags, max_gap=max_gap)
    got = {
        int(row): tuple(round(obs.previous(lag)[i, 0] * 7) for lag in range(1, lags + 1))
        for i, row in enumerate(obs.row)
    }
    assert got == expected
    assert obs.n == len(expected)
    np.testing.assert_array_equal(obs.outcome[:, 0], np.array(y)[obs.row])
    np.testing.assert_array_equal(obs.group["g"], np.array(group)[obs.row])
    # an unbroken sequence holds each point as context of the next
    for s in np.unique(obs.sequence):
        at = np.flatnonzero(obs.sequence == s)
        np.testing.assert_array_equal(obs.previous()[at[1:], 0], obs.outcome[at[:-1], 0])
        assert len(set(obs.group["g"][at])) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same_observations(kind):
    columns = {
        "who": ["b", "b", "a", "a", "a", "b"],
        "trial": [1, 1, 2, 2, 2, 1],
        "t": [2, 1, 1, 2, 3, 5],
        "fx": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        "fy": [1, 2, 3, 4, 5, 6],
        "w": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "ok": [True, False, True, True, False, True],
    }
    table = KINDS[kind](columns)
    obs = un.transitions(
        table, y=("fx", "fy"), order="t", group=("who", "trial"), extra=("ok", "who"), weight="w", offset="t"
    )
    assert obs.outcome_names == ("fx", "fy")
    np.testing.assert_array_equal(obs.row, [0, 3, 4])  # group b first, as in the table; row 5 comes after a gap
    np.testing.assert_array_equal(obs.outcome, [[0.1, 1], [0.4, 4], [0.5, 5]])
    np.testing.assert_array_equal(obs.previous(), [[0.2, 2], [0.3, 3], [0.4, 4]])
    np.testing.assert_array_equal(obs.context["ok"], [1, 1, 0])
    np.testing.assert_array_equal(obs.context["who"], ["b", "a", "a"])
    np.testing.assert_array_equal(obs.weight, [1, 4, 5])
    np.testing.assert_array_equal(obs.offset, [2.0, 2, 3])
    np.testing.assert_array_equal(obs.sequence, [0, 1, 1])
    assert list(obs.context) == ["fx_prev", "fy_prev", "ok", "who"]
    assert obs.extra == ("ok", "who")
    assert obs.outcome.dtype == obs.context["fy_prev"].dtype == np.float64
    assert any("1 of 3 sequences" in note for note in obs.notes)

    back = frames.to_native({"a": obs.outcome[:, 0], "who": obs.group["who"]}, obs.backend)
    expected = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table, "mapping": dict}[
        kind.split(",")[0].split(" of")[0]
    ]
    assert isinstance(back, expected)
    assert list(back["who"].to_pylist() if isinstance(back, pa.Table) else back["who"]) == ["b", "a", "a"]


def test_groups_may_be_text_integers_or_categories():
    y = np.arange(6.0)
    labels = ["u", "v", "u", "v", "u", "v"]
    expected = un.transitions({"y": y, "g": labels}, y="y", group="g")
    for group in (
        pd.Series(labels).astype("category"),
        pd.Series(labels, dtype=object),
        pl.Series(labels, dtype=pl.Enum(["unused", "v", "u"])),
        pl.Series(labels).cast(pl.Categorical),
        np.array([7, -2, 7, -2, 7, -2]),
        np.array([7e15, 2.5, 7e15, 2.5, 7e15, 2.5]),
        np.array([2**63 + 1, 2**63 + 2] * 3, dtype=np.uint64),
        pd.Categorical([3, 4] * 3),
    ):
        obs = un.transitions({"y": y, "g": group}, y="y", group="g")
        np.testing.assert_array_equal(obs.row, expected.row)
        np.testing.assert_array_equal(obs.row, [2, 4, 3, 5])
        np.testing.assert_array_equal(obs.previous()[:, 0], [0, 2, 1, 3])
    assert obs.group["g"].tolist() == [3, 3, 4, 4]


def test_a_bare_array_is_one_sequence_in_the_order_given():
    chain = [0.3, -0.1, 0.2]
    obs = un.transitions(chain)
    assert obs.outcome_names == ("y",)
    assert obs.lags == 1
    assert list(obs.context) == ["y_prev"]
    np.testing.assert_array_equal(obs.outcome[:, 0], chain[1:])
    np.testing.assert_array_equal(obs.context["y_prev"], chain[:-1])
    plane = un.transitions(np.arange(8.0).reshape(4, 2), lags=2)
    assert list(plane.context) == ["y1_prev", "y2_prev", "y1_prev2", "y2_prev2"]
    np.testing.assert_array_equal(plane.previous(2), [[0, 1], [2, 3]])
    named = un.transitions(np.arange(8.0).reshape(4, 2), y=("lon", "lat"), group=[0, 0, 1, 1])
    assert list(named.context) == ["lon_prev", "lat_prev"]
    np.testing.assert_array_equal(named.row, [1, 3])
    assert un.iid(np.zeros((3, 1))).outcome_names == ("y",)
    assert un.iid(pl.Series("temp", [1.0, 2.0])).outcome_names == ("temp",)
    assert un.iid(np.array([(1.0, 2)], dtype=[("a", float), ("b", int)]), y="b").outcome.tolist() == [[2.0]]


def test_conditional_reads_covariates_by_name_or_as_arrays():
    data = {"h": [1.6, 1.7, 1.8], "age": [20, 30, 40], "sex": ["f", "m", "f"]}
    obs = un.conditional(data, y="h", x=("age", "sex"))
    assert obs.kind == "conditional"
    assert obs.has_context
    np.testing.assert_array_equal(obs.context["age"], [20, 30, 40])
    np.testing.assert_array_equal(obs.context["sex"], ["f", "m", "f"])
    assert list(un.conditional([1.0, 2.0], x=[3.0, 4.0]).context) == ["x"]
    assert list(un.conditional([1.0, 2.0], x=np.zeros((2, 2))).context) == ["x1", "x2"]
    assert list(un.conditional([1.0, 2.0], x={"dose": [0, 1]}).context) == ["dose"]
    with pytest.raises(DataError, match="outcome and context at once; 'h'"):
        un.conditional(data, y="h", x="h")
    with pytest.raises(DataError, match="x must name"):
        un.conditional(data, y="h")
    with pytest.raises(DataError, match="x must have 2 rows"):
        un.conditional([1.0, 2.0], x=np.zeros((3, 2)))


TIMES = [dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=h) for h in (0, 6, 12, 40, 46)]
NAIVE = [t.replace(tzinfo=None) for t in TIMES]


@pytest.mark.parametrize(
    "times",
    [
        NAIVE,
        TIMES,
        np.array(NAIVE, dtype="datetime64[s]"),
        pd.Series(NAIVE),
        pd.Series(TIMES).dt.tz_convert("Asia/Tokyo"),
        pl.Series(NAIVE),
        pa.chunked_array([NAIVE]),
        [t.isoformat() for t in NAIVE],
        [t.strftime("%Y-%m-%dT%H:%M:%SZ") for t in TIMES],
        [t.astimezone(dt.timezone(dt.timedelta(hours=k))).isoformat() for k, t in enumerate(TIMES)],
        [(t - NAIVE[0]) for t in NAIVE],
        [(t - NAIVE[0]).total_seconds() for t in NAIVE],
        [int((t - NAIVE[0]).total_seconds()) for t in NAIVE],
    ],
    ids=lambda v: f"{type(v).__module__}.{type(v).__name__} {type(v[0]).__name__}",
)
def test_a_gap_in_time_breaks_the_sequence(times):
    obs = un.transitions({"t": times, "z": np.arange(5.0)}, y="z", order="t", max_gap=7 * 3600.0)
    np.testing.assert_array_equal(obs.row, [1, 2, 4])
    assert any("Steps of 't' above" in note and ": 1;" in note for note in obs.notes)


def test_max_gap_as_a_timedelta_and_what_it_refuses():
    data = {"t": NAIVE, "z": np.arange(5.0)}
    for gap in (
        dt.timedelta(hours=7),
        np.timedelta64(7, "h"),
        pd.Timedelta("7h"),
        25200,
        "7h",
        "6h 60min",
        "420 minutes",
    ):
        np.testing.assert_array_equal(un.transitions(data, y="z", order="t", max_gap=gap).row, [1, 2, 4])
    for gap in ("7 parsecs", "h", "", -1, True, dt.timedelta(0)):
        with pytest.raises(InputError, match="max_gap must be a number of seconds"):
            un.transitions(data, y="z", order="t", max_gap=gap)
    with pytest.raises(InputError, match="max_gap must be a positive number"):
        un.transitions({"t": [1.0, 2.0], "z": [0.0, 1.0]}, y="z", order="t", max_gap=dt.timedelta(1))
    with pytest.raises(InputError, match="max_gap= needs order="):
        un.transitions([1.0, 2.0], max_gap=1)
    obs = un.transitions(data, y="z", order="t")
    assert obs.n == 4
    assert any("no largest gap (max_gap) is given" in note and "100800 s" in note for note in obs.notes)


GONE = {"g": list("aaaabb"), "t": [1, 2, 3, 4, 1, 2], "z": [0.0, 1.0, None, 3.0, 4.0, 5.0]}


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "mapping"])
def test_a_missing_value_is_refused_or_breaks_its_sequence(kind):
    table = KINDS[kind](GONE)
    with pytest.raises(DataError, match=r"column 'z' has 1 \(first row 2\).*missing='drop'"):
        un.transitions(table, y="z", order="t", group="g")
    for order in ("t", None):
        obs = un.transitions(table, y="z", order=order, group="g", missing="drop")
        np.testing.assert_array_equal(obs.row, [1, 5])
        assert any("1 of 6 rows were dropped" in note for note in obs.notes)


def test_missing_order_and_group():
    z = np.arange(6.0)
    # pandas makes floats of integers with gaps; they are integers all the same
    order = un.transitions({"t": [1, 2, np.nan, 4, 5, 6], "z": z}, y="z", order="t", missing="drop")
    np.testing.assert_array_equal(order.row, [1, 4, 5])
    frame = pd.DataFrame({"t": pd.array([1, 2, None, 4, 5, 6], dtype="Int64"), "z": z})
    np.testing.assert_array_equal(un.transitions(frame, y="z", order="t", missing="drop").row, [1, 4, 5])
    # a row of unknown group breaks the sequence that it stands in
    group = un.transitions({"g": ["a", "a", None, "a", "b", "b"], "z": z}, y="z", group="g", missing="drop")
    np.testing.assert_array_equal(group.row, [1, 5])
    np.testing.assert_array_equal(group.group["g"], ["a", "b"])
    with pytest.raises(DataError, match=r"column 'g' has 1 \(first row 2\)"):
        un.transitions({"g": ["a", "a", None, "a", "b", "b"], "z": z}, y="z", group="g")


def test_extra_weight_and_offset_belong_to_the_transition_not_to_the_point():
    # the first duration of a chain is never used, and its absence costs nothing
    data = {"g": list("aaabb"), "z": np.arange(5.0), "wait": [np.nan, 1.0, 2.0, np.nan, 3.0]}
    obs = un.transitions(data, y="z", group="g", extra="wait")
    np.testing.assert_array_equal(obs.context["wait"], [1, 2, 3])
    data["wait"][1] = np.nan
    with pytest.raises(DataError, match=r"column 'wait' has 1 \(first row 1\)"):
        un.transitions(data, y="z", group="g", extra="wait")
    obs = un.transitions(data, y="z", group="g", extra="wait", missing="drop")
    np.testing.assert_array_equal(obs.row, [2, 4])
    np.testing.assert_array_equal(obs.previous()[:, 0], [1, 3])  # row 1 is still a point to come from
    assert any("1 of 3 transitions were dropped" in note for note in obs.notes)


def test_iid_drops_and_notes():
    obs = un.iid({"a": [1.0, np.nan, 3.0], "w": [1.0, 1.0, np.nan]}, y="a", weight="w", missing="drop")
    np.testing.assert_array_equal(obs.row, [0])
    assert "2 of 3 rows were dropped" in obs.notes[0]
    assert "'w' has 1 (first row 2)" in obs.notes[0]
    with pytest.raises(DataError, match="'a' has 2"):
        un.iid(pl.DataFrame({"a": [None, None]}, schema={"a": pl.String}), y="a")
    with pytest.raises(DataError, match="No rows are left"):
        un.iid([np.nan, np.nan], missing="drop")


OK = {"g": ["a", "a", "b"], "t": [1, 2, 1], "x": [0.0, 1.0, 2.0], "y": [3.0, 4.0, 5.0]}


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"y": ("x", "yy")}, r"no column 'yy' \(asked for by y=\).* 'g', 't', 'x', 'y'.*Did you mean 'y'"),
        ({}, {"order": "fix"}, r"no column 'fix' \(asked for by order=\)"),
        ({}, {"extra": "trial"}, r"no column 'trial' \(asked for by extra=\)"),
        ({}, {"y": None}, "y must name the outcome"),
        ({}, {"y": ("x", "x")}, "names 'x' more than once"),
        ({}, {"y": ("x", 3)}, "y must be a column name or a tuple of column names; got 3"),
        ({}, {"y": "g"}, r"Column 'g' \(y=\) must be numeric; 3 of 3 values are text, first 'a' in row 0 "),
        ({"x": ["0", "1", "l"]}, {}, r"Column 'x' \(y=\) must be numeric; 1 of 3 values are text, first 'l' in row 2 "),
        ({"x": ["0", "1", "2"]}, {}, "Column 'x' .* numbers as text"),
        ({"x": np.array(NAIVE[:3])}, {}, "Column 'x' .* must be numeric; got times"),
        ({"x": [0.0, np.inf, -np.inf]}, {}, "Column 'x' has 2 infinite values, first row 1.*missing='drop'"),
        ({"t": [1.0, np.inf, 1.0]}, {}, "Column 't' has 1 infinite values, first row 1"),
        ({}, {"group": None}, r"Column 't' must not repeat a value: 1 rows do, first t = 1 in row 2 .*group="),
        ({"t": [2, 2, 1]}, {}, "'t' must not repeat a value within 'g': 1 rows do, first t = 2 in row 1 "),
        (
            {},
            {"order": "g"},
            "'g' .order=. must be integers, floats or dates; 3 of 3 values are text, first 'a' in row 0 ",
        ),
        ({}, {"extra": "x"}, "extra='x' clashes"),
        ({"x_prev": [0, 0, 0]}, {"extra": "x_prev"}, "extra='x_prev' clashes"),
        ({}, {"lags": 2}, "no transitions.*2 of 2 sequences are shorter than 3 points"),
        ({"t": [1, 3, 1]}, {}, "no transitions.*Steps of 't' other than 1: 1.*max_gap"),
        ({}, {"weight": [1.0]}, "weight must be a column name or an array of 3 values.* got 1 values"),
        ({"w": [1, -1, 1]}, {"weight": "w"}, "'w' holds weights and must not be negative: 1 are, first row 1"),
        ({"w": [0, 0, 0]}, {"weight": "w"}, "Every weight is zero"),
        ({}, {"weight": "g"}, "'g' .* must be numeric"),
        ({"x": np.zeros((3, 2))}, {}, r"Column 'x' must have one value for each row, shape \(n,\); got shape \(3, 2\)"),
        ({"x": [1j, 2j, 3j]}, {}, "'x' must hold numbers, dates or text; got complex128"),
        ({"x": [{}, {}, {}]}, {}, "'x' must hold numbers, dates or text; got dict"),
        ({"x": [0.0, 1.0]}, {}, "same length; got 'g': 3, 't': 3, 'x': 2, 'y': 3"),
    ],
)
def test_bad_data_are_refused_with_column_count_row_and_remedy(change, options, message):
    given = {"y": ("x", "y"), "order": "t", "group": "g"} | options
    with pytest.raises(DataError, match=message):
        un.transitions({**OK, **change}, **given)


def test_bad_arguments():
    for lags in (0, 1.5, True, "2"):
        with pytest.raises(InputError, match="lags must be a whole number"):
            un.transitions([1.0, 2.0], lags=lags)
    with pytest.raises(InputError, match="missing must be one of 'error', 'drop', 'keep'; got 'skip'"):
        un.iid([1.0], missing="skip")  # pyright: ignore[reportArgumentType]
    for data, message in [
        (np.zeros((2, 3, 2)), r"shape \(n,\) or \(n, d\); got \(2, 3, 2\).*group="),
        ([[1.0], [2.0, 3.0]], "ragged"),
        (7, "The data must be a pandas, polars or pyarrow table"),
        ({}, "no columns"),
        ({1: [1.0]}, "names must be strings; got 1"),
        ([], "no rows"),
        (pd.DataFrame({"y": []}), "no rows"),
        (pd.DataFrame(np.zeros((2, 2)), columns=["y", "y"]), "unique column names"),
        (pd.DataFrame(np.zeros((2, 2))), "names must be strings"),
    ]:
        with pytest.raises(DataError, match=message):
            un.iid(data, y="y")
    with pytest.raises(DataError, match="array has 2 columns, but y= names 1"):
        un.iid(np.zeros((2, 2)), y="a")
    with pytest.raises(DataError, match="bare array; pass an array of 3 values"):
        un.transitions([1.0, 2.0, 3.0], group="g")


def test_describe_says_what_there_is():
    text = un.transitions({**OK, "t": [1, 2, 1]}, y=("x", "y"), order="t", group="g").describe()
    assert text.splitlines()[0] == "1 transitions of (x, y) in 1 sequences, lags: 1"
    assert "context: x_prev, y_prev" in text
    assert "groups: g (1)" in text
    assert "note: 1 of 2 sequences" in text


def test_take_keeps_everything_together():
    obs = un.transitions({**OK, "g": list("aaa"), "t": [1, 2, 3]}, y=("x", "y"), order="t", group="g", weight="y")
    part = obs.take(np.array([1]))
    assert part.n == 1
    assert part.row is not None
    assert part.row.tolist() == [2]
    assert part.weights.tolist() == [5.0]
    assert part.previous().tolist() == [[1.0, 4.0]]


@shared
def test_osie_has_the_transitions_that_its_readme_counts():
    columns = frames.read_table(SHARED / "eye_osie_fixations.csv")
    obs = un.transitions(columns, y=("x", "y"), order="fix", group=("subject", "image"), extra="duration_ms")
    assert obs.n == 87_821
    frame = pd.read_csv(SHARED / "eye_osie_fixations.csv").sample(frac=1, random_state=1)
    again = un.transitions(frame, y=("x", "y"), order="fix", group=("subject", "image"), extra="duration_ms")
    assert again.n == 87_821
    # the same transitions whatever the order of the rows
    both = [np.column_stack([o.outcome, o.previous(), o.context["duration_ms"]]) for o in (obs, again)]
    np.testing.assert_array_equal(*(rows[np.lexsort(rows.T)] for rows in both))
    step = np.linalg.norm(obs.outcome - obs.previous(), axis=1)
    assert np.median(step) / 800 == pytest.approx(0.127, abs=5e-4)


@shared
def test_the_deer_never_steps_across_bursts():
    columns = frames.read_table(SHARED / "animal_deer_track.csv")
    obs = un.transitions(columns, y=("x", "y"), order="time", group="burst", max_gap=dt.timedelta(hours=7))
    bursts = np.unique(columns["burst"], return_counts=True)[1]
    assert obs.n == np.sum(bursts - 1) == 791


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "mapping"])
def test_a_million_rows_take_about_a_second(kind):
    n = 10**6
    rng = np.random.default_rng(0)
    columns = {
        "subject": np.char.add("s", (np.arange(n) // 9000).astype(str)),
        "image": np.arange(n) // 9,
        "fix": np.arange(n) % 9,
        "x": rng.random(n),
        "y": rng.random(n),
    }
    table = KINDS[kind](columns)
    start = time.process_time()
    obs = un.transitions(table, y=("x", "y"), order="fix", group=("subject", "image"))
    assert time.process_time() - start < 2.0
    assert obs.n == n - len(np.unique(columns["image"]))


def test_repr_fits_in_a_few_lines():
    rng = np.random.default_rng(0)
    table = {"who": np.repeat(["a", "b"], 500), "x": rng.random(1000), "y": rng.random(1000)}
    obs = un.transitions(table, y=("x", "y"), group="who")
    assert repr(obs) == (
        "Observations(998 transitions of (x, y) in 2 sequences, lags: 1; context: x_prev, y_prev; groups: who (2))"
    )
    wide = un.conditional(rng.random((50, 400)), x=rng.random((50, 300)))
    assert "y8 and 392 more" in repr(wide)
    assert "x8 and 292 more" in wide.describe()
    assert len(repr(wide)) < 300
