"""A first fit on some of the contexts, whose curve runs away where they have no rows."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import unnorm as un

# hundredths of a radian: of the contexts, every sixth leaves a gap in which χ, without a penalty, went to 1,168
ANGLES = """
    110 119 140 121 166 121 -105 -85 -87 -165 -256 -209 -141 -165 -200 -104 -157 -200 -162 -213 -180 -103 -172 1
    79 156 126 48 12 89 134 14 1 204 135 -15 13 33 100 173 122 63 137 137 130 77 145 108 161 169 43 -68 -6 -33
    77 44 53 125 67 54 98 42 -2 14 -55 -86 -62 -141 -141 -142 -159 -90 -141 -160 -111 -22 131 184 161 143 130
    115 150 139 109 131 123 -27 -59 -94 -28 -204 -140 -145 -124 -66 -106 -208 -171 -193 -167 -95 -139 -157 -177
    -204 -81 -40 -83 -61 -68 -15 -110 -112 -85 4 94 188 97 118 36 -103 -112 -165 -75 -149 78 94 166 69 156 105
    76 139 67 66 39 -93 -39 -93 -83 -104 -212 -123 -74 -98 -49 -18 -75 -35 91 63 76 69 74 100 80 132 67 154 25
    128 87 43 44 90 206 92 15 -101 -124 39 146 120 112 130 45 -30 -64 -109 -38 -87 -111 -273 -199 -183 -176 -101
    -2 -104 -200 -85 -69 -126 -110 -227 193 175 52 -5 -49 -163 -164 -134 -152 -136 -123 -123 -75 -54 42 -36 100
    36 -18 -152 -117 -169 -133 -89 -52 51 144 173 176 97 168 67 112 50 57 4 97 110 45 27 -6 72 191 120 11
"""


def test_a_start_that_strays_at_other_contexts_is_not_taken() -> None:
    """The rows were said not to tell the constants' functions apart."""
    chain = un.transitions(np.array(ANGLES.split(), dtype=float) / 100)
    model = un.ExponentialFamily(
        lambda y, x: (jnp.cos(y - x), jnp.cos(y), jnp.cos(2 * y)), ("near", "east", "axis"), un.Circle()
    )
    chi = un.Smooth("s(y_prev, bs='cc', k=10, fx=True)")
    fit = un.fit(model, chain, un.Poisson(), chi, rng=0)
    exact = un.fit(model, chain, un.Exact())
    assert fit.converged
    assert np.abs(fit.estimate - exact.estimate) / exact.se == pytest.approx(0.0, abs=0.5)
