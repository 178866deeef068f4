"""Elementary functions outside of jit: the backend's own code, so that they are bit for bit those of compiled programs.

NumPy's `exp` and the backend's differ in the last bit of many numbers, both within an ulp of the truth; a program that
gives other results under jit is hard to trust all the same. `hlo/elementary.py` says which ops are functions of which
types; all others stay NumPy's calls. The evaluator remains what the functions mean.

A function is a program of one op for each combination of types; all sizes share its kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..hlo.builder import make_computation, make_constant, make_instruction, make_parameter, make_tuple
from ..hlo.errors import UnsupportedError
from ..hlo.ir import Attributes, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.ops.movement import BroadcastAttributes
from ..hlo.shape import Shape
from . import tree
from .array import Array
from .aval import ShapedArray
from .caches import BoundedCache, on_clear
from .context import Context, current_context
from .execution import compile_module, module_of, runner

_O = Opcode
_Run = Callable[[Sequence[Array]], Any]
_runs: BoundedCache[_Run] = BoundedCache()
on_clear(_runs.clear)
_UNSUPPORTED: set[object] = set()
on_clear(_UNSUPPORTED.clear)


def run_function(opcode: Opcode, arrays: Sequence[Array], attributes: Attributes, shape: Shape) -> Array | None:
    """The op on concrete arrays, of which scalars are broadcast; the result is strongly typed. None where the backend
    has no such function, as the reference has none."""
    context = current_context()
    key = (opcode, attributes, context, *[a.aval for a in arrays])
    number = _known_exponent(arrays[1]) if opcode is _O.POWER else None
    if number is not None:
        key, arrays = (*key, number), arrays[:1]
    run = _runs.get(key)
    if run is None:
        if context.backend == "evaluator" or not shape.num_elements or key in _UNSUPPORTED:
            return None
        try:
            run = _runs[key] = _made(opcode, [a.aval for a in arrays], number, attributes, shape, context)
        except UnsupportedError:
            _UNSUPPORTED.add(key)
            return None
    found: Array = run(arrays)
    return found


def _known_exponent(exponent: Array) -> Any:
    """An exponent that a program would know, as it is a number of Python: small multiples of one half are products and
    roots there. None for others."""
    if exponent.aval.shape or not exponent.aval.weak_type:
        return None
    number = exponent._view[()]
    n = number.real
    return number if n == number and abs(n) <= _LARGEST_KNOWN and 2 * n == int(2 * n) else None


_LARGEST_KNOWN = 8


def _made(
    opcode: Opcode, avals: Sequence[ShapedArray], number: object, attributes: Attributes, shape: Shape, context: Context
) -> _Run:
    """`number`: the exponent of a power, if the program shall know it."""
    parameters = [make_parameter(k, aval.hlo) for k, aval in enumerate(avals)]
    operands: list[HloInstruction] = list(parameters)
    if number is not None:
        operands.append(make_constant(np.asarray(number)))
    operands = [_broadcast(operand, shape) for operand in operands]
    op = HloInstruction(opcode, shape, tuple(operands), attributes)
    module = module_of(opcode.value, make_computation("main", make_tuple([op]), parameters))
    aval = ShapedArray(shape.dimensions, shape.element.dtype)
    return runner(compile_module(module), (), (aval,), tree.structure(0), ())


def _broadcast(operand: HloInstruction, shape: Shape) -> HloInstruction:
    if operand.shape.dimensions == shape.dimensions:
        return operand
    full = Shape.array(operand.shape.element, shape.dimensions)
    return make_instruction(_O.BROADCAST, (operand,), BroadcastAttributes(()), shape=full)
