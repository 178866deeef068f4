"""Write a standalone program as a module of WebAssembly that imports nothing, so that a browser can load it.

It exports `memory`; `run`, which takes nothing and returns 0; and `args` and `results`, the addresses of tables of
pointers to buffers, which are in its memory as its temporaries are::

    @buffer0 = internal global [3136 x i8] zeroinitializer, align 64
    @args = constant [1 x ptr] [ptr @buffer0], align 8
    @temporary = internal global [2560 x i8] zeroinitializer, align 64

    define i32 @run() {
      %status = call i32 @digits_run(ptr @args, ptr @results, ptr @temporary, ptr null)
      ret i32 %status
    }
"""

from __future__ import annotations

from ...hlo.buffers.assignment import ALIGNMENT
from ...hlo.errors import UnsupportedError
from ..runtime.library import CALLED
from .llvm_program import Surroundings, program_object
from .standalone import StandaloneProgram
from .targets import TargetMachine
from .wasm_linker import STACK_BYTES, link

EXPORTS = ("run", "args", "results")
_MOST_BYTES = 1 << 31
"""Most bytes of buffers: addresses have 32 bits, and a browser gives less memory."""


def program_object_for_module(program: StandaloneProgram, symbol: str, machine: TargetMachine) -> bytes:
    """The object file that `program_module` links; wasm-ld takes it too: ``--no-entry --export=run --export=args
    --export=results``."""
    return program_object(program, symbol, machine, Surroundings(caller(program, symbol), CALLED))


def program_module(program: StandaloneProgram, symbol: str, machine: TargetMachine) -> bytes:
    """The module. UnsupportedError if its arrays do not fit into its memory."""
    shapes = (*program.arguments, *program.results)
    total = sum(shape.byte_size for shape in shapes) + program.temporary_bytes + len(program.constants) + STACK_BYTES
    if total > _MOST_BYTES:
        raise UnsupportedError(f"the program needs {total:,} bytes of memory; WebAssembly's addresses have 32 bits")
    return link(program_object_for_module(program, symbol, machine), EXPORTS)


def caller(program: StandaloneProgram, symbol: str) -> str:
    """Buffers, and a function `run` that calls `SYMBOL_run` on them, in LLVM IR."""
    lines = [f"declare i32 @{symbol}_run(ptr, ptr, ptr, ptr)"]
    number = 0
    for name, shapes in (("args", program.arguments), ("results", program.results)):
        pointers = []
        for shape in shapes:
            lines.append(_buffer(f"buffer{number}", shape.byte_size))
            pointers.append(f"ptr @buffer{number}")
            number += 1
        initial = f"[{', '.join(pointers)}]" if pointers else "zeroinitializer"
        lines.append(f"@{name} = constant [{len(pointers)} x ptr] {initial}, align 8")
    lines.append(_buffer("temporary", program.temporary_bytes))
    call = f"call i32 @{symbol}_run(ptr @args, ptr @results, ptr @temporary, ptr null)"
    return "\n".join([*lines, f"define i32 @run() {{\n  %status = {call}\n  ret i32 %status\n}}", ""])


def _buffer(name: str, nbytes: int) -> str:
    return f"@{name} = internal global [{max(nbytes, 1)} x i8] zeroinitializer, align {ALIGNMENT}"
