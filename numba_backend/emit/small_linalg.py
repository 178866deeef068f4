"""Which factorisations and triangular solves are kernels of this backend: those of small matrices.

A call of LAPACK costs microseconds: its row calls Python, and LAPACK wants copies of the matrices. The kernels of
`factorize.py` take some 100 ns for an 8 x 8 matrix, and about half of LAPACK's time for 32 x 32; from 64 x 64 on LAPACK
is faster, which works in blocks. Of many matrices, those of `lanes.py` factorise as many at once as a vector holds.
Whole systems, of which nobody keeps the factors, are in `systems.py`, eigenvalues of many symmetric matrices in
`symmetric.py`.
Native loops hold these kernels too; whatever is not one keeps a loop in rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from ...hlo.custom_call_targets.call import Call
from ...hlo.custom_call_targets.table import BUILT_IN
from ...hlo.custom_calls import call_of, is_built_in
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.linalg import TransposeKind, TriangularSolveAttributes
from .factorize import (
    MOST_LOCAL_BYTES,
    emit_cholesky,
    emit_lu,
    emit_qr,
    emit_reflections,
    emit_triangular_solve,
    local_bytes,
)
from .kernel import EmittedKernel
from .lanes import LANES, cholesky_lanes, fits_lanes, lu_lanes, qr_lanes, reflections_lanes
from .symmetric import fits_symmetric, symmetric_lanes
from .systems import emit_determinant, emit_inverse, emit_lu_solve, emit_solve, triangular_lanes

MOST_ROWS = 32
"""The largest matrix that has a kernel: see above."""

_TYPES = frozenset((ElementType.F32, ElementType.F64, ElementType.C64, ElementType.C128))


def small_linalg(instruction: HloInstruction) -> EmittedKernel | None:
    """The kernel of a cholesky, a triangular-solve or a custom call of one of LAPACK's routines; None if it has none:
    large or empty matrices, other routines, functions that a user has registered."""
    opcode, shape = instruction.opcode, instruction.shape
    if opcode is Opcode.CHOLESKY:
        n = shape.dimensions[-1]
        if shape.element not in _TYPES or not _fits(shape.element, shape.num_elements, (n, n)):
            return None
        return _cholesky(shape.element, math.prod(shape.dimensions[:-2]), n, instruction.attributes.lower, False)
    if opcode is Opcode.TRIANGULAR_SOLVE:
        rows, columns = shape.dimensions[-2:]
        count = math.prod(shape.dimensions[:-2])
        return _solve(shape.element, count, rows, columns, instruction.attributes)
    if opcode is Opcode.CUSTOM_CALL and is_built_in(instruction.attributes.custom_call_target):
        built_in = BUILT_IN[instruction.attributes.custom_call_target]
        kernel_of = _TARGETS.get(built_in.function)
        if kernel_of is not None:
            return kernel_of(
                built_in.typed(call_of(instruction.attributes, [o.shape for o in instruction.operands], shape))
            )
    return None


def has_small_kernel(instruction: HloInstruction) -> bool:
    """Whether an instruction has a kernel here."""
    return small_linalg(instruction) is not None


def _fits(element_type: ElementType, elements: int, *arrays: tuple[int, int]) -> bool:
    """True for matrices that are small and not empty. `arrays`: the rows and columns of the kernel's local arrays."""
    if not elements or element_type not in _TYPES or any(rows > MOST_ROWS for rows, _ in arrays):
        return False
    return local_bytes(element_type, *arrays) <= MOST_LOCAL_BYTES


def _solve(
    element_type: ElementType, count: int, rows: int, columns: int, attributes: TriangularSolveAttributes
) -> EmittedKernel | None:
    n = rows if attributes.left_side else columns
    if n > MOST_ROWS or not _fits(element_type, count * rows * columns, (rows, columns)):
        return None
    by_rows = attributes.left_side and columns >= LANES.get(element_type, 1)  # whole vectors of each row
    if not by_rows and fits_lanes(element_type, count, n * n, rows * columns):
        return triangular_lanes(element_type, count, rows, columns, attributes)
    return emit_triangular_solve(element_type, count, rows, columns, attributes)


def _cholesky(element_type: ElementType, count: int, n: int, lower: bool, with_info: bool) -> EmittedKernel:
    if fits_lanes(element_type, count, n * n):
        return cholesky_lanes(element_type, count, n, lower, with_info)
    return emit_cholesky(element_type, count, n, lower, with_info)


def _potrf(call: Call) -> EmittedKernel | None:
    n, count = call.sizes["n"], math.prod(call.batch)
    if not _fits(call.element_type, count * n, (n, n)):
        return None
    return _cholesky(call.element_type, count, n, call.letter("uplo", "LU") == "L", True)


def _getrf(call: Call) -> EmittedKernel | None:
    m, n, count = call.sizes["m"], call.sizes["n"], math.prod(call.batch)
    if not _fits(call.element_type, count * m * n, (m, n), (m, min(m, n))):
        return None
    if fits_lanes(call.element_type, count, m * n):
        return lu_lanes(call.element_type, count, m, n)
    return emit_lu(call.element_type, count, m, n)


def _lu_decomposition(call: Call) -> EmittedKernel | None:
    m, n, count = call.sizes["m"], call.sizes["n"], math.prod(call.batch)
    if not _fits(call.element_type, count * m * n, (m, n), (m, min(m, n))):
        return None
    if fits_lanes(call.element_type, count, m * n):
        return lu_lanes(call.element_type, count, m, n, order=True)
    return emit_lu(call.element_type, count, m, n, order=True)


def _lu_solve(call: Call) -> EmittedKernel | None:
    n, columns, count = call.sizes["n"], call.sizes["b"], math.prod(call.batch)
    if not _fits(call.element_type, count * n * columns, (n, n), (n, columns)):
        return None
    return emit_lu_solve(call.element_type, count, n, columns, call.integer("trans"))


def _whole_solve(call: Call) -> EmittedKernel | None:
    n, columns, count = call.sizes["n"], call.sizes["b"], math.prod(call.batch)
    if not _fits(call.element_type, count * n * columns, (n, n), (n, columns)):
        return None
    return emit_solve(call.element_type, count, n, columns)


def _inverse(call: Call) -> EmittedKernel | None:
    n, count = call.sizes["n"], math.prod(call.batch)
    if not _fits(call.element_type, count * n, (n, n), (n, n)):
        return None
    return emit_inverse(call.element_type, count, n)


def _determinant(call: Call) -> EmittedKernel | None:
    n, count = call.sizes["n"], math.prod(call.batch)
    if not _fits(call.element_type, count * n, (n, n)):
        return None
    return emit_determinant(call.element_type, count, n)


def _geqrf(call: Call) -> EmittedKernel | None:
    m, n, count = call.sizes["m"], call.sizes["n"], math.prod(call.batch)
    if call.element_type.is_complex or not _fits(call.element_type, count * m * n, (m, n), (m, min(m, n))):
        return None
    if fits_lanes(call.element_type, count, m * n):
        return qr_lanes(call.element_type, count, m, n)
    return emit_qr(call.element_type, count, m, n)


def _orgqr(call: Call) -> EmittedKernel | None:
    m, n, p, count = *(call.sizes[name] for name in "mnp"), math.prod(call.batch)
    if call.element_type.is_complex or not p <= n <= m:
        return None
    if not p or not _fits(call.element_type, count * m * n, (m, n), (m, p)):
        return None
    if fits_lanes(call.element_type, count, m * n):
        return reflections_lanes(call.element_type, count, m, n, p)
    return emit_reflections(call.element_type, count, m, n, p)


def _syevd(call: Call) -> EmittedKernel | None:
    vectors, lower = call.letter("mode", "VN") == "V", call.letter("uplo", "LU") == "L"
    return _symmetric(call, lower, vectors, True)


def _eigh(call: Call) -> EmittedKernel | None:
    lower = str(call.config.get("backend_config", "1")).split(",")[0].strip()
    return _symmetric(call, lower == "1", True, False)


def _symmetric(call: Call, lower: bool, vectors: bool, with_info: bool) -> EmittedKernel | None:
    n, count = call.sizes["n"], math.prod(call.batch)
    if call.element_type.is_complex or not fits_symmetric(call.element_type, count, n):
        return None
    return symmetric_lanes(call.element_type, count, n, lower, vectors, with_info)


_TRANS = {"N": TransposeKind.NO_TRANSPOSE, "T": TransposeKind.TRANSPOSE, "C": TransposeKind.ADJOINT}


def _trsm(call: Call) -> EmittedKernel | None:
    m, n, count = call.sizes["m"], call.sizes["n"], math.prod(call.batch)
    left = call.letter("side", "LR") == "L"
    if call.sizes["a"] != (m if left else n):
        return None
    unit, trans = call.letter("diag", "NU") == "U", _TRANS[call.letter("trans_x", "NTC")]
    attributes = TriangularSolveAttributes(left, call.letter("uplo", "LU") == "L", unit, trans)
    return _solve(call.element_type, count, m, n, attributes)


_TARGETS: Mapping[str, Callable[[Call], EmittedKernel | None]] = {
    "potrf": _potrf, "getrf": _getrf, "lu_decomposition": _lu_decomposition, "lu_solve": _lu_solve,
    "solve": _whole_solve, "inverse": _inverse, "determinant": _determinant, "trsm": _trsm, "geqrf": _geqrf,
    "qr": _geqrf, "orgqr": _orgqr, "householder_product": _orgqr,
    "syevd": _syevd, "eigh": _eigh,
}  # fmt: skip
"""By the function of the built-in target."""
