"""custom-call: code of which only the name is known. The registry has the function (`custom_calls.py`)."""

from __future__ import annotations

from typing import Any

from ..custom_calls import bind_custom_call, call_of
from ..element_type import element_type_of
from ..opcode import Opcode
from ..ops.custom_call import CustomCallAttributes
from ..shape import Shape
from .table import EVALUATE, Value


@EVALUATE.register(Opcode.CUSTOM_CALL)
def _custom_call(shape: Shape, attributes: CustomCallAttributes, *operands: Value) -> Any:
    return bind_custom_call(call_of(attributes, [_shape_of(o) for o in operands], shape))(*operands)


def _shape_of(value: Value) -> Shape:
    if isinstance(value, tuple):
        return Shape.tuple([_shape_of(v) for v in value])
    return Shape.array(element_type_of(value.dtype), value.shape)
