"""custom-call: a row that calls the registered function; a native function is called without Python. LAPACK's
factorisations of small matrices are kernels, of others rows that call LAPACK. Uninitialised memory needs no row: it is
there already."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.custom_calls import NativeFunction, bind_custom_call, call_of, is_built_in, is_unwritten, native_function
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.support.value_tree import leaves_of, value_of
from ..runtime.executor import native_function as runtime_function
from ..runtime.program import size
from .host import NDArray, host_row
from .lapack_targets import add_lapack
from .linalg import add_small
from .table import LoweringContext, register

_CALL_NATIVE = runtime_function(
    "call_native",
    """
def call_native(arguments):
    out = arguments + load(arguments + 8)
    if load(arguments + 16) == 0:
        out = load(out)
    call2(load(arguments), out, arguments + 24)
    return 0
""",
    1,
)
"""Calls `void f(void* out, void** in)`. Arguments: f, the offset of the results' addresses, whether `out` is to point
to them (a tuple) or to be the only one, the operands' addresses, the results' addresses."""


@register(Opcode.CUSTOM_CALL, how="JAX's targets: LAPACK, for small matrices a kernel; else what is registered")
def _custom_call(context: LoweringContext, instruction: HloInstruction) -> None:
    attributes = instruction.attributes
    if is_unwritten(attributes.custom_call_target) or add_small(context, instruction):
        return
    call = call_of(attributes, [o.shape for o in instruction.operands], instruction.shape)
    native = native_function(call.target) if call.function is None else None
    if native is not None:
        _native_row(context, instruction, native)
        return
    if call.function is None and is_built_in(call.target) and add_lapack(context, instruction, call):
        return
    run = bind_custom_call(call)
    shapes = call.operands

    def function(inputs: Sequence[NDArray], outputs: Sequence[NDArray]) -> None:
        source = iter(inputs)
        results = run(*(value_of(shape, source) for shape in shapes))
        for output, result in zip(outputs, leaves_of(results), strict=True):
            output[...] = result

    host_row(context, instruction, function)


def _native_row(context: LoweringContext, instruction: HloInstruction, native: NativeFunction) -> None:
    operands, results = context.operands(instruction), context.results(instruction)
    head = [size(native.address), size(8 * (3 + len(operands))), size(int(instruction.shape.is_tuple))]
    context.builder.native(_CALL_NATIVE, [*head, *operands, *results], keep=native)
