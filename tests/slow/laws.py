"""Laws p(y|x) ∝ exp θᵀs(y|x) with a known θ, simulated exactly.

They differ in how strongly log Z(x) varies over the contexts. Its standard deviation: 0 (`interval`, `ising`), .2
(`walk`, `circle`, `box`, the grids), .45 (`steep`, by 3 within a step of the boundary), .6 to .8 (`words`, `table`,
`regression`, the last over a range of 6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from law import Chain, Independent, Law, Quantile, Regression, Statistics
from scipy.special import ndtr, ndtri

import unnorm as un

TRIES = 6  # candidates at a time, where draws are by rejection


def cos(v: Any) -> Any:
    """In JAX where f is traced; in NumPy, at double precision, where the law itself is tabulated."""
    return np.cos(v) if isinstance(v, float | np.ndarray | np.generic) else jnp.cos(v)


def sin(v: Any) -> Any:
    return cos(v - np.pi / 2)


# --- exact draws ------------------------------------------------------------------------------------------------------


def rejection(rng: np.random.Generator, size: int, propose: Callable[[np.ndarray], tuple[Any, np.ndarray]]) -> Any:
    """Draws by rejection: `propose(rows)` gives candidates for those rows and their log acceptance probabilities."""
    out: np.ndarray | None = None
    left = np.arange(size)
    while left.size:
        y, log_p = propose(np.repeat(left, TRIES))
        if out is None:
            out = np.empty((size, *y.shape[1:]))
        taken = (np.log(rng.random(len(y))) < log_p).reshape(-1, TRIES)
        done = taken.any(axis=1)
        first = np.argmax(taken, axis=1) + TRIES * np.arange(left.size)
        out[left[done]] = y[first[done]]
        left = left[~done]
    return out


def exponential_quantile(u: np.ndarray, slope: Any, width: float = 1.0) -> np.ndarray:
    """Quantile of p(y) ∝ e^{slope y} on [0, width], slope ≠ 0."""
    return np.log1p(u * np.expm1(slope * width)) / slope


def walk_quantile(theta1: float, theta2: float) -> Quantile:
    """p(y|x) ∝ exp{θ1 y − ½θ2 (y − x)²} on [−1, 1] is N(x + θ1/θ2, 1/θ2), truncated."""
    scale = theta2**-0.5

    def quantile(u: np.ndarray, x: np.ndarray) -> np.ndarray:
        centre = x[..., 0] + theta1 / theta2
        mirror = np.where(centre < 0, -1.0, 1.0)  # Ω then lies left of the centre or around it: Φ keeps its digits
        low, high = (ndtr((edge - mirror * centre) / scale) for edge in (-1.0, 1.0))
        u = np.where(mirror < 0, 1.0 - u, u)
        y = mirror * (mirror * centre + scale * ndtri(low + u * (high - low)))
        return np.clip(y, -1.0, 1.0)[..., None]

    return quantile


def circle_step(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """θ1 cos(y − x) + θ2 cos y is a von Mises law's A cos(y − m); cos 2y by rejection."""
    a, b, c = CIRCLE
    x = x.reshape(-1)
    along, across = a * np.cos(x) + b, a * np.sin(x)
    mean, kappa = np.arctan2(across, along), np.hypot(along, across)

    def propose(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = rng.vonmises(mean[rows], kappa[rows])
        return y, c * np.cos(2 * y) - abs(c)

    return rejection(rng, len(x), propose).reshape(-1, 1, 1, 1)


def regression_draw(rng: np.random.Generator, x: Mapping[str, np.ndarray]) -> np.ndarray:
    """(t1 + t2 z) y is a truncated exponential law's exponent; w sin 3y by rejection."""
    a, b, c = REGRESSION
    shape, z, w = x["z"].shape, x["z"].ravel(), x["w"].ravel()

    def propose(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = exponential_quantile(rng.random(len(rows)), a + b * z[rows], 2.0)
        return y, c * w[rows] * (np.sin(3 * y) - 1.0)

    return rejection(rng, z.size, propose).reshape(shape)


def box_step(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """−θ1 r + θ2 y1 + θ3 y1 y2 on the unit square, r² = |y − x|² + SOFT², by rejection from the uniform law."""
    a, b, c = BOX
    flat = x.reshape(-1, 2)

    def propose(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = rng.random((len(rows), 2))
        r = np.sqrt(((y - flat[rows]) ** 2).sum(axis=1) + SOFT**2)
        return y, -a * (r - SOFT) + b * (y[:, 0] - 1.0) + c * y[:, 0] * y[:, 1]  # b > 0 > c: at most 0

    return rejection(rng, len(flat), propose).reshape(x.shape)


def table_quantile(states: np.ndarray, log_p: np.ndarray, index: Callable[[Any], np.ndarray]) -> Quantile:
    """Quantile over listed states: log_p is (contexts, states), unnormalised; `index` numbers the contexts."""
    cumulative = np.exp(log_p - log_p.max(axis=1, keepdims=True)).cumsum(axis=1)
    cumulative /= cumulative[:, -1:]

    def quantile(u: np.ndarray, x: Any) -> np.ndarray:
        at = index(x) if x is not None else np.zeros(u.shape, dtype=int)
        return states[(u[..., None] > cumulative[at][..., :-1]).sum(axis=-1)]

    return quantile


def tabulated(states: np.ndarray, contexts: Any, statistics: Statistics, theta: tuple[float, ...]) -> np.ndarray:
    """(contexts, states) θᵀs(y|x), by calling the model's own statistics; contexts None for IID data."""
    one = [y[0] if len(y) == 1 else y for y in states]
    if contexts is None:
        return np.array([[np.dot(theta, statistics(y)) for y in one]])
    return np.array([[np.dot(theta, statistics(y, x)) for y in one] for x in contexts])


def bits(d: int) -> np.ndarray:
    """The 2^d binary vectors, by their number of ones: clustered vectors are then similar."""
    states = (np.arange(2**d)[:, None] >> np.arange(d)[::-1] & 1).astype(np.float64)
    return states[np.argsort(states.sum(axis=1), kind="stable")]


def bits_number(x: np.ndarray) -> np.ndarray:
    return (x @ (2.0 ** np.arange(x.shape[-1])[::-1])).astype(int)


# --- the laws ---------------------------------------------------------------------------------------------------------

CIRCLE = (2.0, 0.7, -0.5)
REGRESSION = (-1.0, 1.2, 0.9)
BOX = (4.0, 1.0, -0.8)
SOFT = 0.2  # rounds off the kink of the step length at zero, so that Exact converges with few nodes
SLOPE = 1.5
NEAR = un.Expression("near", "-(y - y_prev)**2")


def _interval() -> Law:
    return Independent(
        "interval",
        un.Interval(0, 1),
        lambda y: (y,),
        ("a",),
        (SLOPE,),
        lambda y: (cos(2 * np.pi * y),),
        ("wave",),
        n=240,
        points=480,
        quantile=lambda u, x: exponential_quantile(u, SLOPE)[..., None],
        flat=un.Energy(lambda t, y: t["a"] * y - jnp.log(jnp.expm1(t["a"]) / t["a"]), {"a": 1.0}, un.Interval(0, 1)),
    )


def _flat_walk(t: Any, y: Any, x: Any) -> Any:
    """The truncated normal's log density, θ1 y − ½θ2 (y − x)² − log Z in closed form."""
    from jax.scipy.stats import norm

    scale, centre = t["theta2"] ** -0.5, x + t["theta1"] / t["theta2"]
    mass = norm.cdf((1.0 - centre) / scale) - norm.cdf((-1.0 - centre) / scale)
    return norm.logpdf(y, centre, scale) - jnp.log(mass)


def _walk(name: str, theta: tuple[float, float], chi: str, reference: Any = None) -> Law:
    omega = un.Interval(-1, 1)
    return Chain(
        name,
        omega,
        lambda y, x: (y, -0.5 * (y - x) ** 2),
        ("theta1", "theta2"),
        theta,
        lambda y, x: (cos(np.pi * y), cos(2 * np.pi * y)),
        ("wave1", "wave2"),
        n=240,
        points=6,
        chi=chi,
        quantile=walk_quantile(*theta),
        reference=un.Uniform() if reference is None else reference,
        flat=un.Energy(_flat_walk, {"theta1": 0.0, "theta2": 2.0}, omega),
        curved=un.Additive("y + near + s(c, k=6)", omega, covariates=[NEAR, un.Expression("c", "cos(3 * y)")]),
    )


def _circle() -> Law:
    return Chain(
        "circle",
        un.Circle(),
        lambda y, x: (cos(y - x), cos(y), cos(2 * y)),
        ("near", "east", "axis"),
        CIRCLE,
        lambda y, x: (sin(y), sin(2 * y)),
        ("north", "diagonal"),
        n=240,
        points=6,
        chi="s(y_prev, bs='cc', k=10, fx=True)",
        order=32,
        step=circle_step,
    )


def _covariates(rng: np.random.Generator, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {"z": rng.standard_normal(shape), "w": rng.uniform(0.0, 2.0, shape)}


def _regression() -> Law:
    return Regression(
        "regression",
        un.Interval(0, 2),
        lambda y, x: (y, x["z"] * y, x["w"] * sin(3 * y)),
        ("t1", "t2", "t3"),
        REGRESSION,
        lambda y, x: (x["z"] * sin(3 * y),),
        ("t4",),
        n=240,
        points=8,
        chi="te(z, w, k=(6, 3), fx=True)",
        covariates=_covariates,
        draw=regression_draw,
    )


def _box() -> Law:
    return Chain(
        "box",
        un.Box((0, 1), (0, 1)),
        lambda y, x: (-jnp.sqrt(jnp.sum((y - x) ** 2) + SOFT**2), y[0], y[0] * y[1]),
        ("step", "east", "corner"),
        BOX,
        lambda y, x: (y[1],),
        ("north",),
        n=240,
        points=6,
        chi="te(y1_prev, y2_prev, k=(4, 4), fx=True)",
        order=16,
        step=box_step,
    )


def _ising() -> Law:
    def s(y: Any) -> tuple[Any, ...]:
        return y.sum(), (y[1:] * y[:-1]).sum(), y[0]

    theta, states = (-0.8, 0.9, 0.5), bits(5)
    return Independent(
        "ising",
        un.BinaryVectors(5),
        s,
        ("field", "coupling", "first"),
        theta,
        lambda y: (y[0] * y[4], y[2]),
        ("ends", "third"),
        n=300,
        points=900,
        weighted_points=900,
        quantile=table_quantile(states, tabulated(states, None, s, theta), lambda x: x),
        finite=True,
    )


def _words() -> Law:
    def s(y: Any, x: Any) -> tuple[Any, ...]:
        return y.sum(), (y[1:] * y[:-1]).sum(), (y * x).sum()

    theta, states = (-1.0, 0.8, 1.5), bits(3)
    number = np.argsort(bits_number(states))  # context code → row of the table
    return Chain(
        "words",
        un.BinaryVectors(3),
        s,
        ("field", "coupling", "persistence"),
        theta,
        lambda y, x: (y[0] * x[2], y[2]),
        ("lagged", "third"),
        n=320,
        points=6,
        chi="factor(state)",
        quantile=table_quantile(states, tabulated(states, states, s, theta), lambda x: number[bits_number(x)]),
        state=bits_number,
        finite=True,
    )


def _grid(name: str, values: np.ndarray, s: Statistics, names: tuple[str, ...], theta: tuple[float, ...]) -> Law:
    """A chain on a finite set of numbers."""
    states = values[:, None]

    def index(x: np.ndarray) -> np.ndarray:
        return np.searchsorted(values, x[..., 0] - 1e-9)

    return Chain(
        name,
        un.FiniteSet(values),
        s,
        names,
        theta,
        lambda y, x: (sin(2 * y), y**3),
        ("sine", "cube"),
        n=400,
        points=6,
        chi="factor(state)",
        quantile=table_quantile(states, tabulated(states, values, s, theta), index),
        state=index,
        finite=True,
    )


def _table() -> Law:
    """The regression with every variable on a grid."""

    def s(y: Any, x: Any) -> tuple[Any, ...]:
        return y, x["z"] * y, x["w"] * sin(3 * y)

    values = np.linspace(0.0, 2.0, 7)
    cells = [{"z": z, "w": w} for z in (-1.0, 0.0, 1.0) for w in (0.0, 1.0, 2.0)]

    def covariates(rng: np.random.Generator, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
        state = rng.integers(len(cells), size=shape)
        return {name: np.array([cell[name] for cell in cells])[state] for name in ("z", "w")} | {"state": state}

    states = values[:, None]
    return Regression(
        "table",
        un.FiniteSet(values),
        s,
        ("t1", "t2", "t3"),
        REGRESSION,
        lambda y, x: (x["z"] * sin(3 * y),),
        ("t4",),
        n=400,
        points=6,
        chi="factor(state)",
        quantile=table_quantile(states, tabulated(states, cells, s, REGRESSION), lambda x: x["state"]),
        covariates=covariates,
        finite=True,
    )


def _walk_statistics(y: Any, x: Any) -> tuple[Any, ...]:
    return y, -0.5 * (y - x) ** 2


def _circle_statistics(y: Any, x: Any) -> tuple[Any, ...]:
    return cos(y - x), cos(y), cos(2 * y)


LOCAL = un.Mixture((0.3, un.Uniform()), (0.7, un.Gaussian(mean=0.0, cov=0.04, around="context")))

LAWS: Mapping[str, Law] = {
    law.name: law
    for law in (
        _interval(),
        _walk("walk", (0.5, 5.0), "s(y_prev, bs='cr', k=8, fx=True)"),
        _walk("steep", (-2.0, 50.0), "s(y_prev, bs='cr', k=12, fx=True)", LOCAL),
        _circle(),
        _regression(),
        _box(),
        _ising(),
        _words(),
        _grid("grid walk", np.linspace(-1, 1, 9), _walk_statistics, ("theta1", "theta2"), (0.5, 5.0)),
        _grid("grid steep", np.linspace(-1, 1, 9), _walk_statistics, ("theta1", "theta2"), (-1.5, 12.0)),
        _grid("grid circle", np.arange(-4, 4) * np.pi / 4, _circle_statistics, ("near", "east", "axis"), CIRCLE),
        _table(),
    )
}
