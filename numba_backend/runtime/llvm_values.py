"""The types of loop programs as LLVM types, and their values: constants, casts, truth. Types have Numba's names, as in
`loops/typing.py`: ``float32``, ``bool``, ``uint8*``.

A cast does what Numba's does: integers wrap, a float becomes an integer by truncation, a number becomes a bool by
comparison with zero, a real number the real part of a complex one. A complex number is cast to complex and bool only.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import llvmlite.ir as llir

from ..loops.typing import SCALARS
from . import llvm_backend


class NoSuchType(TypeError):
    """There is no such type, or no such conversion."""


_I1, _I64 = llir.IntType(1), llir.IntType(64)
_F32, _F64 = llir.FloatType(), llir.DoubleType()

_VALUES: dict[str, Any] = {
    "bool": _I1, "float32": _F32, "float64": _F64,
    "complex64": llir.LiteralStructType([_F32, _F32]), "complex128": llir.LiteralStructType([_F64, _F64]),
    **{f"{sign}int{bits}": llir.IntType(bits) for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
_POINTERS = {name + "*": _VALUES[name].as_pointer() for name in SCALARS}
_VALUES |= _POINTERS

_SIGNED = frozenset(("int8", "int16", "int32", "int64"))
_UNSIGNED = frozenset(("uint8", "uint16", "uint32", "uint64"))
PARTS = {"complex64": "float32", "complex128": "float64"}
"""The type of a complex number's parts."""
INTEGERS, FLOATS, COMPLEX = _SIGNED | _UNSIGNED, frozenset(PARTS.values()), frozenset(PARTS)
"""The names of types, by families."""


def new_module() -> Any:
    """An empty LLVM module for this CPU."""
    module = llir.Module("kernel")
    module.triple, module.data_layout = llvm_backend.module_header()
    return module


def value_type(type_: str) -> Any:
    """The LLVM type of values of a type. A pointer is one to elements as they are in memory."""
    try:
        return _VALUES[type_]
    except KeyError:
        raise NoSuchType(f"{type_} is no type of numbers") from None


def constant(type_: str, value: bool | int | float) -> Any:
    """A literal of a type that is not complex."""
    return llir.Constant(value_type(type_), value)


def parts(builder: Any, pair: Any) -> tuple[Any, Any]:
    """Real and imaginary part of a complex number."""
    return builder.extract_value(pair, 0), builder.extract_value(pair, 1)


def pair_of(builder: Any, real: Any, imag: Any) -> Any:
    """A complex number of its parts."""
    nothing = llir.Constant(llir.LiteralStructType([real.type, imag.type]), llir.Undefined)
    return builder.insert_value(builder.insert_value(nothing, real, 0), imag, 1)


def truth(builder: Any, value: Any, type_: str) -> Any:
    """An i1: whether a number is not zero. NaN is not."""
    if type_ == "bool":
        return value
    if type_ in INTEGERS:
        return builder.icmp_unsigned("!=", value, constant(type_, 0))
    if type_ in FLOATS:
        return builder.fcmp_unordered("!=", value, constant(type_, 0.0))
    if type_ in COMPLEX:
        real, imag = parts(builder, value)
        part = PARTS[type_]
        return builder.or_(truth(builder, real, part), truth(builder, imag, part))
    raise NoSuchType(f"whether a {type_} is true")


def cast(builder: Any, value: Any, from_: str, to: str) -> Any:
    """A value of one type as a value of another."""
    if from_ == to:
        return value
    if to == "bool":
        return truth(builder, value, from_)
    if to in COMPLEX:
        part = PARTS[to]
        if from_ in COMPLEX:
            real, imag = parts(builder, value)
            return pair_of(builder, cast(builder, real, PARTS[from_], part), cast(builder, imag, PARTS[from_], part))
        return pair_of(builder, cast(builder, value, from_, part), constant(part, 0.0))
    if from_ in COMPLEX or to not in _VALUES or from_ not in _VALUES or "*" in from_ + to:
        raise NoSuchType(f"a {from_} cannot become a {to}")
    type_ = _VALUES[to]
    if isinstance(value, llir.Constant) and _is_kept(value.constant, to):
        return llir.Constant(type_, value.constant)
    if from_ in FLOATS:
        if to in FLOATS:
            return builder.fpext(value, type_) if to == "float64" else builder.fptrunc(value, type_)
        return builder.fptosi(value, type_) if to in _SIGNED else builder.fptoui(value, type_)
    if to in FLOATS:
        return builder.sitofp(value, type_) if from_ in _SIGNED else builder.uitofp(value, type_)
    if value.type.width == type_.width:
        return value
    if value.type.width > type_.width:
        return builder.trunc(value, type_)
    return builder.sext(value, type_) if from_ in _SIGNED else builder.zext(value, type_)


def _is_kept(number: Any, to: str) -> bool:
    """Whether a literal is the same number as a float of this type: `float32(0)` needs no instruction."""
    if to not in FLOATS or type(number) not in (int, float) or not abs(number) < 2**53:
        return False
    return to == "float64" or bool(struct.unpack("f", struct.pack("f", number))[0] == number)


_CONTRACTED = frozenset(("fadd", "fsub", "fmul", "fdiv", "frem", "fcmp"))


def allow_contraction(module: Any) -> None:
    """Allow each floating-point instruction without fast-math flags to be fused into a multiply-add."""
    for instruction in _instructions(module):
        if instruction.opname in _CONTRACTED:
            if not instruction.flags:
                instruction.flags.append("contract")
        elif isinstance(instruction, llir.CallInstr) and instruction.type in (_F32, _F64):
            instruction.fastmath.add("contract")


def _instructions(module: Any) -> Iterator[Any]:
    for function in module.functions:
        for block in function.blocks:
            yield from block.instructions
