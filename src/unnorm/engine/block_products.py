"""Products of a few dozen rows by a few hundred columns, compiled into the loop over rows that makes their factors.

Of 64 contexts with 40 columns by 225 functions, BLAS does 49 GFLOP/s on a processor whose AVX-512 it does not know, and
this 116; with four lanes 65 (benchmarks/products.py). 4 × 3 vectors of sums stay in registers while the rows pass by.
"""

from __future__ import annotations

# pyright: reportCallIssue=false
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic, register_jitable

from .._base.cached import inner

_VECTORS = 3  # beside each other; with four rows, twelve sums, their three factors and a multiplier: 16 registers


def _lanes() -> int:
    """Doubles in a vector: eight with AVX-512, else four. Numba tells what it keeps on disk by the same features: a
    process must never load code made for vectors of another length."""
    known: Any = config  # its names are set when it is read
    features = get_host_cpu_features() if known.CPU_FEATURES is None else known.CPU_FEATURES
    return 8 if "+avx512f" in features.split(",") else 4


_LANES = _lanes()
WIDTH = _VECTORS * _LANES  # columns at a time
MOST = _VECTORS * 8  # a multiple of WIDTH on any machine: for arrays that go to others
_DOUBLE, _WHOLE, _INDEX = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_VECTOR = ir.VectorType(_DOUBLE, _LANES)


def _vector(context: Any, builder: Any, kind: Any, array: Any, offset: Any) -> Any:
    """Where so many doubles of an array begin."""
    data = builder.extract_value(array, context.data_model_manager[kind].get_field_position("data"))
    return builder.bitcast(builder.gep(data, [offset]), _VECTOR.as_pointer())


def _splat(builder: Any, pointer: Any) -> Any:
    """One double in every lane."""
    scalar = builder.load(builder.bitcast(pointer, _DOUBLE.as_pointer()), align=8)
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(
        one, ir.Constant(_VECTOR, ir.Undefined), ir.Constant(ir.VectorType(_INDEX, _LANES), [0] * _LANES)
    )


def _sums(rows: int) -> Any:
    """The intrinsic that adds to `rows` × WIDTH sums."""
    cells = [(i, j) for i in range(rows) for j in range(_VECTORS)]

    # long: places and steps in three arrays
    @intrinsic
    def sums(typing, out, q, size, a, at, across, along, b, start, step, n):
        """out[q + i size + j] += Σ_{k<n} a[at + i across + k along] b[start + k step + j]."""

        def generate(context, builder, signature, args):
            out_, q_, size_, a_, at_, across_, along_, b_, start_, step_, n_ = args

            def place(position, array, offset, i, by, j=0):
                shift = builder.add(builder.mul(ir.Constant(_WHOLE, i), by), ir.Constant(_WHOLE, j * _LANES))
                return _vector(context, builder, signature.args[position], array, builder.add(offset, shift))

            places = {(i, j): place(0, out_, q_, i, size_, j) for i, j in cells}
            totals = {cell: cgutils.alloca_once_value(builder, builder.load(places[cell], align=8)) for cell in cells}
            with cgutils.for_range(builder, n_) as loop:
                row = builder.add(start_, builder.mul(loop.index, step_))
                left = builder.add(at_, builder.mul(loop.index, along_))
                rights = [builder.load(place(7, b_, row, 0, step_, j), align=8) for j in range(_VECTORS)]
                for i in range(rows):
                    factor = _splat(builder, place(3, a_, left, i, across_))
                    for j in range(_VECTORS):
                        part = builder.fmul(factor, rights[j], flags=("contract",))
                        more = builder.fadd(part, builder.load(totals[i, j]), flags=("contract",))
                        builder.store(more, totals[i, j])
            for cell in cells:
                builder.store(builder.load(totals[cell]), places[cell], align=8)
            return context.get_dummy_value()

        whole = types.intp
        return types.void(out, whole, whole, a, whole, whole, whole, b, whole, whole, whole), generate

    return sums


_four_rows, _one_row = _sums(4), _sums(1)


# long: places and steps in three arrays
@inner(error_model="numpy")
def add_products(out, rows, columns, a, at, across, along, b, start, step, n):
    """out[i, j] += Σ_{k<n} a[at + i across + k along] b[start + k step + j] for i < rows and j < columns, which are
    rounded up to a multiple of WIDTH: `out` and b have room for them."""
    size, fours = out.shape[1], rows - rows % 4
    for j in range(0, columns, WIDTH):
        for i in range(0, fours, 4):
            _four_rows(out, i * size + j, size, a, at + i * across, across, along, b, start + j, step, n)
        for i in range(fours, rows):
            _one_row(out, i * size + j, size, a, at + i * across, across, along, b, start + j, step, n)


@register_jitable
def padded(columns: int) -> int:
    """Room for so many columns."""
    return (columns + WIDTH - 1) // WIDTH * WIDTH
