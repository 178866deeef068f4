"""Find the algorithm of an instruction, and say whether this process has a kernel for it, as it has for small matrices.

A call of LAPACK costs microseconds: its row calls Python, and LAPACK wants copies of the matrices. These kernels take
some 100 ns for an 8 x 8 matrix, and about half of LAPACK's time for 32 x 32; from 64 x 64 on LAPACK is faster, since it
works in blocks. Many matrices are factorised several at once, as many as a vector holds. Native loops hold these
kernels too; a loop with any other linear algebra stays in rows. Programs that leave the process have the same
algorithms for any size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from ...hlo.custom_call_targets.call import Call
from ...hlo.custom_call_targets.table import BUILT_IN
from ...hlo.custom_calls import call_of, is_built_in
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.linalg import TransposeKind
from ..emit.texts import LANES
from ..emitted_kernel import EmittedKernel
from . import factorize, jacobi, solve
from .forms import Algorithm, Matrix, Vector, fits_lanes, work_of

_TYPES = frozenset((ElementType.F32, ElementType.F64, ElementType.C64, ElementType.C128))
_S32 = ElementType.S32


def small_linalg(instruction: HloInstruction) -> EmittedKernel | None:
    """The kernel of a cholesky, a triangular-solve or a custom call of one of LAPACK's routines; None if it has none:
    large or empty matrices, other routines, functions that a user has registered."""
    algorithm = algorithm_of(instruction)
    return None if algorithm is None else algorithm.of_small()


def has_small_kernel(instruction: HloInstruction) -> bool:
    """Whether an instruction has a kernel here."""
    return small_linalg(instruction) is not None


def algorithm_of(instruction: HloInstruction) -> Algorithm | None:
    """The algorithm of an instruction, if this folder has it in all forms."""
    opcode, shape, attributes = instruction.opcode, instruction.shape, instruction.attributes
    if opcode is Opcode.CHOLESKY:
        count, n = math.prod(shape.dimensions[:-2]), shape.dimensions[-1]
        return _cholesky(shape.element, count, n, attributes.lower, False)
    if opcode is Opcode.TRIANGULAR_SOLVE:
        (*batch, rows, columns), a = shape.dimensions, attributes
        how = a.left_side, a.lower, a.unit_diagonal, a.transpose_a
        return _triangular(shape.element, math.prod(batch), rows, columns, *how)
    if opcode is Opcode.CUSTOM_CALL and is_built_in(attributes.custom_call_target):
        built_in = BUILT_IN[attributes.custom_call_target]
        found = _TARGETS.get(built_in.function)
        if found is not None:
            return found(built_in.typed(call_of(attributes, [o.shape for o in instruction.operands], shape)))
    return None


def _cholesky(element_type: ElementType, count: int, n: int, lower: bool, with_info: bool) -> Algorithm | None:
    if element_type not in _TYPES:
        return None
    return Algorithm(
        "cholesky", factorize.cholesky(with_info), element_type, count, {"n": n},
        (Matrix("w", "n", "n", "x", "out", transposed=lower, conjugated=lower),),
        (Vector("info", "1", _S32),) if with_info else (),
        {"x": (0, None), "out": (None, 0)} | ({"info": (None, 1)} if with_info else {}),
        work_of(element_type, n, n, n) + 8.0 * n, 2.0 * n * n + 0.06 * n**3, whole_rows=not with_info,
    )  # fmt: skip


def _potrf(call: Call) -> Algorithm | None:
    return _cholesky(call.element_type, math.prod(call.batch), call.sizes["n"], call.letter("uplo", "LU") == "L", True)


def _triangular(
    element_type: ElementType, count: int, rows: int, columns: int, left: bool, lower: bool, unit: bool,
    transpose: TransposeKind,
) -> Algorithm | None:  # fmt: skip
    if element_type not in _TYPES:
        return None
    trans, m, r = transpose is not TransposeKind.NO_TRANSPOSE, *((rows, columns) if left else (columns, rows))
    text = solve.triangular_solve(left, (lower != trans) == left, unit, transpose is TransposeKind.ADJOINT)
    v = Matrix("v", "m", "r", "y", "out") if left else Matrix("v", "r", "m", "y", "out")
    return Algorithm(
        "triangular_solve", text, element_type, count, {"m": m, "r": r},
        (Matrix("a", "m", "m", "x", transposed=trans), v), (),
        {"x": (0, None), "y": (1, None), "out": (None, 0)},
        0.5 * work_of(element_type, m, m, r) + 4.0 * m, _of_many(element_type, m, r) / 2,
        has_long_rows=left and r >= LANES.get(element_type, 1),
    )  # fmt: skip


_TRANS = {"N": TransposeKind.NO_TRANSPOSE, "T": TransposeKind.TRANSPOSE, "C": TransposeKind.ADJOINT}


def _trsm(call: Call) -> Algorithm | None:
    left, lower, unit = call.letter("side", "LR") == "L", call.letter("uplo", "LU") == "L", call.letter("diag", "NU")
    m, n = call.sizes["m"], call.sizes["n"]
    if call.sizes["a"] != (m if left else n):
        call.fail("the sizes of a and b do not fit")
    trans = _TRANS[call.letter("trans_x", "NTC")]
    return _triangular(call.element_type, math.prod(call.batch), m, n, left, lower, unit == "U", trans)


def _of_many(element_type: ElementType, n: int, columns: int) -> float:
    """Nanoseconds of a system of n equations with `columns` right-hand sides, one among many."""
    return (0.1 * n * n * (n + 3 * columns) + 0.5 * n * (n + columns)) * (element_type.byte_width / 4)


def _lu(call: Call) -> Algorithm:
    kind, m, n, with_order = call.element_type, call.sizes["m"], call.sizes["n"], call.target == "LuDecomposition"
    steps, last = min(m, n), Vector("order", "m", _S32) if with_order else Vector("info", "1", _S32)
    return Algorithm(
        "lu", factorize.lu(with_order), kind, math.prod(call.batch), {"m": m, "n": n},
        (Matrix("w", "m", "n", "x", "out"),), (Vector("pivots", "minimum(m, n)", _S32), last),
        {"x": (0, None), "out": (None, 0), "pivots": (None, 1), last.name: (None, 2)},
        work_of(kind, m, n, steps) + 20.0 * steps, 2.0 * m * n + 0.2 * m * n * steps,
    )  # fmt: skip


_WORK = Matrix("w", "n", "n", "x", is_work=True)
"""The matrix of a system, which is worked on and not stored."""
_UNKNOWNS = Matrix("v", "n", "r", "y", "out")


def _system(call: Call, text: factorize.Lines, matrices: tuple[Matrix, ...], roles: Mapping[str, int]) -> Algorithm:
    """`roles`: of operands; output 0 is the result."""
    kind, n = call.element_type, call.sizes["n"]
    columns = call.sizes.get("b", n)
    return Algorithm(
        BUILT_IN[call.target].function, text, kind, math.prod(call.batch), {"m": n, "n": n, "r": columns}, matrices, (),
        {key: (number, None) for key, number in roles.items()} | {"out": (None, 0)},
        work_of(kind, n, n, n) + work_of(kind, n, n, columns) + 5.0 * n, _of_many(kind, n, columns),
        whole_rows=True,
    )  # fmt: skip


def _solve(call: Call) -> Algorithm:
    return _system(call, solve.solve(), (_WORK, _UNKNOWNS), {"x": 0, "y": 1})


def _inverse(call: Call) -> Algorithm:
    return _system(call, solve.inverse(), (_WORK, Matrix("v", "n", "r", "", "out")), {"x": 0})


def _lu_solve(call: Call) -> Algorithm:
    trans = call.integer("trans")
    factors = Matrix("a", "n", "n", "x", transposed=trans > 0)
    unknowns = replace(_UNKNOWNS, source_order="" if trans else "order", target_order="order" if trans else "")
    return _system(call, solve.lu_solve(trans), (factors, unknowns), {"x": 1, "order": 2, "y": 3})


def _determinant(call: Call) -> Algorithm:
    n, kind = call.sizes["n"], call.element_type
    return Algorithm(
        "determinant", factorize.determinant(), kind, math.prod(call.batch), {"m": n, "n": n}, (_WORK,),
        (Vector("value", "1", kind),), {"x": (0, None), "value": (None, 0)},
        work_of(kind, n, n, n) + 5.0 * n, _of_many(kind, n, 0), whole_rows=True,
    )  # fmt: skip


def _qr(call: Call) -> Algorithm:
    m, n, kind = call.sizes["m"], call.sizes["n"], call.element_type
    steps = min(m, n)
    return Algorithm(
        "qr", factorize.qr(), kind, math.prod(call.batch), {"m": m, "n": n}, (Matrix("w", "m", "n", "x", "out"),),
        (Vector("tau", "minimum(m, n)", kind),), {"x": (0, None), "out": (None, 0), "tau": (None, 1)},
        2.5 * work_of(kind, m, n, steps) + 70.0 * steps, 2.0 * m * n + 0.2 * m * n * steps,
    )  # fmt: skip


def _reflections(call: Call) -> Algorithm:
    m, n, p, kind = *(call.sizes[name] for name in "mnp"), call.element_type
    if not p <= n <= m:
        call.fail("there must be at most as many reflections as columns, and as many columns as rows")
    return Algorithm(
        "reflections", factorize.reflections(), kind, math.prod(call.batch), {"m": m, "n": n, "p": p},
        (Matrix("w", "m", "n", "x", "out"),), (Vector("tau", "p", kind, is_output=False),),
        {"x": (0, None), "tau": (1, None), "out": (None, 0)},
        2.0 * work_of(kind, m, n, p) + 10.0 * p, 3.0 * m * n + 0.2 * m * n * p,
    )  # fmt: skip


def symmetric_of(call: Call) -> tuple[int, bool, bool]:
    """Of a syevd or an `Eigh`: the size, whether the lower triangle is read, and whether eigenvectors are wanted."""
    if call.target == "Eigh":
        return call.sizes["n"], str(call.config.get("backend_config", "1")).split(",")[0].strip() == "1", True
    return call.sizes["n"], call.letter("uplo", "LU") == "L", call.letter("mode", "VN") == "V"


def _symmetric(call: Call) -> Algorithm | None:
    """Only of many matrices: of others another algorithm takes less work."""
    (n, lower, vectors), count, kind = symmetric_of(call), math.prod(call.batch), call.element_type
    if kind.is_complex or not 0 < n <= jacobi.LARGEST_SYMMETRIC or not fits_lanes(kind, count, n * n):
        return None
    with_info = call.target != "Eigh"
    w = Matrix("w", "n", "n", "x", "" if vectors else "out", is_work=vectors, transposed=lower)
    info = (Vector("info", "1", _S32),) if with_info else ()
    return Algorithm(
        "symmetric", jacobi.symmetric(vectors, with_info), kind, count, {"n": n},
        (w, Matrix("v", "n", "n", "", "out")) if vectors else (w,), (Vector("values", "n", kind), *info),
        {"x": (0, None), "out": (None, 0), "values": (None, 1), **({"info": (None, 2)} if with_info else {})},
        math.inf, (8.0 * n * n + (2.2 if vectors else 1.6) * n**3 * 0.6) * (kind.byte_width / 4),
    )  # fmt: skip


_TARGETS: Mapping[str, Callable[[Call], Algorithm | None]] = {
    "potrf": _potrf, "getrf": _lu, "lu_decomposition": _lu, "lu_solve": _lu_solve, "solve": _solve,
    "inverse": _inverse, "determinant": _determinant, "trsm": _trsm, "geqrf": _qr, "qr": _qr, "orgqr": _reflections,
    "householder_product": _reflections, "syevd": _symmetric, "eigh": _symmetric,
}  # fmt: skip
"""The rules, by the function of the built-in target."""
