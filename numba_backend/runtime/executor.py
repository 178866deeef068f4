"""The executor: one native function that runs a program. It is compiled once, for all programs, and stored.

A program (program.py builds it) is one block of int64 words:

    header      number of arguments; word offsets of the values, the bases, the code; addresses of malloc, free; of
                what callbacks.py has: the table, `call_python`, `look`; then what call.py needs
    values      one word for each argument: a 64-bit pattern, or a byte offset from a base
    bases       one word for each argument: the base of its offset; base 0 is address 0, for absolute values
    code        rows (the program's instructions), see `Op`

`execute` first resolves every argument once (value + bases[base]) into separate memory, so that one program may run in
several threads at once; then it runs the rows. Their operands are indices into the resolved arguments.

There is a second one, `execute_recorded`: the same text with a few lines more, which note when each row began and
ended (recorder.py). A call takes the one or the other, so the usual one has no test for it.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from .kernel import KernelSource, Parameter


class Op(enum.IntEnum):
    """The first word of a row; the comments list the words after it. Targets are counted in words from the code's
    start."""

    END = 0
    KERNEL = 1  # entry, first argument, extent, grain (0: never split)
    COPY = 2  # destination, source, bytes; the two may overlap
    ZERO = 3  # destination, bytes
    JUMP = 4  # target
    JUMP_IF_FALSE = 5  # pred, target
    SWITCH = 6  # s32 index, count, target...: an index out of range selects the last target, as in XLA's conditional
    CALLBACK = 7  # function(arguments) -> 0, or a status that stops the program; first argument
    GEMM = 8  # run_gemm, ...: blas.py explains the words
    PYTHON = 9  # a Python function of the arguments' address; first argument
    LOOP = 10  # target, before this row; estimated nanoseconds of an iteration: callbacks.py says what for
    NATIVE_LOOP = 11  # entry, first argument, extent, grain, argument of the watch: a kernel that looks for interrupts
    CHAIN = 12  # entry, first argument, extent, grain, words of the row, ...: chain.py explains them
    LONG = 13  # run_long, entry, first argument, extent, grain, step, long_piece: long_kernels.py explains them


HEADER_WORDS = 17
FUEL = 50_000
"""A loop looks at the clock after this time, as its rows are estimated, in nanoseconds."""
STACK_WORDS = 4096
WATCH_WORDS = 8
LAST, SECONDS, NANOSECONDS, API, CALL_PYTHON, LOOK, STATUS = range(7)
"""The words of a watch: the state that `look` (callbacks.py) keeps from one look to the next, its arguments, its
address, and the status that a stopped native loop stores. A watch of zeros never stops a loop."""
GEMM_WORDS = 68

_WATCH = f"""\
            store(watch + {8 * API}, load(program + 48))
            store(watch + {8 * CALL_PYTHON}, load(program + 56))
            store(watch + {8 * LOOK}, load(program + 64))
            store(watch + {8 * STATUS}, 0)
"""


class Marks(NamedTuple):
    """The texts that a variant of the executor inserts at certain places, with the indentation of the place."""

    name: str = "execute"
    begin: str = ""
    row: str = ""
    """Before each row; `op` is the opcode of the row before it."""
    split: str = ""
    """Before a kernel that threads share."""
    entry: str = "load(at + 8)"
    arguments: str = "arguments + load(at + 16) * 8"
    product: str = ""
    """Before a matrix product."""
    product_row: str = "at"
    end: str = ""


def executor_text(marks: Marks) -> str:
    """The text of the executor, or of a variant of it."""

    def shared(watch: str) -> str:
        return f"""\
            extent = load(at + 24)
            grain = load(at + 32)
            if pool == 0 or grain == 0 or extent < grain + grain:
                call_kernel(load(at + 8), 0, extent, arguments + load(at + 16) * 8)
            else:
{marks.split}                call6(load(pool + 8), pool, {marks.entry}, {marks.arguments}, extent, grain, {watch})
"""

    return f"""
def {marks.name}(program, bases, pool):
    count = load(program)
    values = program + load(program + 8) * 8
    which = program + load(program + 16) * 8
    code = program + load(program + 24) * 8
    on_heap = count > {STACK_WORDS}
    if on_heap:
        arguments = call1(load(program + 32), count * 8)
        if arguments == 0:
            return -1
    else:
        arguments = stack(count)
    for i in range(count):
        store(arguments + i * 8, load(values + i * 8) + load(bases + load(which + i * 8) * 8))
    status = 0
    fuel = {FUEL}
    watch = stack({WATCH_WORDS})
    store(watch, 0)
    at = code
{marks.begin}    while True:
{marks.row}        op = load(at)
        if op == {Op.KERNEL}:
{shared("0")}            at += 40
        elif op == {Op.JUMP_IF_FALSE}:
            if load_u8(load(arguments + load(at + 8) * 8)) == 0:
                at = code + load(at + 16) * 8
            else:
                at += 24
        elif op == {Op.LOOP}:
            fuel -= load(at + 16)
            at = code + load(at + 8) * 8
            if fuel <= 0:
                fuel = {FUEL}
                status = call3(load(program + 64), load(program + 48), load(program + 56), watch)
                if status != 0:
                    break
        elif op == {Op.JUMP}:
            at = code + load(at + 8) * 8
        elif op == {Op.COPY}:
            copy_bytes(load(arguments + load(at + 8) * 8), load(arguments + load(at + 16) * 8), load(at + 24))
            at += 32
        elif op == {Op.ZERO}:
            zero_bytes(load(arguments + load(at + 8) * 8), load(at + 16))
            at += 24
        elif op == {Op.SWITCH}:
            index = load_s32(load(arguments + load(at + 8) * 8))
            last = load(at + 16) - 1
            if index < 0 or index > last:
                index = last
            at = code + load(at + 24 + index * 8) * 8
        elif op == {Op.CALLBACK}:
            status = call1(load(at + 8), arguments + load(at + 16) * 8)
            if status != 0:
                break
            at += 24
        elif op == {Op.PYTHON}:
            words = arguments + load(at + 16) * 8
            status = call3(load(program + 56), load(program + 48), load(at + 8), words)
            if status != 0:
                break
            at += 24
        elif op == {Op.GEMM}:
{marks.product}            call3(load(at + 8), {marks.product_row}, arguments, pool)
            at += {GEMM_WORDS * 8}
        elif op == {Op.NATIVE_LOOP}:
{_WATCH}            store(arguments + load(at + 40) * 8, watch)
{shared("watch")}            status = load(watch + {8 * STATUS})
            if status != 0:
                break
            at += 48
        elif op == {Op.CHAIN}:
            store(arguments + load(at + 16) * 8, at)
{shared("0")}            at += load(at + 40) * 8
        elif op == {Op.LONG}:
{_WATCH}            status = call4(load(at + 8), at, arguments, pool, watch)
            if status != 0:
                break
            at += 64
        else:
            break
{marks.end}    if on_heap:
        call1(load(program + 40), arguments)
    return status
"""


def native_function(name: str, source: str, count: int) -> KernelSource:
    """A function of the runtime itself, with `count` int64 parameters; the store compiles it like any kernel."""
    return KernelSource(name, source, (Parameter("size", "s64"),) * count, "native")


EXECUTOR = native_function("execute", executor_text(Marks()), 3)
"""`int64 execute(program, bases, pool)`; it returns 0, or the status that stopped the program."""
