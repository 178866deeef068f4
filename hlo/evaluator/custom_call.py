"""custom-call: code that is known by name only. The registry has the function (`custom_calls.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..custom_calls import bind_custom_call, call_of
from ..element_type import element_type_of
from ..opcode import Opcode
from ..ops.custom_call import CustomCallAttributes
from ..shape import Shape
from ..support.value_tree import leaves_of, value_of
from .table import EVALUATE, Value


@EVALUATE.register(Opcode.CUSTOM_CALL)
def _custom_call(shape: Shape, attributes: CustomCallAttributes, *operands: Value) -> Any:
    result = bind_custom_call(call_of(attributes, [_shape_of(o) for o in operands], shape))(*operands)
    # The function may have kept its result, and may change it.
    return value_of(shape, iter([np.array(leaf) for leaf in leaves_of(result)]))


def _shape_of(value: Value) -> Shape:
    if isinstance(value, tuple):
        return Shape.tuple([_shape_of(v) for v in value])
    return Shape.array(element_type_of(value.dtype), value.shape)
