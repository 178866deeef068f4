"""The functions of the kernel dialect in C, translated from the LLVM IR that their definitions write.

`exp` of a float32 is defined once, in `runtime/math/`; its C is the same list of operations. So C code rounds as
kernels do, as long as the compiler neither contracts nor reorders floating-point operations: see `PRELUDE`.

    static inline float exp_f32(float a0) {
        const float v1 = fmaf(a0, 0x1.715476p+0f, 0x1.8p+23f);
        ...
        return v20;
    }

Kernels are printed from their loop programs (c_kernels.py), not from LLVM IR. Printed from LLVM IR and compiled by GCC,
a product of 64 x 64 would take 15 times as long, and softmax and tanh 1.0 to 1.2 times as long. The text would have 1.5
to 8 times the lines.
"""

from __future__ import annotations

import re
from typing import Any

import llvmlite.ir as llir

from ...hlo.errors import UnsupportedError
from ..runtime.dialect import SCOPE
from ..runtime.dialect_define import Kind
from ..runtime.llvm_values import new_module, value_type
from ..runtime.operators import operation
from .ir_to_c import Translation, constant

PRELUDE = """\
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Products and sums are rounded one by one, as the functions below expect, and signed integers wrap. With Clang, and
   with compilers that know neither of these pragmas, give -ffp-contract=off -fwrapv. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off", "wrapv", "no-math-errno", "no-trapping-math")
#elif defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

/* Before a loop of which no iteration reads or writes what another one writes. */
#if defined(__GNUC__) && !defined(__clang__)
#define HLOOM_INDEPENDENT _Pragma("GCC ivdep")
#else
#define HLOOM_INDEPENDENT
#endif
"""
"""The first lines of a file that has functions of this module. Without errno and traps, GCC makes vectors of `fma`,
`floor` and `sqrt`."""

C_TYPES = {
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}, "float32": "float",
    "float64": "double", "complex64": "complex64", "complex128": "complex128", "bool": "bool",
}  # fmt: skip
"""The C type of each type of loop programs."""

_SHORT = {
    "int8": "s8", "int16": "s16", "int32": "s32", "int64": "s64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
    "uint64": "u64", "float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128", "bool": "bool",
}  # fmt: skip

_STRUCTS = {
    "complex64": "typedef struct { float part0, part1; } complex64;\n",
    "complex128": "typedef struct { double part0, part1; } complex128;\n",
    "uint128": "__extension__ typedef unsigned __int128 uint128;\n__extension__ typedef __int128 int128;\n",
    "half": "__extension__ typedef _Float16 half;\n",
}

_MATH = {
    "fma": "fma", "fabs": "fabs", "copysign": "copysign", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil",
    "trunc": "trunc", "round": "round", "roundeven": "rint",
}  # fmt: skip
"""LLVM's intrinsics as functions of C's library; `rint` rounds to even in the rounding mode that programs start in."""

_HELPERS = {
    "maximum": "a > b || a != a ? a : b > a || b != b ? b : signbit(a) ? b : a",
    "minimum": "a < b || a != a ? a : b < a || b != b ? b : signbit(a) ? a : b",
}


class CFunctions:
    """The functions that a file uses, each written once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._structs: set[str] = set()
        self._module = new_module()

    def text(self) -> str:
        """All functions so far, callees first."""
        structs = "".join(_STRUCTS[name] for name in _STRUCTS if name in self._structs)
        return "\n".join(filter(None, [structs, *self._texts.values()]))

    def type(self, name: str) -> str:
        """The C type of a type of loop programs."""
        if name in _STRUCTS:
            self._structs.add(name)
        return C_TYPES.get(name, name)

    def use(self, name: str, arguments: tuple[str, ...], operator: Any = None) -> str:
        """The name of the C function for a function of the dialect and types of arguments; or for an operator of
        Python, where C's has another meaning."""
        own = "_".join([name, *dict.fromkeys(_SHORT[a] for a in arguments)])
        return self._defined(own, name, operator or SCOPE[name], arguments)

    def use_with_literals(self, function: str, argument: str, literals: tuple[int, ...]) -> str:
        """The same for a function with one argument of this type; its other arguments are literals in the kernel's
        text."""
        own = "_".join([function, _SHORT[argument], *map(str, literals)])
        return self._defined(own, function, SCOPE[function], (argument, *literals))

    def add(self, name: str, text: str) -> None:
        """A function that is written in C itself."""
        self._texts.setdefault(name, text)

    def _defined(self, own: str, name: str, function: Any, kinds: tuple[Kind, ...]) -> str:
        if own not in self._texts:
            found = operation(function, kinds)
            if found is None:
                raise UnsupportedError(f"{name} of {', '.join(map(str, kinds))} has no form in C")
            expected, result, emit = found
            passed = [t for t in expected if isinstance(t, str)]
            signature = llir.FunctionType(value_type(result), [value_type(t) for t in passed])
            body = llir.Function(self._module, signature, own)
            builder = llir.IRBuilder(body.append_basic_block("entry"))
            values = [*body.args, *[None] * (len(expected) - len(passed))]
            builder.ret(emit(builder, values))
            seen = [self.type(t) for t in (*passed, result)]
            self._texts[own] = Translation(self, body, own, seen).text()
        return own

    # For the translation

    def of_type(self, type_: Any) -> str:
        """The C type of an LLVM type. Integers are unsigned, so that they wrap."""
        if isinstance(type_, llir.IntType):
            if type_.width == 1:
                return "bool"
            if type_.width == 128:
                return self.type("uint128")
            if type_.width in (8, 16, 32, 64):
                return f"uint{type_.width}_t"
        if isinstance(type_, llir.FloatType):
            return "float"
        if isinstance(type_, llir.DoubleType):
            return "double"
        if isinstance(type_, llir.HalfType):
            return self.type("half")
        if isinstance(type_, llir.LiteralStructType) and len(type_.elements) == 2:
            return self.type("complex64" if isinstance(type_.elements[0], llir.FloatType) else "complex128")
        if isinstance(type_, llir.PointerType):
            pointee = type_.pointee
            return f"{self.of_type(pointee.element if isinstance(pointee, llir.ArrayType) else pointee)} *"
        raise UnsupportedError(f"LLVM's type {type_} has no form in C")

    def callee(self, function: Any) -> str:
        """The name of a function that another one calls."""
        name = function.name
        if not name.startswith("llvm."):
            own = re.sub(r"\W", "_", name)
            if own not in self._texts:
                self._texts[own] = Translation(self, function, own).text()
            return own
        operation = name.split(".")[1]
        kind = function.function_type.args[0]
        suffix = "f" if isinstance(kind, llir.FloatType) else ""
        if operation in _MATH:
            return _MATH[operation] + suffix
        own = re.sub(r"\W", "_", name)
        if own not in self._texts:
            self._texts[own] = self._helper(operation, own, kind)
        return own

    def table(self, array: Any) -> str:
        """The name of a constant array of the module."""
        own = re.sub(r"\W", "_", array.name)
        if own not in self._texts:
            kind = array.initializer.type
            values = array.initializer.constant
            typed = [v if isinstance(v, llir.Constant) else llir.Constant(kind.element, v) for v in values]
            items = ", ".join(map(constant, typed))
            self._texts[own] = f"static const {self.of_type(kind.element)} {own}[{kind.count}] = {{{items}}};\n"
        return own

    def _helper(self, operation: str, own: str, kind: Any) -> str:
        c = self.of_type(kind)
        head = f"static inline {c} {own}"
        if operation in _HELPERS:
            return f"{head}({c} a, {c} b) {{ return {_HELPERS[operation]}; }}\n"
        bits = kind.width if isinstance(kind, llir.IntType) else 0
        if operation in ("smax", "smin", "umax", "umin"):
            seen = f"int{bits}_t" if operation[0] == "s" else c
            relation = ">" if operation.endswith("max") else "<"
            return f"{head}({c} a, {c} b) {{ return ({seen})a {relation} ({seen})b ? a : b; }}\n"
        if operation == "fshl":
            text = f"b &= {bits - 1}; return b ? a << b | c >> ({bits} - b) : a;"
            return f"{head}({c} a, {c} c, {c} b) {{ {text} }}\n"
        if operation == "canonicalize":
            return f"{head}({c} a) {{ return a; }}\n"
        if operation == "ctpop":
            return f"{head}({c} a) {{ {c} n = 0; for (; a; a = ({c})(a & (a - 1))) ++n; return n; }}\n"
        if operation == "ctlz":
            return f"{head}({c} a, bool b) {{ {c} n = {bits}; (void)b; for (; a; a = ({c})(a >> 1)) --n; return n; }}\n"
        raise UnsupportedError(f"LLVM's intrinsic {operation} has no form in C")
