"""Linear algebra as rows of a standalone program: kernels in place of calls of LAPACK, for any size.

Small matrices have the kernels that they have in this process (`linalg/algorithms.py`). For others, and for routines
that have none, a kernel takes one matrix of the batch after the other, with scratch memory for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ...hlo.builder import make_instruction
from ...hlo.custom_call_targets.call import Call
from ...hlo.custom_call_targets.ordering import topk_attributes
from ...hlo.custom_call_targets.table import BUILT_IN, UNAVAILABLE
from ...hlo.custom_calls import call_of, is_built_in
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emit.texts import Text, View, source_of
from ..emit.topk import emit_topk
from ..linalg import factorize, more_solves, schur, spectral
from ..linalg.algorithms import algorithm_of
from ..loops.inward import Inward
from ..lowering_rules.linalg import add_small
from ..lowering_rules.table import LoweringContext
from ..runtime.program import Argument, LoweringRefused, size

_S32 = ElementType.S32
_WIDE = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}


class Routine:
    """A text as a row of a program: the buffers of the instruction, and scratch memory for one matrix."""

    def __init__(self, context: LoweringContext, element_type: ElementType, count: int) -> None:
        self._context, self._element_type, self._count = context, element_type, count
        self._buffers: dict[str, tuple[Argument, ElementType]] = {}

    def given(self, places: Sequence[Argument], names: str, types: str = "") -> None:
        """The buffers of `places` by name. `types`: a letter each: T, R, C (complex), i (s32); all T by default."""
        by_letter = {
            "T": self._element_type, "R": self._element_type.real, "i": _S32,
            "C": _WIDE.get(self._element_type.real, self._element_type),
        }  # fmt: skip
        for place, name, letter in zip(places, names.split(), types or "T" * len(places), strict=True):
            self._buffers[name] = place, by_letter[letter]

    def buffer(self, name: str, place: Argument, element_type: ElementType) -> None:
        """A buffer of any type."""
        self._buffers[name] = place, element_type

    def work(self, names: str, count: int, letter: str = "T") -> None:
        """Scratch memory of `count` elements for each name."""
        for name in names.split():
            kind = {"T": self._element_type, "R": self._element_type.real}.get(letter) or _WIDE[self._element_type.real]
            self._buffers[name] = self._context.scratch(kind, count), kind

    def add(self, name: str, lines: Sequence[str], views: Sequence[View] = (), **sizes: int) -> None:
        """The row. A buffer and a size that the text does not use are not among the kernel's parameters."""
        pointers = tuple((key, kind) for key, (_, kind) in self._buffers.items())
        steps = (Inward("j", arrays=(("dot", "sums"),)),) if views else ()
        text = Text(name, tuple(lines), self._element_type, pointers, tuple(sizes), tuple(views), (), steps)
        self.add_text(text, sizes)

    def add_text(self, text: Text, sizes: Mapping[str, int]) -> None:
        """Add the row that runs a text on the buffers."""
        kernel, pointers, numbers = source_of(text)
        arguments = [*[self._buffers[key][0] for key in pointers], *[size(sizes[key]) for key in numbers]]
        self._context.builder.kernel(kernel, arguments, self._count)


def _in_batch(name: str, rows: str, columns: str, array: str = "") -> View:
    """A matrix of the batch."""
    return View(name, array or name, f"b * {rows} * {columns} + I * {columns} + J")


def _of_batch(name: str, length: str) -> View:
    """Numbers of each matrix of the batch."""
    return View(name, name, f"b * {length} + I")


def add_linalg(context: LoweringContext, instruction: HloInstruction) -> bool:
    """Adds the rows of an algorithm that is written for all sizes; False if the instruction has none."""
    if add_small(context, instruction):
        return True
    algorithm = algorithm_of(instruction)
    if algorithm is None or math.isinf(algorithm.one):
        return False
    text, scratch, copies = algorithm.of_any_size()
    operands, results = context.operands(instruction), context.results(instruction)
    places: dict[str, Argument] = {}
    for key, (operand, output) in algorithm.roles.items():
        places[key] = operands[operand] if operand is not None else results[output or 0]
    leaves = [*instruction.shape.leaves()]
    for target, source in copies.items():
        context.builder.copy(places[target], places[source], leaves[algorithm.roles[target][1] or 0].byte_size)
    routine = Routine(context, algorithm.element_type, algorithm.count)
    for key, kind in algorithm.pointers():
        routine.buffer(key, places[key], kind)
    for key, count in scratch.items():
        routine.work(key, count)
    routine.add_text(text, algorithm.sizes)
    return True


def add_required(context: LoweringContext, instruction: HloInstruction) -> None:
    """cholesky, triangular-solve"""
    if not add_linalg(context, instruction):
        raise LoweringRefused(f"it has no kernel for {instruction.shape}")


def add_custom_call(context: LoweringContext, instruction: HloInstruction) -> None:
    """A custom call of a target that hloom has itself. Functions that a user has registered are refused."""
    if add_linalg(context, instruction):
        return
    attributes = instruction.attributes
    call = call_of(attributes, [o.shape for o in instruction.operands], instruction.shape)
    if call.function is not None:
        raise LoweringRefused(f"{call.target!r} calls a function of Python, which does not leave this process")
    if not is_built_in(call.target):
        why = UNAVAILABLE.get(call.target, "it is no target of hloom's own, and others do not leave this process")
        raise LoweringRefused(f"{call.target!r}: {why}")
    built_in = BUILT_IN[call.target]
    if built_in.function == "trace":
        raise LoweringRefused("it writes to Python's log")
    _TARGETS[built_in.function](context, instruction, built_in.typed(call))


def _places(context: LoweringContext, instruction: HloInstruction) -> list[Argument]:
    return [*context.operands(instruction), *context.results(instruction)]


def _routine(context: LoweringContext, call: Call) -> Routine:
    return Routine(context, call.element_type, math.prod(call.batch))


def _geqp3(context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
    m, n = call.sizes["m"], call.sizes["n"]
    routine = _routine(context, call)
    places = _places(context, instruction)
    context.builder.copy(places[2], places[0], instruction.shape.elements[0].byte_size)
    routine.given(places, "x chosen_first out pivots tau", "TiTiT")
    routine.work("sums", n)
    routine.work("norms first_norms", n, "R")
    views = [_in_batch("w", "m", "n", "out"), *(_of_batch(name, "n") for name in ("chosen_first", "pivots"))]
    views.append(_of_batch("tau", "minimum(m, n)"))
    routine.add("qr_with_pivots", factorize.qr_with_pivots(), views, m=m, n=n)


def _ormqr(context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
    left, adjoint = call.flag("left"), call.flag("transpose")
    rows, columns, p, m, n = (call.sizes[name] for name in "rcpmn")
    if rows != (m if left else n) or p > rows or columns < p:
        call.fail("the reflections must be as long as c has rows (columns, from the right), and be columns of a")
    routine = _routine(context, call)
    places = _places(context, instruction)
    context.builder.copy(places[3], places[2], instruction.shape.byte_size)
    routine.given(places, "x tau y out")
    routine.work("sums v", n)
    views = [_in_batch("w", "m", "n", "out"), _in_batch("q", "rows", "columns", "x"), _of_batch("tau", "p")]
    text = factorize.times_reflections(left, adjoint)
    routine.add("times_reflections", text, views, m=m, n=n, p=p, rows=rows, columns=columns)


def _gtsv(context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
    routine = _routine(context, call)
    routine.given(_places(context, instruction), "dl d du y new_dl new_d new_du out info", "TTTTTTTTi")
    routine.add("tridiagonal_solve", more_solves.tridiagonal_solve(), n=call.sizes["n"], m=call.sizes["b"])


def _perturbed(context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
    n, m = call.sizes["n"], call.sizes["b"]
    if not n or not m:
        return
    routine = _routine(context, call)
    routine.given(_places(context, instruction), "dl d du y out")
    routine.work("first second third", n)
    routine.add("perturbed_tridiagonal", more_solves.perturbed_tridiagonal(), n=n, m=m)


def _syevd(context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
    n = call.sizes["n"]
    if call.target == "Eigh":
        text = str(call.config.get("backend_config", "1")).split(",")[0].strip()
        if text not in ("0", "1"):
            call.fail(f"its backend_config must begin with 0 or 1, not {text!r}")
        vectors, lower, info = True, text == "1", False
    else:
        vectors, lower, info = call.letter("mode", "VN") == "V", call.letter("uplo", "LU") == "L", True
    routine = _routine(context, call)
    routine.given(_places(context, instruction), f"x out values{' info' if info else ''}", f"TTR{'i' if info else ''}")
    _tridiagonal_work(routine, n)
    routine.add("symmetric_eigen", spectral.symmetric_eigen(lower, vectors, info), n=n)


def _tridiagonal_work(routine: Routine, n: int) -> None:
    routine.work("w v", n * n)
    routine.work("t sums p q", n)
    routine.work("d e", n, "R")


def _sytrd(context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
    n = call.sizes["n"]
    routine = _routine(context, call)
    routine.given(_places(context, instruction), "x out d_out e_out tau info", "TTRRTi")
    _tridiagonal_work(routine, n)
    routine.add("tridiagonal", spectral.reduced_to_tridiagonal(call.letter("uplo", "LU") == "L"), n=n)


def _gehrd(context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
    n, low, high = call.sizes["n"], call.integer("low"), call.integer("high")
    if not (1 <= low <= max(n, 1) and min(low, n) <= high <= n):
        call.fail(f"its backend_config must have 1 <= low <= high <= {n}, not {low} and {high}")
    routine = _routine(context, call)
    routine.given(_places(context, instruction), "x h tau info", "TTTi")
    routine.work("t v sums", n)
    routine.add("hessenberg", schur.reduced_to_hessenberg(), n=n, first=low - 1, last=high)


def _svd(context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
    mode, rows, columns = call.letter("mode", "ASN"), call.sizes["m"], call.sizes["n"]
    width, height = call.sizes["u"], call.sizes["v"]
    k = min(rows, columns)
    allowed = {"A": [(rows, columns)], "S": [(k, k)], "N": [(rows, columns), (k, k)]}[mode]
    if (width, height) not in allowed:
        call.fail(f"for mode {mode}, u and vt have the wrong sizes")
    (source,), (rest, values, u, vt, info) = context.operands(instruction), context.results(instruction)
    shapes = instruction.shape.elements
    context.builder.zero(rest, shapes[0].byte_size)
    if mode == "N":
        context.builder.zero(u, shapes[2].byte_size)
        context.builder.zero(vt, shapes[3].byte_size)
    adjoint = rows < columns
    m, n = max(rows, columns), k
    routine = _routine(context, call)
    routine.given([source, values, u, vt, info], "x values u vt info", "TRTTi")
    routine.work("w", m * n)
    routine.work("sums t r", m)
    routine.work("d e", n, "R")
    text = spectral.singular_values(mode != "N", adjoint)
    wide = height if adjoint else width
    if mode != "N":
        routine.work("du", m * wide)
        routine.work("dv", n * n)
        text += spectral.singular_vectors(adjoint)
    routine.add("singular_values", text, m=m, n=n, columns=wide)


def _geev(context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
    n, is_complex = call.sizes["n"], call.element_type.is_complex
    left, right = call.letter("compute_left", "VN") == "V", call.letter("compute_right", "VN") == "V"
    values, types = ("values", "T") if is_complex else ("real_values imag_values", "RR")
    routine = _routine(context, call)
    routine.given(_places(context, instruction), f"x {values} left_vectors right_vectors info", f"T{types}CCi")
    _schur_work(routine, n)
    routine.work("column", n, "C")
    if not is_complex:
        routine.work("ch cz", n * n, "C")
    routine.add("eigen", schur.eigen(is_complex, left, right), n=n)


def _schur_work(routine: Routine, n: int) -> None:
    routine.work("h z", n * n)
    routine.work("t v sums", n)
    routine.work("wr wi", n, "R")


def _gees(context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
    n, is_complex = call.sizes["n"], call.element_type.is_complex
    wanted = call.letter("mode", "VN") == "V"
    call.letter("sort", "N")
    values, types = ("values", "T") if is_complex else ("real_values imag_values", "RR")
    places = _places(context, instruction)
    routine = _routine(context, call)
    routine.given(places, f"x form vectors {values} selected info", f"TTT{types}ii")
    _schur_work(routine, n)
    routine.add("schur", schur.schur(is_complex), n=n)
    if not wanted:
        context.builder.zero(places[2], instruction.shape.elements[1].byte_size)


def _csr(context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
    BUILT_IN[call.target].bind(call)  # checks the shapes
    values, _, _, dense = call.operands
    element = values.element
    places = _places(context, instruction)
    kinds = [leaf.element for o in instruction.operands for leaf in o.shape.leaves()]
    if element.is_inexact:
        zero, bad = "T(R(0))", "T(R(0) / R(0))"
    else:
        zero = bad = "T(0)"
    rows, m = call.result.dimensions[0], math.prod(call.result.dimensions[1:])
    routine = Routine(context, element, rows)
    names = ("values", "columns", "starts", "dense", "out")
    for name, place, kind in zip(names, places, [*kinds, element], strict=True):
        routine.buffer(name, place, kind)
    text = more_solves.sparse_times_dense(zero, bad)
    routine.add("sparse_times_dense", text, count=values.num_elements, m=m, n=dense.dimensions[0])


def _topk(context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
    if instruction.shape.elements[0].num_elements:
        op = make_instruction(Opcode.TOPK, instruction.operands, topk_attributes(call), shape=instruction.shape)
        context.kernel(instruction.name, emit_topk(op), context.operands(instruction), context.results(instruction))


def _identity(context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
    leaves = [leaf for operand in call.operands for leaf in operand.leaves()]
    if not list(call.result.leaves()):
        return
    operands, results = context.operands(instruction), context.results(instruction)
    for source, target, leaf in zip(operands, results, leaves, strict=True):
        context.builder.copy(target, source, leaf.byte_size)


def _unwritten(context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
    """Nothing: the memory is there."""


_TARGETS: Mapping[str, Callable[[LoweringContext, HloInstruction, Call], None]] = {
    "geqp3": _geqp3, "ormqr": _ormqr, "gtsv": _gtsv, "tridiagonal_solve_perturbed": _perturbed, "syevd": _syevd,
    "eigh": _syevd, "sytrd": _sytrd, "gehrd": _gehrd, "gesdd": _svd, "gesvd": _svd, "geev": _geev, "gees": _gees,
    "csr_times_dense": _csr, "topk": _topk, "identity": _identity, "unwritten": _unwritten,
}  # fmt: skip
"""The rules, by the function of the built-in target."""
