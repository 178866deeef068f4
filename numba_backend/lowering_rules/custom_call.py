"""custom-call: a row that calls the registered function; native functions, and handlers of XLA's typed FFI, are called
without Python. LAPACK's factorisations of small matrices are kernels, of others rows that call LAPACK. Uninitialised
memory needs no row: it is there already."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from ...hlo.custom_call_targets.call import Call
from ...hlo.custom_calls import (
    bind_custom_call,
    call_of,
    has_status,
    is_built_in,
    is_unwritten,
    native_target,
    typed_call,
)
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.support.loading import load
from ...hlo.support.loop_progress import LoopEvent
from ...hlo.support.native_function import NativeFunction
from ...hlo.support.value_tree import leaves_of, value_of
from ..runtime.executor import native_function
from ..runtime.program import Argument, size
from .host import NDArray, host_row
from .lapack_targets import add_lapack
from .linalg import add_small
from .table import SHARE, LoweringContext, register

_CALL_NATIVE = native_function(
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
    if isinstance(attributes.function, LoopEvent):
        _progress_row(context, instruction, attributes.function)
        return
    call = call_of(attributes, [o.shape for o in instruction.operands], instruction.shape)
    native = native_target(call)
    if native is not None and not has_status(call):
        operands, results = context.operands(instruction), context.results(instruction)
        operands = _aliased(context, call, operands, results)
        if native.is_typed:
            _typed_row(context, call, native, operands, results)
        else:
            head = [size(native.address), size(8 * (3 + len(operands))), size(int(instruction.shape.is_tuple))]
            context.builder.native(_CALL_NATIVE, [*head, *operands, *results], keep=native)
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


def _progress_row(context: LoweringContext, instruction: HloInstruction, event: LoopEvent) -> None:
    """A row of its own, since a loop calls it often: it reads one number and writes one."""
    act, number = event.act, ctypes.c_int32.from_address

    def call(words: tuple[int, ...]) -> None:
        count, allowed = words
        number(allowed).value = act(number(count).value)

    context.builder.callback(call, [*context.operands(instruction), *context.results(instruction)], keep=event)


def _aliased(
    context: LoweringContext, call: Call, operands: Sequence[Argument], results: Sequence[Argument]
) -> list[Argument]:
    """The operands' addresses, after each that shares its memory with a result was copied there, unless it is there."""
    found = list(operands)
    shapes = list(call.result.leaves())
    for source, target in call.aliases:
        if found[source] != results[target]:
            context.copy(results[target], found[source], shapes[target].byte_size, call.target)
            found[source] = results[target]
    return found


def _may_share(instruction: HloInstruction, operand: int, result: int) -> bool:
    """Native code that says so gets an operand and a result in one array."""
    call = call_of(instruction.attributes, [o.shape for o in instruction.operands], instruction.shape)
    return (operand, result) in call.aliases and native_target(call) is not None and not has_status(call)


SHARE[Opcode.CUSTOM_CALL] = _may_share


def _typed_row(
    context: LoweringContext, call: Call, handler: NativeFunction, operands: list[Argument], results: list[Argument]
) -> None:
    code = load("..runtime.ffi", __package__).CALL_FFI
    partitions = context.partitions
    typed = typed_call(handler, call, partitions=max(partitions, 1), raises=True)
    device = context.device_word(0) if partitions else size(0)
    places = typed.places(operands, results, size(0))
    context.builder.handler(code, typed.address, device, places, keep=typed, title=call.target)
