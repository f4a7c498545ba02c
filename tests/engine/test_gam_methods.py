"""Methods of `Gam` that stand beside their computation are methods like any other."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import typing

import numpy as np
import pytest

import unnorm as un

X = np.linspace(0.0, 1.0, 120)
FIT = un.gam("y ~ s(x, k=5)", {"x": X, "y": np.sin(6 * X) + 0.1 * np.cos(99 * X)})
BESIDE = ("residuals", "predict", "draws", "effect_columns", "term_values", "gram", "design_chunks")


@pytest.mark.parametrize("name", BESIDE)
def test_they_belong_to_the_class(name: str) -> None:
    method = getattr(un.Gam, name)
    assert method.__qualname__ == f"Gam.{name}"
    assert typing.get_type_hints(method)["self"] is un.Gam
    assert pickle.loads(pickle.dumps(method)) is method
    assert next(iter(inspect.signature(getattr(FIT, name)).parameters), "") != "self"


def test_errors_of_a_call_say_whose_method_it_is() -> None:
    with pytest.raises(TypeError, match=r"^Gam\.predict\(\)"):
        FIT.predict(nonsense=1)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, dataclasses.replace, lambda fit: pickle.loads(pickle.dumps(fit))]
)
def test_copies_predict_the_same(again: typing.Callable[[un.Gam], un.Gam]) -> None:
    np.testing.assert_array_equal(again(FIT).predict({"x": [0.2]}), FIT.predict({"x": [0.2]}))
