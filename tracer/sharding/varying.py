"""Along which axes of a mesh a value varies: the types of values within a function that `shard_map` maps.

A value that comes from parts of an array differs from device to device along the axes that divide the array; the result
of `psum` is the same along its axes. Types say so (`ShapedArray.vma`), as in JAX, for two reasons. A result must not
vary along an axis that its `out_specs` do not name. And where a value that does not vary meets one that does, `pvary`
makes it one that does: nothing happens to it, but its cotangent is then summed over the devices, as it must be.

`unified` inserts `pvary` before an operation; `result_vmas` says how results vary.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any

from ...hlo.builder import make_computation, make_parameter, make_tuple
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.shape import Shape
from ...hlo.support.records import dataclass
from ..arrays.array import Array
from ..primitive import Call, Primitive

Vma = frozenset[Hashable]
NONE: Vma = frozenset()


@dataclass(frozen=True, slots=True)
class Pvary:
    """The parameters of `pvary`."""

    axes: tuple[Hashable, ...]
    manual: Any
    """The `ManualAxes` of the function."""


def _vary(call: Call, arrays: Sequence[Any]) -> list[Any]:
    return list(arrays)


PVARY = Primitive(
    "pvary", evaluate=_vary, is_linear=True, axes=lambda call: call.params.axes,
    vma=lambda call, vmas: vmas[0] | set(call.params.axes),
)  # fmt: skip
"""The same value, which counts as one that varies along some axes."""


def pvary_call(shape: Shape, params: Pvary) -> Call:
    """The call for a value of this type."""
    return Call(PVARY, _same(shape), params, "pvary", (("axes", ",".join(map(str, params.axes))),))


@lru_cache(maxsize=256)
def _same(shape: Shape) -> HloComputation:
    x = make_parameter(0, shape)
    return make_computation("pvary", make_tuple([x]), [x])


def unified(
    operands: tuple[Any, ...], manual: Any, bind_call: Callable[[Call, Sequence[Any]], list[Any]], axes: Vma = NONE
) -> tuple[Any, ...]:
    """The operands of one operation, made to vary along the same axes: the axes of any of them, and `axes`. Concrete
    arrays stay: they are not differentiated."""
    union = axes.union(*[o.aval.vma for o in operands])
    if not union:
        return operands
    found = []
    for operand in operands:
        missing = union - operand.aval.vma
        if missing and (axes or not isinstance(operand, Array)):
            ordered = tuple([a for a in manual.mesh.axis_names if a in missing])
            (operand,) = bind_call(pvary_call(operand.aval.hlo, Pvary(ordered, manual)), [operand])
        found.append(operand)
    return tuple(found)


# ---- how results vary


def result_vmas(opcode: Opcode, attributes: Any, vmas: Sequence[Vma], count: int) -> list[Vma]:
    """The axes along which the `count` results of an operation vary, from those of its operands (the elements of
    tuples, one by one)."""
    if opcode is Opcode.CALL:
        rule = attributes.composite.rule if attributes.composite is not None else None
        if isinstance(rule, Call) and rule.primitive.vma is not None:
            return [rule.primitive.vma(rule, list(vmas))] * count
        return vmas_of(attributes.to_apply, vmas)
    if opcode is Opcode.WHILE:
        state = list(vmas)
        while True:
            after = [a | b for a, b in zip(state, vmas_of(attributes.body, state), strict=True)]
            if after == state:
                return state
            state = after
    if opcode is Opcode.CONDITIONAL:
        index, *rest = vmas
        branches = [vmas_of(c, rest) for c in attributes.branch_computations]
        return [index.union(*each) for each in zip(*branches, strict=True)]
    return [NONE.union(*vmas)] * count


def vmas_of(computation: HloComputation, vmas: Sequence[Vma]) -> list[Vma]:
    """How the results of a computation vary: the elements of its root, or the root itself."""
    key = tuple(vmas)
    known: dict[Any, list[Vma]] = vars(computation).setdefault("_vmas", {})
    if key not in known:
        known[key] = _followed(computation, key)
    return known[key]


def _followed(computation: HloComputation, vmas: tuple[Vma, ...]) -> list[Vma]:
    parameters = computation.parameters
    takes_tuple = len(parameters) == 1 and parameters[0].shape.is_tuple
    env: dict[HloInstruction, Any] = {}
    for i in computation.instructions:
        if i.opcode is Opcode.PARAMETER:
            env[i] = list(vmas) if takes_tuple else vmas[i.attributes.number]
        elif i.opcode is Opcode.TUPLE:
            env[i] = [env[o] for o in i.operands]
        elif i.opcode is Opcode.GET_TUPLE_ELEMENT:
            env[i] = env[i.operands[0]][i.attributes.index]
        else:
            own = i.operands[:2] if i.opcode is Opcode.CONDITIONAL else i.operands
            flat = [v for o in own for v in (env[o] if isinstance(env[o], list) else [env[o]])]
            count = len(i.shape.elements) if i.shape.is_tuple else 1
            found = result_vmas(i.opcode, i.attributes, flat, count)
            env[i] = found if i.shape.is_tuple else found[0]
    root = env[computation.root]
    return root if isinstance(root, list) else [root]
