"""Machine operations for the runtime's own native functions: 64-bit loads and stores, indirect calls, atomics.

All take and give int64, also for addresses. The executor and the thread pool use them; kernels never do (they have
`dialect.SCOPE`). `SCOPE` has all names that their source may use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.ir as llir

from .dialect_define import DialectError, DialectFunction, Kind, Resolved

_I8, _I32, _I64 = llir.IntType(8), llir.IntType(32), llir.IntType(64)
_VOID, _BYTES = llir.VoidType(), llir.IntType(8).as_pointer()


def _define(name: str, count: int, emit: Callable[[Any, Sequence[Any]], Any]) -> DialectFunction:
    """A function of `count` int64 arguments; `emit` returns an LLVM int64, or None for a function without result."""
    expected: tuple[Kind, ...] = ("int64",) * count
    result = "int64" if emit.__annotations__["return"] != "None" else "none"

    def resolve(*given: Kind) -> Resolved:
        if len(given) != count or any(kind not in ("int64", "bool") for kind in given):
            raise DialectError(f"{name} takes {count} argument(s) of int64, not ({', '.join(map(str, given))})")
        return Resolved(expected, result, emit)

    return DialectFunction(name, count, resolve)


def _at(builder: Any, address: Any, type_: Any) -> Any:
    return builder.inttoptr(address, type_.as_pointer())


def _load(builder: Any, values: Sequence[Any]) -> Any:
    return builder.load(_at(builder, values[0], _I64))


def _load_u8(builder: Any, values: Sequence[Any]) -> Any:
    return builder.zext(builder.load(_at(builder, values[0], _I8)), _I64)


def _load_s32(builder: Any, values: Sequence[Any]) -> Any:
    return builder.sext(builder.load(_at(builder, values[0], _I32)), _I64)


def _store(builder: Any, values: Sequence[Any]) -> None:
    builder.store(values[1], _at(builder, values[0], _I64))


def _quotient(builder: Any, values: Sequence[Any]) -> Any:
    return builder.udiv(values[0], values[1])


def _smaller(builder: Any, values: Sequence[Any]) -> Any:
    return builder.select(builder.icmp_signed("<", *values), *values)


def _narrow(builder: Any, values: Sequence[Any]) -> Any:
    narrow = builder.fptrunc(builder.bitcast(values[0], llir.DoubleType()), llir.FloatType())
    return builder.zext(builder.bitcast(narrow, _I32), _I64)


def _stack(builder: Any, values: Sequence[Any]) -> Any:
    return builder.ptrtoint(builder.alloca(_I64, values[0]), _I64)


def _copy_bytes(builder: Any, values: Sequence[Any]) -> None:
    destination, source, count = values
    move = builder.module.declare_intrinsic("llvm.memmove", [_BYTES, _BYTES, _I64])
    pointers = [_at(builder, destination, _I8), _at(builder, source, _I8)]
    builder.call(move, [*pointers, count, llir.Constant(llir.IntType(1), 0)])


def _zero_bytes(builder: Any, values: Sequence[Any]) -> None:
    fill = builder.module.declare_intrinsic("llvm.memset", [_BYTES, _I64])
    byte, volatile = llir.Constant(_I8, 0), llir.Constant(llir.IntType(1), 0)
    builder.call(fill, [_at(builder, values[0], _I8), byte, values[1], volatile])


def _call_kernel(builder: Any, values: Sequence[Any]) -> None:
    kind = llir.FunctionType(_VOID, [_I64, _I64, _I64])
    builder.call(_at(builder, values[0], kind), values[1:])


def _call(builder: Any, values: Sequence[Any]) -> Any:
    kind = llir.FunctionType(_I64, [_I64] * (len(values) - 1))
    return builder.call(_at(builder, values[0], kind), values[1:])


def _call_gemm(builder: Any, values: Sequence[Any]) -> None:
    kind = llir.FunctionType(_VOID, [_I64] * (len(values) - 1))
    builder.call(_at(builder, values[0], kind), values[1:])


def _atomic_load(builder: Any, values: Sequence[Any]) -> Any:
    return builder.load_atomic(_at(builder, values[0], _I64), "seq_cst", 8)


def _atomic_store(builder: Any, values: Sequence[Any]) -> None:
    builder.store_atomic(values[1], _at(builder, values[0], _I64), "seq_cst", 8)


def _atomic_add(builder: Any, values: Sequence[Any]) -> Any:
    return builder.atomic_rmw("add", _at(builder, values[0], _I64), values[1], "seq_cst")


def _compare_exchange(builder: Any, values: Sequence[Any]) -> Any:
    pair = builder.cmpxchg(_at(builder, values[0], _I64), values[1], values[2], "seq_cst", "seq_cst")
    return builder.zext(builder.extract_value(pair, 1), _I64)


def _cycles(builder: Any, values: Sequence[Any]) -> Any:
    """A counter that grows evenly. ARM's counter of cycles belongs to the system, and reading it ends the process, so
    there it is the counter of the timer."""
    if _architecture(builder) in ("aarch64", "arm64"):
        kind = llir.FunctionType(_I64, [llir.MetaDataType()])
        read = builder.module.declare_intrinsic("llvm.read_volatile_register", [_I64], kind)
        return builder.call(read, [builder.module.add_metadata(["cntvct_el0"])])
    counter = builder.module.declare_intrinsic("llvm.readcyclecounter", [], llir.FunctionType(_I64, []))
    return builder.call(counter, [])


def _architecture(builder: Any) -> str:
    name: str = builder.module.triple.partition("-")[0]
    return name


def _pause(builder: Any, values: Sequence[Any]) -> None:
    """Tell the core that this is a spin loop, where the architecture has such an instruction."""
    architecture = _architecture(builder)
    if architecture == "x86_64":
        builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", [], llir.FunctionType(_VOID, [])), [])
    elif architecture in ("aarch64", "arm64"):
        hint = llir.FunctionType(_VOID, [_I32])
        builder.call(builder.module.declare_intrinsic("llvm.aarch64.hint", [], hint), [llir.Constant(_I32, 1)])


def _external(name: str) -> DialectFunction:
    """A function of the C library with one argument, by its name: for code that is called without any address."""

    def emit(builder: Any, values: Sequence[Any]) -> Any:
        function = builder.module.globals.get(name)
        if function is None:
            function = llir.Function(builder.module, llir.FunctionType(_I64, [_I64]), name)
        return builder.call(function, values)

    return _define(f"c_{name}", 1, emit)


SCOPE: dict[str, object] = {
    "load": _define("load", 1, _load),
    "load_u8": _define("load_u8", 1, _load_u8),
    "load_s32": _define("load_s32", 1, _load_s32),
    "store": _define("store", 2, _store),
    "quotient": _define("quotient", 2, _quotient),
    "smaller": _define("smaller", 2, _smaller),
    "narrow": _define("narrow", 1, _narrow),
    "stack": _define("stack", 1, _stack),
    "copy_bytes": _define("copy_bytes", 3, _copy_bytes),
    "zero_bytes": _define("zero_bytes", 2, _zero_bytes),
    "call_kernel": _define("call_kernel", 4, _call_kernel),
    "call_gemm": _define("call_gemm", 14, _call_gemm),
    **{f"c_{name}": _external(name) for name in ("malloc", "free", "strlen")},
    **{f"call{count}": _define(f"call{count}", count + 1, _call) for count in (0, 1, 2, 3, 4, 6)},
    **{f"call_routine{count}": _define(f"call_routine{count}", count + 1, _call_gemm) for count in range(5, 21)},
    "atomic_load": _define("atomic_load", 1, _atomic_load),
    "atomic_store": _define("atomic_store", 2, _atomic_store),
    "atomic_add": _define("atomic_add", 2, _atomic_add),
    "compare_exchange": _define("compare_exchange", 3, _compare_exchange),
    "cycles": _define("cycles", 0, _cycles),
    "pause": _define("pause", 0, _pause),
}
"""`load(address)`, `store(address, value)`; `quotient(a, b)` of positive numbers; `smaller(a, b)`; `narrow(bits)`: the
bits of an f32 for those of an f64; `stack(words)`: memory until the function returns; `callN(function, ...)`: a C
function of N integers or pointers, `call_routineN`: one without a result; `c_malloc(bytes)` and others: functions of
the C library; `atomic_add` returns the old value; `compare_exchange(address, expected, new)`: 1 if it succeeded."""
