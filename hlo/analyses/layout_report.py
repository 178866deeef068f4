"""The cost of the layouts of a module: each buffer's bytes with and without padding, the worst first.

Two views. *As written*: the layouts of the module before any pass; `report_as_written` documents which buffers count.
*For a target*: the buffers of the program after all passes, from its `MemoryReport`.

For each buffer that wastes memory `layout_search.py` looks for a better order of its dimensions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..buffers.allocation import AllocationKind
from ..buffers.assignment import BufferAssignment
from ..buffers.values import is_alias
from ..ir import HloComputation, HloInstruction, HloModule, Metadata
from ..layout import Layout
from ..opcode import Opcode
from ..shape import Shape
from ..support.lazy import lazy_property
from ..support.records import dataclass
from ..target import Target
from .layout_search import BetterLayout, ChooseLayout, better_layout

_PASSED_ON = frozenset(
    {
        *(Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST, Opcode.OPT_BARRIER, Opcode.AFTER_ALL),
        *(Opcode.ADD_DEPENDENCY, Opcode.DOMAIN, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL, Opcode.SEND),
        *(Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE, Opcode.COPY_DONE, Opcode.SEND_DONE),
        *(Opcode.RECV_DONE, Opcode.ALL_GATHER_DONE, Opcode.ALL_REDUCE_DONE, Opcode.COLLECTIVE_PERMUTE_DONE),
    }
)
"""Ops with results that are bytes of operands, or bytes that a called computation wrote."""

_NEW_LEAF = {Opcode.COPY_START: 0, Opcode.ALL_GATHER_START: 1, Opcode.COLLECTIVE_PERMUTE_START: 1, Opcode.RECV: 0}
"""Ops with a tuple that also holds operands and handles: the element that is written."""

_CALLERS = frozenset({Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL, Opcode.ASYNC_START})
"""Ops that call computations with buffers of their own. Computations of fusions, reductions and the like have none."""


@dataclass(frozen=True, slots=True)
class BufferUse:
    """One buffer. `where` is the computation that writes it, or its purpose: a parameter, an output, a constant, or
    temporary."""

    name: str
    where: str
    shape: Shape | None
    """None for scratch memory that holds no value of the program."""
    logical_bytes: int
    physical_bytes: int
    space: int
    better: BetterLayout | None = None
    metadata: Metadata | None = None
    """The metadata of the instruction that writes it: its operation and source line."""

    @property
    def wasted_bytes(self) -> int:
        """Bytes of padding; negative if packing saves more than padding costs."""
        return self.physical_bytes - self.logical_bytes

    @property
    def factor(self) -> float:
        """The bytes of the buffer divided by the bytes of its elements; 1 for an empty buffer."""
        if self.logical_bytes == 0:
            return 1.0 if self.physical_bytes == 0 else float("inf")
        return self.physical_bytes / self.logical_bytes


@dataclass(frozen=True, slots=True)
class SpaceTotal:
    """All buffers of one memory space. `peak` is the most that is needed at once, if known."""

    space: int
    name: str
    buffers: int
    logical_bytes: int
    physical_bytes: int
    peak: int | None = None


@dataclass(frozen=True)
class LayoutReport:
    """The buffers of a module, those that waste most first."""

    module: str
    target: str
    """The target that it was compiled for, or "as written"."""
    buffers: tuple[BufferUse, ...]
    names: tuple[tuple[int, str], ...] = ()
    """The target's names of its memory spaces."""
    peaks: tuple[tuple[int, int], ...] = ()
    """By memory space: the most bytes that are needed at once."""

    @lazy_property
    def spaces(self) -> tuple[SpaceTotal, ...]:
        """Totals, by number of the memory space."""
        names, peaks = dict(self.names), dict(self.peaks)
        totals = []
        for number in sorted({b.space for b in self.buffers}):
            here = [b for b in self.buffers if b.space == number]
            logical, physical = sum(b.logical_bytes for b in here), sum(b.physical_bytes for b in here)
            totals.append(SpaceTotal(number, names.get(number, ""), len(here), logical, physical, peaks.get(number)))
        return tuple(totals)

    @property
    def logical_bytes(self) -> int:
        return sum(b.logical_bytes for b in self.buffers)

    @property
    def physical_bytes(self) -> int:
        return sum(b.physical_bytes for b in self.buffers)

    @property
    def saved_bytes(self) -> int:
        """The bytes that all proposals together would save."""
        return sum(b.better.saved for b in self.buffers if b.better)

    def to_json(self) -> dict[str, Any]:
        """The report for machines: bytes are whole numbers, layouts and shapes XLA's text."""
        return {
            "module": self.module,
            "target": self.target,
            "logical_bytes": self.logical_bytes,
            "physical_bytes": self.physical_bytes,
            "saved_bytes": self.saved_bytes,
            "memory_spaces": [
                {
                    "number": s.space,
                    "name": s.name,
                    "buffers": s.buffers,
                    "logical_bytes": s.logical_bytes,
                    "physical_bytes": s.physical_bytes,
                    "peak_bytes": s.peak,
                }
                for s in self.spaces
            ],
            "buffers": [
                {
                    "name": b.name,
                    "where": b.where,
                    "shape": None if b.shape is None else b.shape.to_text(),
                    "logical_bytes": b.logical_bytes,
                    "physical_bytes": b.physical_bytes,
                    "memory_space": b.space,
                    "op_name": b.metadata.op_name if b.metadata else "",
                    "source_file": b.metadata.source_file if b.metadata else "",
                    "source_line": b.metadata.source_line if b.metadata else 0,
                    "better": None
                    if b.better is None
                    else {
                        "layout": str(b.better.layout),
                        "physical_bytes": b.better.byte_size,
                        "saved_bytes": b.better.saved,
                    },
                }
                for b in self.buffers
            ],
        }


def report_as_written(module: HloModule, choose: ChooseLayout | None = None) -> LayoutReport:
    """The buffers of a module in the layouts that it has.

    Counted are: every array that an instruction writes, one for each leaf of the result, in the entry and in the
    computations that loops, branches, calls and asynchronous operations run, each computation once; the entry's
    parameters and all constants too. Not counted are: values inside fusions and inside the computations of reductions,
    sorts, scatters and maps, which are in registers; instructions that pass bytes on (tuple, get-tuple-element,
    bitcast, reshape between row-major arrays, while, conditional, call, the ends of asynchronous operations); tokens.
    """
    buffers = [
        _buffer(name, computation.name, shape, instruction.metadata, choose)
        for computation in _with_buffers(module)
        for instruction in computation.instructions
        for name, shape in _written(instruction, computation is module.entry)
    ]
    return LayoutReport(module.name, "as written", _worst_first(buffers))


def with_entry_on_device(module: HloModule, target: Target) -> HloModule:
    """The module with the target's layouts for arguments and results too, as they are on the device. Layouts that the
    module states are kept."""

    def completed(layouts: tuple[Layout | None, ...], shapes: Iterable[Shape]) -> tuple[Layout | None, ...]:
        leaves = [leaf for shape in shapes for leaf in shape.leaves()]
        given = layouts or (None,) * len(leaves)
        return tuple(
            target.buffer_layout(leaf) if layout is None else layout for layout, leaf in zip(given, leaves, strict=True)
        )

    return replace(
        module,
        entry_parameter_layouts=completed(module.entry_parameter_layouts, (p.shape for p in module.entry.parameters)),
        entry_result_layouts=completed(module.entry_result_layouts, (module.entry.root.shape,)),
    )


def report_of_program(assignment: BufferAssignment, target: Target) -> LayoutReport:
    """The buffers of a program after all passes for a target: each buffer of the buffer assignment, for all values that
    share it, with the shape of the first. An order is better if the target needs fewer bytes for it; the target chooses
    new tiles for each order. The dimensions of a buffer are in the order of memory, which may differ from the
    source's."""
    memory = assignment.report()
    written = {i.name: i.metadata for i in assignment.slices}
    buffers = []
    for row in memory.rows:
        name = row.holders[0] + (f" and {len(row.holders) - 1} more" if len(row.holders) > 1 else "")
        metadata = next((m for h in row.holders if (m := written.get(h.split("{")[0]))), None)
        kind = row.slice.allocation.kind
        where = "temporary" if kind is AllocationKind.ARENA else kind.value
        shape, logical = row.shape, row.logical_bytes
        padded = shape is not None and shape.physical_form.num_elements > shape.num_elements
        better = better_layout(shape, target.buffer_layout) if shape is not None and padded else None
        buffers.append(BufferUse(name, where, shape, logical, row.physical_bytes, row.space, better, metadata))
    names = tuple((s.number, s.name) for s in memory.spaces)
    held = Counter[int]()  # while the program runs
    for row in memory.rows:
        if row.slice.allocation.kind is not AllocationKind.ARENA:
            held[row.space] += row.physical_bytes
    peaks = tuple((s.number, held[s.number] + s.arena_peak) for s in memory.spaces)
    return LayoutReport(memory.module, target.name, _worst_first(buffers), names, peaks)


def _buffer(name: str, where: str, shape: Shape, metadata: Metadata | None, choose: ChooseLayout | None) -> BufferUse:
    padded = shape.physical_form.num_elements > shape.num_elements
    better = better_layout(shape, choose) if padded else None
    space = shape.array_layout.memory_space
    return BufferUse(name, where, shape, shape.logical_byte_size, shape.byte_size, space, better, metadata)


def _with_buffers(module: HloModule) -> Sequence[HloComputation]:
    """The computations with instructions that have buffers, the entry first."""
    found: dict[HloComputation, None] = {module.entry: None}
    pending = [module.entry]
    while pending:
        for instruction in pending.pop().instructions:
            if instruction.opcode in _CALLERS:
                for called in instruction.called_computations():
                    if called not in found:
                        found[called] = None
                        pending.append(called)
    return tuple(found)


def _written(instruction: HloInstruction, in_entry: bool) -> Iterator[tuple[str, Shape]]:
    """The arrays that an instruction writes to memory, with their names."""
    opcode, shape, name = instruction.opcode, instruction.shape, instruction.name
    if opcode in _PASSED_ON or is_alias(instruction) or (opcode is Opcode.PARAMETER and not in_entry):
        return
    if shape.is_array:
        yield name, shape
        return
    first = 0
    if opcode in _NEW_LEAF and len(shape.elements) > 1:
        first = _NEW_LEAF[opcode]
        shape = shape.elements[first]
        if shape.is_array:
            yield f"{name}{{{first}}}", shape
            return
        name = f"{name}{{{first}}}"
    for number, leaf in enumerate(shape.leaves()):
        yield f"{name}{{{number}}}", leaf


def _worst_first(buffers: Sequence[BufferUse]) -> tuple[BufferUse, ...]:
    """Sorted by bytes wasted, then by bytes, then in program order."""
    return tuple(sorted(buffers, key=lambda b: (-b.wasted_bytes, -b.physical_bytes)))
