"""`estimate_cost`: the work of a function, as kernels state it to schedulers of other devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...hlo.ir import HloComputation
from ...hlo.opcode import Opcode
from ...hlo.shape import Shape
from ...tracer.jit import make_hlo
from .block_spec import CostEstimate

_ARITHMETIC = frozenset(
    {
        *(Opcode.ADD, Opcode.MULTIPLY, Opcode.SUBTRACT, Opcode.DIVIDE, Opcode.MINIMUM, Opcode.MAXIMUM, Opcode.OR),
        *(Opcode.AND, Opcode.XOR, Opcode.NEGATE, Opcode.FLOOR, Opcode.CEIL, Opcode.ROUND_NEAREST_EVEN, Opcode.NOT),
        Opcode.ROUND_NEAREST_AFZ,
    }
)
_TRANSCENDENTAL = frozenset(
    {
        *(Opcode.COS, Opcode.SIN, Opcode.TAN, Opcode.SINH, Opcode.COSH, Opcode.TANH, Opcode.ACOS, Opcode.ASIN),
        *(Opcode.ATAN2, Opcode.EXP, Opcode.LOG, Opcode.LOGISTIC, Opcode.SQRT),
    }
)


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """The operations of a function of arrays, or of ShapeDtypeStructs, and the bytes of its arguments and results.
    Bodies of loops and branches do not count, as in JAX.

    >>> from hloom.experimental import pallas as pl
    >>> x = jnp.ones(10)
    >>> pl.estimate_cost(lambda x, y: jnp.exp(x + y), x, x)
    CostEstimate(flops=10, transcendentals=10, bytes_accessed=120, remote_bytes_transferred=0)
    """
    entry = make_hlo(lambda *given: fun(*given, **kwargs))(*args).entry
    flops, transcendentals = _operations(entry)
    shapes = [*[p.shape for p in entry.parameters], entry.root.shape]
    return CostEstimate(flops, transcendentals, sum(map(_bytes, shapes)))


def _bytes(shape: Shape) -> int:
    return sum(leaf.num_elements * leaf.element.byte_width for leaf in shape.leaves())


def _operations(computation: HloComputation) -> tuple[int, int]:
    """Arithmetic operations, and transcendental ones."""
    flops = transcendentals = 0
    for i in computation.instructions:
        if i.opcode in _ARITHMETIC:
            flops += i.shape.num_elements
        elif i.opcode in _TRANSCENDENTAL:
            transcendentals += i.shape.num_elements
        elif i.opcode is Opcode.DOT:
            terms = 1
            for d in i.attributes.lhs_contracting_dims:
                terms *= i.operands[0].shape.dimensions[d]
            flops += 2 * terms * i.shape.num_elements
        elif i.opcode is Opcode.CALL:
            inner = _operations(i.attributes.to_apply)
            flops, transcendentals = flops + inner[0], transcendentals + inner[1]
    return flops, transcendentals
