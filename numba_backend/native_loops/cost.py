"""Choose the loops that are native: the cost model.

A native loop runs on one thread and calls no BLAS; it saves the program's table, some 10 ns a row, and keeps small
state out of memory. So a loop is native if nothing in its body is large enough for a second thread or for BLAS to pay,
and if its text is not too long for the compiler. The numbers of nanoseconds are in `../cost.py`.

Threads share a loop over a batch of problems as a whole: each runs all steps for its part of the batch. So there it
does not matter how large the batch makes a kernel.
"""

from __future__ import annotations

from ...hlo.analyses.batch import Batch, NotABatch, batch_of
from ...hlo.analyses.short_sums import is_between
from ...hlo.analyses.trip_count import induction_variable
from ...hlo.buffers.values import is_alias
from ...hlo.effects import has_side_effect
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ...hlo.support.records import dataclass
from ..cost import KERNEL_OF_LOOP, MULTIPLICATION, OPERATION, OPERATION_OF_FUNCTION, PARTED, UPDATED
from ..cost import UNKNOWN_TRIPS as TRIPS_BY_DATA
from ..dot import is_gemm
from ..policy.products import is_small
from ..policy.small_products import MOST_VECTOR_WORK, MOST_WORK, SUPPORTED, work_of
from .joining import part_of
from .memory import MOST_LOCAL_ELEMENTS

MOST_INSTRUCTIONS = 2_500
"""Instructions in a loop's kernels, all together: beyond, compiling takes longer than most programs run."""

_CONTROL = frozenset((Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL))


MOST_MEMBER_WORK = 1 << 9
"""Multiplications of a product for one member of a batch; beyond, BLAS does better with the whole batch."""

MOST_SHARED = 0.05
"""The share of a step's work that each part may do for itself."""

FEWEST_LARGE_MEMBERS = 64
"""Least members of a batch if each kernel is large enough for several threads: all threads must find work."""

UNKNOWN_TRIPS = 100
"""Iterations of a loop with an unknown trip count."""


def is_native(loop: HloInstruction) -> bool:
    """True for a `while` that should be one kernel."""
    return _is_cheap(loop) or batch_for(loop) is not None


def batch_for(loop: HloInstruction) -> Batch | None:
    """The batch of problems that a native loop should run in parts, one after the other or on several threads; or
    None."""
    try:
        batch = batch_of(loop, MOST_LOCAL_ELEMENTS)
    except NotABatch:
        return None
    budget = _BatchBudget(batch)
    if not all(_fits(c, budget) for c in loop.called_computations()) or budget.shared > MOST_SHARED * budget.parted:
        return None
    counter = induction_variable(loop)
    trips = UNKNOWN_TRIPS if counter is None else counter.trip_count
    if _is_cheap(loop):
        pays = budget.parted * trips >= PARTED
    else:
        pays = batch.size >= FEWEST_LARGE_MEMBERS
    return batch if pays else None


def _is_cheap(loop: HloInstruction) -> bool:
    budget = _Budget()
    return all(_fits(c, budget) for c in loop.called_computations())


def can_be_native(loop: HloInstruction) -> bool:
    """True for a `while` that could be one kernel, whether that pays or not."""
    return all(_fits(c, None) for c in loop.called_computations())


@dataclass(slots=True)
class _Budget:
    """The instructions that a loop may still have."""

    instructions: int = MOST_INSTRUCTIONS

    def takes(self, instruction: HloInstruction, instructions: int, nanoseconds: float) -> bool:
        """True if a kernel of so many instructions and nanoseconds is cheap enough to be a part of the loop."""
        self.instructions -= instructions
        return self.instructions >= 0 and nanoseconds < KERNEL_OF_LOOP

    def takes_product(self, dot: HloInstruction) -> bool:
        """True if a product is cheap enough."""
        element = dot.shape.element
        work, with_vector = work_of(dot)
        most = MOST_VECTOR_WORK if with_vector else MOST_WORK // (element.byte_width * (4 if element.is_complex else 1))
        return work <= most and self.takes(dot, 20, MULTIPLICATION * work)


class _BatchBudget(_Budget):
    """The same for a loop that runs for parts of its batch."""

    def __init__(self, batch: Batch) -> None:
        super().__init__()
        self.batch = batch
        self.shared, self.parted = 0.0, 0.0

    def takes(self, instruction: HloInstruction, instructions: int, nanoseconds: float) -> bool:
        self.instructions -= instructions
        if any(axis is not None for axis in self.batch.axes.get(instruction, ())):
            self.parted += nanoseconds
        else:
            self.shared += nanoseconds
        return self.instructions >= 0

    def takes_product(self, dot: HloInstruction) -> bool:
        work, _ = work_of(dot)
        return work <= MOST_MEMBER_WORK * self.batch.size and self.takes(dot, 20, MULTIPLICATION * work)


def _fits(computation: HloComputation, budget: _Budget | None) -> bool:
    """True if all instructions can be parts of a native loop, and the budget, if there is one, allows them."""
    return all(_joins(i, computation, budget) for i in computation.instructions)


def _joins(instruction: HloInstruction, computation: HloComputation, budget: _Budget | None) -> bool:
    opcode = instruction.opcode
    if any(not s.is_array or not s.array_layout.is_row_major for s in instruction.shape.leaves()):
        return False
    if opcode is Opcode.BITCAST and instruction.shape.element is not instruction.operands[0].shape.element:
        return False  # a loop's variables and local arrays have one type
    if opcode in (Opcode.PARAMETER, Opcode.CONSTANT) or is_alias(instruction):
        return True
    if opcode in _CONTROL:
        return all(_fits(c, budget) for c in instruction.called_computations())
    if has_side_effect(instruction):
        return False
    if opcode is Opcode.FUSION:
        body = instruction.attributes.calls
        return budget is None or budget.takes(instruction, len(body.instructions), nanoseconds(body))
    if opcode is Opcode.DOT:
        elements = [i.shape.element for i in (*instruction.operands, instruction)]
        if not is_small(instruction) and any(element not in SUPPORTED for element in elements):
            return False
        if not is_gemm(instruction):
            return False
        return budget is None or budget.takes_product(instruction)
    part = part_of(instruction, computation)
    if part is None or budget is None:
        return part is not None
    return part.pays and budget.takes(instruction, part.statements, part.nanoseconds)


_FREE = frozenset((Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BROADCAST))


def instructions_in(computation: HloComputation) -> int:
    """How many instructions become statements of a loop's kernel; those with rows of their own count as 20."""
    total = 0
    for instruction in computation.instructions:
        if instruction.opcode is Opcode.FUSION:
            total += sum(i.opcode not in _FREE for i in instruction.attributes.calls.instructions)
        elif instruction.opcode in _CONTROL:
            total += sum(map(instructions_in, instruction.called_computations()))
        elif instruction.opcode not in _FREE and not is_alias(instruction):
            total += 20
    return total


def nanoseconds(body: HloComputation) -> float:
    """The time of a fused computation on one thread, estimated."""
    total = 0.0
    is_short = body.root.opcode is Opcode.REDUCE and is_between(body.root.operands[0])
    for instruction in body.instructions:
        if instruction.opcode in (Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT):
            continue
        if instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
            total += UPDATED * instruction.operands[1].shape.num_elements
            continue
        count = sum(leaf.num_elements for leaf in instruction.shape.leaves())
        if instruction.opcode is Opcode.REDUCE:
            count = instruction.operands[0].shape.num_elements
        if is_short:
            count = min(count, TRIPS_BY_DATA)
        total += count * (OPERATION_OF_FUNCTION if has_trait(instruction.opcode, Trait.EXPENSIVE) else OPERATION)
    return total
