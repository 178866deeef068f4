"""Rules of ops that are linear in operands: they follow from that."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...hlo.ir import Attributes
from ...hlo.opcode import Opcode
from ...hlo.shape import Shape
from ...tracer.core import Value, bind
from ...tracer.dtypes import is_inexact
from ...tracer.ops import convert
from ..tangents import Operand, Tangent, Zero, add_tangents, instantiate
from .tables import JVP, TRANSPOSE

EVERY = sys.maxsize
"""As many operands as there are."""


def linear(*opcodes: Opcode, count: int = 1, symmetric: bool = False) -> None:
    """Declare that ops are linear in their first `count` operands together: the tangent is the op on their tangents.

    symmetric: the cotangent is the op on the cotangent.
    """
    for opcode in opcodes:
        JVP[opcode] = partial(_linear_jvp, opcode, count)
        if symmetric:
            TRANSPOSE[opcode] = partial(_symmetric_transpose, opcode)


def _linear_jvp(
    opcode: Opcode, count: int, primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Any, shape: Shape
) -> tuple[Value, Tangent]:
    """The tangent is the operation on the tangents: it is linear in these operands."""
    ans = bind(opcode, primals, attributes, shape=shape)
    moved = [instantiate(t) for t in tangents[:count]]
    return ans, bind(opcode, [*moved, *primals[count:]], attributes, shape=shape)


def _symmetric_transpose(
    opcode: Opcode, ct: Value, operands: Sequence[Operand], attributes: Attributes, shape: Shape
) -> list[Value]:
    """The cotangent is the operation on the cotangent."""
    return [bind(opcode, (ct,), attributes)]


def bilinear(opcode: Opcode) -> None:
    """Declare that an op is linear in each of its two operands: the tangent has a term for each."""
    JVP[opcode] = partial(_bilinear_jvp, opcode)


def _bilinear_jvp(
    opcode: Opcode, primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Any, shape: Shape
) -> tuple[Value, Tangent]:
    """A product rule: the operation is linear in each of its two operands, and each tangent gives a term."""
    def product(x: Value, y: Value) -> Value:
        return bind(opcode, (x, y), attributes, shape=shape)

    (x, y), (s, t) = primals, tangents
    return product(x, y), add_tangents(
        s if isinstance(s, Zero) else product(s, y), t if isinstance(t, Zero) else product(x, t)
    )


def in_wider_type(ct: Value, other: Value) -> tuple[Value, Value]:
    """A cotangent and the other factor of a product, in the wider one of their types."""
    element = ct.aval.dtype
    if is_inexact(other.aval.dtype) and other.aval.dtype.itemsize > element.itemsize:
        element = other.aval.dtype
    return convert(ct, element), convert(other, element)
