"""Programs of one elementary function, which need no pass and no emitter: their kernels come with the package.

Outside of jit each elementary function is a program (`tracer/functions.py`), and often the first that a process runs.
`runtime/native_code/elementary.txt` has the kernel of each, for each combination of types and of arrays and scalars, as
the stages make it. `runtime/native_code.py` has its machine code for most processors; on all others the text is
compiled and stored as every kernel is. `tools/native_code.py` writes the file, and a test compares it with the kernels
that the stages make.

    program power f32[n],f32[] -> f32 grain 19048 nanoseconds 1.05 ir 1c2f0b5d77a9e0e4
    def fused_power(lo, hi, x0, x1, out):
        v0 = x1[0]
        for i in range(lo, hi):
            out[i] = pow(x0[i], v0)

`grain` and `nanoseconds` are arguments of `ProgramBuilder.kernel`, for one element; `ir` is a digest of the LLVM IR
that the text becomes: where it is another one, the machine code is out of date.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..hlo.ir import HloModule
from ..hlo.opcode import Opcode
from ..hlo.shape import Shape
from .executable import Frame
from .runtime.kernel import KernelSource, Parameter
from .runtime.native_code import FOLDER, data
from .runtime.program import Program, ProgramBuilder, pointer
from .settings import is_watched, with_effect

PATH = os.path.join(FOLDER, "elementary.txt")


class Function(NamedTuple):
    """A kernel of an elementary function over n elements, with the facts that a program needs."""

    key: str
    """See `key_of`."""
    kernel: KernelSource
    grain: int
    nanoseconds: float
    ir: str


def key_of(opcode: Opcode, operands: Sequence[Shape], result: Shape) -> str:
    """The key of a program: ``power f32[n],f32[] -> f32``. Arrays of one element are scalars."""
    one = result.num_elements == 1
    given = ",".join([f"{s.element.value}[{'' if one or not s.dimensions else 'n'}]" for s in operands])
    return f"{opcode.value} {given} -> {result.element.value}"


def program_of(module: HloModule) -> tuple[Frame, Program] | None:
    """The program of a module for `Compiler.compile_function`; None if the stages must make it: if a setting asks for
    another than the usual one, or if the function is not in the file."""
    if module.frontend_attributes or is_watched() or with_effect():
        return None
    (op,) = module.entry.root.operands
    parameters, result = [p.shape for p in module.entry.parameters], op.shape
    function = find(data(PATH), key_of(op.opcode, parameters, result))
    if function is None:
        return None
    builder, count = ProgramBuilder(), result.num_elements
    arguments = [pointer(k) for k in range(len(parameters) + 1)]
    builder.kernel(function.kernel, arguments, count, function.grain, function.nanoseconds * count)
    return Frame(module.name, tuple(parameters), (result,), (), 0, 1, 1), builder.build()


def find(text: str, key: str) -> Function | None:
    """The function of a key in the text of a file."""
    mark = f"\nprogram {key} grain "
    at = text.find(mark)
    if at < 0:
        return None
    end = text.find("\nprogram ", at + 1)
    about, source = text[at + len(mark) : end + 1 if end >= 0 else len(text)].split("\n", 1)
    grain, _, nanoseconds, _, ir = about.split(" ")
    _, given, _, result = key.split(" ")
    elements = [*(operand.partition("[")[0] for operand in given.split(",")), result]
    parameters = tuple([Parameter("pointer", element) for element in elements])
    kernel = KernelSource(source[4 : source.index("(")], source, parameters, in_package=True)
    return Function(key, kernel, int(grain), float(nanoseconds), ir)


def keys(text: str) -> list[str]:
    """The keys of all functions in the text of a file."""
    parts = text.split("\nprogram ")[1:]
    return [part.partition(" grain ")[0] for part in parts]


def write(functions: Iterable[Function]) -> str:
    """The text of the file."""
    parts = [
        f"program {f.key} grain {f.grain} nanoseconds {f.nanoseconds!r} ir {f.ir}\n{f.kernel.source}" for f in functions
    ]
    return "".join(["# Kernels of elementary functions. Made by tools/native_code.py.\n", *parts])
