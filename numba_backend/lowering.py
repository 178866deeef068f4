"""Lower a fused, scheduled module with buffers to a program: rows for each instruction that computes something.

A row is an instruction of the program's table; "row" means this in this file. Fusions become kernels, dots BLAS calls,
while and conditional jumps. An instruction that has a buffer but no work (tuple, bitcast) has no row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from ..hlo.analyses.bands import EVERYTHING, looked_at, repeated_outside
from ..hlo.buffers.assignment import ALIGNMENT, AllocationKind, BufferAssignment, BufferCopy, BufferSlice, is_alias
from ..hlo.builder import make_instruction, make_parameter
from ..hlo.element_type import ElementType
from ..hlo.errors import ScheduleError, UnsupportedError
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.passes.fuse.outline_loops import is_outlined_loop
from ..hlo.passes.layout.layout_erasure import keeps_layouts
from ..hlo.shape import Shape
from ..hlo.support.loading import load
from ..hlo.support.progress import current
from ..hlo.support.records import dataclass
from ..hlo.timeline.spans import Track, spanning
from .choices import compiler_of, schedules_of
from .dot import gemm_of, strides_of
from .emit import FusedBody, canonical
from .emit.copies import emit_copy, shared_copy
from .emit.element import storage_of
from .emit.physical_layouts import physical_layout_of
from .emitted_kernel import EmittedKernel
from .fused_computations import FusedComputations
from .loops.statements import KernelParameter, PointerParameter, SizeParameter
from .loops.stored_first import stored_first
from .lowering_rules import lowering_rule
from .lowering_rules.table import LoweringContext, PieceMemory, Step
from .machine import PIECE_NANOSECONDS, target_machine
from .native_loops.emit import emit_native_loop
from .native_loops.state import overwritten
from .output_fusion import Leaf, Pieces, is_output_fusion, leaf_of, pieces_of, scatter_of
from .output_fusion.fuse import most_parts
from .policy.fusions import emit_fusion
from .policy.products import GivenBand, product_kernel, rows_of_tile, tiles
from .runtime import portable
from .runtime.blas import Gemm
from .runtime.chain import Cut, Stage, parts_of
from .runtime.kernel import KernelSource, Parameter
from .runtime.program import Argument, LoweringRefused, Program, ProgramBuilder, pointer, scalar, size, watch
from .schedule.steps import EVERY, Share, Vectors

LOWERED: Mapping[Opcode, str] = {
    Opcode.FUSION: "inlined, then fused anew: a kernel",
    Opcode.DOT: "a kernel, or BLAS gemm for large ones of floats where that is faster",
    Opcode.WHILE: "jumps",
    Opcode.CONDITIONAL: "jumps",
    Opcode.CALL: "inlined",
}
"""The opcodes that have a rule of `_Lowering` rather than one of `lowering_rules`, in a few words for `docs/ops.md`."""


NOWHERE = Argument("pointer", -1, 0)
"""The argument for an empty array, which is never read or written."""


_LEAST_LEFT_OUT = 1024
"""A copy without so many bytes in its middle takes less time than the whole, though it is two."""


@dataclass(frozen=True, slots=True)
class KernelUse:
    """One call of a kernel, for people: its instruction, and the values of its sizes and scalars."""

    instruction: str
    source: str
    values: tuple[tuple[str, object], ...]
    notes: tuple[object, ...] = ()
    """See `LoopProgram`."""


@dataclass(frozen=True, slots=True)
class LoweredModule:
    """The program, its kernels, and its memory."""

    program: Program
    kernels: tuple[KernelUse, ...]
    code_bytes: int
    """Machine code of all distinct kernels."""
    arena_size: int
    """Bytes of the arenas, one after another, and of the scratch memory after them, enough for every row."""
    data: portable.PortableProgram | None = None
    """The program as data for another process, if that was requested and is possible."""


def lower(assignment: BufferAssignment, bodies: FusedComputations, *, to_keep: bool = False) -> LoweredModule:
    """The program of a module. Its bases are the parameters' leaves, the results' leaves, then the arenas' block, and
    the device's own words if the program is for several devices. `to_keep`: as data too, if it can be."""
    builder = ProgramBuilder(compiler_of(assignment.module))
    kernels, arena_size = lower_into(builder, assignment, bodies)
    program = builder.build()
    data = None
    if to_keep:
        with suppress(portable.NotPortable):
            data = builder.portable()
    return LoweredModule(program, kernels, program.code_bytes, arena_size, data)


def lower_into(
    builder: ProgramBuilder, assignment: BufferAssignment, bodies: FusedComputations
) -> tuple[tuple[KernelUse, ...], int]:
    """Add the rows of a module to a builder, perhaps one of another kind: its kernels, and the bytes of its arenas with
    the scratch memory after them."""
    builder.title = assignment.module.name
    lowering = _Lowering(builder, assignment, bodies)
    lowering.computation(assignment.module.entry)
    lowering.check_names()
    return tuple(lowering.kernels), lowering.arena_size


def has_rows(instruction: HloInstruction) -> bool:
    """True for an instruction that computes something when the program runs."""
    return instruction.opcode not in (Opcode.PARAMETER, Opcode.CONSTANT) and not is_alias(instruction)


class _Lowering(LoweringContext):
    has_blas = True

    def __init__(self, builder: ProgramBuilder, assignment: BufferAssignment, bodies: FusedComputations) -> None:
        self._builder = builder
        self.has_pieces = builder.has_pieces
        self.assignment = assignment
        self.schedules = schedules_of(assignment.module)
        self.bodies = bodies
        self.kernels: list[KernelUse] = []
        self._sources: dict[tuple[str, tuple[Parameter, ...]], KernelSource] = {}
        self._source_of: dict[int, tuple[EmittedKernel, KernelSource]] = {}
        """By the identity of a kernel: equal layers have the same."""
        self._constants = [self.builder.constant(values) for values in assignment.constant_bytes()]
        self._outputs = len(assignment.parameters)
        self._arena = self._outputs + len(assignment.outputs)
        self.arena_size = assignment.arena_size
        module = assignment.module
        self.partitions = module.num_partitions if module.replica_count * module.num_partitions > 1 else 0
        self._scratch = 0
        self._work = current()
        self._computation = module.entry
        """The computation of the current instruction."""
        self._given_operands: dict[HloInstruction, list[Argument]] = {}
        """The operands of instructions without assigned buffers: on unpacked operands, or in an output fusion."""
        self._given_results: dict[HloInstruction, list[Argument]] = {}
        self._followers: list[HloInstruction] = []
        """The instructions that follow the current instruction in an output fusion."""
        self._pieces: Pieces | None = None
        """The pieces of that output fusion."""
        self._inlined: dict[int, tuple[FusedBody, Sequence[Argument]]] = {}
        """The operands that the kernel of the current scatter computes itself."""

    @property
    def builder(self) -> ProgramBuilder:
        """See `LoweringContext`."""
        return self._builder

    def computation(self, computation: HloComputation) -> None:
        for instruction in computation.instructions:
            if has_rows(instruction):
                self.builder.origin = instruction
                self._computation = computation
                self._rows_of(instruction)
                self._work.advance()
        self.builder.origin = computation.root
        self._copies(self.assignment.copies_at_end(computation))

    def _rows_of(self, instruction: HloInstruction) -> None:
        rule = _RULES.get(instruction.opcode)
        if rule is not None:
            rule(self, instruction)
            return
        row = self.builder.own_rule(instruction.opcode) or lowering_rule(instruction.opcode)
        if row is None:
            raise UnsupportedError(
                f"the Numba backend has no row for {instruction.opcode.value} ({instruction.name}) after fusion"
            )
        with self._dense(instruction) as seen, self._naming(instruction):
            row(self, seen)

    @contextmanager
    def _naming(self, instruction: HloInstruction) -> Iterator[None]:
        """Name the instruction in the error of a builder that cannot have a row; the builder does not know it."""
        try:
            yield
        except LoweringRefused as error:
            raise UnsupportedError(f"{instruction.opcode.value} {instruction.name}: {error}") from None

    def place(self, place: BufferSlice) -> Argument:
        """A buffer as an argument of the program."""
        allocation = place.allocation
        if allocation.kind is AllocationKind.PARAMETER:
            return pointer(allocation.index, place.offset)
        if allocation.kind is AllocationKind.OUTPUT:
            return pointer(self._outputs + allocation.index, place.offset)
        if allocation.kind is AllocationKind.ARENA:
            return pointer(self._arena, self.assignment.arena_offset(allocation) + place.offset)
        constant = self._constants[allocation.index]
        return Argument(constant.kind, constant.base, constant.word + place.offset)

    def _copies(self, copies: Sequence[BufferCopy]) -> None:
        for copy in copies:
            self.copy(self.place(copy.target), self.place(copy.source), copy.target.size, "program")

    def copy(self, target: Argument, source: Argument, nbytes: int, name: str) -> None:
        """See `LoweringContext`."""
        if nbytes < shared_copy():
            self.builder.copy(target, source, nbytes)
        else:
            self.kernel(f"{name} copies", emit_copy(nbytes), [source], [target])

    def _fusion(self, instruction: HloInstruction) -> None:
        outputs = self.assignment.leaves(instruction)
        operands = self.assignment.operand_leaves(instruction)
        if all(s.size == 0 for s in outputs):
            return
        if is_outlined_loop(instruction):
            self._native_loop(instruction)
            return
        if is_output_fusion(instruction):
            self._output_fusion(instruction)
            return
        scatter = scatter_of(instruction)
        if scatter is not None:
            self._input_fusion(instruction, scatter)
            return
        sharing = {k: operands.index(s) for k, s in enumerate(outputs) if s in operands and s.size}
        if sharing and self.bodies.is_identity(instruction):
            return  # a copy of a buffer onto itself
        kernel = self.bodies.kernel(instruction, sharing)
        for operand, output in kernel.copied_operands:
            target, source = self.place(outputs[output]), self.place(operands[operand])
            self.copy(target, source, outputs[output].size, instruction.name)
        self.kernel(instruction.name, kernel, [self.place(s) for s in operands], [self.place(s) for s in outputs])

    def _native_loop(self, instruction: HloInstruction) -> None:
        """One kernel. A result that is not stored over its operand first gets a copy of the initial value, but for the
        elements that the loop stores to before it reads them."""
        fused = instruction.attributes.calls
        operands = [self._place_or_nowhere(s) for s in self.assignment.operand_leaves(instruction)]
        outputs = self.assignment.leaves(instruction)
        self._scratch = 0
        with spanning(Track.COMPILING, f"emit {instruction.name}"):
            loop = emit_native_loop(fused, self.bodies)
        for output, operand in overwritten(fused).items():
            target, source = self._place_or_nowhere(outputs[output]), operands[operand]
            if target != source:
                self._initial(target, source, outputs[output].size, instruction.name, loop.kernel, output)
        operands += [self._scratch_bytes(nbytes) for nbytes in loop.scratch]
        operands += [self.builder.constant(values) for values in loop.constants]
        places = [self._place_or_nowhere(s) for s in outputs]
        if loop.watch is None:
            self.kernel(instruction.name, loop.kernel, operands, places)
            return
        operands.append(watch())
        arguments = [_argument(p, operands, places) for p in loop.kernel.parameters]
        kernel = self._scheduled(instruction.name, loop.kernel)
        grain = self._grain(kernel, self._share(instruction.name)) if kernel.extent > 1 else 0
        self.builder.native_loop(self._source(kernel), arguments, kernel.extent, grain)
        self._used(instruction.name, kernel)

    def _initial(
        self, target: Argument, source: Argument, nbytes: int, name: str, kernel: EmittedKernel, output: int
    ) -> None:
        """Copy the initial value of a result, as far as the kernel needs it."""
        parameters = kernel.parameters
        array = next((p for p in parameters if isinstance(p, PointerParameter) and p.output == output), None)
        begin = end = 0
        if array is not None and nbytes >= _LEAST_LEFT_OUT:
            sizes = {p.name: p.value for p in parameters if isinstance(p, SizeParameter)}
            first, count = stored_first(kernel.program.body, array.name, sizes)
            width = array.element_type.byte_width
            if count * width >= _LEAST_LEFT_OUT and first >= 0 and (first + count) * width <= nbytes:
                begin, end = first * width, (first + count) * width
        for start, stop in ((0, begin), (end, nbytes)):
            if start < stop:
                self.copy(_moved(target, start), _moved(source, start), stop - start, name)

    def operands(self, instruction: HloInstruction) -> list[Argument]:
        """See `LoweringContext`."""
        found = self._given_operands.get(instruction)
        if found is not None:
            return found
        return [self._place_or_nowhere(s) for s in self.assignment.operand_leaves(instruction)]

    def results(self, instruction: HloInstruction) -> list[Argument]:
        """See `LoweringContext`."""
        found = self._given_results.get(instruction)
        if found is not None:
            return found
        return [self._place_or_nowhere(s) for s in self.assignment.leaves(instruction)]

    def is_read(self, instruction: HloInstruction, leaf: int) -> bool:
        """See `LoweringContext`."""
        users = self._computation.users.get(instruction, ())
        elements = [u.attributes.index for u in users if u.opcode is Opcode.GET_TUPLE_ELEMENT]
        return not users or len(elements) < len(users) or leaf in elements

    @contextmanager
    def _dense(self, instruction: HloInstruction) -> Iterator[HloInstruction]:
        """The instruction in the form that its rule expects: on dense row-major arrays. A kernel unpacks other arrays
        into scratch memory before it, and another one packs them after it."""
        self._scratch = 0
        inputs = [leaf for operand in instruction.operands for leaf in operand.shape.leaves()]
        outputs = list(instruction.shape.leaves())
        as_it_is = keeps_layouts(instruction)  # a custom call that has declared its layouts
        if as_it_is or all(shape.array_layout.is_row_major for shape in (*inputs, *outputs)):
            yield instruction
            return
        seen = replace(
            instruction,
            operands=tuple(replace(o, shape=o.shape.with_default_layout()) for o in instruction.operands),
            shape=instruction.shape.with_default_layout(),
        )
        here, there = self.operands(instruction), self.results(instruction)
        self._given_operands[seen] = [
            self._unpacked(f"{instruction.name} unpacks operand {k}", shape, place)
            for k, (shape, place) in enumerate(zip(inputs, here, strict=True))
        ]
        self._given_results[seen] = [
            place if physical_layout_of(shape) is None else self._scratch_bytes(shape.with_default_layout().byte_size)
            for shape, place in zip(outputs, there, strict=True)
        ]
        yield seen
        for k, (shape, place) in enumerate(zip(outputs, there, strict=True)):
            dense = self._given_results[seen][k]
            if dense is not place:
                self._convert(f"{instruction.name} packs result {k}", shape.with_default_layout(), dense, shape, place)

    def _unpacked(self, name: str, shape: Shape, place: Argument) -> Argument:
        if physical_layout_of(shape) is None:
            return place
        dense = shape.with_default_layout()
        scratch = self._scratch_bytes(dense.byte_size)
        self._convert(name, shape, place, dense, scratch)
        return scratch

    def _convert(self, name: str, source: Shape, origin: Argument, target: Shape, destination: Argument) -> None:
        """A kernel that copies an array from one layout into another."""
        if not source.num_elements:
            return
        parameter = make_parameter(0, source)
        copy = make_instruction(Opcode.COPY, (parameter,), shape=target)
        kernel = emit_fusion(canonical(HloComputation("copy", (parameter, copy), copy)), {})
        self.kernel(name, kernel, [origin], [destination])

    def _place_or_nowhere(self, place: BufferSlice) -> Argument:
        """The place as an argument. A program with an empty arena has none, though empty arrays are assigned to it."""
        return self.place(place) if place.size else NOWHERE

    def _input_fusion(self, fusion: HloInstruction, scatter: HloInstruction) -> None:
        """The rows of a scatter with a kernel that computes some of its operands."""
        body = fusion.attributes.calls
        inputs = [self._place_or_nowhere(s) for s in self.assignment.operand_leaves(fusion)]
        results = [self._place_or_nowhere(s) for s in self.assignment.leaves(fusion)]
        outputs = {leaf_of(body.roots[k])[1]: place for k, place in enumerate(results)}

        def given(operands: Sequence[HloInstruction]) -> list[Argument]:
            return [inputs[o.attributes.number] if o.opcode is Opcode.PARAMETER else NOWHERE for o in operands]

        self._given_operands[scatter] = given(scatter.operands)
        self._given_results[scatter] = [outputs[k] for k, _ in enumerate(scatter.shape.leaves())]
        for number, value in enumerate(scatter.operands):
            while value.opcode in (Opcode.RESHAPE, Opcode.BITCAST):
                (value,) = value.operands
            if value.opcode is Opcode.FUSION:
                self._inlined[number] = self.bodies.of(value), given(value.operands)
        self.builder.origin = scatter
        self._rows_of(scatter)
        self._inlined = {}

    def inlined(self, instruction: HloInstruction) -> Mapping[int, tuple[FusedBody, Sequence[Argument]]]:
        """See `LoweringContext`."""
        return self._inlined

    def scratch(self, element_type: ElementType, count: int) -> Argument:
        """See `LoweringContext`."""
        return self._scratch_bytes(count * element_type.byte_width)

    def device_word(self, number: int) -> Argument:
        """See `LoweringContext`. The block of these words is the base after the arena."""
        return pointer(self._arena + 1, 4 * number)

    def _scratch_bytes(self, nbytes: int) -> Argument:
        """Scratch memory. Rows run one after the other, so they all use the same."""
        if not nbytes:
            return NOWHERE
        place = pointer(self._arena, self.assignment.arena_size + self._scratch)
        self._scratch += -(-nbytes // ALIGNMENT) * ALIGNMENT
        self.arena_size = max(self.arena_size, self.assignment.arena_size + self._scratch)
        return place

    def kernel(
        self, name: str, kernel: EmittedKernel, operands: Sequence[Argument], outputs: Sequence[Argument]
    ) -> None:
        """See `LoweringContext`."""
        if not kernel.extent:  # an empty array, even if its buffer has bytes of padding
            return
        kernel = self._scheduled(name, kernel.in_stages())
        arguments = [_argument(p, operands, outputs) for p in kernel.parameters]
        grain = self._grain(kernel, self._share(name))
        self.builder.kernel(self._source(kernel), arguments, kernel.extent, grain, kernel.nanoseconds)
        self._used(name, kernel)

    def _scheduled(self, name: str, kernel: EmittedKernel, *, in_pieces: bool = False) -> EmittedKernel:
        """The kernel under the schedule that the module has for it."""
        given = (*self.schedules.get(EVERY, ()), *self.schedules.get(name, ()))
        if not given:
            return kernel
        if in_pieces and not all(isinstance(step, Vectors) for step in self.schedules.get(name, ())):
            raise ScheduleError(f"{name} is computed in pieces, with others: it has the step Vectors alone")
        try:
            made: EmittedKernel = load(".schedule.given", __package__).scheduled(kernel, given)
            return made
        except ScheduleError as error:
            raise ScheduleError(f"the schedule of {name}: {error}") from None

    def _share(self, name: str) -> int | None:
        """How long a thread's share of a kernel should take, by the module's attributes."""
        given = (*self.schedules.get(EVERY, ()), *self.schedules.get(name, ()))
        return next((step.nanoseconds for step in reversed(given) if isinstance(step, Share)), None)

    def check_names(self) -> None:
        """ScheduleError if the module has a schedule for a kernel that is not there."""
        names = dict.fromkeys(use.instruction for use in self.kernels)
        if unknown := [name for name in self.schedules if name not in names and name != EVERY]:
            raise ScheduleError(f"no kernel {', '.join(unknown)}; the program has {', '.join(names) or 'none'}")

    def _used(self, name: str, kernel: EmittedKernel) -> None:
        values = tuple((p.name, p.value) for p in kernel.parameters if not isinstance(p, PointerParameter))
        notes, bits, share = kernel.program.notes, kernel.program.vector_bits, self._share(name)
        if bits or share is not None:
            more = [*([Vectors(bits)] if bits else []), *([] if share is None else [Share(share)])]
            notes = (*(notes or (None,)), *more)
        self.kernels.append(KernelUse(name, kernel.source, values, notes))

    def _grain(self, kernel: EmittedKernel, share: int | None) -> int:
        """The least number of iterations of the outermost loop for a thread; 0 if no other thread may take part."""
        pieces = 0 if kernel.is_serial else self._pieces_of(kernel.nanoseconds / kernel.extent, share)
        return pieces and max(kernel.least, pieces)

    def _pieces_of(self, nanoseconds: float, share: int | None = None) -> int:
        """How many pieces of work that take so long are worth a thread; 0 if no other thread may take part."""
        if share is None:
            share = self._share(EVERY)
        return math.ceil((PIECE_NANOSECONDS if share is None else share) / max(nanoseconds, 0.1))

    def _source(self, kernel: EmittedKernel) -> KernelSource:
        known = self._source_of.get(id(kernel))
        if known is None:
            declared = kernel.source, tuple([_declared(p) for p in kernel.parameters])
            found = self._sources.get(declared)
            if found is None:
                found = self._sources[declared] = source_of(kernel)
            known = self._source_of[id(kernel)] = kernel, found  # it lives as long as its identity is known
        return known[1]

    def _dot(self, instruction: HloInstruction) -> None:
        with self._dense(instruction) as seen:
            lhs, rhs = self.operands(seen)
            (output,) = self.results(seen)
            kernel = None if self._followers else product_kernel(seen, target_machine())
            if kernel is None and instruction.name in self.schedules and not self._followers:
                kernel = tiles(seen)  # instead of BLAS
            if kernel is not None:
                self.kernel(instruction.name, kernel, [lhs, rhs], [output])
                return
            self.product(gemm_of(seen), lhs, rhs, output)

    def product(self, gemm: Gemm, a: Argument, b: Argument, c: Argument) -> None:
        """See `LoweringContext`."""
        followers, self._followers = self._followers, []
        self.builder.gemm(gemm, a, b, c, [self._stage_of(member, 1) for member in followers])

    def _output_fusion(self, fusion: HloInstruction) -> None:
        """The row of the first instruction, with its followers; a chain of products is one row too."""
        memory, pieces = self.bodies.memory(fusion), pieces_of(fusion)
        inputs = [self._place_or_nowhere(s) for s in self.assignment.operand_leaves(fusion)]
        results = [self._place_or_nowhere(s) for s in self.assignment.leaves(fusion)]
        in_parts = pieces is not None and pieces.parts > 0
        assert self.has_pieces or not in_parts, "the pipeline was told that the program runs kernels piece by piece"

        def at(leaf: Leaf) -> Argument:
            there = memory.placements[leaf]
            if there.output is not None:
                return results[there.output]
            own = results[-1] if memory.part else NOWHERE
            return own._replace(word=own.word + there.offset, move=(there.row, memory.part if in_parts else there.row))

        first, *self._followers = memory.members
        for member in memory.members:
            self._given_operands[member] = [
                inputs[o.attributes.number] if o.opcode is Opcode.PARAMETER else at(leaf_of(o)) for o in member.operands
            ]
            self._given_results[member] = [at((member, k)) for k, _ in enumerate(member.shape.leaves())]
        self.builder.origin, self._pieces = first, pieces
        if first.opcode is Opcode.DOT and pieces is not None:
            self._followers, cut = [], pieces.cut
            kernels = {m: self._product_kernel(fusion, m, cut) for m in memory.members if m.opcode is Opcode.DOT}
            stages = [self._stage_of(m, cut.matrices * cut.rows, kernels.get(m)) for m in memory.members]
            grain = self._pieces_of(sum(stage.nanoseconds for stage in stages) / cut.pieces)
            self.builder.chain(stages, cut, grain and max(grain, pieces.least), in_parts=in_parts)
        else:
            self._rows_of(first)
        assert not self._followers, f"{first.name} has a row that nothing can follow"
        self._pieces = None

    def _product_kernel(self, fusion: HloInstruction, dot: HloInstruction, cut: Cut) -> EmittedKernel:
        """A product of a chain: an iteration for each piece."""
        rows = cut.step
        if cut.rows == 1:  # pieces are matrices
            rows = -(-strides_of(dot).m // rows_of_tile()) * rows_of_tile()
        users = fusion.attributes.calls.users[dot]
        wanted = looked_at(dot, users) if dot.shape.rank == len(dot.attributes.lhs_batch_dims) + 2 else EVERYTHING
        return tiles(dot, rows, wanted, _given_band(fusion, dot))

    def _stage_of(self, member: HloInstruction, rows: int, product: EmittedKernel | None = None) -> Stage:
        """A member of an output fusion: `product`, or the kernel of a fusion. Results of the fusion may be stored over
        operands."""
        operands, results = self.operands(member), self.results(member)
        if product is not None:
            return self._stage(member.name, product, operands, results, 0, member)
        places = {k: place for k, (place, shape) in enumerate(zip(results, member.shape.leaves())) if shape.byte_size}
        sharing = {k: operands.index(place) for k, place in places.items() if place in operands}
        kernel = self.bodies.kernel(member, sharing)
        return self._stage(member.name, kernel, operands, results, kernel.extent // rows, member)

    def _stage(
        self, name: str, kernel: EmittedKernel, operands: Sequence[Argument], outputs: Sequence[Argument],
        iterations: int, origin: HloInstruction | None,
    ) -> Stage:  # fmt: skip
        kernel = self._scheduled(name, kernel, in_pieces=True)
        arguments = tuple(_argument(p, operands, outputs) for p in kernel.parameters)
        source, extent = self._source(kernel), kernel.extent
        self._used(name, kernel)
        return Stage(source, arguments, extent, self._grain(kernel, None), kernel.nanoseconds, origin, iterations)

    def by_pieces(self, pieces: int, steps: Sequence[Step]) -> None:
        """See `LoweringContext`."""
        followers, self._followers = self._followers, []
        steps = [step for step in steps if step.kernel.extent]
        used = [memory for step in steps for memory in (*step.operands, *step.outputs)]
        own = list(dict.fromkeys(memory for memory in used if isinstance(memory, PieceMemory)))
        cut, least = (Cut(pieces, 1, 1), 1) if self._pieces is None else (self._pieces.cut, self._pieces.least)
        after = [self._stage_of(member, cut.pieces) for member in followers]
        whole = sum(step.kernel.nanoseconds for step in steps) + sum(stage.nanoseconds for stage in after)
        grain = self._pieces_of(whole / cut.pieces)
        most = most_parts(sum(memory.nbytes for memory in own))
        grain = grain and max(grain, least, -(-cut.pieces // most))
        parts = parts_of(cut, grain)
        scratch = {
            memory: self._scratch_bytes(parts * memory.nbytes + memory.more)._replace(move=(memory.nbytes,) * 2)
            for memory in own
        }

        def known(places: Sequence[Argument | PieceMemory]) -> list[Argument]:
            return [scratch[place] if isinstance(place, PieceMemory) else place for place in places]

        if not followers and not own and len(steps) <= 1:
            for step in steps:
                self.kernel(step.name, step.kernel, known(step.operands), known(step.outputs))
            return
        stages = [
            self._stage(s.name, s.kernel, known(s.operands), known(s.outputs), s.kernel.extent // cut.pieces,
                        self.builder.origin)
            for s in steps
        ]  # fmt: skip
        self.builder.chain([*stages, *after], cut, grain, in_parts=True)

    def _while(self, instruction: HloInstruction) -> None:
        condition, body = instruction.attributes.condition, instruction.attributes.body
        builder = self.builder
        self._copies(self.assignment.copies_before(instruction))
        again, done = builder.label(), builder.label()
        builder.place(again)
        self.computation(condition)
        builder.jump_if_false(self._scalar(condition.root), done)
        self.computation(body)
        builder.jump(again)
        builder.place(done)

    def _scalar(self, instruction: HloInstruction) -> Argument:
        """The argument from which a jump reads its condition. A packed condition is unpacked first."""
        self._scratch = 0
        place = self.place(self.assignment.slice(instruction))
        return self._unpacked(f"{instruction.name} is unpacked", instruction.shape, place)

    def _conditional(self, instruction: HloInstruction) -> None:
        builder = self.builder
        self._copies(self.assignment.copies_before(instruction))
        branches = instruction.attributes.branch_computations
        index = instruction.operands[0]
        where = self._scalar(index)
        labels = [builder.label() for _ in branches]
        done = builder.label()
        if index.shape.element is ElementType.PRED:
            builder.jump_if_false(where, labels[1])
        else:
            builder.switch(where, labels)
        for label, branch in zip(labels, branches, strict=True):
            builder.place(label)
            self.computation(branch)
            builder.jump(done)
        builder.place(done)

    def _call(self, instruction: HloInstruction) -> None:
        self._copies(self.assignment.copies_before(instruction))
        self.computation(instruction.attributes.to_apply)


_RULES: Mapping[Opcode, Callable[[_Lowering, HloInstruction], None]] = {
    Opcode.FUSION: _Lowering._fusion,
    Opcode.DOT: _Lowering._dot,
    Opcode.WHILE: _Lowering._while,
    Opcode.CONDITIONAL: _Lowering._conditional,
    Opcode.CALL: _Lowering._call,
}
"""Not in the object: its own methods in it would keep all that it refers to until the collector finds the circle."""
assert _RULES.keys() == LOWERED.keys()


def _given_band(fusion: HloInstruction, dot: HloInstruction) -> GivenBand | None:
    """The band of a product's left-hand side that a mask leaves; None if there is no mask."""
    lhs, attributes = dot.operands[0], dot.attributes
    rank = lhs.shape.rank
    if rank != len(attributes.lhs_batch_dims) + 2 or tuple(attributes.lhs_batch_dims) != tuple(range(rank - 2)):
        return None
    band = repeated_outside(lhs, (fusion,))
    if band == EVERYTHING:
        return None
    transposed = tuple(attributes.lhs_contracting_dims) == (rank - 2,)
    return GivenBand(band.transposed() if transposed else band, transposed)


def _moved(place: Argument, offset: int) -> Argument:
    """The address so many bytes further."""
    return Argument(place.kind, place.base, place.word + offset)


def _argument(parameter: KernelParameter, operands: Sequence[Argument], outputs: Sequence[Argument]) -> Argument:
    if isinstance(parameter, SizeParameter):
        return size(parameter.value)
    if isinstance(parameter, PointerParameter):
        if parameter.output is not None:
            return outputs[parameter.output]
        assert parameter.operand is not None
        return operands[parameter.operand]
    return scalar(parameter.value, parameter.element_type.value)


def source_of(kernel: EmittedKernel) -> KernelSource:
    """The text of a kernel, and the types of its parameters."""
    declared = tuple([_declared(parameter) for parameter in kernel.parameters])
    return KernelSource(kernel.program.name, kernel.source, declared, program=kernel.program)


def _declared(parameter: KernelParameter) -> Parameter:
    if isinstance(parameter, SizeParameter):
        return Parameter("size", "s64")
    kind = "pointer" if isinstance(parameter, PointerParameter) else "scalar"
    return Parameter(kind, storage_of(parameter.element_type).value)  # type: ignore[arg-type]

