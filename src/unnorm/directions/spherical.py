"""Families on the sphere, and of axes in space: all are exp(a·y + yᵀBy) (Mardia & Jupp 2000, chapter 9).

    von Mises–Fisher   a = κμ
    Watson             B = κ μμᵀ                             κ > 0 two poles, κ < 0 a girdle
    Bingham            B = Σ_j κ_j e_j e_jᵀ                  κ₁ ≤ κ₂ ≤ κ₃ = 0
    Kent               a = κγ₁, B = β (γ₂γ₂ᵀ − γ₃γ₃ᵀ)        2β < κ: one mode, with oval contours
    Fisher–Bingham     any a and B

Von Mises–Fisher, Bingham and Fisher–Bingham are linear in θ. Watson and Kent are curved: their θ is a chart about the
moments' estimate in which the uniform law and round contours are no corners.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..data.observations import Observations
from ..domains import Axis, Domain, Sphere
from ..errors import InputError
from ..models.anew import anew
from ..models.energy import Energy
from ..models.exponential_family import ExponentialFamily
from ..references.directional import concentration_sphere
from .bessel import log_sinch, norm
from .family import Chart, Family, Usual, named
from .quantities import Direction, Number, Size
from .rules import focused, scatter
from .sampling import drawn

LINEAR = ("y1", "y2", "y3")
QUADRATIC = ("y1y1-y3y3", "y2y2-y3y3", "y1y2", "y1y3", "y2y3")
_CLEARLY = 5.0  # times one gap between eigenvalues must exceed the other to tell poles from a girdle at sight
_LARGEST = 1e8  # κ that a start may have
_BALANCED = 1e-6  # a resultant that is 0
_AXES = np.concatenate([np.eye(3), -np.eye(3)])
FRAMES = np.stack([np.column_stack([g1, g2, np.cross(g1, g2)]) for g1, g2 in zip(_AXES, np.roll(_AXES, 1, axis=0))])


def _even(domain: Domain | None) -> tuple[Domain, bool]:
    """Ω for a law with f(y) = f(−y), and whether it is that of axes."""
    domain = Sphere() if domain is None else domain
    if domain != Sphere() and domain != Axis(3):
        raise InputError(f"This family lives on un.Sphere() or, for axes, on un.Axis(3); got {domain!r}.")
    return domain, domain == Axis(3)


def _squares(y: Any) -> tuple[Any, ...]:
    """The five quadratic statistics: yᵀBy = θᵀ s for B of trace 0."""
    return (y[0] ** 2 - y[2] ** 2, y[1] ** 2 - y[2] ** 2, 2 * y[0] * y[1], 2 * y[0] * y[2], 2 * y[1] * y[2])


def _matrix(t: Any) -> Any:
    """B from its five coefficients; NumPy's where they are floats."""
    import jax.numpy as jnp

    return jnp.stack(
        [jnp.stack([t[0], t[2], t[3]]), jnp.stack([t[2], t[1], t[4]]), jnp.stack([t[3], t[4], -t[0] - t[1]])]
    )


@named
def von_mises_fisher() -> Family:
    """exp(κ μ·y) κ / 4π sinh κ on the sphere.

    >>> import unnorm as un
    >>> [one.name for one in un.directions.von_mises_fisher().quantities]
    ['mean', 'kappa']
    """
    return _von_mises_fisher()


@lru_cache(maxsize=1)  # so that the model is compiled once
def _von_mises_fisher() -> Family:
    def partition(theta: Any) -> Any:
        return np.log(4.0 * np.pi) + log_sinch(sum(theta[name] ** 2 for name in LINEAR))

    def usual(theta: Any) -> tuple[Any, ...]:
        import jax.numpy as jnp

        v = jnp.stack([theta[name] for name in LINEAR])
        return v, norm(v)

    model = ExponentialFamily(lambda y: (y[0], y[1], y[2]), LINEAR, Sphere(), log_partition=partition)
    return Family(
        "von Mises–Fisher", Sphere(), (Direction("mean"), Size("kappa", 3)), lambda obs: (Chart(model, usual),),
        draw=drawn(lambda value: (value[0], np.zeros((3, 3)))),
    )  # fmt: skip


def _axes(B: Any) -> tuple[Any, ...]:
    """κ₁ − κ₃, κ₂ − κ₃ and the first and last axes, each of the length of the gap that tells it from the others."""
    import jax.numpy as jnp

    values, vectors = jnp.linalg.eigh(B)
    main, pole = vectors[:, 2] * (values[2] - values[1]), vectors[:, 0] * (values[1] - values[0])
    return main, pole, values[0] - values[2], values[1] - values[2]


# κ₁ = 0 is the uniform law, one of five parts; κ₂ = 0 is round about e₁, of two
_BINGHAM = (Direction("axis", axial=True), Direction("pole", axial=True), Number("kappa1", 5), Number("kappa2", 2))


@named
def bingham(domain: Domain | None = None) -> Family:
    """exp(κ₁ (e₁·y)² + κ₂ (e₂·y)²), κ₁ ≤ κ₂ ≤ 0: `axis` e₃, along which the density is largest, and `pole` e₁.

    >>> import unnorm as un
    >>> un.directions.bingham(un.Axis(3))
    Bingham on Axis(3)
    """
    return _bingham(*_even(domain))


@lru_cache(maxsize=2)
def _bingham(domain: Domain, half: bool) -> Family:
    model = ExponentialFamily(_squares, QUADRATIC, domain)

    def make(obs: Observations) -> tuple[Chart, ...]:
        return (Chart(anew(model, rule=focused(obs.outcome, obs.weights, half=half)), usual),)

    def usual(theta: Any) -> tuple[Any, ...]:
        return _axes(_matrix([theta[name] for name in QUADRATIC]))

    return Family(
        "Bingham", domain, _BINGHAM, make, even=True, oval=True,
        draw=drawn(lambda value: (np.zeros(3), _from_axes(*value))),
    )  # fmt: skip


def _from_axes(main: np.ndarray, pole: np.ndarray, kappa1: np.ndarray, kappa2: np.ndarray) -> np.ndarray:
    """B from what `_axes` gives, up to a multiple of the unit matrix."""
    e3, e1 = (one / np.linalg.norm(one) for one in (main, pole))
    e2 = np.cross(e3, e1)
    return kappa1[0] * np.outer(e1, e1) + kappa2[0] * np.outer(e2, e2)


@named
def fisher_bingham() -> Family:
    """exp(κ μ·y + yᵀBy), the eight-parameter law; its parts as von Mises–Fisher and Bingham name them.

    >>> import unnorm as un
    >>> [one.name for one in un.directions.fisher_bingham().quantities]
    ['mean', 'kappa', 'axis', 'pole', 'kappa1', 'kappa2']
    """
    return _fisher_bingham()


@lru_cache(maxsize=1)
def _fisher_bingham() -> Family:
    def statistics(y: Any) -> Any:
        return y[0], y[1], y[2], *_squares(y)

    model = ExponentialFamily(statistics, LINEAR + QUADRATIC, Sphere())

    def make(obs: Observations) -> tuple[Chart, ...]:
        return (Chart(anew(model, rule=focused(obs.outcome, obs.weights)), usual),)

    def usual(theta: Any) -> tuple[Any, ...]:
        import jax.numpy as jnp

        v = jnp.stack([theta[name] for name in LINEAR])
        return v, norm(v), *_axes(_matrix([theta[name] for name in QUADRATIC]))

    return Family(
        "Fisher–Bingham", Sphere(), (Direction("mean"), Size("kappa", 3), *_BINGHAM), make, oval=True,
        draw=drawn(lambda value: (value[0], _from_axes(*value[2:]))),
    )  # fmt: skip


@named
def watson(domain: Domain | None = None) -> Family:
    """exp(κ (μ·y)²): κ > 0 has two poles ±μ, κ < 0 a girdle about μ. The sign is that of the larger likelihood.

    >>> import unnorm as un
    >>> [one.name for one in un.directions.watson().quantities]
    ['axis', 'kappa']
    """
    return _watson(*_even(domain))


# long: closures that share the domain
@lru_cache(maxsize=2)
def _watson(domain: Domain, half: bool) -> Family:
    @lru_cache(maxsize=2)
    def law(sign: float) -> tuple[Energy, Usual]:
        def f(theta: Any, y: Any) -> Any:  # less its largest value, so that no large numbers cancel
            v = theta["v"]
            return sign * ((v @ y) ** 2 - (v @ v if sign > 0 else 0.0))

        def usual(theta: Any) -> tuple[Any, ...]:
            return theta["v"] * norm(theta["v"]), sign * (theta["v"] @ theta["v"])

        return Energy(f, {"v": np.ones(3)}, domain), usual

    def chart(sign: float, start: np.ndarray, rule: Any) -> Chart:
        model, usual = law(sign)
        return Chart(anew(model, theta0={"v": start}, rule=rule), usual)

    def make(obs: Observations) -> tuple[Chart, ...]:
        _, values, axes = scatter(obs.outcome, obs.weights)
        rule = focused(obs.outcome, obs.weights, half=half)
        spread = np.maximum(values, 1e-10)
        poles = axes[:, 0] * np.sqrt(np.clip(1.0 / (spread[1] + spread[2]) - 1.5, 0.1, _LARGEST))
        girdle = axes[:, 2] * np.sqrt(np.clip(0.5 / spread[2] - 1.5, 0.1, _LARGEST))
        charts = chart(1.0, poles, rule), chart(-1.0, girdle, rule)
        gaps = values[0] - values[1], values[1] - values[2]
        return charts[:1] if gaps[0] > _CLEARLY * gaps[1] else charts[1:] if gaps[1] > _CLEARLY * gaps[0] else charts

    def quadratic(value: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(3), np.outer(value[0], value[0]) / value[1][0]  # (|κ|μ)(|κ|μ)ᵀ/κ

    quantities = (Direction("axis", axial=True), Number("kappa", 5))
    return Family("Watson", domain, quantities, make, even=True, draw=drawn(quadratic))


@named
def kent() -> Family:
    """exp(κ γ₁·y + β {(γ₂·y)² − (γ₃·y)²}): `mean` γ₁, `major` axis γ₂, concentration κ and ovalness β ≥ 0.

    >>> import unnorm as un
    >>> [one.name for one in un.directions.kent().quantities]
    ['mean', 'major', 'kappa', 'beta']
    """
    return _kent()


# long: closures that share a frame
@lru_cache(maxsize=1)
def _kent() -> Family:
    @lru_cache(maxsize=6)
    def law(which: int) -> tuple[Energy, Usual]:
        frame = FRAMES[which]

        def f(theta: Any, y: Any) -> Any:
            e2, e3 = carried(theta["v"], frame)
            p, q = e2 @ y, e3 @ y
            return theta["v"] @ y + theta["b"][0] * (p**2 - q**2) + 2.0 * theta["b"][1] * p * q

        def usual(theta: Any) -> tuple[Any, ...]:
            import jax.numpy as jnp

            e2, e3 = carried(theta["v"], frame)
            beta = norm(theta["b"])
            psi = 0.5 * jnp.arctan2(theta["b"][1], theta["b"][0])
            return theta["v"], beta * (jnp.cos(psi) * e2 + jnp.sin(psi) * e3), norm(theta["v"]), beta

        return Energy(f, {"b": np.zeros(2), "v": frame[:, 0]}, Sphere()), usual

    def make(obs: Observations) -> tuple[Chart, ...]:
        start, which = _kent_start(obs)
        model, usual = law(which)
        return (Chart(anew(model, theta0=start, rule=focused(obs.outcome, obs.weights)), usual),)

    def quadratic(value: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        e1, e2 = (one / np.linalg.norm(one) for one in value[:2])
        e3 = np.cross(e1, e2)
        return value[0], value[3][0] * (np.outer(e2, e2) - np.outer(e3, e3))

    quantities = (Direction("mean"), Direction("major", axial=True), Size("kappa", 3), Size("beta", 2, steps=3.0))
    return Family(
        "Kent", Sphere(), quantities, make, draw=drawn(quadratic), oval=True, remark=_kent_remark, lost=_kent_lost
    )


def _kent_lost(obs: Observations) -> str | None:
    if np.linalg.norm(scatter(obs.outcome, obs.weights)[0]) > _BALANCED:
        return None
    return (
        "kappa is 0, and the mean has no sense: opposite directions are as likely. That is a law of axes; fit "
        "un.directions.bingham()."
    )


def _kent_remark(parameters: dict[str, float]) -> str | None:
    if 2.0 * parameters["beta"] <= parameters["kappa"]:
        return None
    return "2β > κ: the fitted density has two modes, which Kent's law has not. Compare un.directions.fisher_bingham()."


def carried(v: Any, frame: np.ndarray) -> tuple[Any, Any]:
    """The second and third columns of the frame, turned with the first as it becomes v/|v| by the shortest rotation."""
    g1, g2, g3 = frame.T
    m = v / norm(v)
    both = (m + g1) / (1.0 + m @ g1)
    return g2 - (m @ g2) * both, g3 - (m @ g3) * both


def _kent_start(obs: Observations) -> tuple[dict[str, Any], int]:
    """Kent's (1982) moments, by his formulas for large κ; and which frame has its first axis nearest to the mean."""
    w = obs.weights / obs.weights.sum()
    mean = w @ obs.outcome
    length = float(np.linalg.norm(mean))
    g1 = mean / max(length, 1e-300) if length > 1e-12 else np.array([0.0, 0.0, 1.0])
    tangent = np.linalg.svd(g1[None])[2][1:]
    values, vectors = np.linalg.eigh(tangent @ ((w[:, None] * obs.outcome).T @ obs.outcome) @ tangent.T)
    g2 = tangent.T @ vectors[:, 1]
    r2 = float(values[1] - values[0])
    left, right = max(2.0 - 2.0 * length - r2, 1e-12), max(2.0 - 2.0 * length + r2, 1e-12)
    kappa, beta = 1.0 / left + 1.0 / right, 0.5 * (1.0 / left - 1.0 / right)
    if kappa < 10.0 or not 2.0 * beta < 0.98 * kappa:  # the formulas are for concentrated data
        kappa, beta = max(concentration_sphere(length), 1e-3), 0.0
    which = int(np.argmax(FRAMES[:, :, 0] @ g1))
    e2, e3 = (np.asarray(one) for one in carried(kappa * g1, FRAMES[which]))
    psi = np.arctan2(e3 @ g2, e2 @ g2)
    return {"b": beta * np.array([np.cos(2 * psi), np.sin(2 * psi)]), "v": kappa * g1}, which
