"""Four-wide double operations for the row pass, as LLVM vectors.

Numba leaves LLVM's SLP vectoriser off, so four consecutive `t[q+k] += s*v[k]` compile to scalar code: three times
slower (measured). Offsets are in elements into C-contiguous float64 arrays of any rank; nothing is bounds-checked.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, 4)
_LANE = ir.IntType(32)


def _pointer(context, builder, array_type, array, offset):
    field = context.data_model_manager[array_type].get_field_position("data")
    return builder.gep(builder.extract_value(array, field), [offset])


def _load(builder, pointer):
    return builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)


def _store(builder, value, pointer):
    builder.store(value, builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)


def _splat(builder, scalar):
    vector = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, ir.Constant(_LANE, 0))
    mask = ir.Constant(ir.VectorType(_LANE, 4), [0, 0, 0, 0])
    return builder.shuffle_vector(vector, ir.Constant(_VECTOR, ir.Undefined), mask)


def _fma(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=("contract",)), c, flags=("contract",))


def _offset(builder, base, k):
    return builder.add(base, ir.Constant(base.type, k)) if k else base


_I, _F = types.intp, types.float64


@intrinsic
def whole(typing, x):
    """int(x) of a number that fits: one instruction, where Numba compiles a function."""

    def generate(context, builder, signature, args):
        return builder.fptosi(args[0], ir.IntType(64))

    return types.int64(_F), generate


@intrinsic
def cubic4(typing, poly, q, t, s, value, at):
    """value[at:at+4] = s (a0 + t (a1 + t (a2 + t a3))), with a_k = poly[q+4k : q+4k+4]."""

    def generate(context, builder, signature, args):
        poly_, q_, t_, s_, value_, at_ = args
        p = [
            _load(builder, _pointer(context, builder, signature.args[0], poly_, _offset(builder, q_, 4 * k)))
            for k in range(4)
        ]
        tv = _splat(builder, t_)
        v = _fma(builder, tv, p[3], p[2])
        v = _fma(builder, tv, v, p[1])
        v = _fma(builder, tv, v, p[0])
        v = builder.fmul(v, _splat(builder, s_))
        _store(builder, v, _pointer(context, builder, signature.args[4], value_, at_))
        return context.get_dummy_value()

    return types.void(poly, _I, _F, _F, value, _I), generate


@intrinsic
def set4(typing, out, i, s):
    """out[i:i+4] = (s, 0, 0, 0)."""

    def generate(context, builder, signature, args):
        out_, i_, s_ = args
        value = builder.insert_element(ir.Constant(_VECTOR, [0.0] * 4), s_, ir.Constant(_LANE, 0))
        _store(builder, value, _pointer(context, builder, signature.args[0], out_, i_))
        return context.get_dummy_value()

    return types.void(out, _I, _F), generate


@intrinsic
def sum4(typing, a, i):
    """a[i] + … + a[i+3]."""

    def generate(context, builder, signature, args):
        vector = _load(builder, _pointer(context, builder, signature.args[0], *args))
        parts = [builder.extract_element(vector, ir.Constant(_LANE, k)) for k in range(4)]
        return builder.fadd(builder.fadd(parts[0], parts[1]), builder.fadd(parts[2], parts[3]))

    return _F(a, _I), generate


@intrinsic
def dot4(typing, a, i, b, j):
    """a[i:i+4] · b[j:j+4]."""

    def generate(context, builder, signature, args):
        a_, i_, b_, j_ = args
        product = builder.fmul(
            _load(builder, _pointer(context, builder, signature.args[0], a_, i_)),
            _load(builder, _pointer(context, builder, signature.args[2], b_, j_)),
        )
        parts = [builder.extract_element(product, ir.Constant(_LANE, k)) for k in range(4)]
        return builder.fadd(builder.fadd(parts[0], parts[1]), builder.fadd(parts[2], parts[3]))

    return _F(a, _I, b, _I), generate


@intrinsic
def axpy4(typing, out, i, s, value, at):
    """out[i:i+4] += s value[at:at+4]."""

    def generate(context, builder, signature, args):
        out_, i_, s_, value_, at_ = args
        target = _pointer(context, builder, signature.args[0], out_, i_)
        v = _load(builder, _pointer(context, builder, signature.args[3], value_, at_))
        _store(builder, _fma(builder, _splat(builder, s_), v, _load(builder, target)), target)
        return context.get_dummy_value()

    return types.void(out, _I, _F, value, _I), generate


@intrinsic
def scale4(typing, out, i, s):
    """out[i:i+4] *= s."""

    def generate(context, builder, signature, args):
        out_, i_, s_ = args
        target = _pointer(context, builder, signature.args[0], out_, i_)
        _store(builder, builder.fmul(_load(builder, target), _splat(builder, s_)), target)
        return context.get_dummy_value()

    return types.void(out, _I, _F), generate


# long: places in two arrays and four numbers
@intrinsic
def axpy4_of_4(typing, out, i, value, at, step, s0, s1, s2, s3):
    """out[i:i+4] += s0 value[at:at+4] + … + s3 value[at+3 step : at+3 step+4]."""

    def generate(context, builder, signature, args):
        out_, i_, value_, at_, step_, *weights = args
        target = _pointer(context, builder, signature.args[0], out_, i_)
        total = _load(builder, target)
        for weight in weights:
            v = _load(builder, _pointer(context, builder, signature.args[2], value_, at_))
            total = _fma(builder, _splat(builder, weight), v, total)
            at_ = builder.add(at_, step_)
        _store(builder, total, target)
        return context.get_dummy_value()

    return types.void(out, _I, value, _I, _I, _F, _F, _F, _F), generate


@intrinsic
def fma4(typing, out, at, a, i, b, j):
    """out[at:at+4] += a[i:i+4] b[j:j+4]."""

    def generate(context, builder, signature, args):
        out_, at_, a_, i_, b_, j_ = args
        target = _pointer(context, builder, signature.args[0], out_, at_)
        left = _load(builder, _pointer(context, builder, signature.args[2], a_, i_))
        right = _load(builder, _pointer(context, builder, signature.args[4], b_, j_))
        _store(builder, _fma(builder, left, right, _load(builder, target)), target)
        return context.get_dummy_value()

    return types.void(out, _I, a, _I, b, _I), generate


@intrinsic
def outer4(typing, table, q, size, w, value, a, b):
    """table[q + k size + l] += w value[a+k] value[b+l] for k, l = 0…3."""

    def generate(context, builder, signature, args):
        table_, q_, size_, w_, value_, a_, b_ = args
        right = _load(builder, _pointer(context, builder, signature.args[4], value_, b_))
        right = builder.fmul(right, _splat(builder, w_))
        at = q_
        for k in range(4):
            left = builder.load(_pointer(context, builder, signature.args[4], value_, _offset(builder, a_, k)))
            target = _pointer(context, builder, signature.args[0], table_, at)
            _store(builder, _fma(builder, _splat(builder, left), right, _load(builder, target)), target)
            at = builder.add(at, size_)
        return context.get_dummy_value()

    return types.void(table, _I, _I, _F, value, _I, _I), generate


@intrinsic
def quadratic4(typing, table, q, size, value, a, b):
    """Σ_kl value[a+k] table[q + k size + l] value[b+l]."""

    def generate(context, builder, signature, args):
        table_, q_, size_, value_, a_, b_ = args
        total = None
        at = q_
        for k in range(4):
            left = builder.load(_pointer(context, builder, signature.args[3], value_, _offset(builder, a_, k)))
            row = _load(builder, _pointer(context, builder, signature.args[0], table_, at))
            left = _splat(builder, left)
            total = builder.fmul(left, row) if total is None else _fma(builder, left, row, total)
            at = builder.add(at, size_)
        total = builder.fmul(total, _load(builder, _pointer(context, builder, signature.args[3], value_, b_)))
        parts = [builder.extract_element(total, ir.Constant(_LANE, k)) for k in range(4)]
        return builder.fadd(builder.fadd(parts[0], parts[1]), builder.fadd(parts[2], parts[3]))

    return _F(table, _I, _I, value, _I, _I), generate
