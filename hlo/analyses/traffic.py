"""How many bytes an instruction of an optimised module moves between memory and the core, as far as shapes say.

Other than the "bytes accessed" of cost.py, which counts every operation inside a fusion, this counts the reads and
writes of a fusion as one kernel: each operand once, each result once. Of an operand that is only sliced it counts the
slices; of an array that is updated in place it counts the update. In loops, arrays that fit in registers count nothing.

Source: XLA's HloCostAnalysis for fusions, with its treatment of dynamic-slice and dynamic-update-slice.
"""

from __future__ import annotations

from ..ir import HloComputation, HloInstruction
from ..opcode import Opcode
from ..shape import Shape
from .trip_count import known_trip_count

_NOTHING = frozenset(
    {
        *(Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST),
        *(Opcode.OPT_BARRIER, Opcode.AFTER_ALL),
    }
)
_SLICES = frozenset({Opcode.SLICE, Opcode.DYNAMIC_SLICE, Opcode.GATHER})
_IN_REGISTERS = 64
"""Elements of the largest array that a loop keeps out of memory."""


def traffic_of(instruction: HloInstruction, in_loop: bool = False) -> int:
    """Bytes that are read and written, in all iterations of loops. A loop of unknown length counts one iteration."""
    opcode = instruction.opcode
    if opcode in _NOTHING:
        return 0
    match opcode:
        case Opcode.FUSION:
            return _of_fusion(instruction, in_loop)
        case Opcode.CALL:
            return _of_computation(instruction.called_computations()[0], in_loop)
        case Opcode.CONDITIONAL:
            return max(_of_computation(c, in_loop) for c in instruction.called_computations())
        case Opcode.WHILE:
            trips = known_trip_count(instruction)
            turn = sum(_of_computation(c, True) for c in instruction.called_computations())
            return turn if trips is None else trips * turn
        case Opcode.SLICE | Opcode.DYNAMIC_SLICE | Opcode.GATHER:
            return 2 * _bytes(instruction.shape, in_loop)
        case Opcode.DYNAMIC_UPDATE_SLICE:
            return 2 * _bytes(instruction.operands[1].shape, in_loop)
    return _bytes(instruction.shape, in_loop) + sum(_bytes(o.shape, in_loop) for o in instruction.operands)


def _of_computation(computation: HloComputation, in_loop: bool) -> int:
    return sum(traffic_of(instruction, in_loop) for instruction in computation.instructions)


def _of_fusion(fusion: HloInstruction, in_loop: bool) -> int:
    fused = fusion.called_computations()[0]
    loops = [i for i in fused.instructions if i.opcode is Opcode.WHILE]
    if loops:  # it walks over its state, which the iterations count
        return sum(traffic_of(loop, in_loop) for loop in loops)
    total = 0
    replaced = set()
    for result in fused.roots:
        if result.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
            total += _bytes(result.operands[1].shape, in_loop)
            replaced.add((result.operands[0], result))
        else:
            total += _bytes(result.shape, in_loop)
    for parameter in fused.parameters:
        users = [user for user in fused.users[parameter] if (parameter, user) not in replaced]
        if users and all(user.opcode in _SLICES and user.operands[0] is parameter for user in users):
            total += sum(_bytes(user.shape, in_loop) for user in users)
        elif users or fused.root is parameter:
            total += _bytes(parameter.shape, in_loop)
    return total


def _bytes(shape: Shape, in_loop: bool) -> int:
    if not in_loop:
        return shape.byte_size
    return sum(leaf.byte_size for leaf in shape.leaves() if leaf.num_elements > _IN_REGISTERS)
