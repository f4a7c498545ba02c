"""Formulas and data sets at random, for searches that no hand-made list of cases replaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import unnorm as un
from unnorm.engine.core import Smoothed, smooth_fit
from unnorm.errors import EstimationError, UnnormError

SHAPES = (
    lambda t: np.sin(2 * np.pi * t), lambda t: 4 * (t - 0.5) ** 2, lambda t: np.exp(-30 * (t - 0.6) ** 2),
    lambda t: t, lambda t: np.zeros_like(t), lambda t: np.cos(9 * t) * t, lambda t: (t > 0.5) * 1.0,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One fit."""

    number: int
    formula: str
    family: Any  # one of the words that `un.gam` takes
    method: Any
    table: dict[str, np.ndarray]


def _covariate(rng: np.random.Generator, n: int) -> np.ndarray:
    kind = rng.integers(0, 6)
    x = [rng.random(n), rng.normal(size=n), np.exp(rng.normal(size=n)), rng.beta(2, 5, n), rng.integers(0, 30, n) / 3.0,
         rng.standard_t(3, n)][kind]  # fmt: skip
    return np.round(x, 4)


def _unit(x: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(x)) / len(x)


def _term(rng: np.random.Generator, n: int, used: set[str]) -> str | None:
    a, b = (str(v) for v in rng.choice(["x1", "x2", "x3", "x4"], 2, replace=False))
    k = int(rng.choice([5, 8, 10, 15, 25])) if n > 100 else int(rng.choice([4, 6, 8]))
    k = min(k, 12) if n < 300 else k
    choices = [
        (f"s({a}, k={k})", {a}), (f"s({a}, bs='cr', k={k})", {a}), (f"s({a}, bs='ps', k={max(k, 6)})", {a}),
        (f"s({a}, bs='ts', k={k})", {a}), (f"s({a}, k={k}, m=1)", {a}), (f"s({a}, {b}, k={2 * k})", {a, b}),
        (f"te({a}, {b}, k={min(k, 5)})", {a, b}), (f"ti({a}) + ti({b}) + ti({a}, {b}, k=4)", {a, b}),
        ("s(ang, bs='cc', k=8)", {"ang"}), ("s(g, bs='re')", {"g"}), ("s(h, bs='re')", {"h"}),
        (f"factor(g) + s({a}, by=g, k=5)", {a, "g"}), (f"s({a}, g, bs='fs', k=5, m=1)", {a, "g"}),
        (f"s({a}, by=x5, k={k})", {a}), (f"s({a}, h, bs='re')", {a, "h"}),
    ]  # fmt: skip
    text, needs = choices[int(rng.integers(0, len(choices)))]
    if needs & used:
        return None
    used |= needs
    return text


def case(number: int) -> Case:
    """Number 0, 1, …: always the same for the same number."""
    rng = np.random.default_rng((2024, number))
    n = int(rng.choice([80, 200, 500, 1500]))
    table = {f"x{i}": _covariate(rng, n) for i in range(1, 6)}
    table["ang"] = np.round(rng.uniform(-np.pi, np.pi, n), 4)
    table["g"] = np.array(list("abcdefgh"))[rng.integers(0, int(rng.integers(2, 6)), n)]
    table["h"] = np.array([f"h{i:02d}" for i in range(30)])[rng.integers(0, 30, n)]
    strength = float(rng.choice([0.0, 0.3, 1.0, 3.0]))
    eta = np.zeros(n)
    for name in ("x1", "x2", "x3", "x4"):
        eta += SHAPES[int(rng.integers(0, len(SHAPES)))](_unit(table[name]))
    eta += 0.5 * np.sin(table["ang"]) + 0.5 * np.unique(table["g"], return_inverse=True)[1] * _unit(table["x1"])
    eta = strength * (eta - eta.mean()) / max(float(eta.std()), 1e-9)
    family = str(rng.choice(["gaussian", "binomial", "poisson"]))
    if family == "gaussian":
        table["y"] = eta + rng.normal(size=n)
    elif family == "binomial":
        table["y"] = (rng.random(n) < 1 / (1 + np.exp(-eta - rng.normal()))).astype(float)
    else:
        table["y"] = rng.poisson(np.exp(np.minimum(0.7 * eta + rng.normal(scale=0.5), 6.0))).astype(float)
    used: set[str] = set()
    wanted, terms = int(rng.integers(1, 5)), []
    while len(terms) < wanted and len(used) < 7:
        if (term := _term(rng, n, used)) is not None:
            terms.append(term)
        elif rng.random() < 0.1:
            break
    method = str(rng.choice(["REML", "REML", "REML", "ML", "GCV"]))
    return Case(number, "y ~ " + " + ".join(terms), family, method, table)


def fitted(one: Case) -> un.Gam | str:
    """The fit, or why it is refused."""
    try:
        return un.gam(one.formula, one.table, family=one.family, method=one.method)
    except UnnormError as refused:
        return f"{type(refused).__name__}: {refused}"


def restarts(one: Case, fit: un.Gam, count: int = 3) -> list[Smoothed]:
    """The same rows from other smoothing parameters, the estimate there as a start."""
    rng, out = np.random.default_rng((7, one.number)), []
    design, y = fit.smoothed.design, np.asarray(one.table["y"], dtype=float)
    for _ in range(count):
        sp = np.exp(rng.uniform(-7, 7, fit.smoothed.rho.size)).tolist()
        try:
            start = smooth_fit(design, y, one.family, method=one.method, sp=sp)
            out.append(smooth_fit(design, y, one.family, method=one.method, start=start))
        except EstimationError:
            continue
    return out
