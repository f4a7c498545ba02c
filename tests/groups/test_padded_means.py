"""Means of f's columns among those of a level, (1, f, χ): the intercept comes first and has none."""

from __future__ import annotations

import numpy as np

from unnorm.groups.anchored import padded


def test_the_intercept_and_the_constants_have_no_mean() -> None:
    mean = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(padded(mean, 5), [[0, 1, 2, 0, 0], [0, 3, 4, 0, 0]])
