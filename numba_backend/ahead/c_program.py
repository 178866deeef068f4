"""A standalone program as C: constants, functions, kernels, and the function that runs the rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...hlo.buffers.assignment import ALIGNMENT
from ..loops.typing import SHORT, pointer_to
from ..runtime.kernel import KernelSource
from ..runtime.program import Argument
from .c_functions import C_TYPES, PRELUDE, CFunctions
from .c_kernels import kernel_in_c
from .ir_to_c import float_literal
from .standalone import (
    BAD_TEMPORARY,
    CONSTANTS,
    NO_BUFFER,
    PARALLEL,
    WATCH,
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
    functions = CFunctions()
    names = _kernel_names(program.kernels)
    kernels = []
    for kernel, name in zip(program.kernels, names, strict=True):
        types = [_type_of(kind, dtype) for kind, dtype in kernel.parameters]
        assert kernel.program is not None, "only functions of the runtime are text alone, and none of them is here"
        kernels.append(kernel_in_c(kernel.program, types, name, functions))
    run = _Run(program, names, symbol)
    body = run.text()
    return "\n".join(
        filter(None, [PRELUDE, PARALLEL, _constants(program.constants), functions.text(), *kernels, body])
    )


def _kernel_names(kernels: tuple[KernelSource, ...]) -> list[str]:
    """A name of its own for each kernel: that of its text, with a number."""
    return [f"kernel{number}_{kernel.name}" for number, kernel in enumerate(kernels)]


def _type_of(kind: str, dtype: str) -> str:
    return pointer_to(SHORT[dtype]) if kind == "pointer" else SHORT[dtype]


def _constants(data: bytes) -> str:
    if not data:
        return ""
    lines = [
        ", ".join(map(str, data[start : start + _BYTES_A_LINE])) + "," for start in range(0, len(data), _BYTES_A_LINE)
    ]
    return "\n".join([f"static _Alignas({ALIGNMENT}) const uint8_t constants[{len(data)}] = {{", *lines, "};", ""])


class _Run:
    """The function that runs the rows. A kernel that may be split is called by a task of its own, from the bases."""

    def __init__(self, program: StandaloneProgram, names: list[str], symbol: str) -> None:
        self._program = program
        self._names = names
        self._symbol = symbol
        self._tasks: list[str] = []
        self._uses_watch = any(
            argument == WATCH for row in program.rows if isinstance(row, CallKernel) for argument in row.arguments
        )

    def text(self) -> str:
        program = self._program
        count = len(program.arguments) + len(program.results) + 1
        lines = [f"    uint8_t *base[{count}];"]
        given = len(program.arguments)
        lines += [f"    base[{k}] = (uint8_t *)arguments[{k}];" for k in range(given)]
        lines += [f"    base[{given + k}] = (uint8_t *)results[{k}];" for k in range(len(program.results))]
        lines += [f"    base[{count - 1}] = (uint8_t *)temporary;", "    (void)parallel;"]
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
        watch = ["static const int64_t never[8];\n"] if self._uses_watch else []
        return "\n".join([*watch, *self._tasks, prototype, head, *lines, "    return 0;", "}", ""])

    def _row(self, number: int, row: Row) -> Iterator[str]:
        match row:
            case CallKernel(grain=0):
                yield self._call(row, "0", str(row.extent))
            case CallKernel():
                task = f"row{number}_task"
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
            self._argument(argument, dtype)
            for argument, (_, dtype) in zip(row.arguments, kernel.parameters, strict=True)
        ]
        return f"{self._names[row.kernel]}({', '.join([lo, hi, *arguments])});"

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
            base = "constants"
        elif argument.base < 0:
            return "NULL"
        else:
            base = f"base[{argument.base}]"
        return f"{base} + {argument.word}" if argument.word else base


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
