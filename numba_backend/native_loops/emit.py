"""Emit one kernel for an outlined loop: the kernels of its body, one after the other, inside `for` or `while`.

    def native_loop_add_multiply(lo, hi, io0, x1, watch, n0, c0):
        s0 = io0[0]
        for begin0 in range(0, n0, 1024):
            if interrupted(watch):
                return
            for step0 in range(begin0, minimum(begin0 + 1024, n0)):
                # fused_multiply_add
                s0 = s0 * s1 + c0
        io0[0] = s0

The body's fusions have kernels as they would have outside of a loop; `Substitution` writes them into the loop's program
with its names and its memory. Buffers are shared by the rules of `hlo/buffers`, so updates are in place. A loop with a
known counter is a `for`; the others are `while`. Loops that may run long look for interrupts every few thousand steps.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from ...hlo.analyses.batch import Batch
from ...hlo.analyses.trip_count import (
    Counter,
    InductionVariable,
    OpenLoop,
    counter_of,
    induction_variable,
    most_values,
)
from ...hlo.buffers.coalescing import Buffer, Move
from ...hlo.buffers.values import is_alias
from ...hlo.element_type import ElementType
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.support.kept import Kept
from ...hlo.support.memory_pressure import on_pressure
from ...hlo.support.observed import Recalled
from ...hlo.support.records import dataclass
from ..cost import PATIENCE
from ..dot import gemm_of
from ..emitted_kernel import EmittedKernel, memory_type
from ..fused_computations import FusedComputations
from ..loops.carried_loads import carried
from ..loops.chained_divisions import without_chained_divisions
from ..loops.dead import without_dead_variables
from ..loops.equal_sizes import with_equal_sizes
from ..loops.expressions import ZERO, Binary, Call, Expr, Name, Number, call
from ..loops.few_extrema import few_extrema
from ..loops.finite import with_finite_factors, without_finite_factors
from ..loops.fission import split_ahead
from ..loops.forward import assigned, forwarded
from ..loops.guards import guards_first
from ..loops.in_place import in_place
from ..loops.jam import jammed
from ..loops.kept_elements import with_kept_elements
from ..loops.lanes import in_lanes, with_lanes
from ..loops.masks import all_finite, filled_with_zeros, within_masks
from ..loops.newest_last import newest_last
from ..loops.opaque import with_opaque_sums
from ..loops.printer import lines_of
from ..loops.residues import by_residues
from ..loops.rewrite import Substitution
from ..loops.split import split_loops, without_single_iterations
from ..loops.statements import (
    Assign,
    Block,
    Comment,
    For,
    If,
    KernelParameter,
    LoopProgram,
    PointerParameter,
    Return,
    ScalarParameter,
    SizeParameter,
    Store,
    While,
    expressions_of,
    names_of,
    walk,
)
from ..loops.tested_ends import with_tested_ends
from ..loops.typing import pointer_to
from ..loops.vectorized_calls import vectorized_calls
from ..loops.writer import cast
from ..machine import target_machine
from ..policy.small_products import small_product
from .batch import NotInParts, block_members, bounds, copied, in_blocks, least_members, only_once
from .cost import UNKNOWN_TRIPS
from .joining import CallKernel, Copy, Scratch, Table, part_of
from .memory import VECTOR_BITS_OF_LONG, Memory, most_local_bytes
from .products import Preparation, preparation_of
from .state import batch_in
from .storage import Storage


@dataclass(frozen=True, slots=True)
class NativeLoop:
    """The kernel of a loop. Its operands: the operands of the fusion, scratch memory, constants, and the watch if there
    is one."""

    kernel: EmittedKernel
    scratch: tuple[int, ...]
    """The bytes of each block of scratch memory."""
    constants: tuple[np.ndarray, ...]
    watch: int | None
    """The number of the operand that is the watch."""


def emit_native_loop(fused: HloComputation, bodies: FusedComputations) -> NativeLoop:
    """The kernel of an outlined loop. Its results already hold the operands that they overwrite."""
    batch = batch_in(fused)
    if batch is not None:
        try:
            return _Emitter(fused, bodies, batch).emit()
        except NotInParts:
            pass  # one loop over all is right too
    return _Emitter(fused, bodies, None).emit()


class _Emitter(Storage):
    def __init__(self, fused: HloComputation, bodies: FusedComputations, batch: Batch | None) -> None:
        super().__init__(fused, bodies, batch)
        self._before: dict[HloInstruction, Sequence[Move]] = {}
        self._at_end: dict[HloComputation | None, Sequence[Move]] = {}
        for transfer, moves in self.coalescing.moves:
            if transfer.before is not None:
                self._before[transfer.before] = moves
            else:
                self._at_end[transfer.block] = moves
        self._block: Block = []
        self._copies: dict[tuple[Memory, Preparation], Memory] = {}
        self._watch: Name | None = None
        self._nanoseconds = 0.0
        self._iteration = 0.0
        """Nanoseconds of an iteration of the loop."""
        self._kernels: list[str] = []
        self._loops: dict[HloInstruction, OpenLoop] = {}
        """The open loops and earlier ones, by the parameters of their bodies."""

    # The whole

    def emit(self) -> NativeLoop:
        tail = self._open_parameters()
        self.computation(self.fused)
        program, used = self._finished([*self._with_tests([*self._head, *self._block]), *tail])
        parameters, watch = self._all_parameters(used)
        parts = 1 if self._parts is None else self._parts.batch.size
        kernel = EmittedKernel(
            program, parameters, parts, max(self._nanoseconds, 1) / parts, least=least_members(self._iteration, parts),
        )  # fmt: skip
        scratch = tuple(nbytes for parameter, nbytes in self._scratch if parameter.name in used)
        return NativeLoop(kernel, scratch, tuple(array for _, array in self._constants), watch)

    def _with_tests(self, block: Block) -> Block:
        """The statements with tests whether factors are finite, or without them."""
        sizes = {p.name: int(p.value) for p in self._parameters if isinstance(p, SizeParameter)}
        if self._parts is not None:
            return without_finite_factors(block)
        counts = {m.place.text: m.count for m in self._memories.values() if not m.is_variable}
        given = {p.name for p in self._pointers if p.operand is not None and p.name in counts}
        return with_finite_factors(block, given, sizes, counts, self._size, self.fresh)

    def _all_parameters(self, used: frozenset[str]) -> tuple[tuple[KernelParameter, ...], int | None]:
        """The parameters, and the number of the operand that is the watch. `used`: the scratch memory."""
        operands = len(self.fused.parameters)
        extra: list[PointerParameter] = []
        scratch = [parameter for parameter, _ in self._scratch if parameter.name in used]
        for parameter in (*scratch, *[parameter for parameter, _ in self._constants]):
            extra.append(PointerParameter(parameter.name, parameter.element_type, operands + len(extra), None))
        watch = None
        if self._watch is not None:
            watch = operands + len(extra)
            extra.append(PointerParameter(self._watch.name, ElementType.S64, watch, None))
        return (*self._pointers, *extra, *self._parameters), watch

    def _finished(self, block: Block) -> tuple[LoopProgram, frozenset[str]]:
        """The program of the statements, with tables filled in place, several rows of them at once, and elements in
        variables; and the scratch memory that it uses. It is known from the loop at another size, if all that is asked
        of the sizes has the same answers."""
        numbers = [p for p in self._parameters if isinstance(p, SizeParameter) or p.element_type.is_integral]
        names, values = [p.name for p in numbers], [int(p.value) for p in numbers]
        scratch = frozenset(parameter.name for parameter, _ in self._scratch)
        name = "_".join(["native_loop", *list(dict.fromkeys(self._kernels))[-2:]])
        constants = {p.name for p in self._parameters if isinstance(p, ScalarParameter)}
        taken = dict(self._numbers)

        def finished(sizes: Sequence[int]) -> tuple[LoopProgram, frozenset[str]]:
            self._numbers = dict(taken)
            known = dict(zip(names, sizes, strict=True))
            body = with_equal_sizes(few_extrema(without_dead_variables(block)), known)
            body = in_place(body, known, scratch)
            used = scratch.intersection(names_of(body))
            body = split_ahead(carried(jammed(body, known, self.fresh), known, self.fresh), known, self.fresh)
            body = with_kept_elements(with_tested_ends(body, known), known, self.fresh)
            body = newest_last(without_dead_variables(body), known, self.fresh)
            if self._parts is not None:
                body = in_blocks(body, block_members(self._with_lanes))
            if target_machine().fuses:
                body = without_chained_divisions(body, constants, self.fresh)
            parameters = ("lo", "hi", *[p.name for p in self._all_parameters(used)[0]])
            bits = VECTOR_BITS_OF_LONG if self._is_long else 0
            return LoopProgram(name, parameters, with_opaque_sums(body), vector_bits=bits), used

        if self._parts is not None:  # blocks depend on the size of the batch
            return finished(values)
        pointers, _ = self._all_parameters(scratch)
        key = (
            target_machine(), name, "\n".join(lines_of(block)), self._is_long, tuple(taken.items()),
            tuple([(p.name, None if isinstance(p, SizeParameter) else p.element_type) for p in pointers]),
        )  # fmt: skip
        recalled = _finished.get(key)
        if recalled is None:
            recalled = _finished.keep(key, Recalled())
        return recalled.of(values, finished)

    def _open_parameters(self) -> Block:
        """The memory of the operands and results. Gives the statements at the end, which store the results."""
        tail: Block = []
        shared = {operand: output for output, operand in self.overwritten.items()}
        for parameter in self.fused.parameters:
            number, shape = parameter.attributes.number, parameter.shape
            (number_of_value,) = self.analysis.leaves[parameter]
            buffer = self.coalescing.buffers.get(number_of_value)
            output = shared.get(number)
            if buffer is None or (not shape.num_elements):
                continue
            stem = "x" if output is None else "io"
            self._numbers[stem] = max(self._numbers.get(stem, 0), number + 1)
            name = Name(f"{stem}{number}", pointer_to(memory_type(shape.element)))
            self._pointers.append(PointerParameter(name.name, shape.element, number, output))
            outside = self._outside(name, shape.element, shape.num_elements, buffer)
            inside = None if outside.lanes else self._local(shape.element, shape.num_elements)
            self._memories[buffer] = inside or outside
            if output is None:
                self._unchanging.add(self._memories[buffer])
            if inside is None:
                continue
            self._copy(inside, outside)
            if output is not None:
                tail += self._copied(outside, inside)
        self._head += self._block
        self._block = []
        for number, buffer in enumerate(self.coalescing.outputs):
            if number in self.overwritten:
                continue
            value = self.analysis.values[self.analysis.outputs[number]]
            if not value.shape.num_elements:
                continue
            self._numbers["out"] = number + 1
            name = Name(f"out{number}", pointer_to(memory_type(value.shape.element)))
            self._pointers.append(PointerParameter(name.name, value.shape.element, None, number))
            outside = self._outside(name, value.shape.element, value.shape.num_elements, buffer)
            inside = None if outside.lanes else self._local(value.shape.element, value.shape.num_elements)
            self._memories[buffer] = inside or self._seen_by_all(outside, buffer)
            if inside is not None:
                tail += self._copied(outside, inside)
        return tail if self._parts is None else only_once(tail)

    # Instructions

    def computation(self, computation: HloComputation) -> None:
        """The statements of a computation, added to the open block."""
        for instruction in computation.instructions:
            if instruction.opcode in (Opcode.PARAMETER, Opcode.CONSTANT) or is_alias(instruction):
                continue
            self._instruction(instruction, computation)
        self._moves(self._at_end.get(computation, ()))

    def _instruction(self, instruction: HloInstruction, computation: HloComputation) -> None:
        match instruction.opcode:
            case Opcode.FUSION:
                self._fusion(instruction)
            case Opcode.WHILE:
                self._while(instruction)
            case Opcode.CONDITIONAL:
                self._conditional(instruction)
            case Opcode.CALL:
                self._moves(self._before.get(instruction, ()))
                self.computation(instruction.attributes.to_apply)
            case Opcode.DOT:
                self._product(instruction)
            case _:
                self._part(instruction, computation)

    def _part(self, instruction: HloInstruction, computation: HloComputation) -> None:
        """Add the steps that an instruction has rows for outside of loops."""
        part = part_of(instruction, computation)
        if part is None:
            raise UnsupportedError(f"a native loop has no code for {instruction.opcode.value}")
        places = [*self._operands(instruction), *self._results(instruction)]
        for step in part.steps:
            match step:
                case Scratch(element_type, count):
                    places.append(self._own_memory(element_type, count))
                case Table(array):
                    places.append(self._table(ElementType.S64, array))
                case CallKernel(kernel, operands, outputs):
                    self._kernel(kernel, [places[k] for k in operands], [places[k] for k in outputs])
                case Copy(target, source):
                    destination, origin = places[target], places[source]
                    if destination is not None and origin is not None and destination is not origin:
                        self._copy(destination, origin)

    def _product(self, dot: HloInstruction) -> None:
        """A product; an operand that never changes may be copied before the loop, into another order."""
        operands, results = self._operands(dot), self._results(dot)
        is_sliced = any(result is not None and result.lanes for result in results)
        prepared = preparation_of(dot)
        if prepared is not None and is_sliced and prepared.operand == 0:
            prepared = None  # each part of the batch has rows of it
        if prepared is not None:
            copy = self._prepared(operands[prepared.operand], prepared, dot.shape.element)
            if copy is None:
                prepared = None
            else:
                operands[prepared.operand] = copy
        rows = None if prepared is None else (prepared.operand, prepared.width)
        kernel = small_product(dot, prepared=rows, is_sliced=is_sliced)
        begin, before = len(self._block), self._nanoseconds
        self._kernel(kernel, operands, results)
        masked = self._masked_factor(dot, kernel, operands)
        if masked is not None:
            other, terms = masked
            whole, self._block[begin:] = self._block[begin:], []
            self._nanoseconds = before
            self._kernel(kernel, operands, results, {"k": terms})
            shown, self._block[begin:] = self._block[begin:], []
            self._block.append(If([(all_finite([other]), shown)], whole))

    def _masked_factor(
        self, dot: HloInstruction, kernel: EmittedKernel, operands: Sequence[Memory | None]
    ) -> tuple[Name, Expr] | None:
        """If one operand of a product is a vector of which a mask leaves the first part: the other operand, and the
        terms of a sum that are not products with zero."""
        if dot.shape.element.is_integral:
            return None
        gemm, element = gemm_of(dot), dot.shape.element
        has_terms = any(isinstance(p, SizeParameter) and p.name == "k" for p in kernel.parameters)
        if gemm.batch or element.is_complex or element.is_small or not has_terms or 1 not in (gemm.m, gemm.n):
            return None
        own, other = operands if gemm.m == 1 else reversed(operands)
        if own is None or other is None or own.count != gemm.k or own.is_variable or other.is_variable:
            return None
        zeros = {p.name for p in self._parameters if isinstance(p, ScalarParameter) and not p.bits}
        changed: set[str] = set()
        for statement in reversed(self._block):
            if any(isinstance(s, Store) and s.pointer.name == own.name.name for s in walk([statement])):
                if not isinstance(statement, For) or self._value_of(statement.stop) != own.count:
                    return None
                found = filled_with_zeros(statement, zeros)
                if found is None or found[1] is not ZERO or not changed.isdisjoint(found[2].names):
                    return None
                return other.name, call("maximum", found[2], 0)
            changed.update(assigned([statement]))
        return None

    def _value_of(self, size: Expr) -> int | None:
        """The number that a size is."""
        if isinstance(size, Number):
            return int(size.value)
        found = (p.value for p in self._parameters if isinstance(p, SizeParameter) and p.name == size.text)
        return next(found, None)

    def _prepared(self, memory: Memory | None, wanted: Preparation, element_type: ElementType) -> Memory | None:
        if memory is None or memory not in self._unchanging:
            return None
        key = memory, wanted
        found = self._copies.get(key)
        if found is None:
            count = wanted.steps * wanted.width
            nbytes = count * element_type.byte_width
            if self._local_bytes + nbytes > most_local_bytes():
                return None
            self._local_bytes += nbytes
            found = self._copies[key] = self._local_array("v", memory_type(element_type), count)
            outside, self._block = self._block, []
            self._kernel(wanted.kernel(element_type), [memory], [found])
            self._head += self._block
            self._block = outside
        return found

    def _buffers(self, instruction: HloInstruction) -> list[Buffer]:
        return [self.coalescing.buffers[v] for v in self.analysis.leaves[instruction]]

    def _operand_buffers(self, instruction: HloInstruction) -> list[Buffer]:
        return [self.coalescing.buffers[v] for v in self.analysis.operand_values(instruction)]

    def _fusion(self, instruction: HloInstruction) -> None:
        outputs = self._buffers(instruction)
        operands = self._operand_buffers(instruction)
        if all(b.size == 0 for b in outputs):
            return
        sharing = {k: operands.index(b) for k, b in enumerate(outputs) if b in operands and b.size}
        if sharing and self.bodies.is_identity(instruction):
            return
        kernel = self.bodies.kernel(instruction, sharing)
        for operand, output in kernel.copied_operands:
            self._copy(self._memory(outputs[output]), self._memory(operands[operand]))
        self._kernel(kernel, self._operands(instruction), self._results(instruction))

    def _kernel(
        self, kernel: EmittedKernel, operands: Sequence[Memory | None], outputs: Sequence[Memory | None],
        sizes: Mapping[str, Expr] | None = None,
    ) -> None:  # fmt: skip
        """Writes a kernel into the loop. `sizes`: values of sizes that are not the kernel's own."""
        if not kernel.extent:
            return
        values: dict[str, Expr] = {}
        with_batch = {output.lanes is not None for output in outputs if output is not None}
        if with_batch == {True}:
            assert self._parts is not None
            values.update(bounds(kernel, self._parts.batch.size, self._size))
        elif True in with_batch:
            raise NotInParts("results with a batch and shared ones")
        else:
            values.update(lo=ZERO, hi=self._size(kernel.extent))
        memories: dict[str, Memory] = {}
        divisors = _divisors(kernel.program)
        for parameter in kernel.parameters:
            if isinstance(parameter, PointerParameter):
                number = parameter.output if parameter.output is not None else parameter.operand
                assert number is not None
                memory = (outputs if parameter.output is not None else operands)[number]
                if memory is None:  # an array without elements, which the kernel never reads
                    memory = self._local_array("e", memory_type(parameter.element_type), 1)
                memories[parameter.name] = memory
            elif isinstance(parameter, SizeParameter):
                given = (sizes or {}).get(parameter.name)
                values[parameter.name] = self._size(parameter.value) if given is None else given
            else:
                literal = parameter.name in divisors
                values[parameter.name] = self._scalar(parameter.element_type, parameter.value, literal=literal)
        program = kernel.program
        self._block.append(Comment(program.name))
        self._block += self._written(program, values, memories, self._known_numbers(kernel, values))
        self._nanoseconds += kernel.nanoseconds
        self._kernels.append(program.name.removeprefix("fused_"))

    def _written(
        self, program: LoopProgram, values: Mapping[str, Expr], memories: Mapping[str, Memory],
        numbers: tuple[set[str], set[str], set[str]],
    ) -> Block:  # fmt: skip
        """The statements of a kernel with the loop's names. They say nothing of sizes that are arguments, so that they
        are known from the loop at another size; they are the same objects then. `numbers`: see `_known_numbers`."""
        key = (
            tuple([(e.text, e.type) for e in values.values()]),
            tuple([(m.place.text, m.place.type, m.is_variable, m.place.text in self._registers)
                   for m in memories.values()]),
            tuple(map(frozenset, numbers)),
            tuple(self._numbers.items()),
        )  # fmt: skip
        known = _written.setdefault(program, {})
        found = known.get(key)
        if found is None:
            accesses = {name: memory.access for name, memory in memories.items()}
            block = within_masks(Substitution(values, accesses, self.fresh).block(program.body), *numbers)
            parts = by_residues(split_loops(block), self.fresh)
            block = with_lanes(without_single_iterations(parts), self._registers)
            if len(known) >= _MOST_WRITTEN:
                known.clear()
            found = known[key] = block, dict(self._numbers)
        block, taken = found
        self._numbers = dict(taken)
        return block

    def _known_numbers(
        self, kernel: EmittedKernel, values: Mapping[str, Expr]
    ) -> tuple[set[str], set[str], set[str]]:
        """The names that stand for +0, for any constant, and for +0 or -0, if masks are looked for: in a kernel with
        all counters below 2**31."""
        sizes = [p.value for p in kernel.parameters if isinstance(p, SizeParameter)]
        if max([kernel.extent, *sizes]) >= 1 << 31:
            return set(), set(), set()
        scalars = [p for p in kernel.parameters if isinstance(p, ScalarParameter)]
        names = [(name.name, p) for p in scalars if isinstance(name := values[p.name], Name)]
        zeros = {name for name, p in names if not p.bits}
        negative = {name for name, p in names if p.element_type.is_floating and p.bits in _NEGATIVE_ZEROS}
        return zeros, {name for name, _ in names}, zeros | negative

    def _operands(self, instruction: HloInstruction) -> list[Memory | None]:
        return [self._memory(b) if b.size else None for b in self._operand_buffers(instruction)]

    def _results(self, instruction: HloInstruction) -> list[Memory | None]:
        return [self._memory(b) if b.size else None for b in self._buffers(instruction)]

    def _own_memory(self, element_type: ElementType, count: int) -> Memory:
        """Memory that one instruction needs for itself."""
        found = self._local(element_type, count)
        if found is None and self._parts is not None:
            raise NotInParts("scratch memory that is too large for a part's own memory")
        return found or self._scratch_memory(element_type, count)

    # Moves

    def _moves(self, moves: Sequence[Move]) -> None:
        """Moves, in order. A buffer without values keeps one of another buffer while several are exchanged."""
        kept: dict[Buffer, Memory] = {}
        for move in moves:
            source = kept.get(move.source) or self._memory(move.source)
            if move.target.values:
                target = self._memory(move.target)
            elif move.target in self._memories:
                target = self._memories[move.target]
            else:
                target = kept[move.target] = self._like(source)
            self._copy(target, source)

    def _like(self, memory: Memory) -> Memory:
        kind = memory.name.type
        if memory.is_variable:
            return Memory(Name(self.fresh("kept"), kind), 1, is_variable=True)
        if memory.count <= self._most_literal and memory.lanes is None:
            return self._local_array("kept", kind[:-1], memory.count)
        element_type = next(t for t in ElementType if memory_type(t) == kind[:-1] and not t.is_small)
        return self._scratch_memory(element_type, memory.count, memory.lanes)

    def _copy(self, target: Memory, source: Memory) -> None:
        self._block += self._copied(target, source)

    def _copied(self, target: Memory, source: Memory) -> Block:
        if target.count == 1:
            return [target.store(ZERO, source.first())]
        if target.lanes is not None:
            return copied(target.lanes, self._size, lambda at: target.store(at, source.load(at)))
        if source.lanes is not None:
            raise NotInParts("a copy of values with a batch into shared memory")
        index = Name("i")
        return [in_lanes(For(index, None, self._size(target.count), 1, [target.store(index, source.load(index))]))]

    # Control flow

    def _within(self, computation: HloComputation) -> Block:
        """The statements of a computation as a block of its own."""
        outside, self._block = self._block, []
        self.computation(computation)
        inside, self._block = self._block, outside
        return vectorized_calls(inside, self.fresh)

    def _while(self, loop: HloInstruction) -> None:
        self._moves(self._before.get(loop, ()))
        counter = induction_variable(loop)
        before = self._nanoseconds
        self._loops[loop.attributes.body.parameters[0]] = OpenLoop(loop, counter)
        if counter is not None:
            self._counted(loop, counter, before)
            return
        between = counter_of(loop)
        if between is not None and _stays_in_range(between):
            self._between(loop, between, before)
            return
        test_block, test = self._condition(loop.attributes.condition)
        body = self._within(loop.attributes.body)
        self._iteration = each = max(self._nanoseconds - before, 1.0)
        watched = self._look(each)
        if test_block:
            self._block.append(While(Number(True), [*guards_first(test_block, test), *watched, *body]))
        else:
            self._block.append(While(test, [*watched, *body]))
        self._nanoseconds = before + each * UNKNOWN_TRIPS

    def _counted(self, loop: HloInstruction, counter: InductionVariable, before: float) -> None:
        """``for step in range(n): counter = start + step * stride; body``"""
        trips = counter.trip_count
        memory = self._memory(self._buffers(loop)[counter.index])
        body = self._within(loop.attributes.body)
        self._iteration = each = max(self._nanoseconds - before, 0.5)
        self._nanoseconds = before + each * trips
        if not trips:
            return
        step = Name(self.fresh("step"))
        position: Expr = step * counter.step if counter.step != 1 else step
        if counter.start:
            position = position + self._number(counter.start)
        kind = memory.name.type if memory.is_variable else memory.name.type[:-1]
        first = memory.store(ZERO, position if kind == "int64" else cast(kind, position))
        if memory.is_variable:
            body = forwarded(body, memory.name, position, counter.step)
        statements = [first, *body]
        if each * trips < PATIENCE and not self._is_long:
            self._block.append(For(step, None, self._number(trips), 1, statements))
            return
        chunk = self._chunk(each)
        begin, total = Name(self.fresh("begin")), self._number(trips)
        inner = For(step, begin, call("minimum", begin + chunk, total), 1, statements)
        self._block.append(For(begin, ZERO, total, chunk, [self._stop(), inner]))

    def _between(self, loop: HloInstruction, counter: Counter, before: float) -> None:
        """``for step in range(int64(start), int64(limit)): counter = step; body``. Blocks of iterations are as long as
        unsigned integers say, since the limit may be the largest number, or the smallest one."""
        memory = self._memory(self._buffers(loop)[counter.index])
        start = _index(memory.first())
        if counter.limit_index is None:
            limit: Expr = self._number(int(counter.limit.attributes.literal.array))
        else:
            limit = _index(self._memory(self._buffers(loop)[counter.limit_index]).first())
        sign = 1 if counter.step > 0 else -1
        if counter.reaches:
            limit = limit + sign
        widest = most_values(loop, counter, self._loops)
        self._loops[loop.attributes.body.parameters[0]] = OpenLoop(loop, widest)
        body = self._within(loop.attributes.body)
        self._iteration = each = max(self._nanoseconds - before, 1.0)
        trips = None if widest is None else -(-widest.trip_count // abs(counter.step))
        self._nanoseconds = before + each * (UNKNOWN_TRIPS if trips is None else trips)
        step = Name(self.fresh("step"))
        kind = memory.name.type if memory.is_variable else memory.name.type[:-1]
        store = memory.store(ZERO, step if kind == "int64" else cast(kind, step))
        if memory.is_variable:
            body = forwarded(body, memory.name, step, counter.step)
        statements = [store, *body]
        if trips is not None and each * trips < PATIENCE and not self._is_long:
            self._block.append(For(step, start, limit, counter.step, statements))
            return
        begin, end = Name(self.fresh("begin")), Name(self.fresh("end"))
        first, last = (begin, limit) if sign > 0 else (limit, begin)
        chunk = call("uint64", self._chunk(each) * abs(counter.step))
        size = call("int64", call("minimum", call("uint64", call("subtract", last, first)), chunk))
        inner = For(step, begin, end, counter.step, statements)
        following = Assign((end,), (begin + size if sign > 0 else begin - size,))
        around = While(first < last, [self._stop(), following, inner, Assign((begin,), (end,))])
        self._block += [Assign((begin,), (start,)), around]

    def _chunk(self, each: float) -> int:
        """Iterations between two looks at the clock: some 50 us. Fewer in a long loop, so that its text is the same for
        all sizes."""
        return 1 << 5 if self._is_long or each >= 100 else 1 << 10 if each >= 4 else 1 << 14

    def _stop(self) -> If:
        """``if interrupted(watch): return``"""
        self._watch = Name("watch", "int64*")
        return If([(call("interrupted", self._watch), [Return()])])

    def _look(self, each: float) -> Block:
        """Statements that look for interrupts now and then, in a loop with iterations of `each` nanoseconds."""
        fuel = Name(self.fresh("fuel"))
        chunk = Number(self._chunk(each))
        self._head.append(Assign((fuel,), (chunk,)))
        empty = If([(fuel.eq(0), [Assign((fuel,), (chunk,)), self._stop()])])
        return [Assign((fuel,), (fuel - 1,)), empty]

    def _condition(self, condition: HloComputation) -> tuple[Block, Expr]:
        """The statements that compute a condition, and the test. A single comparison is written into the test."""
        block = self._within(condition)
        (own,) = self._buffers(condition.root)
        memory = self._memory(own)
        statements = [s for s in block if not isinstance(s, Comment)]
        if memory.is_variable and len(statements) == 1 and isinstance(statements[0], Assign):
            (target,), (value,) = statements[0].targets, statements[0].values
            is_own = target.name == memory.name.name and len(own.values) == 1
            if is_own and isinstance(value, Call) and value.function == "uint8":
                return [], value.arguments[0]
        return block, memory.first().ne(0)

    def _conditional(self, instruction: HloInstruction) -> None:
        self._moves(self._before.get(instruction, ()))
        index = instruction.operands[0]
        (buffer,) = self._buffers(index)
        where = self._memory(buffer).first()
        before = self._nanoseconds
        blocks, costs = [], []
        for branch in instruction.attributes.branch_computations:
            self._nanoseconds = before
            blocks.append(self._within(branch))
            costs.append(self._nanoseconds)
        self._nanoseconds = max(costs)
        if index.shape.element is ElementType.PRED:
            self._block.append(If([(where.ne(0), blocks[0])], blocks[1]))
        elif len(blocks) == 1:
            self._block += blocks[0]
        else:
            tests: list[Expr] = [Binary("==", where, cast("int32", k)) for k in range(len(blocks) - 1)]
            self._block.append(If(list(zip(tests, blocks, strict=False)), blocks[-1]))


def _stays_in_range(counter: Counter) -> bool:
    """True if the type of a counter can hold it after the loop, whatever its limit is; and an index can."""
    if counter.element is ElementType.U64:
        return False
    if counter.limit_index is not None:
        return abs(counter.step) == 1 and not counter.reaches
    lowest, highest = counter.element.limits
    last = int(counter.limit.attributes.literal.array)
    if not counter.reaches:
        last -= 1 if counter.step > 0 else -1
    return lowest <= last + counter.step <= highest


def _index(value: Expr) -> Expr:
    return value if value.type == "int64" else Call("int64", (value,))


_NEGATIVE_ZEROS = frozenset((1 << 15, 1 << 31, -(1 << 63)))
"""The bits of -0 in 16, 32 and 64 bits."""

_written: WeakKeyDictionary[LoopProgram, dict[tuple[object, ...], tuple[Block, dict[str, int]]]] = WeakKeyDictionary()
"""The statements of kernels in loops, and the numbers that new names have after them."""
_MOST_WRITTEN = 64

_finished: Kept[Hashable, Recalled[tuple[LoopProgram, frozenset[str]]]] = Kept(_MOST_WRITTEN)
"""The programs of whole loops, by their statements before the transforms that know sizes."""

on_pressure(_written.clear)

_known_divisors: WeakKeyDictionary[LoopProgram, frozenset[str]] = WeakKeyDictionary()


def _divisors(program: LoopProgram) -> frozenset[str]:
    """The names that statements divide by. For a literal divisor, LLVM writes a multiplication."""
    found = _known_divisors.get(program)
    if found is None:
        found = _known_divisors[program] = frozenset(
            part.arguments[1].name
            for statement in walk(program.body)
            for whole in expressions_of(statement)
            for part in whole.walk()
            if isinstance(part, Call) and part.function in ("idiv", "remainder") and isinstance(part.arguments[1], Name)
        )
    return found
