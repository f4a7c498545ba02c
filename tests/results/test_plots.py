"""Pictures: what they return, and that the numbers in them are the fit's."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest

import unnorm as un
from unnorm.errors import InputError

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def additive() -> un.Fit:
    rng = np.random.default_rng(0)
    y = rng.beta(2, 2, (500, 2)) * (8, 6)
    model = un.Additive("s(x, k=6) + s(dcenter, k=6) + ti(x, y, k=4)", un.Box((0, 8), (0, 6)))
    obs = un.iid({"x": y[:, 0], "y": y[:, 1]}, y=("x", "y"))
    return un.fit(model, obs, un.Logistic(un.Uniform(), total=3000), rng=1)


def test_intervals_of_parameters() -> None:
    import matplotlib.pyplot as plt

    model = un.ExponentialFamily(lambda y: (y, y**2), ("a", "b"), un.Interval(0, 1))
    fit = un.fit(model, un.iid(np.random.default_rng(0).beta(2, 3, 200)))
    _, ax = plt.subplots()
    assert fit.plot(ax=ax) is ax
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), fit.estimate)
    low = fit.estimate - 1.959964 * fit.se
    np.testing.assert_allclose([s[0, 0] for s in ax.collections[0].get_segments()], low, rtol=1e-6)
    assert fit.plot() is not ax


def test_effects_are_panels_and_one_effect_is_axes(additive: un.Fit) -> None:
    figure, axes = additive.plot()
    assert sum(ax.get_visible() for ax in axes.flat) == 3
    titles = [ax.get_title() for ax in axes.flat]
    assert titles[0].startswith("s(x), edf")
    one = additive.plot("s(dcenter)")
    table = additive.effect("s(dcenter)")
    np.testing.assert_allclose(one.lines[0].get_ydata(), table["estimate"])
    assert one.get_xlabel() == "dcenter"
    assert figure is axes.flat[0].figure


def test_what_cannot_be_drawn_is_said(additive: un.Fit) -> None:
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    with pytest.raises(InputError, match="ax= draws one term; this call asks for 3"):
        additive.plot(ax=ax)
    with pytest.raises(InputError, match="label must be one of"):
        additive.plot("s(nothing)")


def test_the_inner_band_is_the_sampling_error(additive: un.Fit) -> None:
    ax = additive.plot("s(x)", level=0.9)
    outer, inner = ax.collections[:2]
    height = [np.ptp(one.get_paths()[0].vertices[:, 1]) for one in (outer, inner)]
    assert height[0] >= height[1]
