"""A standalone program as C: constants, functions, kernels, and the function that runs the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ...hlo.buffers.assignment import ALIGNMENT
from ..loops.typing import SHORT, pointer_to
from ..runtime.kernel import ELEMENT_BYTES, KernelSource
from ..runtime.program import Argument
from .blas import C_TYPES as C_TYPES_OF_BLAS
from .blas import ROW_MAJOR, TRANSPOSES, batch_strides
from .c_declarations import used_parameters
from .c_functions import C_TYPES, PRELUDE, CFunctions
from .c_kernels import kernel_in_c
from .ir_to_c import float_literal
from .standalone import (
    BAD_TEMPORARY,
    CONSTANTS,
    NO_BUFFER,
    PARALLEL,
    WATCH,
    CallBlas,
    CallKernel,
    Copy,
    Jump,
    JumpIfFalse,
    Row,
    StandaloneProgram,
    Switch,
    Zero,
)

_BYTES_A_LINE = 24


def program_in_c(program: StandaloneProgram, symbol: str) -> str:
    """A C11 file that defines `int32_t SYMBOL_run(const void *const *arguments, void *const *results, void *temporary,
    const hloom_parallel *parallel)`. It includes nothing but C's own headers."""
    return programs_in_c({symbol: program})


def programs_in_c(programs: Mapping[str, StandaloneProgram]) -> str:
    """Several programs in C, by symbol. They share functions and kernels."""
    functions = CFunctions()
    kernels: dict[str, KernelSource] = {}
    for program in programs.values():
        kernels.update((kernel.identity, kernel) for kernel in program.kernels)
    names = {identity: f"kernel{number}_{kernels[identity].name}" for number, identity in enumerate(kernels)}
    texts = []
    for identity, kernel in kernels.items():
        types = [_type_of(kind, dtype) for kind, dtype in kernel.parameters]
        assert kernel.program is not None, "only functions of the runtime are text alone, and none of them is here"
        texts.append(kernel_in_c(kernel.program, types, names[identity], functions, only_used=True))
    calls = {(p.blas, row.gemm.dtype) for p in programs.values() for row in p.rows if isinstance(row, CallBlas)}
    declared = sorted(blas.declaration(dtype) for blas, dtype in calls if blas is not None)
    bodies = []
    for symbol, program in programs.items():
        prefix = f"{symbol}_" if len(programs) > 1 else ""
        body = _Run(program, names, symbol, prefix).text()
        if f"{prefix}constants" in body:  # a kernel may not need what it is given
            bodies.append(_constants(program.constants, prefix))
        bodies.append(body)
    never = _NEVER if any("never" in body for body in bodies) else ""
    return "\n".join(filter(None, [PRELUDE, PARALLEL, *declared, functions.text(), *texts, never, *bodies]))


_NEVER = "static const int64_t never[8];\n"
"""The watch of loops: it is constant, so no loop is interrupted."""


def _type_of(kind: str, dtype: str) -> str:
    return pointer_to(SHORT[dtype]) if kind == "pointer" else SHORT[dtype]


def _constants(data: bytes, prefix: str) -> str:
    if not data:
        return ""
    lines = [
        ", ".join(map(str, data[start : start + _BYTES_A_LINE])) + "," for start in range(0, len(data), _BYTES_A_LINE)
    ]
    head = f"static _Alignas({ALIGNMENT}) const uint8_t {prefix}constants[{len(data)}] = {{"
    return "\n".join([head, *lines, "};", ""])


class _Run:
    """The function that runs the rows. A kernel that may be split is called by a task of its own, from the bases."""

    def __init__(self, program: StandaloneProgram, names: Mapping[str, str], symbol: str, prefix: str) -> None:
        self._program = program
        self._names = [names[kernel.identity] for kernel in program.kernels]
        self._used = [_used_places(kernel) for kernel in program.kernels]
        self._symbol = symbol
        self._prefix = prefix
        self._tasks: list[str] = []

    def text(self) -> str:
        program = self._program
        count = len(program.arguments) + len(program.results) + 1
        lines = []
        if program.static_arena and program.temporary_bytes:
            lines.append(f"    if (temporary == NULL) temporary = {self._prefix}arena;")
        lines.append(f"    uint8_t *base[{count}];")
        given = len(program.arguments)
        lines += [f"    base[{k}] = (uint8_t *)arguments[{k}];" for k in range(given)]
        lines += [f"    base[{given + k}] = (uint8_t *)results[{k}];" for k in range(len(program.results))]
        lines += [f"    base[{count - 1}] = (uint8_t *)temporary;", "    (void)base;", "    (void)parallel;"]
        unused = {"arguments": given, "results": len(program.results)}
        lines += [f"    (void){name};" for name, number in unused.items() if not number]
        lines += [f"    if (base[{k}] == NULL) return {NO_BUFFER};" for k in program.needed]
        if program.temporary_bytes:
            lines.append(f"    if (temporary == NULL || (uintptr_t)temporary % {ALIGNMENT}) return {BAD_TEMPORARY};")
        targets = program.targets
        for number, row in enumerate(program.rows):
            if number in targets:
                lines.append(f"row{number}:;")
            lines.extend("    " + line for line in self._row(number, row))
        if len(program.rows) in targets:
            lines.append(f"row{len(program.rows)}:;")
        head = (
            f"int32_t {self._symbol}_run(const void *const *arguments, void *const *results, void *temporary,\n"
            "                 const hloom_parallel *parallel) {"
        )
        prototype = head.removesuffix(" {") + ";"
        if program.static_arena and program.temporary_bytes:
            arena = f"static _Alignas({ALIGNMENT}) uint8_t {self._prefix}arena[{program.temporary_bytes}];\n"
            self._tasks.insert(0, arena)
        return "\n".join([*self._tasks, prototype, head, *lines, "    return 0;", "}", ""])

    def _row(self, number: int, row: Row) -> Iterator[str]:
        match row:
            case CallKernel(grain=0):
                yield self._call(row, "0", str(row.extent))
            case CallKernel():
                task = f"{self._prefix}row{number}_task"
                self._tasks.append(
                    f"static void {task}(void *data, int64_t lo, int64_t hi) {{\n"
                    "    uint8_t *const *base = (uint8_t *const *)data;\n"
                    "    (void)base;\n"
                    f"    {self._call(row, 'lo', 'hi')}\n}}\n"
                )
                yield "if (parallel) {"
                yield f"    parallel->run(parallel->context, {row.extent}, {row.grain}, {task}, (void *)base);"
                yield "} else {"
                yield f"    {task}((void *)base, 0, {row.extent});"
                yield "}"
            case CallBlas():
                yield from self._product(row)
            case Copy(destination=destination, source=source, nbytes=nbytes):
                yield f"memmove({self._place(destination)}, {self._place(source)}, {nbytes});"
            case Zero(destination=destination, nbytes=nbytes):
                yield f"memset({self._place(destination)}, 0, {nbytes});"
            case Jump(target=target):
                yield f"goto row{target};"
            case JumpIfFalse(pred=pred, target=target):
                yield f"if (!*(const uint8_t *)({self._place(pred)})) goto row{target};"
            case Switch(index=index, targets=targets):
                yield f"switch (*(const int32_t *)({self._place(index)})) {{"
                for value, target in enumerate(targets[:-1]):
                    yield f"    case {value}: goto row{target};"
                yield f"    default: goto row{targets[-1]};"
                yield "}"

    def _call(self, row: CallKernel, lo: str, hi: str) -> str:
        kernel = self._program.kernels[row.kernel]
        arguments = [
            self._argument(row.arguments[place], kernel.parameters[place].dtype) for place in self._used[row.kernel]
        ]
        return f"{self._names[row.kernel]}({', '.join([lo, hi, *arguments])});"

    def _product(self, row: CallBlas) -> Iterator[str]:
        """The call, in a loop over each dimension of the batch."""
        gemm, blas = row.gemm, self._program.blas
        assert blas is not None
        real, is_complex = C_TYPES_OF_BLAS[gemm.dtype], gemm.dtype.startswith("c")
        offsets = ["", "", ""]
        indent = ""
        for d, (count, *strides) in enumerate(batch_strides(gemm, ELEMENT_BYTES[gemm.dtype])):
            yield f"{indent}for (int64_t i{d} = 0; i{d} < {count}; ++i{d}) {{"
            indent += "    "
            offsets = [o + (f" + i{d} * {s}" if s else "") for o, s in zip(offsets, strides, strict=True)]
        a, b, c = (f"(void *)({self._place(p)}{o})" for p, o in zip((row.a, row.b, row.c), offsets, strict=True))
        factors = [
            f"(const {real}[2]){{{f.real!r}, {f.imag!r}}}" if is_complex else repr(f.real)
            for f in (complex(gemm.alpha), complex(gemm.beta))
        ]
        orders = f"{TRANSPOSES[gemm.transpose_a]}, {TRANSPOSES[gemm.transpose_b]}"
        yield f"{indent}{blas.function(gemm.dtype)}({ROW_MAJOR}, {orders}, {gemm.m}, {gemm.n}, {gemm.k}, {factors[0]},"
        yield f"{indent}    {a}, {gemm.lda}, {b}, {gemm.ldb}, {factors[1]}, {c}, {gemm.ldc});"
        while indent:
            indent = indent[4:]
            yield f"{indent}}}"

    def _argument(self, argument: Argument, dtype: str) -> str:
        if argument.kind == "pointer":
            if argument == WATCH:
                return "never"
            return f"(void *)({self._place(argument)})"
        if argument.kind == "size":
            return f"INT64_C({argument.word})" if abs(argument.word) >= 2**31 else str(argument.word)
        return _literal(argument.word, dtype)

    def _place(self, argument: Argument) -> str:
        if argument.base == CONSTANTS:
            base = f"{self._prefix}constants"
        elif argument.base < 0:
            return "NULL"
        else:
            base = f"base[{argument.base}]"
        return f"{base} + {argument.word}" if argument.word else base


def _used_places(kernel: KernelSource) -> list[int]:
    """The numbers of the parameters that the kernel's C function takes."""
    assert kernel.program is not None
    used = used_parameters(kernel.program)
    return [place for place, name in enumerate(kernel.program.parameters[2:]) if name in used]


def _literal(word: int, dtype: str) -> str:
    """A scalar argument from its 64-bit pattern."""
    kind = np.dtype(SHORT[dtype])
    value = np.frombuffer((word % 2**64).to_bytes(8, "little"), kind, 1)[0]
    if kind.kind == "f":
        return float_literal(float(value), kind.itemsize == 4)
    if kind.kind == "c":
        return f"({SHORT[dtype]}){{{float_literal(float(value.real), True)}, {float_literal(float(value.imag), True)}}}"
    if int(value) == -(2**63):
        return "INT64_MIN"
    macro = "UINT64_C" if kind.kind == "u" else "INT64_C"
    return f"({C_TYPES[SHORT[dtype]]}){macro}({int(value)})"
