"""spare-loop-state: a large array of a loop's state that is updated from all over itself gets a second buffer.

    (u) -> (dynamic-update-slice(u, f(u), 1, 1))

If element (i, j) of the update is computed from neighbours of element (i, j) of u, u must not be overwritten before all
is computed: in place, the update needs a temporary, which is written, read and copied in every step. After this pass
the state has a spare element `b`::

    (u, b) -> (dynamic-update-slice(b, f(u), 1, 1), u)

It starts as a copy of u. The update replaces the same region in each step, and outside of it both are always equal; so
the result is the same. The two arrays change places, which `unroll-rotating-state` makes free of copies: every second
step writes b from u, every other u from b. This is how such loops are written by hand (Jacobi's iteration, explicit
schemes for partial differential equations).
"""

from __future__ import annotations

from ...analyses.trip_count import body_results, induction_variable, state_element
from ...builder import make_computation, make_instruction, make_parameter, make_tuple
from ...effects import effects_of
from ...ir import HloInstruction, HloModule
from ...opcode import Opcode
from ...ops import Trait, has_trait
from ...ops.control_flow import WhileAttributes
from ...shape import Shape
from ...support.records import dataclass
from ..patterns import splat_value
from .fusible import is_free, is_fusible
from .temporaries import LARGE_STATE_BYTES
from .unroll_rotation import elements_of, on_state, takes_elements, with_loops

MOST_INSTRUCTIONS = 150
"""The saving (writing and copying a temporary) is worth a few instructions: little of a longer body."""

FEWEST_STEPS = 4
"""A loop with fewer steps does not gain back the copy before it."""


@dataclass(frozen=True, slots=True)
class SpareLoopState:
    """Gives a spare element of the state to arrays of `LARGE_STATE_BYTES` or more if each step computes at least half
    of them anew."""

    name: str = "spare-loop-state"

    def __call__(self, module: HloModule) -> HloModule:
        return with_loops(module, _with_spare)


def _with_spare(loop: HloInstruction) -> HloInstruction:
    condition, body = loop.attributes.condition, loop.attributes.body
    results = body_results(body)
    if results is None or not (takes_elements(body) and takes_elements(condition)):
        return loop
    counter = induction_variable(loop)
    if counter is not None and counter.trip_count < FEWEST_STEPS:
        return loop
    if len(body.instructions) > MOST_INSTRUCTIONS or effects_of(body) or effects_of(condition):
        return loop
    updates = {k: result for k, result in enumerate(results) if _needs_spare(result, k)}
    if not updates:
        return loop
    size = len(loop.shape.elements)
    shape = Shape.tuple([*loop.shape.elements, *(loop.shape.elements[k] for k in updates)])
    initial = elements_of(loop.operands[0])
    spares = {k: size + n for n, k in enumerate(updates)}

    parameter = make_parameter(0, shape)
    state = elements_of(parameter)
    written = {update: state[spares[k]] for k, update in updates.items()}
    stepped = on_state(body, state, written).operands
    tested = make_parameter(0, shape)
    attributes = WhileAttributes(
        make_computation(condition.name, on_state(condition, elements_of(tested)), (tested,)),
        make_computation(body.name, make_tuple([*stepped, *(state[k] for k in updates)]), (parameter,)),
    )
    start = make_tuple([*initial, *(initial[k] for k in updates)])
    longer = make_instruction(Opcode.WHILE, (start,), attributes, metadata=loop.metadata)
    return make_tuple(elements_of(longer)[:size])


def _needs_spare(result: HloInstruction, index: int) -> bool:
    """True for an update of a large part of a large array, always the same one, from other places of that array."""
    if result.opcode is not Opcode.DYNAMIC_UPDATE_SLICE or result.shape.byte_size < LARGE_STATE_BYTES:
        return False
    array, new, *indices = result.operands
    if state_element(array) != index or 2 * new.shape.num_elements < result.shape.num_elements:
        return False
    starts = tuple([splat_value(i) for i in indices])
    return None not in starts and _reads_elsewhere(new, index, starts)


def _reads_elsewhere(new: HloInstruction, index: int, starts: tuple[object, ...]) -> bool:
    """True if the nest that computes `new` would read much of the old array at other places than those that it
    replaces. If it reads little, it needs a small temporary only."""
    straight = {new: True}
    stack = [new]
    while stack:
        user = stack.pop()
        own, elementwise = straight[user], has_trait(user.opcode, Trait.ELEMENTWISE)
        for operand in user.operands:
            if state_element(operand) == index:
                same = own and _is_region(user, new.shape.dimensions, starts)
                if not same and 2 * user.shape.num_elements >= operand.shape.num_elements:
                    return True
            elif _is_inside(operand):
                keeps = own and elementwise and operand.shape.dimensions == new.shape.dimensions
                if operand not in straight or (straight[operand] and not keeps):
                    straight[operand] = keeps
                    stack.append(operand)
    return False


def _is_inside(instruction: HloInstruction) -> bool:
    """True for instructions that fusion may compute in the nest of the update."""
    apart = instruction.opcode in (Opcode.REDUCE, Opcode.DYNAMIC_UPDATE_SLICE)
    return (is_fusible(instruction) or is_free(instruction)) and not apart


def _is_region(reader: HloInstruction, sizes: tuple[int, ...], starts: tuple[object, ...]) -> bool:
    """True for a slice of exactly the region that is replaced."""
    if reader.opcode is Opcode.SLICE:
        where, strides = reader.attributes.start_indices, set(reader.attributes.strides)
    elif reader.opcode is Opcode.DYNAMIC_SLICE:
        where, strides = tuple([splat_value(i) for i in reader.operands[1:]]), {1}
    else:
        return False
    return reader.shape.dimensions == sizes and strides == {1} and tuple(where) == starts
