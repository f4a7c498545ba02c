"""Regression of a direction on covariates (Fisher & Lee 1992), on the circle and on the sphere.

    circle    y | x ~ von Mises(μ + 2 atan(γ·x), κ e^{δ·z})
    sphere    y | x ~ von Mises–Fisher(m(x), κ e^{δ·z}),
              m(x) = {(1 − |u|²) μ + 2 (u₁ east + u₂ north)} / (1 + |u|²),  u = Γx

2 atan maps the line to the circle, and the inverse of the stereographic projection maps the plane to the sphere in the
same way: m(x) is at the angle 2 atan|u| from μ, towards u. μ is the direction at x = 0: covariates are best centred.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..data.observations import Observations
from ..domains import Circle, Domain, Sphere
from ..errors import InputError, listing, warn
from ..models.anew import anew
from ..models.energy import Energy
from ..references.directional import concentration_circle, concentration_sphere
from .bessel import log_bessel0, log_sinch, norm
from .family import Chart, Family, Usual, named
from .quantities import Angle, Direction, Number, Size
from .spherical import FRAMES, carried

_STEPS = np.concatenate([[0.0], np.geomspace(0.05, 8.0, 12), -np.geomspace(0.05, 8.0, 12)])  # of γ, per sd of x
_ROUNDS = 3
SAME, FAR = 1e-12, 10.0  # a constant's sd over its mean; mean over sd of a covariate that should be centred


@named
def regression(x: str | Sequence[str], *, dispersion: str | Sequence[str] = (), domain: Domain | None = None) -> Family:
    """The mean direction as a function of covariates; Fisher–Lee on the circle, its kin on the sphere.

    Args:
        x: columns that turn the mean direction, each with its coefficient (on the sphere two: to the east and north).
        dispersion: columns on which log κ depends linearly.
        domain: `un.Circle()` (default), `un.Axis()` or `un.Sphere()`.

    >>> import unnorm as un
    >>> [one.name for one in un.directions.regression("wind", dispersion="night").quantities]
    ['mean', 'kappa', 'wind', 'log kappa: night']
    """
    names, wide = (((given,) if isinstance(given, str) else tuple(given)) for given in (x, dispersion))
    if not names + wide:
        raise InputError("regression needs the name of a covariate, e.g. un.directions.regression('wind').")
    domain = Circle() if domain is None else domain
    if domain.sphere:
        return _on_sphere(names, wide)
    if domain.period is None:
        raise InputError(f"A direction is regressed on un.Circle(), un.Axis() or un.Sphere(); got {domain!r}.")
    return _on_circle(names, wide, domain)


def columns(obs: Observations, names: tuple[str, ...]) -> np.ndarray:
    """(n, k) the covariates, numeric."""
    for name in names:
        if name not in obs.context:
            raise InputError(f"There is no covariate {name!r}; un.conditional(…, x=…) gave {listing(obs.context)}.")
        if obs.context[name].dtype.kind not in "biuf":
            raise InputError(
                f"Covariate {name!r} holds text; give a number for each level, such as 0 and 1, to regress on it."
            )
        values = obs.context[name].astype(np.float64)
        middle, spread = float(values.mean()), float(values.std())
        if spread <= SAME * max(abs(middle), 1e-300):
            raise InputError(f"Covariate {name!r} is constant ({middle:.6g}): nothing can be told of it. Leave it out.")
        if abs(middle) > FAR * spread:
            warn(
                f"Covariate {name!r} lies far from 0, at {middle:.4g} with standard deviation {spread:.4g}: the mean "
                f"direction, which is that at 0, is known badly, and the fit may not converge. Subtract {middle:.4g}.",
                stacklevel=2,
            )
    made = [obs.context[name].astype(np.float64) for name in names]
    return np.column_stack(made) if made else np.zeros((obs.n, 0))


def _sum(coefficients: Any, x: Any, names: tuple[str, ...]) -> Any:
    return sum((coefficients[j] * x[name] for j, name in enumerate(names)), 0.0)


def _tree(v: np.ndarray, gamma: np.ndarray, wide: tuple[str, ...]) -> dict[str, Any]:
    """θ: absent parts have no entry, as an empty array would be no parameter."""
    tree: dict[str, Any] = {"v": v}
    if gamma.size:
        tree["gamma"] = gamma
    if wide:
        tree["delta"] = np.zeros(len(wide))
    return tree


@lru_cache(maxsize=16)
def _on_circle(names: tuple[str, ...], wide: tuple[str, ...], domain: Domain) -> Family:
    assert domain.period is not None
    turn, log_volume = 2.0 * np.pi / domain.period, domain.log_volume

    def scale(theta: Any, x: Any) -> Any:
        import jax.numpy as jnp

        return jnp.exp(_sum(theta["delta"], x, wide)) if wide else 1.0

    def f(theta: Any, y: Any, x: Any) -> Any:
        import jax.numpy as jnp

        angle = turn * y - (2.0 * jnp.arctan(_sum(theta["gamma"], x, names)) if names else 0.0)
        return scale(theta, x) * (theta["v"][0] * jnp.cos(angle) + theta["v"][1] * jnp.sin(angle))

    def partition(theta: Any, x: Any) -> Any:
        return log_volume + log_bessel0(scale(theta, x) ** 2 * (theta["v"] @ theta["v"]))

    model = Energy(f, _tree(np.ones(2), np.zeros(len(names)), wide), domain, log_partition=partition)

    def usual(theta: Any) -> tuple[Any, ...]:
        return theta["v"], norm(theta["v"]), *(theta["gamma"] if names else ()), *(theta["delta"] if wide else ())

    def make(obs: Observations) -> tuple[Chart, ...]:
        X = columns(obs, names)
        columns(obs, wide)
        phi, w = turn * obs.outcome[:, 0], obs.weights / obs.weights.sum()

        def mean(gamma: np.ndarray) -> np.ndarray:
            z = w @ np.exp(1j * (phi - 2.0 * np.arctan(X @ gamma)))
            return np.array([z.real, z.imag])

        gamma = _searched(lambda g: float(np.linalg.norm(mean(g))), X)
        r = mean(gamma)
        v = r / max(np.hypot(*r), 1e-300) * max(concentration_circle(float(np.hypot(*r))), 1e-3)
        return (Chart(anew(model, theta0=_tree(v, gamma, wide)), usual),)

    slopes = [Number(name) for name in names] + [Number(f"log kappa: {name}") for name in wide]
    return Family(
        "Fisher–Lee regression", domain, (Angle("mean", domain.period), Size("kappa"), *slopes), make, "conditional"
    )


def _searched(height: Any, X: np.ndarray) -> np.ndarray:
    """γ near the highest resultant: it has several peaks, so that Newton's method needs a start in the right valley."""
    gamma = np.zeros(X.shape[1])
    for _ in range(_ROUNDS if X.shape[1] > 1 else 1):
        for j in range(X.shape[1]):
            tried = np.tile(gamma, (len(_STEPS), 1))
            tried[:, j] = _STEPS / max(float(X[:, j].std()), 1e-300)
            gamma = tried[int(np.argmax([height(one) for one in tried]))]
    return gamma


def east_north(m: Any) -> tuple[Any, Any]:
    """Unit vectors at right angles to the unit vector m: along its circle of latitude, and towards the pole."""
    import jax.numpy as jnp

    flat = jnp.sqrt(m[0] ** 2 + m[1] ** 2)
    east = jnp.stack([-m[1], m[0], 0.0 * m[0]]) / flat
    north = jnp.stack([-m[2] * m[0], -m[2] * m[1], flat**2]) / flat
    return east, north


# long: closures that share a frame
@lru_cache(maxsize=16)
def _on_sphere(names: tuple[str, ...], wide: tuple[str, ...]) -> Family:
    def scale(theta: Any, x: Any) -> Any:
        import jax.numpy as jnp

        return jnp.exp(_sum(theta["delta"], x, wide)) if wide else 1.0

    def partition(theta: Any, x: Any) -> Any:
        return np.log(4.0 * np.pi) + log_sinch(scale(theta, x) ** 2 * (theta["v"] @ theta["v"]))

    @lru_cache(maxsize=6)
    def law(which: int) -> tuple[Energy, Usual]:
        frame = FRAMES[which]  # about an axis near the mean: at the poles there is no east and north

        def f(theta: Any, y: Any, x: Any) -> Any:
            v = theta["v"]
            if not names:
                return scale(theta, x) * (v @ y)
            e2, e3 = carried(v, frame)
            u1, u2 = (_sum(theta["gamma"][j], x, names) for j in range(2))
            square = u1**2 + u2**2
            turned = ((1.0 - square) * (v @ y) + 2.0 * norm(v) * (u1 * (e2 @ y) + u2 * (e3 @ y))) / (1.0 + square)
            return scale(theta, x) * turned

        def usual(theta: Any) -> tuple[Any, ...]:
            v = theta["v"]
            slopes: list[Any] = []
            if names:
                e2, e3 = carried(v, frame)
                for k in range(len(names)):
                    along = theta["gamma"][0, k] * e2 + theta["gamma"][1, k] * e3
                    slopes += [way @ along for way in east_north(v / norm(v))]
            return v, norm(v), *slopes, *(theta["delta"] if wide else ())

        start = _tree(frame[:, 0], np.zeros((2, len(names))), wide)
        return Energy(f, start, Sphere(), log_partition=partition), usual

    def make(obs: Observations) -> tuple[Chart, ...]:
        X = columns(obs, names)
        columns(obs, wide)
        v, gamma, which = _sphere_start(obs, X)
        model, usual = law(which)
        return (Chart(anew(model, theta0=_tree(v, gamma, wide)), usual),)

    slopes = [Number(f"{name} {way}") for name in names for way in ("east", "north")]
    slopes += [Number(f"log kappa: {name}") for name in wide]
    return Family("spherical regression", Sphere(), (Direction("mean"), Size("kappa", 3), *slopes), make, "conditional")


def _sphere_start(obs: Observations, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Least squares in the stereographic plane about the mean direction, and the frame whose first axis is nearest."""
    w = obs.weights / obs.weights.sum()
    mean = w @ obs.outcome
    length = float(np.linalg.norm(mean))
    m = mean / length if length > 1e-12 else np.array([1.0, 0.0, 0.0])
    which = int(np.argmax(FRAMES[:, :, 0] @ m))
    e2, e3 = (np.asarray(one) for one in carried(m, FRAMES[which]))
    near = obs.outcome @ m > -0.8  # points behind are far out in the plane
    plane = (obs.outcome[near] @ np.column_stack([e2, e3])) / (1.0 + obs.outcome[near] @ m)[:, None]
    design = np.column_stack([np.ones(near.sum()), X[near]])
    found = np.linalg.lstsq(design * np.sqrt(w[near])[:, None], plane * np.sqrt(w[near])[:, None], rcond=None)[0]
    u = found[0]
    centre = ((1.0 - u @ u) * m + 2.0 * (u[0] * e2 + u[1] * e3)) / (1.0 + u @ u)
    return max(concentration_sphere(length), 1e-2) * centre, found[1:].T, which
