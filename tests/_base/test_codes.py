"""Codes of values that come in runs: those of looking up each by itself."""

import numpy as np
import pytest

from unnorm._base.numerics import codes_of


@pytest.mark.parametrize(
    "values",
    [
        np.array([], dtype=np.int64),
        np.array([3]),
        np.array([3, 3, 1, 1, 1, 7, 3]),
        np.array(["b", "a", "a", "c", "b"]),
        np.array([1, "1", 1.0, None, None, "b"], dtype=object),
        np.array([np.nan, np.nan, 2.0, 2.0]),
    ],
)
def test_codes_are_those_of_each_value(values):
    place = {3: 0, 1: 1, "a": 2, "b": 3, "1": 4, None: 5, 2.0: 6}
    assert codes_of(values, place).tolist() == [place.get(value, -1) for value in values.tolist()]


def test_each_run_is_looked_up_once():
    class Counted(dict):
        asked = 0

        def get(self, key, default=None):
            self.asked += 1
            return super().get(key, default)

    place = Counted({k: k for k in range(50)})
    np.testing.assert_array_equal(codes_of(np.repeat(np.arange(50), 10_000), place), np.repeat(np.arange(50), 10_000))
    assert place.asked == 50
