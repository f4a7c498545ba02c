"""Every place that the compiled loops read or write lies inside its array: their own source, run by Python with vectors
that look where they reach. Nothing looks when they are compiled."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from unnorm.engine import block_products, gather, kernels, likelihood_kernels, segment
from unnorm.engine.core import build_design
from unnorm.engine.criteria import InverseLever
from unnorm.engine.segment import ResponseRows
from unnorm.terms.parser import parse

WIDTH = block_products.WIDTH


class Checked(np.ndarray):
    """An array without places before its first."""

    def __getitem__(self, key: Any) -> Any:
        inside(key)
        return np.ndarray.__getitem__(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        inside(key)
        np.ndarray.__setitem__(self, key, value)


def inside(key: Any) -> None:
    assert all(int(k) >= 0 for k in (key if isinstance(key, tuple) else (key,)))


class Arrays:
    """What the loops take of NumPy; new arrays hold no numbers."""

    int64 = np.int64

    @staticmethod
    def empty(shape: Any, dtype: Any = np.float64) -> np.ndarray:
        return np.full(shape, np.nan if dtype is np.float64 else -(10**9), dtype).view(Checked)


def part(a: np.ndarray, i: int, n: int = 4) -> np.ndarray:
    assert a.flags.c_contiguous
    assert a.dtype == np.float64
    assert 0 <= i <= a.size - n, f"{i}…{i + n} of {a.size}"
    return np.asarray(a).reshape(-1)[i : i + n]


def cubic4(poly, q, t, s, value, at):
    a, b, c, d = (part(poly, q + 4 * k) for k in range(4))
    part(value, at)[:] = s * (a + t * (b + t * (c + t * d)))


def set4(out, i, s):
    part(out, i)[:] = (s, 0, 0, 0)


def axpy4(out, i, s, value, at):
    part(out, i)[:] += s * part(value, at)


def fma4(out, at, a, i, b, j):
    part(out, at)[:] += part(a, i) * part(b, j)


def outer4(table, q, size, w, value, a, b):
    for k in range(4):
        part(table, q + k * size)[:] += w * part(value, a)[k] * part(value, b)


def quadratic4(table, q, size, value, a, b):
    return sum(part(value, a)[k] * (part(table, q + k * size) @ part(value, b)) for k in range(4))


def sums(rows: int) -> Any:
    def add(out, q, size, a, at, across, along, b, start, step, n):
        for i in range(rows):
            total = part(out, q + i * size, WIDTH)
            for k in range(n):
                total += part(a, at + i * across + k * along, 1) * part(b, start + k * step, WIDTH)

    return add


def compiled(function: Any) -> Any:
    """A function that only compiled ones can call, for Python."""
    import numba

    names = ", ".join(inspect.signature(function.py_func).parameters)
    known = {"function": function}
    exec(f"def call({names}): return function({names})", known)
    call = numba.njit(known["call"])
    return lambda *given: call(*(np.asarray(a) if isinstance(a, np.ndarray) else a for a in given))


def looked_at(products_at_once: int) -> dict[str, Any]:
    known: dict[str, Any] = {
        "np": Arrays, "whole": int, "cubic4": cubic4, "set4": set4, "axpy4": axpy4, "fma4": fma4, "outer4": outer4,
        "quadratic4": quadratic4, "sum4": lambda a, i: part(a, i).sum(),
        "dot4": lambda a, i, b, j: part(a, i) @ part(b, j), "_four_rows": sums(4), "_one_row": sums(1),
        "WIDTH": WIDTH, "BLOCK": likelihood_kernels.BLOCK, "_PRODUCT": kernels._PRODUCT, "_RUNS": products_at_once,
        "slopes": compiled(likelihood_kernels.slopes), "bends": compiled(likelihood_kernels.bends),
    }  # fmt: skip
    functions = [block_products.add_products, block_products.padded, gather.gather_blocks]
    own = ("_together", "_clear", "_add_pairs", "_from_cells", "_pair_leverages", "cross_products", "leverages")
    for function in (*functions, *(vars(kernels)[name] for name in own)):
        source = inspect.getsource(getattr(function, "py_func", function))
        exec(source[source.index("def ") :], known)

    def call(name: str) -> Any:
        return lambda *given: known[name](*(a.view(Checked) if isinstance(a, np.ndarray) else a for a in given))

    return {name: call(name) for name in ("cross_products", "leverages", "gather_blocks")}


N = 330  # rows: dense columns are taken 256 at a time
FORMULAS = {
    "local": "s(a, k=11) + s(b, k=6, bs='cr')",
    "contexts": "s(a, k=6) + s(px, py, k=14)",
    "contexts alone": "s(px, k=5)",
    "dense": "s(a, k=6) + s(a, b, k=10) + linear(v) + s(px, k=4)",
    "one dense": "linear(v)",
    "factors": "s(a, k=6, by=v) + s(h, bs='re')",
    "levels": "s(a, k=5, by=g) + factor(g)",
}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("formula", FORMULAS)
def test_no_pass_leaves_its_arrays(formula: str, intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(len(formula))
    who = np.sort(rng.integers(0, 40, N))
    px, py = rng.uniform(size=(2, 40))[:, who]
    data = {"a": rng.uniform(-1, 2, N), "b": rng.gamma(2.0, 1.0, N), "v": rng.normal(size=N), "px": px, "py": py}
    data |= {"g": np.array(["u", "v"])[who % 2], "h": rng.integers(0, 5, N).astype(str)}
    terms = parse(FORMULAS[formula]).build(data)
    design = build_design(terms, data, intercept=intercept)
    rows = ResponseRows(rng.integers(0, 2, N) * 1.0, rng.integers(0, 3, N) * 0.5, rng.normal(size=N))
    beta = rng.normal(size=design.size) * 0.1
    pieces = [(s, a, b) for s in design.segments for a, b in ((0, s.runs // 7), (s.runs // 7, s.runs))]

    def passes(lever: Any) -> list[np.ndarray]:
        out, hats = [], np.zeros(N)
        for s, first, last in pieces:
            total, raw = s.sweep(rows, 0, beta[s.columns], first, last)
            out += [np.array([total]), *s.gather(*raw)]
        if lever is not None:
            out += [design.leverage(rows, 0, beta, lever, 1, hats), hats]
        return out

    cross = design.sweep(rows, 0, beta, 1)[2]
    ridge = [np.eye(b - a) for a, b in zip(cross.starts[:-1], cross.starts[1:])]
    lever = InverseLever(cross.plus(ridge).invert())
    plain = passes(lever)
    ordinary = segment.kernel
    checked = looked_at(5)
    monkeypatch.setattr(segment, "kernel", lambda name, bare: checked.get(name) or ordinary(name, bare))
    monkeypatch.setattr(gather, "gather_blocks", checked["gather_blocks"])
    for a, b in zip(plain, passes(lever)):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    k, found = 0, np.zeros((design.size, design.size))
    for s, _, _ in pieces:  # parts of the runs make the whole
        found[np.ix_(s.columns, s.columns)] += plain[k + 2]
        k += 3
    np.testing.assert_allclose(found, cross.dense(), rtol=1e-9, atol=1e-9)
