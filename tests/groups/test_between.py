"""Who was seen in which condition: the design is found from the data, and what stands in the way is said."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import DataError, InputError
from unnorm.groups.between import Crossing, crossing


def table(pairs: list[tuple[object, object]], times: int = 4) -> un.Observations:
    who, where = ([pair[i] for pair in pairs for _ in range(times)] for i in (0, 1))
    y = np.linspace(0.1, 0.9, len(who))
    return un.iid({"y": y, "who": np.array(who), "where": np.array(where)}, y="y", group=("who", "where"))


def found(pairs: list[tuple[object, object]], times: int = 4) -> Crossing:
    return crossing(table(pairs, times), "who", "where")


def test_each_in_one_condition_is_between() -> None:
    one = found([(3, "a"), (1, "b"), (2, "a"), (4, "b")])
    assert one.design == "between"
    assert one.names == ("1", "2", "3", "4")
    assert [one.condition_of(name) for name in one.names] == ["b", "a", "a", "b"]
    assert one.of.tolist() == [2] * 4 + [0] * 4 + [1] * 4 + [3] * 4
    assert "are between levels of 'who', each in one of them (a: 2, b: 2)" in one.sentence()


def test_each_in_several_conditions_is_within() -> None:
    one = found([(s, c) for c in "ba" for s in (1, 2)])
    assert one.design == "within"
    assert one.names == ("1 · a", "1 · b", "2 · a", "2 · b")
    assert one.of.tolist() == [1] * 4 + [3] * 4 + [0] * 4 + [2] * 4
    assert one.notes() == ()
    assert "are within levels of 'who' (a: 2, b: 2)" in one.sentence()


def test_a_cell_without_data_is_noted() -> None:
    one = found([(s, c) for s in (1, 2, 3) for c in "abc" if (s, c) != (2, "c")])
    assert one.design == "within"
    (note,) = one.notes()
    assert "1 of 9 pairs" in note
    assert "first '2 in c'" in note


def test_cells_that_could_not_be_fitted_are_left_out() -> None:
    one = found([(1, "a"), (2, "a"), (3, "b"), (4, "b"), (5, "b")])
    kept = one.kept(("1", "2", "3", "5"))
    assert kept.subjects == ("1", "2", "3", "5")
    assert kept.counts() == {"a": 2, "b": 2}
    with pytest.raises(DataError, match="where=a has one"):
        one.kept(("1", "3", "4", "5"))


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([(s, "a") for s in range(4)], r"at least two conditions; 'where' has one, 'a'\. Leave between= out"),
        (
            [(1, "a"), (2, "a"), (3, "b"), (4, "b"), (4, "a")],
            r"3 levels are in one condition .* and 1 in several, first who=4 \('a', 'b'\)\. Correct the column",
        ),
        (
            [(1, "a"), (1, "b"), (2, "a"), (2, "b"), (3, "b")],
            r"2 levels are in several conditions .*, and 1 in one alone, first who=3 \(only 'b'\)",
        ),
        (
            [(1, "a"), (2, "a"), (3, "b")],
            r"where=b has one \(3\), and 1 of 2 conditions are so",
        ),
        (
            [(1, "a"), (1, "b"), (2, "a"), (2, "b"), (3, "c"), (3, "d"), (4, "c"), (4, "d")],
            r"leads from conditions 'a', 'b' to 'c', 'd' of 'where' \(2 sets of conditions never meet\)",
        ),
        (
            [(1, "a"), (2, ""), (3, "b"), (4, " ")],
            r"8 of 16 have none in 'where', first who=2 in row 4 \(rows count from 0\)",
        ),
    ],
)
def test_what_stands_in_the_way_is_said(pairs: list, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        found(pairs)


def test_columns_that_cannot_be_conditions() -> None:
    obs = table([(1, "a"), (2, "b")])
    with pytest.raises(InputError, match=r"between must name a column .*'where', 'who'.*got 'task'. Pass group="):
        crossing(obs, "who", "task")
    with pytest.raises(InputError, match="got 'who' for both"):
        crossing(obs, "who", "who")
    numbers = un.iid({"y": [0.1, 0.2, 0.3], "who": [1, 1, 2], "t": [0.5, 1.25, 2.0]}, y="y", group=("who", "t"))
    with pytest.raises(InputError, match=r"'t' has 3 values in 3 observations.*te\(step, t\)"):
        crossing(numbers, "who", "t")
