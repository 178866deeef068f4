"""`TopK`: the op topk, as XLA's TopkRewriter wrote it before there was such an op."""

from __future__ import annotations

from ..builder import check_shape
from ..opcode import Opcode
from ..ops.elementwise import CompareAttributes, ComparisonDirection
from ..ops.sort import TopKAttributes
from .call import Call, NDArray, Run, Value


def topk(call: Call) -> Run:
    """(values, positions) of the k largest, or of the k smallest if the call's comparator is less-than."""
    attributes = topk_attributes(call)

    def run(x: NDArray) -> Value:
        from ..evaluator import evaluate_op  # which imports the registry, and so this table

        value: Value = evaluate_op(Opcode.TOPK, [x], attributes, call.result)
        return value

    return run


def topk_attributes(call: Call) -> TopKAttributes:
    """The attributes of the call as an op; ShapeError if it is none."""
    results = call.result.elements if call.result.is_tuple else ()
    if not results or not results[0].rank:
        call.fail("its result must be a tuple of values and positions")
    attributes = TopKAttributes(results[0].dimensions[-1], _is_largest(call))
    check_shape(Opcode.TOPK, call.operands, attributes, call.result)
    return attributes


def _is_largest(call: Call) -> bool:
    if not call.callees:
        return True
    root = call.callees[0].root
    direction = root.attributes.direction if isinstance(root.attributes, CompareAttributes) else None
    if direction not in (ComparisonDirection.GT, ComparisonDirection.LT):
        call.fail("its comparator must compare by GT or LT")
    return direction is ComparisonDirection.GT
