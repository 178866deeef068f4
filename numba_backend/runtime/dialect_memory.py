"""Memory of a kernel's own, and the way in which a long loop asks whether it must stop.

    row = local_array(8, float32)             eight elements on the kernel's stack; row[3] reads and writes them
    if interrupted(watch):                    watch: a pointer to int64, see executor.py
        return

Both are plain LLVM IR: the memory is an alloca in the function's first block, of which LLVM makes registers where all
accesses are known; a look costs one call through a pointer.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import NumbaTypeError

from .dialect_define import make_intrinsic
from .executor import API, CALL_PYTHON, LOOK, STATUS
from .numba_internals import array_data, element_type

ALIGNMENT = 64
"""Of a local array, in bytes: that of the widest vector register."""
MOST_ELEMENTS = 4096
"""More do not belong on the stack of a thread."""

_I64 = ir.IntType(64)


def stack_array(builder: Any, count: int, element: Any) -> Any:
    """A pointer to `count` elements of an LLVM type, in the first block of the function that is being built."""
    with builder.goto_entry_block():
        memory = builder.alloca(ir.ArrayType(element, count))
        memory.align = ALIGNMENT
        return builder.gep(memory, [ir.Constant(_I64, 0), ir.Constant(_I64, 0)], inbounds=True)


def check_count(count: int) -> int:
    """The number of elements of a local array, if it may be that."""
    if not 0 < count <= MOST_ELEMENTS:
        raise NumbaTypeError(f"a local array has 1 to {MOST_ELEMENTS} elements, not {count}")
    return count


def _local_array() -> Any:
    """local_array(count, dtype): the count is a literal, dtype one of the casts."""

    def resolve(count: Any, dtype: Any) -> Any:
        if not isinstance(count, types.IntegerLiteral) or not isinstance(dtype, types.NumberClass):
            raise NumbaTypeError(f"local_array takes (literal, type of number), not ({count}, {dtype})")
        elements, element = check_count(count.literal_value), dtype.dtype

        def codegen(context: Any, builder: Any, signature: Any, raw: Any) -> Any:
            return stack_array(builder, elements, element_type(context, element))

        return types.CPointer(element)(count, dtype), codegen

    return make_intrinsic("local_array", 2, resolve)


def _interrupted() -> Any:
    """interrupted(watch): True if the kernel must return at once. It may then return with its work half done.

    Outside of the library, where a kernel is an ordinary Numba function, `watch` is an array."""

    def resolve(watch: Any) -> Any:
        is_array = isinstance(watch, types.Array) and watch.dtype == types.int64
        if not is_array and watch != types.CPointer(types.int64):
            raise NumbaTypeError(f"interrupted takes a pointer to int64, not {watch}")

        def codegen(context: Any, builder: Any, signature: Any, raw: Any) -> Any:
            pointer = array_data(context, builder, watch, raw[0]) if is_array else raw[0]
            return _look(builder, pointer)

        return types.boolean(watch), codegen

    return make_intrinsic("interrupted", 1, resolve)


def _look(builder: Any, watch: Any) -> Any:
    """Calls `look` if there is one. Once it has said stop, so do all further looks."""

    def word(index: int) -> Any:
        return builder.gep(watch, [ir.Constant(_I64, index)], inbounds=True)

    zero = ir.Constant(_I64, 0)
    function = builder.load(word(LOOK))
    watched, look, stop, done = (builder.append_basic_block(name) for name in ("watched", "look", "stop", "looked"))
    before = builder.block
    builder.cbranch(builder.icmp_signed("!=", function, zero), watched, done)
    builder.position_at_end(watched)  # another thread that runs a part of the loop may have been told to stop
    status = builder.load_atomic(word(STATUS), "monotonic", 8)
    builder.cbranch(builder.icmp_signed("==", status, zero), look, done)
    builder.position_at_end(look)
    kind = ir.FunctionType(_I64, [_I64, _I64, _I64])
    arguments = [builder.load(word(API)), builder.load(word(CALL_PYTHON)), builder.ptrtoint(watch, _I64)]
    new = builder.call(builder.inttoptr(function, kind.as_pointer()), arguments)
    builder.cbranch(builder.icmp_signed("!=", new, zero), stop, done)
    builder.position_at_end(stop)
    builder.store_atomic(new, word(STATUS), "monotonic", 8)
    builder.branch(done)
    builder.position_at_end(done)
    result = builder.phi(_I64)
    for value, block in ((zero, before), (status, watched), (zero, look), (new, stop)):
        result.add_incoming(value, block)
    return builder.icmp_signed("!=", result, zero)


def memory_functions() -> dict[str, Any]:
    """``local_array(count, dtype)``, ``interrupted(watch)``"""
    return {"local_array": _local_array(), "interrupted": _interrupted()}
