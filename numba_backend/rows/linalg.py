"""cholesky, triangular-solve and fft: kernels for small matrices, else rows that call LAPACK and SciPy's FFT.

LAPACK sees a row-major matrix as its transpose. So triangles and sides are swapped in the calls, and nothing is
transposed in memory.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from ...hlo.custom_call_targets.library import each, use_loop
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.linalg import TransposeKind
from ..emit.small_linalg import small_linalg
from ..runtime.lapack import loop_natively
from ..runtime.threads import get_num_threads
from .host import NDArray, host_row
from .table import RowContext, register

use_loop(loop_natively)


def add_small(context: RowContext, instruction: HloInstruction) -> bool:
    """Adds the kernel of a factorisation of small matrices, if there is one."""
    kernel = small_linalg(instruction)
    if kernel is not None:
        context.kernel(instruction.name, kernel, context.operands(instruction), context.results(instruction))
    return kernel is not None


def _flat(array: NDArray) -> NDArray:
    """The matrices of a batch along one dimension; the same memory."""
    count = math.prod(array.shape[:-2])
    return array.reshape(count, *array.shape[-2:])


@register(Opcode.CHOLESKY, how="a kernel for small matrices, else LAPACK potrf")
def _cholesky(context: RowContext, instruction: HloInstruction) -> None:
    """potrf, in place, on a copy of the triangle. A^T = conj(A) = U^H U gives A = U^T (U^T)^H."""
    if add_small(context, instruction):
        return
    lower, element_type = instruction.attributes.lower, instruction.shape.element
    n = instruction.shape.dimensions[-1]

    def function(inputs: Sequence[NDArray], outputs: Sequence[NDArray]) -> None:
        if not outputs[0].size:
            return
        a, factor = _flat(inputs[0]), _flat(outputs[0])
        factor[...] = np.tril(a) if lower else np.triu(a)
        info = np.zeros(len(factor), np.int32)
        each("potrf", element_type, len(factor), "U" if lower else "L", n, factor, n, info)
        # LAPACK reports a pivot that is not positive, but not NaN.
        diagonal = np.diagonal(factor, axis1=1, axis2=2).real
        factor[(info != 0) | ~(diagonal > 0).all(1)] = np.nan

    host_row(context, instruction, function)


_TRANS = {TransposeKind.NO_TRANSPOSE: "N", TransposeKind.TRANSPOSE: "T", TransposeKind.ADJOINT: "C"}


@register(Opcode.TRIANGULAR_SOLVE, how="a kernel for small matrices, else BLAS trsm")
def _triangular_solve(context: RowContext, instruction: HloInstruction) -> None:
    """trsm, in place, on a copy of b: op(a) x = b is x^T op(a^T) = b^T."""
    if add_small(context, instruction):
        return
    attributes, element_type = instruction.attributes, instruction.shape.element
    side, uplo = "R" if attributes.left_side else "L", "U" if attributes.lower else "L"
    trans, diag = _TRANS[attributes.transpose_a], "U" if attributes.unit_diagonal else "N"
    n, (rows, columns) = instruction.operands[0].shape.dimensions[-1], instruction.shape.dimensions[-2:]

    def function(inputs: Sequence[NDArray], outputs: Sequence[NDArray]) -> None:
        outputs[0][...] = inputs[1]
        if outputs[0].size:
            a, x = _flat(inputs[0]), _flat(outputs[0])
            sizes = (columns, rows, 1.0, a, n, x, columns)
            each("trsm", element_type, len(x), side, uplo, trans, diag, *sizes)

    host_row(context, instruction, function)


@register(Opcode.FFT, how="SciPy's pocketfft")
def _fft(context: RowContext, instruction: HloInstruction) -> None:
    """SciPy's pocketfft; it computes in the operand's precision and splits batches over threads."""
    try:
        from scipy import fft
    except ImportError as error:
        raise UnsupportedError("fft needs SciPy: install scipy") from error
    attributes, shape = instruction.attributes, instruction.shape
    lengths = attributes.fft_length
    work = shape.num_elements * math.log2(max(2, math.prod(lengths)))
    name = attributes.fft_type.value.lower()
    if len(lengths) == 1:  # for one axis SciPy has functions with less overhead
        transform = functools.partial(getattr(fft, name), n=lengths[0])
    else:
        axes = tuple(range(shape.rank - len(lengths), shape.rank))
        transform = functools.partial(getattr(fft, name + "n"), s=lengths, axes=axes)

    def function(inputs: Sequence[NDArray], outputs: Sequence[NDArray]) -> None:
        if outputs[0].size:
            threads = get_num_threads() if work >= _SPLIT_WORK else 1
            outputs[0][...] = transform(inputs[0], workers=threads)

    host_row(context, instruction, function)


_SPLIT_WORK = 1 << 18
"""The n log n of a transform from which threads pay, because SciPy starts them anew for each call."""
