"""cholesky and triangular-solve: kernels for small matrices, else rows that call LAPACK.

LAPACK sees a row-major matrix as its transpose. So triangles and sides are swapped in the calls, and nothing is
transposed in memory.
"""

from __future__ import annotations

import math

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.linalg import TransposeKind
from ..linalg.algorithms import small_linalg
from .fourier import add_fft
from .lapack import Batch
from .lapack_targets import add_trsm
from .table import LoweringContext, register


def add_small(context: LoweringContext, instruction: HloInstruction) -> bool:
    """Adds the kernel of a factorisation of small matrices, if there is one."""
    kernel = small_linalg(instruction)
    if kernel is not None:
        context.kernel(instruction.name, kernel, context.operands(instruction), context.results(instruction))
    return kernel is not None


@register(Opcode.CHOLESKY, how="a kernel for small matrices, else LAPACK potrf")
def _cholesky(context: LoweringContext, instruction: HloInstruction) -> None:
    """potrf, in place, on a copy of the triangle. A^T = conj(A) = U^H U gives A = U^T (U^T)^H."""
    if add_small(context, instruction) or not instruction.shape.num_elements:
        return
    lower, shape = instruction.attributes.lower, instruction.shape
    n = shape.dimensions[-1]
    batch = Batch(context, instruction.name, shape.element, math.prod(shape.dimensions[:-2]))
    x, out = (batch.at(place, None, n, n) for place in (*context.operands(instruction), *context.results(instruction)))
    info = batch.scratch(ElementType.S32)
    batch.kernel("triangle", _TRIANGLE[lower], {"x": x, "out": out}, {"n": n}, 0.5 * n * n)
    batch.call("potrf", ("U" if lower else "L", n, out, n, info))
    batch.kernel("checked", _CHECKED, {"out": out, "info": info}, {"n": n}, 1.0 * n)


def _triangle(lower: bool) -> list[str]:
    kept, zero = ("0, i + 1", "i + 1, n") if lower else ("i, n", "0, i")
    place = "b * n * n + i * n + j"
    return [
        "for i in range(n):",
        f"    for j in range({kept}):", f"        out[{place}] = x[{place}]",
        f"    for j in range({zero}):", f"        out[{place}] = T(R(0))",
    ]  # fmt: skip


_TRIANGLE = {lower: _triangle(lower) for lower in (False, True)}
_CHECKED = """\
bad = int64(info[b])
for i in range(n):
    item = out[b * n * n + i * n + i]
    if not real(item) > R(0):
        bad = 1
if bad != 0:
    for i in range(n * n):
        out[b * n * n + i] = T(R(0) / R(0))
""".splitlines()
"""LAPACK reports a pivot that is not positive, but not NaN."""

_TRANS = {TransposeKind.NO_TRANSPOSE: "N", TransposeKind.TRANSPOSE: "T", TransposeKind.ADJOINT: "C"}


@register(Opcode.TRIANGULAR_SOLVE, how="a kernel for small matrices, else BLAS trsm")
def _triangular_solve(context: LoweringContext, instruction: HloInstruction) -> None:
    if add_small(context, instruction) or not instruction.shape.num_elements:
        return
    attributes, shape = instruction.attributes, instruction.shape
    n, (rows, columns) = instruction.operands[0].shape.dimensions[-1], shape.dimensions[-2:]
    batch = Batch(context, instruction.name, shape.element, math.prod(shape.dimensions[:-2]))
    (a, b), (out,) = context.operands(instruction), context.results(instruction)
    arrays = (batch.at(a, None, n, n), batch.at(b, None, rows, columns), batch.at(out, None, rows, columns))
    trans = _TRANS[attributes.transpose_a]
    add_trsm(batch, *arrays, attributes.left_side, attributes.lower, trans, attributes.unit_diagonal)


register(Opcode.FFT, how="kernels")(add_fft)
