"""Random small tables, as people have them and as they should not: gaps, infinities, ties, odd names, odd scales."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

ODD_NAMES = (
    *(
        "",
        " ",
        "a b",
        "θ",
        "日本",
        "1x",
        "x.y",
        "lambda",
        "None",
        "s(x)",
        "y ~ x",
        "x\n",
        "a,b",
        "a'b",
        '"',
        "__class__",
    ),
    *("x" * 300, "y_prev", "angle", "step", "group", "estimate", "(Intercept)", "e\u0301", "\u202ex", "%s{}", "\\"),
)
NAMES = st.sampled_from((*("x", "y", "u", "v", "w") * 16, *ODD_NAMES))
SCALES = st.one_of(
    st.just(0), st.integers(-3, 3), st.sampled_from((-300, -200, -160, -100, -20, 20, 100, 150, 200, 300))
)
SIZES = st.sampled_from((0, 1, 2, 3, 4, 6, 10, 25, 25, 40, 40))


@st.composite
def numbers(draw: Any, n: int) -> np.ndarray:
    """A column of numbers, plain in most cases."""
    rng = np.random.default_rng(draw(st.integers(0, 99_999)))
    kind = draw(
        st.sampled_from(("plain", "plain", "plain", "ties", "constant", "whole", "two", "outlier", "tiny spread"))
    )
    column = {
        "plain": lambda: rng.normal(size=n),
        "ties": lambda: rng.integers(0, 4, n) / 3,
        "constant": lambda: np.full(n, rng.normal()),
        "whole": lambda: rng.integers(-5, 50, n).astype(float),
        "two": lambda: (rng.random(n) < 0.5).astype(float),
        "outlier": lambda: np.where(np.arange(n) == 0, 1e9, rng.normal(size=n)),
        "tiny spread": lambda: 1.0 + 1e-13 * rng.normal(size=n),
    }[kind]()
    scale = draw(SCALES)
    with np.errstate(over="ignore", under="ignore"):
        column = column * math.pow(10.0, scale) if abs(scale) < 300 else column * float(f"1e{scale}")
    bad = draw(st.sampled_from((*["none"] * 12, "nan", "inf", "all nan")))
    if n and bad == "nan":
        column[draw(st.integers(0, n - 1))] = np.nan
    if n and bad == "inf":
        column[draw(st.integers(0, n - 1))] = draw(st.sampled_from((np.inf, -np.inf)))
    return np.full(n, np.nan) if bad == "all nan" else column


@st.composite
def columns(draw: Any, n: int) -> Any:
    """Numbers in most cases; else labels, dates, numbers among labels, truth values."""
    kind = draw(st.sampled_from((*["numbers"] * 20, "labels", "mixed", "true", "objects", "text numbers")))
    own = draw(numbers(n))
    if kind == "labels":
        return np.array([draw(st.sampled_from(("a", "b", "ü", "", "NA"))) for _ in range(n)], dtype=object)
    if kind == "mixed":
        return [("x" if i == n // 2 else float(v)) for i, v in enumerate(own)]
    if kind == "true":
        return own > 0
    if kind == "objects":
        return [None if i == 0 else float(v) for i, v in enumerate(own)]
    if kind == "text numbers":
        return np.array([repr(float(v)) for v in own])
    return own


@st.composite
def tables(draw: Any) -> dict[str, Any]:
    """Two or three columns under different names."""
    n = draw(SIZES)
    names = draw(st.lists(NAMES, min_size=2, max_size=3, unique=True))
    return {name: draw(columns(n)) for name in names}
