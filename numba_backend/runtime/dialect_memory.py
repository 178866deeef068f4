"""Memory of a kernel's own, and the way in which a long loop asks whether it must stop.

    row = local_array(8, float32)             eight elements on the kernel's stack; row[3] reads and writes them
    if interrupted(watch):                    watch: a pointer to int64, see executor.py
        return

Both are plain LLVM IR: the memory is an alloca in the function's first block, and LLVM makes registers of it if all
accesses are known; a look costs one call through a pointer.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .dialect_define import Cast, DialectError, DialectFunction, Kind, Resolved
from .executor import API, CALL_PYTHON, LOOK, STATUS
from .llvm_values import INTEGERS, value_type
from .math.value import call_intrinsic

ALIGNMENT = 64
"""Alignment of a local array in bytes, as for the widest vector register."""
MOST_ELEMENTS = 1 << 14
"""Most elements of a local array: more do not belong on the stack of a thread."""

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
        raise DialectError(f"a local array has 1 to {MOST_ELEMENTS} elements, not {count}")
    return count


def _local_array() -> DialectFunction:
    """local_array(count, dtype): the count is a literal, dtype one of the casts."""

    def resolve(*given: Kind) -> Resolved:
        if len(given) != 2 or not isinstance(given[0], int) or not isinstance(given[1], Cast):
            raise DialectError(f"local_array takes (literal, type of number), not ({', '.join(map(str, given))})")
        elements, element = check_count(given[0]), given[1].type

        def emit(builder: Any, raw: Any) -> Any:
            return stack_array(builder, elements, value_type(element))

        return Resolved(given, element + "*", emit)

    return DialectFunction("local_array", 2, resolve, frozenset((0, 1)))


def _interrupted() -> DialectFunction:
    """interrupted(watch): True if the kernel must return at once. It may then return with its work half done."""

    def resolve(*given: Kind) -> Resolved:
        if given != ("int64*",):
            raise DialectError(f"interrupted takes a pointer to int64, not {', '.join(map(str, given))}")
        return Resolved(given, "bool", lambda builder, raw: _look(builder, raw[0]))

    return DialectFunction("interrupted", 1, resolve)


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


def _opaque() -> DialectFunction:
    """opaque(x): the integer x; LLVM knows nothing about its value. Loop strength reduction looks for the cheapest way
    to step the values that it understands; `opaque` hides one from it, for one more instruction."""

    def resolve(*given: Kind) -> Resolved:
        if len(given) != 1 or given[0] not in INTEGERS:
            raise DialectError(f"opaque takes an integer, not {', '.join(map(str, given))}")
        return Resolved(given, str(given[0]), lambda builder, raw: _hidden(builder, raw[0]))

    return DialectFunction("opaque", 1, resolve)


def _hidden(builder: Any, value: Any) -> Any:
    """``value ^ zero``, where an empty piece of assembly makes the zero of 0, once in a function."""
    entry = builder.function.entry_basic_block
    first = entry.instructions[0] if entry.instructions else None
    if not isinstance(first, ir.CallInstr) or not isinstance(first.callee, ir.InlineAsm):
        with builder.goto_entry_block():
            if first is not None:
                builder.position_before(first)
            first = builder.asm(ir.FunctionType(_I64, [_I64]), "", "=r,0", [ir.Constant(_I64, 0)], False)
    narrow = value.type.width < _I64.width
    return builder.xor(value, builder.trunc(first, value.type) if narrow else first)


def _likely() -> DialectFunction:
    """likely(test): the test; LLVM takes it to be true nearly always, and then makes no select of a branch."""

    def resolve(*given: Kind) -> Resolved:
        if given != ("bool",):
            raise DialectError(f"likely takes a bool, not {', '.join(map(str, given))}")

        def emit(builder: Any, raw: Any) -> Any:
            bit = ir.IntType(1)
            return call_intrinsic(builder, "llvm.expect.i1", bit, raw[0], ir.Constant(bit, 1))

        return Resolved(given, "bool", emit)

    return DialectFunction("likely", 1, resolve)


def memory_functions() -> dict[str, Any]:
    """``local_array(count, dtype)``, ``interrupted(watch)``, ``opaque(x)``, ``likely(test)``"""
    return {"local_array": _local_array(), "interrupted": _interrupted(), "opaque": _opaque(), "likely": _likely()}
