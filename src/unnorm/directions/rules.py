"""Rules for integrals over the sphere that go where a density is sharp.

exp f of concentration κ has width 1/√κ; the domain's own rule must resolve that everywhere, which takes κ nodes. Here
the nodes crowd: in polar coordinates about the data's own axes the polar angle is ϑ = w sinh(a t) (and the height above
a girdle likewise), t ∈ [0, 1], with w the data's smallest spread, so that the integrand is as smooth in t for κ = 10⁴
as for κ = 1 and Gauss–Legendre converges geometrically. The error is known as for any rule: by doubling the order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from ..domains import Quadrature
from ..domains._rules import gauss_legendre, refuse_large

Rule = Callable[[int | None], Quadrature]
Shape = Literal["peak", "poles", "girdle"]
_DEFAULT = 32  # of the sphere
_SAME = 1e-10  # width below which all data are one direction


def scatter(y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean vector, and the eigenvalues (descending) and eigenvectors (columns) of Σ w y yᵀ / Σ w."""
    w = weights / weights.sum()
    values, vectors = np.linalg.eigh((w[:, None] * y).T @ y)
    return w @ y, values[::-1], vectors[:, ::-1]


def shape_of(mean: np.ndarray, values: np.ndarray) -> Shape:
    """One peak, two poles or a girdle: by the resultant, and by the gaps between eigenvalues (Woodcock 1977)."""
    if np.linalg.norm(mean) > 0.4:
        return "peak"
    return "poles" if values[0] - values[1] >= values[1] - values[2] else "girdle"


def focused(y: np.ndarray, weights: np.ndarray, *, half: bool = False) -> Rule:
    """The rule for data like these: order → nodes; with `half`, over the half sphere of axes."""
    mean, values, axes = scatter(y, weights)
    shape: Shape = shape_of(np.zeros(3) if half else mean, values)
    least = max(float(1.0 - values[0] - values[1]), float(values[2]), _SAME**2)
    if shape == "peak":  # about the mean direction
        pole = mean / np.linalg.norm(mean)
        tangent = np.linalg.svd(pole[None])[2][1:]  # two directions at right angles to it
        sides = tangent @ ((weights / weights.sum())[:, None] * y).T @ y @ tangent.T
        least = max(float(np.linalg.eigvalsh(sides)[0]), _SAME**2)
    else:
        pole = axes[:, 0] if shape == "poles" else axes[:, 2]
    width = float(np.clip(np.sqrt(3.0 * least), _SAME, 1.0))

    def rule(order: int | None) -> Quadrature:
        return polar(pole, width, shape, _DEFAULT if order is None else order, half)

    return rule


def polar(pole: np.ndarray, width: float, shape: Shape, order: int, half: bool = False) -> Quadrature:
    """`order` polar angles, crowded by `width`, times 2·order longitudes about `pole`; `half`: for even functions, of
    axes."""
    refuse_large(2 * order**2, f"A spherical rule of order {order}", "Take a smaller order.")
    s, w = gauss_legendre(order)
    if shape == "peak":
        angle, step = _sinh(s, width, np.pi)
        z, r, weight = np.cos(angle), np.sin(angle), w * step * np.sin(angle) * (0.5 if half else 1.0)
    elif shape == "poles":
        s, w = gauss_legendre(max(order // 2 + order % 2, 1))
        angle, step = _sinh(s, width, np.pi / 2)
        z, r, weight = np.cos(angle), np.sin(angle), w * step * np.sin(angle)
        if not half:
            z, r, weight = np.concatenate([z, -z]), np.tile(r, 2), np.tile(weight, 2)
    else:
        a = np.arcsinh(1.0 / width)
        z = width * np.sinh(a * (2.0 * s - 1.0))
        r = np.sqrt((1.0 - z) * (1.0 + z))
        weight = w * 2.0 * a * width * np.cosh(a * (2.0 * s - 1.0)) * (0.5 if half else 1.0)
    longitude = np.arange(2 * order) * (np.pi / order)
    e = np.linalg.svd(np.asarray(pole)[None])[2][1:]
    points = (
        z[:, None, None] * pole
        + r[:, None, None] * (np.cos(longitude)[:, None] * e[0] + np.sin(longitude)[:, None] * e[1])
    ).reshape(-1, 3)
    weights = np.repeat(weight * (np.pi / order), 2 * order)
    about = {"peak": "the mean direction", "poles": "both ends of an axis", "girdle": "a girdle"}[shape]
    words = f"{len(z)} × {2 * order} nodes that crowd about {about}: the error falls geometrically with the order"
    return Quadrature(points, weights, exact=False, rule=words)


def _sinh(s: np.ndarray, width: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    """ϑ = w sinh(a s) on [0, end], and dϑ/ds."""
    a = np.arcsinh(end / width)
    return width * np.sinh(a * s), a * width * np.cosh(a * s)


def focused_torus(y: np.ndarray, weights: np.ndarray) -> Rule:
    """Trapezoid rules in each angle, y = μ + 2 atan(w tan(s/2)): even in s, crowded about the mean direction in y."""
    resultant = (weights / weights.sum()) @ np.exp(1j * y)
    centre, width = np.angle(resultant), np.clip(np.sqrt(2.0 * (1.0 - np.abs(resultant))), _SAME, 1.0)

    def rule(order: int | None) -> Quadrature:
        order = 64 if order is None else order
        refuse_large(order**2, f"A rule of order {order} on two angles", "Take a smaller order.")
        s = -np.pi + (np.arange(order) + 0.5) * (2.0 * np.pi / order)
        half = 0.5 * s[:, None]
        angle = centre + 2.0 * np.arctan(width * np.tan(half))
        slope = width / (np.cos(half) ** 2 + (width * np.sin(half)) ** 2) * (2.0 * np.pi / order)
        points = np.stack(np.meshgrid(angle[:, 0], angle[:, 1], indexing="ij"), axis=-1).reshape(-1, 2)
        weight = np.multiply.outer(slope[:, 0], slope[:, 1]).ravel()
        words = f"trapezoid, {order}**2 angles that crowd about the means: the error falls geometrically with the order"
        return Quadrature(points, weight, exact=False, rule=words)

    return rule
