"""The native half of recording: an executor that notes when each row began and ended, and where it notes that.

A call of a program takes its executor from the first word of the executor hook (executor_hook.py). While nothing is
recorded that is the usual executor, which knows nothing of all this. Otherwise it is `execute_recorded`, the same text
with a few lines more:

    before each row       the time is read, once a row, and the row before it gets an event if it was work: not a jump
    kernels on threads    what the pool's threads call is `record_piece`, which calls the kernel and adds an event
    matrix products       the row is copied, and in the copy the same is done with its pieces

An event is five words: the row's address, when it began and ended (CLOCK_MONOTONIC, in nanoseconds, which is also the
clock of `time.perf_counter`), and the range of a piece. A piece has its row's address plus one; a whole program has the
address of its block. Each thread has a ring buffer of its own, so nothing is locked: the thread writes an event and
then the number of events, and the reader writes how many were read. If the reader is late and the ring is full, an
event is not kept, but counted in a table of the thread: by row, how many there were and how long they took.
"""

from __future__ import annotations

from ...hlo.system import system
from .blas import BATCH, ITEM
from .executor import FUEL, GEMM_WORDS, Marks, Op, executor_text, native_function
from .executor_hook import EXECUTE

GENERATION, RECORD, PIECE, PRODUCT_PIECE, CLOCK, GET, SET, KEY, SELF, FIRST, START = range(EXECUTE + 1, 12)
NEXT, HOMELESS = 16, 24
"""The words of the executor hook after the executor's: the number of the recording, 0 if none runs; functions;
the key of each thread's own word; where the buffers begin, and how many had got an owner before this recording. Apart
from them, since threads write there: the number of buffers that have got an owner; the number of events of threads that
found no buffer. Buffers are given out in turn, so that a thread which is late with an event of the recording before
does not write into the buffer of another one."""

BUFFERS = 512
EVENTS = 1 << 14
EVENT_WORDS = 5
HEAD, TAIL, LOST, THREAD, TABLE = 0, 1, 2, 3, 8
"""The words of a buffer before its events: events written, events read, events dropped, the thread's number; then the
table of events that were only counted."""
TABLE_ROWS, TABLE_WORDS = 1 << 10, 3
"""A row of the table: the address of a row of a program, how many events, their nanoseconds. It is searched from where
the address says, a few rows on."""
_PROBES = 16
HEADER_WORDS = TABLE + TABLE_ROWS * TABLE_WORDS
BUFFER_WORDS = HEADER_WORDS + EVENTS * EVENT_WORDS
_LONG_LOOK = 2_000
"""A look for interrupts is an event if it takes this many nanoseconds: it has waited for the GIL, or run Python."""


def _read_clock(name: str, indent: int) -> str:
    space = " " * indent
    return (
        f"{space}{system.clock_text(f'load(recorder + {8 * CLOCK})', 'time')}\n"
        f"{space}{name} = {system.nanoseconds_text('time')}\n"
    )


def _record(row: str, began: str, ended: str, indent: int, lo: str = "0", hi: str = "0") -> str:
    space = " " * indent
    return f"{space}call6(load(recorder + {8 * RECORD}), recorder, {row}, {began}, {ended}, {lo}, {hi})\n"


_PRODUCT_EXTRA = GEMM_WORDS
"""After the words of a copied row: its own function for pieces, the row's address, the hook."""

_RECORDED = Marks(
    name="execute_recorded",
    begin=f"""\
    recorder = load(program + EXECUTE_WORD)
    time = stack(2)
    piece = stack(5)
    product = stack({GEMM_WORDS + 3})
    op = {int(Op.JUMP)}
    previous = at
{_read_clock("called", 4)}    began = called
""",
    row=f"""\
        if op == {int(Op.LOOP)}:
            if fuel == {FUEL}:
{_read_clock("now", 16)}                if now - began > {_LONG_LOOK}:
{_record("previous", "began", "now", 20)}                began = now
        elif op != {int(Op.JUMP)} and op != {int(Op.JUMP_IF_FALSE)} and op != {int(Op.SWITCH)}:
{_read_clock("now", 12)}{_record("previous", "began", "now", 12)}            began = now
        previous = at
""",
    split="""\
                store(piece, load(at + 8))
                store(piece + 8, arguments + load(at + 16) * 8)
                store(piece + 16, at)
                store(piece + 24, recorder)
                store(piece + 32, extent)
""",
    entry=f"load(recorder + {8 * PIECE})",
    arguments="piece",
    product=f"""\
            for word in range({GEMM_WORDS}):
                store(product + word * 8, load(at + word * 8))
            store(product + {8 * _PRODUCT_EXTRA}, load(at + {8 * ITEM}))
            store(product + {8 * ITEM}, load(recorder + {8 * PRODUCT_PIECE}))
            store(product + {8 * _PRODUCT_EXTRA + 8}, at)
            store(product + {8 * _PRODUCT_EXTRA + 16}, recorder)
""",
    product_row="product",
    end=f"""\
{_read_clock("now", 4)}    if status != 0:
{_record("previous", "began", "now", 8)}{_record("program", "called", "now", 4)}""",
)

_RECORD_EVENT = f"""
def record_event(recorder, row, began, ended, lo, hi):
    generation = atomic_load(recorder + {8 * GENERATION})
    if generation == 0:
        return 0
    mine = call1(load(recorder + {8 * GET}), load(recorder + {8 * KEY}))
    if quotient(mine, 65536) != generation:
        number = atomic_add(recorder + {8 * NEXT}, 1)
        if number - load(recorder + {8 * START}) >= {BUFFERS}:
            atomic_add(recorder + {8 * HOMELESS}, 1)
            return 0
        number = number & {BUFFERS - 1}
        mine = generation * 65536 + number
        call2(load(recorder + {8 * SET}), load(recorder + {8 * KEY}), mine)
        buffer = load(recorder + {8 * FIRST}) + number * {8 * BUFFER_WORDS}
        zero_bytes(buffer, {8 * HEADER_WORDS})
        {system.thread_number_text(f'load(recorder + {8 * SELF})', f'buffer + {8 * THREAD}')}
    buffer = load(recorder + {8 * FIRST}) + (mine & 65535) * {8 * BUFFER_WORDS}
    head = load(buffer)
    if head - atomic_load(buffer + {8 * TAIL}) >= {EVENTS}:
        for probe in range({_PROBES}):
            entry = buffer + {8 * TABLE} + ((quotient(row, 8) + probe) & {TABLE_ROWS - 1}) * {8 * TABLE_WORDS}
            known = load(entry)
            if known == 0:
                store(entry, row)
                known = row
            if known == row:
                store(entry + 8, load(entry + 8) + 1)
                store(entry + 16, load(entry + 16) + ended - began)
                return 0
        store(buffer + {8 * LOST}, load(buffer + {8 * LOST}) + 1)
        return 0
    event = buffer + {8 * HEADER_WORDS} + (head & {EVENTS - 1}) * {8 * EVENT_WORDS}
    store(event, row)
    store(event + 8, began)
    store(event + 16, ended)
    store(event + 24, lo)
    store(event + 32, hi)
    atomic_store(buffer, head + 1)
    return 0
"""

_RECORD_PIECE = f"""
def record_piece(lo, hi, piece):
    if hi - lo == load(piece + 32):
        call_kernel(load(piece), lo, hi, load(piece + 8))
        return 0
    recorder = load(piece + 24)
    time = stack(2)
{_read_clock("began", 4)}    call_kernel(load(piece), lo, hi, load(piece + 8))
{_read_clock("ended", 4)}{_record("load(piece + 16) + 1", "began", "ended", 4, "lo", "hi")}    return 0
"""

_RECORD_PRODUCT_PIECE = f"""
def record_product_piece(lo, hi, block):
    row = load(block)
    if hi - lo == load(row + {8 * BATCH}) * load(block + 16):
        call_kernel(load(row + {8 * _PRODUCT_EXTRA}), lo, hi, block)
        return 0
    recorder = load(row + {8 * _PRODUCT_EXTRA + 16})
    time = stack(2)
    at = load(row + {8 * _PRODUCT_EXTRA + 8})
{_read_clock("began", 4)}    call_kernel(load(row + {8 * _PRODUCT_EXTRA}), lo, hi, block)
{_read_clock("ended", 4)}{_record("at + 1", "began", "ended", 4, "lo", "hi")}    return 0
"""


def recorded_executor(execute_word: int) -> str:
    """The text of `execute_recorded`; `execute_word`: the word of a program's header that has the hook's address."""
    return executor_text(_RECORDED._replace(begin=_RECORDED.begin.replace("EXECUTE_WORD", str(8 * execute_word))))


RECORD_EVENT = native_function("record_event", _RECORD_EVENT, 6)
RECORD_PIECE = native_function("record_piece", _RECORD_PIECE, 3)
RECORD_PRODUCT_PIECE = native_function("record_product_piece", _RECORD_PRODUCT_PIECE, 3)
