"""exp and log as arithmetic alone: a compiled loop of them becomes vector instructions, which a loop of calls to the C
library does not.

Not for functions whose sums may be reordered (`fastmath`): (x + c) − c must round.
"""

from __future__ import annotations

from math import factorial
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_DOUBLE, _BITS = ir.DoubleType(), ir.IntType(64)
_ROUND = 6755399441055744.0  # 1.5·2⁵²: a number added to it is rounded to an integer, in its last bits
_ROUND_BITS = 0x4338000000000000  # and its own bits
_LN2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log 2 in two parts, the first with 32 bits
_EXP_DEGREE, _LOG_DEGREE = 12, 9
_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # of √½


def _number(value: float) -> Any:
    return ir.Constant(_DOUBLE, value)


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return builder.fadd(builder.fmul(a, b, flags=("contract",)), c, flags=("contract",))


@intrinsic
def exp_below(typing, x):
    """exp(x) for −708 < x ≤ 0, within 4·10⁻¹⁶ of itself; not a number stays one.

    x = k log 2 + r with |r| ≤ ½ log 2, Taylor's series in r, and k in the exponent's bits.
    """

    def generate(context, builder, signature, args):
        placed = builder.fadd(builder.fmul(args[0], _number(1.4426950408889634)), _number(_ROUND))
        k = builder.fsub(placed, _number(_ROUND))
        r = builder.fsub(args[0], builder.fmul(k, _number(_LN2[0])))
        r = builder.fsub(r, builder.fmul(k, _number(_LN2[1])))
        series = _number(1.0 / factorial(_EXP_DEGREE))
        for power in range(_EXP_DEGREE - 1, -1, -1):
            series = _fma(builder, series, r, _number(1.0 / factorial(power)))
        exponent = builder.shl(builder.bitcast(placed, _BITS), ir.Constant(_BITS, 52))
        scale = builder.bitcast(builder.add(exponent, ir.Constant(_BITS, 1023 << 52)), _DOUBLE)
        return builder.fmul(series, scale)

    return types.float64(types.float64), generate


@intrinsic
def log_of(typing, x):
    """log(x) for a positive normal number, within 4·10⁻¹⁶ of itself.

    x = 2ᵏm with √½ ≤ m < √2, and log m = 2 artanh s = 2 Σ s^(2j+1)/(2j+1) with s = (m − 1)/(m + 1).
    """

    def generate(context, builder, signature, args):
        bits = builder.bitcast(args[0], _BITS)
        above = builder.sub(bits, ir.Constant(_BITS, _ROOT_HALF_BITS))
        whole = builder.ashr(above, ir.Constant(_BITS, 52))
        m = builder.bitcast(builder.sub(bits, builder.shl(whole, ir.Constant(_BITS, 52))), _DOUBLE)
        placed = builder.bitcast(builder.add(whole, ir.Constant(_BITS, _ROUND_BITS)), _DOUBLE)
        k = builder.fsub(placed, _number(_ROUND))
        f = builder.fsub(m, _number(1.0))
        s = builder.fdiv(f, builder.fadd(m, _number(1.0)))
        z = builder.fmul(s, s)
        series = _number(2.0 / (2 * _LOG_DEGREE + 1))
        for power in range(_LOG_DEGREE - 1, 0, -1):
            series = _fma(builder, series, z, _number(2.0 / (2 * power + 1)))
        # 2 artanh s = f − s (f − z series): the correction is small beside f, which is exact
        small = builder.fmul(s, builder.fsub(f, builder.fmul(z, series)))
        small = builder.fsub(small, builder.fmul(k, _number(_LN2[1])))
        return builder.fadd(builder.fmul(k, _number(_LN2[0])), builder.fsub(f, small))

    return types.float64(types.float64), generate
