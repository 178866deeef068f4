"""Elementary functions outside of jit: the backend's own code, so that they are bit for bit those of compiled programs.

NumPy's `exp` and the backend's differ in the last bit of many numbers, both within an ulp of the truth; a program that
gives other results under jit is hard to trust all the same. `hlo/elementary.py` says which ops are functions of which
types; all others stay NumPy's calls. The evaluator remains what the functions mean.

A function is a program of one op for each combination of types; all sizes share its kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..hlo.builder import make_computation, make_instruction, make_parameter, make_tuple
from ..hlo.errors import UnsupportedError
from ..hlo.ir import Attributes, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.ops.movement import BroadcastAttributes
from ..hlo.shape import Shape
from . import tree
from .array import Array
from .aval import ShapedArray
from .caches import BoundedCache, on_clear
from .context import current_context
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
    run = _runs.get(key)
    if run is None:
        if context.backend == "evaluator" or not shape.num_elements or key in _UNSUPPORTED:
            return None
        try:
            run = _runs[key] = _made(opcode, [a.aval for a in arrays], attributes, shape)
        except UnsupportedError:
            _UNSUPPORTED.add(key)
            return None
    found: Array = run(arrays)
    return found


def _made(opcode: Opcode, avals: Sequence[ShapedArray], attributes: Attributes, shape: Shape) -> _Run:
    parameters = [make_parameter(k, aval.hlo) for k, aval in enumerate(avals)]
    op = HloInstruction(opcode, shape, tuple([_broadcast(p, shape) for p in parameters]), attributes)
    module = module_of(opcode.value, make_computation("main", make_tuple([op]), parameters))
    aval = ShapedArray(shape.dimensions, shape.element.dtype)
    return runner(compile_module(module, is_function=True), (), (aval,), tree.structure(0), ())


def _broadcast(operand: HloInstruction, shape: Shape) -> HloInstruction:
    if operand.shape.dimensions == shape.dimensions:
        return operand
    full = Shape.array(operand.shape.element, shape.dimensions)
    return make_instruction(_O.BROADCAST, (operand,), BroadcastAttributes(()), shape=full)
