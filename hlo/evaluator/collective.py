"""The semantics of collectives: each device gives its operands to the others of its group, and gets theirs.

The current thread determines the device (`collectives.current_communicator`); outside of a run on several devices it is
alone, replica 0 of partition 0. A reduction takes the devices' values one after the other, in the order of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..collectives.collective import Collective
from ..collectives.communicator import current_communicator
from ..collectives.operations import Combine
from ..element_type import element_type_of
from ..ir import HloComputation
from ..opcode import Opcode
from ..ops.collective import COLLECTIVES, CollectiveAttributes
from ..shape import Shape
from ..support.value_tree import leaves_of, value_of
from .scalar_computations import Applied, as_ufunc, reduced_in
from .table import EVALUATE, NDArray, Value


def _do(opcode: Opcode, shape: Shape, attributes: CollectiveAttributes, operands: Sequence[Value]) -> Value:
    results = [np.empty(leaf.dimensions, leaf.element.dtype) for leaf in shape.leaves()]
    leaves = [leaf for operand in operands for leaf in leaves_of(operand)]
    combine = None if attributes.to_apply is None else combination(attributes.to_apply)
    shapes = [Shape.array(element_type_of(leaf.dtype), leaf.shape) for leaf in leaves]
    Collective(opcode, attributes, shapes, combine)(current_communicator(), leaves, results)
    value: Value = value_of(shape, iter(results))
    return value


def _evaluation(opcode: Opcode) -> Callable[..., Value]:
    return lambda shape, attributes, *operands: _do(opcode, shape, attributes, operands)


for _opcode in COLLECTIVES:
    EVALUATE.register(_opcode)(_evaluation(_opcode))


def combination(reducer: HloComputation) -> Combine:
    """`reducer` as a function that combines the devices' arrays, from the first to the last.

    f16, bf16 and smaller floats are combined in f32 and rounded once, as in a reduce, if the reducer is one op.
    """
    ufunc = as_ufunc(reducer)
    wide = reduced_in(reducer.root.shape.element)
    apply = Applied(reducer)

    def combine(parts: Sequence[NDArray], result: NDArray) -> None:
        if isinstance(ufunc, np.ufunc) and wide == result.dtype and len(parts) > 1:  # without other memory
            ufunc(parts[0], parts[1], out=result)
            for part in parts[2:]:
                ufunc(result, part, out=result)
            return
        if ufunc is not None:
            total = parts[0].astype(wide, copy=False)
            for part in parts[1:]:
                total = ufunc(total, part.astype(wide, copy=False))
        else:
            total = parts[0]
            for part in parts[1:]:
                (total,) = apply([total, part])
        result[...] = total.astype(result.dtype, copy=False)

    return combine


@EVALUATE.register(Opcode.ALL_REDUCE_START)
def _all_reduce_start(shape: Shape, attributes: CollectiveAttributes, *operands: Value) -> Value:
    """Everything happens at the start."""
    return _do(Opcode.ALL_REDUCE, shape, attributes, operands)


@EVALUATE.register(Opcode.ALL_GATHER_START)
def _all_gather_start(shape: Shape, attributes: CollectiveAttributes, *operands: Value) -> Value:
    given = operands[0] if len(operands) == 1 else operands
    return given, _do(Opcode.ALL_GATHER, shape.elements[1], attributes, operands)


@EVALUATE.register(Opcode.COLLECTIVE_PERMUTE_START)
def _collective_permute_start(shape: Shape, attributes: CollectiveAttributes, *operands: Value) -> Value:
    contexts = [np.zeros((), np.uint32) for _ in shape.elements[2:]]
    given = operands[0] if shape.elements[0].is_array else operands
    return given, _do(Opcode.COLLECTIVE_PERMUTE, shape.elements[1], attributes, operands), *contexts


@EVALUATE.register(Opcode.ALL_REDUCE_DONE)
def _all_reduce_done(shape: Shape, attributes: Any, operand: Value) -> Value:
    return operand


@EVALUATE.register(Opcode.ALL_GATHER_DONE, Opcode.COLLECTIVE_PERMUTE_DONE)
def _second_element(shape: Shape, attributes: Any, operand: tuple[Value, ...]) -> Value:
    return operand[1]


@EVALUATE.register(Opcode.PARTITION_ID)
def _partition_id(shape: Shape, attributes: Any) -> NDArray:
    return np.asarray(current_communicator().partition, np.uint32)


@EVALUATE.register(Opcode.REPLICA_ID)
def _replica_id(shape: Shape, attributes: Any) -> NDArray:
    return np.asarray(current_communicator().replica, np.uint32)
