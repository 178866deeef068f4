"""Linear algebra as rows of a standalone program: kernels in place of calls of LAPACK, for any size.

Small matrices have the kernels that they have in this process (`linalg/algorithms.py`). For others, and for routines
that have none, a kernel takes one matrix of the batch after the other, with scratch memory for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

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
from ..linalg.algorithms import algorithm_of, symmetric_of
from ..loops.inward import Inward
from ..lowering_rules.linalg import add_small
from ..lowering_rules.table import LoweringContext
from ..runtime.program import Argument, LoweringRefused, size

_S32 = ElementType.S32
_WIDE = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}


class Routine:
    """A text as a row of a program: the buffers of the instruction, and scratch memory for one matrix."""

    def __init__(self, context: LoweringContext, element_type: ElementType, count: int, places: list[Argument]) -> None:
        self.context, self.places = context, places
        """The operands and the results of the instruction."""
        self._element_type, self._count = element_type, count
        self._buffers: dict[str, tuple[Argument, ElementType]] = {}
        real = element_type.real
        self._types = {"T": element_type, "R": real, "i": _S32, "C": _WIDE.get(real, element_type)}

    def given(self, names: str, types: Iterable[str | ElementType], places: Sequence[Argument] | None = None) -> None:
        """The buffers of `places`, or else all of the instruction, by name. `types`: T, R, C (complex), i (s32), or
        another type."""
        for place, name, kind in zip(self.places if places is None else places, names.split(), types, strict=True):
            self._buffers[name] = place, self._types[kind] if isinstance(kind, str) else kind

    def work(self, names: str, count: int, letter: str = "T") -> None:
        """Scratch memory of `count` elements for each name."""
        kind = self._types[letter]
        for name in names.split():
            self._buffers[name] = self.context.scratch(kind, count), kind

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
        self.context.builder.kernel(kernel, arguments, self._count)


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
    routine = Routine(context, algorithm.element_type, algorithm.count, list(places.values()))
    routine.given(" ".join(places), [kind for _, kind in algorithm.pointers()])
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
    built_in.bind(call)  # it refuses wrong letters, types and sizes
    operands, results = context.operands(instruction), context.results(instruction)
    if built_in.function == "topk":
        if call.result.elements[0].num_elements:
            op = make_instruction(Opcode.TOPK, instruction.operands, topk_attributes(call), shape=call.result)
            context.kernel(instruction.name, emit_topk(op), operands, results)
    elif built_in.function == "identity":
        for source, target, leaf in zip(operands, results, call.result.leaves(), strict=False):  # there may be none
            context.builder.copy(target, source, leaf.byte_size)
    elif built_in.function != "unwritten":  # for that, the memory is there
        call = built_in.typed(call)
        element_type = call.element_type if built_in.signature else call.operands[0].element
        count = math.prod(call.batch) if built_in.signature else call.result.dimensions[0]
        _ROUTINES[built_in.function](Routine(context, element_type, count, [*operands, *results]), call)


def _geqp3(routine: Routine, call: Call) -> None:
    m, n = call.sizes["m"], call.sizes["n"]
    routine.context.builder.copy(routine.places[2], routine.places[0], call.operands[0].byte_size)
    routine.given("x chosen_first out pivots tau", "TiTiT")
    routine.work("sums", n)
    routine.work("norms first_norms", n, "R")
    views = [_in_batch("w", "m", "n", "out"), *(_of_batch(name, "n") for name in ("chosen_first", "pivots"))]
    views.append(_of_batch("tau", "minimum(m, n)"))
    routine.add("qr_with_pivots", factorize.qr_with_pivots(), views, m=m, n=n)


def _ormqr(routine: Routine, call: Call) -> None:
    rows, columns, p, m, n = (call.sizes[name] for name in "rcpmn")
    routine.context.builder.copy(routine.places[3], routine.places[2], call.result.byte_size)
    routine.given("x tau y out", "TTTT")
    routine.work("sums v", n)
    views = [_in_batch("w", "m", "n", "out"), _in_batch("q", "rows", "columns", "x"), _of_batch("tau", "p")]
    text = factorize.times_reflections(call.flag("left"), call.flag("transpose"))
    routine.add("times_reflections", text, views, m=m, n=n, p=p, rows=rows, columns=columns)


def _gtsv(routine: Routine, call: Call) -> None:
    routine.given("dl d du y new_dl new_d new_du out info", "TTTTTTTTi")
    routine.add("tridiagonal_solve", more_solves.tridiagonal_solve(), n=call.sizes["n"], m=call.sizes["b"])


def _perturbed(routine: Routine, call: Call) -> None:
    n, m = call.sizes["n"], call.sizes["b"]
    if not n or not m:
        return
    routine.given("dl d du y out", "TTTTT")
    routine.work("first second third", n)
    routine.add("perturbed_tridiagonal", more_solves.perturbed_tridiagonal(), n=n, m=m)


def _syevd(routine: Routine, call: Call) -> None:
    n, lower, vectors = symmetric_of(call)
    info = call.target != "Eigh"
    routine.given("x out values" + " info" * info, "TTR" + "i" * info)
    _tridiagonal_work(routine, n)
    routine.add("symmetric_eigen", spectral.symmetric_eigen(lower, vectors, info), n=n)


def _tridiagonal_work(routine: Routine, n: int) -> None:
    routine.work("w v", n * n)
    routine.work("t sums p q", n)
    routine.work("d e", n, "R")


def _sytrd(routine: Routine, call: Call) -> None:
    n = call.sizes["n"]
    routine.given("x out d_out e_out tau info", "TTRRTi")
    _tridiagonal_work(routine, n)
    routine.add("tridiagonal", spectral.reduced_to_tridiagonal(call.letter("uplo", "LU") == "L"), n=n)


def _gehrd(routine: Routine, call: Call) -> None:
    n = call.sizes["n"]
    routine.given("x h tau info", "TTTi")
    routine.work("t v sums", n)
    text = schur.reduced_to_hessenberg()
    routine.add("hessenberg", text, n=n, first=call.integer("low") - 1, last=call.integer("high"))


def _svd(routine: Routine, call: Call) -> None:
    vectors, (rows, columns, width, height) = call.letter("mode", "ASN") != "N", (call.sizes[name] for name in "mnuv")
    m, n, adjoint = max(rows, columns), min(rows, columns), rows < columns
    source, rest, values, u, vt, info = routine.places
    for place, k in ((rest, 0), *([] if vectors else [(u, 2), (vt, 3)])):
        routine.context.builder.zero(place, call.result.elements[k].byte_size)
    routine.given("x values u vt info", "TRTTi", [source, values, u, vt, info])
    routine.work("w", m * n)
    routine.work("sums t r", m)
    routine.work("d e", n, "R")
    text = spectral.singular_values(vectors, adjoint)
    wide = height if adjoint else width
    if vectors:
        routine.work("du", m * wide)
        routine.work("dv", n * n)
        text += spectral.singular_vectors(adjoint)
    routine.add("singular_values", text, m=m, n=n, columns=wide)


def _geev(routine: Routine, call: Call) -> None:
    n, is_complex = call.sizes["n"], call.element_type.is_complex
    left, right = call.letter("compute_left", "VN") == "V", call.letter("compute_right", "VN") == "V"
    values, types = ("values", "T") if is_complex else ("real_values imag_values", "RR")
    routine.given(f"x {values} left_vectors right_vectors info", f"T{types}CCi")
    _schur_work(routine, n)
    routine.work("column", n, "C")
    if not is_complex:
        routine.work("ch cz", n * n, "C")
    routine.add("eigen", schur.eigen(is_complex, left, right), n=n)


def _schur_work(routine: Routine, n: int) -> None:
    routine.work("h z", n * n)
    routine.work("t v sums", n)
    routine.work("wr wi", n, "R")


def _gees(routine: Routine, call: Call) -> None:
    n, is_complex = call.sizes["n"], call.element_type.is_complex
    values, types = ("values", "T") if is_complex else ("real_values imag_values", "RR")
    routine.given(f"x form vectors {values} selected info", f"TTT{types}ii")
    _schur_work(routine, n)
    routine.add("schur", schur.schur(is_complex), n=n)
    if call.letter("mode", "VN") == "N":
        routine.context.builder.zero(routine.places[2], call.result.elements[1].byte_size)


def _csr(routine: Routine, call: Call) -> None:
    values, columns, starts, dense = (operand.element for operand in call.operands)
    routine.given("values columns starts dense out", (values, columns, starts, dense, values))
    zero, bad = ("T(R(0))", "T(R(0) / R(0))") if values.is_inexact else ("T(0)", "T(0)")
    m, n = math.prod(call.result.dimensions[1:]), call.operands[3].dimensions[0]
    text = more_solves.sparse_times_dense(zero, bad)
    routine.add("sparse_times_dense", text, count=call.operands[0].num_elements, m=m, n=n)


_ROUTINES: Mapping[str, Callable[[Routine, Call], None]] = {
    "geqp3": _geqp3, "ormqr": _ormqr, "gtsv": _gtsv, "tridiagonal_solve_perturbed": _perturbed, "syevd": _syevd,
    "eigh": _syevd, "sytrd": _sytrd, "gehrd": _gehrd, "gesdd": _svd, "gesvd": _svd, "geev": _geev, "gees": _gees,
    "csr_times_dense": _csr,
}  # fmt: skip
"""The routines, by the function of the built-in target."""
