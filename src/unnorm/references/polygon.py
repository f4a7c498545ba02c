"""Masses of centred laws over a polygon, edge by edge: exact for the normal law, by quadrature for polar laws.

A polygon's indicator is the signed sum, over its directed edges, of the triangles from any point c to the edges. In
polar coordinates around c a triangle is {(r, φ): φ in the edge's angle, r < r_edge(φ)}, so a law whose radius has
distribution function F and whose angle has density p has mass Σ_edges ± ∫ p(φ) F(r_edge(φ)) dφ over the polygon.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

CHUNK = 2_000_000  # numbers of one temporary array: 16 MB


def edge_frames(edges: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For centres c (n, 2) and edges (E, 2, 2): sign, distance h, ends s₁ ≤ s₂ along the edge, angle of its normal.

    All of shape (n, E) but the angle's. The point of the edge at s lies at distance √(h² + s²) and at angle
    φ_normal + atan(s/h); for edges seen from the right (sign −1) s is counted backwards, so that φ still grows with it.
    """
    p = edges[None, :, 0] - c[:, None]
    q = edges[None, :, 1] - c[:, None]
    along = edges[:, 1] - edges[:, 0]
    t = along / np.linalg.norm(along, axis=1, keepdims=True)
    distance = p[..., 0] * t[:, 1] - p[..., 1] * t[:, 0]  # positive where c is to the left
    sign = np.where(distance < 0.0, -1.0, 1.0)
    ends = np.stack([np.einsum("nej,ej->ne", p, t) * sign, np.einsum("nej,ej->ne", q, t) * sign])
    # the outward normal as seen from c: to the right of t where c is to its left
    normal = np.arctan2(-t[:, 0] * sign, t[:, 1] * sign)
    return sign, np.abs(distance), ends.min(axis=0), ends.max(axis=0), normal


def normal_mass(edges: np.ndarray, c: np.ndarray) -> np.ndarray:
    """∫_polygon N(y; c, I) dy for each centre c (n, 2): exact, by Owen's T function.

    With a Rayleigh radius the integral over an edge's angle is Δφ/2π − T(h, s₂/h) + T(h, s₁/h) (Owen 1956, Section 5).
    """
    from scipy.special import owens_t

    mass = np.empty(len(c))
    step = max(1, CHUNK // len(edges))
    for start in range(0, len(c), step):
        sign, h, s1, s2, _ = edge_frames(edges, c[start : start + step])
        with np.errstate(divide="ignore", invalid="ignore"):
            a1, a2 = s1 / h, s2 / h
        flat = h < 1e-12  # seen from the edge's own line the triangle is empty
        a1, a2 = np.where(flat, 0.0, a1), np.where(flat, 0.0, a2)
        part = (np.arctan(a2) - np.arctan(a1)) / (2.0 * np.pi) - owens_t(h, a2) + owens_t(h, a1)
        mass[start : start + step] = np.sum(sign * part, axis=1)
    return mass


@cache
def _legendre(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """A Gauss–Legendre rule, which every window asks for again."""
    return np.polynomial.legendre.leggauss(nodes)


def polar_mass(
    edges: np.ndarray,
    c: np.ndarray,
    radius_cdf: Callable[[np.ndarray], np.ndarray],
    angle_density: Callable[[np.ndarray, np.ndarray], np.ndarray],
    nodes: int,
) -> np.ndarray:
    """∫_polygon p(r) p(φ|i)/r dy for each centre c_i: Gauss–Legendre with `nodes` nodes per edge.

    `angle_density(φ, i)` has φ of shape (len(i), …). With s = h sinh t the integrand F(h cosh t) p(φ)/cosh t is
    analytic in |Im t| < π/2 however close c is to the edge, so that the error falls geometrically with the nodes.
    """
    x, w = _legendre(nodes)
    mass = np.empty(len(c))
    step = max(1, CHUNK // (len(edges) * nodes))
    for start in range(0, len(c), step):
        here = np.arange(start, min(start + step, len(c)))
        sign, h, s1, s2, normal = edge_frames(edges, c[here])
        h = np.maximum(h, 1e-12 * np.maximum(np.abs(s1), np.abs(s2)))  # on the edge's line: F(0) dφ = 0 in the limit
        t1, t2 = np.arcsinh(s1 / h), np.arcsinh(s2 / h)
        t = 0.5 * (t1 + t2)[..., None] + 0.5 * (t2 - t1)[..., None] * x
        cosh = np.cosh(t)
        phi = normal[..., None] + np.arctan(np.sinh(t))
        value = radius_cdf(h[..., None] * cosh) * angle_density(phi, here) / cosh
        mass[here] = np.sum(sign * 0.5 * (t2 - t1) * (value @ w), axis=1)
    return mass


def reach(edges: np.ndarray, c: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """(n, k) how far the rays from c (n, 2) in the directions φ (n, k) go before they leave the polygon for good."""
    out = np.zeros(phi.shape)
    dx, dy = np.cos(phi), np.sin(phi)
    for a, b in edges:
        along, p = b - a, a - c  # c + t d = a + s along
        det = along[0] * dy - along[1] * dx
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (along[0] * p[:, 1] - along[1] * p[:, 0])[:, None] / det
            s = (dx * p[:, 1:] - dy * p[:, :1]) / det
        hit = (det != 0.0) & (s >= -1e-12) & (s <= 1.0 + 1e-12) & (t > 0.0)
        out = np.maximum(out, np.where(hit, t, 0.0))
    return out
