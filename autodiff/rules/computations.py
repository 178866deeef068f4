"""Operations on the computations of an op, for rules: run a scalar one on whole arrays, reduce by it in halves, extend
it.

Also here: an op run as the simpler ops that mean the same. Their derivatives are derivatives of ordinary programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...hlo.builder import make_computation, make_instruction, make_parameter
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Attributes, HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ...hlo.shape import Shape
from ...tracer.core import Value, bind, eval_computation
from ...tracer.ops import broadcast, concatenate, reshape, scalar, slice_along, transpose
from .tables import TRANSPOSE

_O = Opcode


def reducer_opcode(reducer: HloComputation) -> Opcode | None:
    """ADD, MULTIPLY, MAXIMUM... where the reducer is just that op on its two parameters, else None."""
    root = reducer.root
    if len(root.operands) == 2 and len(reducer.parameters) == 2 and set(root.operands) == set(reducer.parameters):
        return root.opcode
    return None


def apply_to_arrays(computation: HloComputation, operands: Sequence[Value]) -> list[Value]:
    """The scalar `computation` on arrays of equal dimensions, element by element."""
    sizes = operands[0].aval.shape
    known: dict[HloInstruction, Any] = {}
    for i in computation.instructions:
        inputs = [known[o] for o in i.operands]
        if i.opcode is _O.PARAMETER:
            known[i] = operands[i.attributes.number]
        elif i.opcode is _O.CONSTANT:
            known[i] = broadcast(scalar(i.attributes.literal.array.item(), i.attributes.literal.array.dtype), sizes, ())
        elif i.opcode is _O.TUPLE:
            known[i] = inputs
        elif i.opcode is _O.GET_TUPLE_ELEMENT:
            known[i] = inputs[0][i.attributes.index]
        elif i.opcode is _O.CALL:
            results = apply_to_arrays(i.attributes.to_apply, inputs)
            known[i] = results if i.shape.is_tuple else results[0]
        elif has_trait(i.opcode, Trait.ELEMENTWISE):
            known[i] = bind(i.opcode, inputs, i.attributes, shape=Shape.array(i.shape.element, sizes))
        else:
            raise UnsupportedError(f"derivative of an op: its computation {computation.name} has {i.opcode.value}")
    result = known[computation.root]
    return result if isinstance(result, list) else [result]


Combine = Callable[[list[Value], list[Value]], list[Value]]
"""combine(arrays, arrays) -> arrays of the same dimensions."""


def reduce_in_halves(arrays: Sequence[Value], d: int, combine: Combine) -> list[Value]:
    """The arrays reduced along dimension `d`, of at least one element, to size 1: the first half is combined with the
    second, log2(n) times."""
    found = list(arrays)
    while found[0].aval.shape[d] > 1:
        size = found[0].aval.shape[d]
        half = size // 2
        merged = combine(*[[slice_along(a, d, n, n + half) for a in found] for n in (0, half)])
        if size % 2:
            rest = [slice_along(a, d, size - 1, size) for a in found]
            merged = [concatenate([m, r], d) for m, r in zip(merged, rest, strict=True)]
        found = merged
    return found


# --- dimensions


def split(x: Value, d: int, count: int, members: int | None = None) -> Value:
    """x with dimension d as two: `count` groups, and the members of a group (which follow, unless there is none)."""
    sizes = x.aval.shape
    return reshape(x, (*sizes[:d], count, sizes[d] // count if members is None else members, *sizes[d + 1 :]))


def move(x: Value, source: int, target: int) -> Value:
    """x with its dimension `source` as dimension `target`, the others in their order."""
    order = [d for d in range(len(x.aval.shape)) if d != source]
    order.insert(target, source)
    return transpose(x, order)


def merge(x: Value, d: int) -> Value:
    """x with dimensions d and d + 1 as one, d major."""
    sizes = x.aval.shape
    return reshape(x, (*sizes[:d], sizes[d] * sizes[d + 1], *sizes[d + 2 :]))


# --- meanings

Expansion = Callable[[HloInstruction], HloInstruction]
"""An expansion of `hlo/passes/expand`: an instruction as simpler ones."""


def run_expanded(
    expand: Expansion, opcode: Opcode, operands: Sequence[Value], attributes: Attributes, shape: Shape
) -> list[Value]:
    """The results of an op, by the simpler ops that `expand` puts in its place."""
    parameters = [make_parameter(k, o.aval.hlo) for k, o in enumerate(operands)]
    root = expand(make_instruction(opcode, parameters, attributes, shape))
    return eval_computation(make_computation(opcode.value, root, parameters), operands)


def in_other_ops(opcode: Opcode, why: str) -> None:
    """Declare that the tangent of `opcode` consists of other ops, so that it has no transpose."""
    TRANSPOSE.unsupported([opcode], f"{why}; only linear ops come here")
